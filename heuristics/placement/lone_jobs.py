"""Running jobs that share no GPU, in arrays that follow the starts and ends of jobs."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Indices
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.ticks import ticks
from .pair_settings import PairSettings


class LoneJobs:
    """Running jobs that share no GPU at the moment, in no order.

    Parameters
    ----------
    settings : PairSettings
        For the numbers of kinds.

    Attributes
    ----------
    all_gpus : int
        GPUs of all these jobs.
    """

    def __init__(self, settings: PairSettings) -> None:
        self._settings, self.all_gpus = settings, 0
        # By place: end in ticks, number of the kind, trace index and GPUs.
        self._columns = np.zeros((4, 16), dtype=np.int64)
        self._places: dict[int, int] = {}
        # The jobs that share GPUs with each running job.
        self._beside: dict[int, set[int]] = {}

    @property
    def end_ticks(self) -> Indices:
        """End of each job if it goes on alone, in ticks, shape (R,)."""
        return self._columns[0, : len(self._places)]

    @property
    def kinds(self) -> Indices:
        """Number of each job's kind, shape (R,)."""
        return self._columns[1, : len(self._places)]

    @property
    def gpus(self) -> Indices:
        """GPUs of each job, shape (R,)."""
        return self._columns[3, : len(self._places)]

    @property
    def trace_indexes(self) -> Indices:
        """Trace index of each job, shape (R,)."""
        return self._columns[2, : len(self._places)]

    def note_start(self, state: PlacementState, job: PlacementJob) -> None:
        """Note that a job has started; those beside it run alone no more."""
        partners = state.sharing(job)
        self._beside[job.trace_index] = set(partners)
        if not partners:
            self._add(job)
        for index in partners:
            self._remove(index)
            self._beside[index] = {job.trace_index}

    def note_ends(self, state: PlacementState) -> None:
        """Note the jobs that have ended; those that shared GPUs with them alone run alone from now on."""
        for job in state.ended:
            if job.trace_index in self._places:
                self._remove(job.trace_index)
            for index in self._beside.pop(job.trace_index):
                others = self._beside.get(index, set())
                others.discard(job.trace_index)
                if not others and index in state.running:
                    self._add(state.running[index])

    def _add(self, job: PlacementJob) -> None:
        place = self._places[job.trace_index] = len(self._places)
        if place == self._columns.shape[1]:
            self._columns = np.hstack((self._columns, np.zeros_like(self._columns)))
        self.all_gpus += job.gang_gpus
        left = job.remainder
        end = ticks(left.from_s + left.work / left.rate)
        self._columns[:, place] = end, self._settings.number(job), job.trace_index, job.gang_gpus

    def _remove(self, index: int) -> None:
        """Remove a job; the last one takes its place."""
        place = self._places.pop(index)
        last = len(self._places)
        self.all_gpus -= int(self._columns[3, place])
        if place != last:
            self._columns[:, place] = self._columns[:, last]
            self._places[int(self._columns[2, place])] = place
