"""Rounds of tangent cuts on a continuous program: solve, locate the optimum by point and prices, cut there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.program.model import Program
from ...backend import Answer, Claim
from ...result import Limit
from . import relaxation
from .points import FAR_BELOW, REACH, Tangents, Terms, first_grid, further_down, window_points
from .state import FINEST_TOLERANCE, PATIENCE, Inner, Proof, Record

# Ratio of the first grid, and of the grid outside the windows after the first round.
FINE_RATIO = 2.0
COARSE_RATIO = 8.0
# Tangents of earlier rounds are dropped while the gap falls at least by this factor each round.
GOOD_FACTOR = 4.0
# Number of extensions of unbounded ranges of log arguments, and distance of the tangents beyond the end.
MOST_EXTENSIONS = 3
EXTENSION = REACH ** np.array([0.25, 0.5, 0.75, 1.0])
BISECTIONS = 60
NO_OPTIMUM = (Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED)


class ContinuousRounds:
    """Solves one program without integer columns.

    Parameters
    ----------
    share : float
        Share of the requested gap at which the rounds stop.
    tangents : Tangents, optional
        Tangents of the first round; by default a first grid.
    report : callable, optional
        Called with the record after each round.
    """

    def __init__(
        self,
        inner: Inner,
        program: Program,
        *,
        share: float = 1.0,
        tangents: Tangents | None = None,
        report: Callable[[Record], None] | None = None,
    ) -> None:
        self.inner, self.program, self.share, self.report = inner, program, share, report
        self.terms = Terms.of(program)
        lower, self.upper = self.terms.span(program)
        self.record = Record(program, inner.options.feasibility_tol)
        self.record.prove((np.zeros(program.num_rows), self.terms.slopes_at(self.upper), None))
        self.base = first_grid(self.terms, lower, self.upper, COARSE_RATIO)
        self.tangents = tangents or first_grid(self.terms, lower, self.upper, FINE_RATIO)
        self.centre = self.tangents.middles()
        self._extensions = 0

    def begin_at(self, values: Floats) -> None:
        """Cut at a point of the program."""
        self.centre = self.terms.log_arguments(values)
        self.tangents = self.tangents.with_points(self.centre[:, None])

    def run(self) -> Answer:
        """Continue until the gap is closed, a limit strikes, or the rounds make no more progress."""
        record = self.record
        while not self.inner.deadline.passed:
            outer = relaxation.OuterProgram.of(
                self.program, self.terms, self.tangents, upper=self.upper, units=self.centre
            )
            answer = self.inner.solve(outer.program)
            self.inner.rounds += 1
            ended = self._read(outer, answer)
            if ended is not None and ended.values is None:
                return ended
            if self.report is not None:
                self.report(record)
            if record.gap <= self.share * self.inner.allowed(record.objective):
                return record.answer(Claim.SOLVED)
            if ended is not None:
                return ended
            if answer.values is not None and answer.claim not in NO_OPTIMUM:
                self._cut(self.terms.log_arguments(answer.values[: self.program.num_columns]), outer.proof(answer))
            if record.end_round():
                return record.stopped(Limit.METHOD, f"tangent cuts: {PATIENCE} rounds have not halved the gap")
        return record.stopped(Limit.TIME)

    def _read(self, outer: relaxation.OuterProgram, answer: Answer) -> Answer | None:
        """Process one round's answer; return the answer that ends the rounds, if there is one."""
        record = self.record
        proof = outer.proof(answer)
        if proof is not None:
            record.prove(proof)
        if answer.claim in NO_OPTIMUM:
            return self._without_optimum(answer)
        if answer.values is None:
            return record.failed(answer, answer.message or "the backend gave no point")
        if proof is None and answer.claim is Claim.SOLVED:
            own_bound = outer.program.objective_at(answer.values) if answer.bound is None else answer.bound
            record.tighten(own_bound / outer.scale)
        point = answer.values[: self.program.num_columns]
        worst = self.program.residuals_at(point).worst
        if worst > record.tolerance:
            return record.failed(answer, f"the point of a round violates the program by {worst:.3g}")
        if record.solution is None:
            if (self.terms.log_arguments(point) > relaxation.log_argument_tolerance(self.upper)).all():
                record.offer(point)
            elif (ended := self._find_interior()) is not None:
                return ended
        self._search_segment(point)
        return None if answer.limit is None else record.stopped(answer.limit, answer.message)

    def _search_segment(self, point: Floats) -> None:
        """Offer the best point between the best so far and this one: feasible, as the program is convex."""
        old = self.record.solution
        assert old is not None
        here, rise = self.terms.log_arguments(old), float(self.program.objective @ (point - old))
        step = self.terms.log_arguments(point) - here

        def slope(share: float) -> float:
            at = here + share * step
            return rise + float((self.terms.weights * step / at).sum()) if (at > 0).all() else -math.inf

        low, high = 0.0, 1.0
        if slope(1.0) >= 0:
            low = 1.0
        for _ in range(BISECTIONS if low < high else 0):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        if low > 0:
            self.record.offer(old + low * (point - old))

    def _cut(self, log_arguments: Floats, proof: Proof | None) -> None:
        """Choose the next round's tangents.

        The prices of a round put each log argument near weight / slope; `window_points` has the width. Within the
        windows the next round's relaxation is 64 times as close as this one's. While the gap falls at that rate,
        tangents outside them are dropped, but for a coarse grid: fewer segments make faster linear programs. Otherwise
        all tangents are kept, those at the points visited among them, as Kelley's method requires.
        """
        record, terms = self.record, self.terms
        assert record.solution is not None
        best, last = terms.log_arguments(record.solution), self.tangents.last_points()
        least = relaxation.LOG_ARGUMENT_TOLERANCE * best
        most = np.where(np.isfinite(self.upper), self.upper, REACH * np.maximum(last, best))
        middle = best if proof is None else terms.weights / proof[1][terms.index]
        self.centre = middle = np.clip(middle, least, np.maximum(most, least))
        weight = float(terms.weights.sum()) or 1.0
        allowed = self.share * self.inner.allowed(record.objective)
        around = window_points(middle, record.gap / weight, allowed / weight)
        coarse = self.base.above(FAR_BELOW * np.minimum(middle, best))
        kept = coarse if GOOD_FACTOR * record.gap <= record.last_gap else self.tangents
        points = np.minimum(np.column_stack((around, further_down(self.tangents, log_arguments, least))), most[:, None])
        self.tangents = kept.with_points(points).with_points(np.column_stack((log_arguments, best)))

    def _without_optimum(self, answer: Answer) -> Answer | None:
        """Decide the meaning of a round without an optimum; None if the rounds continue further out."""
        if not len(self.terms.index):
            return replace(answer, values=None, duals=None, reduced_costs=None, ray=self._own_ray(answer))
        ended = self._find_interior() if self.record.solution is None else None
        if ended is not None:
            return ended
        program = relaxation.recession_program(self.program, self.terms)
        sought = self.inner.solve(program, tolerance=FINEST_TOLERANCE)
        if sought.values is None:
            return self.record.failed(sought, sought.message or "boundedness of the objective was not decided")
        worst, gain = program.residuals_at(sought.values).worst, program.objective_at(sought.values)
        if worst <= relaxation.LOG_ARGUMENT_TOLERANCE and gain > relaxation.WORTH:
            message = "the objective is unbounded along a direction that rows, bounds and logarithms allow"
            return Answer(claim=Claim.UNBOUNDED, message=message)
        if answer.claim is Claim.INFEASIBLE:
            return self.record.failed(answer, "the backend called a round infeasible, but there is a feasible point")
        self._extensions += 1
        if self._extensions > MOST_EXTENSIONS:
            return self.record.failed(sought, "the rounds stay unbounded, but no unbounded direction was found")
        further = np.where(np.isinf(self.upper), self.tangents.last_points(), 0.0)[:, None] * EXTENSION
        self.base, self.tangents = self.base.with_points(further), self.tangents.with_points(further)
        return None

    def _find_interior(self) -> Answer | None:
        """Find a first point with every logarithm defined; return the answer that ends the rounds if there is none."""
        program = relaxation.interior_program(self.program, self.terms, self.upper)
        answer = self.inner.solve(program, tolerance=FINEST_TOLERANCE)
        if answer.claim is Claim.INFEASIBLE:
            return Answer(claim=Claim.INFEASIBLE, message=answer.message, ray=self._own_ray(answer))
        if answer.values is None:
            return self.record.failed(answer, answer.message or relaxation.UNDECIDED)
        if answer.claim is Claim.SOLVED and answer.values[-1] <= relaxation.LOG_ARGUMENT_TOLERANCE:
            message = "no point satisfies the rows with every log argument above 0"
            return Answer(claim=Claim.INFEASIBLE, message=message)
        self.record.offer(answer.values[:-1])
        if self.record.solution is None:
            return self.record.failed(answer, "the first point found violates the program")
        return None

    def _own_ray(self, answer: Answer) -> Floats | None:
        return None if answer.ray is None else answer.ray[: self.program.num_rows]
