"""A short search for a point that a backend's claim excludes: feasible, or better than its bound."""

from __future__ import annotations

import math

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.program.model import Program

# Moves of a search, and the number of them for which a moved column is not moved back.
MOVES, REST = 40, 4
# Moves compared at a time.
MOST_CANDIDATES = 64
# A row counts as satisfied within this share of its largest coefficient.
SATISFIED = 1e-9
# Margin by which a bound has to be beaten, in its own size; more where the objective falls short of its slope.
STRAIGHT, CURVED = 1e-6, 1e-4
# Least log argument of the search, and the least by which a slope is computed.
LEAST_INSIDE, STEEP = 1e-6, 1e-300


def better_point(
    program: Program, start: Floats, beyond: float | None, tolerance: float, moves: int = MOVES
) -> Floats | None:
    """Return a point that satisfies the program, and whose objective is better than `beyond` if that is given, or None.

    From `start`, one column after the other is moved to where a violated row is satisfied, the row of the greatest
    weighted violation first, and of its columns the one after which the sum of all violations is least. A better
    objective is required by a row as well; log terms enter it by their slopes at `start`. None proves nothing; a
    returned point is checked.
    """
    low, high = program.whole_bounds
    point = np.clip(np.where(program.integer, np.rint(start), start), low, high)
    if not np.isfinite(point).all() or (low > high).any():
        return None
    rows = _Rows(program, point, beyond)
    activity, weight = rows.times(point), np.ones(len(rows.lower))
    if not np.isfinite(activity).all():
        return None
    free_at = np.zeros((program.num_columns, 2), dtype=np.int64)  # down, up
    for move in range(moves):
        short = rows.shortfall(activity)
        worst = int(np.argmax(weight * np.abs(short), axis=None)) if len(short) else 0
        if not len(short) or abs(short[worst]) <= SATISFIED:
            found = objective_if_feasible(program, point, 0.01 * tolerance)
            better = found is not None and (beyond is None or program.sign * (found - beyond) > 0)
            return point if better else None
        columns, moved = _moves(program, point, *rows.entries(worst), short[worst], free_at, move)
        if not len(columns):
            return None
        after = rows.violation_after(columns, moved - point[columns], activity, weight)
        best = int(np.argmin(after))
        if after[best] >= 0:
            weight[worst] += 1.0
        column = columns[best]
        touched, values = rows.of_column(column)
        activity[touched] += values * (moved[best] - point[column])
        back = int(moved[best] < point[column])
        point[column] = moved[best]
        free_at[column, back] = move + REST
    return None


def _moves(
    program: Program, point: Floats, columns: Indices, coefficients: Floats, short: float, free_at: Indices, move: int
) -> tuple[Indices, Floats]:
    """Return columns of a row and the value of each that would satisfy it; resting columns if no others can.

    `short` is by how much the row's activity must change, `free_at` from which move on each column of the program may
    move down and up, shape (columns, 2), and `move` the present one.
    """
    low, high = program.whole_bounds
    moved = point[columns] + short / coefficients
    up = moved > point[columns]
    whole = np.where(up, np.ceil(moved - SATISFIED), np.floor(moved + SATISFIED))
    moved = np.clip(np.where(program.integer[columns], whole, moved), low[columns], high[columns])
    able = np.flatnonzero(moved != point[columns])
    rested = able[free_at[columns[able], up[able].astype(int)] <= move]
    able = (rested if len(rested) else able)[:MOST_CANDIDATES]
    return columns[able], moved[able]


def objective_if_feasible(program: Program, values: Floats, tolerance: float) -> float | None:
    """Return the objective at `values` if they satisfy the program; None if not, or if the numbers overflow."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            if not program.residuals_at(values).worst <= tolerance:
                return None
            objective = program.objective_at(values)
    except (FloatingPointError, OverflowError, ValueError):
        return None
    return objective if math.isfinite(objective) else None


def gradient(program: Program, values: Floats) -> Floats:
    """Return the objective's derivative by column at `values`; an undefined logarithm counts as very steep."""
    if not len(program.log_weights):
        return program.objective
    inside = program.log_matrix.times(values) + program.log_offsets
    rate = np.where(program.log_weights > 0, program.log_weights / np.maximum(inside, STEEP), 0.0)
    n = program.num_columns
    entries = program.log_matrix.values * rate[program.log_matrix.row_of_entry()]
    return program.objective + np.bincount(program.log_matrix.columns, weights=entries, minlength=n)[:n]


