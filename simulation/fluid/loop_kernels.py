"""Compiled event loop of the fluid engine, and the predictions inside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formulations.compiled import compiled
from .allocation_kernels import by_queue, fair_share, in_order, tournament, worst_first
from .arrays import CIRCLE, MEMBERS, PENDING, SERVED
from .kernels import advance, begin_turns, hold, join, keep_least, leave, next_end, next_turn, on_turn, ticks

_END, _TIMER, _ARRIVAL = range(3)
_PAUSED, _ENDED, _STUCK = range(3)
_NEAR_S = 1e-7
_LAS, _FS, _AFS, _AFS_L, _THEMIS, _WFQ, _WFQ_INTEGRAL = range(3, 10)


@compiled(error_model="numpy")
def reallocate(
    jobs: Any, order: Any, queues: Any, sums: Any, state: Any, turns: Any, lists: Any, table: Any, caps: Any,
    changes: Any,
) -> None:  # fmt: skip
    """Divide the GPUs by the policy's rule, and set the timer."""
    engine = state[0]
    code = engine.code
    engine.timer, engine.kept = np.inf, 0
    if code <= _LAS:
        count = in_order(jobs, order, queues, state, table, lists)
    elif code == _FS:
        count = fair_share(jobs, order, queues, state, lists)
    elif code in (_AFS, _AFS_L):
        count = tournament(jobs, order, queues, state, table, lists)
    elif code == _THEMIS:
        count = worst_first(jobs, order, queues, state, lists)
        if engine.present > 0:
            engine.timer = engine.now + ticks(state, engine.timer_s)
    elif code == _WFQ or engine.event != _TIMER:
        count = by_queue(jobs, order, queues, sums, state, lists, caps)
    else:
        count = 0
    if code == _WFQ_INTEGRAL:
        if engine.event == _TIMER:
            next_turn(jobs, state, turns, lists)
        else:
            begin_turns(jobs, state, turns, lists, count)
        count = on_turn(jobs, state, turns, lists)
        engine.timer = engine.now + ticks(state, engine.timer_s * engine.turn)
    if engine.least:
        count = keep_least(jobs, order, queues, state, lists, count)
    hold(jobs, state, lists, table, count, changes)


@compiled(error_model="numpy")
def predict(
    index: int,
    jobs: Any, order: Any, queues: Any, sums: Any, state: Any, turns: Any, lists: Any,
    copied_jobs: Any, copied_order: Any, copied_queues: Any, copied_sums: Any, copied_state: Any, copied_turns: Any,
    copied_lists: Any, table: Any, caps: Any, changes: Any,
) -> float:  # fmt: skip
    """Play the present jobs out on copies of the arrays until one ends; return its end in seconds, nan without one."""
    engine = state[0]
    copied_state[0] = engine
    copied_state[0].predicts = 1
    for number in range(len(queues)):
        copied_queues[number] = queues[number]
        for place in range(queues[number].head, queues[number].tail):
            other = order[number, place]
            copied_order[number, place] = other
            copied_jobs[other] = jobs[other]
            job = copied_jobs[other]
            job.work_s = job.known_s = job.work_s * job.factor
            job.factor = 1.0
            if engine.code == _LAS:
                job.key = 0.0
        for level in range(sums.shape[1]):
            copied_sums[number, level] = sums[number, level]
    for place in range(engine.served):
        copied_lists[SERVED, place] = lists[SERVED, place]
    for place in range(engine.pending):
        copied_lists[PENDING, place] = lists[PENDING, place]
    for place in range(engine.circle):
        copied_lists[CIRCLE, place] = lists[CIRCLE, place]
    for place in range(engine.members):
        copied_lists[MEMBERS, place] = lists[MEMBERS, place]
    for gpu in range(engine.turns):
        copied_turns[gpu] = turns[gpu]
    while True:
        end, ending = next_end(copied_jobs, copied_state, copied_lists)
        if end <= copied_state[0].timer + _NEAR_S * copied_state[0].ticks_per_s:
            if end == np.inf:
                return np.nan
            advance(copied_jobs, copied_state, copied_lists, end, _END)
            leave(
                copied_jobs, copied_order, copied_queues, copied_sums, copied_state, copied_lists, caps, ending
            )  # fmt: skip
            if ending == index:
                return float(copied_jobs[index].end_s)
        else:
            advance(copied_jobs, copied_state, copied_lists, copied_state[0].timer, _TIMER)
        reallocate(
            copied_jobs, copied_order, copied_queues, copied_sums, copied_state, copied_turns, copied_lists, table,
            caps, changes,
        )  # fmt: skip


@compiled(error_model="numpy")
def run_events(
    jobs: Any, order: Any, queues: Any, sums: Any, state: Any, turns: Any, lists: Any,
    copied_jobs: Any, copied_order: Any, copied_queues: Any, copied_sums: Any, copied_state: Any, copied_turns: Any,
    copied_lists: Any, table: Any, caps: Any, changes: Any, no_changes: Any, levels: Any, most: int, predicts: bool,
) -> int:  # fmt: skip
    """Process up to `most` events, while there is space to record them; return the reason of the return."""
    engine = state[0]
    for _ in range(most):
        if engine.ended == len(jobs):
            return _ENDED
        if len(changes) > 0 and engine.changes + 2 * engine.present + 2 > len(changes):
            return _PAUSED
        end, ending = next_end(jobs, state, lists)
        arrival = jobs[engine.arrived].arrival if engine.arrived < len(jobs) else np.inf
        if end == np.inf and engine.timer == np.inf and arrival == np.inf:
            return _STUCK
        timer, near = engine.timer, _NEAR_S * engine.ticks_per_s
        if arrival - near <= end <= arrival + near:
            end = arrival
        if end <= timer + near:
            timer = np.inf
        elif arrival - near <= timer <= arrival + near:
            timer = arrival
        if end <= timer and end <= arrival:
            advance(jobs, state, lists, end, _END)
            leave(jobs, order, queues, sums, state, lists, caps, ending)
        elif timer <= arrival:
            advance(jobs, state, lists, timer, _TIMER)
        else:
            advance(jobs, state, lists, arrival, _ARRIVAL)
            join(jobs, order, queues, sums, state, table, caps)
        reallocate(jobs, order, queues, sums, state, turns, lists, table, caps, changes)
        level = levels[engine.levels]
        level.time_s, level.busy = engine.now / engine.ticks_per_s, 0.0
        for place in range(engine.served):
            level.busy += jobs[lists[SERVED, place]].gpus
        level.running, level.waiting = engine.served, engine.present - engine.served
        engine.levels += 1
        if predicts and engine.event == _ARRIVAL:
            index = engine.arrived - 1
            if not np.isnan(jobs[index].least):
                # The jobs of its queue up to this one, one after another at the least speed of the guarantee.
                needs_s = 0.0
                number = jobs[index].queue
                for place in range(queues[number].head, queues[number].tail):
                    ahead = jobs[order[number, place]]
                    needs_s += ahead.work_s * ahead.factor / ahead.least if ahead.least > 0.0 else np.inf
                jobs[index].bound_s = engine.now / engine.ticks_per_s + needs_s
            jobs[index].predicted_s = predict(
                index, jobs, order, queues, sums, state, turns, lists,
                copied_jobs, copied_order, copied_queues, copied_sums, copied_state, copied_turns, copied_lists,
                table, caps, no_changes,
            )  # fmt: skip
    return _PAUSED
