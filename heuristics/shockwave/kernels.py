"""Compiled loops that order the rounds of a window; `.py_func` is the plain Python function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formulations.compiled import compiled


@compiled()
def rank_jobs(
    t: Any, ran: Any, was_running: Any, left: Any, end_slack: Any, end_margin: Any, weights: Any, stay: Any
) -> Any:
    """Return the jobs in the order in which they should get round t; times are in rounds, see `order.RoundOrder`.

    A job that has run in ran[j] of the first t rounds has waited t - ran[j], by which its slack is reduced.
    """
    keys = np.empty(len(ran))
    for j in range(len(ran)):
        rest, waited = max(left[j] - ran[j], 0.0), t - ran[j]
        if end_slack[j] - waited <= end_margin[j]:
            keys[j] = -1.0 - rest
        else:
            keys[j] = (rest * stay if was_running[j] else rest) / weights[j]
    return np.argsort(keys, kind="mergesort")


@compiled()
def advance(
    grants: Any,
    lead: Any,
    gang_gpus: Any,
    capacity: Any,
    is_running: Any,
    left: Any,
    end_slack: Any,
    end_margin: Any,
    weights: Any,
    stay: Any,
) -> None:
    """Exchange granted rounds so that jobs get the first `lead` rounds in the order of `rank_jobs`; in place.

    Job i moves from its last round u to an earlier round t in which it does not run; jobs later in the order that do
    not run in u are displaced from t to u. Every job keeps its number of rounds and no round exceeds the capacity, so
    the window's objective does not change. Rounds are processed from the first on.
    """
    count, rounds = grants.shape
    load = np.zeros(rounds, np.int64)
    last = np.full(count, -1, np.int64)
    for j in range(count):
        for t in range(rounds):
            if grants[j, t]:
                load[t] += gang_gpus[j]
                last[j] = t
    ran = np.zeros(count, np.int64)
    was_running = is_running.copy()
    present = np.empty(count, np.int64)
    moved = np.empty(count, np.int64)
    for t in range(min(lead, rounds)):
        order = rank_jobs(t, ran, was_running, left, end_slack, end_margin, weights, stay)
        # Ranks of the jobs that run in round t, last in the order first: the first to be displaced.
        num_present = 0
        for rank in range(count - 1, -1, -1):
            if grants[order[rank], t]:
                present[num_present] = rank
                num_present += 1
        first = 0  # index of the first of `present` that still runs in t
        for rank in range(count):
            i = order[rank]
            while first < num_present and not grants[order[present[first]], t]:
                first += 1
            if load[t] + gang_gpus[i] > capacity and (first == num_present or present[first] < rank):
                if gang_gpus[i] == 1:
                    break  # no later job runs in t, and no gang fits
                continue
            if grants[i, t] or last[i] <= t:
                continue
            for u in range(last[i], t, -1):
                if not grants[i, u]:
                    continue
                needed = load[t] + gang_gpus[i] - capacity
                freed, displaced = 0, 0
                for p in range(first, num_present):
                    if present[p] <= rank or freed >= needed:
                        break
                    j = order[present[p]]
                    if grants[j, t] and not grants[j, u]:
                        moved[displaced] = j
                        displaced += 1
                        freed += gang_gpus[j]
                if freed < needed or load[u] - gang_gpus[i] + freed > capacity:
                    continue
                grants[i, t], grants[i, u] = True, False
                for d in range(displaced):
                    j = moved[d]
                    grants[j, t], grants[j, u] = False, True
                    last[j] = max(last[j], u)
                load[t] += gang_gpus[i] - freed
                load[u] += freed - gang_gpus[i]
                while last[i] > 0 and not grants[i, last[i]]:
                    last[i] -= 1
                break
        for j in range(count):
            was_running[j] = grants[j, t]
            if grants[j, t]:
                ran[j] += 1


@compiled()
def serve(
    counts: Any,
    lead: Any,
    rounds: Any,
    gang_gpus: Any,
    capacity: Any,
    is_running: Any,
    left: Any,
    end_slack: Any,
    end_margin: Any,
    weights: Any,
    stay: Any,
) -> Any:
    """Grant the first `lead` of the window's rounds to jobs in the order of `rank_jobs`, if they fit.

    A job that needs every round left for its counts[j] precedes all others. Reduces `counts` by the granted rounds,
    in place. Returns the grants, shape (N, lead), bool.
    """
    count = len(counts)
    grants = np.zeros((count, lead), np.bool_)
    ran = np.zeros(count, np.int64)
    was_running = is_running.copy()
    for t in range(lead):
        order = rank_jobs(t, ran, was_running, left, end_slack, end_margin, weights, stay)
        free = capacity
        for must in (True, False):
            for j in order:
                if free == 0:
                    break
                if counts[j] > 0 and gang_gpus[j] <= free and not grants[j, t] and (counts[j] >= rounds - t) == must:
                    grants[j, t] = True
                    free -= gang_gpus[j]
        for j in range(count):
            was_running[j] = grants[j, t]
            if grants[j, t]:
                ran[j] += 1
                counts[j] -= 1
    return grants
