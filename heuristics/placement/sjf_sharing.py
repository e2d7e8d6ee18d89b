"""Shortest job first, with GPUs shared in pairs: SJF-BSBF shares where it gains, SJF-FFS wherever memory suffices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar

from ...formulations.checks import as_flag, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Start
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_table import TABLE_GPU_GB
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks
from .pair_settings import RULES, Kind, PairSettings, Setting
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

    def _clear(self, state: PlacementState) -> None:
        """Forget the jobs of an earlier run."""
        self._settings = PairSettings(state, self.gpu_memory_gb, self.benefit_test())
        # Waiting jobs as (place in the order, trace index), a heap for each kind.
        self._waiting: dict[Kind, list[tuple[tuple[int, int], int]]] = {}
        # Running jobs that share no GPU as (place among the partners, trace index), in order, by kind; and the jobs
        # that share GPUs with each of the others.
        self._alone: dict[Kind, list[tuple[int, int]]] = {}
        self._beside: dict[int, set[int]] = {}
        self._entries: dict[int, tuple[Kind, tuple[int, int]]] = {}

    @abstractmethod
    def benefit_test(self) -> str | None:
        """Return the rule of `PairSettings`."""

    @abstractmethod
    def partner_place(self, job: PlacementJob) -> int:
        """Return the place of a job that runs alone among the partners of its kind."""

    @abstractmethod
    def first_partner(self, job: PlacementJob, kind: Kind, beside: Kind) -> int:
        """Return how many of the jobs of a kind that run alone come before the first with which a job may share."""

    @abstractmethod
    def rank(self, job: PlacementJob, place: int, settings: Iterable[Setting]) -> tuple[int, int]:
        """Return the rank of a partner at this place among all partners, and the sub-batch of the job beside it."""

    def begin_call(self, state: PlacementState) -> None:
        """Note the time and what else counts in this call."""
        self._now_s = state.time_s

    def tries_again(self, state: PlacementState) -> bool:
        """Return whether jobs that could not start in the last call may start in this one."""
        return bool(state.ended)

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start the waiting jobs in order, alone or beside others."""
        if not state.step:
            self._clear(state)
        self.begin_call(state)
        for job in state.ended:
            self._leave(job)
        for job in state.ended:
            self._rejoin(state, job)
        arrived = set[Kind]()
        for job in state.arrived:
            kind, time = Kind.of(job), ticks(job.total_s)
            place = (time, 0) if self.order == "time" else (job.gang_gpus, time)
            heappush(self._waiting.setdefault(kind, []), (place, job.trace_index))
            arrived.add(kind)
        # The first waiting job of each kind. While jobs only start, a job finds ever fewer GPUs, and the later ones of
        # its kind no more than it: once it cannot start, they cannot either, until a job ends.
        tried = self._waiting if self.tries_again(state) else arrived
        heads = [(self._waiting[kind][0], kind) for kind in tried if self._waiting[kind]]
        heapify(heads)
        while heads:
            (_, index), kind = heads[0]
            job, entries = state.waiting[index], self._waiting[kind]
            start = self._start(state, job, kind)
            if start is None:
                heappop(heads)
                continue
            yield start
            self._note_start(state, job)
            heappop(entries)
            if entries:
                heapreplace(heads, (entries[0], kind))
            else:
                heappop(heads)

    def _start(self, state: PlacementState, job: PlacementJob, kind: Kind) -> Start | None:
        """Return the start of a job, or None if it must wait."""
        gang, free = job.gang_gpus, state.gpus.free_gpus
        if free >= gang:
            ids = state.gpus.find(gang, self.placement)
            assert ids is not None
            return Start(job.trace_index, ids)
        if state.jobs_per_gpu == 1:
            return None
        firsts = {beside: self.first_partner(job, kind, beside) for beside in self._alone}
        usable = sum((len(self._alone[beside]) - first) * beside.gpus for beside, first in firsts.items())
        if free + usable < gang:
            return None
        chosen: list[int] = []
        parts = [kind.batch_size]
        for partner, part in self._partners(job, kind, firsts):
            chosen += state.running[partner].gpu_ids[: gang - len(chosen)]
            parts.append(part)
            if len(chosen) == gang:
                break
        else:
            chosen += state.gpus.find(gang - len(chosen), self.placement) or ()
        return Start(job.trace_index, tuple(chosen), sub_batch=min(parts))

    def _partners(self, job: PlacementJob, kind: Kind, firsts: dict[Kind, int]) -> Iterator[tuple[int, int]]:
        """Yield the trace indexes of the partners, by rank, with the sub-batches beside them; ties go to the first."""

        def head(beside: Kind, at: int) -> tuple[int, int, int, Kind, int]:
            place, index = self._alone[beside][at]
            settings = self._settings.of((kind, job.trace_index), (beside, index))
            rank, part = self.rank(job, place, settings)
            return rank, index, part, beside, at

        heads = [head(beside, first) for beside, first in firsts.items() if first < len(self._alone[beside])]
        heapify(heads)
        while heads:
            _, index, part, beside, at = heads[0]
            yield index, part
            if at + 1 < len(self._alone[beside]):
                heapreplace(heads, head(beside, at + 1))
            else:
                heappop(heads)

    # -- Jobs that run alone -------------------------------------------------------------------------------------------

    def _note_start(self, state: PlacementState, job: PlacementJob) -> None:
        """Note whether a started job runs alone; those beside it do so no more."""
        if state.jobs_per_gpu == 1:
            return
        partners = state.sharing(job)
        if not partners:
            self._add(job)
        for index in partners:
            self._remove(index)
            self._beside[index] = {job.trace_index}
        self._beside[job.trace_index] = set(partners)

    def _leave(self, job: PlacementJob) -> None:
        """Remove a job that has ended from those that run alone."""
        if job.trace_index in self._entries:
            self._remove(job.trace_index)

    def _rejoin(self, state: PlacementState, job: PlacementJob) -> None:
        """Add the running jobs beside which only this job ran, which has ended, to those that run alone."""
        for index in self._beside.pop(job.trace_index, ()):
            others = self._beside.get(index)
            if others is not None:
                others.discard(job.trace_index)
                if not others and index in state.running:
                    self._add(state.running[index])

    def _add(self, job: PlacementJob) -> None:
        kind, entry = Kind.of(job), (self.partner_place(job), job.trace_index)
        self._entries[job.trace_index] = kind, entry
        insort(self._alone.setdefault(kind, []), entry)

    def _remove(self, index: int) -> None:
        kind, entry = self._entries.pop(index)
        listed = self._alone[kind]
        del listed[bisect_left(listed, entry)]
        if not listed:
            del self._alone[kind]


