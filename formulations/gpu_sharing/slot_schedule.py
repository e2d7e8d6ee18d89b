"""SlotSchedule: start, end and GPUs of each job in slots, its progress by slot, and its faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Indices
from ..checks import as_integers
from ..errors import InvalidInput
from .slot_jobs import UNITS, SlotJobs

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd


@dataclass(frozen=True, eq=False)
class SlotSchedule:
    """A start and fixed GPUs for each of N jobs.

    Attributes
    ----------
    jobs : SlotJobs
        The problem.
    start : ndarray of int, shape (N,)
        First slot of each job.
    end : ndarray of int, shape (N,)
        The slot after the last one of each job: the job runs in the slots ``start, ..., end - 1``.
    gpu_ids : tuple of tuple of int
        GPUs of each job.
    """

    jobs: SlotJobs
    start: Indices
    end: Indices
    gpu_ids: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        shape = self.jobs.work_slots.shape
        for name in ("start", "end"):
            object.__setattr__(self, name, as_integers(name, getattr(self, name), shape=shape))
        ids = tuple(tuple(int(gpu) for gpu in gpus) for gpus in self.gpu_ids)
        if len(ids) != shape[0]:
            raise InvalidInput("gpu_ids", f"{len(ids)} values", f"must have one entry for each of {shape[0]} jobs")
        object.__setattr__(self, "gpu_ids", ids)

    @classmethod
    def of_starts(cls, jobs: SlotJobs, start: Indices, gpu_ids: Sequence[Sequence[int]]) -> SlotSchedule:
        """Return the schedule of starts and GPUs; each job ends in the slot in which its progress reaches its work."""
        ids = tuple(tuple(each) for each in gpu_ids)
        return cls(jobs, start, simulated(jobs, np.asarray(start), ids)[0], ids)

    @cached_property
    def progress_units(self) -> Indices:
        """Units of progress of each job in each slot up to the last end, shape (N, T), recomputed."""
        return simulated(self.jobs, self.start, self.gpu_ids)[1]

    @property
    def makespan(self) -> int:
        """The slot after the last one in which a job runs."""
        return int(self.end.max())

    def fault(self) -> float:
        """Return the worst fault in slots, jobs or GPUs; 0.0 if there is none.

        Faults are starts before the arrival, more jobs on a GPU than allowed, and ends other than the slot in which the
        progress reaches the work. A job without exactly its number of different GPUs of the cluster is an infinite
        fault.
        """
        jobs = self.jobs
        for gang, ids in zip(jobs.gang_gpus.tolist(), self.gpu_ids, strict=True):
            if len(set(ids)) != gang or len(ids) != gang or min(ids) < 0 or max(ids) >= jobs.gpus:
                return math.inf
        if self.start.min() < 0:
            return math.inf
        ends, _ = simulated(jobs, self.start, self.gpu_ids)
        crowd = 0
        for slot in np.unique(self.start).tolist():  # the jobs on a GPU only grow where one starts
            on = np.flatnonzero((self.start <= slot) & (slot < ends))
            crowd = max(crowd, int(np.bincount([gpu for j in on for gpu in self.gpu_ids[j]]).max()))
        early = int((jobs.arrivals - self.start).max())
        return float(max(0, early, crowd - jobs.jobs_per_gpu, int(np.abs(ends - self.end).max())))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each job: arrival, start, end (the slot after its last one), and its GPUs as text."""
        import pandas as pd

        gpus = [",".join(map(str, ids)) for ids in self.gpu_ids]
        frame = {"arrival": self.jobs.arrivals, "start": self.start, "end": self.end, "gpus": gpus}
        return pd.DataFrame(frame, index=pd.RangeIndex(len(gpus), name="job"))

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schedule as a picture (SVG), two lines for each GPU if two jobs may share it."""
        from ..files import written
        from ..plotting.gantt import gantt

        places = self.jobs.jobs_per_gpu
        free = np.zeros((self.jobs.gpus, places), dtype=np.int64)  # the slot from which each line is free
        bars = []
        for job in np.argsort(self.start, kind="stable").tolist():
            for gpu in self.gpu_ids[job]:
                place = int(free[gpu].argmin())
                bars.append((job, gpu * places + place, self.start[job], self.end[job]))
                free[gpu, place] = self.end[job]
        owner, line, start, end = (np.array(column) for column in zip(*bars, strict=True))
        names = [f"GPU {gpu}{'' if place == 0 else ' too'}" for gpu in range(self.jobs.gpus) for place in range(places)]
        text = gantt(
            owner=owner, line=line, start=start.astype(float), end=end.astype(float), lines=names, axis="slot"
        )  # fmt: skip
        return written(text, path)

    def _repr_svg_(self) -> str:
        return self.to_svg()  # notebooks display it

    def __repr__(self) -> str:
        return f"<SlotSchedule: {len(self.start)} jobs on {self.jobs.gpus} GPUs, {self.makespan} slots>"


def simulated(jobs: SlotJobs, start: Indices, gpu_ids: Sequence[Sequence[int]]) -> tuple[Indices, Indices]:
    """Return the ends, shape (N,), and the progress by slot in units, shape (N, T), of jobs with starts and GPUs.

    In each slot a job progresses at the least of its rates beside the jobs with which it shares a GPU.
    """
    count = len(start)
    held = [set(ids) for ids in gpu_ids]
    shares = np.array([[j != k and bool(held[j] & held[k]) for k in range(count)] for j in range(count)])
    ends = np.zeros(count, dtype=np.int64)
    left = jobs.work_units.copy()
    progress = []
    now = 0
    while (left > 0).any():
        on = (start <= now) & (left > 0)
        rates = np.where(shares & on, jobs.rate_units, UNITS).min(axis=1) * on
        progress.append(rates)
        left = left - rates
        now += 1
        ends[on & (left <= 0)] = now
    return ends, np.array(progress).T
