"""Compiled order of the waiting jobs, and heap of the events to come."""

from __future__ import annotations

from typing import Any

from ....formulations.compiled import compiled

#: Kinds of events in their order, times the largest number of jobs.
END, LEASE, WAKE = 0, 1 << 40, 2 << 40


@compiled(error_model="numpy")
def precedes(turns: Any, one: int, other: int) -> bool:
    """Return whether a job is offered GPUs before another."""
    mine, its = turns[one], turns[other]
    if mine.sensitivity != its.sensitivity:
        return bool(mine.sensitivity < its.sensitivity)
    if mine.held != its.held:
        return bool(mine.held < its.held)
    if mine.since != its.since:
        return bool(mine.since < its.since)
    return one < other


@compiled(error_model="numpy")
def place_of(order: Any, turns: Any, first: int, count: int, job: int) -> int:
    """Return how many of the jobs of a part of the order precede a job."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if precedes(turns, order[first + middle], job):
            low = middle + 1
        else:
            high = middle
    return low


@compiled(error_model="numpy")
def insert(order: Any, turns: Any, first: int, count: int, job: int) -> None:
    """Insert a job into a part of the order."""
    place = first + place_of(order, turns, first, count, job)
    for each in range(first + count, place, -1):
        order[each] = order[each - 1]
    order[place] = job


@compiled(error_model="numpy")
def is_stale(jobs: Any, event: Any) -> bool:
    """Return whether the run or the lease that ends has changed since the event was listed."""
    if event.code >= WAKE:
        return False
    if event.code >= LEASE:
        return bool(event.version != jobs[event.code - LEASE].lease)
    return bool(event.version != jobs[event.code].version)


@compiled(error_model="numpy")
def push(state: Any, events: Any, time_s: float, code: int, version: int) -> None:
    """Add an event to the heap."""
    place = state.events
    state.events += 1
    while place > 0:
        above = (place - 1) // 2
        event = events[above]
        if event.time_s < time_s or (event.time_s == time_s and event.code <= code):
            break
        events[place] = event
        place = above
    event = events[place]
    event.time_s, event.code, event.version = time_s, code, version


@compiled(error_model="numpy")
def pop(state: Any, events: Any) -> None:
    """Remove the first event from the heap."""
    state.events -= 1
    count = state.events
    last = events[count]
    place = 0
    while 2 * place + 1 < count:
        below = 2 * place + 1
        if below + 1 < count:
            left, right = events[below], events[below + 1]
            if right.time_s < left.time_s or (right.time_s == left.time_s and right.code < left.code):
                below += 1
        lower = events[below]
        if last.time_s < lower.time_s or (last.time_s == lower.time_s and last.code <= lower.code):
            break
        events[place] = lower
        place = below
    events[place] = last
