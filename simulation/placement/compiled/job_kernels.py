"""Compiled execution of starts and stops of jobs, as in `Execution`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled
from .order_kernels import END, LEASE, push


@compiled(error_model="numpy")
def progress_s(job: Any, now_s: float) -> float:
    """Return the seconds of progress of a running job since its sums."""
    return float(max(0.0, now_s - max(job.at_s, job.progress_from_s)))


@compiled(error_model="numpy")
def mark(state: Any, log: Any, index: int, time_s: float) -> None:
    """Log the start or stop of a job, if a record is kept."""
    if state.record:
        entry = log.marks[state.marks]
        entry.job, entry.time_s = index, time_s
        state.marks += 1


@compiled(error_model="numpy")
def leave(state: Any, jobs: Any, log: Any, index: int, now_s: float) -> None:
    """Take a running job off its GPUs, which are free already."""
    job = jobs[index]
    seconds = progress_s(job, now_s)
    if seconds > 0.0:
        job.done = min(job.work, job.done + job.rate * seconds)
        job.run_s += seconds
        job.gpu_s += seconds * job.gang
        job.exposed_s += seconds * job.exposed
    job.at_s = now_s
    job.held_s += now_s - job.last_start_s
    job.runs = 0
    job.version += 1
    job.lease += 1
    state.running -= 1
    mark(state, log, index, now_s)


@compiled(error_model="numpy")
def stop(state: Any, jobs: Any, gpus: Any, log: Any, index: int) -> None:
    """Preempt a running job, which saves its state."""
    leave(state, jobs, log, index, state.now)
    job = jobs[index]
    job.preemptions += 1
    checkpoint_s = state.checkpoint_s + state.checkpoint_s_per_gpu * job.gang
    if checkpoint_s > 0.0:
        job.ready_s = state.now + checkpoint_s
        for place in range(job.first, job.first + job.gang):
            gpu = gpus.gpus[gpus.held[place].gpu]
            gpu.ready_s = max(job.ready_s, gpu.ready_s)


@compiled(error_model="numpy")
def start(state: Any, jobs: Any, gpus: Any, events: Any, rates: Any, log: Any, index: int) -> bool:
    """Start a job on the chosen GPUs, or renew its lease there; False if its rate there is not known."""
    job = jobs[index]
    if not job.runs:
        entry = job.entry
        while entry >= 0 and (rates[entry].machines != job.machines or rates[entry].racks != job.racks):
            entry = rates[entry].next
        if entry < 0:
            return False
        job.rate, job.exposed = rates[entry].rate, rates[entry].exposed
        mark(state, log, index, state.now)
        from_s = max(state.now, job.ready_s)
        for place in range(job.first, job.first + job.gang):
            held = gpus.held[place]
            held.gpu = held.chosen
            from_s = max(from_s, gpus.gpus[held.gpu].ready_s)
            if state.record:
                log.ids[state.ids] = held.gpu
                state.ids += 1
        if np.isnan(job.start_s):
            job.start_s = state.now
        else:
            job.restarts += 1
            from_s += state.restart_s
        job.progress_from_s, job.last_start_s, job.at_s = from_s, state.now, state.now
        job.runs = 1
        job.most_machines = max(job.most_machines, job.machines)
        job.highest_tier = max(job.highest_tier, job.tier)
        job.version += 1
        state.running += 1
        push(state, events, max(state.now, from_s) + (job.work - job.done) / job.rate, END + index, job.version)
    job.lease += 1
    if state.pass_lease_s < np.inf:
        push(state, events, state.now + state.pass_lease_s, LEASE + index, job.lease)
    return True
