"""Tests of a backend's claim that there is no plan, or no best one."""

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
    """Return what refutes the claim that there is no plan; empty if nothing does."""
    if feasible_point(program, task.start, options.feasibility_tol) is None:
        return ""
    return "the backend claims that there is no plan, but a simple point satisfies the program"


def infeasible_note(program: Program, ray: Floats | None) -> str:
    """Return the note on what proves that there is no plan."""
    if ray is not None and np.shape(ray) == (program.num_rows,) and proves_infeasible(program, ray):
        return "that there is no plan is proved: multipliers of the rows, checked here"
    return "that there is no plan is the backend's word"


def unbounded_refuted(task: Task, program: Program, claim: Claim, options: Options) -> str:
    """Return what refutes the claim UNBOUNDED or INFEASIBLE_OR_UNBOUNDED; empty if nothing does."""
    limit = proved_bound(program, np.zeros(program.num_rows), np.ones(len(program.log_weights)), repair=False)
    if not math.isfinite(limit):
        return ""
    if claim is Claim.UNBOUNDED:
        return f"the backend claims an unbounded objective, but its columns' bounds prove {limit:.6g}"
    if feasible_point(program, task.start, options.feasibility_tol) is None:
        return ""
    return f"the backend claims no plan or plans without end, but there is one, and none is better than {limit:.6g}"
