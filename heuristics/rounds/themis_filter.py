"""Themis with its filter: the least fair jobs are selected first, then placed by efficiency or auction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.markets.fisher import FisherMarket
from ...simulation.rounds.policy import Evidence, RoundJob, RoundState, Schedule
from ..prediction.estimators import planned_ftf
from ..prediction.predictors import PREDICTORS, Predictor, predict
from .partial_allocation import PartialAllocation, partial_allocation
from .queue import CalledEveryRound

Mechanism = Literal["efficiency", "auction"]
MECHANISMS: tuple[Mechanism, ...] = ("efficiency", "auction")


@dataclass(kw_only=True, eq=False)
class ThemisFilterPolicy(CalledEveryRound):
    """Themis with its filter: in every round the GPUs are offered to the least fair jobs.

    Parameters
    ----------
    fraction : float
        Share f of the jobs that the filter selects, above 0 and at most 1: the ``ceil(f m)`` of m jobs with the largest
        planned finish-time fairness (Eq. 9), ties by the order of the trace. Themis's default is 0.8.
    mechanism : {"efficiency", "auction"}
        Rule by which the selected jobs share the GPUs. "efficiency": most GPUs in use. "auction": partial allocation.
    predictor : {"greedy", "restatement", "bayes", "oracle"}
        Predictor of the remaining run time. Themis uses the current speed only ("greedy").
    rel_gap : float
        Gap of the auction's solves.

    Raises
    ------
    InvalidInput
        If an option is out of range.

    Notes
    -----
    *Efficiency.* Under linear slowdown the speed of a gang is proportional to its GPUs, so the most efficient set of
    gangs uses most GPUs; among equal sets it keeps most GPUs with the jobs that hold them, since a start costs time. On
    each GPU type this set is found exactly among the jobs for which the type is the fastest one left; remaining ties
    go to the set that is lexicographically first in order of unfairness. With one type the set is optimal; several
    types are processed in the cluster's order. A small f favours fairness and causes more starts, a large f favours
    efficiency. (Themis's paper writes 1 - f for this f.)

    *Auction.* The selected jobs are buyers of GPUs by type, with linear utilities (steps per second per GPU) and their
    weights as budgets. A job's allocation over its gang is the share of rounds that it wins. Won rounds accumulate as
    credit, and jobs are placed in order of credit, on the type of which they won most. The gang does not bound the
    allocation: a job that wins more than its gang wins every round.

    With both mechanisms the GPUs left go to the other jobs by the rule of efficiency, so no GPU idles that a job fits.

    References
    ----------
    K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020, Sections 3 and 4;
    P. Zheng et al., "Shockwave", NSDI 2023, Section 2 and Table 1.
    """

    fraction: float = 0.8
    mechanism: Mechanism = "efficiency"
    predictor: Predictor = "greedy"
    rel_gap: float = 1e-6
    name: str = field(default="themis-filter", init=False, repr=False)
    _credit: dict[str | int, float] = field(default_factory=dict, init=False, repr=False)
    _offer: tuple[Any, PartialAllocation] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        store_checked(self, as_real, "fraction", above=0.0, maximum=1.0)
        store_checked(self, as_real, "rel_gap", above=0.0)
        if self.mechanism not in MECHANISMS:
            raise InvalidInput("mechanism", self.mechanism, f"must be one of {', '.join(MECHANISMS)}")
        if self.predictor not in PREDICTORS:
            raise InvalidInput("predictor", self.predictor, f"must be one of {', '.join(PREDICTORS)}")

    def decide(self, state: RoundState) -> Schedule:
        """Return a schedule of the next round."""
        unfair = np.array([self.unfairness(job) for job in state.jobs])
        order = np.argsort(-unfair, kind="stable")
        kept = math.ceil(self.fraction * len(order) - 1e-9)  # tolerance of rounding: 0.8 of 5 jobs is 4 jobs
        first = [state.jobs[index] for index in order[:kept]]
        others = [state.jobs[index] for index in order[kept:]]
        free = state.gpus.astype(np.int64).copy()
        placed: dict[str | int, int] = {}
        evidence = Evidence()
        if self.mechanism == "auction":
            evidence = self._auction(state, first, free, placed)
        fill(first, free, placed)
        fill(others, free, placed)
        return Schedule([placed], evidence)

    def unfairness(self, job: RoundJob) -> float:
        """Return the job's planned finish-time fairness (Eq. 9); larger values are less fair."""
        state = job.state
        left_s = predict(state, self.predictor).remaining_s
        return planned_ftf(state.attained_s, state.waiting_s, left_s, state.contention)

    def _auction(
        self, state: RoundState, jobs: Sequence[RoundJob], free: np.ndarray[Any, Any], placed: dict[str | int, int]
    ) -> Evidence:
        """Add the shares of rounds that the jobs win to their credit, and place jobs with the credit of a round."""
        offer = self._run_auction(state, jobs)
        gang_gpus = np.array([job.gpus for job in jobs])
        won = np.minimum(1.0, offer.allocation.sum(axis=1) / gang_gpus)
        credit = np.array([self._credit.get(job.id, 0.0) for job in jobs]) + won
        self._credit = {job.id: self._credit.get(job.id, 0.0) for job in state.jobs}
        self._credit |= {job.id: float(value) for job, value in zip(jobs, credit, strict=True)}
        for index in np.argsort(-credit, kind="stable"):
            job = jobs[index]
            for gpu_type in np.argsort(-offer.allocation[index], kind="stable"):
                if credit[index] >= 1.0 - 1e-9 and job.rates[gpu_type] > 0 and job.gpus <= free[gpu_type]:
                    free[gpu_type] -= job.gpus
                    placed[job.id] = int(gpu_type)
                    self._credit[job.id] -= 1.0
                    break
        plan = offer.nash
        welfare = float(np.dot([job.weight for job in jobs], np.log(plan.utilities)))
        bound = welfare + offer.gap * sum(job.weight for job in jobs)
        return Evidence(reason="auction", objective=welfare, bound=bound, gap=offer.gap, backend="partial_allocation")

    def _run_auction(self, state: RoundState, jobs: Sequence[RoundJob]) -> PartialAllocation:
        """Run the auction, or reuse the last one if its inputs are unchanged."""
        speeds: Floats = np.array([job.rates / job.gpus for job in jobs])
        weights = np.array([job.weight for job in jobs])
        key = (tuple(job.id for job in jobs), speeds.tobytes(), weights.tobytes(), state.gpus.tobytes())
        if self._offer is None or self._offer[0] != key:
            market = FisherMarket(utilities=speeds, budgets=weights, capacities=state.gpus.astype(np.float64))
            self._offer = key, partial_allocation(market, rel_gap=self.rel_gap)
        return self._offer[1]


def fill(jobs: Sequence[RoundJob], free: np.ndarray[Any, Any], placed: dict[str | int, int]) -> None:
    """Place gangs so that most free GPUs are in use, each job on the fastest type left.

    The jobs are in order of preference; those in `placed` are skipped. The free GPUs of each type, shape (K,), are
    reduced, and the GPU types of the jobs in `placed` extended, in place.
    """
    ranks = {job.id: np.argsort(-job.rates, kind="stable") for job in jobs}
    for rank in range(len(free)):
        for gpu_type in range(len(free)):
            candidates = [
                job
                for job in jobs
                if job.id not in placed and ranks[job.id][rank] == gpu_type and job.rates[gpu_type] > 0
            ]
            going = [job.running for job in candidates]
            for index in fullest([job.gpus for job in candidates], int(free[gpu_type]), going):
                placed[candidates[index].id] = gpu_type
                free[gpu_type] -= candidates[index].gpus


def fullest(gang_gpus: Sequence[int], gpus: int, going: Sequence[bool] | None = None) -> list[int]:
    """Return the indices of the gangs, in order of preference, that together use most of the GPUs.

    Ties go to the set with most GPUs of continuing gangs, which are `going` (by default none), then to the
    lexicographically first set.
    """
    goes_on = np.zeros(len(gang_gpus), dtype=np.int64) if going is None else np.asarray(going, dtype=np.int64)
    # A GPU in use counts more than all GPUs of continuing gangs.
    value = np.asarray(gang_gpus, dtype=np.int64) * (gpus + 1 + goes_on)
    # best[i, c]: largest value of gangs i, i + 1, ... on c GPUs.
    best = np.zeros((len(gang_gpus) + 1, gpus + 1), dtype=np.int64)
    for index in range(len(gang_gpus) - 1, -1, -1):
        size = gang_gpus[index]
        best[index] = best[index + 1]
        if size <= gpus:
            with_gang = best[index + 1, : gpus + 1 - size] + value[index]
            np.maximum(best[index, size:], with_gang, out=best[index, size:])
    left, taken = gpus, []
    for index, size in enumerate(gang_gpus):
        if size <= left and best[index + 1, left - size] + value[index] == best[index, left]:
            taken.append(index)
            left -= size
    return taken
