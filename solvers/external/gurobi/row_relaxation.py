"""Tangent cuts within a small licence: one row for each useful cut instead of one column for every segment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices
from ....formulations.errors import LicenseLimit
from ....formulations.program.data import Csr
from ....formulations.program.model import Program
from ...backend import Answer, Availability, Backend, Claim, Progress, Task, ignore_progress
from ...deadline import Deadline
from ...options import Options
from ...reductions.outer_approximation.points import is_first, is_last, ranks, starts_of
from ...reductions.outer_approximation.relaxation import side_by_side, stacked
from .licence import BUNDLED_SIZE, check_size

# Linear programs for one relaxation: each adds the lines that its optimum violates.
MOST_ROUNDS = 40
# Share of the licence's rows that the first lines fill.
FILLED = 0.6
# A cut counts as violated beyond this share of the term's magnitude, or of 1.
VIOLATED = 1e-9


class WithinLicence(Backend):
    """Passes linear programs to Gurobi; states relaxations with more segments than the licence has columns by rows.

    Each relaxation of `tangent_program` has a column for each segment of its envelopes. An equivalent relaxation has
    one column for each logarithm and a row for each segment, and an optimum needs two of the rows at most. So only rows
    that an earlier optimum has violated are stated.
    """

    name = "gurobi"

    def __init__(self, gurobi: Backend) -> None:
        self._gurobi = gurobi
        self.licence, self.classes = gurobi.licence, gurobi.classes
        self.supported_options = gurobi.supported_options

    def probe(self) -> Availability:
        """Return Gurobi's availability."""
        return self._gurobi.probe()

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve a linear program, or raise LicenseLimit."""
        program = task.stated_program
        try:
            check_size(program)
        except LicenseLimit:
            if "segment" not in program.columns or program.integer.any():
                raise
            return self._by_rows(_Envelopes.of(program), options)
        return self._gurobi.solve(task, options, on_progress)

    def _by_rows(self, envelopes: _Envelopes, options: Options) -> Answer:
        deadline, chosen = Deadline.of(options), envelopes.first_choice()
        for _ in range(MOST_ROUNDS):
            program = envelopes.program(chosen)
            check_size(program)
            task = Task(problem=program, form=program.forms[0], program=program)
            answer = self._gurobi.solve(task, deadline.options(), ignore_progress)
            ends = is_last(envelopes.term)  # with these lines no relaxation is unbounded by omission
            if answer.claim in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED) and (ends & ~chosen).any():
                chosen = chosen | ends
                continue
            if answer.values is None or answer.claim is not Claim.SOLVED:
                return envelopes.translated(answer, chosen)
            violated = envelopes.violated(answer.values) & ~chosen
            if not violated.any():
                return envelopes.translated(answer, chosen)
            previous, chosen = chosen, envelopes.next_choice(chosen, violated, answer.values)
        return envelopes.translated(answer, previous)  # a relaxation of fewer lines; its point is still feasible


@dataclass(frozen=True, kw_only=True)
class _Envelopes:
    """A relaxation with segments, read as the envelopes of its lines.

    Attributes
    ----------
    term : ndarray of int, shape (S,)
        The term of each segment.
    starts, slopes, heights : ndarray of float, shape (S,)
        Start, slope and height at 0 of the line through each segment.
    log_argument_rows : Csr
        Rows of the negated log arguments, over the program's own columns.
    offsets, least : ndarray of float, shape (K,)
        Offsets and least values of the log arguments.
    guarded : ndarray of int
        The logarithms whose argument may fall below its least value within the columns' bounds.
    """

    given: Program
    term: Indices
    starts: Floats
    slopes: Floats
    heights: Floats
    log_argument_rows: Csr
    offsets: Floats
    least: Floats
    guarded: Indices

    @classmethod
    def of(cls, given: Program) -> _Envelopes:
        n, m = len(given.columns["original"]), len(given.rows["original"])
        K = given.num_rows - m
        row, own = given.matrix.row_of_entry(), given.matrix.columns < n
        below = row >= m
        term = np.empty(given.num_columns - n, dtype=np.int64)
        term[given.matrix.columns[below & ~own] - n] = row[below & ~own] - m
        widths, slopes = given.upper[n:], given.objective[n:]
        ends = _running(np.where(is_last(term), 0.0, widths), term)
        worth = _running(np.where(is_last(term), 0.0, widths * slopes), term)
        starts, reached = (np.where(is_first(term), 0.0, np.roll(each, 1)) for each in (ends, worth))
        inside = below & own
        offsets = given.row_upper[m:]
        least = np.asarray(np.bincount(term, weights=given.lower[n:], minlength=K), dtype=np.float64)
        values, columns = given.matrix.values[inside], given.matrix.columns[inside]
        most = values * np.where(values > 0, given.upper[columns], given.lower[columns])
        return cls(
            given=given, term=term, starts=starts, slopes=slopes, heights=reached - slopes * starts,
            log_argument_rows=Csr(starts_of(np.bincount(row[inside] - m, minlength=K)), columns, values),
            offsets=offsets, least=least,
            guarded=np.flatnonzero(np.bincount(row[inside] - m, weights=most, minlength=K) > offsets - least),
        )  # fmt: skip

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Numbers of columns and rows of the program itself, and of logarithms."""
        return len(self.given.columns["original"]), len(self.given.rows["original"]), len(self.offsets)

    def program(self, chosen: NDArray[np.bool_]) -> Program:
        """Return the relaxation that states the chosen lines alone, with one more column for each logarithm."""
        n, m, K = self._sizes
        given, lines = self.given, np.flatnonzero(chosen)
        term = self.term[lines]
        flat = _rows_of(self.log_argument_rows, term)
        tilted = replace(flat, values=flat.values * self.slopes[lines][flat.row_of_entry()])
        rows = side_by_side(tilted, Csr(np.arange(len(lines) + 1), n + term, np.ones(len(lines))))
        first = slice(0, given.matrix.starts[m])
        original = Csr(given.matrix.starts[: m + 1], given.matrix.columns[first], given.matrix.values[first])
        guard = _rows_of(self.log_argument_rows, self.guarded)
        below = self.heights[lines] + self.slopes[lines] * self.offsets[term]
        G, free = len(self.guarded), np.full(K, np.inf)
        return Program(
            sense=given.sense,
            objective=np.concatenate((given.objective[:n], np.ones(K))),
            lower=np.concatenate((given.lower[:n], -free)),
            upper=np.concatenate((given.upper[:n], free)),
            integer=np.zeros(n + K, dtype=bool),
            matrix=stacked(stacked(original, guard), rows),
            row_lower=np.concatenate((given.row_lower[:m], np.full(G + len(lines), -np.inf))),
            row_upper=np.concatenate((given.row_upper[:m], (self.offsets - self.least)[self.guarded], below)),
            offset=given.offset,
            columns={"original": np.arange(n), "height": n + np.arange(K)},
            rows={"original": np.arange(m), "inside": m + np.arange(G), "line": m + G + np.arange(len(lines))},
            gap_unit=given.gap_unit,
        )

    def inside(self, values: Floats) -> Floats:
        """Return each log argument, shape (K,), in the unit of its segments."""
        return np.maximum(self.offsets - self.log_argument_rows.times(values), 0.0)

    def violated(self, values: Floats) -> NDArray[np.bool_]:
        """Return the binding line of each logarithm where the solution's height lies above it, shape (S,)."""
        height, inside = values[self._sizes[0] :], self.inside(values)
        before = np.bincount(self.term, weights=self.starts <= inside[self.term], minlength=len(inside))
        counts = np.bincount(self.term, minlength=len(inside))
        at = starts_of(counts)[:-1] + np.maximum(before, 1).astype(np.int64) - 1
        true = self.heights[at] + self.slopes[at] * inside
        found = np.zeros(len(self.term), dtype=bool)
        found[at[height - true > VIOLATED * np.maximum(1.0, np.abs(true))]] = True
        return found

    def first_choice(self) -> NDArray[np.bool_]:
        """Return the first lines: all if they fit, else those nearest to the middle, which is the unit."""
        spare_rows, K = self._spare_rows(), len(self.offsets)
        if len(self.term) <= spare_rows:
            return np.ones(len(self.term), dtype=bool)
        ends = np.where(is_last(self.term), np.inf, np.roll(self.starts, -1))
        with np.errstate(divide="ignore"):
            away = np.maximum(np.maximum(np.log(self.starts), -np.log(ends)), 0.0)
        order = np.lexsort((away, self.term))
        counts = np.bincount(self.term, minlength=K)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = ranks(counts)
        return np.asarray(rank < max(1, int(FILLED * spare_rows) // K))

    def next_choice(self, chosen: NDArray[np.bool_], violated: NDArray[np.bool_], values: Floats) -> NDArray[np.bool_]:
        """Return the chosen and the violated lines; if they do not all fit, the furthest from tight are dropped."""
        many = int((chosen | violated).sum()) - self._spare_rows()
        if many > 0:
            height = values[self._sizes[0] :][self.term]
            above = self.heights + self.slopes * self.inside(values)[self.term] - height
            droppable = np.flatnonzero(chosen & ~violated & (above > VIOLATED * np.maximum(1.0, np.abs(height))))
            chosen = chosen.copy()
            chosen[droppable[np.argsort(-above[droppable])[:many]]] = False
        return chosen | violated

    def translated(self, answer: Answer, chosen: NDArray[np.bool_]) -> Answer:
        """Return the answer in terms of the original relaxation."""
        n, m, _ = self._sizes
        values = duals = reduced = ray = None
        if answer.values is not None:
            place = self.inside(answer.values)[self.term]
            filled = np.clip(place - self.starts, 0.0, self.given.upper[n:])
            values = np.concatenate((answer.values[:n], filled))
        if answer.duals is not None:
            duals = self._joined(answer.duals, chosen)
            if answer.reduced_costs is not None:
                reduced = np.concatenate((answer.reduced_costs[:n], self.slopes - duals[m:][self.term]))
        if answer.ray is not None:
            ray = self._joined(answer.ray, chosen)
        return replace(answer, values=values, duals=duals, reduced_costs=reduced, ray=ray)

    def _joined(self, multipliers: Floats, chosen: NDArray[np.bool_]) -> Floats:
        """Return multipliers of the program's rows and of the log arguments: a line's multiplier counts by slope."""
        _, m, K = self._sizes
        lines, G = np.flatnonzero(chosen), len(self.guarded)
        steep = np.bincount(self.term[lines], weights=multipliers[m + G :] * self.slopes[lines], minlength=K)
        inside = np.asarray(steep, dtype=np.float64)
        inside[self.guarded] += multipliers[m : m + G]
        return np.concatenate((multipliers[:m], inside))

    def _spare_rows(self) -> int:
        return BUNDLED_SIZE - self._sizes[1] - len(self.guarded)


def _running(values: Floats, term: Indices) -> Floats:
    """Return sums up to each value within its term."""
    total = np.cumsum(values)
    before = np.where(is_first(term), total - values, -np.inf)
    return np.asarray(total - np.maximum.accumulate(before))


def _rows_of(matrix: Csr, rows: Indices) -> Csr:
    """Return some rows of a matrix, in this order."""
    lengths = np.diff(matrix.starts)[rows]
    entries = np.repeat(matrix.starts[rows], lengths) + ranks(lengths)
    return Csr(starts_of(lengths), matrix.columns[entries], matrix.values[entries])
