"""Dally: offers in order of network sensitivity, delay scheduling, and leases."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import insort
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from heapq import merge
from os import PathLike
from typing import Any, ClassVar, NamedTuple

from ...formulations.checks import as_flag, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.search.delay_timers import DelayTimers, TimerPair, as_delay_timers, as_timer
from ...simulation.placement.actions import Action, Start, Stop, Wake
from ...simulation.placement.compiled.rule import DelayRule, TunerRule
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.occupancy import Occupancy
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks
from .auto_tuner import MACHINE, RACK, AutoTuner, TunerSettings

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
class DelayPolicy:
    """Delay scheduling (Dally, Algorithm 1): a job waits for a tight placement, and accepts a wider one after timers.

    A subclass states the timers.

    Parameters
    ----------
    lease_s : float
        Seconds after which a job returns its GPUs to be offered anew, positive.
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
        store_checked(self, as_real, "lease_s", above=TICK_S)
        if self.offer_s is not None:
            store_checked(self, as_real, "offer_s", above=TICK_S)
        store_checked(self, as_flag, "keep")

    @abstractmethod
    def timer_pair(self, demand: int, now_s: float) -> TimerPair:
        """Return the timers of jobs that ask for so many GPUs."""

    def note_wait(self, tier: int, demand: int, now_s: float, wait_s: float) -> None:
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
            self._gpus.remove(job.trace_index, self._held.pop(job.trace_index), state.time_s)
            del self._since_s[job.trace_index]
        for job in state.arrived:
            self._since_s[job.trace_index] = job.arrival_s
            self._wait(job)
        if self.offer_s is None or state.expired or self._is_offer(state.time_s):
            yield from self._offer(state)
        yield from self._wake(state)

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
            self._gpus.remove(index, self._held[index], now_s)
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
        gpu_ids = gpus.find(demand)
        if gpu_ids is None:
            return None
        tier = gpus.span(gpu_ids)[1]
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
        timers = self.timer_pair(demand, now_s)
        return TimerPair(0.0, timers.rack_s) if demand > self._machine_gpus else timers

    # -- Times ---------------------------------------------------------------------------------------------------------

    def _lease_s(self, now_s: float) -> float:
        """Return the length of a lease, up to an offer."""
        if self.offer_s is None:
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
            self._wake_s = max(due_s, now_s + 1.001 * TICK_S)
            yield Wake(self._wake_s)

    def _next_s(self, state: PlacementState) -> float:
        now_s, free = state.time_s, self._gpus.free_gpus
        if not self._waiting:
            return math.inf
        if self.offer_s is not None:
            return (math.floor((now_s + TICK_S) / self.offer_s) + 1) * self.offer_s
        found = math.inf
        delay_s: dict[int, float] = {}  # by demand, the timer of the tightest free placement
        for turn in self._waiting if free else ():
            demand = state.jobs[turn.trace_index].gang_gpus
            if demand > free:
                continue
            if demand not in delay_s:
                gpu_ids, timers = self._gpus.find(demand), self._delays(demand, now_s)
                assert gpu_ids is not None
                delay_s[demand] = timers.machine_s if self._gpus.span(gpu_ids)[1] == RACK else max(timers)
            found = min(found, self._since_s[turn.trace_index] + delay_s[demand])
        return found


@dataclass(kw_only=True, eq=False)
class DallyPolicy(DelayPolicy):
    """Dally: delay scheduling with timers that the auto-tuner derives from the waits of placed jobs.

    Parameters
    ----------
    preset : {"paper", "released"}
        Settings of the auto-tuner: `TunerSettings.paper` or `TunerSettings.released` for this lease.
    ddof, floor_s, cap_s, least_wait_s, history_s, empty_s : optional
        Settings in place of the preset's; see `TunerSettings`.

    Other parameters are those of `DelayPolicy`.
    """

    preset: str = "paper"
    ddof: int | None = None
    floor_s: tuple[float, float] | None = None
    cap_s: tuple[float, float] | None = None
    least_wait_s: float | None = None
    history_s: float | None = None
    empty_s: tuple[float, float] | None = None
    name: ClassVar[str] = "dally"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings = TunerSettings.preset(
            self.preset,
            lease_s=self.lease_s,
            **{each.name: getattr(self, each.name) for each in fields(TunerSettings)},
        )
        self._tuner = AutoTuner(self.settings)

    def clear(self, state: PlacementState) -> None:
        """Forget the jobs of an earlier run."""
        super().clear(state)
        self._tuner = AutoTuner(self.settings)

    def timer_pair(self, demand: int, now_s: float) -> TimerPair:
        """Return the timers of the auto-tuner."""
        return self._tuner.timers(demand, now_s)

    def note_wait(self, tier: int, demand: int, now_s: float, wait_s: float) -> None:
        """Record the wait."""
        self._tuner.record(tier, demand, now_s, wait_s)

    @property
    def timer_log(self) -> list[tuple[float, int, int, float]]:
        """Changes of timers in the latest run: time, tier, demand and timer, times in seconds."""
        return self._tuner.log

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        return replace(super().rule, tuner=TunerRule(**asdict(self.settings)))


@dataclass(kw_only=True, eq=False)
class DallyManualPolicy(DelayPolicy):
    """Delay scheduling with fixed timers.

    Parameters
    ----------
    timers : DelayTimers, path or str, optional
        Timers, or the file that holds them; see `DelayTimers.read`. By default 12 h and 24 h for all demands.
    machine_s, rack_s : float, optional
        In place of these, timers of all demands; infinity is allowed.

    Other parameters are those of `DelayPolicy`.
    """

    timers: DelayTimers | str | PathLike[str] | None = None
    machine_s: float | None = None
    rack_s: float | None = None
    name: ClassVar[str] = "dally-manual"

    def __post_init__(self) -> None:
        super().__post_init__()
        given: dict[str, Any] = {
            name: as_timer(name, value) for name in TimerPair._fields if (value := getattr(self, name)) is not None
        }
        if given and self.timers is not None:
            name, value = next(iter(given.items()))
            raise InvalidInput(name, value, "leave it out with timers")
        chosen = DelayTimers.manual() if self.timers is None else as_delay_timers("timers", self.timers)
        self._timers = replace(chosen, **given)

    def timer_pair(self, demand: int, now_s: float) -> TimerPair:
        """Return the fixed timers."""
        return self._timers.of(demand)

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        fixed = {each.name: getattr(self._timers, each.name) for each in fields(DelayTimers)}
        return replace(super().rule, **fixed)


@dataclass(kw_only=True, eq=False)
class DallyNoWaitPolicy(DelayPolicy):
    """Delay scheduling with timers of 0: each job accepts the first GPUs that suffice. Parameters: `DelayPolicy`."""

    name: ClassVar[str] = "dally-nowait"

    def timer_pair(self, demand: int, now_s: float) -> TimerPair:
        """Return timers of 0."""
        return TimerPair(0.0, 0.0)


@dataclass(kw_only=True, eq=False)
class DallyConsolidatedPolicy(DelayPolicy):
    """Delay scheduling with infinite timers: each job waits for its tightest placement. Parameters: `DelayPolicy`."""

    name: ClassVar[str] = "dally-consolidated"

    def timer_pair(self, demand: int, now_s: float) -> TimerPair:
        """Return infinite timers."""
        return TimerPair(math.inf, math.inf)

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        return replace(super().rule, machine_s=math.inf, rack_s=math.inf)
