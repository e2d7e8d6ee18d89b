"""Shared state of the rounds of tangent cuts: the inner solver with its clock, and the best point and proof so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.errors import LicenseLimit, UnsupportedProblem
from ....formulations.program.bounds import proved_bound
from ....formulations.program.model import Program
from ...answers import well_formed
from ...backend import Answer, Backend, Claim, Progress, Task, ignore_progress
from ...deadline import Deadline
from ...incumbent import Incumbent
from ...options import Options
from ...result import CLOSED_GAP, Limit

#: Duals, slopes by log term, and reduced costs.
Proof = tuple[Floats, Floats, Floats | None]

# The inner solver's share of the requested gap.
GAP_SHARE = 0.25
# Number of rounds that must halve the gap; otherwise the rounds end.
PATIENCE = 6
LARGEST = float(np.finfo(np.float64).max)
# Tolerance of linear programs that decide a question.
FINEST_TOLERANCE = 1e-9


@dataclass
class Inner:
    """The inner backend: one deadline for all its solves, and the notes of its answers."""

    backend: Backend
    deadline: Deadline
    problem: Any
    rounds: int = 0
    solves: int = 0
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> Options:
        """The options of the whole solve."""
        return self.deadline.given

    def solve(
        self,
        program: Program,
        *,
        rel_gap: float | None = None,
        abs_gap: float = 0.0,
        tolerance: float | None = None,
        start: Floats | None = None,
        on_progress: Progress = ignore_progress,
    ) -> Answer:
        """Solve a linear program by the backend within the time left.

        A program that the backend cannot state, or that exceeds its licence, ends the rounds; in the first round it
        raises.
        """
        options = replace(
            self.deadline.options(),
            rel_gap=GAP_SHARE * max(self.options.rel_gap, CLOSED_GAP) if rel_gap is None else rel_gap,
            abs_gap=abs_gap,
            feasibility_tol=self.options.feasibility_tol if tolerance is None else tolerance,
            warm_start=None,
        )
        task = Task(problem=program, form=program.forms[0], program=program, start=start)
        try:
            answer = well_formed(self.backend.solve(task, options, on_progress), task, self.backend.name)
        except (LicenseLimit, UnsupportedProblem) as error:
            if not self.solves:
                raise
            return Answer(claim=Claim.STOPPED, limit=Limit.METHOD, message=str(error))
        self.solves += 1
        self.notes = tuple(f"last round: {note}" for note in answer.notes if not note.startswith("warm start"))
        return answer

    def allowed(self, objective: float) -> float:
        """Return the requested gap, in the unit of the objective."""
        scale = self.problem.gap_scale(objective) if math.isfinite(objective) else 0.0
        return float(max(self.options.abs_gap, max(self.options.rel_gap, CLOSED_GAP) * scale))


class Record(Incumbent[Floats, Proof]):
    """The best point of a program, the best bound so far with its proof, and the progress of the gap."""

    def __init__(self, program: Program, tolerance: float) -> None:
        super().__init__()
        self.program, self.tolerance = program, tolerance
        self._gaps = [math.inf]

    @property
    def gap(self) -> float:
        """Bound less objective; infinite while either is."""
        return max(0.0, super().gap)

    @property
    def last_gap(self) -> float:
        """The gap after the last finished round."""
        return self._gaps[-1]

    def end_round(self) -> bool:
        """Record the gap; return whether `PATIENCE` rounds have not halved it."""
        self._gaps.append(self.gap)
        return len(self._gaps) > PATIENCE and not 2.0 * self.gap <= min(self._gaps[-1 - PATIENCE], LARGEST)

    def offer(self, values: Floats) -> bool:
        """Accept a point if it satisfies the program and is better; return whether it satisfies the program."""
        whole = np.clip(np.where(self.program.integer, np.rint(values), values), self.program.lower, self.program.upper)
        for point in (whole, values):
            if self.program.residuals_at(point).worst <= self.tolerance:
                self.improve(self.program.objective_at(point), point)
                return True
        return False

    def prove(self, proof: Proof) -> None:
        """Accept duals, slopes and reduced costs if they prove a bound at least as good."""
        bound = proved_bound(self.program, proof[0], proof[1])
        if bound == self.bound:
            self.proof = proof
        self.tighten(bound, proof)

    def stopped(self, limit: Limit, message: str = "") -> Answer:
        """Return the best point and bound as an answer that a limit ended."""
        return self.answer(Claim.STOPPED, limit, message)

    def failed(self, answer: Answer, message: str) -> Answer:
        """Return the best point and bound after an inner answer that permits no further round."""
        if answer.limit is not None:
            return self.stopped(answer.limit, answer.message)
        if self.solution is None:
            return self.answer(Claim.FAILED, message=message)
        return self.stopped(Limit.METHOD, f"tangent cuts end early: {message}")

    def answer(self, claim: Claim, limit: Limit | None = None, message: str = "") -> Answer:
        """Return the best point and bound as an answer."""
        duals, slopes, reduced = self.proof or (None, None, None)
        return Answer(
            claim=claim, limit=limit, message=message, values=self.solution,
            bound=self.bound if math.isfinite(self.bound) else None, duals=duals, slopes=slopes, reduced_costs=reduced,
        )  # fmt: skip
