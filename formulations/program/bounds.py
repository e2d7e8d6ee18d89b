"""Bounds on a program that row multipliers prove, by weak duality and our own arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .data import Csr, ProgramData

#: Twice the rounding error of one operation on doubles, relative.
EPSILON = 2.0**-52
# Passes over the rows for bounds that rows imply for columns.
PASSES = 2
# Reduced costs below NOISE of their terms that cost more than COSTLY of the bound together are repaired too.
NOISE, COSTLY = 1e-6, 1e-8
# In a repair, multipliers below the fault times these are taken for 0: the first that works.
DUST = (10.0, 100.0, 1000.0)
# Steps of a repair with one of them.
MOST_STEPS = 15
# Added to the equations of a repair, which dependent columns make singular; the next step takes it out again.
DAMPING = 1e-13
# How far a multiplier of 0 may move, of a row that allows either sign: a share of the largest one.
FREEDOM = 1e-3


def proved_bound(program: ProgramData, duals: Floats, slopes: Floats | None = None, repair: bool = True) -> float:
    """Return the bound on the continuous relaxation that `duals`, shape (rows,), prove; infinite if none.

    No feasible point is better, whatever the duals are: weak duality. For a maximisation over rows and bounds,

        c x = y (A x) + (c - y A) x <= max of y s over the rows' sides s + max of (c - y A) x over the columns' bounds

    A dual whose side of the row is infinite counts as 0. A reduced cost against an infinite bound of its column is
    taken against the bound that the rows imply for the column. Where there is none either, the duals prove nothing as
    they are: they are moved to the nearest that do, which costs about as much as they were wrong.

    Parameters
    ----------
    duals : ndarray of float, shape (rows,)
        Change of the optimal objective per unit of the row's active side.
    slopes : ndarray of float, shape (terms,), optional
        Of a line above each ``w log(s)``: by concavity ``w log(s) <= w log(w / slope) - w + slope s``. Needed for
        programs with log terms; moved with the duals.
    repair : bool
        Whether to move the duals where they prove nothing, or little for being a little wrong.

    Notes
    -----
    What is taken for granted: a reduced cost that its own rounding explains (2e-16 of the size of its terms, times
    their number) counts as 0 against an infinite bound, as no double can come nearer to 0. Strictly, the bound is that
    of a program whose costs differ by so much. A feasible point beats it only where that share of such a column's
    value is worth noticing: at values of 1e9 for a tolerance of 1e-6. Anything larger than rounding counts in full.
    The sum itself is exact but for its terms, each of which is rounded once or twice.
    """
    flip = 1.0 if program.sense == "max" else -1.0
    multipliers = _usable(program, flip * np.asarray(duals, dtype=np.float64), slopes, program.log_weights > 0)
    if multipliers is None:
        return flip * math.inf
    duality = _Duality(program, flip * program.objective, flip * program.offset, program.lower, program.upper)
    with np.errstate(all="ignore"):
        return flip * duality.best(multipliers, repair)


def proves_infeasible(program: ProgramData, ray: Floats) -> bool:
    """Whether the row multipliers `ray`, shape (rows,), of either sign prove that no point satisfies rows and bounds.

    They do if they prove that an objective of 0 is below 0, by more than the rounding of that proof (Farkas). The ray
    is repaired as duals are, and the same is taken for granted: see :func:`proved_bound`.
    """
    size = float(np.abs(ray).max(initial=0.0))
    duality = _Duality(program, np.zeros(program.num_columns), 0.0, program.lower, program.upper, strict=True)
    for sign in (1.0, -1.0) if 0 < size < math.inf else ():
        no_logs = np.zeros(len(program.log_weights), dtype=bool)
        multipliers = _usable(program, sign * np.asarray(ray, dtype=np.float64) / size, None, no_logs)
        with np.errstate(all="ignore"):
            if multipliers is not None and duality.best(multipliers, repair=True) < 0:
                return True
    return False


def implied_bounds(program: ProgramData) -> tuple[Floats, Floats]:
    """Return (lower, upper) by column: its own bounds, or where they are infinite those that single rows imply.

    Every point that satisfies rows and bounds satisfies these: they are widened by the rounding of their own sums.
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


@dataclass(frozen=True)
class _Multipliers:
    """Of rows, 0 where the side that one belongs to is infinite; and slopes by log term, 0 where its weight is 0."""

    rows: Floats
    slopes: Floats


