"""GangSchedule: rounds in which each job holds its GPUs, and the check of a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Indices, ranges
from ...errors import InvalidInput
from ...former_names import FormerName, former_parameters

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, kw_only=True, eq=False)
class GangSchedule:
    """Runs of rounds of N jobs, sorted by job and start.

    Attributes
    ----------
    gang_gpus : ndarray of int, shape (N,)
        GPUs that each job holds while it runs.
    gpus : int
        GPUs of the cluster.
    job, start, end : ndarray of int, shape (P,)
        Job, first round, and first round after the end of each run: the job runs in the rounds ``start, ..., end - 1``.
    """

    gang_gpus: Indices
    gpus: int
    job: Indices
    start: Indices
    end: Indices

    gangs = FormerName("gang_gpus")

    def __post_init__(self) -> None:
        gang_gpus = np.array(self.gang_gpus, dtype=np.int64)
        gang_gpus.setflags(write=False)
        object.__setattr__(self, "gang_gpus", gang_gpus)
        arrays = {name: np.array(getattr(self, name), dtype=np.int64) for name in ("job", "start", "end")}
        for name, array in arrays.items():
            if array.shape != arrays["job"].shape or array.ndim != 1:
                raise InvalidInput(name, f"array of shape {array.shape}", "must have one entry for each run")
        order = np.lexsort((arrays["start"], arrays["job"]))
        for name, array in arrays.items():
            array = array[order]
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of_rounds(cls, gang_gpus: Indices, gpus: int, job: Indices, at: Indices) -> GangSchedule:
        """Return the schedule in which job ``job[i]`` runs in round ``at[i]``; both of shape (grants,)."""
        order = np.lexsort((at, job))
        job, at = job[order], at[order]
        begins = np.ones(len(job), dtype=bool)
        begins[1:] = (job[1:] != job[:-1]) | (at[1:] != at[:-1] + 1)
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(job)) - 1
        return cls(
            gang_gpus=gang_gpus, gpus=gpus, job=job[first], start=at[first], end=at[last] + 1 if len(job) else at[:0]
        )

    @property
    def makespan(self) -> int:
        """Number of rounds until the last job ends; 0 if none runs."""
        return int(self.end.max(initial=0))

    @property
    def preemptions(self) -> int:
        """Number of pauses of jobs that continue later."""
        return len(self.job) - len(np.unique(self.job))

    @property
    def grants(self) -> NDArray[np.bool_]:
        """Whether each job runs in each round, shape (N, makespan)."""
        marks = np.zeros((len(self.gang_gpus), self.makespan + 1), dtype=np.int64)
        np.add.at(marks, (self.job, self.start), 1)
        np.add.at(marks, (self.job, self.end), -1)
        return np.asarray(np.cumsum(marks, axis=1)[:, :-1] > 0)

    @property
    def gpus_in_use(self) -> Indices:
        """GPUs held in each round, shape (makespan,)."""
        change = np.zeros(self.makespan + 1, dtype=np.int64)
        np.add.at(change, self.start, self.gang_gpus[self.job])
        np.add.at(change, self.end, -self.gang_gpus[self.job])
        return np.cumsum(change)[:-1]

    def running(self, at: int) -> Indices:
        """Return the jobs that run in round `at`, in order."""
        return self.job[(self.start <= at) & (at < self.end)]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each run: job, gpus, start, end (the first round after it)."""
        import pandas as pd

        return pd.DataFrame({"job": self.job, "gpus": self.gang_gpus[self.job], "start": self.start, "end": self.end})

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schedule as a picture (SVG), a line for each GPU; write it to `path` if given.

        Jobs are assigned to GPUs anew in every round, so that a job may change GPUs from round to round.
        """
        from ...files import written
        from ...plotting.gantt import gantt

        at = np.repeat(self.start, self.end - self.start) + ranges(self.end - self.start)
        job = np.repeat(self.job, self.end - self.start)
        order = np.lexsort((job, -self.gang_gpus[job], at))
        at, job = at[order], job[order]
        wide = self.gang_gpus[job]
        below = np.cumsum(wide) - wide
        first = np.flatnonzero(np.append(True, at[1:] != at[:-1])) if len(at) else np.zeros(0, dtype=np.int64)
        line = below - np.repeat(below[first], np.diff(np.append(first, len(at))))
        text = gantt(
            owner=job,
            line=line,
            start=at.astype(np.float64),
            end=(at + 1).astype(np.float64),
            lines=[f"GPU {k}" for k in range(self.gpus)],
            axis="round",
            height=wide,
        )
        return written(text, path)

    def _repr_svg_(self) -> str:
        return self.to_svg()  # notebooks display it

    def __repr__(self) -> str:
        return (
            f"<GangSchedule: {len(self.gang_gpus)} jobs on {self.gpus} GPUs, {self.makespan} rounds, "
            f"{self.preemptions} preemption{'s' * (self.preemptions != 1)}>"
        )


def worst_gang_fault(rounds: Indices, gang_gpus: Indices, gpus: int, plan: Any, *, preemptive: bool) -> float:
    """Return the worst fault of a schedule, in rounds or GPUs; 0.0 if it has none.

    Faults are missing or excess rounds, simultaneous runs of one job, GPUs in use beyond the cluster's, runs before
    round 0 or of negative length and, unless `preemptive`, more than one run of a job. A plan of other jobs or another
    cluster has an infinite fault.
    """
    if not isinstance(plan, GangSchedule) or plan.gpus != gpus or not np.array_equal(plan.gang_gpus, gang_gpus):
        return math.inf
    job, start, end = plan.job, plan.start, plan.end
    if len(job) and (job.min() < 0 or job.max() >= len(gang_gpus) or start.min() < 0 or (end < start).any()):
        return math.inf
    done = np.zeros(len(rounds), dtype=np.int64)
    np.add.at(done, job, end - start)
    same = job[1:] == job[:-1]
    together = (end[:-1] - start[1:])[same].max(initial=0)  # neighbours suffice in the order of job and start
    faults = [np.abs(done - rounds).max(initial=0), together, plan.gpus_in_use.max(initial=0) - gpus, 0]
    if not preemptive:
        faults.append(np.bincount(job, minlength=1).max() - 1)
    return float(max(faults))
