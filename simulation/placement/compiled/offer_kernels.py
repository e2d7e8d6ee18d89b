"""Compiled pass of offers: delay scheduling, as `DelayPolicy` of `heuristics.dally.policy` decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled
from .gpu_kernels import choose, free_tier, release, take
from .job_kernels import progress_s, stop
from .order_kernels import insert, place_of, precedes
from .tuner_kernels import note_wait, refresh

#: Ticks in a second.
TICKS = 2.0**20
_TICK_S = 1.0 / TICKS
#: Answers of a job whose lease ends.
NONE, ELSEWHERE, KEEPS = range(3)


@compiled(error_model="numpy")
def take_turn(arrays: Any, index: int, held: int) -> None:
    """Set a job's place in the order of offers."""
    job, turn = arrays.jobs[index], arrays.turns[index]
    running_s = progress_s(job, arrays.state[0].now) if job.runs else 0.0
    attained_s = job.run_s + running_s
    computed_s = attained_s - (job.exposed_s + running_s * job.exposed)
    turn.sensitivity = np.rint(computed_s / attained_s * TICKS) if attained_s > 0.0 else 0.0
    turn.since, turn.held = np.rint(turn.since_s * TICKS), held


@compiled(error_model="numpy")
def wait(arrays: Any, index: int) -> None:
    """Insert a job into the order of the waiting ones."""
    take_turn(arrays, index, 0)
    group = arrays.groups[arrays.jobs[index].group]
    insert(arrays.order, arrays.turns, group.first, group.count, index)
    group.count += 1
    if arrays.turns[index].since_s < group.oldest_s:
        group.oldest_s = arrays.turns[index].since_s


@compiled(error_model="numpy")
def oldest_s(arrays: Any, group: Any) -> float:
    """Return the earliest time since which a job of a group waits; infinity if none waits."""
    if group.oldest_s != group.oldest_s:
        group.oldest_s = np.inf
        for place in range(group.first, group.first + group.count):
            group.oldest_s = min(group.oldest_s, arrays.turns[arrays.order[place]].since_s)
    return float(group.oldest_s)


@compiled(error_model="numpy")
def accepts(state: Any, group: Any, tier: int, wait_s: float) -> bool:
    """Return whether a job accepts GPUs of a tier after a wait."""
    delay_s = 0.0 if tier == 0 else group.machine_s if tier == 1 else max(group.machine_s, group.rack_s)
    return bool(tier == 0 or wait_s + _TICK_S >= delay_s)


@compiled(error_model="numpy")
def next_place(arrays: Any, group: Any) -> int:
    """Return the place of the next job of a group whose answer is to be found; the end of the group if there is none.

    The others do not accept the GPUs that are free: these only become fewer during a pass.
    """
    state = arrays.state[0]
    tier = free_tier(state, group.demand)
    if tier == 3:
        return int(group.count)
    if tier == 0 or group.stale:
        return int(group.cursor)
    if accepts(state, group, tier, state.now - oldest_s(arrays, group)):
        while group.cursor < group.count:
            index = arrays.order[group.first + group.cursor]
            if accepts(state, group, tier, state.now - arrays.turns[index].since_s):
                return int(group.cursor)
            group.cursor += 1
    return int(group.count)


@compiled(error_model="numpy")
def accept(arrays: Any, index: int) -> None:
    """Note that a job accepts the chosen GPUs."""
    state, job = arrays.state[0], arrays.jobs[index]
    take(arrays, arrays.chosen, job.first, job.gang)
    arrays.accepted[state.accepted] = index
    state.accepted += 1


