"""Linear programs in place of one with log terms: its relaxation by tangents, and those that decide feasibility."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import Csr
from ....formulations.program.model import Program
from ...backend import Answer
from .points import Tangents, Terms, is_first, starts_of
from .state import Proof

# Greatest weight or cost of a relaxation: large enough that tolerances of solvers (1e-6) are a small part of it.
COST = 64.0
# Tolerance of a log argument, as a share of its greatest value or of 1: a solver's zeros are no more accurate.
LOG_ARGUMENT_TOLERANCE = 1e-9
# Least objective of an unbounded direction of unit size, in costs and log terms of unit size.
WORTH = 1e-7
#: Message where the search for a first point decides nothing.
UNDECIDED = "no first point was found, and infeasibility was not proved"


@dataclass(frozen=True, kw_only=True)
class OuterProgram:
    """A linear relaxation of a program with log terms, and the translation of its answers.

    Its columns are the program's and one for each segment; its rows are the program's and, for each term, "the filled
    segments sum to at most the log argument". Slopes fall from segment to segment, so an optimum fills them in order.
    With a row for each tangent instead, the relaxation is the same, but a simplex method takes four times as long.

    Attributes
    ----------
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
        negated = replace(terms.matrix, values=-terms.matrix.values / units[terms.matrix.row_of_entry()])
        rows = side_by_side(
            negated, Csr(starts_of(np.bincount(term, minlength=K)), n + np.arange(len(term)), np.ones(len(term)))
        )
        filled = np.where(is_first(term), np.minimum(np.broadcast_to(least, (K,))[term], widths), 0.0)
        program = Program(
            sense=original.sense,
            objective=scale * np.concatenate((original.objective, worth)),
            lower=np.concatenate((original.lower, filled / units[term])),
            upper=np.concatenate((original.upper, widths / units[term])),
            integer=np.concatenate((original.integer, np.zeros(len(term), dtype=bool))),
            matrix=stacked(original.matrix, rows),
            row_lower=np.concatenate((original.row_lower, np.full(K, -np.inf))),
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


def log_argument_tolerance(upper: Floats) -> Floats:
    """Return the tolerance of each log argument; `upper`, shape (K,), bounds the arguments."""
    return LOG_ARGUMENT_TOLERANCE * np.where(upper > 0, np.minimum(upper, 1.0), 1.0)


def interior_program(program: Program, terms: Terms, upper: Floats) -> Program:
    """Return the program that maximises the least log argument: columns as `program`, and one for that depth.

    The depth is at most 1: the least log argument, each in the unit of its upper end or of 1, whichever is less. An
    optimum of at most `LOG_ARGUMENT_TOLERANCE` means that no point has every logarithm defined. A continuous program of
    these is infeasible only if the rows and bounds of `program` are.
    """
    n, K = program.num_columns, len(terms.index)
    unit = log_argument_tolerance(upper) / LOG_ARGUMENT_TOLERANCE
    scaled = replace(terms.matrix, values=terms.matrix.values / unit[terms.matrix.row_of_entry()])
    log_arguments = side_by_side(scaled, Csr(np.arange(K + 1), np.full(K, n), np.full(K, -1.0)))
    return Program(
        sense="max",
        objective=np.append(np.zeros(n), 1.0),
        lower=np.append(program.lower, 0.0 if program.integer.any() else -np.inf),
        upper=np.append(program.upper, 1.0),
        integer=np.append(program.integer, False),
        matrix=stacked(program.matrix, log_arguments),
        row_lower=np.concatenate((program.row_lower, -terms.offsets / unit)),
        row_upper=np.concatenate((program.row_upper, np.full(K, np.inf))),
        columns={"original": np.arange(n), "depth": np.array([n])},
        rows={"original": np.arange(program.num_rows), "inside": program.num_rows + np.arange(K)},
    )


def recession_program(program: Program, terms: Terms) -> Program:
    """Return the program of a direction in which the objective of `program` is unbounded.

    There is one exactly if the optimum is above 0: along a direction d that keeps rows and bounds, with costs c and log
    arguments a_k, the objective rises without bound if c d > 0, or if c d = 0 and some a_k d > 0; no a_k d may be below
    0.
    """
    m, K = program.num_rows, len(terms.index)
    cost = program.objective / (float(np.abs(program.objective).max(initial=0.0)) or 1.0)
    size = np.zeros(K)
    np.maximum.at(size, terms.matrix.row_of_entry(), np.abs(terms.matrix.values))
    values = terms.matrix.values / np.where(size > 0, size, 1.0)[terms.matrix.row_of_entry()]
    gain = cost + np.bincount(terms.matrix.columns, weights=values, minlength=len(cost))[: len(cost)]
    priced = np.flatnonzero(cost)
    of_cost = Csr(np.array([0, len(priced)]), priced, cost[priced])
    log_arguments = stacked(replace(terms.matrix, values=values), of_cost)
    return Program(
        sense="max",
        objective=gain,
        lower=np.where(np.isfinite(program.lower), 0.0, -1.0),
        upper=np.where(np.isfinite(program.upper), 0.0, 1.0),
        integer=np.zeros(len(cost), dtype=bool),
        matrix=stacked(program.matrix, log_arguments),
        row_lower=np.concatenate((np.where(np.isfinite(program.row_lower), 0.0, -np.inf), np.zeros(K + 1))),
        row_upper=np.concatenate((np.where(np.isfinite(program.row_upper), 0.0, np.inf), np.full(K + 1, np.inf))),
        columns={"direction": np.arange(len(cost))},
        rows={"original": np.arange(m), "inside": m + np.arange(K), "cost": np.array([m + K])},
    )


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
