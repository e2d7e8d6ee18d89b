"""All vectors that a search has scored, and those that no other one dominates."""

from __future__ import annotations

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.front import ParetoFront
from ...formulations.search.pareto import spread
from ...formulations.search.problem import SearchProblem


class Archive:
    """The scores of vectors, and the front of them, kept up to date.

    It does not depend on the order in which scores arrive: of equal scores the vector of the lowest place is kept.

    Attributes
    ----------
    scores : dict of bytes to ndarray of float, shape (m,)
        Scores by vector, as `key` names it.
    """

    def __init__(self, problem: SearchProblem) -> None:
        self.scores: dict[bytes, Floats] = {}
        self._problem = problem
        self._places = np.empty(0, dtype=np.int64)
        self._vectors = np.empty((0, len(problem.variables)))
        self._points = np.empty((0, len(problem.objectives)))

    def __len__(self) -> int:
        return len(self.scores)

    @staticmethod
    def key(vector: Floats) -> bytes:
        """Return the name of a vector, shape (n,): two are the same exactly if all numbers are."""
        return np.asarray(vector + 0.0, dtype=np.float64).tobytes()  # a sum with 0.0 has no negative zero

    def add(self, place: int, vector: Floats, scores: Floats) -> None:
        """Add the scores of a vector, which is proposed at this place of the search's order."""
        self.scores[self.key(vector)] = scores
        if np.isnan(scores).any():
            return
        no_worse = (self._points <= scores).all(axis=1)
        if no_worse.any():
            same = np.flatnonzero(no_worse)[0]
            if (self._points[same] == scores).all() and place < self._places[same]:
                self._places[same], self._vectors[same] = place, vector
            return
        kept = ~(scores <= self._points).all(axis=1)
        self._places = np.append(self._places[kept], place)
        self._vectors = np.vstack((self._vectors[kept], vector))
        self._points = np.vstack((self._points[kept], scores))

    @property
    def points(self) -> Floats:
        """Scores of the vectors that no other one dominates, shape (P, m)."""
        return self._points

    def front(self, most: int) -> ParetoFront:
        """Return the front, thinned to `most` points that are spread out; there must be a feasible vector."""
        order = np.lexsort(self._points.T[::-1])
        box = self._problem.reference - self._problem.ideal
        kept = order[spread((self._points[order] - self._problem.ideal) / box, most)]
        return self._problem.front(self._vectors[kept], self._points[kept])
