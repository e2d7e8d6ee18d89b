"""The linear system of one Newton step on a Leontief market, reduced to its goods or to its buyers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ....formulations.arrays import Floats
from .scaling import ScaledLeontief

FactorT = TypeVar("FactorT")
# Shift of the diagonal, in its own unit, where rounding has left the matrix indefinite; then ten thousand times it.
REPAIR, REPAIR_GROWTH, REPAIRS = 1e-15, 1e4, 4


class GoodsSystem:
    """``(K - sum_i v_i v_i' / h_i) dp = rhs``, factored: K has a block for each round, v_i lies over all goods.

    Parameters
    ----------
    curvature : iterable of ndarray, shape (T, n)
        Rate over reduced cost, by block of buyers: ``v_itj = curvature_it yield_it need_itj``.
    levels : ndarray of float, shape (N,)
        The values h_i.
    diagonal : ndarray of float, shape (T, J)
        Slack over price, the diagonal part of K.
    """

    def __init__(self, scaled: ScaledLeontief, curvature: Iterable[Floats], levels: Floats, diagonal: Floats) -> None:
        rounds, resources, count = scaled.rounds, scaled.resources, scaled.count
        goods = rounds * resources
        blocks = np.zeros((rounds, resources, resources))
        self._by_buyers = count < goods
        rows = np.empty((rounds, resources, count) if self._by_buyers else 0)
        matrix = np.zeros((0, 0) if self._by_buyers else (goods, goods))
        for block, curve in zip(scaled.blocks, curvature, strict=True):
            blocks += np.einsum("tjn,tkn->tjk", block.needs * curve[:, None, :], block.needs, optimize=False)
            shares = (curve * block.yields / np.sqrt(levels[block.buyers]))[:, None, :]
            if self._by_buyers:
                np.multiply(block.needs, shares, out=rows[:, :, block.buyers])
            else:
                tall = (block.needs * shares).reshape(goods, -1)
                matrix -= tall @ tall.T
        at = np.arange(resources)
        blocks[:, at, at] += diagonal
        self._shape = (rounds, resources)
        if self._by_buyers:
            # (K - R R')^-1 = K^-1 + K^-1 R (1 - R' K^-1 R)^-1 R' K^-1
            self._roots = _repaired(np.einsum("tjj->tj", blocks), lambda: np.linalg.cholesky(blocks))
            half = self._half = np.linalg.solve(self._roots, rows).reshape(goods, count)
            self._factor = _factored(np.eye(count) - half.T @ half)
        else:
            for t in range(rounds):
                at = np.arange(t * resources, (t + 1) * resources)
                matrix[at[:, None], at] += blocks[t]
            self._factor = _factored(matrix)

    def solve(self, rhs: Floats) -> Floats:
        """Return the change of prices for a right-hand side, both of shape (T, J)."""
        if not self._by_buyers:
            return np.asarray(cho_solve(self._factor, rhs.ravel(), check_finite=False)).reshape(self._shape)
        half = np.linalg.solve(self._roots, rhs[:, :, None])
        inner = cho_solve(self._factor, self._half.T @ half.ravel(), check_finite=False)
        half += (self._half @ inner).reshape(half.shape)
        return np.asarray(np.linalg.solve(self._roots.transpose(0, 2, 1), half)[:, :, 0])


def _factored(matrix: Floats) -> tuple[Floats, bool]:
    def factor() -> tuple[Floats, bool]:
        found: tuple[Floats, bool] = cho_factor(matrix, lower=True, check_finite=False)
        if not np.isfinite(found[0].diagonal()).all():
            raise np.linalg.LinAlgError("not finite")
        return found

    return _repaired(np.einsum("ii->i", matrix), factor)


def _repaired(diagonal: Floats, factor: Callable[[], FactorT]) -> FactorT:
    """Return the factor of a matrix, whose diagonal (a view of it) is shifted a little more after each failure."""
    own, share = diagonal.copy(), 0.0
    for _ in range(REPAIRS):
        try:
            return factor()
        except np.linalg.LinAlgError:
            share = max(REPAIR, share * REPAIR_GROWTH)
            diagonal[...] = own + share * np.abs(own)
    raise np.linalg.LinAlgError("no positive definite system")
