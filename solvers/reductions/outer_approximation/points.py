"""Points of tangency on the logarithms of a program: a first grid, windows around an optimum, segments between."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices
from ....formulations.program.bounds import implied_bounds
from ....formulations.program.data import Csr
from ....formulations.program.model import Program

# Powers of two from the end of a term's range down to the end of the first grid.
DOUBLINGS = 20
# Segments of the first grid, over all terms.
MOST_FIRST_SEGMENTS = 200_000
# The end of the first grid of an unbounded log argument, as a multiple of its known values.
REACH = 1e6
# Number of tangents of a window on either side of its middle, and its greatest width, in logarithms.
HALF_WINDOW = 4
WIDEST = 2.0
# An upper end below this share of the terms of its sum counts as 0.
ROUNDING = 1e-13
# Scales at which coefficients may be whole numbers, and their largest size.
DECIMALS = (1.0, 10.0, 100.0, 1e3)
MOST_WHOLE = 1e15
# Solvers cannot separate very short segments from 0. So tangents closer than NEAREST of their point are merged, those
# below FAR_BELOW of the expected optimum are omitted until a round visits that range, and an integer program has none
# below LEAST of it.
NEAREST = 1e-5
FAR_BELOW = 1e-3
LEAST = 1e-7


@dataclass(frozen=True)
class Terms:
    """The log terms of positive weight, K of them.

    Attributes
    ----------
    count : int
        Number of all the program's log terms.
    index : ndarray of int, shape (K,)
        Indices of these terms among all.
    weights, offsets : ndarray of float, shape (K,)
    matrix : Csr
        Rows a_k.
    """

    count: int
    index: Indices
    weights: Floats
    offsets: Floats
    matrix: Csr

    @classmethod
    def of(cls, program: Program) -> Terms:
        """Return the terms of a program whose weight is not 0."""
        used = program.log_weights > 0
        matrix = program.log_matrix
        kept = np.repeat(used, np.diff(matrix.starts)) & (matrix.values != 0)
        lengths = np.bincount(matrix.row_of_entry()[kept], minlength=len(used))[used]
        return cls(
            count=len(used),
            index=np.flatnonzero(used),
            weights=program.log_weights[used],
            offsets=program.log_offsets[used],
            matrix=Csr(starts_of(lengths), matrix.columns[kept], matrix.values[kept]),
        )

    def log_arguments(self, values: Floats) -> Floats:
        """Return the log arguments a_k x + b_k at `values`, shape (K,)."""
        return self.matrix.times(values) + self.offsets

    def slopes_at(self, log_arguments: Floats) -> Floats:
        """Return the slopes of all the program's logarithms, at `log_arguments`, shape (K,), for these; else 0."""
        slopes = np.zeros(self.count)
        slopes[self.index] = self.weights / np.where(log_arguments > 0, log_arguments, np.inf)
        return slopes

    def span(self, program: Program) -> tuple[Floats, Floats]:
        """Return (lower, upper) of each log argument by columns and single rows; lower is at least 0."""
        lower, upper = implied_bounds(program)
        row, column, value = self.matrix.row_of_entry(), self.matrix.columns, self.matrix.values
        K = len(self.index)
        low = np.where(value > 0, value * lower[column], value * upper[column])
        high = np.where(value > 0, value * upper[column], value * lower[column])
        least = np.bincount(row, weights=low, minlength=K) + self.offsets
        most = np.bincount(row, weights=high, minlength=K) + self.offsets
        size = np.bincount(row, weights=np.abs(high), minlength=K) + np.abs(self.offsets)
        rounded = np.isfinite(most) & (most <= ROUNDING * size)
        return np.maximum(least, 0.0), np.where(rounded, np.minimum(most, 0.0), most)

    def least_whole(self, program: Program) -> Floats:
        """Return the least positive log argument at whole numbers, shape (K,); 0 where that is unknown.

        It is known of terms without continuous columns if 0 is the lower end of their range, or if coefficients and
        offset are decimals: then the log arguments are multiples of a unit apart. Without this bound, MILP solvers
        return to points of argument 0, which no tangent rules out.
        """
        row, column, value = self.matrix.row_of_entry(), self.matrix.columns, self.matrix.values
        K, some = len(self.index), np.diff(self.matrix.starts) > 0
        whole = some & (np.bincount(row, weights=~program.integer[column], minlength=K) == 0)

        def total(of_entry: Floats, of_offset: Floats) -> Floats:
            return np.bincount(row, weights=of_entry, minlength=K) + of_offset

        ends = value * np.where(value > 0, np.ceil(program.lower[column]), np.floor(program.upper[column]))
        reach = total(ends, self.offsets)
        from_zero = np.isfinite(reach) & (np.abs(reach) <= ROUNDING * total(np.abs(ends), np.abs(self.offsets)))
        smallest = np.full(K, np.inf)
        np.minimum.at(smallest, row, np.abs(value))
        least = np.where(whole & from_zero, smallest, 0.0)
        size = total(np.abs(value), np.abs(self.offsets))
        for scale in DECIMALS:
            entries, offsets = np.rint(scale * value), np.rint(scale * self.offsets)
            off = total(np.abs(entries - scale * value), np.abs(offsets - scale * self.offsets))
            exact = whole & (off <= ROUNDING * scale * size) & (scale * size < MOST_WHOLE)
            unit = np.ones(K)
            unit[some] = np.gcd.reduceat(
                np.where(exact[row], np.abs(entries), 1.0).astype(np.int64), self.matrix.starts[:-1][some]
            )
            rest = np.mod(offsets, unit)
            least = np.maximum(least, np.where(exact, np.where(rest > 0, rest, unit) / scale, 0.0))
        return least * (1.0 - NEAREST)


