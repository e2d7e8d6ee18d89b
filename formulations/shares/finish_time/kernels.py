"""Compiled loop of finish-time fairness: the cheapest mix of GPU types that gives each job its speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled import compiled


@compiled()
def cheapest_mixes(speeds: Any, rates: Any, gang_gpus: Any, prices: Any, costs: Any, growth: Any, shares: Any) -> None:
    """Fill each job's least cost of its speed, its growth per step/s, and the cheapest shares; see `Levels`.

    The cost is the lower hull of no GPU (0, 0) and the types (rate, gang x price), so at most two of these points are
    mixed. At a corner of the hull, chords that are not its edges have the same cost. The steepest chord is taken,
    because Newton's method overshoots with a slope that is too flat.
    """
    types = rates.shape[1]
    for j in range(len(speeds)):
        best, steepest, slow, fast, part = np.inf, -np.inf, -1, 0, 0.0
        for a in range(-1, types):
            low = 0.0 if a < 0 else rates[j, a]
            if low > speeds[j]:
                continue
            paid = 0.0 if a < 0 else gang_gpus[j] * prices[a]
            for b in range(types):
                width = rates[j, b] - low
                if width <= 0.0 or speeds[j] > rates[j, b]:
                    continue
                share = (speeds[j] - low) / width
                more = gang_gpus[j] * prices[b]
                slope = (more - paid) / width
                cost = paid * (1.0 - share) + more * share
                equal = abs(cost - best) <= 1e-12 * cost
                if (equal and slope > steepest) or (not equal and cost < best):
                    best, steepest, slow, fast, part = cost, slope, a, b, share
        costs[j], growth[j] = best, steepest
        shares[j, :] = 0.0
        if slow >= 0:
            shares[j, slow] = 1.0 - part
        shares[j, fast] += part
