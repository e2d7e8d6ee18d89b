"""Compiled inner loops of proportional response: the buyers' split of budgets, and its welfare and bound.

Utilities come as logarithms in which every buyer's best is 0, and `LOG_OF_ZERO` stands for a worthless good;
budgets sum to 1. Buyer i bids ``B_i softmax_k(theta log u_ik - weights_k)``: `theta` is how sharply buyers answer to
prices and `weights` are the sums of the logarithms of prices so far, so that a round needs no N x K state. A *table*
holds all goods of every buyer, shape (N, K); *lists* hold a few of them, as the arrays of a CSR matrix.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats
from ....formulations.compiled import compiled

# The logarithm of a utility of 0: finite, so that no product of it is undefined.
LOG_OF_ZERO = -1e30
# A bid of less than exp(LEAST) of the buyer's largest counts as 0.
LEAST = -64.0


@compiled(fastmath=True, inline="always")
def _exp(t: float) -> float:
    """Return exp(t) for t in [LEAST, 0], to 14 digits, by sums and products alone, which compilers vectorise."""
    r = t * (1.0 / 128.0)
    y = 1.0 / 3628800.0 + r * (1.0 / 39916800.0)
    y = 1.0 / 5040.0 + r * (1.0 / 40320.0 + r * (1.0 / 362880.0 + r * y))
    y = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * y))
    y = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * y)))
    for _ in range(7):
        y *= y
    return y


@compiled(fastmath=True)
def respond_table(worth: Floats, theta: float, weights: Floats, budgets: Floats, bids: Floats, prices: Floats) -> float:
    """Fill `prices` with the sums of all bids, shape (K,); return ``sum b log u``. `bids` is workspace for one row."""
    count, goods = worth.shape
    linear = 0.0
    prices[:] = 0.0
    for i in range(count):
        row = worth[i]
        most = -1e300
        for k in range(goods):
            bids[k] = theta * row[k] - weights[k]
            most = max(most, bids[k])
        total, part = 0.0, 0.0
        for k in range(goods):
            t = bids[k] - most
            bid = _exp(max(t, LEAST)) if t > LEAST else 0.0
            bids[k] = bid
            total += bid
            part += bid * row[k]
        scale = budgets[i] / total
        linear += scale * part
        for k in range(goods):
            prices[k] += scale * bids[k]
    return linear


@compiled(fastmath=True)
def respond_lists(
    worth: Floats, good: NDArray[np.int32], starts: NDArray[np.int64], theta: float, weights: Floats, budgets: Floats,
    bids: Floats, prices: Floats,
) -> float:  # fmt: skip
    """Do the same for lists; `bids` holds all of them, in the order of `worth`."""
    linear = 0.0
    prices[:] = 0.0
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        most = -1e300
        for j in range(first, last):
            bids[j] = theta * worth[j] - weights[good[j]]
            most = max(most, bids[j])
        total, part = 0.0, 0.0
        for j in range(first, last):
            t = bids[j] - most
            bid = _exp(max(t, LEAST)) if t > LEAST else 0.0
            bids[j] = bid
            total += bid
            part += bid * worth[j]
        scale = budgets[i] / total
        linear += scale * part
        for j in range(first, last):
            bids[j] *= scale
            prices[good[j]] += bids[j]
    return linear


@compiled(fastmath=True)
def table_bound_and_welfare(
    worth: Floats, theta: float, weights: Floats, budgets: Floats, log_prices: Floats, bids: Floats, gains: Floats
) -> tuple[float, float]:
    """Return (bound, welfare) of prices and of the goods that the bids buy, both short of ``sum B log B``.

    `bids` and `gains` are workspace for one row each.
    """
    count, goods = worth.shape
    bound, welfare = 0.0, 0.0
    for i in range(count):
        row = worth[i]
        most, best = -1e300, -1e300
        for k in range(goods):
            bids[k] = theta * row[k] - weights[k]
            gains[k] = row[k] - log_prices[k]
            most = max(most, bids[k])
            best = max(best, gains[k])
        total, part = 0.0, 0.0
        for k in range(goods):
            t = bids[k] - most
            bid = _exp(max(t, LEAST)) if t > LEAST else 0.0
            total += bid
            part += bid * _exp(max(gains[k] - best, LEAST))
        bound += budgets[i] * best
        welfare += budgets[i] * (best + math.log(part / total))
    return bound, welfare


@compiled(fastmath=True)
def list_bound_and_welfare(
    worth: Floats, good: NDArray[np.int32], starts: NDArray[np.int64], budgets: Floats, log_prices: Floats, bids: Floats
) -> tuple[float, float]:
    """Do the same for lists and their bids; the bound holds only if the lists omit no better good."""
    bound, welfare = 0.0, 0.0
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        best = -1e300
        for j in range(first, last):
            best = max(best, worth[j] - log_prices[good[j]])
        total, part = 0.0, 0.0
        for j in range(first, last):
            total += bids[j]
            part += bids[j] * _exp(max(worth[j] - log_prices[good[j]] - best, LEAST))
        bound += budgets[i] * best
        welfare += budgets[i] * (best + math.log(part / total))
    return bound, welfare


@compiled(fastmath=True)
def best_table(worth: Floats, log_prices: Floats, budgets: Floats) -> float:
    """Return the bound of `table_bound_and_welfare` alone."""
    bound = 0.0
    for i in range(worth.shape[0]):
        row = worth[i]
        best = -1e300
        for k in range(worth.shape[1]):
            best = max(best, row[k] - log_prices[k])
        bound += budgets[i] * best
    return bound


@compiled(fastmath=True)
def count_near(
    worth: Floats, theta: float, weights: Floats, budgets: Floats, log_prices: Floats, depth: float, bids: Floats,
    floors: Floats, counts: NDArray[np.int64],
) -> None:  # fmt: skip
    """Count the relevant bids of each buyer: within exp(-depth) of the buyer's largest, or of the good's price.

    `floors` receives, per buyer, ``theta log u - weights`` of the buyer's least relevant bid, and in its second row the
    logarithm of the divisor of the buyer's bids.
    """
    for i in range(worth.shape[0]):
        row = worth[i]
        most = -1e300
        for k in range(worth.shape[1]):
            bids[k] = theta * row[k] - weights[k]
            most = max(most, bids[k])
        total = 0.0
        for k in range(worth.shape[1]):
            total += _exp(max(bids[k] - most, LEAST))
        floors[0, i] = most - depth
        floors[1, i] = most + math.log(total) - math.log(budgets[i]) - depth
        number = 0
        for k in range(worth.shape[1]):
            number += (bids[k] >= floors[0, i]) | (bids[k] - log_prices[k] >= floors[1, i])
        counts[i] = number


@compiled()
def list_near(
    worth: Floats, theta: float, weights: Floats, log_prices: Floats, floors: Floats, starts: NDArray[np.int64],
    kept: Floats, good: NDArray[np.int32],
) -> None:  # fmt: skip
    """Fill the lists that `count_near` counted."""
    for i in range(worth.shape[0]):
        row = worth[i]
        j = starts[i]
        for k in range(worth.shape[1]):
            t = theta * row[k] - weights[k]
            if j < starts[i + 1] and (t >= floors[0, i] or t - log_prices[k] >= floors[1, i]):
                kept[j] = row[k]
                good[j] = k
                j += 1
        # Rounding may change the count by a bid between the passes: free entries are filled with worthless goods.
        for rest in range(j, starts[i + 1]):
            kept[rest] = LOG_OF_ZERO
            good[rest] = 0
