"""Exact arithmetic on doubles: products as two doubles, sums as several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Floats, Indices

# Splits a double into two halves whose products are exact (Veltkamp).
SPLITTER = 2.0**27 + 1.0
# Products below this size may have rounding errors that are too small for a double.
LEAST_PRODUCT = 2.0**-900
# Passes that sort the doubles of a sum by size; the few sums that need more are added one by one.
PASSES = 2


def exact_products(left: Floats, right: Floats) -> Floats:
    """Return the products exactly, each as the sum of two doubles, shape (2, ...); nan if out of range (Dekker)."""
    product = left * right
    left_high, right_high = SPLITTER * left, SPLITTER * right
    left_high, right_high = left_high - (left_high - left), right_high - (right_high - right)
    left_low, right_low = left - left_high, right - right_high
    left_over = ((product - left_high * right_high) - left_low * right_high) - left_high * right_low
    lost = (np.abs(product) < LEAST_PRODUCT) & (left != 0) & (right != 0)
    return np.stack([np.where(lost, np.nan, product), left_low * right_low - left_over])


def exact_sums(terms: Floats, group: Indices, groups: int) -> Floats:
    """Return the exact sums of `terms` by group, each as the sum of several doubles, shape (levels, groups).

    The first double of a sum has its sign and is more than twice the rest; it is 0 only if the sum is 0. All sums are
    nan if any term is not finite or nearly overflows. Each pass splits off the leading bits of all terms on a grid so
    coarse that their sum is exact (Rump, Ogita and Oishi, "Accurate floating-point summation part I", 2008).
    """
    levels: list[Floats] = []
    spare = len(terms).bit_length() + 1
    while len(terms):
        largest = float(np.abs(terms).max())
        if not largest < 2.0 ** (1022 - spare):
            return np.full((1, groups), np.nan)
        grid = math.ldexp(1.0, math.frexp(largest)[1] + spare)
        leading = (terms + grid) - grid
        levels.append(np.asarray(np.bincount(group, weights=leading, minlength=groups), dtype=np.float64))
        terms = terms - leading
        left = np.flatnonzero(terms)
        terms, group = terms[left], group[left]
    return _ordered(np.stack(levels)) if levels else np.zeros((1, groups))


def _ordered(levels: Floats) -> Floats:
    """Return the same sums with the largest double of each first."""
    for _ in range(PASSES):
        for k in range(len(levels) - 1, 0, -1):
            large, small = levels[k - 1], levels[k]
            total = large + small
            part = total - large
            levels[k] = (large - (total - part)) + (small - part)
            levels[k - 1] = total
    rest = np.abs(levels[1:]).sum(axis=0)
    for j in np.flatnonzero((rest > 0) & ~(np.abs(levels[0]) > 2.0 * rest)):
        parts = levels[:, j].tolist()
        levels[:, j] = 0.0
        for k in range(len(levels)):
            levels[k, j] = math.fsum([*parts, *(-levels[:k, j]).tolist()])
        if math.fsum([*parts, *(-levels[:, j]).tolist()]):
            levels[:, j] = np.nan
    return levels


def upper_sum(terms: Sequence[Floats], least: float) -> float:
    """Return the least double not below the exact sum of all terms and `least`; infinite if out of range."""
    every = np.concatenate([[least], *(term.ravel() for term in terms)])
    parts = exact_sums(every, np.zeros(len(every), dtype=np.int64), 1)[:, 0].tolist()
    if not math.isfinite(parts[0]):
        return math.inf
    value = math.fsum(parts)
    return math.nextafter(value, math.inf) if math.fsum([*parts, -value]) > 0 else value
