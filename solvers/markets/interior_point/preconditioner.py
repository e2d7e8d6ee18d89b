"""Newton's equations of a large sparse market by conjugate gradients with a spanning forest as preconditioner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....formulations.arrays import Floats
from .pairs import Edges

# Relative residual at which the conjugate gradients stop, and the largest number of them.
PRECISION = 1e-10
MOST_ROUNDS = 400


def forest_factored(edges: Edges, coupling: Floats, large: Floats, small: Floats) -> Callable[[Floats], Floats] | None:
    """Return the inverse of ``diag(small) - V' diag(1/large) V`` as a function; None if it cannot be factored.

    Near the solution the heaviest pairs are a forest: buyers beside the goods they buy. The whole system with all
    other couplings left out factors without fill-in, and is near enough to it for conjugate gradients.

    Parameters
    ----------
    edges : Edges
    coupling : ndarray of float, shape (E,)
        The entries of V.
    large, small : ndarray of float, shapes (max(N, K),) and (min(N, K),)
    """
    from scipy.sparse import csc_array, csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.sparse.linalg import splu

    size = edges.num_large + edges.num_small
    scale = 1.0 / np.sqrt(np.concatenate([large, small]))
    below = edges.num_large + edges.small
    weight = coupling * scale[edges.large] * scale[below]
    if not np.isfinite(weight).all():
        return None
    # A minimum spanning tree ignores entries of 0, so the heaviest pair is 1 and the lightest nearly 2.
    costs = csr_array((2.0 - weight / (weight.max() * (1.0 + 1e-12)), (edges.large, below)), (size, size))
    costs.indices, costs.indptr = costs.indices.astype(np.int32), costs.indptr.astype(np.int32)  # for older scipy
    forest = minimum_spanning_tree(costs).tocoo()
    row, column = forest.row, forest.col
    heavy = csr_array((weight, (edges.large, below)), (size, size))[row, column]
    matrix = csc_array(
        (
            np.concatenate([np.ones(size), -heavy, -heavy]),
            (np.concatenate([np.arange(size), row, column]), np.concatenate([np.arange(size), column, row])),
        ),
        (size, size),
    )
    try:
        factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return None
    table = csr_array((weight, edges.small, edges.starts), (edges.num_large, edges.num_small))
    back, small_scale, zeros = table.T.tocsr(), scale[edges.num_large :], np.zeros(edges.num_large)

    def inverse(right: Floats) -> Floats:
        scaled: Floats = small_scale * right
        found = _conjugate_gradients(
            lambda v: v - back @ (table @ v),
            lambda v: factor.solve(np.concatenate([zeros, v]))[edges.num_large :],
            scaled,
        )
        return np.asarray(small_scale * found)

    return inverse


def _conjugate_gradients(
    times: Callable[[Floats], Floats], nearly: Callable[[Floats], Floats], right: Floats
) -> Floats:
    """Return the approximate solution of a positive definite system, given its product and an approximate inverse."""
    solution, rest = np.zeros_like(right), right.copy()
    step = nearly(rest)
    direction, along = step, float(rest @ step)
    enough = PRECISION * float(np.linalg.norm(right))
    for _ in range(MOST_ROUNDS):
        product = times(direction)
        bend = float(direction @ product)
        if not bend > 0 or float(np.linalg.norm(rest)) <= enough:
            break
        solution += (along / bend) * direction
        rest -= (along / bend) * product
        step = nearly(rest)
        before, along = along, float(rest @ step)
        direction = step + (along / before) * direction
    return solution
