"""The random backend: vectors drawn uniformly within the bounds."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.problem import SearchProblem
from .backend import Batches, SearchBackend
from .settings import POPULATION, SearchSettings


class RandomSearch(SearchBackend):
    """Draws every vector uniformly, whatever the scores: the measure of what another search gains.

    A longer search begins with the vectors of a shorter one.
    """

    name = "random"

    def batches(self, problem: SearchProblem, first: Floats, settings: SearchSettings, seed: int) -> Batches:
        """Yield batches of drawn vectors."""
        rng = np.random.default_rng(seed)
        while True:
            yield rng.uniform(problem.lower, problem.upper, (POPULATION, len(problem.variables)))


BACKEND = RandomSearch()
