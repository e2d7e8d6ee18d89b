"""The restricted master of a price decomposition: the best combination of proposals, and the price of a GPU in it."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Floats

# Reduced costs below this share of the largest value count as 0.
REDUCED_COST_TOLERANCE = 1e-13
# Pivots of one call; a call on a handful of proposals takes a few.
MOST_PIVOTS = 1000


class RestrictedMaster:
    """Maximise ``values.z`` over z >= 0 with ``proposals z <= limits``, the proposals added one at a time.

    It is a simplex method. The rows are few (types of GPU, and perhaps one more) and the limits at least 0, so that the
    start with z = 0 is feasible. The slacks of the rows are the first columns. Among equal choices the earliest column
    is taken.

    Attributes
    ----------
    basis : ndarray of int
        Columns of the basis: row r's slack is r, proposal s is s + the number of rows.
    mix : ndarray of float
        Amounts of the basis.
    prices : ndarray of float
        Duals of the rows.
    """

    def __init__(self, limits: Floats) -> None:
        rows = len(limits)
        self.limits = np.asarray(limits, dtype=np.float64)
        self._table, self._values = np.zeros((rows, 4 * rows + 32)), np.zeros(4 * rows + 32)
        self._table[:, :rows] = np.eye(rows)
        self._count = rows
        self.basis = np.arange(rows)
        self.mix: Floats = self.limits.copy()
        self.prices: Floats = np.zeros(rows)

    @property
    def value(self) -> float:
        """The objective of the combination."""
        return float(self._values[self.basis] @ self.mix)

    @property
    def parts(self) -> list[tuple[int, float]]:
        """The proposals in the basis, in the order of their addition, and the amount of each."""
        rows = len(self.limits)
        return [(int(s) - rows, float(z)) for s, z in zip(self.basis, self.mix, strict=True) if s >= rows]

    def gain(self, value: float, proposal: Floats) -> float:
        """Return the reduced cost of a proposal: the gain of the objective per unit."""
        return value - float(self.prices @ proposal)

    def add(self, value: float, proposal: Floats) -> None:
        """Add a proposal and pivot to the optimum."""
        if self._count == len(self._values):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._table[:, self._count] = proposal
        self._values[self._count] = value
        self._count += 1
        table, values = self._table[:, : self._count], self._values[: self._count]
        nothing = REDUCED_COST_TOLERANCE * float(values.max())
        for _ in range(MOST_PIVOTS):
            matrix = table[:, self.basis]
            self.prices = np.asarray(np.linalg.solve(matrix.T, values[self.basis]), dtype=np.float64)
            reduced = values - self.prices @ table
            reduced[self.basis] = 0.0
            entering = int(reduced.argmax())
            if reduced[entering] <= nothing:
                break
            direction = np.linalg.solve(matrix, table[:, entering])
            falling = direction > 1e-12 * float(np.abs(direction).max())
            if not falling.any():
                break
            ratios = np.where(falling, self.mix / np.where(falling, direction, 1.0), np.inf)
            self.basis[int(ratios.argmin())] = entering
            self.mix = np.maximum(np.linalg.solve(table[:, self.basis], self.limits), 0.0)
        self.prices = np.maximum(self.prices, 0.0)
        self.prices[self.basis[self.basis < len(self.limits)]] = 0.0  # prices of rows with slack are exactly 0
