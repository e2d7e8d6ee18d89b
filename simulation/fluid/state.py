"""State of the fluid engine between events, and its progress from one event to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...formulations.checks import as_real
from ...formulations.errors import InvalidInput
from .clock import Clock
from .job import CUT_GPUS, FluidJob

# Sums of fractions of GPUs may exceed the cluster by rounding.
_SLACK_GPUS = 1e-6


class FluidState:
    """Jobs in the system at one moment.

    Attributes
    ----------
    gpus : int
        GPUs of the cluster (M).
    time_s : float
    jobs : list of FluidJob
        Arrived and unfinished jobs, in the order of the policy's last answer; an arrival is at the end.
    event : {"arrival", "end", "timer"}
        What happened at this time.
    preemption_s : float
        Seconds without progress at a restart.
    """

    def __init__(self, gpus: int, clock: Clock, preemption_s: float = 0.0) -> None:
        self.gpus, self.clock, self.preemption_s = gpus, clock, preemption_s
        self.jobs: list[FluidJob] = []
        self.event = "arrival"
        self._now = 0.0
        self._timer = math.inf

    @property
    def time_s(self) -> float:
        """Present time, in seconds from the trace's start."""
        return self.clock.seconds(self._now)

    def as_estimated(self) -> FluidState:
        """Return a copy in which the estimates of sizes are true and no job arrives: what a prediction knows."""
        copied = FluidState(self.gpus, self.clock, self.preemption_s)
        copied.jobs = [job._as_estimated() for job in self.jobs]
        copied.event, copied._now, copied._timer = self.event, self._now, self._timer
        return copied

    def _next_end(self) -> tuple[float, FluidJob | None]:
        """Return the ticks of the next end, and the job; of several at one time the first in the policy's order."""
        first, found = math.inf, None
        for job in self.jobs:
            needed = self._now + self.clock.ticks(job._needs_s())
            # Rounding may leave a job with less than no work.
            if max(needed, self._now) < first:
                first, found = max(needed, self._now), job
        return first, found

    def _advance(self, to: float, event: str) -> None:
        """Let all jobs run until an event."""
        span_s = self.clock.seconds(to - self._now)
        present = len(self.jobs)
        for job in self.jobs:
            job._progress(span_s, present)
        self._now, self.event = to, event

    def _join(self, job: FluidJob) -> None:
        self.jobs.append(job)
        job._seen, job._events = len(self.jobs), 1

    def _leave(self, job: FluidJob) -> None:
        self.jobs.remove(job)
        job.end_s = self.time_s

    def _divide(self, policy_name: str, answer: Any) -> None:
        """Check a policy's answer and let the jobs hold their GPUs."""
        by_index = {job.trace_index: job for job in self.jobs}
        field = f"allocation of policy {policy_name}"
        if not isinstance(answer, Mapping):
            raise InvalidInput(field, type(answer).__name__, "must be a mapping of trace index to GPUs")
        total, order = 0.0, []
        for index, given in answer.items():
            job = by_index.pop(index, None)
            if job is None:
                raise InvalidInput(field, index, "no such job has arrived and not ended")
            gpus = as_real(f"{field} to job {index}", given, minimum=0.0)
            if gpus > job.max_gpus:
                raise InvalidInput(f"{field} to job {index}", gpus, f"more than its maximum of {job.max_gpus} GPUs")
            total += gpus
            order.append((job, gpus))
        if total > self.gpus + _SLACK_GPUS:
            raise InvalidInput(field, total, f"the cluster has {self.gpus} GPUs")
        order += [(job, 0.0) for job in by_index.values()]
        if any(job.lacks(gpus) and gpus > 0.0 for job, gpus in order):
            order = _with_least(order)
        time_s = self.time_s
        for job, gpus in order:
            job._hold(gpus, time_s, self.preemption_s)
        self.jobs = [job for job, _ in order]


def _with_least(order: list[tuple[FluidJob, float]]) -> list[tuple[FluidJob, float]]:
    """Take the GPUs of jobs that were given too few to run, and give them in order to jobs that can use them."""
    freed = sum(gpus for job, gpus in order if job.lacks(gpus))
    changed = []
    for job, given in order:
        gpus = 0.0 if job.lacks(given) else given
        more = min(freed, job.max_gpus - gpus)
        if more > CUT_GPUS and not job.lacks(gpus + more):
            # The same sum in another order must not count as another number of GPUs.
            gpus = round((gpus + more) * 1e9) / 1e9
            freed -= more
        changed.append((job, gpus))
    return changed
