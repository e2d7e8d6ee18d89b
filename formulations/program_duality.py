"""Weak duality of a program in exact arithmetic: reduced costs of multipliers, and the bound that they prove."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .exact_sums import exact_products, exact_sums, upper_sum
from .program import Csr, Floats, Indices, Program

#: Twice the rounding error of one operation on doubles, relative.
EPSILON = 2.0**-52
# Reduced costs below NOISE of their terms that cost more than COSTLY of the bound together are repaired too.
NOISE, COSTLY = 1e-6, 1e-8


@dataclass(frozen=True)
class Multipliers:
    """Of rows, 0 where the side that one belongs to is infinite; and slopes by log term, 0 where its weight is 0.

    To them come corrections that are fractions, here rounded to doubles: with those before rounding, the reduced costs
    of the columns in `zero` are exactly 0.
    """

    rows: Floats
    slopes: Floats
    more_rows: Floats | None = None
    more_slopes: Floats | None = None
    zero: Indices | None = None


@dataclass(frozen=True)
class Reduced:
    """Exact reduced costs, each the sum of several doubles whose first has its sign, and what they may be wrong by."""

    levels: Floats
    error: Floats

    @property
    def rises(self) -> NDArray[np.bool_]:
        """Which may be above 0; so may all that are no numbers."""
        return np.asarray(~(self.levels[0] <= 0) | self.unsure)

    @property
    def falls(self) -> NDArray[np.bool_]:
        """Which may be below 0."""
        return np.asarray(~(self.levels[0] >= 0) | self.unsure)

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Which may be of either sign."""
        return np.asarray((self.error > 0) & ~(np.abs(self.levels[0]) > 4.0 * self.error))


def allowed(program: Program, rows: Floats) -> Floats:
    """Return multipliers of rows, 0 for those whose side is infinite, shape (rows,)."""
    wrong = ((rows > 0) & np.isinf(program.row_upper)) | ((rows < 0) & np.isinf(program.row_lower))
    return np.where(wrong, 0.0, rows)


