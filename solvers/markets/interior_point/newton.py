"""The interior-point method of a linear Fisher market: predictor-corrector steps, and the solution of their systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from .pairs import Edges

# Share of the way to the boundary that a step goes, far from and near the solution.
LEAST_REACH, MOST_REACH = 0.9, 0.9995
# Relative shift of the diagonal where the Cholesky factorisation fails.
REGULARISATIONS = (0.0, 1e-14, 1e-11, 1e-8)
# Rounds of Newton's method for a buyer's rate on the central path at given prices.
RATE_ROUNDS = 8
# Relative residual at which the conjugate gradients stop, and the largest number of them.
PRECISION = 1e-10
MOST_ROUNDS = 400


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The allocation and the bound of an iterate, in the unit of budgets that sum to 1.

    Attributes
    ----------
    shares : ndarray of float, shape (E,)
        The allocation, scaled so that every good is handed out exactly.
    welfare : float
        Its Nash welfare.
    bound : float
        Bound that the prices prove for the market of these pairs alone.
    """

    shares: Floats
    welfare: float
    bound: float

    @property
    def gap(self) -> float:
        """The difference of bound and welfare."""
        return self.bound - self.welfare


class InteriorPoint:
    """An iterate: shares x > 0, rates w > 0 (budget per utility), prices p, and slacks z = p - w u > 0.

    It is at the optimum when ``x z = 0``, ``sum_i x_ik = 1`` and ``w_i U_i = B_i``; see docs/backends/interior_point.
    """

    def __init__(self, edges: Edges, budgets: Floats, shares: Floats, rates: Floats, prices: Floats) -> None:
        self.edges, self.budgets = edges, budgets
        self.shares, self.rates, self.prices = shares, rates, prices
        self.slacks = prices[edges.good] - rates[edges.buyer] * edges.worth
        self._workspace: Floats | None = None  # workspace of a step's system: a new array would be cleared each time

    @classmethod
    def from_nothing(cls, edges: Edges, budgets: Floats) -> InteriorPoint:
        """Start from every good shared equally among the buyers who want it, and prices well above their payments."""
        shares = 1.0 / np.bincount(edges.good, minlength=edges.num_goods)[edges.good]
        rates = budgets / edges.by_buyers(edges.worth * shares)
        prices = np.zeros(edges.num_goods)
        np.maximum.at(prices, edges.good, rates[edges.buyer] * edges.worth)
        return cls(edges, budgets, shares, rates, 1.5 * prices + 0.1 * prices.mean())

    @classmethod
    def from_prices(cls, edges: Edges, budgets: Floats, prices: Floats, gap: float) -> InteriorPoint:
        """Start at the point of the central path of this gap that belongs to these prices.

        There ``x z = m``, so a buyer's rate solves ``sum_k r_k/(1 - r_k) = B_i/m`` for ``r_k = w_i u_ik/p_k``.
        """
        ratios = edges.worth / prices[edges.good]
        best = edges.most(ratios)
        ratios /= best[edges.buyer]
        product = gap / len(edges)
        target = budgets / product
        rates = target / (1.0 + target)
        for _ in range(RATE_ROUNDS):
            reached = ratios * rates[edges.buyer]
            inverse = 1.0 / (1.0 - reached)
            excess = edges.by_buyers(reached * inverse) - target
            rates -= np.clip(excess / edges.by_buyers(ratios * inverse * inverse), 0.0, 0.9 * rates)
        shares = product / (prices[edges.good] * (1.0 - ratios * rates[edges.buyer]))
        shares /= edges.by_goods(shares)[edges.good]
        return cls(edges, budgets, shares, rates / best, prices)

    def measure(self) -> Measure:
        """Return the allocation and the bound of the iterate."""
        edges = self.edges
        shares = self.shares / edges.by_goods(self.shares)[edges.good]
        utilities = edges.by_buyers(edges.worth * shares)
        best = edges.most(edges.worth / self.prices[edges.good])
        welfare = float(self.budgets @ np.log(utilities))
        bound = float(self.budgets @ np.log(self.budgets * best)) + float(np.log(self.prices.sum()))
        return Measure(shares=shares, welfare=welfare, bound=bound)

    def step(self) -> bool:
        """Take a step of Mehrotra's predictor-corrector method; return False, without a step, if none is possible."""
        edges = self.edges
        x, w, z = self.shares, self.rates, self.slacks
        utilities = edges.by_buyers(edges.worth * x)
        product = x * z
        money = self.budgets - utilities * w
        solve = self._newton(utilities / w)
        if solve is None:
            return False
        d_x, d_w, d_p, d_z = solve(-product, money)
        along = min(1.0, _reach(x, d_x)), min(1.0, _reach(z, d_z), _reach(w, d_w))
        mean = float(product.mean())
        ahead = float((x + along[0] * d_x) @ (z + along[1] * d_z)) / len(x)
        target = mean * min(1.0, (ahead / mean) ** 3)
        d_x, d_w, d_p, d_z = solve(target - product - d_x * d_z, money - edges.by_buyers(edges.worth * d_x) * d_w)
        if not (np.isfinite(d_x).all() and np.isfinite(d_z).all() and np.isfinite(d_w).all()):
            return False
        near = min(MOST_REACH, max(LEAST_REACH, 1.0 - mean * len(x)))
        primal = min(1.0, near * _reach(x, d_x))
        dual = min(1.0, near * min(_reach(z, d_z), _reach(w, d_w)))
        self.shares = x + primal * d_x
        self.rates, self.prices, self.slacks = w + dual * d_w, self.prices + dual * d_p, z + dual * d_z
        return True

    def _newton(self, curvature: Floats) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats, Floats]] | None:
        """Factor the Schur complement; return the solution of Newton's equations for given residuals."""
        edges = self.edges
        w, z = self.rates, self.slacks
        ratio = self.shares / z
        coupling = ratio * edges.worth
        squares = coupling * edges.worth
        of_buyer = curvature + edges.by_buyers(squares)
        of_good = edges.by_goods(ratio)
        if self._workspace is None:
            self._workspace = np.empty((0 if edges.is_sparse else edges.num_small,) * 2)
        if edges.by_buyer:
            diagonal = edges.by_goods(ratio * edges.apart(squares, of_buyer, curvature))
            back = _factored(edges, coupling, of_buyer, of_good, diagonal, self._workspace)
        else:
            diagonal = curvature + edges.by_buyers(squares * edges.apart(ratio, of_good, np.zeros(edges.num_goods)))
            back = _factored(edges, coupling, of_good, of_buyer, diagonal, self._workspace)
        if back is None:
            return None
        unsold = 1.0 - edges.by_goods(self.shares)

        def solve(product: Floats, money: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            """Return steps in x, w, p and z that change x z by `product` and w U by `money`, and sell all goods."""
            given = product / z
            right_buyer = money / w - edges.by_buyers(edges.worth * given)
            right_good = edges.by_goods(given) - unsold
            if edges.by_buyer:
                d_p = back(right_good + edges.by_goods(coupling * (right_buyer / of_buyer)[edges.buyer]))
                d_w = (right_buyer + edges.by_buyers(coupling * d_p[edges.good])) / of_buyer
            else:
                d_w = back(right_buyer + edges.by_buyers(coupling * (right_good / of_good)[edges.good]))
                d_p = (right_good + edges.by_goods(coupling * d_w[edges.buyer])) / of_good
            d_z = d_p[edges.good] - edges.worth * d_w[edges.buyer]
            return given - ratio * d_z, d_w, d_p, d_z

        return solve


def _reach(values: Floats, change: Floats) -> float:
    """Return how far along the change all values stay above 0."""
    fastest = float(-(change / values).min())
    return 1.0 / fastest if fastest > 0 else np.inf


def _factored(
    edges: Edges, coupling: Floats, large: Floats, small: Floats, diagonal: Floats, workspace: Floats
) -> Callable[[Floats], Floats] | None:
    """Return the inverse of ``diag(small) - V' diag(1/large) V`` as a function, given its diagonal.

    None if it cannot be factored.
    """
    if not (np.isfinite(diagonal).all() and np.isfinite(large).all()):
        return None
    if edges.is_sparse:
        return forest_factored(edges, coupling, large, small)
    from scipy.linalg.lapack import dpotrf, dpotrs

    # Scale rows to unit diagonal: goods have prices of very different sizes.
    scale = 1.0 / np.sqrt(small)
    scaled = coupling * scale[edges.small]
    for extra in REGULARISATIONS:
        system = edges.gram(scaled, large, workspace)
        np.negative(system, out=system)
        np.fill_diagonal(system, diagonal / small + extra)
        # In LAPACK's order of storage the upper triangle is the lower one of the transpose, which costs no copy.
        factor, failed = dpotrf(system.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda right: np.asarray(dpotrs(factor, scale * right, lower=1)[0] * scale)
    return None


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
    own, values = np.arange(size), np.concatenate([np.ones(size), -heavy, -heavy])
    place = np.concatenate([own, row, column]), np.concatenate([own, column, row])
    matrix = csc_array((values, place), (size, size))
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
