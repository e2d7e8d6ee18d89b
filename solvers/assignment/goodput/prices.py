"""Prices of GPU types for a goodput allocation: the least bound they prove, and a plan that follows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.assignment.goodput import GoodputAllocation, GoodputPlan

MOST_CUTS = 200
# The bound is good enough once cuts can lower it by no more than this, relatively.
PRECISION = 1e-9
HALVINGS = 50


def best_prices(problem: GoodputAllocation) -> tuple[Floats, float]:
    """Return prices, shape (K,), whose bound (`GoodputAllocation.bound_at`) is least, and the bound.

    The bound is convex in the prices, and each evaluation gives a line below it (the GPUs that the jobs would use); a
    linear program over these lines gives the next prices (Kelley's cutting planes).
    """
    from scipy.optimize import linprog

    jobs, types = len(problem.goodputs), len(problem.gpus)
    ranks = np.arange(problem.goodputs.shape[2])
    with np.errstate(invalid="ignore"):
        gains = np.where(problem.allowed, problem.utilities - problem.idle_utility, 0.0) / np.maximum(ranks, 1)
    highest = np.maximum(gains.max(axis=(0, 2)), 0.0)  # at these prices nobody buys
    prices, rows, sides = highest / 2, [], []
    best, least = prices, np.inf
    for _ in range(MOST_CUTS):
        bound = problem.bound_at(prices)
        if bound < least:
            best, least = prices, bound
        type_of, count_of = _chosen(problem, prices)
        used = np.bincount(type_of, weights=count_of, minlength=types)
        slope = (problem.gpus - used) / jobs
        rows.append(np.append(slope, -1.0))
        sides.append(float(slope @ prices) - bound)
        found: Any = linprog(
            np.append(np.zeros(types), 1.0),
            A_ub=np.array(rows),
            b_ub=np.array(sides),
            bounds=[*((0.0, float(top)) for top in highest), (None, None)],
            method="highs-ds",
        )
        if found.x is None or least - found.fun <= PRECISION * max(abs(least), 1e-9):
            break
        prices = np.clip(found.x[:-1], 0.0, highest)
    return best, least


def _chosen(problem: GoodputAllocation, prices: Floats) -> tuple[Indices, Indices]:
    """Return the type and count that each job chooses at the prices; the fewest GPUs of equals, and none before any."""
    jobs, _, length = problem.goodputs.shape
    paid = (problem.utilities - prices[:, None] * np.arange(length)).transpose(0, 2, 1).reshape(jobs, -1)
    pick = paid.argmax(axis=1)
    runs = paid[np.arange(jobs), pick] > problem.idle_utility
    count, kind = np.divmod(pick, len(prices))
    return np.where(runs, kind, 0), np.where(runs, count, 0)


def filled(problem: GoodputAllocation, prices: Floats) -> GoodputPlan:
    """Return a plan: what jobs choose at the lowest multiple of the prices that the GPUs allow, then what still fits.

    GPUs left over go, one change of a configuration at a time, to who gains most by it; the first of equals.
    """
    types = len(prices)

    def fits(factor: float) -> bool:
        kind, count = _chosen(problem, factor * prices)
        return bool((np.bincount(kind, weights=count, minlength=types) <= problem.gpus).all())

    low, high = 0.0, 1.0
    while not fits(high) and high < 2.0**HALVINGS:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    jobs, _, length = problem.goodputs.shape
    rows, ranks = np.arange(jobs), np.arange(length)
    type_of, count_of = _chosen(problem, high * prices) if fits(high) else np.zeros((2, jobs), np.int64)
    free = problem.gpus - np.bincount(type_of, weights=count_of, minlength=types).astype(np.int64)
    while True:
        now = np.where(count_of > 0, problem.utilities[rows, type_of, count_of], problem.idle_utility)
        room = np.tile(free, (jobs, 1))
        room[rows, type_of] += count_of
        gain = np.where(ranks <= room[:, :, None], problem.utilities - now[:, None, None], -np.inf)
        job, kind, count = np.unravel_index(int(gain.argmax()), gain.shape)
        if not gain[job, kind, count] > 0:
            return GoodputPlan(problem, type_of, count_of)
        free[type_of[job]] += count_of[job]
        free[kind] -= count
        type_of[job], count_of[job] = kind, count
