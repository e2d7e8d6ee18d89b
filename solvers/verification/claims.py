"""Tests of a backend's claim of infeasibility or unboundedness."""

from __future__ import annotations

import math

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.bounds import proved_bound, proves_infeasible
from ...formulations.program.model import Program
from ..backend import Claim, Task
from ..options import Options
from .refute import feasible_point


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
