"""What is believed of a backend's answer: only what our own arithmetic finds in the problem's data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.bounds import proved_bound, proves_infeasible
from ...formulations.program.data import Residuals
from ...formulations.program.formulation import Formulation
from ...formulations.program.model import Program
from ..answers import as_floats, as_number
from ..backend import Answer, Claim, Task
from ..options import Options
from ..result import CLOSED_GAP, HistoryPoint, Limit, Result, Termination, TerminationReason
from ..selection import CandidateTable
from .refute import feasible_point, refuted_bound

# What stopped a solve, and what to do next; other limits are the backend's own.
ADVICE = {
    Limit.TIME: ("it ran out of time", "a longer time_limit or a warm_start may help"),
    Limit.MEMORY: ("it ran out of memory", "a smaller problem, or with isolate a larger memory_gb, may help"),
    Limit.INTERRUPTED: ("it was interrupted", "solve again to go on"),
    Limit.METHOD: ("its method ended", "a looser rel_gap or another backend may help"),
}


class Listener:
    """Takes what a backend reports on the way, and keeps the best incumbent that passes our check.

    The caller's `on_progress` is called from here; an error of its own is kept for `raise_callers_error`, as solvers
    swallow what is raised inside their callbacks.
    """

    def __init__(
        self, task: Task, options: Options, started: float, on_progress: Callable[[HistoryPoint], None] | None
    ) -> None:
        self.task, self.options = task, options
        self.history: list[HistoryPoint] = []
        self.best: Found | None = None
        self.bound: float | None = None
        self._started, self._on_progress = started, on_progress
        self._error: BaseException | None = None

    def __call__(self, objective: float | None, bound: float, incumbent: Any = None) -> None:
        """Take one report of a backend; see `Progress`."""
        objective, known = as_number(objective), as_number(bound)
        bound = sense(self.task.problem) * math.inf if known is None or math.isnan(known) else known
        point = HistoryPoint(self.elapsed(), objective, bound)
        self.history.append(point)
        if math.isfinite(bound):
            self.bound = bound
        if incumbent is not None:
            found = examined(self.task, incumbent, None, self.options)
            if found.sound:
                self.best = better(self.task.problem, found, self.best)
        if self._on_progress is not None and self._error is None:
            try:
                self._on_progress(point)
            except BaseException as error:
                self._error = error
                raise

    def elapsed(self) -> float:
        """Return seconds since the solve began."""
        return time.perf_counter() - self._started

    def raise_callers_error(self) -> None:
        """Raise what the caller's own callback raised, if it did."""
        if self._error is not None:
            raise self._error


class Found:
    """A plan with its objective and residuals, all from the problem's own data; sound if it breaks nothing."""

    def __init__(
        self, plan: Any, objective: float | None, residuals: Residuals, values: Floats | None, tolerance: float
    ) -> None:
        self.plan, self.objective, self.residuals, self.values = plan, objective, residuals, values
        self.sound = plan is not None and residuals.worst <= tolerance

    def better_than(self, other: Found, sign: float) -> bool:
        """Whether its objective is better than the other's."""
        mine, theirs = self.objective, other.objective
        return mine is not None and theirs is not None and sign * (mine - theirs) > 0


def better(problem: Formulation[Any], found: Found, other: Found | None) -> Found:
    """Return the better of two sound plans, the first of equals; of a market, at the prices that prove more."""
    if other is None:
        return found
    best, rest = (other, found) if other.better_than(found, sense(problem)) else (found, other)
    best.plan = problem.improve(best.plan, rest.plan)
    return best


def sense(problem: Formulation[Any]) -> float:
    """Return 1.0 for a maximisation, -1.0 for a minimisation."""
    return 1.0 if problem.sense == "max" else -1.0


def examined(task: Task, given: Any, duals: Floats | None, options: Options) -> Found:
    """Return what the problem's own data say of values by column, or of a plan where there is no program."""
    problem, program, tolerance = task.problem, task.program, options.feasibility_tol
    nothing = Found(None, None, Residuals(math.inf, math.inf, math.inf), None, tolerance)
    if program is None:
        try:
            judged = problem.evaluate(given)
            plan = problem.normalized(given)
        except Exception:  # whatever it is, it is no plan of this problem
            return nothing
        return nothing if judged is None else Found(plan, judged[0], judged[1], None, tolerance)
    read = as_floats(given)
    if read is None or read.shape != (program.num_columns,) or not np.isfinite(read).all():
        return nothing
    try:
        with np.errstate(over="raise", invalid="raise"):  # of such numbers no check can be made
            values = _whole(program, read, tolerance)
            residuals = program.residuals_at(values)
            if not residuals.worst <= tolerance:  # nothing is decoded from values that are no solution
                return Found(None, None, residuals, values, tolerance)
            objective = program.objective_at(values)
    except (FloatingPointError, OverflowError, ValueError):
        return nothing
    plan = problem.decode(values, duals, task.form)
    judged = problem.evaluate(plan)
    if judged is None:
        return Found(plan, objective, residuals, values, tolerance)
    objective, own = judged
    pairs = zip(_three(residuals), _three(own), strict=True)
    return Found(plan, objective, Residuals(*(max(a, b) for a, b in pairs)), values, tolerance)