def _usable(program: ProgramData, rows: Floats, slopes: Floats | None, logs: NDArray[np.bool_]) -> _Multipliers | None:
    """Return multipliers to reckon with, or None where the given ones are no numbers or no slopes."""
    if slopes is None and logs.any():
        raise ValueError("a program with log terms needs the slopes of lines above them")
    given = np.where(logs, 0.0 if slopes is None else slopes, 0.0)
    if not (np.isfinite(rows).all() and np.isfinite(given).all() and (given[logs] > 0).all()):
        return None
    return _Multipliers(_allowed(program, rows), given)


def _allowed(program: ProgramData, rows: Floats) -> Floats:
    wrong = ((rows > 0) & np.isinf(program.row_upper)) | ((rows < 0) & np.isinf(program.row_lower))
    return np.where(wrong, 0.0, rows)


@dataclass(frozen=True)
class _Duality:
    """Weak duality for the maximum of offset + cost @ x + logarithms over the program's rows and the given bounds.

    A `strict` bound has the rounding of its terms added to it.
    """

    program: ProgramData
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    strict: bool = False

    def best(self, multipliers: _Multipliers, repair: bool) -> float:
        """Return the bound that the multipliers prove, or the repaired ones if it is better; infinite if none."""
        reduced = self.reduced(multipliers)
        duality = self
        if self.endless(multipliers, reduced).any():
            lower, upper = implied_bounds(self.program)
            duality = replace(self, lower=lower, upper=upper)
        found = duality.proof(multipliers, reduced)
        wanted = duality.without_far_bounds(multipliers, reduced, found) if repair else None
        if wanted is None:
            return found
        moved = _repaired(wanted, multipliers)
        return min(found, duality.proof(moved, duality.reduced(moved)))

    def reduced(self, multipliers: _Multipliers) -> Floats:
        """Return the reduced costs, shape (columns,)."""
        n = len(self.cost)
        reduced = self.cost - _times(multipliers.rows, self.program.matrix, n)
        if multipliers.slopes.any():
            reduced += _times(multipliers.slopes, self.program.log_matrix, n)
        return reduced

    def rounding(self, multipliers: _Multipliers, share: float | None = None) -> Floats:
        """Return the most that rounding can have changed each reduced cost, or a share of its terms, by column."""
        n = len(self.cost)
        size, terms = np.abs(self.cost), np.full(n, 2.0)
        for factor, matrix in ((multipliers.rows, self.program.matrix), (multipliers.slopes, self.program.log_matrix)):
            if factor.any():
                size += _times(np.abs(factor), replace(matrix, values=np.abs(matrix.values)), n)
                terms += np.bincount(matrix.columns, minlength=n)[:n]
        return np.asarray((EPSILON * terms if share is None else share) * size)

    def endless(self, multipliers: _Multipliers, reduced: Floats) -> NDArray[np.bool_]:
        """Return which reduced costs point at an infinite bound by more than rounding, shape (columns,)."""
        endless = np.isinf(np.where(reduced > 0, self.upper, self.lower)) & (reduced != 0)
        if endless.any():
            endless &= ~(np.abs(reduced) <= self.rounding(multipliers))
        return np.asarray(endless)

    def without_far_bounds(self, multipliers: _Multipliers, reduced: Floats, bound: float) -> _Duality | None:
        """Return the same without the far bounds that noise in the reduced costs makes costly; None if none is."""
        if math.isinf(bound):
            return self
        side = np.where(reduced > 0, self.upper, self.lower)
        worth = np.where((reduced != 0) & np.isfinite(side), np.abs(reduced * side), 0.0)
        enough = COSTLY * max(1.0, abs(bound))
        if not enough < worth.sum():
            return None
        noise = self.rounding(multipliers, NOISE)
        worth[np.abs(reduced) > noise] = 0.0
        if not enough < worth.sum() < math.inf:
            return None
        reach = np.abs(side[worth > 1e-3 * worth.max()]).min()
        lower = np.where((self.lower <= -reach) & (reduced >= -noise), -math.inf, self.lower)
        upper = np.where((self.upper >= reach) & (reduced <= noise), math.inf, self.upper)
        return replace(self, lower=lower, upper=upper)

    def proof(self, multipliers: _Multipliers, reduced: Floats) -> float:
        """Return the bound; infinite where a reduced cost points at an infinite bound."""
        if self.endless(multipliers, reduced).any():
            return math.inf
        program, y = self.program, multipliers.rows
        side = np.where(reduced > 0, self.upper, self.lower)
        row_side = np.where(y > 0, program.row_upper, program.row_lower)
        rows, columns, logs = y != 0, (reduced != 0) & np.isfinite(side), multipliers.slopes > 0
        weight, slope = program.log_weights[logs], multipliers.slopes[logs]
        lines = weight * (np.log(weight) - np.log(slope) - 1.0) + slope * program.log_offsets[logs]
        parts = (lines, y[rows] * row_side[rows], reduced[columns] * side[columns])
        try:
            value = math.fsum([self.offset, *(term for part in parts for term in part.tolist())])
        except (OverflowError, ValueError):  # beyond the range of doubles
            return math.inf
        if self.strict:
            error = self.rounding(multipliers)
            # A reduced cost that rounding may have given its sign may be against either bound.
            both = np.maximum(np.abs(self.lower), np.abs(self.upper))
            reach = np.where(np.abs(reduced) > error, np.abs(side), both)
            value += float((error * np.where(np.isfinite(reach), reach, 0.0)).sum())
            value += EPSILON * float(sum(np.abs(part).sum() for part in parts))
        return value if math.isfinite(value) else math.inf  # a term beyond the range of doubles proves nothing


