"""The best solution and the best bound that a search has found so far."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

SolutionT = TypeVar("SolutionT")
ProofT = TypeVar("ProofT")


class Incumbent(Generic[SolutionT, ProofT]):
    """The best solution and the least bound of a maximisation, each with its proof.

    Attributes
    ----------
    solution : SolutionT or None
        The best solution; None if only its objective is available, or nothing yet.
    objective : float
        Objective of the solution; -inf before the first.
    bound : float
    proof : ProofT or None
        Proof of the bound; None if the bound is not proved here.
    """

    def __init__(self, bound: float = math.inf) -> None:
        self.solution: SolutionT | None = None
        self.objective = -math.inf
        self.bound = bound
        self.proof: ProofT | None = None

    @property
    def gap(self) -> float:
        """Bound less objective, infinite while either is; below 0 by rounding alone."""
        return self.bound - self.objective

    def improve(self, objective: float, solution: SolutionT | None) -> bool:
        """Accept a solution if it is better; return whether it is."""
        better = objective > self.objective
        if better:
            self.objective, self.solution = objective, solution
        return better

    def tighten(self, bound: float, proof: ProofT | None = None) -> bool:
        """Accept a bound if it is less; return whether it is."""
        tighter = bound < self.bound
        if tighter:
            self.bound, self.proof = bound, proof
        return tighter
