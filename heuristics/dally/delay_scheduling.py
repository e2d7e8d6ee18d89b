"""Dally: offers in order of network sensitivity, delay scheduling, and leases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import ClassVar, NamedTuple

from ...formulations.checks import as_flag, as_real, store_checked
from ...formulations.search.delay_timers import TimerPair
from ...simulation.placement.actions import Action, Start, Stop, Wake
from ...simulation.placement.compiled.rule import DelayRule
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.occupancy import Occupancy
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks
from .auto_tuner import MACHINE, RACK

_HOUR_S = 3600.0


class Turn(NamedTuple):
    """Place of a job in the order of offers: network sensitivity, GPUs held, latest change of GPUs, trace index.

    The sensitivity and the time are in ticks.
    """

    sensitivity: int
    held_gpus: int
    since: int
    trace_index: int


def network_sensitivity(job: PlacementJob) -> float:
    """Return the share of a job's run time that it spent computing; 0 if it never ran.

    It is ``(done / total) / (run time / ideal run time)`` with the ideal run time ``t_comp total``: the number of
    iterations cancels out.
    """
    attained_s = job.attained_s
    return job.computed_s / attained_s if attained_s > 0.0 else 0.0


@dataclass(kw_only=True, eq=False)
class DelayPolicy(ABC):
    """Delay scheduling (Dally, Algorithm 1): a job waits for a tight placement, and accepts a wider one after timers.

    A subclass states the timers.

    Parameters
    ----------
    lease_s : float
        Seconds after which a job returns its GPUs to be offered anew, at least two ticks; infinity: at its end alone.
    offer_s : float, optional
        Seconds between offers; leases end at offers. By default GPUs are offered at events: arrivals, ends of jobs and
        leases, and when a timer runs out.
    keep : bool
        Whether a job whose lease ends keeps its GPUs if no job before it in the order takes one of them, unless it
        accepts a tighter placement. False: it has lost them, and accepts an offer as any waiting job does.

    Notes
    -----
    docs/dally.md states the rules. Network sensitivity and times count to the nearest 2^-20.
    """

    lease_s: float = _HOUR_S
    offer_s: float | None = None
    keep: bool = True
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if self.lease_s != math.inf:
            store_checked(self, as_real, "lease_s", minimum=2 * TICK_S)
        if self.offer_s is not None:
            store_checked(self, as_real, "offer_s", minimum=2 * TICK_S)
        store_checked(self, as_flag, "keep")

    @abstractmethod
    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return the timer of the machine (tier 0) or the rack (1) for jobs that ask for so many GPUs."""

    def note_wait(self, tier: int, demand: int, now_s: float, wait_s: float) -> None:  # noqa: B027 - fixed timers ignore it
        """Note the wait of a job that was placed on one machine (tier 0) or on one rack (1)."""

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow; a subclass that changes the methods changes it too."""
        return DelayRule(
            lease_s=self.lease_s, offer_s=math.inf if self.offer_s is None else self.offer_s, keep=self.keep
        )

    # -- Calls ---------------------------------------------------------------------------------------------------------

    def clear(self, state: PlacementState) -> None:
        """Forget the jobs of an earlier run."""
        # GPUs as they are after the jobs whose leases end have returned theirs.
        self._gpus = Occupancy(state.cluster)
        # By demand, the tightest placement on the GPUs that are free now, and its tier.
        self._tightest: dict[int, tuple[tuple[int, ...], int]] = {}
        self._machine_gpus = state.cluster.gpus_per_machine or state.cluster.gpus
        self._rack_gpus = state.cluster.gpus // (state.cluster.racks or 1)
        self._held: dict[int, tuple[int, ...]] = {}
        self._since_s: dict[int, float] = {}  # latest time at which a job arrived, or got or lost GPUs
        self._waiting: list[Turn] = []
        self._wake_s = math.inf

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Offer the free GPUs to the waiting jobs and to those whose leases end, in order."""
        if not state.step:
            self.clear(state)
        for job in state.ended:
            self._free(job.trace_index, self._held.pop(job.trace_index), state.time_s)
            del self._since_s[job.trace_index]
        for job in state.arrived:
            self._since_s[job.trace_index] = job.arrival_s
            self._wait(job)
        if self.offer_s is None or state.expired or self._is_offer(state.time_s):
            yield from self._offer(state)
        yield from self._wake(state)

    def _free(self, index: int, gpu_ids: tuple[int, ...], now_s: float) -> None:
        self._gpus.remove(index, gpu_ids, now_s)
        self._tightest.clear()

    def _find(self, demand: int) -> tuple[tuple[int, ...], int]:
        """Return the tightest placement on free GPUs, and its tier; there are enough."""
        if demand not in self._tightest:
            gpu_ids = self._gpus.find(demand)
            assert gpu_ids is not None
            self._tightest[demand] = gpu_ids, self._gpus.span(gpu_ids)[1]
        return self._tightest[demand]

    def _wait(self, job: PlacementJob) -> None:
        """Insert a job into the order of the waiting ones."""
        index = job.trace_index
        insort(self._waiting, Turn(ticks(network_sensitivity(job)), 0, ticks(self._since_s[index]), index))

    def _is_offer(self, now_s: float) -> bool:
        assert self.offer_s is not None
        return abs(now_s - round(now_s / self.offer_s) * self.offer_s) <= TICK_S

    def _offer(self, state: PlacementState) -> Iterator[Action]:
        now_s, expired = state.time_s, {job.trace_index: job for job in state.expired}
        turns = []
        for index, job in expired.items():
            self._free(index, self._held[index], now_s)
            turns.append(Turn(ticks(network_sensitivity(job)), job.gang_gpus, ticks(self._since_s[index]), index))
        accepted: dict[int, tuple[int, ...]] = {}
        for turn in merge(self._waiting, sorted(turns)):
            if not self._gpus.free_gpus:
                break
            job = state.jobs[turn.trace_index]
            gpu_ids = self._answer(job, job.trace_index in expired, now_s)
            if gpu_ids is not None:
                accepted[job.trace_index] = gpu_ids
                self._gpus.add(job.trace_index, gpu_ids, now_s)
                self._tightest.clear()
        self._waiting = [turn for turn in self._waiting if turn.trace_index not in accepted]
        # The GPUs that one job gives up may be another one's: stops come first.
        for index, job in expired.items():
            if accepted.get(index) != self._held[index]:
                yield Stop(index)
                del self._held[index]
                self._since_s[index] = now_s
                if index not in accepted:
                    self._wait(job)
        lease_s = self._lease_s(now_s)
        for index, gpu_ids in accepted.items():
            if index not in self._held:
                self._held[index], self._since_s[index] = gpu_ids, now_s
            yield Start(index, gpu_ids, lease_s=lease_s)

    def _answer(self, job: PlacementJob, expired: bool, now_s: float) -> tuple[int, ...] | None:
        """Return the GPUs that a job accepts; None if it waits."""
        demand, gpus = job.gang_gpus, self._gpus
        if demand > gpus.free_gpus:
            return None
        gpu_ids, tier = self._find(demand)
        if expired and self.keep:
            own = self._held[job.trace_index]
            if not any(gpus.jobs_on[gpu] for gpu in own):
                return gpu_ids if tier < gpus.span(own)[1] else own
        # The wait of a job that has just lost its GPUs begins now.
        wait_s = 0.0 if expired else now_s - self._since_s[job.trace_index]
        if tier > MACHINE and tier > self._widest_tier(demand, wait_s, now_s):
            return None
        if tier <= RACK:
            self.note_wait(tier, demand, now_s, wait_s)
        return gpu_ids

    def _widest_tier(self, demand: int, wait_s: float, now_s: float) -> int:
        """Return the widest tier that a job accepts after this wait."""
        machine_s, rack_s = self._delays(demand, now_s)
        waited_s = wait_s + TICK_S
        return 2 if waited_s >= max(machine_s, rack_s) else 1 if waited_s >= machine_s else 0

    def _delays(self, demand: int, now_s: float) -> TimerPair:
        """Return the timers of a demand; those of one wider than a machine or a rack are 0."""
        if demand > self._rack_gpus:
            return TimerPair(0.0, 0.0)
        machine_s = 0.0 if demand > self._machine_gpus else self.timer_s(MACHINE, demand, now_s)
        return TimerPair(machine_s, self.timer_s(RACK, demand, now_s))

    # -- Times ---------------------------------------------------------------------------------------------------------

    def _lease_s(self, now_s: float) -> float:
        """Return the length of a lease, up to an offer."""
        if self.offer_s is None or self.lease_s == math.inf:
            return self.lease_s
        return math.ceil((now_s + self.lease_s - TICK_S) / self.offer_s) * self.offer_s - now_s

    def _wake(self, state: PlacementState) -> Iterator[Action]:
        """Ask for a call at the next offer, or when a job's timer lets it accept GPUs that are free."""
        now_s = state.time_s
        if self._wake_s <= now_s + TICK_S:
            self._wake_s = math.inf
        due_s = self._next_s(state)
        if due_s < self._wake_s:
            # Rounding could put it just within the tick in which the engine refuses it.
            self._wake_s = max(due_s, now_s + 2 * TICK_S)
            yield Wake(self._wake_s)

    def _next_s(self, state: PlacementState) -> float:
        now_s, free = state.time_s, self._gpus.free_gpus
        if not self._waiting:
            return math.inf
        if self.offer_s is not None:
            offers = now_s / self.offer_s
            return ((round(offers) if self._is_offer(now_s) else math.floor(offers)) + 1) * self.offer_s
        found = math.inf
        delay_s: dict[int, float] = {}  # by demand, the timer of the tightest free placement
        for turn in self._waiting if free else ():
            demand = state.jobs[turn.trace_index].gang_gpus
            if demand > free:
                continue
            if demand not in delay_s:
                timers = self._delays(demand, now_s)
                delay_s[demand] = timers.machine_s if self._find(demand)[1] == RACK else max(timers)
            found = min(found, self._since_s[turn.trace_index] + delay_s[demand])
        return found
