"""One `solve` for every problem: choose a backend, run it, and check its answer with our own arithmetic."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..formulations.errors import BackendUnavailable, InvalidInput, UnsupportedProblem
from ..formulations.program import Floats, Program, Residuals
from .backend import Answer, Backend, Task
from .options import Options
from .registry import accepts, backends, find_backend
from .result import CLOSED_GAP, HistoryPoint, Limit, Reason, Result, Termination


def solve(
    problem: Any,
    backend: str = "auto",
    *,
    form: str | None = None,
    on_progress: Callable[[HistoryPoint], None] | None = None,
    **options: Any,
) -> Result[Any]:
    """Solve a problem, and verify what comes back.

    Parameters
    ----------
    problem : formulation or Program
    backend : str
        A name from :func:`backends`, or "auto": the first usable one that accepts the problem, special backends first.
    form : str, optional
        Which of the problem's programs a general backend is given, from `problem.forms`; the first by default.
    on_progress : callable, optional
        Called with a :class:`HistoryPoint` as the incumbent or the bound improves.
    **options
        The fields of :class:`Options`.

    Returns
    -------
    Result
        Always, for any ordinary outcome: infeasible, unbounded, out of time.

    Raises
    ------
    BackendNotFound, BackendUnavailable, LicenseLimit, UnsupportedProblem, InvalidInput, TypeError
        Faults of the call or of the environment, before anything runs.
    """
    chosen_options = Options(**options)
    solver, version = _choose(problem, backend, form, chosen_options)
    special = type(problem).__name__ in solver.formulations
    form = "special" if special else problem.forms[0] if form is None else form
    started = time.perf_counter()
    history: list[HistoryPoint] = []

    def progress(objective: float | None, bound: float) -> None:
        point = HistoryPoint(time.perf_counter() - started, objective, bound)
        history.append(point)
        if on_progress is not None:
            on_progress(point)

    if special:
        task = Task(problem=problem, form=form)
        answer = solver.solve(task, chosen_options, progress)
    else:
        program = problem.program(form)
        task = Task(problem=problem, form=form, program=program, start=_start(problem, program, form, chosen_options))
        if program.num_columns:
            left = chosen_options.time_limit
            if left is not None:
                left = max(0.0, left - (time.perf_counter() - started))
            answer = solver.solve(task, chosen_options.with_time(left), progress)
        else:
            answer = _empty(program)
    return _verified(task, answer, chosen_options, started, history, solver.name, version)


def _choose(problem: Any, name: str, form: str | None, options: Options) -> tuple[Backend, str]:
    for other in options.backend_options:
        find_backend(other)
    if problem is None:  # backends(None) lists them all
        raise UnsupportedProblem("cannot solve a NoneType: give a formulation or a Program")
    if name == "auto":
        table = backends(problem)
        if form is not None:  # a form is a program: only a general backend reads one
            table = type(table)(row for row in table if find_backend(row.name).classes)
        usable = next((row for row in table if row.usable), None)
        if usable is None:
            if not table:
                raise UnsupportedProblem(f"no backend can state this {type(problem).__name__}")
            raise BackendUnavailable("; ".join(f"{row.name}: {row.reason}" for row in table))
        solver, version = find_backend(usable.name), usable.version
    else:
        solver = find_backend(name)
        if not accepts(solver, problem):
            able = [row.name for row in backends(problem)]
            raise UnsupportedProblem(
                f"{name} cannot state this {type(problem).__name__}; "
                + (f"use backend={able[0]!r}" if able else "no backend can")
            )
        found = solver.probe()
        if not found.usable:
            raise BackendUnavailable(f"backend {name!r} cannot run here: {found.reason}")
        version = found.version
        for other in options.backend_options:
            if other != name and other not in solver.uses:
                raise InvalidInput("backend_options", other, f"the chosen backend is {name!r}: these would be ignored")
    if form is not None:
        if form not in problem.forms:
            raise InvalidInput("form", form, f"must be one of {', '.join(problem.forms)}")
        if not solver.classes:
            raise InvalidInput("form", form, f"{solver.name} reads the problem itself; name a general backend instead")
    return solver, version


def _start(problem: Any, program: Program, form: str, options: Options) -> Floats | None:
    if options.warm_start is None:
        return None
    start = problem.encode(options.warm_start) if problem is program else problem.encode(options.warm_start, form)
    return np.asarray(start, dtype=np.float64)


def _empty(program: Program) -> Answer:
    nothing = np.zeros(0)
    if program.residuals_at(nothing).row > 0:
        return Answer(claim=Reason.INFEASIBLE)
    return Answer(claim=Reason.OPTIMAL, values=nothing, bound=program.objective_at(nothing))


def _verified(
    task: Task, answer: Answer, options: Options, started: float, history: list[HistoryPoint], name: str, version: str
) -> Result[Any]:
    problem = task.problem
    sign = 1.0 if getattr(problem, "sense", "max") == "max" else -1.0
    plan, objective, residuals = _evaluated(task, answer, options)
    bound = sign * math.inf if answer.bound is None or math.isnan(answer.bound) else float(answer.bound)
    trouble = (answer.message or "the backend failed") if answer.claim is Reason.NUMERICAL else ""
    if residuals is not None and not residuals.worst <= options.feasibility_tol:
        allowed = options.feasibility_tol
        trouble = f"the answer violates its own problem by {residuals.worst:.3g} (feasibility_tol {allowed:g})"
    elif objective is not None and sign * (bound - objective) < 0:
        excess = sign * (objective - bound)
        if excess > options.feasibility_tol * max(1.0, abs(objective)):
            trouble = f"the backend's bound {bound:.12g} is on the wrong side of a verified plan by {excess:.3g}"
            bound = sign * math.inf
        else:
            bound = objective
    elif objective is not None and not math.isfinite(objective):
        trouble = "the plan's objective is not finite"

    gap = math.inf
    if objective is not None and math.isfinite(bound) and math.isfinite(objective):
        gap = abs(bound - objective) / problem.gap_scale(objective)
    if trouble:
        termination = Termination(Reason.NUMERICAL, message=trouble)
    elif plan is not None and objective is not None:
        if gap <= max(options.rel_gap, CLOSED_GAP) or abs(bound - objective) <= options.abs_gap:
            termination = Termination(Reason.OPTIMAL, message=answer.message)
        else:
            termination = Termination(Reason.FEASIBLE, answer.limit or Limit.METHOD, answer.message)
    elif answer.claim is Reason.INFEASIBLE:
        termination, bound = Termination(Reason.INFEASIBLE, message=answer.message), -sign * math.inf
    elif answer.claim in (Reason.UNBOUNDED, Reason.INFEASIBLE_OR_UNBOUNDED):
        termination, bound = Termination(answer.claim, message=answer.message), sign * math.inf
    else:
        termination = Termination(Reason.NO_SOLUTION_FOUND, answer.limit or Limit.METHOD, answer.message)

    wall_time = time.perf_counter() - started
    history.append(HistoryPoint(wall_time, objective, bound))
    return Result(
        termination=termination,
        plan=plan,
        objective=objective,
        bound=bound,
        gap=gap,
        residuals=residuals,
        duals=_by_block(task.program, "rows", answer.duals),
        reduced_costs=_by_block(task.program, "columns", answer.reduced_costs),
        wall_time=wall_time,
        history=tuple(history),
        backend=name,
        version=version,
        form=task.form,
        seed=options.seed,
        notes=answer.notes,
    )


def _evaluated(task: Task, answer: Answer, options: Options) -> tuple[Any, float | None, Residuals | None]:
    """Return the plan with its objective and residuals, all from the problem's own data."""
    problem, program = task.problem, task.program
    if program is None:
        if answer.plan is None:
            return None, None, None
        return answer.plan, *problem.evaluate(answer.plan)
    if answer.values is None:
        return None, None, None
    values = _whole(program, np.asarray(answer.values, dtype=np.float64), options.feasibility_tol)
    residuals = program.residuals_at(values)
    if not residuals.worst <= options.feasibility_tol:  # nothing is decoded from values that are no solution
        return None, None, residuals
    plan = (
        problem.decode(values, answer.duals) if problem is program else problem.decode(values, answer.duals, task.form)
    )
    if hasattr(problem, "evaluate"):
        objective, own = problem.evaluate(plan)
        return plan, objective, Residuals(*(max(a, b) for a, b in zip(_three(residuals), _three(own), strict=True)))
    return plan, program.objective_at(values), residuals


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
