"""Compiled loops that turn rounds per job into a schedule; plain Python without numba's decorator (`.py_func`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled


@compiled()
def pack(order: Any, counts: Any, gang_gpus: Any, capacity: Any, rounds: Any) -> Any:
    """Give each job, in `order`, its counts[j] least loaded rounds with enough free GPUs; fewer if too few exist.

    Ties go to the earlier round. Returns the grants, shape (N, rounds), bool.
    """
    grants = np.zeros((len(counts), rounds), np.bool_)
    load = np.zeros(rounds, np.int64)
    # Rounds sorted by load; jobs of equal gangs keep the order nearly sorted, so insertion is cheap.
    by_load = np.arange(rounds)
    for j in order:
        n = min(counts[j], rounds)
        gang = gang_gpus[j]
        taken = 0
        while taken < n and load[by_load[taken]] + gang <= capacity:
            t = by_load[taken]
            grants[j, t] = True
            load[t] += gang
            taken += 1
        if taken:
            for i in range(1, rounds):
                t = by_load[i]
                k = i - 1
                while k >= 0 and (load[by_load[k]] > load[t] or (load[by_load[k]] == load[t] and by_load[k] > t)):
                    by_load[k + 1] = by_load[k]
                    k -= 1
                by_load[k + 1] = t
    return grants


@compiled()
def pack_blocks(order: Any, counts: Any, gang_gpus: Any, capacity: Any, rounds: Any, is_running: Any) -> Any:
    """Give each job, in `order`, one block of counts[j] consecutive rounds at the place of the least peak load.

    A running job's block starts the window if it fits there, so that it does not restart. A block that fits nowhere is
    shortened. Returns the grants, shape (N, rounds), bool.
    """
    grants = np.zeros((len(counts), rounds), np.bool_)
    load = np.zeros(rounds, np.int64)
    for j in order:
        n = min(counts[j], rounds)
        while n > 0:
            best, best_peak = -1, capacity - gang_gpus[j] + 1
            last = 1 if is_running[j] else rounds - n + 1
            for first in range(last):
                peak = load[first : first + n].max()
                if peak < best_peak:
                    best, best_peak = first, peak
            if best < 0 and is_running[j]:
                for first in range(1, rounds - n + 1):
                    peak = load[first : first + n].max()
                    if peak < best_peak:
                        best, best_peak = first, peak
            if best >= 0:
                for t in range(best, best + n):
                    grants[j, t] = True
                    load[t] += gang_gpus[j]
                break
            n -= 1
    return grants


@compiled()
def settle(grants: Any, order: Any, needs: Any, gang_gpus: Any, capacity: Any, is_running: Any) -> None:
    """Make a schedule work-conserving, in place: grant idle GPUs to unfinished jobs, or move last rounds earlier.

    One forward pass is enough: it never changes earlier rounds, and they stay full. In each round the jobs that run in
    the round before come first, then the jobs that start in the next round, then the others, so that no unnecessary
    restart is added; each group is in `order`.
    """
    count, rounds = grants.shape
    had = np.zeros(count, np.int64)
    total = np.zeros(count, np.int64)
    load = np.zeros(rounds, np.int64)
    narrowest = capacity + 1
    for j in range(count):
        narrowest = min(narrowest, gang_gpus[j])
        for t in range(rounds):
            if grants[j, t]:
                total[j] += 1
                load[t] += gang_gpus[j]
    for t in range(rounds):
        idle = capacity - load[t]
        for phase in range(3):
            if idle < narrowest:
                break
            for j in order:
                if gang_gpus[j] > idle or grants[j, t] or had[j] >= needs[j]:
                    continue
                if phase == 0 and not (grants[j, t - 1] if t > 0 else is_running[j]):
                    continue
                if phase == 1 and not (t + 1 < rounds and grants[j, t + 1]):
                    continue
                grants[j, t] = True
                total[j] += 1
                load[t] += gang_gpus[j]
                idle -= gang_gpus[j]
                if total[j] > needs[j]:
                    last = rounds - 1
                    while not grants[j, last]:
                        last -= 1
                    grants[j, last] = False
                    total[j] -= 1
                    load[last] -= gang_gpus[j]
                if idle < narrowest:
                    break
        for j in range(count):
            if grants[j, t]:
                had[j] += 1


@compiled()
def progress(starts: Any, epochs: Any, epoch_s: Any, needs: Any, round_s: Any, rounds: Any) -> Any:
    """Return epochs and isolated seconds of work done after n = 0..rounds granted rounds, shape (N, rounds + 1) each.

    Regime k of job j is entry starts[j] + k of `epochs`, `epoch_s` and `needs` (whole rounds). The last round of a
    regime completes it exactly; the remaining time of that round is lost.
    """
    count = len(starts) - 1
    done_epochs, done_s = np.zeros((count, rounds + 1)), np.zeros((count, rounds + 1))
    for j in range(count):
        n, before_epochs, before_s = 0, 0.0, 0.0
        for k in range(starts[j], starts[j + 1]):
            for r in range(1, needs[k] + 1):
                if n == rounds:
                    break
                n += 1
                if r == needs[k]:
                    done_epochs[j, n], done_s[j, n] = before_epochs + epochs[k], before_s + epochs[k] * epoch_s[k]
                else:
                    done_epochs[j, n], done_s[j, n] = before_epochs + r * round_s / epoch_s[k], before_s + r * round_s
            before_epochs += epochs[k]
            before_s += epochs[k] * epoch_s[k]
            if n == rounds:
                break
        for m in range(n + 1, rounds + 1):
            done_epochs[j, m], done_s[j, m] = before_epochs, before_s
    return done_epochs, done_s


@compiled()
def regimes_run(grants: Any, starts: Any, needs: Any) -> Any:
    """Return the regime of each granted round, by index within its job: -1 if idle, past the last once complete."""
    count, rounds = grants.shape
    regimes = np.full((count, rounds), -1, np.int64)
    for j in range(count):
        k, last = starts[j], starts[j + 1]
        ran = 0
        for t in range(rounds):
            if grants[j, t]:
                while k < last and ran == needs[k]:
                    k += 1
                    ran = 0
                regimes[j, t] = k - starts[j]
                ran += 1
    return regimes
