"""Compiled loop of the goodput allocation with one type of GPU: the exact table over jobs and GPUs given out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled


@compiled()
def best_counts(gains: Any, starts: Any, counts: Any, gpus: Any) -> Any:
    """Return how many GPUs each job gets so that the sum of gains is greatest, shape (N,); the first best count counts.

    Job j may take ``counts[n]`` GPUs for a gain of ``gains[n]``, n in ``starts[j]:starts[j + 1]``, or none for 0.
    """
    jobs = len(starts) - 1
    best, new = np.zeros(gpus + 1), np.zeros(gpus + 1)
    taken = np.zeros((jobs, gpus + 1), np.int32)
    for j in range(jobs):
        new[:] = best
        for n in range(starts[j], starts[j + 1]):
            count, gain = counts[n], gains[n]
            for used in range(count, gpus + 1):
                if best[used - count] + gain > new[used]:
                    new[used] = best[used - count] + gain
                    taken[j, used] = count
        best, new = new, best
    answer = np.zeros(jobs, np.int64)
    left = gpus
    for j in range(jobs - 1, -1, -1):
        answer[j] = taken[j, left]
        left -= answer[j]
    return answer
