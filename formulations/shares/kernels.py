"""Compiled loops over jobs that share GPUs: groups of equal rows, and cheapest shares for a given rate at prices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import compiled


@compiled()
def alike(rows: Any) -> Any:
    """Find equal rows, shape (N, C), with a hash table of their bits.

    Returns the first job of each group in the order of jobs, the group of each job, and the size of each group.
    """
    count, width = rows.shape
    bits = rows.view(np.uint64)
    size = 8
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1, np.int64)
    first = np.empty(count, np.int64)
    of_job = np.empty(count, np.int64)
    sizes = np.zeros(count)
    groups = 0
    for j in range(count):
        key = np.uint64(1469598103934665603)
        for c in range(width):
            key = (key ^ bits[j, c]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        at = np.int64(key & np.uint64(size - 1))
        while True:
            group = table[at]
            if group < 0:
                table[at] = groups
                first[groups] = j
                group = groups
                groups += 1
                break
            same = True
            for c in range(width):
                if bits[first[group], c] != bits[j, c]:
                    same = False
                    break
            if same:
                break
            at = (at + 1) & (size - 1)
        of_job[j] = group
        sizes[group] += 1.0
    return first[:groups].copy(), of_job, sizes[:groups].copy()


@compiled()
def hull_point(worth: Any, cost: Any, least: float) -> Any:
    """Find the cheapest shares x >= 0, sum x <= 1, worth.x >= least of one job: a point of a lower hull.

    The dual maximises least y - h(y) over y >= 0, with h(y) = max(0, max_k (y worth_k - cost_k)). The search follows
    the lines of h from y = 0 in the order of their slopes until a slope reaches `least`.

    Returns the least and greatest optimal y (cost of one more unit of the rate, from the left and from the right), the
    two types that are mixed, `before` and `at` (-1: not running), and the share of `at`; `before` has the rest. The
    share is nan if no shares reach `least`.
    """
    kinds = len(worth)
    at, before = -1, -1
    slope, height = 0.0, 0.0
    for k in range(kinds):
        if worth[k] > 0 and (-cost[k] > height or (-cost[k] == height and worth[k] > slope)):
            at, slope, height = k, worth[k], -cost[k]
    y = 0.0
    if slope > least:
        return 0.0, 0.0, at, at, 1.0
    base = 0.0
    before = at
    while True:
        following, next_y = -1, np.inf
        here = 0.0 if at < 0 else cost[at]
        for k in range(kinds):
            if worth[k] > slope:
                crossing = (cost[k] - here) / (worth[k] - slope)
                if crossing < next_y or (crossing == next_y and worth[k] > worth[following]):
                    following, next_y = k, crossing
        if slope >= least:  # equal: a vertex of the hull
            return y, max(y, next_y), at, at, 1.0
        if following < 0:
            return y, np.inf, at, at, np.nan
        before, base = at, slope
        at, slope, y = following, worth[following], max(y, next_y)
        if slope > least:
            return y, y, before, at, (least - base) / (slope - base)


@compiled()
def cheapest(
    worth: Any, gang_gpus: Any, counts: Any, prices: Any, reward: float, least: Any, rising: Any, usage: Any
) -> Any:
    """Find the least cost of all jobs: the sum of counts_i min (gang_gpus_i prices - reward worth_i).x_i.

    Each minimum is over x >= 0, sum x <= 1, worth_i.x >= least_i. The GPUs in use are added to `usage`, shape (K,).
    Returns the sum, its slope per unit of the `least` of all jobs marked in `rising`, and the shares' worth; inf if a
    job cannot reach its rate.
    """
    groups, kinds = worth.shape
    cost = np.empty(kinds)
    total, lost, slope, gained = 0.0, 0.0, 0.0, 0.0
    for i in range(groups):
        for k in range(kinds):
            cost[k] = gang_gpus[i] * prices[k] - reward * worth[i, k]
        low, _, before, at, share = hull_point(worth[i], cost, least[i])
        if np.isnan(share):
            return np.inf, 0.0, 0.0
        paid, got = 0.0, 0.0
        if at >= 0:
            paid += share * cost[at]
            got += share * worth[i, at]
            usage[at] += counts[i] * gang_gpus[i] * share
        if before >= 0 and before != at:
            paid += (1.0 - share) * cost[before]
            got += (1.0 - share) * worth[i, before]
            usage[before] += counts[i] * gang_gpus[i] * (1.0 - share)
        term = counts[i] * paid - lost  # Kahan's sum: a bound's last digits count
        added = total + term
        lost = (added - total) - term
        total = added
        if rising[i]:
            slope += counts[i] * low
        gained += counts[i] * got
    return total, slope, gained


@compiled()
def most_gained(rates: Any, gang_gpus: Any, counts: Any, prices: Any, usage: Any) -> Any:
    """Find the greatest gain of all jobs: the sum of counts_i max(0, max_k (rates_ik - gang_gpus_i prices_k)).

    The GPUs in use are added to `usage`, shape (K,). Returns the sum and the rates reached. A job uses the first of
    equally good types, and none if its gain is 0.
    """
    groups, kinds = rates.shape
    total, lost, reached = 0.0, 0.0, 0.0
    for i in range(groups):
        best, at = 0.0, -1
        for k in range(kinds):
            gain = rates[i, k] - gang_gpus[i] * prices[k]
            if gain > best:
                best, at = gain, k
        if at >= 0:
            usage[at] += counts[i] * gang_gpus[i]
            reached += counts[i] * rates[i, at]
            term = counts[i] * best - lost  # Kahan's sum: a bound's last digits count
            added = total + term
            lost = (added - total) - term
            total = added
    return total, reached


@compiled()
def sums_before(queue: Any, values: Any, count: int) -> Any:
    """Return the sum of the values of the earlier jobs in the same queue, shape (N,); there are `count` queues."""
    totals, before = np.zeros(count), np.empty(len(values))
    for j in range(len(values)):
        before[j] = totals[queue[j]]
        totals[queue[j]] += values[j]
    return before


@compiled()
def overpaid(worth: Any, gang_gpus: Any, prices: Any, shares: Any, least: Any) -> Any:
    """Return the cost of each job's shares above that of the cheapest ones of its rate `least`, shape (N,)."""
    jobs, kinds = worth.shape
    cost, excess = np.empty(kinds), np.empty(jobs)
    for j in range(jobs):
        paid = 0.0
        for k in range(kinds):
            cost[k] = gang_gpus[j] * prices[k]
            paid += shares[j, k] * cost[k]
        _, _, before, at, share = hull_point(worth[j], cost, least[j])
        if at >= 0:
            paid -= share * cost[at]
        if before >= 0 and before != at:
            paid -= (1.0 - share) * cost[before]
        excess[j] = paid
    return excess


