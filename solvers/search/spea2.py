"""The spea2 backend: the strength Pareto evolutionary algorithm 2, with which PCS searches."""

from __future__ import annotations

from typing import Any

from .evolution import EvolutionarySearch, genetic_operators
from .settings import LIMITS, SearchSettings


class Spea2(EvolutionarySearch):
    """SPEA2 (Zitzler, Laumanns and Thiele 2001): survival by strength, then by distance to the nearest neighbours.

    Distances are between scores in units of the front's extent; with ``distances="raw"`` they are between scores in
    their own units, as in PCS's released code.
    """

    name = "spea2"
    known_options = LIMITS | {"population", "distances"}

    def identity(self, settings: SearchSettings) -> dict[str, Any]:
        """Return the size of the population and the units of distances."""
        return {**super().identity(settings), "distances": settings.distances}

    def algorithm(self, settings: SearchSettings, variables: int, **common: Any) -> Any:
        """Return pymoo's algorithm."""
        from pymoo.algorithms.moo.spea2 import SPEA2, SPEA2Survival

        survival = SPEA2Survival(normalize=settings.distances == "normalised")
        return SPEA2(survival=survival, **genetic_operators(variables), **common)


BACKEND = Spea2()
