"""Compiled steps of the fluid engine: next end, progress, arrivals, ends, turns, least GPUs, and changes of GPUs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...formulations.compiled import compiled
from .allocation_kernels import speed
from .arrays import CHOSEN, CIRCLE, MEMBERS, PENDING, SERVED

_SRSF, _SRTF, _LAS = 1, 2, 3
_CUT_GPUS = 1e-9
# Shares of a turn and fractions of GPUs that count as none, and what fractions may miss of a whole GPU.
_SAME = 1e-9
_SLACK_GPUS = 1e-6


@compiled(error_model="numpy")
def ticks(state: Any, seconds: float) -> float:
    """Return seconds in ticks of the clock; see `Clock.ticks`."""
    if state[0].microseconds == 0 or np.isinf(seconds):
        return seconds
    whole = np.trunc(seconds)
    return float(whole * 1e6 + np.rint((seconds - whole) * 1e6))


@compiled(error_model="numpy")
def next_end(jobs: Any, state: Any, lists: Any) -> Any:
    """Return the ticks of the next end, and the job; -1 if no job ends."""
    engine = state[0]
    # In an order by key the first in service ends first; else the first to arrive.
    by_rank = engine.code > _LAS
    first, ending = np.inf, -1
    for place in range(engine.pending):
        if ending < 0 or lists[PENDING, place] < ending:
            first, ending = engine.now, lists[PENDING, place]
    for place in range(engine.served):
        job = jobs[lists[SERVED, place]]
        if job.work_s <= job.done_s:
            time = engine.now
        elif job.rate > 0.0:
            needs_s = job.pause_s + job.work_s / job.rate
            time = max(engine.now, engine.now + (ticks(state, needs_s) if engine.microseconds else needs_s))
        else:
            continue
        if time < first or (by_rank and time == first and lists[SERVED, place] < ending):
            first, ending = time, lists[SERVED, place]
    return first, ending


@compiled(error_model="numpy")
def advance(jobs: Any, state: Any, lists: Any, to: float, event: int) -> None:
    """Let all jobs run until an event."""
    engine = state[0]
    span_s, records = (to - engine.now) / engine.ticks_per_s, not engine.predicts
    for place in range(engine.served):
        job = jobs[lists[SERVED, place]]
        ran_s = span_s
        if job.pause_s > 0.0:
            ran_s -= min(span_s, job.pause_s)
            job.pause_s -= min(span_s, job.pause_s)
        job.work_s -= job.rate * ran_s
        if records:  # a prediction needs none
            job.run_s += ran_s
            job.gpu_s += job.gpus * ran_s
    engine.seen += engine.present
    engine.events += 1
    engine.seen_s += engine.present * span_s
    engine.now, engine.event = to, event


@compiled(error_model="numpy")
def without(lists: Any, row: int, count: int, job: int) -> int:
    """Take a job out of a row of the lists, if it is there; return the length that is left."""
    place = 0
    while place < count and lists[row, place] != job:
        place += 1
    for later in range(place + 1, count):
        lists[row, later - 1] = lists[row, later]
    return count - 1 if place < count else count


@compiled(error_model="numpy")
def leave(jobs: Any, order: Any, queues: Any, sums: Any, state: Any, lists: Any, caps: Any, ending: int) -> None:
    """Take a job that ends out of all lists, and record its end."""
    engine, job = state[0], jobs[ending]
    queue = queues[job.queue]
    place = queue.head
    while order[job.queue, place] != ending:
        place += 1
    if place - queue.head < queue.full:
        queue.full -= 1
        queue.held -= job.gpus
    if place - queue.head < engine.prefix:
        engine.prefix -= 1
    for at in range(place, queue.head, -1):
        order[job.queue, at] = order[job.queue, at - 1]
    queue.head += 1
    queue.demand -= job.max_gpus
    for level in range(sums.shape[1]):
        sums[job.queue, level] -= caps[job.curve, level]
    engine.served = without(lists, SERVED, engine.served, ending)
    engine.pending = without(lists, PENDING, engine.pending, ending)
    engine.present -= 1
    engine.ended += 1
    job.end_s = engine.now / engine.ticks_per_s
    job.contention = (engine.seen - job.seen) / (engine.events - job.events)
    span_s = (engine.now - job.arrival) / engine.ticks_per_s
    job.mean_contention = max(1.0, (engine.seen_s - job.seen_s) / span_s) if span_s > 0.0 else 1.0


@compiled(error_model="numpy")
def join(jobs: Any, order: Any, queues: Any, sums: Any, state: Any, table: Any, caps: Any) -> None:
    """Let the next job arrive."""
    engine = state[0]
    index = engine.arrived
    job = jobs[index]
    queue = queues[job.queue]
    order[job.queue, queue.tail] = index
    queue.tail += 1
    queue.demand += job.max_gpus
    for level in range(sums.shape[1]):
        sums[job.queue, level] += caps[job.curve, level]
    engine.arrived += 1
    engine.present += 1
    if engine.code == _SRSF or engine.code == _SRTF:
        # The operations of `in_order`, so that equal keys are equal to the last bit.
        time_s = job.work_s * job.factor / table[job.first + job.max_gpus]
        job.key = job.max_gpus * time_s if engine.code == _SRSF else time_s
    # Its own arrival counts as an event with all jobs present.
    job.seen, job.events, job.seen_s = engine.seen - engine.present, engine.events - 1, engine.seen_s


@compiled(error_model="numpy")
def begin_turns(jobs: Any, state: Any, turns: Any, lists: Any, count: int) -> None:
    """Let the whole GPUs of the fractions begin to go round; see `Rotation`. `a` is a fraction, `b` a whole part."""
    engine = state[0]
    size, length = 0, 0.0
    for place in range(count):
        job = jobs[lists[CHOSEN, place]]
        job.b = math.floor(job.given + _SAME)
        job.a = job.given - job.b
        lists[MEMBERS, place] = lists[CHOSEN, place]
        if job.a > _SAME:
            lists[CIRCLE, size] = lists[CHOSEN, place]
            size += 1
            length += job.a
    if size > 1:
        first = lists[CIRCLE, 0]
        for place in range(size - 1):
            lists[CIRCLE, place] = lists[CIRCLE, place + 1]
        lists[CIRCLE, size - 1] = first
    whole_gpus = math.floor(length + _SLACK_GPUS)
    for gpu in range(whole_gpus):
        at, end, place = gpu * (length / whole_gpus), jobs[lists[CIRCLE, 0]].a, 0
        while end <= at + _SAME and place + 1 < size:
            place += 1
            end += jobs[lists[CIRCLE, place]].a
        turns[gpu].place, turns[gpu].left = place, end - at
    engine.circle, engine.turns, engine.members = size, whole_gpus, count


@compiled(error_model="numpy")
def next_turn(jobs: Any, state: Any, turns: Any, lists: Any) -> None:
    """Move all GPUs that go round to the end of the turn that ends first."""
    engine = state[0]
    passed = np.inf
    for gpu in range(engine.turns):
        passed = min(passed, turns[gpu].left)
    for gpu in range(engine.turns):
        turns[gpu].left -= passed
        if turns[gpu].left <= _SAME:
            turns[gpu].place = (turns[gpu].place + 1) % engine.circle
            turns[gpu].left = jobs[lists[CIRCLE, turns[gpu].place]].a


@compiled(error_model="numpy")
def on_turn(jobs: Any, state: Any, turns: Any, lists: Any) -> int:
    """Give each job its whole part, and one GPU to the jobs on turn; set the time to the next turn, in quanta."""
    engine = state[0]
    for place in range(engine.members):
        jobs[lists[MEMBERS, place]].given = jobs[lists[MEMBERS, place]].b
    first = np.inf
    for gpu in range(engine.turns):
        job = jobs[lists[CIRCLE, turns[gpu].place]]
        job.given = job.b + 1.0
        first = min(first, turns[gpu].left)
    engine.turn = first if engine.circle > 1 else np.inf
    count = 0
    for place in range(engine.members):
        if jobs[lists[MEMBERS, place]].given > 0.0:
            lists[CHOSEN, count] = lists[MEMBERS, place]
            count += 1
    return count


@compiled(error_model="numpy")
def keep_least(jobs: Any, order: Any, queues: Any, state: Any, lists: Any, count: int) -> int:
    """Take the GPUs of jobs that were given too few to run, and give them in order to jobs that can use them.

    The order is that of the list under the policies that sort it, and else that of arrival.
    """
    engine, freed = state[0], 0.0
    for place in range(count):
        job = jobs[lists[CHOSEN, place]]
        if job.given < job.min_gpus - _CUT_GPUS:
            freed += job.given
            job.given = 0.0
    if freed == 0.0:
        return count
    sorts, last = engine.code <= _LAS, -1
    while freed > _CUT_GPUS:
        first, found = -1, -1
        for number in range(len(queues)):
            for place in range(queues[number].head, queues[number].tail):
                job = jobs[order[number, place]]
                rank = place if sorts else order[number, place]
                more = min(freed, job.max_gpus - job.given)
                able = more > _CUT_GPUS and job.given + more >= job.min_gpus - _CUT_GPUS
                if able and rank > last and (found < 0 or rank < first):
                    first, found = rank, order[number, place]
        if found < 0:
            break
        more = min(freed, jobs[found].max_gpus - jobs[found].given)
        # The same sum in another order must not count as another number of GPUs.
        jobs[found].given = np.rint((jobs[found].given + more) * 1e9) / 1e9
        freed -= more
        last = first
    count = 0
    for number in range(len(queues)):
        for place in range(queues[number].head, queues[number].tail):
            if jobs[order[number, place]].given > 0.0:
                lists[CHOSEN, count] = order[number, place]
                count += 1
                engine.prefix = place + 1 - queues[number].head
    return count


@compiled(error_model="numpy")
def hold(jobs: Any, state: Any, lists: Any, table: Any, count: int, changes: Any) -> None:
    """Let the chosen jobs hold the GPUs given to them, and all others none."""
    engine = state[0]
    time_s = engine.now / engine.ticks_per_s
    for place in range(engine.kept, engine.served):
        index = lists[SERVED, place]
        job = jobs[index]
        if job.given == job.gpus:
            continue
        if job.given == 0.0:
            job.preemptions += 1
            job.gpus = job.rate = 0.0
            if job.work_s <= job.done_s:
                lists[PENDING, engine.pending] = index
                engine.pending += 1
        else:
            if job.given < job.gpus - _CUT_GPUS:
                job.cuts += 1
            job.gpus, job.rate = job.given, speed(job, table, job.given)
        if len(changes) > 0:
            changes[engine.changes].job, changes[engine.changes].time_s = index, time_s
            changes[engine.changes].gpus = job.gpus
            engine.changes += 1
    for place in range(engine.kept, count):
        index = lists[CHOSEN, place]
        job = jobs[index]
        if job.gpus == 0.0:
            if np.isnan(job.start_s):
                job.start_s = time_s
            else:
                job.restarts += 1
                job.pause_s = engine.preemption_s
            job.gpus, job.rate = job.given, speed(job, table, job.given)
            if len(changes) > 0:
                changes[engine.changes].job, changes[engine.changes].time_s = index, time_s
                changes[engine.changes].gpus = job.gpus
                engine.changes += 1
        lists[SERVED, place] = index
        job.given = 0.0
    engine.served = count
