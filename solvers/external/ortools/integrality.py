"""Continuous columns that are whole at some optimum: CP-SAT searches them as whole numbers, not on a grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices
from ....formulations.program.model import Program

Mask = NDArray[np.bool_]

# Passes over the rows: a column found whole may make others whole.
PASSES = 4
# A curve that bends the wrong way by less than this share of its largest value does so by rounding.
ROUNDING = 1e-15


class Entries(NamedTuple):
    """The entries of a program's rows that are not zero: row, column and value, each of shape (entries,)."""

    row: Indices
    column: Indices
    value: Floats


def whole_at_optimum(program: Program) -> Mask:
    """Return which columns are whole at some optimum, if there is one; integer columns included. Shape (columns,).

    Three reasons, each a proof: an equation of whole numbers leaves the column nothing else; all its rows are of whole
    numbers, so that its range ends in whole numbers whatever the other columns are; or it is one of the weights of a
    mean of neighbouring whole numbers, and mixing them never pays (see `_means`).
    """
    whole = program.integer.copy()
    used = program.matrix.values != 0
    entries = Entries(program.matrix.row_of_entry()[used], program.matrix.columns[used], program.matrix.values[used])
    for _ in range(PASSES):
        before = whole.copy()
        if not whole.all():
            whole |= _by_rows(program, whole, entries)
        if not whole.all():
            whole |= _means(program, whole, entries)
        if (whole == before).all():
            break
    return whole


def _by_rows(program: Program, whole: Mask, entries: Entries) -> Mask:
    """Return the columns that rows of whole numbers, without another continuous column, make whole."""
    row, column, value = entries
    n = program.num_columns
    open_ = ~whole[column]
    alone = np.bincount(row, weights=open_, minlength=program.num_rows) == 1
    unit = (alone & _plain_rows(program, entries))[row] & (np.abs(value) == 1.0)
    equal = (program.row_lower == program.row_upper)[row]
    by_equation = np.bincount(column, weights=open_ & unit & equal, minlength=n) > 0
    otherwise = np.bincount(column, weights=~unit, minlength=n) > 0
    ends = _is_whole(program.lower) & _is_whole(program.upper)
    return np.asarray(by_equation | (~otherwise & ends))


def _means(program: Program, whole: Mask, entries: Entries) -> Mask:
    """Return the columns that are weights of a mean of neighbouring whole numbers and that no optimum needs to mix.

    Weights ``w_k >= 0`` in a row ``sum w_k = 1``, and a row that makes ``sum k w_k`` a whole number m. Where the
    coefficients of the weights are convex in k, as they must be in a row with an upper side and in a minimised
    objective (concave for a lower side and for a maximum), all weight on m satisfies every row that the weights
    satisfy, and is no worse.
    """
    row, column, _ = entries
    group, ones = _groups(program, whole, entries)
    if not ones.any():
        return np.zeros(program.num_columns, dtype=bool)
    link, number = _numbers(program, whole, entries, group, ones)
    refused = link < 0
    members = np.flatnonzero(group >= 0)
    members = members[np.lexsort((number[members], group[members]))]
    same = np.diff(group[members]) == 0
    refused[group[members][1:][same & (np.diff(number[members]) != 1.0)]] = True
    seen = (group[column] >= 0) & ~ones[row] & (link[group[column]] != row)
    refused[_bent(program, Entries(*(part[seen] for part in entries)), group, members)] = True
    return np.asarray((group >= 0) & ~refused[group])


def _groups(program: Program, whole: Mask, entries: Entries) -> tuple[Indices, Mask]:
    """Return for each column its row ``sum w = 1`` (-1: none, or several), and which rows are such rows."""
    row, column, value = entries
    weight = ~whole & (program.lower == 0.0) & (program.upper >= 1.0)
    others = np.bincount(row, weights=~weight[column] | (value != 1.0), minlength=program.num_rows) > 0
    ones = (program.row_lower == 1.0) & (program.row_upper == 1.0) & ~others
    several = np.bincount(column, weights=ones[row], minlength=program.num_columns) > 1
    ones[row[ones[row] & several[column]]] = False
    group = np.full(program.num_columns, -1)
    group[column[ones[row]]] = row[ones[row]]
    return group, ones


def _numbers(program: Program, whole: Mask, entries: Entries, group: Indices, ones: Mask) -> tuple[Indices, Floats]:
    """Return by group the equation that makes its mean a whole number (-1: none), and by column the number k in it."""
    row, column, value = entries
    open_ = ~whole[column]
    first, last = np.full(program.num_rows, program.num_rows), np.full(program.num_rows, -1)
    np.minimum.at(first, row[open_], group[column][open_])
    np.maximum.at(last, row[open_], group[column][open_])
    equal = program.row_lower == program.row_upper
    of_one = equal & ~ones & _plain_rows(program, entries) & (first == last) & (first >= 0)
    link = np.full(program.num_rows, -1)
    link[first[of_one]] = np.flatnonzero(of_one)
    number = np.zeros(program.num_columns)
    gives = open_ & (group[column] >= 0) & (link[group[column]] == row)
    number[column[gives]] = value[gives]
    return link, number


def _bent(program: Program, entries: Entries, group: Indices, members: Indices) -> Indices:
    """Return the groups with a row, or an objective, in which a mixture of two numbers may be better than their mean.

    `entries` are those of columns in groups, `members` these columns by group and number. Each row of `entries`, and
    the objective as one more, is a curve over each group in it: its coefficients by number, zero where it has none.
    """
    rows = program.num_rows
    cost = -program.sign * program.objective
    paid = members[cost[members] != 0]
    row = np.concatenate((entries.row, np.full(len(paid), rows)))
    column = np.concatenate((entries.column, paid))
    value = np.concatenate((entries.value, cost[paid]))
    if not len(row):
        return np.zeros(0, dtype=np.int64)

    size = np.bincount(group[members], minlength=rows)
    start = np.concatenate(([0], np.cumsum(size)[:-1]))
    place = np.zeros(program.num_columns, dtype=np.int64)
    place[members] = np.arange(len(members)) - start[group[members]]
    curves, which = np.unique(row * rows + group[column], return_inverse=True)
    row_of, group_of = curves // rows, curves % rows
    begin = np.concatenate(([0], np.cumsum(size[group_of])))
    heights = np.zeros(int(begin[-1]))
    heights[begin[which] + place[column]] = value

    curve = np.repeat(np.arange(len(curves)), size[group_of])
    bend = heights[:-2] - 2.0 * heights[1:-1] + heights[2:]
    inside = curve[:-2] == curve[2:]
    curve, bend = curve[:-2][inside], bend[inside]
    allowed = ROUNDING * np.maximum.reduceat(np.abs(heights), begin[:-1])[curve]
    capped = np.concatenate((np.isfinite(program.row_upper), [True]))[row_of[curve]]
    floored = np.concatenate((np.isfinite(program.row_lower), [False]))[row_of[curve]]
    wrong = (capped & (bend < -allowed)) | (floored & (bend > allowed))
    return np.asarray(group_of[curve[wrong]])


def _plain_rows(program: Program, entries: Entries) -> Mask:
    """Whether each row has whole coefficients and sides."""
    fractions = np.bincount(entries.row, weights=~_is_whole(entries.value), minlength=program.num_rows) > 0
    return np.asarray(~fractions & _is_whole(program.row_lower) & _is_whole(program.row_upper))


def _is_whole(values: Floats) -> Mask:
    """Whether each value is a whole number or infinite."""
    return np.asarray(values == np.rint(values))
