"""Queue policies of the placement engine: FIFO, shortest job first, and shortest remaining time first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import ClassVar

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_flag, store_checked
from ...formulations.errors import InvalidInput
from ...simulation.placement.actions import Action, Start, Stop
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.occupancy import PLACEMENTS
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import TICK_S, ticks


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
        self._clear()

    def _clear(self) -> None:
        """Forget the jobs of an earlier run."""
        # Waiting jobs as (remaining ticks, trace index), in order, by gang: the time of a waiting job does not change.
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        # Running jobs by trace index, in the order of the last call, and the rest in the order of their starts.
        self._running = np.empty(0, dtype=np.int64)
        # By trace index, at a job's latest start: its remainder, its gang, and the number of starts before.
        self._columns = np.zeros((6, 1))
        self._starts = 0

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Preempt the jobs that are not taken, then start those that are."""
        if state.step == 0:
            self._clear()
        for job in state.ended:
            self._running = self._running[self._running != job.trace_index]
        for job in state.arrived:
            insort(self._waiting.setdefault(job.gang_gpus, []), (ticks(job.remaining_s), job.trace_index))
        # The first waiting job of each gang, with its place among them.
        heads = [(entries[0], 0, gang) for gang, entries in self._waiting.items() if entries]
        if not heads:
            return
        heapify(heads)
        remaining, gang_gpus = self._in_order(state.time_s)
        stopped, started = _choose(remaining, gang_gpus, heads, self._waiting, state.cluster.gpus)
        if stopped:
            preempted = {int(self._running[place]): int(remaining[place]) for place in stopped}
            self._running = np.array([index for index in self._running.tolist() if index not in preempted], np.int64)
            for index in sorted(preempted, key=self._columns[5].__getitem__):  # in the order of their starts
                yield Stop(index)
                insort(self._waiting[state.jobs[index].gang_gpus], (preempted[index], index))
        for entry, gang in started:
            index = entry[1]
            del self._waiting[gang][bisect_left(self._waiting[gang], entry)]
            ids = state.gpus.find(gang, self.placement)
            assert ids is not None
            yield Start(index, ids)
            self._note_start(state.jobs[index])
        if started:
            self._running = np.concatenate((self._running, [index for (_, index), _ in started]))

    def _in_order(self, time_s: float) -> tuple[Floats, Floats]:
        """Order the running jobs, and return their remaining times in ticks and their gangs."""
        work, from_s, rate, exclusive_rate, gang_gpus, _ = self._columns.take(self._running, axis=1)
        left = np.maximum(0.0, work - rate * np.maximum(0.0, time_s - from_s))
        remaining = np.rint(left / exclusive_rate / TICK_S)
        # Fast, since the jobs are almost in order.
        order = remaining.argsort(kind="stable")
        ordered = remaining[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((self._running, remaining))
        self._running = self._running[order]
        return ordered, gang_gpus[order]

    def _note_start(self, job: PlacementJob) -> None:
        """Note the remainder of a job that has started."""
        missing = job.trace_index + 1 - self._columns.shape[1]
        if missing > 0:
            self._columns = np.hstack((self._columns, np.zeros((6, missing + job.trace_index))))
        self._columns[:, job.trace_index] = (*job.remainder, job.gang_gpus, self._starts)
        self._starts += 1


def _choose(
    remaining: Floats,
    gang_gpus: Floats,
    heads: list[tuple[tuple[int, int], int, int]],
    waiting: Mapping[int, Sequence[tuple[int, int]]],
    gpus: int,
) -> tuple[list[int], list[tuple[tuple[int, int], int]]]:
    """Return the places of the running jobs that are not taken, and the waiting jobs that are, with their gangs.

    The running jobs are in order by their remaining times; `heads` is a heap of the first waiting jobs of each gang.
    """
    held = gang_gpus.cumsum()  # by the running jobs up to each place
    most = gpus  # GPUs for running jobs: without those of the waiting jobs taken, with those of the jobs stopped
    stopped: list[int] = []
    started: list[tuple[tuple[int, int], int]] = []
    while True:
        # The running jobs before `until` come before the next waiting job; `too_many` is the first that does not fit.
        until = int(remaining.searchsorted(heads[0][0][0], side="right")) if heads else len(remaining)
        before = held[until - 1] if until else 0
        if before > most:
            too_many = int(held.searchsorted(most, side="right"))
            stopped.append(too_many)
            most += int(gang_gpus[too_many])
            continue
        if not heads:
            return stopped, started
        entry, place, gang = heads[0]
        if gang > most - before:
            # The GPUs left only become fewer: no later job of this gang fits.
            heappop(heads)
            continue
        started.append((entry, gang))
        most -= gang
        if place + 1 < len(waiting[gang]):
            heapreplace(heads, (waiting[gang][place + 1], place + 1, gang))
        else:
            heappop(heads)
