"""Execution of a policy's actions: jobs start, stop, move and end, share GPUs, and save their state."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from heapq import heappush
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ..results.timeline import StretchLog
from .actions import Move, Start
from .interference import Interference
from .job import PlacementJob
from .policy import PlacementState
from .rules import PlacementRules
from .speeds import Running, Speeds, checked_exposed, checked_rate
from .ticks import TICK_S

#: Time, kind, trace index, and version of the run or lease.
Event = tuple[float, int, int, int]
# Kinds of events; of those at one time, ends come first.
END, LEASE, ARRIVAL, WAKE = range(4)


class Execution:
    """Jobs on their GPUs: the actions change the state, and add the ends of runs and leases to the events.

    Attributes
    ----------
    busy : int
        GPUs with at least one job.
    unrenewed : dict of int to PlacementJob
        Jobs whose leases end in this call and are not renewed so far.
    held_s : ndarray of float, shape (N,)
        Seconds for which jobs held GPUs, up to their last stop.
    machines, tiers : ndarray of int, shape (N,)
        Most machines, and highest network tier, of each job so far.
    stretches : StretchLog
    """

    def __init__(
        self,
        state: PlacementState,
        events: list[Event],
        jobs: int,
        speeds: Speeds,
        interference: Interference,
        rules: PlacementRules,
        record: bool,
    ) -> None:
        self.state, self.events, self.rules, self.record = state, events, rules, record
        self.speeds, self.interference = speeds, interference
        self.busy = 0
        self.unrenewed: dict[int, PlacementJob] = {}
        self.held_s = np.zeros(jobs)
        self.machines = np.zeros(jobs, dtype=np.int64)
        self.tiers = np.zeros(jobs, dtype=np.int64)
        self.stretches = StretchLog()
        self._ready_s: dict[int, float] = {}  # GPUs on which a stopped job saves its state, and until when

    def start(self, job: PlacementJob, action: Start) -> None:
        """Start a waiting job, or renew the lease of one whose lease ends now."""
        if job.run is not None:
            self._renew(job, action)
            return
        job.restarts += not math.isnan(job.start_s)
        self._occupy(job, action)

    def _renew(self, job: PlacementJob, action: Start) -> None:
        """Extend the lease of a job whose lease ends now."""
        if job.trace_index not in self.unrenewed:
            raise InvalidInput("trace_index", job.trace_index, f"job {job.id!r} runs already; use Move")
        why = f"job {job.id!r} renews its lease on its own GPUs with its own batch; use Move"
        if _whole_numbers(action.gpu_ids) != job.gpu_ids:
            raise InvalidInput("gpu_ids", action.gpu_ids, why)
        for name in ("batch_size", "sub_batch"):
            if getattr(action, name) not in (None, getattr(job.run, name)):
                raise InvalidInput(name, getattr(action, name), why)
        del self.unrenewed[job.trace_index]
        self._schedule_lease(job, action.lease_s)

    def move(self, job: PlacementJob, action: Move) -> None:
        """Let a running job go on elsewhere, or with another batch."""
        before = job.gpu_ids
        self._vacate(job)
        self._save(job, before)
        self._occupy(job, action)
        job.moves += 1

    def stop(self, job: PlacementJob) -> None:
        """Preempt a running job, which waits from now on."""
        before = job.gpu_ids
        self._vacate(job)
        self._save(job, before)
        self.state.waiting[job.trace_index] = job
        job.last_stop_s = self.state.time_s
        job.preemptions += 1

    def _save(self, job: PlacementJob, gpu_ids: tuple[int, ...]) -> None:
        """Note until when a stopped job saves its state."""
        checkpoint_s = self.rules.checkpoint_s + self.rules.checkpoint_s_per_gpu * len(gpu_ids)
        if checkpoint_s:
            job._ready_s = self.state.time_s + checkpoint_s
            for gpu in gpu_ids:
                self._ready_s[gpu] = max(job._ready_s, self._ready_s.get(gpu, 0.0))

    def _occupy(self, job: PlacementJob, action: Start | Move) -> None:
        """Put a job on GPUs, after checks."""
        state, now_s = self.state, self.state.time_s
        ids = self._checked_ids(action.gpu_ids)
        if len(ids) < job.min_gpus:
            raise InvalidInput("gpu_ids", f"{len(ids)} GPUs", f"job {job.id!r} has min_gpus = {job.min_gpus}")
        size = part = job.batch_size
        if action.batch_size is not None:
            size = part = as_integer("batch_size", action.batch_size, minimum=1)
        if action.sub_batch is not None:
            part = as_integer("sub_batch", action.sub_batch, minimum=1, maximum=size)
        run = state.run_on(job, ids, size, part)
        job._solo_rate, job._exposed = checked_rate(self.speeds, run), checked_exposed(self.speeds, run)
        again = not math.isnan(job.start_s)
        ready_s = max([now_s, job._ready_s, *(self._ready_s.get(gpu, 0.0) for gpu in ids)]) if self._ready_s else now_s
        job._progress_from_s = ready_s + (self.rules.restart_s if again else 0.0)
        job.start_s, job.last_start_s = job.start_s if again else now_s, now_s
        job.run, job.gpu_ids, job._at_s = run, ids, now_s
        state.waiting.pop(job.trace_index, None)
        state.running[job.trace_index] = job
        state.gpus.add(job.trace_index, ids, now_s)
        self.busy = state.cluster.gpus - state.gpus.free_gpus
        self.machines[job.trace_index] = max(self.machines[job.trace_index], run.machines)
        self.tiers[job.trace_index] = max(self.tiers[job.trace_index], run.tier)
        if self.record:
            self.stretches.start(job.trace_index, now_s, len(ids), gpu_ids=ids)
        self._update_rates(job)
        self._schedule_lease(job, action.lease_s)

    def _checked_ids(self, gpu_ids: Iterable[int]) -> tuple[int, ...]:
        gpus, ids = self.state.gpus, _whole_numbers(gpu_ids)
        if not ids:
            raise InvalidInput("gpu_ids", "()", "must not be empty")
        for gpu in ids:
            if not 0 <= gpu < len(gpus.jobs_on):
                raise InvalidInput("gpu_ids", gpu, f"the GPUs are 0 to {len(gpus.jobs_on) - 1}")
            if len(gpus.jobs_on[gpu]) >= self.rules.jobs_per_gpu:
                raise InvalidInput("gpu_ids", gpu, f"the GPU has {len(gpus.jobs_on[gpu])} job(s) already")
        for one, other in pairwise(ids):
            if one == other:
                raise InvalidInput("gpu_ids", one, "the GPU is named twice")
        return ids

    def _schedule_lease(self, job: PlacementJob, lease_s: Any) -> None:
        if not (isinstance(lease_s, Real) and float(lease_s) > TICK_S):
            raise InvalidInput("lease_s", lease_s, "must be positive")
        job._lease += 1
        if math.isfinite(lease_s):
            heappush(self.events, (self.state.time_s + float(lease_s), LEASE, job.trace_index, job._lease))

    def _vacate(self, job: PlacementJob) -> None:
        """Take a job off its GPUs; the jobs beside it go on at their new rates."""
        state, ids, index = self.state, job.gpu_ids, job.trace_index
        others = state.sharing(job) if self.rules.jobs_per_gpu > 1 else {}
        job._accrue()
        self.held_s[index] += state.time_s - job.last_start_s
        state.gpus.remove(index, ids, state.time_s)
        self.busy = state.cluster.gpus - state.gpus.free_gpus
        del state.running[index]
        self.unrenewed.pop(index, None)
        job.run, job.gpu_ids, job._rate, job._shared_gpus = None, (), 0.0, 0
        job._version += 1
        job._lease += 1
        if self.record:
            self.stretches.stop(index, state.time_s)
        for other in others.values():
            self._set_rate(other)

    def end(self, job: PlacementJob) -> None:
        """End a job whose work is done."""
        self._vacate(job)
        job._done, job.end_s = job._work, self.state.time_s
        del self.state.jobs[job.trace_index]

    # -- Rates ---------------------------------------------------------------------------------------------------------

    def _update_rates(self, job: PlacementJob) -> None:
        """Set the rate of a job that has started, and of the jobs beside it."""
        self._set_rate(job)
        if self.rules.jobs_per_gpu > 1:
            for other in self.state.sharing(job).values():
                self._set_rate(other)

    def _set_rate(self, job: PlacementJob) -> None:
        """Set a job's rate by the jobs beside it, and its end."""
        job._accrue()
        rate, run = job._solo_rate, job.run
        assert run is not None
        if self.rules.jobs_per_gpu > 1:
            others = [other.run for other in self.state.sharing(job).values() if other.run is not None]
            job._shared_gpus = sum(len(self.state.gpus.jobs_on[gpu]) > 1 for gpu in job.gpu_ids)
            if others:
                rate /= self._ratio(run, others)
        job._rate = rate
        job._version += 1
        from_s = max(self.state.time_s, job._progress_from_s)
        heappush(self.events, (from_s + (job._work - job._done) / rate, END, job.trace_index, job._version))

    def _ratio(self, run: Running, others: Sequence[Running]) -> float:
        """Return the interference's ratio of a job beside others, after a check."""
        ratio: Any = self.interference.ratio(run, others)  # may be of any type in spite of its annotation
        if isinstance(ratio, Real) and 1.0 <= float(ratio) < math.inf:
            return float(ratio)
        mine, *beside = (f"job {self.state.jobs[each.trace_index].id!r} ({each.model})" for each in (run, *others))
        why = f"{type(self.interference).__name__} must return a number of at least 1 for {mine}"
        raise InvalidInput("interference", ratio, f"{why} beside {', '.join(beside)}")


def _whole_numbers(gpu_ids: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of GPUs in ascending order."""
    try:
        return tuple(sorted(map(operator.index, gpu_ids)))
    except TypeError:
        raise InvalidInput("gpu_ids", gpu_ids, "must be a sequence of numbers of GPUs") from None