@dataclass(kw_only=True, eq=False)
class SjfFfsPolicy(SjfSharingPolicy):
    """SJF-FFS: shortest job first, which shares the first GPUs whose memory suffices.

    The partners are taken in the order of their first GPUs. A job computes the largest of its sub-batches that fits.
    Parameters are those of `SjfSharingPolicy`.
    """

    name: str = field(default="sjf-ffs", init=False)

    def benefit_test(self) -> None:
        """Return that there is none."""

    def partner_place(self, job: PlacementJob) -> int:
        """Return its first GPU."""
        return job.gpu_ids[0]

    def first_partner(self, job: PlacementJob, kind: Kind, beside: Kind) -> int:
        """Return 0 if the memory suffices."""
        entries = self._alone[beside]
        return 0 if self._settings.of((kind, job.trace_index), (beside, entries[0][1])) else len(entries)

    def rank(self, job: PlacementJob, place: int, settings: Iterable[Setting]) -> tuple[int, int]:
        """Return the first GPU, and the largest sub-batch."""
        return place, next(iter(settings)).sub_batch


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

    def benefit_test(self) -> str:
        """Return the rule."""
        return self.rule

    def begin_call(self, state: PlacementState) -> None:
        """Note the time, and the jobs that wait per GPU of the cluster, without one."""
        self._now_s = state.time_s
        self._per_gpu = max(0, len(state.waiting) - 1) / state.cluster.gpus if self.count_waiting else 0.0

    def tries_again(self, state: PlacementState) -> bool:
        """Return whether a job ended, or the number of jobs that wait counts."""
        return self.count_waiting or bool(state.ended)

    def partner_place(self, job: PlacementJob) -> int:
        """Return the end of a job if it goes on alone, in ticks."""
        left = job.remainder
        return ticks(left.from_s + left.work / left.rate)

    def first_partner(self, job: PlacementJob, kind: Kind, beside: Kind) -> int:
        """Return the place of the first job that runs for long enough."""
        entries, behind = self._alone[beside], self._per_gpu * job.gang_gpus
        least = self._settings.gaining_from((kind, job.trace_index), (beside, entries[0][1]), behind)
        return bisect_left(entries, (self._gaining_place(least, job), -1))

    def rank(self, job: PlacementJob, place: int, settings: Iterable[Setting]) -> tuple[int, int]:
        """Return the sum of the ends of the pair at its best gaining sub-batch, in ticks, and this sub-batch."""
        running_s, waiting_s, behind = place * TICK_S - self._now_s, job.total_s, self._per_gpu * job.gang_gpus
        costs = (
            (ticks(each.cost(running_s, waiting_s, behind)), -each.sub_batch)
            for each in settings
            if self._gaining_place(self._settings.least_running(each, behind), job) <= place
        )
        cost, part = min(costs)
        return cost, -part

    def _gaining_place(self, least: float, job: PlacementJob) -> float:
        """Return the place from which partners run for so many times as long as the job."""
        if least in (0.0, math.inf):
            return least
        return ticks(self._now_s + least * job.total_s)
