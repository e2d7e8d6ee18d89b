"""Compiled loops that schedule gangs: least loaded rounds by job, jobs by round, and runs without preemption."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled


@compiled()
def dealt(order: Any, counts: Any, gang_gpus: Any, gpus: int, rounds: int) -> Any:
    """Give each job, in `order`, its counts[j] least loaded rounds of the first `rounds`; ties go to the earlier round.

    Returns the rounds of all jobs, one job after another in `order`; an empty array if one does not fit.
    """
    total = 0
    for j in order:
        total += counts[j]
    out = np.empty(total, np.int64)
    load = np.zeros(rounds, np.int64)
    by_load = np.arange(rounds)  # sorted by load, then by round
    taken = np.empty(rounds, np.int64)
    filled = 0
    for j in order:
        n, gang = counts[j], gang_gpus[j]
        if n == 0:
            continue
        if n > rounds or load[by_load[n - 1]] + gang > gpus:
            return np.empty(0, np.int64)
        for i in range(n):
            t = by_load[i]
            load[t] += gang
            taken[i] = t
            out[filled] = t
            filled += 1
        # Merge the rounds taken, which are still sorted, with the rounds after them.
        place, a, b = 0, 0, n
        while a < n:
            if b < rounds and (
                load[by_load[b]] < load[taken[a]] or (load[by_load[b]] == load[taken[a]] and by_load[b] < taken[a])
            ):
                by_load[place] = by_load[b]
                b += 1
            else:
                by_load[place] = taken[a]
                a += 1
            place += 1
    return out


@compiled()
def filled(order: Any, counts: Any, gang_gpus: Any, gpus: int, rounds: int) -> Any:
    """Fill the rounds one by one: first the jobs without slack, then any job that fits, in `order`.

    Returns pairs (job, round), shape (2, grants); empty if the work does not end within `rounds`.
    """
    total = 0
    for j in order:
        total += counts[j]
    out = np.empty((2, total), np.int64)
    left = counts.copy()
    waiting = order.copy()
    count, done = len(waiting), 0
    runs = np.zeros(len(counts), np.bool_)
    for t in range(rounds):
        free = gpus
        for i in range(count):
            j = waiting[i]
            if left[j] == rounds - t:
                free -= gang_gpus[j]
                runs[j] = True
        if free < 0:
            return np.empty((2, 0), np.int64)
        for i in range(count):
            j = waiting[i]
            if not runs[j] and gang_gpus[j] <= free:
                free -= gang_gpus[j]
                runs[j] = True
            if free == 0:
                break
        kept = 0
        for i in range(count):
            j = waiting[i]
            if runs[j]:
                out[0, done], out[1, done] = j, t
                done += 1
                left[j] -= 1
                runs[j] = False
            if left[j] > 0:
                waiting[kept] = j
                kept += 1
        count = kept
        if count == 0:
            return out
    return np.empty((2, 0), np.int64) if count else out


@compiled()
def started(order: Any, counts: Any, gang_gpus: Any, gpus: int) -> Any:
    """Return the start of every job, shape (N,): when GPUs become free, the first jobs in `order` that fit begin."""
    starts = np.zeros(len(counts), np.int64)
    waiting = order.copy()
    running = np.empty(len(counts), np.int64)
    count, active, free, now = len(waiting), 0, gpus, 0
    while count:
        kept = 0
        for i in range(count):
            j = waiting[i]
            if gang_gpus[j] <= free and counts[j] > 0:
                starts[j] = now
                free -= gang_gpus[j]
                running[active] = j
                active += 1
            elif counts[j] > 0:
                waiting[kept] = j
                kept += 1
        count = kept
        if not active:
            break
        now = starts[running[0]] + counts[running[0]]
        for i in range(1, active):
            now = min(now, starts[running[i]] + counts[running[i]])
        kept = 0
        for i in range(active):
            j = running[i]
            if starts[j] + counts[j] == now:
                free += gang_gpus[j]
            else:
                running[kept] = j
                kept += 1
        active = kept
    return starts
