"""Compiled loops of the window planner: the dual of the window program at one price, and its best price."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formulations.compiled import compiled, copy_into


@compiled()
def longest_branch(
    worth: Any, left: Any, gang_gpus: Any, jobs: Any, price: Any, budget: Any, floor: Any, ceiling: Any, rates: Any,
    small: Any, large: Any,
) -> Any:  # fmt: skip
    """Split `budget` among the max-branch multipliers of `jobs`, best for the dual at this GPU price.

    Every job's points (remaining time, worth less price) have an upper envelope; its multiplier at a horizon h is the
    envelope's slope there. The horizon is lowered from vertex to vertex until the slopes sum to the budget.

    Rounds stay within [floor, ceiling]. Fills `rates` (multiplier), `small` and `large` (the rounds at the envelope's
    ends around h) for these jobs; returns the horizon, and the jobs' part of the dual value.
    """
    rounds = worth.shape[1]
    most = len(jobs) * rounds
    at, rise, who, vertex = np.empty(most), np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    for i in range(len(jobs)):
        j = jobs[i]
        top = floor[j]
        for n in range(floor[j] + 1, ceiling[j] + 1):
            if worth[j, n] - price * gang_gpus[j] * n >= worth[j, top] - price * gang_gpus[j] * top:
                top = n
        small[j] = large[j] = top
        rates[j] = 0.0
        slope, n = 0.0, top
        while True:
            best, step = -1, np.inf
            for m in range(n + 1, ceiling[j] + 1):
                fall = left[j, n] - left[j, m]
                if fall <= 0.0:
                    continue
                rate = max(0.0, (worth[j, n] - worth[j, m] + price * gang_gpus[j] * (m - n)) / fall)
                if rate <= step:
                    best, step = m, rate
            at[count], who[count], vertex[count] = left[j, n], i, n
            rise[count] = max(0.0, step - slope)  # the last vertex of a job has an infinite slope
            count += 1
            if best < 0:
                break
            slope, n = step, best
    order = np.argsort(-at[:count])
    total, horizon = 0.0, 0.0
    for e in order:
        i = who[e]
        j = jobs[i]
        horizon = at[e]
        if total + rise[e] >= budget:
            rates[j] += budget - total
            small[j] = large[j] = vertex[e]
            break
        total += rise[e]
        rates[j] += rise[e]
        # Below this vertex the job mixes it with the next one of its envelope. The last one has none, and is passed
        # only where prices are not finite.
        small[j] = vertex[e]
        large[j] = vertex[e + 1] if e + 1 < count and who[e + 1] == i else vertex[e]
    value = 0.0
    for j in jobs:
        value += worth[j, large[j]] - price * gang_gpus[j] * large[j] - rates[j] * left[j, large[j]]
    return horizon, value


@compiled()
def best_rounds(worth: Any, gang_gpus: Any, jobs: Any, price: Any, low: Any, high: Any, small: Any, large: Any) -> Any:
    """Fill the least and greatest best rounds of `jobs` at this price, within [low, high]; return their value."""
    value = 0.0
    for j in jobs:
        cost = price * gang_gpus[j]
        first = last = low[j]
        best = worth[j, first] - cost * first
        for n in range(low[j] + 1, high[j] + 1):
            net = worth[j, n] - cost * n
            if net > best:
                best, first, last = net, n, n
            elif net == best:
                last = n
        small[j], large[j] = first, last
        value += best
    return value


@compiled()
def gpu_rounds(gang_gpus: Any, jobs: Any, counts: Any) -> Any:
    """Return the GPU-rounds that `jobs` take."""
    total = 0
    for j in jobs:
        total += gang_gpus[j] * counts[j]
    return total


@compiled()
def best_price(
    worth: Any, left: Any, gang_gpus: Any, branch: Any, free: Any, long: Any, supply: Any, budget: Any, guess: Any,
    floor: Any, ceiling: Any,
) -> Any:  # fmt: skip
    """Minimise the dual over the GPU price, for a given split between the branches of the makespan.

    `free` jobs take part in the sum branch only, `long` ones may set the longest; `budget` is the max branch's.
    Cutting planes in one dimension, safeguarded by bisection; a job's best rounds fall as the price rises, so
    the search range of every free job shrinks.

    Returns price, dual value, horizon, sum branch, rates (N,), and rounds (N,) within supply and (N,) beyond it.
    """
    count = len(worth)
    low, high = floor.copy(), ceiling.copy()
    small, large = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rates = np.zeros(count)
    within, beyond, best_rates = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count)
    left_price, right_price = -1.0, np.inf  # ends of the bracket; -1: no price tried that is too low
    left_value, left_slope, right_value, right_slope = np.inf, 0.0, np.inf, 0.0
    best_value, best_at = np.inf, 0.0
    # On either side of the best price: GPU-rounds used, horizon, and the long jobs' part of the sum branch.
    used_within, horizon_within, sum_within = -1.0, 0.0, 0.0
    used_beyond, horizon_beyond, sum_beyond = -1.0, 0.0, 0.0
    price, stride = guess, 0.02 * guess
    for step in range(200):
        value = price * supply + best_rounds(worth, gang_gpus, free, price, low, high, small, large)
        least, most = float(gpu_rounds(gang_gpus, free, small)), float(gpu_rounds(gang_gpus, free, large))
        horizon, long_sum = 0.0, 0.0
        if len(long):
            horizon, added = longest_branch(
                worth, left, gang_gpus, long, price, budget, floor, ceiling, rates, small, large
            )
            value += added
            for j in long:
                share = 0.0  # share of `large` in the mixture whose remaining time is the horizon
                if large[j] > small[j]:
                    share = (left[j, small[j]] - horizon) / (left[j, small[j]] - left[j, large[j]])
                used = gang_gpus[j] * (small[j] + share * (large[j] - small[j]))
                least += used
                most += used
                long_sum += branch[j] * max(left[j, large[j]], min(horizon, left[j, small[j]]))
        if value <= best_value:
            best_value, best_at = value, price
            copy_into(best_rates, rates)
        if least <= supply:
            copy_into(within, small)
            for j in long:
                within[j] = large[j]
            used_within, horizon_within, sum_within = least, horizon, long_sum
        if most >= supply:
            copy_into(beyond, large)
            used_beyond, horizon_beyond, sum_beyond = most, horizon, long_sum
        if least <= supply <= most or (price == 0.0 and least <= supply):
            break
        if least > supply:
            left_price, left_value, left_slope = price, value, supply - least
            copy_into(high, small)
        else:
            right_price, right_value, right_slope = price, value, supply - most
            copy_into(low, large)
        if price > 1e30:  # the least rounds allowed exceed the supply: no price makes them fit
            break
        if left_price < 0.0 or right_price == np.inf:  # no bracket yet: continue further down, to 0 at most
            price = max(0.0, price - stride) if left_price < 0.0 else price + stride
            stride *= 8.0
            continue
        cut = (left_value - right_value + right_slope * right_price - left_slope * left_price) / (
            right_slope - left_slope
        )
        width = right_price - left_price
        if step % 3 == 2 or not left_price < cut < right_price:
            cut = left_price + 0.5 * width
        if width <= 1e-14 * right_price or not left_price < cut < right_price:
            break
        price = cut
    # The mixture of both sides that uses exactly the supply: its branches give the slope in their split.
    mix = 0.0
    if used_within < 0.0:
        mix = 1.0
    elif used_beyond > used_within:
        mix = (supply - used_within) / (used_beyond - used_within)
    sum_branch = (1.0 - mix) * sum_within + mix * sum_beyond
    for j in free:
        sum_branch += branch[j] * ((1.0 - mix) * left[j, within[j]] + mix * left[j, beyond[j]])
    horizon = (1.0 - mix) * horizon_within + mix * horizon_beyond
    return best_at, best_value, horizon, sum_branch, best_rates, within, beyond


@compiled()
def best_fit(changes: Any, losses: Any, slack: Any, price: Any, span: Any) -> Any:
    """Choose changes that together fill `slack` GPU-rounds at least loss: a knapsack by dynamic programming.

    Change i takes changes[i] GPU-rounds (negative: frees them) at losses[i] >= 0; a GPU-round left idle loses `price`.
    Sums stay within [-span, span] on the way. Returns which are chosen, shape (changes,), bool.
    """
    size = 2 * span + 1
    least = np.full(size, np.inf)
    least[span] = 0.0
    taken = np.zeros((len(changes), size), np.bool_)
    for i in range(len(changes)):
        before = least.copy()
        for state in range(size):
            source = state - changes[i]
            if 0 <= source < size and before[source] + losses[i] < least[state]:
                least[state] = before[source] + losses[i]
                taken[i, state] = True
    state, best = span, price * slack
    for filled in range(-span, min(slack, span) + 1):
        if least[span + filled] + price * (slack - filled) < best:
            state, best = span + filled, least[span + filled] + price * (slack - filled)
    chosen = np.zeros(len(changes), np.bool_)
    for i in range(len(changes) - 1, -1, -1):
        if taken[i, state]:
            chosen[i] = True
            state -= changes[i]
    return chosen


@compiled()
def nearest_change(
    net: Any, counts: Any, gang_gpus: Any, movable: Any, floor: Any, ceiling: Any, needs: Any, span: Any
) -> Any:
    """Return, per job, the other number of rounds that forgoes least of `net`, and what it forgoes (inf: none).

    Only jobs that are movable, within floor, ceiling and need, and changes of at most `span` GPU-rounds.
    """
    count = len(counts)
    to, loss = counts.copy(), np.full(count, np.inf)
    for j in range(count):
        if not movable[j]:
            continue
        reach = span // gang_gpus[j]
        for n in range(max(floor[j], counts[j] - reach), min(ceiling[j], needs[j], counts[j] + reach) + 1):
            forgone = max(0.0, net[j, counts[j]] - net[j, n])
            if n != counts[j] and forgone < loss[j]:
                to[j], loss[j] = n, forgone
    return to, loss
