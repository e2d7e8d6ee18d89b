"""The delay_candidates backend: the best of the few delays of which one is optimal, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...formulations.gpu_sharing.delay_problem import DelayProblem
from ..backend import Answer, OwnMethod, Progress, Task
from ..deadline import Deadline
from ..options import Options
from ..result import Limit


class DelayCandidates(OwnMethod):
    """Evaluates the objective at each candidate in fractions: two for a pair, the ends of linear pieces for a group.

    Of equal candidates the shortest delay is taken.
    """

    name = "delay_candidates"
    requires = ()
    formulations = frozenset({"PairSharing", "GroupSharing"})
    supported_options = frozenset({"seed"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Evaluate all candidates; the method draws nothing, so the seed has no effect."""
        self.backend_options(options)
        deadline = Deadline.of(options)
        problem: DelayProblem[Any] = task.problem
        found: tuple[Fraction, Fraction] | None = None
        for delay in problem.candidates():
            value = problem.exact_objective(delay)
            if found is None or value < found[0]:
                found = value, delay
            if deadline.passed:
                return Answer.ended(Limit.TIME, plan=problem.plan_of(float(found[1])))
        assert found is not None  # a delay of 0 is always a candidate
        return Answer.ended(None, plan=problem.plan_of(float(found[1])), bound=float(found[0]))


BACKEND = DelayCandidates()
