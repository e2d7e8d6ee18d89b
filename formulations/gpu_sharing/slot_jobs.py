"""SlotJobs: jobs that share GPUs over slots of time, their checks, and the units in which their progress is counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Floats, Indices
from ..checks import as_integer, as_integers, as_reals, refuse, store_checked
from ..errors import InvalidInput

#: Units of progress of a job that runs alone for one slot.
UNITS = 1000
#: The most slots of work of a job, and the latest arrival.
MOST_SLOTS = 1000
MOST_GPUS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SlotJobs:
    """Jobs on one cluster of equal GPUs; for its fields see GpuSharing.

    Progress is counted in units of 1/1000 of a slot: `work_units` are rounded to the nearest, `rate_units` up. So all
    progress is exact, and three slots at a ratio of 3 do the work of one slot.
    """

    work_slots: Floats
    gang_gpus: Indices
    gpus: int
    ratios: Floats
    arrival_slots: Indices | None = None
    weights: Floats | None = None
    jobs_per_gpu: int = 2

    def __post_init__(self) -> None:
        store_checked(self, as_reals, "work_slots", above=0.0, maximum=float(MOST_SLOTS))
        jobs = len(self.work_slots)
        store_checked(self, as_integer, "gpus", minimum=1, maximum=MOST_GPUS)
        store_checked(self, as_integer, "jobs_per_gpu")
        if self.jobs_per_gpu not in (1, 2):
            raise InvalidInput("jobs_per_gpu", self.jobs_per_gpu, "must be 1 or 2")
        store_checked(self, as_integers, "gang_gpus", minimum=1, shape=(jobs,))
        refuse("gang_gpus", self.gang_gpus > self.gpus, self.gang_gpus, f"the cluster has {self.gpus} GPUs")
        store_checked(self, as_reals, "ratios", minimum=1.0, maximum=float(UNITS), shape=(jobs, jobs), ndim=2)
        if self.arrival_slots is None:
            object.__setattr__(self, "arrival_slots", np.zeros(jobs, dtype=np.int64))
        store_checked(self, as_integers, "arrival_slots", minimum=0, maximum=MOST_SLOTS, shape=(jobs,))
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(jobs))
        store_checked(self, as_reals, "weights", above=0.0, maximum=1e6, shape=(jobs,))

    @property
    def arrivals(self) -> Indices:
        """The slots in which the jobs arrive, shape (N,)."""
        assert self.arrival_slots is not None
        return self.arrival_slots

    @property
    def job_weights(self) -> Floats:
        """The weights of the jobs, shape (N,)."""
        assert self.weights is not None
        return self.weights

    @cached_property
    def work_units(self) -> Indices:
        """Units of progress that each job needs, at least 1, shape (N,)."""
        return np.maximum(1, np.rint(self.work_slots * UNITS)).astype(np.int64)

    @cached_property
    def rate_units(self) -> Indices:
        """Units of progress of job j in a slot beside job k, shape (N, N); on the diagonal those of a job alone."""
        rates = np.ceil(UNITS / self.ratios).astype(np.int64)
        np.fill_diagonal(rates, UNITS)
        return rates

    @cached_property
    def least_slots(self) -> Indices:
        """Slots of each job if it runs alone, shape (N,)."""
        return -(-self.work_units // UNITS)

    def total_time(self, ends: Indices) -> float:
        """Return the weighted sum of the times from arrival to end."""
        return float(self.job_weights @ (ends - self.arrivals))


def busy_time_bound(jobs: SlotJobs) -> float:
    """Return a lower bound on `total_time` from the GPUs alone, valid with preemption and without gangs.

    A slot of a GPU does at most kappa slots of work, the most of a job alone and of a pair. So the jobs are processed
    no faster than by one machine of speed kappa times the GPUs. On it, the preemptive schedule that always processes
    the job of the greatest weight per work minimises the weighted sum of mean busy times M_j, and no end of a job with
    processing time p_j is before M_j + p_j / 2 (Goemans 1996).
    """
    rates = jobs.rate_units / UNITS
    pair = rates + rates.T
    np.fill_diagonal(pair, 1.0)
    speed = jobs.gpus * (max(1.0, float(pair.max())) if jobs.jobs_per_gpu == 2 else 1.0)
    # Half a unit less than the work of each job: rounding to units never makes the bound too large.
    process = (jobs.work_units - 0.5) / UNITS * jobs.gang_gpus / speed
    order = np.argsort(-jobs.job_weights / process, kind="stable").tolist()
    left, moment = process.copy(), np.zeros(len(process))
    now, arrivals = 0.0, jobs.arrivals
    while (left > 0).any():
        ready = next((j for j in order if left[j] > 0 and arrivals[j] <= now), None)
        later = arrivals[(arrivals > now) & (left > 0)]
        until = float(later.min()) if len(later) else np.inf
        if ready is None:
            now = until
            continue
        spent = min(left[ready], until - now)
        moment[ready] += spent * (now + spent / 2)
        left[ready] = 0.0 if spent == left[ready] else left[ready] - spent
        now += spent
    ends = moment / process + process / 2
    return float(jobs.job_weights @ (ends - arrivals))
