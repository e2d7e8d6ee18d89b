"""Rounds of tangent cuts on a program with integer columns: outer approximation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.data import ProblemClass
from ....formulations.program.model import Program
from ...backend import Answer, Claim
from ...result import Limit
from .continuous import FINE_RATIO, ContinuousRounds
from .points import FAR_BELOW, LEAST, Terms, first_grid, further_down, window_points
from .relaxation import LOG_ARGUMENT_TOLERANCE, UNDECIDED, OuterProgram, interior_program, log_argument_tolerance
from .state import FINEST_TOLERANCE, GAP_SHARE, Inner, Record

# Gap of the first integer program, as a share of the bound or the sum of weights, and of later ones, as a share of the
# remaining gap: the next cuts make a finer answer useless.
FIRST_GAP = 1e-2
NEXT_GAP = 0.125


class IntegerRounds:
    """Solves one program with integer columns.

    The continuous relaxation gives a first bound and cuts. Integer programs follow, whose optima bound the objective
    from above; the integers of each optimum are fixed, and rounds on the continuous columns choose those. No tangent is
    dropped: the tangents at a visited integer point make the relaxation exact there.

    Parameters
    ----------
    inner : Inner
        A backend that reads no LPs skips the relaxation, and its integer points are used as they are.
    report : callable
        Called with the record after each round, and for each better point within a round.
    """

    def __init__(self, inner: Inner, program: Program, *, report: Callable[[Record], None]) -> None:
        self.inner, self.program, self.report = inner, program, report
        self.terms = Terms.of(program)
        lower, self.upper = self.terms.span(program)
        self.record = Record(program, inner.options.feasibility_tol)
        self.least = self.terms.least_whole(program)
        self.tangents = first_grid(self.terms, np.maximum(lower, self.least), self.upper, FINE_RATIO)
        self._linear = ProblemClass.LP in inner.backend.classes
        # A backend of integer programs alone may count every column in whole steps: scale the longest range to 1.
        self.centre = self.tangents.middles() if self._linear else self.tangents.last_points()
        if not self._linear:
            self.tangents = self.tangents.above(FAR_BELOW * self.centre)
        self.partial: Floats | None = None
        self.rounds = 0
        # Less than 1 for a backend that stops short of the gap that it is given.
        self._insistence, self._fell_short = 1.0, False
        self._seen: set[bytes] = set()

    def begin_at(self, values: Floats) -> None:
        """Cut at a point of the program."""
        self.tangents = self.tangents.with_points(self.terms.log_arguments(values)[:, None])

    def run(self) -> Answer:
        """Continue until the gap is closed, a limit strikes, or the rounds make no more progress."""
        record, inner = self.record, self.inner
        ended = self._relax() if self._linear else None
        while ended is None and not inner.deadline.passed:
            known = len(self.tangents.point)
            finest = GAP_SHARE * inner.allowed(record.objective)
            size = max(float(self.terms.weights.sum()), abs(record.bound) if math.isfinite(record.bound) else 0.0)
            wanted = max(finest, NEXT_GAP * record.gap if math.isfinite(record.gap) else FIRST_GAP * size)
            wanted *= self._insistence
            outer = OuterProgram.of(
                self.program, self.terms, self.tangents, upper=self.upper, units=self.centre, least=self.least
            )
            ended = self._read(outer, self._solve(outer, wanted), wanted)
            if ended is not None and ended.values is None:
                return ended
            self.report(record)
            if record.gap <= inner.allowed(record.objective):
                return record.answer(Claim.SOLVED)
            spent = wanted <= finest and not self._fell_short and len(self.tangents.point) == known
            if (record.end_round() or spent) and ended is None:
                ended = record.stopped(Limit.METHOD, "tangent cuts: further rounds do not close the gap")
        return ended or record.stopped(Limit.TIME)

    def _relax(self) -> Answer | None:
        """Take bound and tangents of the continuous relaxation; return the answer that ends the rounds, if any."""
        relaxed = replace(self.program, integer=np.zeros(self.program.num_columns, dtype=bool))

        def report(relaxation: Record) -> None:
            self.record.tighten(relaxation.bound)
            self.report(self.record)

        rounds = ContinuousRounds(self.inner, relaxed, tangents=self.tangents, report=report)
        answer = rounds.run()
        if answer.claim is Claim.INFEASIBLE:
            return replace(answer, values=None)
        if answer.claim is Claim.UNBOUNDED:
            return self._find_interior() or replace(answer, values=None)
        self.record.tighten(rounds.record.bound)
        self.centre = rounds.centre
        self.tangents = self.tangents.joined(rounds.tangents).above(FAR_BELOW * self.centre)
        return None

    def _solve(self, outer: OuterProgram, wanted: float) -> Answer:
        record, n = self.record, self.program.num_columns
        known = self.partial if record.solution is None else record.solution
        if known is not None and "warm_start" in self.inner.backend.supported_options:
            start = outer.completed(known)
        else:
            start = None

        def on_inner_progress(
            objective: float | None, bound: float, incumbent: Floats | None = None, measures: object = None
        ) -> None:
            best = record.objective
            if bound is not None and math.isfinite(bound):
                record.tighten(bound / outer.scale)
            if incumbent is not None and np.shape(incumbent) == (outer.program.num_columns,):
                record.offer(np.asarray(incumbent, dtype=np.float64)[:n])
            if record.objective > best:
                self.report(record)

        scale = self.inner.problem.gap_scale(record.objective if record.solution is not None else record.bound)
        self.rounds += 1
        relative, absolute = min(1.0, wanted / scale) if math.isfinite(scale) else 0.0, wanted * outer.scale
        return self.inner.solve(
            outer.program, rel_gap=relative, abs_gap=absolute, start=start, on_progress=on_inner_progress
        )

    def _read(self, outer: OuterProgram, answer: Answer, wanted: float) -> Answer | None:
        """Process one round's answer, and cut; return the answer that ends the rounds, if there is one."""
        record = self.record
        if answer.bound is not None and math.isfinite(answer.bound):
            record.tighten(answer.bound / outer.scale)
            if answer.values is not None:
                left = (answer.bound - outer.program.objective_at(answer.values)) / outer.scale
                self._fell_short = left > wanted
                self._insistence *= NEXT_GAP if self._fell_short else 1.0
        if answer.claim is Claim.INFEASIBLE and record.solution is None:
            message = "no integer point satisfies the rows with every logarithm defined"
            return Answer(claim=Claim.INFEASIBLE, message=message)
        if answer.claim in (Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED) and not self._linear:
            return Answer(claim=Claim.INFEASIBLE_OR_UNBOUNDED, message=answer.message)
        if answer.values is None or not np.isfinite(answer.values).all():
            return record.failed(answer, answer.message or "the backend gave no point")
        point = answer.values[: self.program.num_columns]
        log_arguments = self.terms.log_arguments(point)
        visited = [log_arguments]
        if self._linear and not self.program.integer.all():
            visited += self._fix(point)
        elif (log_arguments > log_argument_tolerance(self.upper)).all():
            record.offer(point)
        ended = self._find_interior()
        if ended is not None:
            return ended
        if answer.limit is not None:
            return record.stopped(answer.limit, answer.message)
        self._cut(visited)
        return None

    def _fix(self, point: Floats) -> list[Floats]:
        """Choose the best continuous columns for the integers of a point; return the log arguments at the result."""
        program, whole = self.program, self.program.integer
        integers = np.rint(point[whole])
        if integers.tobytes() in self._seen:
            return []
        self._seen.add(integers.tobytes())
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[whole] = upper[whole] = integers
        fixed = replace(program, lower=lower, upper=upper, integer=np.zeros_like(whole))
        rounds = ContinuousRounds(self.inner, fixed, share=GAP_SHARE, tangents=self.tangents)
        rounds.run()
        if rounds.record.solution is None or not self.record.offer(rounds.record.solution):
            return []
        return [self.terms.log_arguments(rounds.record.solution)]

    def _cut(self, visited: list[Floats]) -> None:
        """Add tangents at the points visited, and in a window of the gap's width around the last."""
        record = self.record
        assert record.solution is not None
        weight = float(self.terms.weights.sum()) or 1.0
        allowed = GAP_SHARE * self.inner.allowed(record.objective)
        best = self.terms.log_arguments(record.solution)
        if self._linear:
            self.centre = best
        around = window_points(np.maximum(visited[-1], FAR_BELOW * best), record.gap / weight, allowed / weight)
        below = further_down(self.tangents, visited[0], LEAST * best)
        points = np.minimum(np.column_stack((around, below)), self.upper[:, None])
        visits = np.column_stack((*visited, best))
        visits[visits < LEAST * best[:, None]] = 0.0
        self.tangents = self.tangents.with_points(points).with_points(visits)

    def _find_interior(self) -> Answer | None:
        """Find a first point with every logarithm defined, if none is known; return the answer that ends the rounds."""
        if self.record.solution is not None:
            return None
        program = interior_program(self.program, self.terms, self.upper)
        answer = self.inner.solve(program, tolerance=FINEST_TOLERANCE if self._linear else None)
        solved = answer.values if answer.claim is Claim.SOLVED else None
        nowhere = solved is not None and solved[-1] <= LOG_ARGUMENT_TOLERANCE
        if nowhere or answer.claim is Claim.INFEASIBLE:
            message = "no integer point satisfies the rows with every log argument above 0"
            return Answer(claim=Claim.INFEASIBLE, message=message)
        if answer.values is None or not self.record.offer(answer.values[:-1]):
            return self.record.failed(answer, answer.message or UNDECIDED)
        return None
