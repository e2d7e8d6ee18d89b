"""Newton's equations of a large sparse market by conjugate gradients with a spanning forest as preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    coupling : ndarray of float, shape (E,)
        The entries of V.
    large, small : ndarray of float, shapes (max(N, K),) and (min(N, K),)
    """
    from scipy.sparse import csc_array, csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree
    from scipy.sparse.linalg import LinearOperator, cg, splu

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
    shape: Any = (edges.num_small, edges.num_small)
    system = LinearOperator(shape, matvec=lambda v: v - back @ (table @ v), dtype=np.float64)
    nearly = LinearOperator(
        shape, matvec=lambda v: factor.solve(np.concatenate([zeros, v]))[edges.num_large :], dtype=np.float64
    )
    return lambda right: np.asarray(
        small_scale * cg(system, small_scale * right, rtol=PRECISION, maxiter=MOST_ROUNDS, M=nearly)[0]
    )