@compiled()
def within_reach(worth: Any, gang_gpus: Any, prices: Any, least: Any, spare: float) -> Any:
    """Return the highest rate that each job reaches if it pays `spare` more than `least` costs, shape (G,).

    The search follows the lower hull of (0, 0) and the points (worth_ik, gang_gpus_i prices_k) until the money is
    spent.
    """
    groups, kinds = worth.shape
    cost = np.empty(kinds)
    reach = np.empty(groups)
    for i in range(groups):
        for k in range(kinds):
            cost[k] = gang_gpus[i] * prices[k]
        _, _, before, at, share = hull_point(worth[i], cost, least[i])
        money = np.inf if np.isnan(share) else spare
        if at >= 0:
            money += share * cost[at]
        if before >= 0 and before != at:
            money += (1.0 - share) * cost[before]
        rate, paid = 0.0, 0.0
        while True:
            following, steepness = -1, np.inf
            for k in range(kinds):
                if worth[i, k] > rate:
                    each = (cost[k] - paid) / (worth[i, k] - rate)
                    if each < steepness or (each == steepness and worth[i, k] > worth[i, following]):
                        following, steepness = k, each
            if following < 0:
                break
            if cost[following] > money:
                rate += (money - paid) / steepness
                break
            rate, paid = worth[i, following], max(paid, cost[following])
        reach[i] = max(rate, least[i])
    return reach


@compiled()
def add_cheapest(
    worth: Any, gang_gpus: Any, prices: Any, reward: float, least: Any, weight: float, shares: Any
) -> None:
    """Add `weight` times the shares that `cheapest` finds to `shares`, shape (G, K)."""
    groups, kinds = worth.shape
    cost = np.empty(kinds)
    for i in range(groups):
        for k in range(kinds):
            cost[k] = gang_gpus[i] * prices[k] - reward * worth[i, k]
        _, _, before, at, share = hull_point(worth[i], cost, least[i])
        if np.isnan(share):
            continue
        if at >= 0:
            shares[i, at] += weight * share
        if before >= 0 and before != at:
            shares[i, before] += weight * (1.0 - share)


@compiled()
def margins(worth: Any, gang_gpus: Any, prices: Any) -> Any:
    """Return each job's best type at prices (-1: none), and the change of prices that makes another type as good."""
    groups, kinds = worth.shape
    choice, doubt = np.empty(groups, np.int64), np.empty(groups)
    for i in range(groups):
        best, second, at = 0.0, -np.inf, -1
        for k in range(kinds):
            gain = worth[i, k] - gang_gpus[i] * prices[k]
            if gain > best:
                best, second, at = gain, best, k
            elif gain > second:
                second = gain
        choice[i], doubt[i] = at, (best - second) / gang_gpus[i]
    return choice, doubt


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
