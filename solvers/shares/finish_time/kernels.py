"""Compiled loop of the tie-break of finish-time fairness: each job's nearest shares that are fast enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled

STEPS = 60
# Speeds, relative to the fastest type's, are equal within this.
ROUNDING = 1e-13


@compiled()
def speed_at(points: Any, relative: Any, push: Any, row: Any) -> Any:
    """Write ``points + push * relative`` projected on {x >= 0, sum x <= 1} to `row`; return ``relative . row``.

    Types with a rate of 0 stay at 0.
    """
    kinds = len(points)
    total = 0.0
    for k in range(kinds):
        row[k] = max(0.0, points[k] + push * relative[k]) if relative[k] > 0 else 0.0
        total += row[k]
    if total > 1.0:
        # All of the time is used, and a constant added to all points has no effect: the fastest type's push is
        # subtracted, so that a large push does not absorb the digits of the points.
        most = relative.max()
        cut, count = -np.inf, -1
        while True:
            above, left = 0, -1.0
            for k in range(kinds):
                value = points[k] + push * (relative[k] - most)
                if relative[k] > 0 and value > cut:
                    above += 1
                    left += value
            cut = left / above
            if 0 <= count <= above:  # never more than before: rounding could otherwise cause a cycle
                break
            count = above
        for k in range(kinds):
            row[k] = max(0.0, points[k] + push * (relative[k] - most) - cut) if relative[k] > 0 else 0.0
    speed = 0.0
    for k in range(kinds):
        speed += relative[k] * row[k]
    return speed


@compiled()
def nearest_rows(points: Any, relative: Any, least: Any, shares: Any) -> None:
    """Project each row on {x >= 0, sum x <= 1, relative . x >= least}, 0 where `relative` is 0.

    A row that is too slow is pushed along `relative` until it is fast enough. Its speed is piecewise linear in the
    push: secants are exact on the last piece, bisection steps between them safeguard the others.
    """
    for j in range(len(points)):
        lacks = least[j] - speed_at(points[j], relative[j], 0.0, shares[j])
        if lacks <= 0.0:
            continue
        low, high = 0.0, 1.0
        spare = speed_at(points[j], relative[j], high, shares[j]) - least[j]
        for _ in range(STEPS):
            if spare >= -ROUNDING:
                break
            low, lacks = high, -spare
            high *= 2.0
            spare = speed_at(points[j], relative[j], high, shares[j]) - least[j]
        for step in range(2 * STEPS):
            if min(lacks, spare) <= ROUNDING or high - low <= 1e-15 * high:
                break
            part = lacks / (lacks + spare) if step % 2 else 0.5
            middle = low + part * (high - low)
            more = speed_at(points[j], relative[j], middle, shares[j]) - least[j]
            if more < 0.0:
                low, lacks = middle, -more
            else:
                high, spare = middle, more
        speed_at(points[j], relative[j], low if lacks < spare else high, shares[j])
