"""Prices of GPU types for a goodput allocation: the least bound that prices prove, and a plan that follows them."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.assignment.goodput import GoodputAllocation, GoodputPlan

MOST_CUTS = 200
# Relative tolerance of the bound: the search ends once cuts can lower it by no more than this.
PRECISION = 1e-9
HALVINGS = 50


def best_prices(problem: GoodputAllocation, deadline: float = math.inf) -> tuple[Floats, float]:
    """Return prices, shape (K,), whose bound (`GoodputAllocation.bound_at`) is least, and the bound.

    The bound is convex in the prices, and each evaluation gives a line below it (the GPUs that the jobs would use); a
    linear program over these lines gives the next prices (Kelley's cutting planes). The first prices are evaluated
    whatever the deadline, a reading of `time.perf_counter`; every bound holds.
    """
    from scipy.optimize import linprog

    from .kernels import choices

    jobs, types = len(problem.goodputs), len(problem.gpus)
    ranks = np.arange(problem.goodputs.shape[2])
    with np.errstate(invalid="ignore"):
        gains = np.where(problem.allowed, problem.utilities - problem.idle_utility, 0.0) / np.maximum(ranks, 1)
    highest = np.maximum(gains.max(axis=(0, 2)), 0.0)  # at these prices no job takes a GPU
    prices, rows, sides = highest / 2, [], []
    best, least = prices, np.inf
    for _ in range(MOST_CUTS):
        type_of, count_of, worth = choices(problem.utilities, problem.idle_utility, prices)
        bound = math.fsum([*worth.tolist(), *(prices * problem.gpus).tolist()]) / jobs
        if bound < least:
            best, least = prices, bound
        if time.perf_counter() >= deadline:
            break
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


def filled(problem: GoodputAllocation, prices: Floats, deadline: float = math.inf) -> GoodputPlan:
    """Return a plan: the jobs' choices at the lowest multiple of the prices that fits the GPUs, then filled up.

    GPUs left over go, one change of a configuration at a time, to the job that gains most; ties go to the first.
    After the deadline, a reading of `time.perf_counter`, the plan is the first one that fits.
    """
    from .kernels import best_change, choices

    utilities, idle, types = problem.utilities, problem.idle_utility, len(prices)

    def fits(factor: float) -> bool:
        kind, count, _ = choices(utilities, idle, factor * prices)
        return bool((np.bincount(kind, weights=count, minlength=types) <= problem.gpus).all())

    low, high = 0.0, 1.0
    while not fits(high) and high < 2.0**HALVINGS:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        if time.perf_counter() >= deadline:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    jobs = len(problem.goodputs)
    type_of, count_of, _ = choices(utilities, idle, high * prices)
    free = problem.gpus - np.bincount(type_of, weights=count_of, minlength=types).astype(np.int64)
    if (free < 0).any():
        (type_of, count_of), free = np.zeros((2, jobs), np.int64), problem.gpus.copy()
    while time.perf_counter() < deadline:
        now = np.where(count_of > 0, utilities[np.arange(jobs), type_of, count_of], idle)
        (job, kind, count), gain = best_change(utilities, now, type_of, count_of, free)
        if not gain > 0:
            break
        free[type_of[job]] += count_of[job]
        free[kind] -= count
        type_of[job], count_of[job] = kind, count
    return GoodputPlan(problem, type_of, count_of)