def _times(factor: Floats, matrix: Csr, columns: int) -> Floats:
    """Return factor @ matrix, shape (columns,)."""
    terms = matrix.values * factor[matrix.row_of_entry()]
    return np.asarray(np.bincount(matrix.columns, weights=terms, minlength=columns)[:columns])


def _repaired(duality: _Duality, given: _Multipliers) -> _Multipliers:
    """Return multipliers near the given ones none of whose reduced costs points at an infinite bound, if found.

    Multipliers no larger than the fault are noise and become 0. The others move to where the reduced costs at fault are
    0, as little as can be in shares of themselves: so none changes its sign, and rows with slack keep small ones. Where
    that puts others at fault, they join.
    """
    from scipy.sparse import csr_array, vstack

    program, rows = duality.program, len(given.rows)
    used, lines = given.slopes > 0, program.log_matrix
    logs = csr_array((lines.values, lines.columns, lines.starts), shape=(len(used), len(duality.cost)))
    factors = vstack([program.to_scipy(), -logs[np.flatnonzero(used)]]).tocsr()
    start = np.concatenate([given.rows, given.slopes[used]])
    size = np.sqrt(np.asarray(factors.multiply(factors).sum(axis=1)).ravel())
    largest = float(max((np.abs(start) * size).max(initial=1e-300), np.abs(duality.cost).max(initial=0.0)))
    typical = largest / np.where(size > 0, size, np.inf)
    free = np.concatenate([program.row_lower == program.row_upper, np.zeros(len(start) - rows, dtype=bool)])
    fault = float(np.abs(duality.reduced(given)[duality.endless(given, duality.reduced(given))]).max(initial=0.0))
    found = given
    for dust in DUST:
        z = np.where(np.abs(start) <= dust * fault / largest * typical, 0.0, start)
        at_fault, counts = np.isinf(duality.lower) & np.isinf(duality.upper), []
        while (z[rows:] > 0).all():
            slopes = given.slopes.copy()
            slopes[used] = z[rows:]
            found = _Multipliers(_allowed(program, z[:rows]), slopes)
            reduced = duality.reduced(found)
            endless = duality.endless(found, reduced)
            if not endless.any():
                return found
            counts.append(int(endless.sum()))
            joined = bool((endless & ~at_fault).any())
            if len(counts) > MOST_STEPS or (len(counts) > 3 and not joined and counts[-1] > 0.9 * counts[-3]):
                break
            at_fault |= endless
            weight = np.abs(z) + np.where(free, FREEDOM * typical, 0.0)
            moved = z + weight * _shares(factors[:, np.flatnonzero(at_fault)], weight, reduced[at_fault])
            moved[np.abs(moved) <= EPSILON * typical] = 0.0
            z = np.where(free | (moved * z > 0), moved, 0.0)
    return found


def _shares(factors: Any, weight: Floats, wanted: Floats) -> Floats:
    """Return the least h with (weight h) @ factors = wanted, by the equations of its optimality."""
    from scipy.sparse import block_array, diags_array, eye_array
    from scipy.sparse.linalg import splu

    moving = np.flatnonzero(weight)
    scaled = (diags_array(weight[moving]) @ factors[moving]).tocsc()
    norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel())
    unit = np.where(norm > 0, 1.0 / np.where(norm > 0, norm, 1.0), 0.0)
    scaled = scaled @ diags_array(unit)
    m, n = scaled.shape
    system = block_array([[eye_array(m), scaled], [scaled.T, -DAMPING * eye_array(n)]]).tocsc()
    shares = np.zeros(len(weight))
    try:
        factored = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options={"SymmetricMode": True})
    except RuntimeError:  # singular all the same
        return shares
    shares[moving] = factored.solve(np.concatenate([np.zeros(m), wanted * unit]))[:m]
    return shares
