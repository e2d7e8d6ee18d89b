"""Columns in CP-SAT's form: finite ranges, and continuous columns on a grid of points counted by whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices
from ....formulations.errors import UnsupportedProblem
from ....formulations.program.bounds import implied_bounds
from ....formulations.program.model import Program
from ...options import Options
from .integrality import whole_at_optimum

# Share of feasibility_tol by which rounding to the grid may move a row.
GRID_SHARE = 0.6
# Share of feasibility_tol within which a bound, a side of a row or the end of a grid counts as met.
SLACK_SHARE = 0.05
# Share of the requested gap that rounding to the grid may take: of an absolute gap, and of a relative one, where the
# size of the objective is a guess; and the smallest gap that this applies to.
GAP_SHARE, GUESSED_SHARE, SMALLEST_GAP = 0.1, 0.02, 1e-7
# Beyond this, whole numbers are not exact as floats.
MOST_POINTS = 2.0**53
# Computed bounds are moved outwards by this much, relatively: rounding must not cut.
ROUNDING = 1e-9
# Passes over the rows in the search for ranges that hold an optimum.
PASSES = 2


@dataclass(frozen=True, kw_only=True)
class WholeColumns:
    """Columns as whole numbers n in 0..most: ``x = base + step * n``, but `end` for the last.

    Attributes
    ----------
    base, step, end : ndarray of float, shape (columns,)
        `step` is 1 for a column that is `whole`.
    most : ndarray of int, shape (columns,)
    whole : ndarray of bool, shape (columns,)
        Whether each column is integer, or whole at some optimum.
    on_grid : ndarray of bool, shape (columns,)
        Whether each other column has a range of positive length.
    moved : ndarray of float, shape (columns,)
        Largest distance of a value of the column from ``base + step * n`` of its nearest n; 0 off the grid.
    covers : bool
        Whether the grid represents every value: rounding to the nearest point moves no row by more than `GRID_SHARE`
        of the tolerance. Otherwise the grid is a restriction.
    never : str
        Why the program is infeasible; empty if the columns alone do not prove it.
    """

    base: Floats
    step: Floats
    end: Floats
    most: Indices
    whole: NDArray[np.bool_]
    on_grid: NDArray[np.bool_]
    moved: Floats
    covers: bool
    never: str

    def values(self, counts: Indices) -> Floats:
        """Return the values that whole numbers represent, both of shape (columns,)."""
        return np.where(counts == self.most, self.end, self.base + self.step * counts)

    def counts(self, values: Floats) -> Indices:
        """Return the whole numbers nearest to values, both of shape (columns,)."""
        return np.clip(np.rint((values - self.base) / self.step), 0, self.most).astype(np.int64)


def whole_columns(program: Program, options: Options, grid: float | None) -> WholeColumns:
    """Return the columns as whole numbers; UnsupportedProblem for a range that is infinite or too long.

    `grid` is the step of continuous columns; None: for each the largest power of two for which the grid covers them.
    """
    whole = whole_at_optimum(program)
    lower, upper = useful_range(program, whole)
    slack = SLACK_SHARE * options.feasibility_tol
    lower = np.where(whole, np.ceil(lower - slack), lower)
    upper = np.where(whole, np.floor(upper + slack), upper)
    for side, bounds in (("lower", lower), ("upper", upper)):
        if np.isinf(bounds).any():
            at = int(np.flatnonzero(np.isinf(bounds))[0])
            raise UnsupportedProblem(
                f"ortools cannot solve this program: column {block_place(program.columns, at)} has no {side} bound and "
                "the rows imply none, but CP-SAT searches finite ranges only; give it one, or use backend='highs'"
            )
    length = upper - lower
    never = ""
    if (length < 0).any():
        at = int(np.argmin(length))
        what = "whole number" if whole[at] else "value"
        never = f"no {what} lies between the bounds of column {block_place(program.columns, at)}"
        length = np.maximum(length, 0.0)
    on_grid = ~whole & (length > 0)
    step = np.ones(program.num_columns)
    step[on_grid] = _fine_steps(program, on_grid, length, options)[on_grid] if grid is None else grid
    moves = np.abs(program.matrix.values) * np.where(on_grid, step, 0.0)[program.matrix.columns]
    move_of_row = np.bincount(program.matrix.row_of_entry(), weights=moves, minlength=program.num_rows)
    covers = grid is None or move_of_row.max(initial=0.0) <= GRID_SHARE * options.feasibility_tol
    most = np.where(whole, length, 0.0)
    # The last point may lie beyond the bound, which replaces it; on a restricting grid only by rounding.
    tolerance = 0.5 * step if covers else 4.0 * np.finfo(np.float64).eps * np.maximum(np.abs(lower), np.abs(upper))
    most[on_grid] = np.floor((length + tolerance)[on_grid] / step[on_grid])
    if (most > MOST_POINTS).any():
        at = int(np.argmax(most))
        raise UnsupportedProblem(
            f"ortools cannot solve this program: the range of column {block_place(program.columns, at)} is "
            f"{length[at]:.3g} long, too many steps of {step[at]:.3g} for CP-SAT; narrow it, or use backend='highs'"
        )
    last = lower + step * most
    end = np.where(on_grid & covers, upper, np.minimum(last, np.maximum(lower, upper)))
    return WholeColumns(
        base=lower, step=step, end=end, most=most.astype(np.int64), whole=whole, on_grid=on_grid,
        moved=np.where(on_grid, np.minimum(0.5 * step, length), 0.0), covers=bool(covers), never=never,
    )  # fmt: skip


def useful_range(program: Program, whole: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return (lower, upper) by column: a range that holds an optimum, if there is one; infinite where none is found.

    It is the column's own; where that is infinite, what rows imply; or else, where the objective does not reward a
    larger value, the largest that any row can call for (the makespan of a schedule, say), and likewise downwards. Where
    `whole` it is a whole number.
    """
    lower, upper = implied_bounds(program)
    cost = -program.sign * program.objective
    for _ in range(PASSES):
        if np.isfinite(upper).all() and np.isfinite(lower).all():
            break
        upper = np.where(np.isinf(upper), _enough(program, whole, cost, 1.0, lower, upper), upper)
        lower = np.where(np.isinf(lower), -_enough(program, whole, -cost, -1.0, -upper, -lower), lower)
    return lower, upper


