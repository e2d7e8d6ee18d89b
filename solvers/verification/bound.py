"""The bound of a solve: proved by the plan or by the backend's duals, else the backend's own, unverified."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...formulations.program.bounds import proved_bound
from ...formulations.program.model import Program
from ..backend import Answer, Task
from .checked_solution import CheckedSolution


class Bound(NamedTuple):
    """A bound on the objective of every plan, whether it is proved here, and a note on its source."""

    value: float
    proved: bool
    note: str = ""


def bound_of_solve(task: Task, answer: Answer, solution: CheckedSolution | None, reported: float | None) -> Bound:
    """Return the best available bound.

    Parameters
    ----------
    solution : CheckedSolution or None
        The solution that the result holds.
    reported : float or None
        The last bound that the backend reported on the way.
    """
    problem, program = task.problem, task.program
    unbounded = problem.sign * math.inf
    if problem.proves_bounds:  # no other bound is used for such a problem
        proved = None if solution is None or solution.plan is None else problem.proved_bound(solution.plan)
        return Bound(unbounded if proved is None else proved, True)
    continuous = program is not None and not program.integer.any()
    if program is not None and continuous and answer.duals is not None:
        least = _least_proof(program, problem.sign, answer, solution)  # the backend's own bound is ignored beside it
        if math.isfinite(least):
            return Bound(problem.sign * least, True)
        return Bound(unbounded, True, "the backend's duals prove no finite bound")
    bound = reported if answer.bound is None else answer.bound
    if bound is None or math.isnan(bound):
        return Bound(unbounded, False)
    unproved = "unverified bound: the backend gave no duals to prove it"
    return Bound(float(bound), False, unproved if continuous and math.isfinite(bound) else "")


def _least_proof(program: Program, sign: float, answer: Answer, solution: CheckedSolution | None) -> float:
    """Return the least bound that the duals prove, times the sign of the objective; infinite if they prove none."""
    duals = answer.duals
    if duals is None or np.shape(duals) != (program.num_rows,):
        return math.inf
    if not len(program.log_weights):
        return sign * proved_bound(program, duals)
    # Slopes of lines above the log terms: the backend's, and the derivatives at the solution.
    slopes = [] if answer.slopes is None else [answer.slopes]
    if solution is not None and solution.values is not None:
        inside = program.log_matrix.times(solution.values) + program.log_offsets
        if (inside[program.log_weights > 0] > 0).all():
            slopes.append(program.log_weights / np.where(inside > 0, inside, 1.0))
    return min((sign * proved_bound(program, duals, each) for each in slopes), default=math.inf)
