"""Compiled auto-tuner of delay timers; it adds in the order of `heuristics.dally.auto_tuner`."""

from __future__ import annotations

import math
from typing import Any

from ....formulations.compiled import compiled

_FLOOR, _CAP, _EMPTY = range(3)


@compiled(error_model="numpy")
def note_wait(arrays: Any, group: int, tier: int, wait_s: float) -> None:
    """Record the wait of a job that was placed at a tier."""
    state = arrays.state[0]
    if not state.tuned or wait_s < state.least_wait_s:
        return
    row = 2 * group + tier
    waits = arrays.lists[row]
    wait = arrays.waits[row, (waits.head + waits.count) & (arrays.waits.shape[1] - 1)]
    wait.time_s, wait.wait_s = state.now, wait_s
    waits.count += 1
    waits.changed = arrays.groups[group].stale = 1
    state.longest = max(state.longest, waits.count)


@compiled(error_model="numpy")
def timer(arrays: Any, group: int, tier: int) -> float:
    """Return a timer after dropping the waits recorded longer ago than the history."""
    state, row = arrays.state[0], 2 * group + tier
    waits, table = arrays.lists[row], arrays.waits
    last = table.shape[1] - 1
    while waits.count > 0 and state.now - table[row, waits.head].time_s > state.history_s:
        waits.head = (waits.head + 1) & last
        waits.count -= 1
        waits.changed = 1
    if not waits.changed:
        return float(waits.timer_s)
    waits.changed = 0
    if waits.count == 0:
        waits.timer_s = arrays.bounds[_EMPTY, tier]
    else:
        total = 0.0
        for place in range(waits.head, waits.head + waits.count):
            total += table[row, place & last].wait_s
        mean = total / waits.count
        divisor, variance = waits.count - state.ddof, 0.0
        if divisor > 0:
            for place in range(waits.head, waits.head + waits.count):
                wait_s = table[row, place & last].wait_s
                variance += (wait_s - mean) * (wait_s - mean)
            variance /= divisor
        timer_s = mean + 2.0 * math.sqrt(variance)
        waits.timer_s = min(max(timer_s, arrays.bounds[_FLOOR, tier]), arrays.bounds[_CAP, tier])
    if waits.logged_s != waits.timer_s:
        waits.logged_s = waits.timer_s
        change = arrays.timers[state.timers]
        change.time_s, change.timer_s = state.now, waits.timer_s
        change.tier, change.demand = tier, arrays.groups[group].demand
        state.timers += 1
    return float(waits.timer_s)


@compiled(error_model="numpy")
def refresh(arrays: Any, number: int) -> None:
    """Refresh the timers of a group at this time."""
    state, group = arrays.state[0], arrays.groups[number]
    group.stale = 0
    # A job wider than a rack waits for no placement: its timers are those set at first, 0.
    if state.tuned and group.demand <= state.size * state.per_rack:
        machine_s, group.rack_s = timer(arrays, number, 0), timer(arrays, number, 1)
        group.machine_s = 0.0 if group.demand > state.size else machine_s
