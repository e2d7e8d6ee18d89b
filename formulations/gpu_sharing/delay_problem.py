"""DelayProblem: everything that a pair and a group have in common, the choice of one delay by its linear pieces."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, Generic, TypeVar

import numpy as np

from ..arrays import Floats
from ..checks import as_real, as_reals
from ..errors import InvalidInput
from ..files import written
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass, Residuals
from ..program.formulation import Formulation
from ..program.model import Program
from .curve import delay_curve
from .plan import SharingPlan

#: What is minimised.
OBJECTIVES = ("mean_jct", "weighted_jct", "makespan")
#: The largest time, ratio or weight: products of a few of them are finite floats.
LARGEST = 1e60

PlanT = TypeVar("PlanT", bound=SharingPlan)


class DelayProblem(Formulation[PlanT], ABC, Generic[PlanT]):
    """The delay after which a waiting job starts beside running ones; see PairSharing and GroupSharing.

    Every end is piecewise linear in the delay, and so is the objective. All arithmetic is exact: floats are fractions.

    Attributes
    ----------
    objective : str
        One of `OBJECTIVES`.
    weights : ndarray of float, shape (m + 1,), or None
        Weights of the running jobs, then that of the waiting job.
    """

    objective: str
    weights: Floats | None

    sense = "min"
    forms = ("pieces",)
    _declared_class = ProblemClass.MILP

    @property
    @abstractmethod
    def longest_s(self) -> float:
        """The longest useful delay: from it on, the jobs run one after the other."""

    @abstractmethod
    def exact_ends(self, delay: Fraction) -> Sequence[Fraction]:
        """Return the ends of the running jobs, then that of the waiting job, shape (m + 1,)."""

    @abstractmethod
    def candidates(self) -> Iterator[Fraction]:
        """Yield, in ascending order, delays of which one is optimal."""

    @abstractmethod
    def breakpoints(self) -> Sequence[Fraction]:
        """Return, in ascending order, the delays between which the objective is linear, with both ends of the range."""

    @abstractmethod
    def plan_of(self, delay_s: float) -> PlanT:
        """Return the plan of a delay."""

    def _store_objective(self, jobs: int) -> None:
        """Check objective and weights."""
        if self.objective not in OBJECTIVES:
            raise InvalidInput("objective", self.objective, f"must be one of {', '.join(OBJECTIVES)}")
        if self.objective != "weighted_jct":
            if self.weights is not None:
                raise InvalidInput("weights", "given", f"{self.objective} has no weights; use weighted_jct")
            return
        if self.weights is None:
            raise InvalidInput("weights", None, "weighted_jct needs a weight for each job, the waiting job's last")
        weights = as_reals("weights", self.weights, minimum=0.0, maximum=LARGEST, shape=(jobs,))
        if not weights.any():
            raise InvalidInput("weights", 0.0, "at least one weight must be greater than 0")
        object.__setattr__(self, "weights", weights)

    @cached_property
    def _exact_weights(self) -> tuple[Fraction, ...] | None:
        return None if self.weights is None else tuple(map(Fraction, self.weights.tolist()))

    def exact_objective(self, delay: Fraction) -> Fraction:
        """Return the mean end, the weighted mean of the ends, or the last end."""
        ends = self.exact_ends(delay)
        if self.objective == "makespan":
            return max(ends)
        weights = self._exact_weights
        if weights is None:
            return sum(ends, Fraction(0)) / len(ends)
        return sum((w * end for w, end in zip(weights, ends, strict=True)), Fraction(0)) / sum(weights)

    def program(self, form: str = "pieces") -> Program:
        """Return the MILP: the objective on one of its linear pieces; each but the last has a binary."""
        self.check_form(form)
        exact = [self.exact_objective(each) for each in self.breakpoints()]
        pieces = len(exact) - 1
        build = ProgramBuilder(sense="min")
        share = build.add_columns("share", (pieces, 2), upper=1.0)  # of each end of each piece
        terms: list[tuple[Any, Any, Any]] = [(np.arange(pieces)[:, None], share, 1.0)]
        right = np.zeros(pieces)
        right[-1] = 1.0
        # A single piece has a binary that is fixed: the class of the program is the same for all data.
        chosen = build.add_binaries("chosen", (max(1, pieces - 1),), upper=float(pieces > 1))
        if pieces > 1:
            terms += [(np.arange(pieces - 1), chosen, -1.0), (pieces - 1, chosen, 1.0)]
        build.add_rows("piece", (pieces,), terms=terms, lower=right, upper=right)
        # Tolerances of solvers are relative to the coefficients: these are the differences from a delay of 0.
        gains = np.array([float(value - exact[0]) for value in exact])
        build.set_objective([(share, np.stack([gains[:-1], gains[1:]], axis=1))], offset=float(exact[0]))
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "pieces") -> PlanT:
        """Turn column values into the plan of the end of a piece that has the largest share."""
        self.check_form(form)
        points = self.breakpoints()
        shares = np.zeros(len(points))
        by_piece = np.asarray(values[: 2 * (len(points) - 1)]).reshape(-1, 2)
        shares[:-1] += by_piece[:, 0]
        shares[1:] += by_piece[:, 1]
        return self.plan_of(float(points[int(np.argmax(shares))]))

    def encode(self, plan: PlanT, form: str = "pieces") -> Floats:
        """Turn a plan into column values; a delay beyond the range is its end."""
        self.check_form(form)
        self.check_plan(plan)
        points = np.array([float(each) for each in self.breakpoints()])
        pieces = len(points) - 1
        piece = min(int(np.searchsorted(points[1:], plan.delay_s)), pieces - 1)
        width = points[piece + 1] - points[piece]
        part = min(1.0, max(0.0, (plan.delay_s - points[piece]) / width)) if width > 0 else 0.0
        share, chosen = np.zeros((pieces, 2)), np.zeros(max(1, pieces - 1))
        share[piece] = 1.0 - part, part
        if piece < pieces - 1:
            chosen[piece] = 1.0
        return np.concatenate([share.ravel(), chosen])

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the objective against the delay as a picture (SVG); write it to `path` if given."""
        points = self.breakpoints()
        values = [float(self.exact_objective(each)) for each in points]
        name = self.objective.replace("_", " ").replace("jct", "JCT")
        return written(delay_curve([float(each) for each in points], values, name), path)

    def check_plan(self, plan: Any, field: str = "plan") -> None:
        """Raise InvalidInput unless `plan` is a plan of sharing of as many jobs with a finite delay of at least 0."""
        jobs = len(self.exact_ends(Fraction(0)))
        if not isinstance(plan, SharingPlan) or len(plan.problem.exact_ends(Fraction(0))) != jobs:
            raise InvalidInput(field, type(plan).__name__, f"must be a plan of {jobs} jobs that share")
        as_real(f"{field}.delay_s", plan.delay_s, minimum=0.0)

    def evaluate(self, plan: PlanT) -> tuple[float, Residuals]:
        """Return the objective of the plan's delay, and by how much the delay is below 0."""
        if not math.isfinite(plan.delay_s):
            return math.inf, Residuals(bound=math.inf)
        delay = max(Fraction(0), Fraction(plan.delay_s))
        return float(self.exact_objective(delay)), Residuals(bound=max(0.0, -plan.delay_s))

    def normalized(self, plan: PlanT) -> PlanT:
        """Return the plan with the ends of this problem."""
        return self.plan_of(plan.delay_s)

    def gap_scale(self, objective: float) -> float:
        """Return the objective itself: it is never 0, and times may be of any size."""
        return abs(objective)
