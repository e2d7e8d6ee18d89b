"""Compiled choice of free GPUs by the rule "consolidated" of `Occupancy.find`."""

from __future__ import annotations

from typing import Any

import numpy as np

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
def release(state: Any, gpus: Any, job: Any) -> None:
    """Mark the GPUs that a job holds as free."""
    for place in range(job.first, job.first + job.gang):
        gpu = gpus.held[place].gpu
        machine = gpu // state.per_machine
        rack = machine // state.per_rack
        gpus.gpus[gpu].used = 0
        gpus.machines[machine].free += 1
        gpus.racks[rack].free += 1
        state.most_on_machine = max(state.most_on_machine, gpus.machines[machine].free)
        state.most_in_rack = max(state.most_in_rack, gpus.racks[rack].free)
    state.free += job.gang


@compiled(error_model="numpy")
def take(state: Any, gpus: Any, job: Any) -> None:
    """Mark the GPUs that a job accepts as used."""
    for place in range(job.first, job.first + job.gang):
        gpu = gpus.held[place].chosen
        machine = gpu // state.per_machine
        gpus.gpus[gpu].used = 1
        gpus.machines[machine].free -= 1
        gpus.racks[machine // state.per_rack].free -= 1
    state.free -= job.gang
    most = 0
    for machine in range(len(gpus.machines)):
        most = max(most, gpus.machines[machine].free)
    state.most_on_machine = most
    most = 0
    for rack in range(len(gpus.racks)):
        most = max(most, gpus.racks[rack].free)
    state.most_in_rack = most


@compiled(error_model="numpy")
def best_fit(parts: Any, first: int, end: int, count: int) -> int:
    """Return the first of those with the fewest free GPUs that suffice, or else of those with the most.

    Those that have a share already are left out.
    """
    fitting, largest = -1, -1
    for each in range(first, end):
        part = parts[each]
        if part.share == 0:
            if part.free >= count and (fitting < 0 or part.free < parts[fitting].free):
                fitting = each
            if largest < 0 or part.free > parts[largest].free:
                largest = each
    return fitting if fitting >= 0 else largest


@compiled(error_model="numpy")
def choose(state: Any, gpus: Any, job: Any) -> None:
    """Choose free GPUs for a job; they suffice."""
    # A constant would have a type of its own, for which numba compiles a function again.
    none: Any = np.int64(0)
    machine = best_fit(gpus.machines, none, len(gpus.machines), job.gang)
    if gpus.machines[machine].free >= job.gang:
        gpus.machines[machine].share = job.gang
    else:
        rest = job.gang
        while rest > 0:
            # If no rack suffices for all GPUs, the racks with the most free GPUs come first, the last of them too.
            rack = best_fit(gpus.racks, none, len(gpus.racks), job.gang)
            inside = min(rest, gpus.racks[rack].free)
            gpus.racks[rack].share = inside
            rest -= inside
            while inside > 0:
                begin = rack * state.per_rack
                part = gpus.machines[best_fit(gpus.machines, begin, begin + state.per_rack, inside)]
                part.share = min(inside, part.free)
                inside -= part.share
    # The shares become GPUs in ascending order.
    place, last = job.first, -1
    job.machines = job.racks = 0
    for machine in range(len(gpus.machines)):
        part = gpus.machines[machine]
        if part.share > 0:
            job.machines += 1
            rack = machine // state.per_rack
            if rack != last:
                last = rack
                job.racks += 1
                gpus.racks[rack].share = 0
            gpu = machine * state.per_machine
            while part.share > 0:
                if gpus.gpus[gpu].used == 0:
                    gpus.held[place].chosen = gpu
                    place += 1
                    part.share -= 1
                gpu += 1
    job.tier = 0 if job.machines == 1 else 1 if job.racks == 1 else 2
