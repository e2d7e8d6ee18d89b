"""The grid backend: all combinations of a few values of each variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.problem import SearchProblem
from .backend import Batches, SearchBackend
from .settings import DEFAULT_EVALUATIONS, POPULATION, SearchSettings


class GridSearch(SearchBackend):
    """Scores the finest full grid that fits the number of evaluations, 1,330 where none is given.

    The variables have equally many values, or one more, between their bounds; a variable with one value has the middle.
    The order is drawn, so that a search that is ended early has covered the whole box coarsely.
    """

    name = "grid"

    def identity(self, settings: SearchSettings) -> dict[str, Any]:
        """Return the number of evaluations, from which the grid follows."""
        return {"evaluations": settings.evaluations or DEFAULT_EVALUATIONS}

    def batches(self, problem: SearchProblem, first: Floats, settings: SearchSettings, seed: int) -> Batches:
        """Yield the grid in a drawn order."""
        count = (settings.evaluations or DEFAULT_EVALUATIONS) - len(np.unique(first, axis=0))
        points = grid_points(problem.lower, problem.upper, max(count, 1))
        order = np.random.default_rng(seed).permutation(len(points))
        for start in range(0, len(points), POPULATION):
            yield points[order[start : start + POPULATION]]


def grid_points(lower: Floats, upper: Floats, most: int) -> Floats:
    """Return the points of the finest full grid of at most `most` points, shape (G, n)."""
    levels = np.ones(len(lower), dtype=np.int64)
    while True:
        grown = levels.copy()
        grown[levels.argmin()] += 1
        if grown.astype(np.float64).prod() > most:
            break
        levels = grown
    axes = [
        np.linspace(low, high, count) if count > 1 else np.array([(low + high) / 2])
        for low, high, count in zip(lower, upper, levels.tolist(), strict=True)
    ]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


BACKEND = GridSearch()
