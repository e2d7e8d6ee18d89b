"""Compiled loops of the tie-break: each job's optimal face at prices, and the point of it nearest to a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formulations.compiled import compiled
from ...formulations.shares.kernels import hull_point

# Parts of a job's face that hold with equality: the whole time is used; the rate is reached exactly.
WHOLE, EXACTLY = 1, 2


@compiled()
def faces(
    worth: Any, runs: Any, gang_gpus: Any, prices: Any, reward: float, least: Any, tolerance: float, floors: Any,
    open_: Any, tight: Any,
) -> Any:  # fmt: skip
    """Mark the types that each job may use in an optimum at optimal prices (`open_`), and the tight rows (`tight`).

    An optimum uses only types whose reduced cost gangs_i prices - reward worth_i - y worth_i + v is 0, with y and v the
    duals of the job's rate and of its time; where either is positive, its row is tight. Less than `tolerance` of the
    job's own size, or than floors_i, counts as 0.
    """
    groups, kinds = worth.shape
    cost = np.empty(kinds)
    for i in range(groups):
        size, most = 0.0, 0.0
        for k in range(kinds):
            cost[k] = gang_gpus[i] * prices[k] - reward * worth[i, k]
            most = max(most, worth[i, k])
            if runs[i, k]:
                size = max(size, abs(gang_gpus[i] * prices[k]), reward * worth[i, k])
        if size == 0.0:
            size = 1.0
        low, high, _, _, _ = hull_point(worth[i], cost, least[i])
        if np.isinf(high):  # the job is at its highest rate: any larger price of the rate gives the same
            high = low + 2.0 * size / most if most > 0 else low
        y = 0.5 * (low + high)
        v = 0.0
        for k in range(kinds):
            if runs[i, k]:
                v = max(v, y * worth[i, k] - cost[k])
        small = max(tolerance * max(size, y * most), floors[i])
        tight[i] = 0
        if v > small:
            tight[i] += WHOLE
        if y * most > small:
            tight[i] += EXACTLY
        for k in range(kinds):
            open_[i, k] = runs[i, k] and y * worth[i, k] - cost[k] >= v - small


@compiled()
def settle(worth: Any, open_: Any, tight: Any, least: Any, shares: Any) -> Any:
    """Write the shares of jobs whose face is one point; return the jobs that are still free, shape (G,)."""
    groups, kinds = worth.shape
    free = np.zeros(groups, np.bool_)
    for i in range(groups):
        count, a, b = 0, -1, -1
        for k in range(kinds):
            shares[i, k] = 0.0
            if open_[i, k]:
                count += 1
                a, b = b, k
        if count == 0:
            continue
        if count == 1 and tight[i] & EXACTLY:
            shares[i, b] = min(1.0, least[i] / worth[i, b])
        elif count == 1 and tight[i] & WHOLE:
            shares[i, b] = 1.0
        elif count == 2 and tight[i] == WHOLE + EXACTLY and worth[i, a] != worth[i, b]:
            share = min(1.0, max(0.0, (least[i] - worth[i, a]) / (worth[i, b] - worth[i, a])))
            shares[i, b] = share
            shares[i, a] = 1.0 - share
        else:
            free[i] = True
    return free


@compiled()
def _onto_time(point: Any, open_: Any, whole: bool, x: Any) -> bool:
    """Project onto {x >= 0, sum x <= 1 (= 1 if `whole`), x = 0 where not open}; return whether the sum is tight."""
    kinds = len(point)
    total = 0.0
    for k in range(kinds):
        x[k] = max(0.0, point[k]) if open_[k] else 0.0
        total += x[k]
    if total <= 1.0 and not whole:
        return False
    active = open_.copy()
    while True:
        total, count = 0.0, 0
        for k in range(kinds):
            if active[k]:
                total += point[k]
                count += 1
        shift = (total - 1.0) / count
        again = False
        for k in range(kinds):
            if active[k] and point[k] <= shift and count > 1:
                active[k] = False
                again = True
        if not again:
            break
    for k in range(kinds):
        x[k] = max(0.0, point[k] - shift) if active[k] else 0.0
    return True


@compiled()
def _steepness(worth: Any, x: Any, whole: bool) -> float:
    """Return the slope of worth.x in the multiplier of the rate, on the face of x."""
    squares, total, count = 0.0, 0.0, 0
    for k in range(len(x)):
        if x[k] > 0:
            squares += worth[k] * worth[k]
            total += worth[k]
            count += 1
    return squares - total * total / count if whole and count else squares


@compiled()
def _onto_face(point: Any, worth: Any, open_: Any, tight: int, least: float, trial: Any, x: Any) -> Any:
    """Project onto a job's face; return whether its time and its rate are tight. `worth` is at most 1."""
    whole = (tight & WHOLE) != 0
    used = _onto_time(point, open_, whole, x)
    reached = 0.0
    for k in range(len(x)):
        reached += worth[k] * x[k]
    exactly = (tight & EXACTLY) != 0
    if (reached >= least and not exactly) or abs(reached - least) <= 1e-15 * least:
        return used, exactly
    # worth.x rises with the multiplier mu of the rate, piece by linear piece: Newton within a bracket.
    low, high = (0.0, np.inf) if reached < least else (-np.inf, 0.0)
    mu, step = 0.0, 1.0
    for _ in range(200):
        slope = _steepness(worth, x, used)
        following = mu + (least - reached) / slope if slope > 1e-14 else np.nan
        if not (following > low and following < high):
            if np.isinf(high):
                following = low + step
                step *= 4.0
            elif np.isinf(low):
                following = high - step
                step *= 4.0
            else:
                following = 0.5 * (low + high)
        if following == mu or step > 1e18:
            break
        mu = following
        for k in range(len(x)):
            trial[k] = point[k] + mu * worth[k]
        used = _onto_time(trial, open_, whole, x)
        reached = 0.0
        for k in range(len(x)):
            reached += worth[k] * x[k]
        if abs(reached - least) <= 1e-15 * least:
            break
        if reached < least:
            low = mu
        else:
            high = mu
    return used, True


