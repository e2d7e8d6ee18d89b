"""Weak duality of a program in exact arithmetic: reduced costs of multipliers, and the bound they prove."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .data import Csr, ProgramData
from .exact_sums import exact_products, exact_sums, upper_sum

#: Twice the rounding error of one operation on doubles, relative.
EPSILON = 2.0**-52
# Reduced costs up to this share of their terms, and of the largest cost, count as rounding of the program's own data.
FORGIVEN = 4.0 * EPSILON
# Reduced costs below NOISE of their terms that cost more than COSTLY of the bound together are repaired too.
NOISE, COSTLY = 1e-6, 1e-8


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of rows (0 if the row's side is infinite) and slopes of log terms (0 if the weight is 0)."""

    rows: Floats
    slopes: Floats


def allowed(program: ProgramData, rows: Floats) -> Floats:
    """Return multipliers of rows, shape (rows,), 0 for rows whose side is infinite."""
    wrong = ((rows > 0) & np.isinf(program.row_upper)) | ((rows < 0) & np.isinf(program.row_lower))
    return np.where(wrong, 0.0, rows)


@dataclass(frozen=True)
class Duality:
    """Weak duality for the maximum of offset + cost @ x + logarithms over the program's rows and the given bounds.

    A `strict` bound includes the largest change by rounding of the data.
    """

    program: ProgramData
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    strict: bool = False

    def exact(self, multipliers: Multipliers) -> Floats:
        """Return the exact reduced costs as sums of doubles, the first with the sign, shape (levels, columns)."""
        n = len(self.cost)
        columns, terms = [np.arange(n)], [self.cost]
        for factor, matrix, sign in (
            (multipliers.rows, self.program.matrix, -1.0),
            (multipliers.slopes, self.program.log_matrix, 1.0),
        ):
            row = matrix.row_of_entry()
            used = np.flatnonzero((factor != 0)[row])
            columns.append(np.tile(matrix.columns[used], 2))
            terms.append(exact_products(factor[row[used]], sign * matrix.values[used]).ravel())
        return exact_sums(np.concatenate(terms), np.concatenate(columns), n)

    def open_ended(self, multipliers: Multipliers, exact: Floats) -> NDArray[np.bool_]:
        """Return which reduced costs against an infinite bound exceed `forgiven`, shape (columns,)."""
        side = np.where(exact[0] > 0, self.upper, self.lower)
        return np.asarray(np.isnan(exact[0]) | (np.isinf(side) & (np.abs(exact[0]) > self.forgiven(multipliers))))

    def forgiven(self, multipliers: Multipliers) -> Floats:
        """Return the reduced costs that count as 0 against an infinite bound, shape (columns,).

        The limit is the rounding of the reduced cost's own terms, but at most the rounding of the program's largest
        cost, however large the multipliers: the bound is exact for costs changed by so little. A `strict` bound has
        multipliers of size 1, and its slack includes their rounding.
        """
        if self.strict:
            return self.rounding(multipliers)
        largest = np.abs(self.cost).max(initial=0.0)
        return np.asarray(np.minimum(self.rounding(multipliers, FORGIVEN), FORGIVEN * largest))

    def reduced(self, multipliers: Multipliers) -> Floats:
        """Return the reduced costs, shape (columns,)."""
        n = len(self.cost)
        reduced = self.cost - _times(multipliers.rows, self.program.matrix, n)
        if multipliers.slopes.any():
            reduced += _times(multipliers.slopes, self.program.log_matrix, n)
        return reduced

    def rounding(self, multipliers: Multipliers, share: float | None = None) -> Floats:
        """Return the largest rounding error of each reduced cost, or `share` of its terms, by column."""
        n = len(self.cost)
        size, terms = np.abs(self.cost), np.full(n, 2.0)
        for factor, matrix in ((multipliers.rows, self.program.matrix), (multipliers.slopes, self.program.log_matrix)):
            if factor.any():
                size += _times(np.abs(factor), replace(matrix, values=np.abs(matrix.values)), n)
                terms += np.bincount(matrix.columns, minlength=n)[:n]
        return np.asarray((EPSILON * terms if share is None else share) * size)

    def endless(self, multipliers: Multipliers, reduced: Floats) -> NDArray[np.bool_]:
        """Return which reduced costs against an infinite bound exceed rounding, shape (columns,)."""
        endless = np.isinf(np.where(reduced > 0, self.upper, self.lower)) & (reduced != 0)
        if endless.any():
            endless &= ~(np.abs(reduced) <= self.rounding(multipliers))
        return np.asarray(endless)

    def without_far_bounds(self, multipliers: Multipliers, reduced: Floats, bound: float) -> Duality | None:
        """Return a copy without the far bounds that noise in the reduced costs makes costly; None if there are none."""
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

    def proof(self, multipliers: Multipliers) -> float:
        """Return the bound, at least its exact value; infinite if the bound of a nonzero reduced cost is infinite."""
        exact = self.exact(multipliers)
        if self.open_ended(multipliers, exact).any():
            return math.inf
        program, y = self.program, multipliers.rows
        rows, logs = y != 0, multipliers.slopes > 0
        row_side = np.where(y > 0, program.row_upper, program.row_lower)[rows]
        side = np.where(exact[0] > 0, self.upper, self.lower)
        columns = (exact[0] != 0) & np.isfinite(side)
        weight, slope = program.log_weights[logs], multipliers.slopes[logs]
        log_weight, log_slope = np.log(weight), np.log(slope)
        lines = weight * (log_weight - log_slope - 1.0)
        products = [
            exact_products(y[rows], row_side),
            exact_products(exact[:, columns], np.broadcast_to(side[columns], exact[:, columns].shape)),
            exact_products(slope, program.log_offsets[logs]),
        ]
        slack = 8.0 * EPSILON * float((weight * (np.abs(log_weight) + np.abs(log_slope) + 1.0)).sum())
        if self.strict:
            error = self.rounding(multipliers)
            # If rounding may decide the sign of a reduced cost, either bound may apply.
            far = np.where(np.abs(exact[0]) > error, np.abs(side), np.maximum(np.abs(self.lower), np.abs(self.upper)))
            slack += float((error * np.where(np.isfinite(far), far, 0.0)).sum())
            slack += EPSILON * float(sum(np.abs(part).sum() for part in products))
        return upper_sum([*products, lines, np.array([slack])], self.offset)


def _times(factor: Floats, matrix: Csr, columns: int) -> Floats:
    """Return factor @ matrix, shape (columns,)."""
    terms = matrix.values * factor[matrix.row_of_entry()]
    return np.asarray(np.bincount(matrix.columns, weights=terms, minlength=columns)[:columns])
