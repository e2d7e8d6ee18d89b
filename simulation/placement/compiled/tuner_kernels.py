"""Compiled auto-tuner of delay timers; it adds in the order of `heuristics.dally.auto_tuner`."""

from __future__ import annotations

import math
from typing import Any

from ....formulations.compiled import compiled


@compiled(error_model="numpy")
def forget(state: Any, tuner: Any, row: int) -> None:
    """Drop the waits recorded too long ago."""
    history, waits = tuner.histories[row], tuner.waits
    while history.count > 0 and state.now - waits[row, history.head].time_s > state.history_s:
        history.head = (history.head + 1) & (waits.shape[1] - 1)
        history.count -= 1
        history.changed = 1


@compiled(error_model="numpy")
def note_wait(state: Any, tuner: Any, group: Any, row: int, wait_s: float) -> None:
    """Record the wait of a placed job of a group in the history of this row."""
    if not state.tuned or wait_s < state.least_wait_s:
        return
    # Timers that no job reads drop nothing.
    forget(state, tuner, row)
    history = tuner.histories[row]
    wait = tuner.waits[row, (history.head + history.count) & (tuner.waits.shape[1] - 1)]
    wait.time_s, wait.wait_s = state.now, wait_s
    history.count += 1
    history.changed = group.stale = 1
    state.longest = max(state.longest, history.count)


@compiled(error_model="numpy")
def set_timer(state: Any, tuner: Any, row: int) -> None:
    """Set the timer of a history after dropping the waits recorded too long ago."""
    forget(state, tuner, row)
    history, waits, last = tuner.histories[row], tuner.waits, tuner.waits.shape[1] - 1
    if not history.changed:
        return
    history.changed = 0
    count, head = history.count, history.head
    if count == 0:
        history.timer_s = history.empty_s
    else:
        total, squares, divisor = 0.0, 0.0, count - state.ddof
        for place in range(head, head + count):
            total += waits[row, place & last].wait_s
        mean = total / count
        for place in range(head, head + count):
            deviation_s = waits[row, place & last].wait_s - mean
            squares += deviation_s * deviation_s
        timer_s = mean + 2.0 * math.sqrt(squares / divisor if divisor > 0 else 0.0)
        history.timer_s = min(max(timer_s, history.floor_s), history.cap_s)
    if history.logged_s != history.timer_s:
        history.logged_s = history.timer_s
        change = tuner.log[state.timers]
        change.time_s, change.timer_s = state.now, history.timer_s
        change.tier, change.demand = history.tier, history.demand
        state.timers += 1


@compiled(error_model="numpy")
def refresh(state: Any, tuner: Any, groups: Any, number: int) -> None:
    """Refresh the timers of a group at this time."""
    group = groups[number]
    group.stale = 0
    # A job wider than a machine or a rack waits for none: its timers are those set at first, 0.
    if state.tuned and group.demand <= state.per_machine * state.per_rack:
        if group.demand <= state.per_machine:
            set_timer(state, tuner, 2 * number)
            group.machine_s = tuner.histories[2 * number].timer_s
        set_timer(state, tuner, 2 * number + 1)
        group.rack_s = tuner.histories[2 * number + 1].timer_s
