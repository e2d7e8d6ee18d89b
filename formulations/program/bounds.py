"""Bounds on a program that row multipliers prove, by weak duality in exact arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .data import ProgramData
from .duality import EPSILON, Duality, Multipliers, allowed
from .repair import repaired

# Passes over the rows in the derivation of column bounds.
PASSES = 2


def proved_bound(program: ProgramData, duals: Floats, slopes: Floats | None = None, repair: bool = True) -> float:
    """Return the bound on the continuous relaxation that `duals`, shape (rows,), prove; infinite if none.

    By weak duality no feasible point is better, whatever the duals are. For a maximisation over rows and bounds,

        c x = y (A x) + (c - y A) x <= max of y s over the rows' sides s + max of (c - y A) x over the columns' bounds

    A dual whose side of the row is infinite counts as 0. If the bound of a column is infinite, its reduced cost is
    multiplied by the bound that the rows imply for the column. If the rows imply none either, the duals prove no bound;
    unless `repair` is false they are moved to the nearest duals that do, which weakens the bound by about their error.

    Parameters
    ----------
    duals : ndarray of float, shape (rows,)
        Change of the optimal objective per unit of the row's active side.
    slopes : ndarray of float, shape (terms,), optional
        Slope of a line above each ``w log(s)``: by concavity ``w log(s) <= w log(w / slope) - w + slope s``. Needed for
        programs with log terms; repaired with the duals.

    Notes
    -----
    Reduced costs are exact sums of exact products, and so is the bound except for its logarithms and for the last
    rounding, which is away from the optimum. A reduced cost against an infinite bound counts as 0 if it is no more
    than the rounding of the costs themselves, however large the duals: the bound is proved up to this rounding of the
    program's own data.
    """
    flip = 1.0 if program.sense == "max" else -1.0
    multipliers = _usable(program, flip * np.asarray(duals, dtype=np.float64), slopes, program.log_weights > 0)
    if multipliers is None:
        return flip * math.inf
    duality = Duality(program, flip * program.objective, flip * program.offset, program.lower, program.upper)
    with np.errstate(all="ignore"):
        return flip * _best(duality, multipliers, repair)


def proves_infeasible(program: ProgramData, ray: Floats) -> bool:
    """Whether the row multipliers `ray`, shape (rows,), of either sign prove that no point satisfies rows and bounds.

    They do if they prove that an objective of 0 is below 0 (Farkas), by more than the rounding of the program's own
    data. The ray is repaired like duals.
    """
    size = float(np.abs(ray).max(initial=0.0))
    duality = Duality(program, np.zeros(program.num_columns), 0.0, program.lower, program.upper, strict=True)
    for sign in (1.0, -1.0) if 0 < size < math.inf else ():
        no_logs = np.zeros(len(program.log_weights), dtype=bool)
        multipliers = _usable(program, sign * np.asarray(ray, dtype=np.float64) / size, None, no_logs)
        with np.errstate(all="ignore"):
            if multipliers is not None and _best(duality, multipliers, repair=True) < 0:
                return True
    return False


def implied_bounds(program: ProgramData) -> tuple[Floats, Floats]:
    """Return (lower, upper) by column: its own bounds, or if they are infinite the bounds that single rows imply.

    Every point that satisfies rows and bounds satisfies these bounds: they are widened by the rounding of their sums.
    """
    lower, upper = program.lower.copy(), program.upper.copy()
    value, column, row = program.matrix.values, program.matrix.columns, program.matrix.row_of_entry()
    used = (value != 0) & (np.isfinite(program.row_lower) | np.isfinite(program.row_upper))[row]
    value, column, row = value[used], column[used], row[used]
    rows = program.num_rows
    roundings = np.bincount(row, minlength=rows)[row] + 3.0
    missing = -1
    for _ in range(PASSES):
        if missing in (0, missing := int(np.isinf(lower).sum() + np.isinf(upper).sum())):
            break
        for sign, side in ((1.0, program.row_upper), (-1.0, -program.row_lower)):
            a = sign * value  # sum of a x <= side
            with np.errstate(all="ignore"):
                least = np.where(a > 0, a * lower[column], a * upper[column])
                endless = np.isinf(least)
                finite = np.where(endless, 0.0, least)
                count = np.bincount(row, weights=endless, minlength=rows)[row]
                total = np.bincount(row, weights=finite, minlength=rows)[row]
                size = np.bincount(row, weights=np.abs(finite), minlength=rows)[row] + np.abs(side[row])
                limit = (side[row] - (total - finite)) / a
                limit += np.sign(a) * EPSILON * (roundings * size / np.abs(a) + np.abs(limit))
            alone = np.isfinite(limit) & ((count == 0) | ((count == 1) & endless))
            above = alone & (a > 0) & np.isinf(upper[column])
            below = alone & (a < 0) & np.isinf(lower[column])
            np.minimum.at(upper, column[above], limit[above])
            np.maximum.at(lower, column[below], limit[below])
    return lower, upper


def _best(duality: Duality, multipliers: Multipliers, repair: bool) -> float:
    """Return the bound that the multipliers prove, or the repaired ones if it is better; infinite if none."""
    exact = duality.exact(multipliers)
    if duality.open_ended(multipliers, exact).any():
        lower, upper = implied_bounds(duality.program)
        duality = replace(duality, lower=lower, upper=upper)
    found = duality.proof(multipliers)
    wanted = duality.without_far_bounds(multipliers, exact[0], found) if repair else None
    return found if wanted is None else min(found, duality.proof(repaired(duality, wanted, multipliers)))


def _usable(program: ProgramData, rows: Floats, slopes: Floats | None, logs: NDArray[np.bool_]) -> Multipliers | None:
    """Return valid multipliers, or None if the given ones are not finite or a slope is not positive."""
    if slopes is None and logs.any():
        raise ValueError("a program with log terms needs the slopes of lines above them")
    given = np.where(logs, 0.0 if slopes is None else slopes, 0.0)
    if not (np.isfinite(rows).all() and np.isfinite(given).all() and (given[logs] > 0).all()):
        return None
    return Multipliers(allowed(program, rows), given)
