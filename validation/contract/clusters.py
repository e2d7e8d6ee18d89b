"""Case of the contract: few jobs on a small cluster, solved by their program, against all their schedules."""

from __future__ import annotations

from typing import Any

from ...formulations.gpu_sharing.cluster import GpuSharing
from ...formulations.program.data import ProblemClass
from ...solvers.result import Limit, Reason, Result
from ..instances.clusters import random_cluster
from ..oracles.clusters import least_total_time
from .check import Check, Failure, Skip

# Two sums of completion times agree within this, relative; a bound may exceed the optimum by as much.
AGREEMENT = 1e-6


def clusters(check: Check, wanted: ProblemClass) -> None:
    """The sum of completion times of 3 jobs on 2 GPUs is the least of all schedules, and the schedule is feasible."""
    for rng in check.draws(3, 15):
        problem = random_cluster(rng, jobs=3, gpus=2, most_slots=4, last_arrival=3, weighted=rng.random() < 0.5)
        result = check.solve(problem)
        if result.termination.limit is Limit.TIME and result.wall_time > 0.9 * check.time_limit:
            raise Skip(f"too slow to tell: {result.termination}")
        trouble = cluster_trouble(problem, result)
        if trouble:
            raise Failure(f"{trouble} of {problem!r}")


def cluster_trouble(problem: GpuSharing, result: Result[Any]) -> str:
    """Return what is wrong with the result of a problem small enough to enumerate; empty if nothing is.

    A backend whose method cannot close the last part of a gap may call its plan FEASIBLE.
    """
    reason = result.termination.reason
    at_grid = reason is Reason.FEASIBLE and result.termination.limit is Limit.METHOD
    if result.plan is None or result.objective is None or not (reason is Reason.OPTIMAL or at_grid):
        return f"{result.termination}"
    best = least_total_time(problem)
    if abs(result.objective - best) > AGREEMENT * best:
        return f"sum of completion times {result.objective:.12g} instead of {best:.12g}"
    if result.bound > best * (1 + AGREEMENT):
        return f"bound {result.bound:.12g} above the optimum {best:.12g}"
    fault = result.plan.fault()
    return f"a schedule with a fault of {fault:g}" if fault else ""
