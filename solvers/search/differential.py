"""The differential_evolution backend: a search for the least of one objective."""

from __future__ import annotations

from typing import Any

from .evolution import EvolutionarySearch
from .settings import SearchSettings

# Scale of differences, and the share of variables that a trial vector takes from the mutant.
SCALE, CROSSOVER = 0.5, 0.5


class DifferentialEvolution(EvolutionarySearch):
    """Differential evolution (Storn and Price 1997), variant best/1/bin, for one objective.

    To the best vector half the difference of two others is added; a trial vector takes each variable from this mutant
    with probability 1/2, and replaces its parent if it is no worse.
    """

    name = "differential_evolution"
    most_objectives = 1
    population = 20

    def algorithm(self, settings: SearchSettings, variables: int, **common: Any) -> Any:
        """Return pymoo's algorithm."""
        from pymoo.algorithms.soo.nonconvex.de import DE

        return DE(variant="DE/best/1/bin", F=SCALE, CR=CROSSOVER, **common)


BACKEND = DifferentialEvolution()