def verified(
    task: Task,
    answer: Answer,
    options: Options,
    listener: Listener,
    *,
    backend: str,
    version: str,
    candidates: CandidateTable,
) -> Result[Any]:
    """Return the result: plan, bound and gap as far as they stand up to the problem's own data."""
    problem, program = task.problem, task.program
    sign = sense(problem)
    notes = list(answer.notes)
    trouble = (answer.message or "the backend failed") if answer.claim is Claim.FAILED else ""

    given = answer.plan if program is None else answer.values
    answered = found = None if given is None else examined(task, given, answer.duals, options)
    residuals = None if found is None else found.residuals
    if found is not None and not found.sound:
        allowed = options.feasibility_tol
        trouble = f"the answer violates its own problem by {found.residuals.worst:.3g} (feasibility_tol {allowed:g})"
        answer = replace(answer, bound=None)  # no word of one that is wrong
        found = found if program is None and listener.best is None else None
    if listener.best is not None and (found is None or listener.best.better_than(found, sign)):
        if found is None and answer.claim in (Claim.INFEASIBLE, Claim.INFEASIBLE_OR_UNBOUNDED):
            trouble = "the backend claims that there is no plan, but one that it reported passes our check"
        if not (found is None and answer.claim is Claim.UNBOUNDED):
            found = listener.best if found is None else better(problem, listener.best, found)
    elif listener.best is not None and found is not None and found.sound:
        found = better(problem, found, listener.best)
    elif found is None and program is not None and answer.claim is Claim.INFEASIBLE:
        trouble = trouble or _refuted_infeasible(task, program, answer, options, notes)
    if found is not None:
        residuals = found.residuals
    if found is None and program is not None:
        trouble = trouble or _refuted_unbounded(task, program, answer, options)

    bound, proved = _bound(task, answer, found, listener, notes, sign)
    objective = None if found is None else found.objective
    if objective is not None and not math.isfinite(objective):
        trouble = trouble or "the plan's objective is not finite"
        bound = bound if proved else sign * math.inf
    elif objective is not None and sign * (bound - objective) < 0:
        excess = sign * (objective - bound)
        if not proved and excess > options.feasibility_tol * max(1.0, abs(objective)):
            trouble = trouble or (
                f"the backend's bound {bound:.12g} is on the wrong side of a verified plan by {excess:.3g}"
            )
            bound = sign * math.inf
        else:
            bound = objective
    if program is not None and not proved and math.isfinite(bound):
        refuted = refuted_bound(program, None if found is None else found.values, bound, options.feasibility_tol)
        if refuted:
            trouble, bound = trouble or refuted, sign * math.inf

    gap = math.inf
    if objective is not None and math.isfinite(bound) and math.isfinite(objective):
        gap = abs(bound - objective) / problem.gap_scale(objective)
    termination, bound = _termination(answer, objective, bound, gap, trouble, options, sign)
    plan = None if found is None else found.plan
    wall_time = listener.elapsed()
    listener.history.append(HistoryPoint(wall_time, objective, bound))
    own = found is not None and found is answered
    return Result(
        termination=termination,
        plan=plan,
        objective=objective,
        bound=bound,
        gap=gap,
        residuals=residuals,
        duals=_by_block(program, "rows", answer.duals if own else None),
        reduced_costs=_by_block(program, "columns", answer.reduced_costs if own else None),
        wall_time=wall_time,
        history=tuple(listener.history),
        backend=backend,
        version=version,
        form=task.form,
        seed=options.seed,
        notes=tuple(notes),
        candidates=candidates,
    )


def _termination(
    answer: Answer, objective: float | None, bound: float, gap: float, trouble: str, options: Options, sign: float
) -> tuple[Termination, float]:
    if trouble:
        return Termination(TerminationReason.NUMERICAL, message=trouble), bound
    limit = answer.limit or Limit.METHOD
    if objective is not None:
        if gap <= max(options.rel_gap, CLOSED_GAP) or abs(bound - objective) <= options.abs_gap:
            message = answer.message if answer.claim is Claim.SOLVED else ""
            return Termination(TerminationReason.OPTIMAL, message=message), bound
        left = f"with a plan whose gap is {gap:.2g}" if math.isfinite(gap) else "with a plan, but no bound"
        return Termination(TerminationReason.FEASIBLE, limit, _read_aloud(answer, limit, left, options)), bound
    if answer.claim is Claim.INFEASIBLE:
        return Termination(TerminationReason.INFEASIBLE, message=answer.message), -sign * math.inf
    if answer.claim in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
        return Termination(TerminationReason[answer.claim.name], message=answer.message), sign * math.inf
    left = "before it had a plan; there may be one"
    return Termination(TerminationReason.NO_SOLUTION_FOUND, limit, _read_aloud(answer, limit, left, options)), bound


