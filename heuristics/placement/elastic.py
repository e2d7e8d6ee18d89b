"""Elastic policies of the placement engine: Pollux and Sia, by certified goodput allocations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.assignment.goodput import GoodputAllocation, GoodputPlan, restart_factors
from ...formulations.checks import as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.decision import Evidence
from ...simulation.placement.actions import Action, Start, Stop, Wake
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_speeds import ModelSpeeds
from ...simulation.placement.model_table import ModelRow
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S
from ...solvers.solve import solve

# Total batch sizes that are tried, in geometric steps from the first to the largest.
_BATCHES = 48


@dataclass(frozen=True)
class Configuration:
    """The best batch of a job on so many GPUs: samples per GPU and iteration, and at once; and its goodput."""

    batch_size: int
    sub_batch: int
    goodput: float


def divided_batch(row: ModelRow, total_batch: float, gpus: int) -> tuple[int, int]:
    """Return the samples per GPU and iteration nearest to a total batch size on these GPUs, and those at once.

    The samples per GPU are within the model's least per GPU and its largest total; they are computed in as few steps of
    gradient accumulation as the memory of a GPU allows.
    """
    size = max(row.min_gpu_batch, min(round(total_batch / gpus), row.max_batch // gpus))
    return size, math.ceil(size / math.ceil(size / row.max_gpu_batch))


def best_configuration(speeds: ModelSpeeds, model: str, gpus: int, machines: int) -> Configuration | None:
    """Return the batch with the greatest goodput of a model on these GPUs; None if none can run.

    Tried are total batch sizes from M0 to the largest in geometric steps, divided over the GPUs by `divided_batch`.
    Ties go to the smaller batch.
    """
    row = speeds.table.row(model)
    best: Configuration | None = None
    for total in np.unique(np.geomspace(row.first_batch, row.max_batch, _BATCHES).round()):
        size, part = divided_batch(row, float(total), gpus)
        if size * gpus > row.max_batch:
            continue
        goodput = speeds.goodput(model, gpus, size, sub_batch=part, machines=machines)
        if best is None or goodput > best.goodput:
            best = Configuration(size, part, goodput)
    return best


@dataclass(kw_only=True, eq=False)
class ElasticPolicy(ABC):
    """Base of the elastic policies: a goodput allocation at intervals, with the GPUs of each job consolidated.

    Parameters
    ----------
    interval_s : float
        Least seconds between two allocations. They are made while jobs are present, the first when a job arrives.
    restart_s : float
        Seconds that the policy expects of a restart; give the engine's rule the same value.
    growth : float
        A job gets at most so many times the largest number of GPUs that it has had, and at first its `min_gpus`, 1 by
        default. It never gets fewer.
    backend : str
        Backend of the solves.
    rel_gap : float
        Gap at which a solve stops.
    time_limit : float, optional
        Seconds at which a solve stops.

    Notes
    -----
    Every allocation is a solved `GoodputAllocation`, whose gap is in the result's `solves`. Goodputs are those of the
    best batch on the fewest machines that hold the GPUs. A job whose number of GPUs stays keeps its GPUs and its batch;
    the others are stopped, and started in descending order of their new numbers by the consolidated rule.
    """

    interval_s: float = 60.0
    restart_s: float = 30.0
    growth: float = 2.0
    backend: str = "auto"
    rel_gap: float = 1e-3
    time_limit: float | None = None
    name: str = field(default="", init=False)
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset({"speeds"})
    needs_models: ClassVar[bool] = True

    def __post_init__(self) -> None:
        store_checked(self, as_real, "interval_s", "restart_s", "rel_gap", above=0.0)
        store_checked(self, as_real, "growth", above=1.0)
        if self.time_limit is not None:
            store_checked(self, as_real, "time_limit", above=0.0)
        self.evidence = Evidence()
        self._next_s, self._wake_s = 0.0, -math.inf
        self._most: dict[int, int] = {}
        self._configurations: dict[tuple[str, int], Configuration | None] = {}

    @abstractmethod
    def allocation(self, goodputs: Floats, gpus: int, current: Any, factors: Floats) -> GoodputAllocation:
        """Return the problem of one call.

        Parameters
        ----------
        goodputs : ndarray of float, shape (N, G + 1)
        gpus : int
        current : ndarray of int, shape (N, 2)
            Type (0) and number of the GPUs that each job holds.
        factors : ndarray of float, shape (N,)
            Factor of the goodput of a job that is restarted.
        """

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Allocate the GPUs anew if the interval is over; otherwise wait for its end."""
        self.evidence = Evidence()
        if not state.jobs:
            return
        if state.time_s + TICK_S >= self._next_s:
            self._next_s = state.time_s + self.interval_s
            yield from self._allocate(state)
        if self._wake_s < self._next_s:
            self._wake_s = self._next_s
            yield Wake(self._next_s)

    def _allocate(self, state: PlacementState) -> Iterator[Action]:
        if not isinstance(state.speeds, ModelSpeeds):
            raise InvalidInput(
                "speeds", type(state.speeds).__name__, f"{self.name} needs ModelSpeeds (--speeds models)"
            )
        jobs = list(state.jobs.values())
        plan = self._solve(state, state.speeds, jobs)
        counts = dict(zip(state.jobs, plan.count_of.tolist(), strict=True))
        changed = [job for job in jobs if counts[job.trace_index] != len(job.gpu_ids)]
        for job in changed:
            if job.run is not None:
                yield Stop(job.trace_index)
        for job in sorted(changed, key=lambda job: -counts[job.trace_index]):
            count = counts[job.trace_index]
            if count:
                ids, best = state.gpus.find(count), self._best(state, state.speeds, job.model, count)
                assert ids is not None, "the allocation exceeds the cluster"
                assert best is not None, "the allocation gives GPUs that the job cannot use"
                self._most[job.trace_index] = max(count, self._most.get(job.trace_index, 1))
                yield Start(job.trace_index, ids, best.batch_size, best.sub_batch)

    def _solve(self, state: PlacementState, speeds: ModelSpeeds, jobs: list[PlacementJob]) -> GoodputPlan:
        gpus = state.cluster.gpus
        most = [min(gpus, max(job.min_gpus, int(self.growth * self._most.get(job.trace_index, 0)))) for job in jobs]
        goodputs = np.zeros((len(jobs), max(most) + 1))
        for row, (job, limit) in enumerate(zip(jobs, most, strict=True)):
            for count in range(job.min_gpus, limit + 1):
                best = self._best(state, speeds, job.model, count)
                goodputs[row, count] = 0.0 if best is None else best.goodput
        current = np.array([[0, len(job.gpu_ids)] for job in jobs])
        age_s = np.array([state.time_s - job.arrival_s for job in jobs])
        factors = restart_factors(age_s, [job.restarts for job in jobs], np.full(len(jobs), self.restart_s))
        problem = self.allocation(goodputs, gpus, current, factors)
        result = solve(problem, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
        self.evidence = Evidence.of(result)
        plan = result.plan
        if plan is None:
            raise InvalidInput("time_limit", self.time_limit, f"{self.name} found no allocation: {result.termination}")
        return plan

    def _best(self, state: PlacementState, speeds: ModelSpeeds, model: str, count: int) -> Configuration | None:
        key = (model, count)
        if key not in self._configurations:
            machines = state.gpus.fewest_machines(count)
            self._configurations[key] = best_configuration(speeds, model, count, machines)
        return self._configurations[key]


@dataclass(kw_only=True, eq=False)
class PolluxPolicy(ElasticPolicy):
    """Pollux (Qiao et al., OSDI 2021): the power mean of the jobs' speedups against a fair share is greatest.

    Further parameters are those of `ElasticPolicy`.

    Parameters
    ----------
    power : float
        Exponent p of the mean, -1 by default.

    Notes
    -----
    Pollux searches allocations by a genetic algorithm; here each allocation is optimal to the gap that the result
    records.
    """

    power: float = -1.0
    name: str = field(default="pollux", init=False)

    def allocation(self, goodputs: Floats, gpus: int, current: Any, factors: Floats) -> GoodputAllocation:
        """Return Pollux's problem."""
        return GoodputAllocation(
            goodputs=goodputs, gpus=np.array(gpus), power=self.power, current=current, restart_factors=factors
        )


@dataclass(kw_only=True, eq=False)
class SiaPolicy(ElasticPolicy):
    """Sia (Jayaram Subramanya et al., SOSP 2023) on one type of GPU: normalised goodputs to a power, and a penalty.

    Further parameters are those of `ElasticPolicy`.

    Parameters
    ----------
    power : float
        Exponent p, -0.5 by default.
    idle_penalty : float
        Penalty of a job without GPUs (lambda), 1.1 by default.
    """

    power: float = -0.5
    idle_penalty: float = 1.1
    name: str = field(default="sia", init=False)

    def allocation(self, goodputs: Floats, gpus: int, current: Any, factors: Floats) -> GoodputAllocation:
        """Return Sia's integer program."""
        return GoodputAllocation.sia(
            goodputs=goodputs, gpus=gpus, power=self.power, idle_penalty=self.idle_penalty, current=current,
            restart_factors=factors,
        )  # fmt: skip
