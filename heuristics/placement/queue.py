"""Queue policies of the placement engine: FIFO, shortest job first, and shortest remaining time first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ...formulations.checks import as_flag, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Start, Stop
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.occupancy import PLACEMENTS
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import ticks


def check_placement(rule: str) -> None:
    """Raise InvalidInput unless this is the name of a placement rule."""
    if rule not in PLACEMENTS:
        raise InvalidInput("placement", rule, f"must be one of {', '.join(PLACEMENTS)}")


@dataclass(kw_only=True, eq=False)
class FifoPolicy:
    """First come, first served, without preemption.

    Parameters
    ----------
    backfill : bool
        Whether later jobs may start while an earlier one does not fit. They are not preempted, so a wide job may wait
        longer for it.
    placement : {"consolidated", "first_fit", "least_loaded"}
        Rule that chooses the GPUs; see `Occupancy.find`.

    Notes
    -----
    Jobs that arrive at the same time follow the order of the trace.
    """

    backfill: bool = False
    placement: str = "consolidated"
    name: str = field(default="fifo", init=False)
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        store_checked(self, as_flag, "backfill")
        check_placement(self.placement)
        # Waiting jobs as (key, trace index), in order.
        self._queue: list[tuple[int, int]] = []

    def key(self, job: PlacementJob) -> int:
        """Return the place of a job in the queue; ties go to the lower trace index."""
        return ticks(job.arrival_s)

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Start the waiting jobs in order, as far as they fit."""
        if state.step == 0:
            self._queue = []
        for job in state.arrived:
            insort(self._queue, (self.key(job), job.trace_index))
        kept: list[tuple[int, int]] = []
        for place, entry in enumerate(self._queue):
            free = state.gpus.free_gpus
            job = state.waiting[entry[1]]
            if free >= job.gang_gpus:
                ids = state.gpus.find(job.gang_gpus, self.placement)
                assert ids is not None
                yield Start(job.trace_index, ids)
                continue
            kept.append(entry)
            if not free or not self.backfill:
                kept += self._queue[place + 1 :]
                break
        self._queue = kept


@dataclass(kw_only=True, eq=False)
class SjfPolicy(FifoPolicy):
    """Shortest job first, without preemption: waiting jobs in order of their exclusive times.

    Parameters and notes are those of `FifoPolicy`. Durations count to the nearest 2^-20 s.
    """

    name: str = field(default="sjf", init=False)
    knows: ClassVar[frozenset[str]] = frozenset({"durations"})

    def key(self, job: PlacementJob) -> int:
        """Return the exclusive time."""
        return ticks(job.total_s)


@dataclass(kw_only=True, eq=False)
class SrtfPolicy:
    """Shortest remaining time first, with preemption.

    At each call the jobs are taken by remaining exclusive time, each that fits the GPUs not taken yet. The jobs taken
    run, on their present GPUs if they ran before; the others are preempted.

    Parameters
    ----------
    placement : {"consolidated", "first_fit", "least_loaded"}
        Rule that chooses the GPUs; see `Occupancy.find`.

    Notes
    -----
    Remaining times count to the nearest 2^-20 s; ties go to running jobs, and then to the lower trace index.
    """

    placement: str = "consolidated"
    name: str = field(default="srtf", init=False)
    engine: ClassVar[str] = "placement"
    knows: ClassVar[frozenset[str]] = frozenset({"durations"})

    def __post_init__(self) -> None:
        check_placement(self.placement)
        # Waiting jobs as (remaining time, trace index), in order: the time of a waiting job does not change.
        self._waiting: list[tuple[int, int]] = []

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Preempt the jobs that are not taken, then start those that are."""
        if state.step == 0:
            self._waiting = []
        for job in state.arrived:
            insort(self._waiting, (ticks(job.remaining_s), job.trace_index))
        going = [(ticks(job.remaining_s), 0, index) for index, job in state.running.items()]
        left, chosen = state.cluster.gpus, []
        for entry in _merged(sorted(going), self._waiting):
            if not left:
                break
            gang = state.jobs[entry[2]].gang_gpus
            if gang <= left:
                left -= gang
                chosen.append(entry)
        taken = {index for *_, index in chosen}
        for remaining, _, index in going:
            if index not in taken:
                yield Stop(index)
                insort(self._waiting, (remaining, index))
        for remaining, waits, index in chosen:
            if waits:
                del self._waiting[bisect_left(self._waiting, (remaining, index))]
                ids = state.gpus.find(state.jobs[index].gang_gpus, self.placement)
                assert ids is not None
                yield Start(index, ids)


def _merged(going: list[tuple[int, int, int]], waiting: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield running and waiting jobs by remaining time as (time, whether it waits, trace index)."""
    at, end = 0, len(waiting)
    for entry in going:
        while at < end and waiting[at][0] < entry[0]:
            yield waiting[at][0], 1, waiting[at][1]
            at += 1
        yield entry
    for place in range(at, end):
        yield waiting[place][0], 1, waiting[place][1]