def _read_aloud(answer: Answer, limit: Limit, left: str, options: Options) -> str:
    """Say what stopped the solve, what it left, and what to do next."""
    what, advice = f"it stopped at its limit of {limit.value}", "a higher limit in backend_options may help"
    if limit in ADVICE:
        what, advice = ADVICE[limit]
    if limit is Limit.TIME and options.time_limit is not None:
        what = f"it stopped at time_limit={options.time_limit:g} s"
    return f"{what} {left}: {advice}" + (f" [{answer.message}]" if answer.message else "")


def _bound(
    task: Task, answer: Answer, found: Found | None, listener: Listener, notes: list[str], sign: float
) -> tuple[float, bool]:
    """Return the bound, and whether it is proved by the backend's duals rather than its word."""
    program, problem = task.program, task.problem
    nothing = sign * math.inf
    if problem.proves_bounds:  # the plan carries its own proof, and no other is taken
        proved = None if found is None or found.plan is None else problem.proved_bound(found.plan)
        return (nothing if proved is None else proved), True
    continuous = program is not None and not program.integer.any()
    duals = answer.duals
    if program is not None and continuous and duals is not None:
        if np.shape(duals) == (program.num_rows,):
            best = min((sign * each for each in _proofs(program, answer, found)), default=math.inf)
            if math.isfinite(best):
                return sign * best, True
        notes.append("the backend's duals prove no finite bound")
        return nothing, True
    bound = answer.bound if answer.bound is not None else listener.bound
    if bound is None or math.isnan(bound):
        return nothing, False
    if continuous and math.isfinite(bound):
        notes.append("the bound is the backend's word: it gave no duals to prove it")
    return float(bound), False


def _proofs(program: Program, answer: Answer, found: Found | None) -> list[float]:
    assert answer.duals is not None
    if not len(program.log_weights):
        return [proved_bound(program, answer.duals)]
    slopes = [] if answer.slopes is None else [answer.slopes]
    if found is not None and found.values is not None:
        inside = program.log_matrix.times(found.values) + program.log_offsets
        if (inside[program.log_weights > 0] > 0).all():
            slopes.append(program.log_weights / np.where(inside > 0, inside, 1.0))
    return [proved_bound(program, answer.duals, each) for each in slopes]


def _refuted_infeasible(task: Task, program: Program, answer: Answer, options: Options, notes: list[str]) -> str:
    if feasible_point(program, task.start, options.feasibility_tol) is not None:
        return "the backend claims that there is no plan, but a simple point satisfies the program"
    ray = answer.ray
    if ray is not None and np.shape(ray) == (program.num_rows,) and proves_infeasible(program, ray):
        notes.append("that there is no plan is proved: multipliers of the rows, checked here")
    else:
        notes.append("that there is no plan is the backend's word")
    return ""


def _refuted_unbounded(task: Task, program: Program, answer: Answer, options: Options) -> str:
    if answer.claim not in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
        return ""
    limit = proved_bound(program, np.zeros(program.num_rows), np.ones(len(program.log_weights)), repair=False)
    if not math.isfinite(limit):
        return ""
    if answer.claim is Claim.UNBOUNDED:
        return f"the backend claims an unbounded objective, but its columns' bounds prove {limit:.6g}"
    if feasible_point(program, task.start, options.feasibility_tol) is None:
        return ""
    return f"the backend claims no plan or plans without end, but there is one, and none is better than {limit:.6g}"


def _three(residuals: Residuals) -> tuple[float, float, float]:
    return residuals.bound, residuals.row, residuals.integrality


def _whole(program: Program, values: Floats, tolerance: float) -> Floats:
    """Round integer columns and clip to bounds, unless that breaks a row the values themselves keep."""
    rounded = np.where(program.integer, np.rint(values), values)
    rounded = np.clip(rounded, program.lower, program.upper)
    near = np.abs(rounded - values).max(initial=0.0) <= 1e-4
    return rounded if near and program.residuals_at(rounded).worst <= tolerance else values


def _by_block(program: Program | None, what: str, values: Floats | None) -> dict[str, Floats] | None:
    if program is None or values is None:
        return None
    return {name: values[index] for name, index in getattr(program, what).items()}
