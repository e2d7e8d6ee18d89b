"""Shortest job first, with GPUs shared in pairs: SJF-BSBF shares where it gains, SJF-FFS wherever memory suffices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar

import numpy as np

from ...formulations.arrays import Indices
from ...formulations.checks import as_flag, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Start
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_table import TABLE_GPU_GB
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks
from .lone_jobs import LoneJobs
from .pair_settings import RULES, Kind, PairSettings
from .queue import check_placement

#: Orders of the waiting jobs.
ORDERS = ("time", "gpus")


@dataclass(kw_only=True, eq=False)
class SjfSharingPolicy(ABC):
    """Shortest job first, without preemption; where GPUs are short, a job shares those of jobs that run alone.

    Waiting jobs are taken in order. A job starts on free GPUs if there are enough. Otherwise it takes the GPUs of
    running jobs that share none, of those with which it may, in an order of the policy, until it has enough; free GPUs
    complete them. A job that would not have enough is passed over. docs/placement-policies.md states the rules.

    Parameters
    ----------
    gpu_memory_gb : float
        Memory of a GPU, which both jobs of a pair must fit; it counts with `ModelSpeeds`, whose table has the memory of
        a worker. By default that of a T4.
    order : {"time", "gpus"}
        Order of the waiting jobs: by their exclusive times, or by their GPUs first.
    placement : {"consolidated", "first_fit", "least_loaded"}
        Rule that chooses free GPUs; see `Occupancy.find`.

    Notes
    -----
    The rule `jobs_per_gpu` must be at least 2 for any sharing. Times count to the nearest 2^-20 s; ties go to the lower
    trace index.
    """

    gpu_memory_gb: float = TABLE_GPU_GB
    order: str = "time"
    placement: str = "consolidated"
    name: str = field(default="", init=False)
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset({"durations", "speeds"})

    def __post_init__(self) -> None:
        store_checked(self, as_real, "gpu_memory_gb", above=0.0)
        if self.order not in ORDERS:
            raise InvalidInput("order", self.order, f"must be one of {', '.join(ORDERS)}")
        check_placement(self.placement)
        # The other waiting jobs per GPU of the cluster, if they count.
        self._behind = 0.0

    @abstractmethod
    def benefit_test(self) -> tuple[str | None, bool]:
        """Return the rule of `PairSettings`, and whether jobs that wait count."""

    @abstractmethod
    def partners(
        self, state: PlacementState, job: PlacementJob, kind: Kind, gaining: Indices
    ) -> Iterator[tuple[int, int]]:
        """Yield the partners of a waiting job in order, by trace index, with the job's sub-batch beside each.

        `gaining` has the places, among the jobs that run alone, of those beside which it gains.
        """

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start the waiting jobs in order, alone or beside others."""
        if not state.step:
            self._settings = PairSettings(state, self.gpu_memory_gb, *self.benefit_test())
            self._lone = LoneJobs(self._settings)
            # Waiting jobs as (place in the order, trace index), a heap for each kind.
            self._waiting: dict[Kind, list[tuple[tuple[int, int], int]]] = {}
        shares = state.jobs_per_gpu > 1
        self._settings.thresholds.forget()
        if shares:
            self._lone.note_ends(state)
        # The first waiting job of each kind. While jobs only start, a job finds ever fewer GPUs, and the later ones of
        # its kind no more than it: once it cannot start, they cannot either, until a job ends.
        heads = [(self._waiting[kind][0], kind) for kind in self._kinds_to_try(state)]
        heapify(heads)
        while heads:
            entry, kind = heads[0]
            job, entries = state.waiting[entry[1]], self._waiting[kind]
            start = self._start(state, job, kind)
            if start is None:
                heappop(heads)
                continue
            yield start
            if shares:
                self._lone.note_start(state, job)
            heappop(entries)
            if entries:
                heapreplace(heads, (entries[0], kind))
            else:
                del self._waiting[kind]
                heappop(heads)

    def _kinds_to_try(self, state: PlacementState) -> Collection[Kind]:
        """Add the jobs that arrived; return the kinds of waiting jobs that may start now."""
        arrived = set()
        for job in state.arrived:
            kind, time = Kind.of(job), ticks(job.total_s)
            place = (time, 0) if self.order == "time" else (job.gang_gpus, time)
            heappush(self._waiting.setdefault(kind, []), (place, job.trace_index))
            arrived.add(kind)
        return self._waiting if state.ended or self._behind else arrived

    def _start(self, state: PlacementState, job: PlacementJob, kind: Kind) -> Start | None:
        """Return the start of a job, or None if it must wait."""
        gang, free = job.gang_gpus, state.gpus.free_gpus
        if free >= gang:
            ids = state.gpus.find(gang, self.placement)
            assert ids is not None
            return Start(job.trace_index, ids)
        if free + self._lone.all_gpus < gang:
            return None
        gaining = self._gaining(job, kind)
        if free + self._lone.gpus[gaining].sum() < gang:
            return None
        chosen: list[int] = []
        parts = [kind.batch_size]
        for partner, part in self.partners(state, job, kind, gaining):
            chosen += state.running[partner].gpu_ids[: gang - len(chosen)]
            parts.append(part)
            if len(chosen) == gang:
                break
        else:
            chosen += state.gpus.find(gang - len(chosen), self.placement) or ()
        return Start(job.trace_index, tuple(chosen), sub_batch=min(parts))

    def _gaining(self, job: PlacementJob, kind: Kind) -> Indices:
        """Return the places of the jobs that run alone for long enough that a waiting job gains beside them."""
        lone = self._lone
        least = self._settings.least_running(job, kind, lone.kinds, self._behind)
        return np.flatnonzero(lone.end_ticks >= np.rint((self._settings.state.time_s + least * job.total_s) / TICK_S))