@compiled()
def lift(worth: Any, open_: Any, least: Any, shares: Any) -> None:
    """Correct rounding of a rate: extend the time, or if all time is used, shift it to better types of the face."""
    groups, kinds = worth.shape
    for i in range(groups):
        reached, total, best, worst = 0.0, 0.0, -1, -1
        for k in range(kinds):
            reached += worth[i, k] * shares[i, k]
            total += shares[i, k]
            if open_[i, k] and (best < 0 or worth[i, k] > worth[i, best]):
                best = k
            if shares[i, k] > 0 and (worst < 0 or worth[i, k] < worth[i, worst]):
                worst = k
        if reached >= least[i] or best < 0:
            continue
        if reached <= 0:  # a share too small to be the result of differences of others
            shares[i, best] = least[i] / worth[i, best]
            continue
        factor = min(least[i] / reached, 1.0 / total)
        for k in range(kinds):
            shares[i, k] *= factor
        reached *= factor
        if reached < least[i] and worth[i, best] > worth[i, worst]:
            moved = min(shares[i, worst], (least[i] - reached) / (worth[i, best] - worth[i, worst]))
            shares[i, worst] -= moved
            shares[i, best] += moved


@compiled()
def nearest(
    free: Any, worth: Any, open_: Any, tight: Any, least: Any, gang_gpus: Any, counts: Any, targets: Any, weights: Any,
    shares: Any, usage: Any, curvature: Any,
) -> Any:  # fmt: skip
    """Move every free job to the point of its face nearest to targets_i - gangs_i weights; sum up their usage.

    Adds the GPUs used to `usage`, shape (K,), and minus their derivative by `weights` to `curvature`, shape (K, K).
    Returns sum counts_i (|x_i - targets_i|^2 / 2 + gangs_i weights.x_i).
    """
    kinds = worth.shape[1]
    point, trial, x = np.empty(kinds), np.empty(kinds), np.empty(kinds)
    relative = np.empty(kinds)
    total = 0.0
    for i in free:
        most = 0.0
        for k in range(kinds):
            most = max(most, worth[i, k])
            point[k] = targets[i, k] - gang_gpus[i] * weights[k]
        scale = 1.0 / most if most > 0 else 1.0
        for k in range(kinds):
            relative[k] = worth[i, k] * scale
        used, exact = _onto_face(point, relative, open_[i], tight[i], least[i] * scale, trial, x)
        distance, paid = 0.0, 0.0
        ones, total_worth, squares = 0.0, 0.0, 0.0
        for k in range(kinds):
            shares[i, k] = x[k]
            usage[k] += counts[i] * gang_gpus[i] * x[k]
            distance += (x[k] - targets[i, k]) ** 2
            paid += gang_gpus[i] * weights[k] * x[k]
            if x[k] > 0:
                ones += 1.0
                total_worth += relative[k]
                squares += relative[k] * relative[k]
        total += counts[i] * (0.5 * distance + paid)
        # The remaining directions: those of the used types, less the normals of the tight rows.
        factor = counts[i] * gang_gpus[i] * gang_gpus[i]
        mean = total_worth / ones if ones > 0 and used else 0.0
        spread = squares - ones * mean * mean
        for k in range(kinds):
            if x[k] <= 0:
                continue
            for m in range(kinds):
                if x[m] <= 0:
                    continue
                entry = 1.0 if k == m else 0.0
                if used:
                    entry -= 1.0 / ones
                if exact and spread > 1e-14:
                    entry -= (relative[k] - mean) * (relative[m] - mean) / spread
                curvature[k, m] += factor * entry
    return total
