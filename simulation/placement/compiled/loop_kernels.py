"""Compiled event loop of the placement engine under delay scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled
from .gpu_kernels import release
from .job_kernels import leave, start
from .offer_kernels import offer, timer_call_s, wait
from .order_kernels import LEASE, WAKE, is_stale, pop, push

_TICK_S = 2.0**-20
#: Reasons for which the loop returns: the events of the batch are done, all jobs have ended, no event is to come, an
#: array may get too small, a rate is not known, a lease or the time of a call is refused.
PAUSED, ENDED, STUCK, FULL, RATE_UNKNOWN, LEASE_REFUSED, WAKE_REFUSED = range(7)


@compiled(error_model="numpy")
def end_jobs(arrays: Any, count: int) -> None:
    """End jobs whose work is done, each at its own time."""
    state = arrays.state[0]
    for place in range(count):
        index = arrays.ended[place]
        job = arrays.jobs[index]
        job.end_s = max(state.now, job.end_s)
        leave(arrays, index, job.end_s)
        release(arrays, arrays.held, job.first, job.gang)
        job.done = job.work
    state.ended += count


@compiled(error_model="numpy")
def next_events(arrays: Any) -> int:
    """Process the events within a tick of the next; return the number of jobs whose leases end, -1 without an event."""
    state = arrays.state[0]
    while state.events > 0 and is_stale(arrays.jobs, arrays.events[0]):
        pop(arrays)
    arrivals, before = len(arrays.jobs), state.arrived
    first_s = arrays.jobs[arrays.arrivals[before]].arrival_s if before < arrivals else np.inf
    if state.events > 0:
        first_s = min(first_s, arrays.events[0].time_s)
    elif before == arrivals:
        return -1
    last_s, ended, leases = max(state.now, first_s), 0, 0
    while state.events > 0 and arrays.events[0].time_s <= first_s + _TICK_S:
        event = arrays.events[0]
        if not is_stale(arrays.jobs, event):
            last_s = max(last_s, event.time_s)
            if event.code < LEASE:
                arrays.jobs[event.code].end_s = event.time_s
                arrays.ended[ended] = event.code
                ended += 1
            elif event.code < WAKE:
                arrays.due[leases] = event.code - LEASE
                leases += 1
        pop(arrays)
    while state.arrived < arrivals:
        arrival_s = arrays.jobs[arrays.arrivals[state.arrived]].arrival_s
        if arrival_s > first_s + _TICK_S:
            break
        last_s = max(last_s, arrival_s)
        state.arrived += 1
    end_jobs(arrays, ended)
    state.now = last_s
    for place in range(before, state.arrived):
        index = arrays.arrivals[place]
        arrays.turns[index].since_s = arrays.jobs[index].arrival_s
        wait(arrays, index)
    # The lease of a job that ends now ends with it.
    expired = 0
    for place in range(leases):
        if arrays.jobs[arrays.due[place]].runs:
            arrays.due[expired] = arrays.due[place]
            expired += 1
    return expired


@compiled(error_model="numpy")
def begin_pass(arrays: Any, expired: int) -> None:
    """Carry out a pass of offers, if one is due, but for the starts."""
    state = arrays.state[0]
    state.accepted = state.started = 0
    now_s, offer_s = state.now, state.offer_s
    if offer_s == np.inf:
        state.pass_lease_s = state.lease_s
    else:
        state.pass_lease_s = np.ceil((now_s + state.lease_s - _TICK_S) / offer_s) * offer_s - now_s
    if offer_s == np.inf or expired > 0 or abs(now_s - np.rint(now_s / offer_s) * offer_s) <= _TICK_S:
        offer(arrays, expired)


@compiled(error_model="numpy")
def ask_for_call(arrays: Any) -> bool:
    """List the time of the next call that the rule asks for; False if it is refused."""
    state = arrays.state[0]
    now_s, offer_s = state.now, state.offer_s
    if state.wake_s <= now_s + _TICK_S:
        state.wake_s = np.inf
    due_s = np.inf
    if state.arrived - state.ended > state.running:
        if offer_s == np.inf:
            due_s = timer_call_s(arrays)
        else:
            due_s = (np.floor((now_s + _TICK_S) / offer_s) + 1.0) * offer_s
    if due_s < state.wake_s:
        state.wake_s = max(due_s, now_s + 1.001 * _TICK_S)
        if state.wake_s <= now_s + _TICK_S:
            return False
        push(arrays, state.wake_s, WAKE, 0)
    return True


@compiled(error_model="numpy")
def run_events(arrays: Any, most: int) -> int:
    """Process events until `most` are logged, or there is a reason to return before; return the reason."""
    state = arrays.state[0]
    # At an event each GPU is taken once at most.
    starts = min(state.gpus, len(arrays.jobs))
    while True:
        if not state.starting:
            if state.ended == len(arrays.jobs):
                return ENDED
            if state.levels == most:
                return PAUSED
            if state.events + 2 * starts + 1 > len(arrays.events) or state.longest + starts > arrays.waits.shape[1]:
                return FULL
            if state.timers + 2 * starts + 4 * len(arrays.groups) > len(arrays.timers):
                return FULL
            if state.record and (
                state.starts + starts > len(arrays.starts)
                or state.stops + 2 * starts > len(arrays.stops)
                or state.ids + state.gpus > len(arrays.ids)
            ):
                return FULL
            expired = next_events(arrays)
            if expired < 0:
                return STUCK
            begin_pass(arrays, expired)
            state.starting = 1
        while state.started < state.accepted:
            index = arrays.accepted[state.started]
            if not arrays.jobs[index].runs:
                arrays.turns[index].since_s = state.now
            if not start(arrays, index):
                return RATE_UNKNOWN
            if not state.pass_lease_s > _TICK_S:
                return LEASE_REFUSED
            state.started += 1
        if not ask_for_call(arrays):
            return WAKE_REFUSED
        state.starting = 0
        level = arrays.levels[state.levels]
        level.time_s, level.busy, level.running = state.now, state.gpus - state.free, state.running
        level.waiting = state.arrived - state.ended - state.running
        state.levels += 1