def block_place(blocks: Mapping[str, Indices], at: int) -> str:
    """Return the name and place in its block of a row or column: ``'grant'[3, 0]``."""
    for name, index in blocks.items():
        found = np.argwhere(index == at)
        if len(found):
            return f"{name!r}[{', '.join(str(i) for i in found[0])}]"
    return str(at)


def _enough(
    program: Program, whole: NDArray[np.bool_], cost: Floats, turn: float, lower: Floats, upper: Floats
) -> Floats:
    """Return by column a value beyond which a minimisation need not go; infinite where there may be none.

    From any point with a larger value, going down to this one breaks no row and costs nothing. With `turn` -1 the
    columns stand for their negatives.
    """
    rows = program.num_rows
    entries, column, row = turn * program.matrix.values, program.matrix.columns, program.matrix.row_of_entry()
    most = np.where(np.isfinite(lower), lower, 0.0)
    for sign, side in ((1.0, program.row_lower), (-1.0, -program.row_upper)):
        # Only a row  sum a x >= side  with a > 0 can require a larger value, most when the other terms are least.
        a = sign * entries
        with np.errstate(invalid="ignore", divide="ignore"):
            least = np.where(a == 0, 0.0, np.where(a > 0, a * lower[column], a * upper[column]))
            endless = np.isinf(least)
            ends = np.bincount(row, weights=endless, minlength=rows)[row] - endless
            total = np.bincount(row, weights=np.where(endless, 0.0, least), minlength=rows)[row]
            rest = np.where(ends > 0, -np.inf, total - np.where(endless, 0.0, least))
            calls = (a > 0) & np.isfinite(side[row])
            wanted = ((side[row] - rest) / a)[calls]
            wanted += ROUNDING * (1.0 + np.abs(wanted))
        np.maximum.at(most, column[calls], wanted)
    return np.where(cost >= 0, np.where(whole, np.ceil(most), most), np.inf)


def _fine_steps(program: Program, on_grid: NDArray[np.bool_], length: Floats, options: Options) -> Floats:
    """Return for each column the largest power of two that keeps rows and objective within their shares."""
    gap = max(options.rel_gap, SMALLEST_GAP)
    loss = GAP_SHARE * max(options.abs_gap, gap * (program.gap_unit or 0.0))
    if program.gap_unit is None:
        loss = max(loss, GUESSED_SHARE * gap * float((np.abs(program.objective) * length).max(initial=0.0)))
    fine = np.where(on_grid, length, 1.0)
    paid = on_grid & (program.objective != 0)
    if paid.any():
        fine[paid] = np.minimum(fine[paid], loss / paid.sum() / np.abs(program.objective[paid]))
    row, column = program.matrix.row_of_entry(), program.matrix.columns
    used = on_grid[column] & (program.matrix.values != 0)
    sharers = np.bincount(row[used], minlength=program.num_rows)[row[used]]
    allowed = GRID_SHARE * options.feasibility_tol / sharers / np.abs(program.matrix.values[used])
    np.minimum.at(fine, column[used], allowed)
    steps: Floats = np.exp2(np.floor(np.log2(fine)))
    return steps