@dataclass(kw_only=True, eq=False)
class SjfFfsPolicy(SjfSharingPolicy):
    """SJF-FFS: shortest job first, which shares the first GPUs whose memory suffices.

    The partners are taken in the order of their first GPUs. A job computes the largest of its sub-batches that fits.
    Parameters are those of `SjfSharingPolicy`.
    """

    name: str = field(default="sjf-ffs", init=False)

    def benefit_test(self) -> tuple[None, bool]:
        """Return that there is none."""
        return None, False

    def partners(
        self, state: PlacementState, job: PlacementJob, kind: Kind, gaining: Indices
    ) -> Iterator[tuple[int, int]]:
        """Yield the jobs by their first GPUs, with the largest sub-batch that fits."""
        lone = self._lone
        found = zip(lone.trace_indexes[gaining].tolist(), lone.kinds[gaining].tolist(), strict=True)
        for index, beside in sorted(found, key=lambda entry: state.running[entry[0]].gpu_ids[0]):
            yield index, self._settings.of(kind, beside)[0].sub_batch


@dataclass(kw_only=True, eq=False)
class SjfBsbfPolicy(SjfSharingPolicy):
    """SJF-BSBF: shortest job first, which shares where a pair of jobs gains by it, best pairs first.

    Further parameters are those of `SjfSharingPolicy`.

    Parameters
    ----------
    rule : {"pair", "sign"}
        Benefit test: the sum of the ends of the pair is no larger than if the jobs run one after the other; or the sign
        test of the paper, which is wrong for many pairs.
    count_waiting : bool
        Whether the benefit test counts the jobs that wait for the GPUs of the pair; with the rule "pair" alone.

    Notes
    -----
    After Algorithms 1 and 2 of Y. Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise
    Resource Sharing", IWQoS 2024. Each pair is judged by itself, also if the new job spans several running ones.
    """

    rule: str = "pair"
    count_waiting: bool = False
    name: str = field(default="sjf-bsbf", init=False)
    knows: ClassVar[frozenset[str]] = frozenset({"durations", "speeds", "interference"})

    def __post_init__(self) -> None:
        super().__post_init__()
        store_checked(self, as_flag, "count_waiting")
        if self.rule not in RULES:
            raise InvalidInput("rule", self.rule, f"must be one of {', '.join(RULES)}")
        if self.count_waiting and self.rule == "sign":
            raise InvalidInput("count_waiting", True, "the sign test counts no jobs that wait; take rule = 'pair'")

    def benefit_test(self) -> tuple[str, bool]:
        """Return the rule, and whether jobs that wait count."""
        return self.rule, self.count_waiting

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start the waiting jobs in order, alone or beside others."""
        if self.count_waiting:
            self._behind = max(0, len(state.waiting) - 1) / state.cluster.gpus
        return super().decide(state)

    def partners(
        self, state: PlacementState, job: PlacementJob, kind: Kind, gaining: Indices
    ) -> Iterator[tuple[int, int]]:
        """Yield the jobs by the least cost of the pair (`Setting.cost`) in ticks, with the sub-batch that costs it."""
        lone = self._lone
        by_kind: dict[int, list[tuple[int, int]]] = {}
        columns = (lone.end_ticks, lone.trace_indexes, lone.kinds)
        for end, index, beside in sorted(zip(*(column[gaining].tolist() for column in columns), strict=True)):
            by_kind.setdefault(beside, []).append((end, index))

        def head(beside: int, at: int) -> tuple[int, int, int, int, int]:
            end, index = by_kind[beside][at]
            running_s = end * TICK_S - state.time_s
            costs = (
                (ticks(each.cost(running_s, job.total_s, self._behind)), -each.sub_batch)
                for each in self._settings.of(kind, beside)
            )
            cost, part = min(costs)
            return cost, index, -part, beside, at + 1

        # The cost grows with the end of the running job: of each kind, the first to end comes first.
        heads = [head(beside, 0) for beside in by_kind]
        heapify(heads)
        while heads:
            _, index, part, beside, following = heads[0]
            yield index, part
            if following < len(by_kind[beside]):
                heapreplace(heads, head(beside, following))
            else:
                heappop(heads)