@dataclass(frozen=True)
class Tangents:
    """Points of tangency: `point` ascends within each `term`, and every term has one at least."""

    term: Indices
    point: Floats

    def with_points(self, points: Floats) -> Tangents:
        """Return these tangents and those at `points`, shape (K, any), where they are above 0.

        Of nearly equal points the newer is kept.
        """
        row = np.broadcast_to(np.arange(len(points))[:, None], points.shape)
        return self.joined(Tangents(row[points > 0], points[points > 0]))

    def joined(self, newer: Tangents) -> Tangents:
        """Return these tangents and the newer; of nearly equal points the newer is kept."""
        term, point = np.concatenate((self.term, newer.term)), np.concatenate((self.point, newer.point))
        old = np.arange(len(term)) < len(self.term)
        order = np.lexsort((point, term))
        term, point, old = term[order], point[order], old[order]
        near = ~is_first(term)[1:] & (point[1:] <= point[:-1] * (1.0 + NEAREST))
        kept = np.ones(len(term), dtype=bool)
        kept[:-1] &= ~(near & old[:-1] & ~old[1:])
        kept[1:] &= ~(near & (old[1:] | ~old[:-1]))
        return Tangents(term[kept], point[kept])

    def above(self, least: Floats) -> Tangents:
        """Return the tangents at `least`, shape (K,), and beyond, and the last of each term."""
        kept = (self.point >= least[self.term]) | is_last(self.term)
        return Tangents(self.term[kept], self.point[kept])

    def first_points(self) -> Floats:
        """Return the least point of each term, shape (K,)."""
        return self.point[is_first(self.term)]

    def last_points(self) -> Floats:
        """Return the greatest point of each term, shape (K,)."""
        return self.point[is_last(self.term)]

    def middles(self) -> Floats:
        """Return the geometric mean of the least and the greatest point of each term, shape (K,)."""
        return np.asarray(np.sqrt(self.first_points() * self.last_points()))

    def segments(self, upper: Floats) -> tuple[Floats, Floats]:
        """Return (start, width) of the segments of the envelopes, one for each tangent; `upper` by term."""
        last = is_last(self.term)
        step = np.where(last, 1.0, np.roll(self.point, -1) / self.point - 1.0)
        # Tangents at p and q = p (1 + step) meet at q log(1 + step) / step.
        end = np.where(last, upper[self.term], self.point * (1.0 + step) * np.log1p(step) / step)
        start = np.where(is_first(self.term), 0.0, np.roll(end, 1))
        return start, np.maximum(end - start, 0.0)