@compiled(error_model="numpy")
def ask_expired(arrays: Any, index: int) -> None:
    """Offer GPUs to a job whose lease ends."""
    state, job = arrays.state[0], arrays.jobs[index]
    number, first, end = job.group, job.first, job.first + job.gang
    group, tier = arrays.groups[number], free_tier(state, job.gang)
    if tier == 3:
        return
    unused = state.keep != 0
    for place in range(first, end):
        unused = unused and arrays.used[arrays.held[place]] == 0
    if not unused:
        if tier > 0 and group.stale:
            refresh(arrays, number)
        # Its wait begins now.
        if not accepts(state, group, tier, 0.0):
            return
        if tier < 2:
            note_wait(arrays, number, tier, 0.0)
            # Other timers: those of its demand after it are asked one by one.
            group.cursor = place_of(arrays.order, arrays.turns, group.first, group.count, index)
    if unused and tier >= job.tier:
        for place in range(first, end):
            arrays.chosen[place] = arrays.held[place]
    else:
        choose(arrays, job)
    accept(arrays, index)
    job.answer = KEEPS
    for place in range(first, end):
        if arrays.chosen[place] != arrays.held[place]:
            job.answer = ELSEWHERE


@compiled(error_model="numpy")
def ask_waiting(arrays: Any, number: int, place: int) -> None:
    """Offer GPUs to a waiting job."""
    state, group = arrays.state[0], arrays.groups[number]
    index = arrays.order[group.first + place]
    tier, wait_s = free_tier(state, group.demand), state.now - arrays.turns[index].since_s
    if tier > 0 and group.stale:
        refresh(arrays, number)
    if not accepts(state, group, tier, wait_s):
        group.cursor = place + 1
        return
    if tier < 2:
        note_wait(arrays, number, tier, wait_s)
    choose(arrays, arrays.jobs[index])
    accept(arrays, index)
    if arrays.turns[index].since_s == group.oldest_s:
        group.oldest_s = np.nan
    group.count -= 1
    for each in range(group.first + place, group.first + group.count):
        arrays.order[each] = arrays.order[each + 1]


@compiled(error_model="numpy")
def offer(arrays: Any, expired: int) -> None:
    """Offer the free GPUs to the waiting jobs and to those whose leases end, in order, and stop those that lose theirs."""
    state = arrays.state[0]
    for number in range(len(arrays.groups)):
        arrays.groups[number].cursor, arrays.groups[number].stale = 0, 1
    for count in range(expired):
        index = arrays.due[count]
        job = arrays.jobs[index]
        job.answer = NONE
        release(arrays, arrays.held, job.first, job.gang)
        take_turn(arrays, index, job.gang)
        insert(arrays.expired, arrays.turns, 0, count, index)
    asked = 0
    while state.free > 0:
        chosen, number, place = -1, -1, 0
        if asked < expired:
            chosen = arrays.expired[asked]
        for each in range(len(arrays.groups)):
            group = arrays.groups[each]
            if group.demand > state.free:
                break
            if group.cursor < group.count:
                at = next_place(arrays, group)
                if at < group.count:
                    index = arrays.order[group.first + at]
                    if chosen < 0 or precedes(arrays.turns, index, chosen):
                        chosen, number, place = index, each, at
        if chosen < 0:
            break
        if number >= 0:
            ask_waiting(arrays, number, place)
        else:
            ask_expired(arrays, chosen)
            asked += 1
    for count in range(expired):
        index = arrays.due[count]
        answer = arrays.jobs[index].answer
        if answer != KEEPS:
            stop(arrays, index)
            arrays.turns[index].since_s = state.now
            if answer == NONE:
                wait(arrays, index)


@compiled(error_model="numpy")
def timer_call_s(arrays: Any) -> float:
    """Return when a timer lets a waiting job accept GPUs that are free; infinity if none does."""
    state, found = arrays.state[0], np.inf
    while True:
        # Timers are refreshed in the order of the jobs, which is that of their log.
        first, number = -1, -1
        for each in range(len(arrays.groups)):
            group = arrays.groups[each]
            if group.demand <= state.free and group.count > 0 and group.stale:
                index = arrays.order[group.first]
                if first < 0 or precedes(arrays.turns, index, first):
                    first, number = index, each
        if first < 0:
            break
        refresh(arrays, number)
    for each in range(len(arrays.groups)):
        group = arrays.groups[each]
        if group.demand <= state.free and group.count > 0:
            rack = free_tier(state, group.demand) == 1
            delay_s = group.machine_s if rack else max(group.machine_s, group.rack_s)
            found = min(found, oldest_s(arrays, group) + delay_s)
    return found
