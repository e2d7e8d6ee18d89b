"""Compiled execution of starts and stops of jobs, as in `Execution`."""

from __future__ import annotations

from typing import Any

from ....formulations.compiled import compiled
from .order_kernels import END, LEASE, push


@compiled(error_model="numpy")
def progress_s(job: Any, now_s: float) -> float:
    """Return the seconds of progress of a running job since its sums."""
    return max(0.0, now_s - max(job.at_s, job.progress_from_s))


@compiled(error_model="numpy")
def leave(arrays: Any, index: int, now_s: float) -> None:
    """Take a running job off its GPUs, which are free already."""
    state, job = arrays.state[0], arrays.jobs[index]
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
    if state.record:
        arrays.stops[state.stops].job, arrays.stops[state.stops].time_s = index, now_s
        state.stops += 1


@compiled(error_model="numpy")
def stop(arrays: Any, index: int) -> None:
    """Preempt a running job, which saves its state."""
    state, job = arrays.state[0], arrays.jobs[index]
    leave(arrays, index, state.now)
    job.preemptions += 1
    checkpoint_s = state.checkpoint_s + state.checkpoint_s_per_gpu * job.gang
    if checkpoint_s > 0.0:
        job.ready_s = state.now + checkpoint_s
        for place in range(job.first, job.first + job.gang):
            gpu = arrays.held[place]
            arrays.gpu_ready_s[gpu] = max(job.ready_s, arrays.gpu_ready_s[gpu])


@compiled(error_model="numpy")
def start(arrays: Any, index: int) -> bool:
    """Start a job on the chosen GPUs, or renew its lease there; False if its rate there is not known."""
    state, job = arrays.state[0], arrays.jobs[index]
    if not job.runs:
        entry = arrays.entries[index]
        while entry >= 0 and (arrays.rates[entry].machines != job.machines or arrays.rates[entry].racks != job.racks):
            entry = arrays.rates[entry].next
        if entry < 0:
            return False
        job.rate, job.exposed = arrays.rates[entry].rate, arrays.rates[entry].exposed
        again = job.start_s == job.start_s  # a time, not nan
        job.restarts += again
        job.progress_from_s = max(state.now, job.ready_s)
        for place in range(job.first, job.first + job.gang):
            gpu = arrays.held[place] = arrays.chosen[place]
            job.progress_from_s = max(job.progress_from_s, arrays.gpu_ready_s[gpu])
        if again:
            job.progress_from_s += state.restart_s
        else:
            job.start_s = state.now
        job.last_start_s = job.at_s = state.now
        job.runs = 1
        job.most_machines = max(job.most_machines, job.machines)
        job.highest_tier = max(job.highest_tier, job.tier)
        job.version += 1
        state.running += 1
        end_s = max(state.now, job.progress_from_s) + (job.work - job.done) / job.rate
        push(arrays, end_s, END + index, job.version)
        if state.record:
            arrays.starts[state.starts].job, arrays.starts[state.starts].time_s = index, state.now
            state.starts += 1
            for place in range(job.first, job.first + job.gang):
                arrays.ids[state.ids] = arrays.held[place]
                state.ids += 1
    job.lease += 1
    push(arrays, state.now + state.pass_lease_s, LEASE + index, job.lease)
    return True