def first_grid(terms: Terms, lower: Floats, upper: Floats, ratio: float) -> Tangents:
    """Return tangents at powers of a ratio, at least, over the range (lower, upper) of each term, shapes (K,)."""
    K = len(terms.index)
    bounded = np.isfinite(upper) & (upper > 0)
    known = np.maximum(1.0, np.maximum(lower, np.abs(terms.offsets)))
    high = np.where(bounded, upper, REACH * known)
    low = np.maximum(lower, np.where(bounded, upper * 2.0**-DOUBLINGS, known / math.sqrt(REACH)))
    most = max(4, min(DOUBLINGS + 1, MOST_FIRST_SEGMENTS // max(K, 1)))
    return geometric(low, high, ratio, most)


def geometric(low: Floats, high: Floats, ratio: float, most: int) -> Tangents:
    """Return points from low to high, shapes (K,): `ratio` or further apart, at most `most` for each term."""
    high = np.maximum(high, low)
    counts = np.clip(np.ceil(np.log(high / low) / math.log(ratio)) + 1, 1, most).astype(np.int64)
    term = np.repeat(np.arange(len(low)), counts)
    steps = counts[term] - 1
    return Tangents(term, high[term] * (low / high)[term] ** ((steps - ranks(counts)) / np.maximum(steps, 1)))


def further_down(tangents: Tangents, log_arguments: Floats, least: Floats) -> Floats:
    """Return points further down, shape (K, 3), for terms whose log argument, shape (K,), is below their first; else 0.

    No point is below `least`, shape (K,).
    """
    first = tangents.first_points()
    points = first[:, None] * np.array([1e-1, 1e-2, 1e-3])
    return np.where((log_arguments < first)[:, None] & (points >= least[:, None]), points, 0.0)


def window_points(middle: Floats, gap: float, allowed: float) -> Floats:
    """Return points around `middle`, shape (K,), close enough for the next round; shape (K, points).

    `gap` and `allowed` are per unit of weight. As a term's second derivative in log s is minus its weight, a gap G
    leaves the optimum within a distance of sqrt(2 G) in log s, on average. Tangents at a pitch of h overestimate a
    logarithm by at most h^2 / 8: a quarter of that distance leaves G / 64. A pitch that leaves less than a quarter of
    the allowed gap brings no gain.
    """
    window = min(WIDEST, math.sqrt(2.0 * gap))
    pitch = min(WIDEST, max(window / HALF_WINDOW, math.sqrt(2.0 * allowed), NEAREST))
    steps = math.ceil(window / pitch)
    return np.asarray(middle[:, None] * np.exp(pitch * np.arange(-steps, steps + 1)))


def is_first(term: Indices) -> NDArray[np.bool_]:
    """Return which tangents are the first of their term."""
    return np.append(True, term[1:] != term[:-1])[: len(term)]


def is_last(term: Indices) -> NDArray[np.bool_]:
    """Return which tangents are the last of their term."""
    return np.append(term[1:] != term[:-1], True)[: len(term)]


def starts_of(lengths: Indices) -> Indices:
    """Return the starts of parts of these lengths, and the end of the last one."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)))


def ranks(lengths: Indices) -> Indices:
    """Return the place of each element within its part, of parts of these lengths."""
    return np.arange(int(lengths.sum())) - np.repeat(starts_of(lengths)[:-1], lengths)
