"""Rounding of the dual's rounds to whole rounds within the cluster's total, at the least loss of bound."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Indices
from ...formulations.window.problem import ScheduleWindow
from .dual import Dual

# Near-ties of a knapsack, and its largest sum of GPU-rounds: enough to fill almost any slack at almost no loss.
MOST_CHANGES = 400
SPAN = 96


def rounded(window: ScheduleWindow, dual: Dual) -> Indices:
    """Return rounds per job, shape (N,), within the cluster's total; the better of two treatments of the longest jobs.

    In the dual the jobs that set the horizon may mix two numbers of rounds so that they end just with the sum branch.
    Whole rounds either leave them longer, or make them shorter than the sum branch.
    """
    left = window.tables.remaining
    rows = np.arange(len(left))
    plain = dual.within
    options = [_fitted(window, dual, plain)]
    after = left[rows, plain]
    horizon = float(window.tables.branch_weights @ after)
    late = np.flatnonzero((after > horizon) & (after > left[:, -1].max()))
    if window.tables.makespan_price and len(late):
        raised = plain.copy()
        raised[late] = np.minimum((left[late] > max(horizon, float(left[:, -1].max()))).sum(axis=1), dual.ceiling[late])
        options.append(_fitted(window, dual, raised, fixed=late))
    return max(options, key=lambda counts: _worth(window, counts))


def _worth(window: ScheduleWindow, counts: Indices) -> float:
    tables = window.tables
    rows = np.arange(len(counts))
    return float(tables.value[rows, counts].sum()) - tables.makespan_price * tables.makespan(counts)


def _fitted(window: ScheduleWindow, dual: Dual, start: Indices, fixed: Indices | None = None) -> Indices:
    """Drop the cheapest rounds until the rest fits, add the price's ties, then fill the slack exactly."""
    from .kernels import best_fit, nearest_change

    counts, gangs = start.copy(), window.gangs
    rows, supply = np.arange(len(start)), window.gpus * window.rounds
    movable = dual.own_rates == 0
    if fixed is not None:
        movable[fixed] = False
    slack = supply - int(gangs @ counts)
    while slack < 0:
        fall = dual.net[rows, counts] - dual.net[rows, np.maximum(counts - 1, 0)]
        loss = np.where((counts > dual.floor) & movable, fall, np.inf)
        order = np.argsort(loss / gangs, kind="stable")
        order = order[np.isfinite(loss[order])]
        if not len(order):
            return counts  # nothing but the longest jobs; packing shortens them
        drop = order[: 1 + int(np.searchsorted(np.cumsum(gangs[order]), -slack))]
        counts[drop] -= 1
        slack = supply - int(gangs @ counts)
    for j in np.flatnonzero((dual.beyond > counts) & movable):
        if slack <= SPAN // 2:
            break
        more = min(int(dual.beyond[j] - counts[j]), slack // int(gangs[j]))
        counts[j] += more
        slack -= more * int(gangs[j])
    if slack == 0 or dual.gpu_price == 0.0:
        return counts
    to, loss = nearest_change(
        dual.net, counts, gangs, movable, dual.floor, dual.ceiling, window.tables.needs, SPAN // 2
    )
    open_jobs = np.flatnonzero(loss < dual.gpu_price * slack)
    if len(open_jobs) > MOST_CHANGES:
        open_jobs = np.sort(open_jobs[np.argpartition(loss[open_jobs], MOST_CHANGES)[:MOST_CHANGES]])
    chosen = open_jobs[best_fit((gangs * (to - counts))[open_jobs], loss[open_jobs], slack, dual.gpu_price, SPAN)]
    counts[chosen] = to[chosen]
    return counts
