"""Data of a program: arrays and named blocks, with exact evaluation at a point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Sense = Literal["max", "min"]

_NO_INDICES = np.zeros(0, dtype=np.int64)
_NO_FLOATS = np.zeros(0)
_ONE_START = np.zeros(1, dtype=np.int64)


class ProblemClass(Enum):
    """Class of a program, which determines the solvers that can solve it."""

    LP = "LP"  #: linear, continuous
    MILP = "MILP"  #: linear, some columns integer
    LOG = "LOG"  #: concave logarithms in the objective, continuous
    MILOG = "MILOG"  #: concave logarithms, some columns integer


@dataclass(frozen=True)
class Residuals:
    """Worst violations of one point, recomputed from the problem's data; all absolute, 0.0 if satisfied.

    Attributes
    ----------
    bound : float
        Largest violation of a column bound.
    row : float
        Largest violation of a row (a constraint).
    integrality : float
        Largest distance of an integer column from a whole number.
    """

    bound: float = 0.0
    row: float = 0.0
    integrality: float = 0.0

    @property
    def worst(self) -> float:
        """The largest of the three violations."""
        return max(self.bound, self.row, self.integrality)


@dataclass(frozen=True)
class Csr:
    """Sparse rows: the entries of row i are `columns[starts[i]:starts[i+1]]` and the same slice of `values`."""

    starts: Indices
    columns: Indices
    values: Floats

    def times(self, point: Floats) -> Floats:
        """Return the product with `point`, shape (rows,)."""
        products = self.values * point[self.columns]
        if products.size == 0:
            return np.zeros(len(self.starts) - 1)
        # reduceat sums each row separately (no cancellation across rows), but not empty rows: mask them.
        sums = np.add.reduceat(np.append(products, 0.0), self.starts[:-1])
        sums[self.starts[:-1] == self.starts[1:]] = 0.0
        return np.asarray(sums)

    def row_of_entry(self) -> Indices:
        """Return the row of every entry, shape (entries,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


NO_ROWS = Csr(_ONE_START, _NO_INDICES, _NO_FLOATS)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramData:
    """Maximise or minimise ``offset + objective @ x + sum_k w_k log(a_k @ x + b_k)`` over rows and bounds.

    Every array is read-only. :class:`Program` adds bounds, files and conversions to this data.

    Attributes
    ----------
    sense : {"max", "min"}
        Direction of the optimisation; "max" with log terms (their weights are at least 0: the objective is concave).
    objective, lower, upper, integer : ndarray of float, of bool for `integer`, shape (columns,)
    offset : float
    matrix, log_matrix : Csr
        Coefficients of the rows, and of the log terms: row k of `log_matrix` holds a_k.
    row_lower, row_upper : ndarray of float, shape (rows,)
        Sides of each row; infinite if a side is free.
    log_weights, log_offsets : ndarray of float, shape (terms,)
    columns, rows : mapping of str to ndarray of int
        Named blocks: the indices of the block's columns or rows, in the caller's shape.
    gap_unit : float or None
        Size of a relative gap of 1, in units of the objective; None stands for max(abs(objective), 1e-9).
    """

    sense: Sense
    objective: Floats
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    matrix: Csr = NO_ROWS
    row_lower: Floats = field(default_factory=lambda: _NO_FLOATS)
    row_upper: Floats = field(default_factory=lambda: _NO_FLOATS)
    offset: float = 0.0
    log_weights: Floats = field(default_factory=lambda: _NO_FLOATS)
    log_matrix: Csr = NO_ROWS
    log_offsets: Floats = field(default_factory=lambda: _NO_FLOATS)
    columns: Mapping[str, Indices] = field(default_factory=dict)
    rows: Mapping[str, Indices] = field(default_factory=dict)
    gap_unit: float | None = None

    @property
    def num_columns(self) -> int:
        """Number of columns (variables)."""
        return len(self.objective)

    @property
    def num_rows(self) -> int:
        """Number of rows (constraints)."""
        return len(self.row_lower)

    @cached_property
    def problem_class(self) -> ProblemClass:
        """LP, MILP, LOG or MILOG, derived from the data."""
        integer, log = bool(self.integer.any()), len(self.log_weights) > 0
        return ProblemClass[("MI" if integer else "") + ("LOG" if log else "LP")]

    @cached_property
    def whole_bounds(self) -> tuple[Floats, Floats]:
        """(lower, upper) by column for a solver: the bounds of integer columns are rounded inwards.

        Bounds within 1e-9 of a whole number are rounded to it. If no whole number is left, lower exceeds upper.
        """
        if not self.integer.any():
            return self.lower, self.upper
        lower = np.where(self.integer, np.ceil(self.lower - 1e-9), self.lower)
        return lower, np.where(self.integer, np.floor(self.upper + 1e-9), self.upper)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.problem_class.value} ({self.sense}): {self.num_columns} columns "
            f"({int(self.integer.sum())} integer), {self.num_rows} rows, {len(self.matrix.values)} entries>"
        )

    def objective_at(self, values: Floats) -> float:
        """Return the objective at `values`, shape (columns,), its terms added without rounding (math.fsum)."""
        point = np.asarray(values, dtype=np.float64)
        terms = [*(self.objective * point).tolist(), self.offset]
        if len(self.log_weights):
            inside = self.log_matrix.times(point) + self.log_offsets
            wanted = self.log_weights > 0
            if (inside[wanted] <= 0).any():
                return -math.inf
            terms += (self.log_weights[wanted] * np.log(inside[wanted])).tolist()
        return math.fsum(terms)

    def residuals_at(self, values: Floats) -> Residuals:
        """Return how far `values`, shape (columns,), is from every bound, row and whole number."""
        point = np.asarray(values, dtype=np.float64)
        if not np.isfinite(point).all():
            return Residuals(math.inf, math.inf, math.inf)
        activity = self.matrix.times(point)
        whole = point[self.integer]
        return Residuals(
            bound=_worst(self.lower - point, point - self.upper),
            row=_worst(self.row_lower - activity, activity - self.row_upper),
            integrality=_worst(np.abs(whole - np.rint(whole))),
        )

    def to_scipy(self) -> csr_array:
        """Return the rows as a scipy.sparse CSR array, shape (rows, columns)."""
        from scipy.sparse import csr_array

        matrix = self.matrix
        return csr_array((matrix.values, matrix.columns, matrix.starts), shape=(self.num_rows, self.num_columns))


def _worst(*violations: Floats) -> float:
    worst = [float(v.max(initial=0.0)) for v in violations]
    return math.inf if any(math.isnan(each) for each in worst) else max(0.0, *worst)
