"""The grid: as fine as the evaluations allow, with the corners of the box."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from equipoise.solvers.search.grid import grid_points


@given(variables=st.integers(1, 6), most=st.integers(1, 300))
def test_the_finest_grid_that_fits(variables, most):
    lower, upper = np.arange(variables, dtype=float), np.arange(variables) + 2.0
    points = grid_points(lower, upper, most)
    levels = [len(np.unique(column)) for column in points.T]
    assert len(np.unique(points, axis=0)) == len(points) == np.prod(levels) <= most
    assert max(levels) - min(levels) <= 1
    # One value more of the coarsest variable would be too many.
    assert len(points) // min(levels) * (min(levels) + 1) > most
    for i, count in enumerate(levels):
        expected = {lower[i], upper[i]} if count > 1 else {lower[i] + 1.0}
        assert expected <= set(points[:, i])
