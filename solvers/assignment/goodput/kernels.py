"""Compiled loops of the goodput allocation: the exact table of one type of GPU, and the jobs' choices at prices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled, copy_into


@compiled()
def add_configurations(
    gains: Any, jobs: Any, counts: Any, start: int, work: int, best: Any, new: Any, taken: Any
) -> Any:
    """Add configurations from `start` on to the table, as many as `work` cells allow, at least one; return the next.

    Configuration n gives job ``jobs[n]`` (in order) ``counts[n]`` GPUs for a gain of ``gains[n]``. `best` holds the
    greatest sum of gains of the jobs before by GPUs given out, `new` that with the present job, and `taken` the count
    that each job then has, shapes (M + 1,), (M + 1,) and (N, M + 1), all 0 at first; the first best count counts.
    """
    length, n = len(best), start
    while n < len(gains) and (work > 0 or n == start):
        if n > 0 and jobs[n] != jobs[n - 1]:
            copy_into(best, new)
            work -= length
        count, gain, row = counts[n], gains[n], taken[jobs[n]]
        for used in range(count, length):
            if best[used - count] + gain > new[used]:
                new[used] = best[used - count] + gain
                row[used] = count
        work -= length - count
        n += 1
    return n


@compiled()
def counts_of(taken: Any) -> Any:
    """Return how many GPUs each job has in the table's best plan, shape (N,)."""
    jobs, length = taken.shape
    answer = np.zeros(jobs, np.int64)
    left = length - 1
    for j in range(jobs - 1, -1, -1):
        answer[j] = taken[j, left]
        left -= answer[j]
    return answer


@compiled()
def choices(utilities: Any, idle: float, prices: Any) -> Any:
    """Return the type and count that each job chooses at prices, and its utility less its payment, shapes (N,).

    Ties are broken by the fewest GPUs, none included, then by the first type.
    """
    jobs, types, length = utilities.shape
    kinds, counts, worth = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64), np.full(jobs, idle)
    for j in range(jobs):
        for k in range(types):
            for n in range(length):
                paid = utilities[j, k, n] - prices[k] * n
                if paid > worth[j] or (paid == worth[j] and n < counts[j]):
                    kinds[j], counts[j], worth[j] = k, n, paid
    return kinds, counts, worth


@compiled()
def best_change(utilities: Any, now: Any, kinds: Any, counts: Any, free: Any) -> Any:
    """Return the job, type and count of the change with the greatest gain within the free GPUs, and the gain.

    The job's own GPUs count as free for it. Ties go to the first change; a gain of 0 or less means no change.
    """
    jobs, types, length = utilities.shape
    at, most = (0, 0, 0), 0.0
    for j in range(jobs):
        for k in range(types):
            spare = free[k] + (counts[j] if kinds[j] == k else 0)
            for n in range(min(spare + 1, length)):
                gain = utilities[j, k, n] - now[j]
                if gain > most:
                    at, most = (j, k, n), gain
    return at, most
