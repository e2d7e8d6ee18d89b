"""Tests of a backend's claims, and cheap attempts to refute them: a missed point, a step that beats its bound."""

from __future__ import annotations

import math

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.bounds import proved_bound, proves_infeasible
from ...formulations.program.model import Program
from ..backend import Claim, Task
from ..options import Options
from .local_search import better_point, gradient, objective_if_feasible

# Steps examined: the most promising by their first-order gain.
MOST_STEPS = 5
# Moves of a search for a plan that refutes infeasibility: the claim is rare and important.
MOST_MOVES = 200
# Beyond this size, the search for a plan better than a bound would cost more than 5 ms of every solve.
MOST_ENTRIES = 10_000


def infeasible_refuted(task: Task, program: Program, options: Options) -> str:
    """Return the refutation of the claim that there is no plan; empty if there is none."""
    if feasible_point(program, task.start, options.feasibility_tol) is None:
        return ""
    return "the backend claims that there is no plan, but a simple point satisfies the program"


def infeasible_note(program: Program, ray: Floats | None) -> str:
    """Return the note on the proof of infeasibility."""
    if ray is not None and np.shape(ray) == (program.num_rows,) and proves_infeasible(program, ray):
        return "infeasibility is proved: multipliers of the rows, checked here"
    return "infeasibility is unverified: the backend gave no proof of it"


def unbounded_refuted(task: Task, program: Program, claim: Claim, options: Options) -> str:
    """Return the refutation of the claim UNBOUNDED or INFEASIBLE_OR_UNBOUNDED; empty if there is none."""
    limit = proved_bound(program, np.zeros(program.num_rows), np.ones(len(program.log_weights)), repair=False)
    if not math.isfinite(limit):
        return ""
    if claim is Claim.UNBOUNDED:
        return f"the backend claims an unbounded objective, but its columns' bounds prove {limit:.6g}"
    if feasible_point(program, task.start, options.feasibility_tol) is None:
        return ""
    claimed = "the backend claims an infeasible or unbounded program"
    return f"{claimed}, but there is a plan, and none is better than {limit:.6g}"


def feasible_point(program: Program, start: Floats | None, tolerance: float) -> Floats | None:
    """Return a point that satisfies the program, if one of the simplest does or a short search finds one.

    None proves nothing.
    """
    given = [] if start is None else [start]
    for values in (*given, _nearest_zero(program), program.lower, program.upper):
        if np.isfinite(values).all() and objective_if_feasible(program, values, tolerance) is not None:
            return values
    with np.errstate(over="ignore", invalid="ignore"):
        return better_point(program, _nearest_zero(program), None, tolerance, moves=MOST_MOVES)


def refuted_bound(
    program: Program, values: Floats | None, bound: float, tolerance: float, duals: Floats | None = None
) -> str:
    """Return a description of a plan that is better than the bound, found from `values` if they are given.

    A bound that `duals` prove is no bound on points that violate rows and bounds within the tolerance: by duality these
    may be better by so much for each unit of a dual or a reduced cost.
    """
    allowed = tolerance * max(1.0, abs(bound))
    if duals is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            terms = program.matrix.values * duals[program.matrix.row_of_entry()]
            used = np.bincount(program.matrix.columns, weights=terms, minlength=program.num_columns)
            allowed += tolerance * float(np.abs(duals).sum() + np.abs(program.objective - used).sum())
    beyond = bound + program.sign * allowed
    start = _nearest_zero(program) if values is None else values
    point = None
    with np.errstate(over="ignore", invalid="ignore"):
        step = better_step(program, start, beyond, tolerance)
        if step is None and len(program.matrix.values) <= MOST_ENTRIES:
            point = better_point(program, start, beyond, tolerance)
    prefix = f"the backend's bound {bound:.12g} is refuted: "
    if step is not None and values is not None:
        return prefix + f"changing column {step[0]} by {step[1]:g} is better"
    if step is not None or point is not None:
        return prefix + "there is a better plan"
    return ""


def _nearest_zero(program: Program) -> Floats:
    return np.clip(np.zeros(program.num_columns), program.lower, program.upper)


def better_step(program: Program, values: Floats, beyond: float, tolerance: float) -> tuple[int, float] | None:
    """Return (column, change) of a single step to a feasible point whose objective is better than `beyond`, or None.

    An integer column moves by whole numbers, another as far as rows and bounds let it. Looks at first-order gains
    only, so it may miss a step; what it returns is checked.
    """
    slope = program.sign * gradient(program, values)
    up = slope > 0
    distance = np.where(up, program.upper - values, values - program.lower)
    row, column, value = program.matrix.row_of_entry(), program.matrix.columns, program.matrix.values
    activity = program.matrix.times(values)
    rises = (value > 0) == up[column]
    slack = np.where(rises, program.row_upper[row] - activity[row], activity[row] - program.row_lower[row])
    used = value != 0
    np.minimum.at(distance, column[used], np.maximum(slack[used], 0.0) / np.abs(value[used]))
    distance = np.where(program.integer, np.floor(distance + tolerance), distance)
    distance = np.where(np.isinf(distance), 1.0, np.maximum(distance, 0.0))
    gain = np.abs(slope) * distance
    for j in np.argsort(-gain, kind="stable")[:MOST_STEPS]:
        if gain[j] <= 0:
            break
        moved = values.copy()
        moved[j] += distance[j] if up[j] else -distance[j]
        objective = objective_if_feasible(program, moved, tolerance)
        if objective is not None and program.sign * (objective - beyond) > 0:
            return int(j), float(moved[j] - values[j])
    return None
