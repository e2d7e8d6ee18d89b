"""A plan checked against the problem's own data, and the record of those that a backend reports on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.data import Residuals
from ...formulations.program.formulation import Formulation
from ...formulations.program.model import Program
from ..answers import as_floats, as_number
from ..backend import Task
from ..options import Options
from ..result import HistoryPoint
from ..workers import Score, Workers

UNREADABLE = Residuals(math.inf, math.inf, math.inf)
# Integer columns nearer than this to whole numbers are rounded to them.
NEAR_WHOLE = 1e-4


@dataclass(frozen=True, kw_only=True)
class CheckedSolution:
    """A plan with its objective and residuals, all from the problem's own data.

    Attributes
    ----------
    plan : the problem's own answer type, or None if there is none to read
    objective : float or None
    residuals : Residuals
        Violations; infinite if the plan cannot be read.
    values : ndarray of float, shape (columns,), or None
        Values of the program's columns; None without a program.
    feasible : bool
        Whether there is a plan and no residual exceeds the tolerance.
    final : bool
        Whether it comes from the backend's answer, not from a progress report.
    """

    plan: Any = None
    objective: float | None = None
    residuals: Residuals = UNREADABLE
    values: Floats | None = None
    feasible: bool = False
    final: bool = False


def check_solution(
    task: Task, given: Any, options: Options, *, duals: Floats | None = None, final: bool = False
) -> CheckedSolution:
    """Recompute objective and residuals of values by column, or of a plan where the task has no program.

    Parameters
    ----------
    given : object
        The backend's solution: an array of shape (columns,), or without a program a plan; anything else is infeasible.
    options : Options
        Options with the tolerance.
    duals : ndarray of float, shape (rows,), optional
        Duals for plans that hold prices.
    final : bool
        See `CheckedSolution`.
    """
    if task.program is None:
        checked = _checked_plan(task.problem, given, options.threads)
    else:
        checked = _checked_values(task, task.program, given, duals, options)
    feasible = checked.plan is not None and checked.residuals.worst <= options.feasibility_tol
    return replace(checked, feasible=feasible, final=final)


def better_solution(problem: Formulation[Any], first: CheckedSolution, second: CheckedSolution) -> CheckedSolution:
    """Return the better of two feasible solutions, the first on ties, with the other's proofs that are better."""
    one, two, best, rest = first.objective, second.objective, first, second
    if one is not None and two is not None and problem.sign * (two - one) > 0:
        best, rest = second, first
    return replace(best, plan=problem.improve(best.plan, rest.plan))


def _checked_plan(problem: Formulation[Any], plan: Any, threads: int) -> CheckedSolution:
    """Return the formulation's own evaluation of a plan, by so many workers where it shares its work out."""

    def apply(score: Score, vectors: Floats, width: int) -> Floats:
        with Workers(score, width, threads) as workers:
            return workers.all_scores(vectors)

    try:
        evaluated = problem.evaluate_with(plan, apply)
        normalized = problem.normalized(plan)
    except Exception:  # a backend may return anything as a plan
        return CheckedSolution()
    if evaluated is None:
        return CheckedSolution()
    return CheckedSolution(plan=normalized, objective=evaluated[0], residuals=evaluated[1])


def _checked_values(
    task: Task, program: Program, given: Any, duals: Floats | None, options: Options
) -> CheckedSolution:
    """Return the evaluation of values by column by program and formulation."""
    problem, tolerance = task.problem, options.feasibility_tol
    read = as_floats(given)
    if read is None or read.shape != (program.num_columns,) or not np.isfinite(read).all():
        return CheckedSolution()
    try:
        with np.errstate(over="raise", invalid="raise"):  # numbers that overflow cannot be checked
            # Integer columns are rounded and all clipped to bounds, unless that violates a row that the values satisfy.
            values = np.clip(np.where(program.integer, np.rint(read), read), program.lower, program.upper)
            near = np.abs(values - read).max(initial=0.0) <= NEAR_WHOLE
            values = values if near and program.residuals_at(values).worst <= tolerance else read
            residuals = program.residuals_at(values)
            if not residuals.worst <= tolerance:  # values that are no solution are not decoded
                return CheckedSolution(residuals=residuals, values=values)
            objective = program.objective_at(values)
    except (FloatingPointError, OverflowError, ValueError):
        return CheckedSolution()
    plan = problem.decode(values, duals, task.form)
    evaluated = problem.evaluate(plan)
    if evaluated is not None:
        objective, own = evaluated
        residuals = Residuals(*map(max, astuple(residuals), astuple(own)))
    return CheckedSolution(plan=plan, objective=objective, residuals=residuals, values=values)


class ProgressRecorder:
    """Records progress reports of a backend, and keeps the best incumbent that passes the check.

    The caller's `on_progress` is called from here; its exception is kept for `raise_callers_error`, as solvers suppress
    exceptions inside their callbacks.

    Attributes
    ----------
    best : CheckedSolution or None
        The best feasible incumbent.
    unchecked : object or None
        The last incumbent of a problem that `trusts_reports`.
    bound : float or None
        The last finite bound reported.
    """

    def __init__(
        self, task: Task, options: Options, started: float, on_progress: Callable[[HistoryPoint], None] | None
    ) -> None:
        self.task, self.options = task, options
        self.history: list[HistoryPoint] = []
        self.best: CheckedSolution | None = None
        self.unchecked: Any = None
        self.bound: float | None = None
        self._started, self._on_progress = started, on_progress
        self._error: BaseException | None = None

    def __call__(
        self, objective: float | None, bound: float, incumbent: Any = None, measures: Mapping[str, float] | None = None
    ) -> None:
        """Process one report of a backend; see `Progress`."""
        objective, known = as_number(objective), as_number(bound)
        bound = self.task.problem.sign * math.inf if known is None or math.isnan(known) else known
        point = HistoryPoint(self.elapsed(), objective, bound, measures or {})
        self.history.append(point)
        if math.isfinite(bound):
            self.bound = bound
        if incumbent is not None and self.task.problem.trusts_reports:
            self.unchecked = incumbent
        elif incumbent is not None:
            found = check_solution(self.task, incumbent, self.options)
            if found.feasible:
                self.best = found if self.best is None else better_solution(self.task.problem, found, self.best)
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
        """Raise the exception of the caller's callback, if there is one."""
        if self._error is not None:
            raise self._error
