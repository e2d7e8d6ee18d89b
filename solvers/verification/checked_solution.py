"""A plan checked against the problem's own data: objective and residuals recomputed, feasible or not."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.data import Residuals
from ...formulations.program.formulation import Formulation
from ...formulations.program.model import Program
from ..answers import as_floats
from ..backend import Task
from ..options import Options

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
        checked = _checked_plan(task.problem, given)
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


def _checked_plan(problem: Formulation[Any], plan: Any) -> CheckedSolution:
    """Return the formulation's own evaluation of a plan."""
    try:
        evaluated = problem.evaluate(plan)
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
            values = _rounded(program, read, tolerance)
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


def _rounded(program: Program, values: Floats, tolerance: float) -> Floats:
    """Round integer columns and clip to bounds, unless that violates a row that the values satisfy."""
    rounded = np.where(program.integer, np.rint(values), values)
    rounded = np.clip(rounded, program.lower, program.upper)
    near = np.abs(rounded - values).max(initial=0.0) <= NEAR_WHOLE
    return rounded if near and program.residuals_at(rounded).worst <= tolerance else values
