"""Open shops and gangs as intervals in whole units of time, the input of CP-SAT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.makespan.gang import construction as gang_lists
from ....formulations.makespan.gang.problem import GangMakespan
from ....formulations.makespan.open_shop import construction as open_shop_lists
from ....formulations.makespan.open_shop.problem import OpenShop

# Upper limit of the whole numbers in a model: their sums have to fit, too.
MOST_UNITS = 2**40
# Decimals of times that are stated exactly.
MOST_DECIMALS = 6
# Units in the makespan's bound if the times are on no decimal grid.
GRID_UNITS = 2**26


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """A scheduling problem in whole units of time.

    Attributes
    ----------
    lengths : ndarray of int, shape (A,)
        Lengths of the activities.
    apart : list of ndarray of int
        Sets of activities that exclude each other in time.
    low, high : int
        Bounds on the makespan.
    hint : ndarray of int, shape (A,)
        Starts of a schedule of makespan `high`.
    plan_of : callable
        Function from starts, shape (A,), to the problem's own plan.
    widths : ndarray of int, shape (A,), or None
        Amount of `capacity` that each activity occupies.
    unit, lost : float
        Length of one unit, and the most that rounding adds to the makespan, both in the caller's time.
    note : str
        Note on rounding; empty if the times are exact.
    """

    lengths: Indices
    apart: list[Indices]
    low: int
    high: int
    hint: Indices
    plan_of: Callable[[Indices], Any]
    widths: Indices | None = None
    capacity: int = 0
    unit: float = 1.0
    lost: float = 0.0
    note: str = ""


def starts_of(problem: OpenShop, plan: Any) -> Floats:
    """Return the start of every operation in a schedule without preemption, shape (jobs, machines)."""
    starts = np.zeros(problem.times.shape)
    starts[plan.job, plan.machine] = plan.start
    return starts


def shop_intervals(problem: OpenShop, plan: Any) -> Intervals:
    """Return the shop, with `plan` as the initial schedule."""
    lengths, unit, exact = whole_times(problem.times, problem.lower_bound)
    active = np.flatnonzero(lengths.ravel() > 0)
    flat = np.full(problem.times.size, -1)
    flat[active] = np.arange(len(active))
    place = flat.reshape(problem.times.shape)
    # Lengths are rounded up, so the hint is timed anew in units.
    rounded = open_shop_lists.from_starts(lengths.astype(np.float64), starts_of(problem, plan))
    hint = np.zeros(problem.times.shape, dtype=np.int64)
    hint[rounded.job, rounded.machine] = rounded.start.astype(np.int64)

    def plan_of(starts: Indices) -> Any:
        table = np.zeros(problem.times.size)
        table[active] = starts
        return open_shop_lists.from_starts(problem.times, table.reshape(problem.times.shape))

    lost = 0.0 if exact else len(active) * unit
    return Intervals(
        lengths=lengths.ravel()[active],
        apart=[row[row >= 0] for row in (*place, *place.T)],
        low=int(max(lengths.sum(axis=0).max(), lengths.sum(axis=1).max())),
        high=int(rounded.makespan),
        hint=hint.ravel()[active],
        plan_of=plan_of,
        unit=unit,
        lost=lost,
        note="" if exact else f"times rounded up to a grid of {unit:.3g}; the bound is corrected by {lost:.3g}",
    )


def gang_intervals(problem: GangMakespan, plan: Any) -> Intervals:
    """Return the gangs, with `plan` as the initial schedule."""
    active = np.flatnonzero(problem.rounds > 0)
    starts = np.zeros(len(problem.rounds), dtype=np.int64)
    starts[plan.job] = plan.start

    def plan_of(found: Indices) -> Any:
        table = np.zeros(len(problem.rounds), dtype=np.int64)
        table[active] = found
        return gang_lists.from_starts(problem.rounds, problem.gangs, problem.gpus, table)

    return Intervals(
        lengths=problem.rounds[active],
        apart=[],
        widths=problem.gangs[active],
        capacity=problem.gpus,
        low=problem.lower_bound,
        high=plan.makespan,
        hint=starts[active],
        plan_of=plan_of,
    )


def whole_times(times: Floats, longest: float) -> tuple[Indices, float, bool]:
    """Return times as whole numbers of a unit, the unit, and whether that is exact; otherwise they are rounded up.

    Times of up to six decimals are exact, as long as the numbers stay within CP-SAT's range.
    """
    for decimals in range(MOST_DECIMALS + 1):
        scale = 10.0**decimals
        if times.sum() * scale > MOST_UNITS:
            break
        whole = np.rint(times * scale)
        if np.array_equal(whole / scale, times):
            return whole.astype(np.int64), 1.0 / scale, True
    unit = longest / GRID_UNITS
    return np.ceil(times / unit).astype(np.int64), unit, False