@dataclass(frozen=True)
class Duality:
    """Weak duality for the maximum of offset + cost @ x + logarithms over the program's rows and the given bounds.

    A `strict` bound has added to it what rounding of the data could change.
    """

    program: Program
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    strict: bool = False

    def exact(self, multipliers: Multipliers) -> Reduced:
        """Return the reduced costs without rounding."""
        n, entries = len(self.cost), self._entries(multipliers)
        column = np.concatenate([np.arange(n), *(np.tile(columns, 2) for columns, _, _, _ in entries)])
        terms = [exact_products(factor, value).ravel() for _, factor, _, value in entries]
        levels, error = exact_sums(np.concatenate([self.cost, *terms]), column, n), np.zeros(n)
        if multipliers.zero is not None:
            for columns, _, more, value in entries:
                # The correction is the fraction nearest to `more`, and known as well as that is.
                error += 2.0 * EPSILON * np.bincount(columns, weights=np.abs(more * value), minlength=n)[:n]
            column = np.concatenate([np.tile(np.arange(n), len(levels)), *(np.tile(c, 2) for c, _, _, _ in entries)])
            terms = [exact_products(more, value).ravel() for _, _, more, value in entries]
            levels = exact_sums(np.concatenate([levels.ravel(), *terms]), column, n)
            levels[:, multipliers.zero] = error[multipliers.zero] = 0.0
        return Reduced(levels, error)

    def _entries(self, multipliers: Multipliers) -> list[tuple[Indices, Floats, Floats, Floats]]:
        """Return (columns, multipliers, their corrections, values): of the matrix, turned over, and of logarithms."""
        found = []
        for factor, more, matrix, sign in (
            (multipliers.rows, multipliers.more_rows, self.program.matrix, -1.0),
            (multipliers.slopes, multipliers.more_slopes, self.program.log_matrix, 1.0),
        ):
            more = np.zeros(len(factor)) if more is None else more
            row = matrix.row_of_entry()
            used = np.flatnonzero((factor != 0)[row] | (more != 0)[row])
            found.append((matrix.columns[used], factor[row[used]], more[row[used]], sign * matrix.values[used]))
        return found

    def open_ended(self, exact: Reduced) -> NDArray[np.bool_]:
        """Return which reduced costs may point at an infinite bound, however little, shape (columns,)."""
        return np.asarray((exact.rises & np.isinf(self.upper)) | (exact.falls & np.isinf(self.lower)))

    def reduced(self, multipliers: Multipliers) -> Floats:
        """Return the reduced costs, shape (columns,)."""
        n = len(self.cost)
        reduced = self.cost - _times(multipliers.rows, self.program.matrix, n)
        if multipliers.slopes.any():
            reduced += _times(multipliers.slopes, self.program.log_matrix, n)
        return reduced

    def rounding(self, multipliers: Multipliers, share: float | None = None) -> Floats:
        """Return the most that rounding can have changed each reduced cost, or a share of its terms, by column."""
        n = len(self.cost)
        size, terms = np.abs(self.cost), np.full(n, 2.0)
        for factor, matrix in ((multipliers.rows, self.program.matrix), (multipliers.slopes, self.program.log_matrix)):
            if factor.any():
                size += _times(np.abs(factor), replace(matrix, values=np.abs(matrix.values)), n)
                terms += np.bincount(matrix.columns, minlength=n)[:n]
        return np.asarray((EPSILON * terms if share is None else share) * size)

    def endless(self, multipliers: Multipliers, reduced: Floats) -> NDArray[np.bool_]:
        """Return which reduced costs point at an infinite bound by more than rounding, shape (columns,)."""
        endless = np.isinf(np.where(reduced > 0, self.upper, self.lower)) & (reduced != 0)
        if endless.any():
            endless &= ~(np.abs(reduced) <= self.rounding(multipliers))
        return np.asarray(endless)

    def without_far_bounds(self, multipliers: Multipliers, reduced: Floats, bound: float) -> Duality | None:
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

    def proof(self, multipliers: Multipliers, exact: Reduced) -> float:
        """Return the bound, no less than in exact arithmetic; infinite where a reduced cost has no finite bound."""
        if self.open_ended(exact).any():
            return math.inf
        program, y = self.program, multipliers.rows
        more = np.zeros(len(y)) if multipliers.more_rows is None else multipliers.more_rows
        rows, columns, logs = (y != 0) | (more != 0), exact.levels[0] != 0, multipliers.slopes > 0
        row_side = np.where(y + more > 0, program.row_upper, program.row_lower)[rows]
        side = np.where(exact.levels[0] > 0, self.upper, self.lower)[columns]
        weight, slope = program.log_weights[logs], multipliers.slopes[logs]
        more_slope = np.zeros(len(slope)) if multipliers.more_slopes is None else multipliers.more_slopes[logs]
        offset = program.log_offsets[logs]
        log_weight, log_slope = np.log(weight), np.log(slope)
        lines = weight * (log_weight - log_slope - 1.0)
        products = [
            exact_products(*pair)
            for pair in (
                (y[rows], row_side),
                (more[rows], row_side),
                (exact.levels[:, columns], np.broadcast_to(side, exact.levels[:, columns].shape)),
                (slope, offset),
                (more_slope, offset),
            )
        ]
        # What these may be too small by: logarithms are rounded, and so are corrections.
        known = np.where(exact.rises, self.upper, self.lower)
        reach = np.abs(np.where(exact.unsure, np.maximum(np.abs(self.lower), np.abs(self.upper)), known))
        slack = 8.0 * EPSILON * float((weight * (np.abs(log_weight) + np.abs(log_slope) + 1.0)).sum())
        slack += 2.0 * float((weight * np.abs(more_slope) / np.where(slope > 0, slope, 1.0)).sum())
        slack += 2.0 * EPSILON * float(np.abs(more[rows] * row_side).sum() + np.abs(more_slope * offset).sum())
        slack += 4.0 * float((exact.error * np.where(exact.error > 0, reach, 0.0)).sum())
        if self.strict:
            error = self.rounding(multipliers)
            # A reduced cost that rounding may have given its sign may be against either bound.
            both = np.maximum(np.abs(self.lower), np.abs(self.upper))
            far = np.where(np.abs(exact.levels[0]) > error, np.abs(known), both)
            slack += float((error * np.where(np.isfinite(far), far, 0.0)).sum())
            slack += EPSILON * float(sum(np.abs(part).sum() for part in products))
        return upper_sum([*products, lines, np.array([slack])], self.offset)


def _times(factor: Floats, matrix: Csr, columns: int) -> Floats:
    """Return factor @ matrix, shape (columns,)."""
    terms = matrix.values * factor[matrix.row_of_entry()]
    return np.asarray(np.bincount(matrix.columns, weights=terms, minlength=columns)[:columns])
