"""Compiled event loop of the placement engine under delay scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled
from .arrays import ACCEPTED, ARRIVALS, DUE, ENDED
from .gpu_kernels import release
from .job_kernels import leave, start
from .offer_kernels import offer, timer_call_s, wait
from .order_kernels import LEASE, WAKE, is_stale, pop, push

_TICK_S = 2.0**-20
#: Reasons for which the loop returns: the events of the batch are done, all jobs have ended, no event is to come, an
#: array may get too small, a rate is not known, a lease or the time of a call is refused.
PAUSED, FINISHED, STUCK, FULL, RATE_UNKNOWN, LEASE_REFUSED, WAKE_REFUSED = range(7)


@compiled(error_model="numpy")
def next_events(state: Any, jobs: Any, queue: Any, gpus: Any, events: Any, log: Any) -> int:
    """Process the events within a tick of the next; return the number of jobs whose leases end, -1 without an event."""
    while state.events > 0 and is_stale(jobs, events[0]):
        pop(state, events)
    before, first_s = state.arrived, np.inf
    if before < len(jobs):
        first_s = jobs[queue.lists[ARRIVALS, before]].arrival_s
    if state.events > 0:
        first_s = min(first_s, events[0].time_s)
    if first_s == np.inf:
        return -1
    last_s, ended, leases = max(state.now, first_s), 0, 0
    while state.events > 0 and events[0].time_s <= first_s + _TICK_S:
        event = events[0]
        if not is_stale(jobs, event):
            last_s = max(last_s, event.time_s)
            if event.code < LEASE:
                jobs[event.code].end_s = max(state.now, event.time_s)
                queue.lists[ENDED, ended] = event.code
                ended += 1
            elif event.code < WAKE:
                queue.lists[DUE, leases] = event.code - LEASE
                leases += 1
        pop(state, events)
    while state.arrived < len(jobs):
        arrival_s = jobs[queue.lists[ARRIVALS, state.arrived]].arrival_s
        if arrival_s > first_s + _TICK_S:
            break
        last_s = max(last_s, arrival_s)
        state.arrived += 1
    # Each job leaves its GPUs at its own end.
    for place in range(ended):
        index = queue.lists[ENDED, place]
        leave(state, jobs, log, index, jobs[index].end_s)
        release(state, gpus, jobs[index])
    state.ended += ended
    state.now = last_s
    for place in range(before, state.arrived):
        index = queue.lists[ARRIVALS, place]
        wait(state, jobs, queue, index, jobs[index].arrival_s)
    # The lease of a job that ends now ends with it.
    expired = 0
    for place in range(leases):
        index = queue.lists[DUE, place]
        if jobs[index].runs:
            queue.lists[DUE, expired] = index
            expired += 1
    return expired


@compiled(error_model="numpy")
def is_offer(state: Any) -> bool:
    """Return whether GPUs are offered now."""
    if state.offer_s == np.inf:
        return True
    return bool(abs(state.now - np.rint(state.now / state.offer_s) * state.offer_s) <= _TICK_S)


@compiled(error_model="numpy")
def next_call_s(state: Any, queue: Any, tuner: Any) -> float:
    """Return the time of the next call that the rule asks for; infinity if it needs none, or has asked for one."""
    if state.wake_s <= state.now + _TICK_S:
        state.wake_s = np.inf
    due_s = np.inf
    if state.arrived - state.ended > state.running:
        if state.offer_s == np.inf:
            due_s = timer_call_s(state, queue, tuner)
        else:
            offers = state.now / state.offer_s
            due_s = ((np.rint(offers) if is_offer(state) else np.floor(offers)) + 1.0) * state.offer_s
    if due_s >= state.wake_s:
        return float(np.inf)
    state.wake_s = max(due_s, state.now + 2.0 * _TICK_S)
    return float(state.wake_s)


@compiled(error_model="numpy")
def run_events(
    states: Any, jobs: Any, queue: Any, gpus: Any, tuner: Any, events: Any, rates: Any, log: Any, most: int
) -> int:
    """Process events until `most` are logged, or there is a reason to return before; return the reason."""
    state = states[0]
    # At an event each GPU is taken once at most.
    starts = min(state.gpus, len(jobs))
    while True:
        if not state.starting:
            if state.ended == len(jobs):
                return FINISHED
            if state.levels == most:
                return PAUSED
            if state.events + 2 * starts + 1 > len(events) or state.longest + starts > tuner.waits.shape[1]:
                return FULL
            if state.timers + 2 * starts + 4 * len(queue.groups) > len(tuner.log):
                return FULL
            if state.record and (state.marks + 3 * starts > len(log.marks) or state.ids + state.gpus > len(log.ids)):
                return FULL
            expired = next_events(state, jobs, queue, gpus, events, log)
            if expired < 0:
                return STUCK
            state.accepted = state.started = 0
            state.pass_lease_s = state.lease_s
            if state.offer_s < np.inf:
                end_s = np.ceil((state.now + state.lease_s - _TICK_S) / state.offer_s) * state.offer_s
                state.pass_lease_s = end_s - state.now
            if expired > 0 or is_offer(state):
                offer(state, jobs, queue, gpus, tuner, log, expired)
            state.starting = 1
        while state.started < state.accepted:
            index = queue.lists[ACCEPTED, state.started]
            if not jobs[index].runs:
                queue.turns[index].since_s = state.now
            if not start(state, jobs, gpus, events, rates, log, index):
                return RATE_UNKNOWN
            if not state.pass_lease_s > _TICK_S:
                return LEASE_REFUSED
            state.started += 1
        call_s = next_call_s(state, queue, tuner)
        if call_s <= state.now + _TICK_S:
            return WAKE_REFUSED
        if call_s < np.inf:
            # The two numbers of an event matter for runs and leases alone.
            push(state, events, call_s, WAKE + state.levels, state.levels)
        state.starting = 0
        level = log.levels[state.levels]
        level.time_s, level.busy, level.running = state.now, state.gpus - state.free, state.running
        level.waiting = state.arrived - state.ended - state.running
        state.levels += 1