class _Rows:
    """All requirements on a point as rows, each divided by its largest coefficient; by row and by column.

    They are the program's own rows, for each logarithm a row that keeps its argument positive, and a row for an
    objective beyond a bound.
    """

    def __init__(self, program: Program, start: Floats, beyond: float | None) -> None:
        matrix, logs = program.matrix, program.log_matrix
        row, column, value = matrix.row_of_entry(), matrix.columns, matrix.values
        self.lower, self.upper = program.row_lower, program.row_upper
        if len(program.log_weights):
            row = np.append(row, logs.row_of_entry() + len(self.lower))
            column, value = np.append(column, logs.columns), np.append(value, logs.values)
            least = np.where(program.log_weights > 0, LEAST_INSIDE - program.log_offsets, -math.inf)
            self.lower = np.append(self.lower, least)
            self.upper = np.append(self.upper, np.full(len(least), math.inf))
        now = -math.inf if beyond is None else program.objective_at(start)
        if beyond is not None and math.isfinite(now):
            slope = program.sign * gradient(program, start)
            used = np.flatnonzero(slope)
            row = np.append(row, np.full(len(used), len(self.lower)))
            column, value = np.append(column, used), np.append(value, slope[used])
            margin = (CURVED if len(program.log_weights) else STRAIGHT) * max(1.0, abs(beyond))
            wish = float(slope @ start) + program.sign * (beyond - now) + margin
            self.lower = np.append(self.lower, wish)
            self.upper = np.append(self.upper, math.inf)
        count = len(self.lower)
        size = np.zeros(count)
        np.maximum.at(size, row, np.abs(value))
        size[size == 0] = 1.0
        kept = value != 0
        row, column, value = row[kept], column[kept], (value / size[row])[kept]
        self.lower, self.upper = self.lower / size, self.upper / size
        self._columns, self._values = column, value
        self._row_starts = np.searchsorted(row, np.arange(count + 1))
        order = np.argsort(column, kind="stable")
        self._rows_by_column, self._values_by_column = row[order], value[order]
        self._column_starts = np.searchsorted(column[order], np.arange(program.num_columns + 1))
        self._row = row

    def times(self, point: Floats) -> Floats:
        """Return the activity of every row."""
        products = self._values * point[self._columns]
        return np.bincount(self._row, weights=products, minlength=len(self.lower)).astype(np.float64)

    def shortfall(self, activity: Floats) -> Floats:
        """Return the change of each activity that would satisfy its row; 0 where it is satisfied."""
        return np.where(activity < self.lower, self.lower - activity, np.minimum(self.upper - activity, 0.0))

    def entries(self, row: int) -> tuple[Indices, Floats]:
        """Return the columns and coefficients of a row."""
        part = slice(self._row_starts[row], self._row_starts[row + 1])
        return self._columns[part], self._values[part]

    def of_column(self, column: int) -> tuple[Indices, Floats]:
        """Return the rows and coefficients of a column."""
        part = slice(self._column_starts[column], self._column_starts[column + 1])
        return self._rows_by_column[part], self._values_by_column[part]

    def violation_after(self, columns: Indices, changes: Floats, activity: Floats, weight: Floats) -> Floats:
        """Return the change of the weighted sum of violations by each change of one column."""
        starts, ends = self._column_starts[columns], self._column_starts[columns + 1]
        lengths = ends - starts
        mover = np.repeat(np.arange(len(columns)), lengths)
        entry = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        row = self._rows_by_column[entry]
        before = activity[row]
        after = before + self._values_by_column[entry] * changes[mover]
        worse = self._violation(after, row) - self._violation(before, row)
        return np.bincount(mover, weights=weight[row] * worse, minlength=len(columns)).astype(np.float64)

    def _violation(self, activity: Floats, row: Indices) -> Floats:
        return np.maximum(np.maximum(self.lower[row] - activity, activity - self.upper[row]), 0.0)
