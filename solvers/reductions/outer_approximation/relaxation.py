"""A linear relaxation of a program with log terms: the envelopes of tangents, a column for each of their segments."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import Csr
from ....formulations.program.model import Program
from ...backend import Answer
from .points import Tangents, Terms, is_first, starts_of
from .state import Proof

# Greatest weight or cost of a relaxation: large enough that tolerances of solvers (1e-6) are a small part of it.
COST = 64.0


@dataclass(frozen=True, kw_only=True)
class OuterProgram:
    """A linear relaxation of a program with log terms, and the translation of its answers.

    Its columns are the program's and one for each segment; its rows are the program's and, for each term, "the filled
    segments sum to at most the log argument". Slopes fall from segment to segment, so an optimum fills them in order.
    With a row for each tangent instead, the relaxation is the same, but a simplex method takes four times as long.

    Attributes
    ----------
    original : Program
    terms : Terms
    tangents : Tangents
    program : Program
        The relaxation; its objective is that of the original times `scale`.
    scale : float
        Factor that makes the greatest weight or cost about `COST`: solvers' tolerances are absolute.
    units : ndarray of float, shape (K,)
        Log argument of one unit of a term's segments.
    starts : ndarray of float, shape (tangents,)
        Log argument at the start of each segment.
    """

    original: Program
    terms: Terms
    tangents: Tangents
    program: Program
    scale: float
    units: Floats
    starts: Floats

    @classmethod
    def of(
        cls,
        original: Program,
        terms: Terms,
        tangents: Tangents,
        *,
        upper: Floats,
        units: Floats,
        least: Floats | float = 0.0,
    ) -> OuterProgram:
        """Build it; `least` and `upper`, shape (K,), bound each log argument."""
        n, m, K, term = original.num_columns, original.num_rows, len(terms.index), tangents.term
        units = _power_of_two(units)
        scale = float(COST / _power_of_two(max(_largest(terms.weights), _largest(original.objective)) or 1.0))
        # With an end of the last segment, a dual of 0 would be as good as the marginal value of a greater log argument.
        starts, widths = tangents.segments(upper if original.integer.any() else np.full(K, np.inf))
        worth = (terms.weights * units)[term] / tangents.point
        at_zero = terms.weights * (np.log(tangents.point[is_first(term)]) - 1.0)
        log_arguments = terms.matrix
        rows = side_by_side(
            Csr(
                log_arguments.starts, log_arguments.columns, -log_arguments.values / units[log_arguments.row_of_entry()]
            ),
            Csr(starts_of(np.bincount(term, minlength=K)), n + np.arange(len(term)), np.ones(len(term))),
        )
        filled = np.where(is_first(term), np.minimum(np.broadcast_to(least, (K,))[term], widths), 0.0)
        unbounded = np.full(K, -np.inf)
        program = Program(
            sense=original.sense,
            objective=scale * np.concatenate((original.objective, worth)),
            lower=np.concatenate((original.lower, filled / units[term])),
            upper=np.concatenate((original.upper, widths / units[term])),
            integer=np.concatenate((original.integer, np.zeros(len(term), dtype=bool))),
            matrix=stacked(original.matrix, rows),
            row_lower=np.concatenate((original.row_lower, unbounded)),
            row_upper=np.concatenate((original.row_upper, terms.offsets / units)),
            offset=scale * math.fsum([original.offset, *at_zero.tolist()]),
            columns={"original": np.arange(n), "segment": n + np.arange(len(term))},
            rows={"original": np.arange(m), "inside": m + np.arange(K)},
            gap_unit=None if original.gap_unit is None else scale * original.gap_unit,
        )
        return cls(
            original=original, terms=terms, tangents=tangents, program=program, scale=scale, units=units, starts=starts
        )

    def proof(self, answer: Answer) -> Proof | None:
        """Return the proof in an answer, in terms of the original program; None if it has no duals."""
        n, m = self.original.num_columns, self.original.num_rows
        if answer.duals is None or np.shape(answer.duals) != (self.program.num_rows,):
            return None
        if not np.isfinite(answer.duals).all():
            return None
        slopes = np.zeros(len(self.original.log_weights))
        # No slope is below that of the last segment, up to a solver's tolerance.
        least = 0.5 * self.terms.weights / self.tangents.last_points()
        slopes[self.terms.index] = np.maximum(answer.duals[m:] / (self.scale * self.units), least)
        reduced = None if answer.reduced_costs is None else answer.reduced_costs[:n] / self.scale
        return answer.duals[:m] / self.scale, slopes, reduced

    def completed(self, values: Floats) -> Floats:
        """Return a warm start: `values` by column of the original, and the segments that they fill."""
        log_arguments = self.terms.log_arguments(values)[self.tangents.term] if np.isfinite(values).all() else np.nan
        units = self.units[self.tangents.term]
        width = self.program.upper[self.original.num_columns :]
        filled = np.clip((log_arguments - self.starts) / units, 0.0, width)
        return np.concatenate((values, filled))


def side_by_side(left: Csr, right: Csr) -> Csr:
    """Return rows each of which has the entries of `left`, then those of `right`."""
    lengths = np.diff(left.starts), np.diff(right.starts)
    starts = starts_of(lengths[0] + lengths[1])
    columns, values = np.zeros(starts[-1], dtype=np.int64), np.zeros(starts[-1])
    for part, shift in ((left, 0), (right, lengths[0])):
        place = np.arange(len(part.values)) + np.repeat(starts[:-1] + shift - part.starts[:-1], np.diff(part.starts))
        columns[place], values[place] = part.columns, part.values
    return Csr(starts, columns, values)


def stacked(above: Csr, below: Csr) -> Csr:
    """Return the rows of `above`, then those of `below`."""
    return Csr(
        np.concatenate((above.starts, above.starts[-1] + below.starts[1:])),
        np.concatenate((above.columns, below.columns)),
        np.concatenate((above.values, below.values)),
    )


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


def _power_of_two(values: Floats | float) -> Floats:
    return np.asarray(2.0 ** np.round(np.log2(values)))
