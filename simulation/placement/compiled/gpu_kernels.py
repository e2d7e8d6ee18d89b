"""Compiled choice of free GPUs by the rule "consolidated" of `Occupancy.find`."""

from __future__ import annotations

from typing import Any

from ....formulations.compiled import compiled


@compiled(error_model="numpy")
def free_tier(state: Any, demand: int) -> int:
    """Return the tier of the GPUs that would be chosen; 3 if fewer are free."""
    if demand <= state.most_on_machine:
        return 0
    if demand <= state.most_in_rack:
        return 1
    return 2 if demand <= state.free else 3


@compiled(error_model="numpy")
def release(arrays: Any, ids: Any, first: int, count: int) -> None:
    """Mark GPUs as free."""
    state = arrays.state[0]
    for place in range(first, first + count):
        gpu = ids[place]
        machine = gpu // state.size
        rack = machine // state.per_rack
        arrays.used[gpu] = 0
        arrays.machine_free[machine] += 1
        arrays.rack_free[rack] += 1
        state.most_on_machine = max(state.most_on_machine, arrays.machine_free[machine])
        state.most_in_rack = max(state.most_in_rack, arrays.rack_free[rack])
    state.free += count


@compiled(error_model="numpy")
def take(arrays: Any, ids: Any, first: int, count: int) -> None:
    """Mark GPUs as in use."""
    state = arrays.state[0]
    for place in range(first, first + count):
        gpu = ids[place]
        machine = gpu // state.size
        arrays.used[gpu] = 1
        arrays.machine_free[machine] -= 1
        arrays.rack_free[machine // state.per_rack] -= 1
    state.free -= count
    state.most_on_machine = state.most_in_rack = 0
    for machine in range(len(arrays.machine_free)):
        state.most_on_machine = max(state.most_on_machine, arrays.machine_free[machine])
    for rack in range(len(arrays.rack_free)):
        state.most_in_rack = max(state.most_in_rack, arrays.rack_free[rack])


@compiled(error_model="numpy")
def best_fit(free: Any, share: Any, first: int, end: int, count: int) -> int:
    """Return the first of those with the fewest free GPUs that suffice, or else of those with the most.

    Those that have a share already are left out.
    """
    fitting, largest = -1, -1
    for each in range(first, end):
        if share[each] == 0:
            if free[each] >= count and (fitting < 0 or free[each] < free[fitting]):
                fitting = each
            if largest < 0 or free[each] > free[largest]:
                largest = each
    return fitting if fitting >= 0 else largest


@compiled(error_model="numpy")
def choose(arrays: Any, job: Any) -> None:
    """Choose free GPUs for a job; they suffice."""
    state, share, demand = arrays.state[0], arrays.machine_share, job.gang
    machine = best_fit(arrays.machine_free, share, 0, len(share), demand)
    if arrays.machine_free[machine] >= demand:
        share[machine] = demand
    else:
        rest = demand
        while rest > 0:
            # If no rack suffices for all GPUs, the racks with the most free GPUs come first, the last of them too.
            rack = best_fit(arrays.rack_free, arrays.rack_share, 0, len(arrays.rack_share), demand)
            inside = min(rest, arrays.rack_free[rack])
            arrays.rack_share[rack] = inside
            rest -= inside
            while inside > 0:
                begin = rack * state.per_rack
                machine = best_fit(arrays.machine_free, share, begin, begin + state.per_rack, inside)
                share[machine] = min(inside, arrays.machine_free[machine])
                inside -= share[machine]
    # The shares become GPUs in ascending order.
    place, job.machines, job.racks, last = job.first, 0, 0, -1
    for machine in range(len(share)):
        if share[machine] > 0:
            job.machines += 1
            if machine // state.per_rack != last:
                last = machine // state.per_rack
                job.racks += 1
                arrays.rack_share[last] = 0
            gpu = machine * state.size
            while share[machine] > 0:
                if arrays.used[gpu] == 0:
                    arrays.chosen[place] = gpu
                    place += 1
                    share[machine] -= 1
                gpu += 1
    job.tier = 0 if job.machines == 1 else 1 if job.racks == 1 else 2
