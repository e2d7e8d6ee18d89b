"""A program in whole numbers for CP-SAT: every rounding relaxes the program, so that CP-SAT's proofs hold for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.errors import UnsupportedProblem
from ....formulations.program.model import Program
from ...options import Options
from .columns import SLACK_SHARE, WholeColumns, block_place, whole_columns

# Share of feasibility_tol by which the rounding of a row's coefficients may move it.
ROW_SHARE = 0.2
# Share of the objective's range that the rounding of its coefficients may take: of the requested gap, within limits.
# CP-SAT is slower with larger numbers; up to `USUAL_ACTIVITY` in all they cost nothing.
GAP_SHARE, FINEST_SHARE, COARSEST_SHARE = 1e-3, 1e-14, 1e-9
USUAL_ACTIVITY = 2.0**45
# Largest sum of a row or of the objective, in whole numbers: CP-SAT's own limit is 2**62.
MOST_ACTIVITY = 2.0**60
# Scales tried first: whole numbers, decimals, and quantities in seconds given in minutes or hours.
PLAIN_SCALES = (1.0, 10.0, 60.0, 1e2, 1e3, 3600.0, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
# Sums of whole numbers up to here are exact in floats; those of 1024ths up to there even in billionths.
EXACT, EXACT_BILLIONTHS = 2.0**50, 4e6
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class WholeProgram:
    """Minimise ``costs @ n`` over ``lower <= rows @ n <= upper`` and ``0 <= n <= columns.most``, all whole numbers.

    Every point of the program, rounded to the grid of its continuous columns, is a point of this one; and every point
    of this one violates the program's rows by less than feasibility_tol.

    Attributes
    ----------
    starts, entries, coefficients : ndarray of int
        The rows: the entries of row i are `entries[starts[i]:starts[i+1]]` and the same slice of `coefficients`.
    lower, upper : ndarray of int, shape (rows,)
    costs : ndarray of int, shape (columns,)
    scale, constant : float
        The program's objective, negated if it is maximised, is at least ``costs @ n / scale + constant - loss``.
    loss : float
        Largest loss of objective by rounding to the grid and by rounding of decimal coefficients to the last bit.
    noise : float
        Largest relative error of floats, in a value and in `size`.
    size : float
        Sum of the absolute values of the parts of `constant`.
    never : str
        Why the program is infeasible; empty if scaling does not prove it.
    """

    columns: WholeColumns
    starts: Indices
    entries: Indices
    coefficients: Indices
    lower: Indices
    upper: Indices
    costs: Indices
    scale: float
    constant: float
    loss: float
    noise: float
    size: float
    never: str

    def bound(self, value: float) -> float:
        """Return the bound on the program's minimised objective that a bound on the scaled objective proves."""
        return value - self.loss - self.noise * (abs(value) + self.size)


def whole_program(program: Program, options: Options, grid: float | None) -> WholeProgram:
    """Return the program in whole numbers; UnsupportedProblem, naming column or row, where 64 bits do not hold it.

    `grid` as in :func:`whole_columns`.
    """
    columns = whole_columns(program, options, grid)
    matrix, rows = program.matrix, program.num_rows
    row, most = matrix.row_of_entry(), columns.most[matrix.columns].astype(np.float64)
    counts = (np.isfinite(program.row_lower) | np.isfinite(program.row_upper))[row] & (most > 0)
    weights = np.where(counts, matrix.values * columns.step[matrix.columns], 0.0)  # a fixed column is all base
    tolerance = options.feasibility_tol

    whole, scale = scaled_rows(row, weights, most, rows, ROW_SHARE * tolerance)
    # By row, how far the weighted sum may exceed, and fall short of, the sum of whole numbers by the scale. A division
    # by a power of two is exact, another only to the last bit.
    off = (weights - whole / scale[row]) * most
    bit = np.where(np.frexp(scale)[0] != 0.5, EPSILON * _sums(row, np.abs(weights) * most, rows), 0.0)
    above, below = (_sums(row, np.maximum(each, 0.0), rows) + bit for each in (off, -off))
    base, noise = _base(program, columns, row, weights * most, scale)
    short = (above + below > ROW_SHARE * tolerance) | (noise > SLACK_SHARE * tolerance)
    if short.any():
        place = block_place(program.rows, int(np.argmax(short)))
        coarser = "set a coarser grid (no bound is proved then), " if columns.on_grid.any() and columns.covers else ""
        raise UnsupportedProblem(
            f"ortools cannot solve this program: row {place} in 64-bit whole numbers would be off by more than "
            f"feasibility_tol={tolerance:g} allows; give its columns narrower bounds, {coarser}loosen "
            "feasibility_tol, or use backend='highs'"
        )
    slack = SLACK_SHARE * tolerance + noise
    if columns.covers:
        slack += _sums(row, np.abs(matrix.values) * columns.moved[matrix.columns], rows)

    coefficients = whole.astype(np.int64)
    rises = coefficients * columns.most[matrix.columns]
    least, greatest = _int_sums(row, np.minimum(rises, 0), rows), _int_sums(row, np.maximum(rises, 0), rows)
    upper = np.floor(scale * (program.row_upper - base + slack + below))
    lower = np.ceil(scale * (program.row_lower - base - slack - above))
    empty = (upper < least) | (lower > greatest) | (lower > upper)
    never = columns.never
    if empty.any() and not never:
        never = f"no whole numbers satisfy row {block_place(program.rows, int(np.argmax(empty)))}"
    return WholeProgram(
        columns=columns, starts=matrix.starts, entries=matrix.columns, coefficients=coefficients,
        lower=_clipped(lower, least, greatest), upper=_clipped(upper, least, greatest), never=never,
        **_objective(program, columns, options.rel_gap),
    )  # fmt: skip


