"""The nsga2 backend: the non-dominated sorting genetic algorithm II."""

from __future__ import annotations

from typing import Any

from .evolution import EvolutionarySearch, genetic_operators
from .settings import SearchSettings


class Nsga2(EvolutionarySearch):
    """NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002): survival by rank of dominance, then by crowding distance."""

    name = "nsga2"

    def algorithm(self, settings: SearchSettings, variables: int, **common: Any) -> Any:
        """Return pymoo's algorithm."""
        from pymoo.algorithms.moo.nsga2 import NSGA2

        return NSGA2(**genetic_operators(variables), **common)


BACKEND = Nsga2()
