"""Compiled pass of offers: delay scheduling, as `DelayPolicy` of `heuristics.dally.policy` decides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled
from .arrays import ACCEPTED, DUE
from .gpu_kernels import choose, free_tier, release, take
from .job_kernels import progress_s, stop
from .order_kernels import insert, place_of, precedes
from .tuner_kernels import note_wait, refresh

_TICKS_PER_S, _TICK_S = 2.0**20, 2.0**-20


@compiled(error_model="numpy")
def take_turn(state: Any, job: Any, turn: Any) -> None:
    """Set a job's place in the order of offers."""
    running_s, turn.held = 0.0, 0
    if job.runs:
        running_s, turn.held = progress_s(job, state.now), job.gang
    attained_s = job.run_s + running_s
    computed_s = attained_s - (job.exposed_s + running_s * job.exposed)
    turn.sensitivity = np.rint(computed_s / attained_s * _TICKS_PER_S) if attained_s > 0.0 else 0.0
    turn.since = np.rint(turn.since_s * _TICKS_PER_S)


@compiled(error_model="numpy")
def wait(state: Any, jobs: Any, queue: Any, index: int, since_s: float) -> None:
    """Insert a job into the order of the waiting ones."""
    turn, group = queue.turns[index], queue.groups[jobs[index].group]
    turn.since_s = since_s
    take_turn(state, jobs[index], turn)
    insert(queue.order, queue.turns, group.first, group.count, index)
    group.count += 1
    if since_s < group.oldest_s:
        group.oldest_s = since_s


@compiled(error_model="numpy")
def oldest_s(queue: Any, group: Any) -> float:
    """Return the earliest time since which a job of a group waits; infinity if none waits."""
    if np.isnan(group.oldest_s):
        group.oldest_s = np.inf
        for place in range(group.first, group.first + group.count):
            group.oldest_s = min(group.oldest_s, queue.turns[queue.order[place]].since_s)
    return float(group.oldest_s)


@compiled(error_model="numpy")
def accepts(state: Any, group: Any, tier: int, since_s: float) -> bool:
    """Return whether a job that waits since a time accepts GPUs of a tier."""
    delay_s = group.machine_s if tier == 1 else max(group.machine_s, group.rack_s)
    return bool(tier == 0 or (state.now - since_s) + _TICK_S >= delay_s)


@compiled(error_model="numpy")
def next_place(state: Any, queue: Any, group: Any) -> int:
    """Return the place of the next job of a group to be asked; the end of the group if there is none.

    Jobs that would not accept the free GPUs are left out; but where timers are to be refreshed, the first job asked
    refreshes them.
    """
    tier = free_tier(state, group.demand)
    if tier < 3 and (tier == 0 or group.stale):
        return int(group.cursor)
    if tier < 3 and accepts(state, group, tier, oldest_s(queue, group)):
        while group.cursor < group.count:
            index = queue.order[group.first + group.cursor]
            if accepts(state, group, tier, queue.turns[index].since_s):
                return int(group.cursor)
            group.cursor += 1
    return int(group.count)


@compiled(error_model="numpy")
def answer(state: Any, jobs: Any, queue: Any, gpus: Any, tuner: Any, index: int) -> bool:
    """Offer the free GPUs to a job, and return whether it accepts some."""
    job = jobs[index]
    group, tier, since_s, keeps = queue.groups[job.group], free_tier(state, job.gang), queue.turns[index].since_s, False
    if tier == 3:
        return False
    if job.runs:
        # The wait of a job that has just lost its GPUs begins now.
        since_s, keeps = state.now, state.keep != 0
        for place in range(job.first, job.first + job.gang):
            keeps = keeps and gpus.gpus[gpus.held[place].gpu].used == 0
    if not keeps:
        if tier > 0 and group.stale:
            refresh(state, tuner, queue.groups, job.group)
        if not accepts(state, group, tier, since_s):
            return False
        if tier < 2:
            note_wait(state, tuner, group, 2 * job.group + tier, state.now - since_s)
    if keeps and tier >= job.tier:
        for place in range(job.first, job.first + job.gang):
            gpus.held[place].chosen = gpus.held[place].gpu
    else:
        choose(state, gpus, job)
    take(state, gpus, job)
    queue.lists[ACCEPTED, state.accepted] = index
    state.accepted += 1
    return True


@compiled(error_model="numpy")
def offer(state: Any, jobs: Any, queue: Any, gpus: Any, tuner: Any, log: Any, expired: int) -> None:
    """Offer the free GPUs in order to waiting jobs and to those whose leases end, and stop those that lose theirs.

    GPUs only become fewer during a pass, so that of a group no job is asked whose timers refuse them.
    """
    groups, turns, order = queue.groups, queue.turns, queue.order
    for number in range(len(groups)):
        groups[number].cursor, groups[number].stale = 0, 1
    for count in range(expired):
        index = queue.lists[DUE, count]
        jobs[index].accepts = 0
        release(state, gpus, jobs[index])
        take_turn(state, jobs[index], turns[index])
        insert(order, turns, len(turns), count, index)
    asked = 0
    while state.free > 0:
        # Constants would have types of their own, for which numba compiles functions again.
        chosen: Any = np.int64(-1)
        place: Any = np.int64(-1)
        if asked < expired:
            chosen = order[len(turns) + asked]
        for each in range(len(groups)):
            if groups[each].demand > state.free:
                break
            if groups[each].cursor < groups[each].count:
                at = next_place(state, queue, groups[each])
                if at < groups[each].count:
                    index = order[groups[each].first + at]
                    if chosen < 0 or precedes(turns, index, chosen):
                        chosen, place = index, at
        if chosen < 0:
            break
        accepted, group = answer(state, jobs, queue, gpus, tuner, chosen), groups[jobs[chosen].group]
        if place < 0:
            asked += 1
            jobs[chosen].accepts = accepted
            # It may have changed the timers: the jobs of its group that come after it are asked anew.
            group.cursor = place_of(order, turns, group.first, group.count, chosen)
        elif accepted:
            group.count -= 1
            for each in range(group.first + place, group.first + group.count):
                order[each] = order[each + 1]
            if turns[chosen].since_s == group.oldest_s:
                group.oldest_s = np.nan
        else:
            group.cursor = place + 1
    for count in range(expired):
        index = queue.lists[DUE, count]
        job = jobs[index]
        keeps = job.accepts != 0
        for place in range(job.first, job.first + job.gang):
            keeps = keeps and gpus.held[place].chosen == gpus.held[place].gpu
        if not keeps:
            stop(state, jobs, gpus, log, index)
            if not job.accepts:
                wait(state, jobs, queue, index, state.now)


@compiled(error_model="numpy")
def timer_call_s(state: Any, queue: Any, tuner: Any) -> float:
    """Return when a timer lets a waiting job accept GPUs that are free; infinity if none does."""
    groups, found = queue.groups, np.inf
    while True:
        # Timers are refreshed in the order of the jobs, which is that of their log.
        first: Any = np.int64(-1)
        number: Any = np.int64(-1)
        for each in range(len(groups)):
            group = groups[each]
            if group.demand <= state.free and group.count > 0 and group.stale:
                index = queue.order[group.first]
                if first < 0 or precedes(queue.turns, index, first):
                    first, number = index, each
        if first < 0:
            break
        refresh(state, tuner, groups, number)
    for each in range(len(groups)):
        group = groups[each]
        if group.demand <= state.free and group.count > 0:
            on_rack = free_tier(state, group.demand) == 1
            delay_s = group.machine_s if on_rack else max(group.machine_s, group.rack_s)
            found = min(found, oldest_s(queue, group) + delay_s)
    return found