def scaled_rows(row: Indices, weights: Floats, most: Floats, rows: int, allowed: float) -> tuple[Floats, Floats]:
    """Return (whole coefficients by entry, scale by row): weights times the row's scale, rounded to the nearest.

    Parameters
    ----------
    weights, most : ndarray of float, shape (entries,)
        Coefficients, and the largest number each is multiplied with.
    allowed : float
        How far rounding may move a row. A scale of `PLAIN_SCALES` is taken where it gives every coefficient of the row
        to the last bit; otherwise a power of two that is fine enough, or the largest that the range allows.
    """
    reach = _sums(row, np.abs(weights) * most, rows)
    scale = np.zeros(rows)
    entry, weight, of = np.arange(len(weights)), weights, row
    for plain in PLAIN_SCALES:
        inexact = np.rint(weight * plain) / plain != weight
        fits = (scale == 0) & (reach * plain <= MOST_ACTIVITY)
        fits[of[inexact]] = False
        scale[fits] = plain
        entry = entry[scale[of] == 0]
        if not len(entry):
            break
        weight, of = weights[entry], row[entry]
    rest = scale == 0
    spare = np.log2(MOST_ACTIVITY / np.maximum(reach, 1e-200))
    wanted = np.log2(np.maximum(0.5 * _sums(row, most * (weights != 0), rows) / allowed, 1.0))
    scale[rest] = np.exp2(np.floor(np.minimum(np.ceil(wanted), spare)))[rest]
    return np.rint(weights * scale[row]), scale


def _base(program: Program, columns: WholeColumns, row: Indices, reach: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return by row the sum at the columns' bases, and the largest error of floats in it and in the row's sides."""
    base, value, rows = columns.base[program.matrix.columns], program.matrix.values, program.num_rows
    size = _sums(row, np.abs(value * base), rows)
    side = sum(np.where(np.isfinite(each), np.abs(each), 0.0) for each in (program.row_lower, program.row_upper))
    noise = 4.0 * EPSILON * (size + _sums(row, np.abs(reach), rows) + side)
    fractional = _sums(row, columns.on_grid[program.matrix.columns] | (base != np.rint(base)), rows) > 0
    noise[(scale == 1.0) & ~fractional & (size < EXACT)] = 0.0  # all terms are whole numbers
    return program.matrix.times(columns.base), noise


def _objective(program: Program, columns: WholeColumns, gap: float) -> dict[str, Any]:
    """Return costs, scale, constant, loss, noise and size of the objective as a minimisation."""
    cost = -program.sign * program.objective
    weights, most = np.where(columns.most > 0, cost * columns.step, 0.0), columns.most.astype(np.float64)
    at_base = cost * columns.base
    constant = math.fsum([*at_base.tolist(), -program.sign * program.offset])
    size = float(np.abs(at_base).sum()) + abs(program.offset)
    loss = math.fsum((np.abs(cost) * columns.moved).tolist())
    reach = float((np.abs(weights) * most).sum())
    for scale in PLAIN_SCALES:
        costs = np.rint(weights * scale)
        if reach * scale <= MOST_ACTIVITY and (costs / scale == weights).all():
            break
    else:
        share = min(max(GAP_SHARE * gap, FINEST_SHARE), COARSEST_SHARE)
        wanted = math.log2(max(float(most[weights != 0].sum()) / share, USUAL_ACTIVITY) / reach)
        scale = 2.0 ** math.floor(min(math.ceil(wanted), math.log2(MOST_ACTIVITY / reach)))
        costs = np.floor(weights * scale)
    if math.frexp(scale)[0] != 0.5 or (np.frexp(columns.step)[0] != 0.5).any():
        loss += EPSILON * reach
    whole = scale == 1.0 and (at_base == np.rint(at_base)).all() and not columns.on_grid.any()
    exact = whole and (1024.0 * constant).is_integer() and reach + size < EXACT_BILLIONTHS
    return {
        "costs": costs.astype(np.int64),
        "scale": scale,
        "constant": constant,
        "loss": loss,
        "noise": 0.0 if exact else 4.0 * EPSILON,
        "size": size,
    }


def _sums(row: Indices, terms: Floats, rows: int) -> Floats:
    return np.bincount(row, weights=terms, minlength=rows).astype(np.float64)


def _int_sums(row: Indices, terms: Indices, rows: int) -> Indices:
    sums = np.zeros(rows, dtype=np.int64)
    np.add.at(sums, row, terms)
    return sums


def _clipped(side: Floats, least: Indices, greatest: Indices) -> Indices:
    """Return a side of the rows as integers, clipped to the range of their sums."""
    inside = np.where((side > least) & (side < greatest), side, 0.0).astype(np.int64)
    return np.where(side <= least, least, np.where(side >= greatest, greatest, inside))
