"""The central path of a scaled Leontief market: Mehrotra's predictor and corrector, and the system of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ....formulations.arrays import Floats
from .scaling import PROHIBITIVE, ScaledLeontief

# Share of the way to the boundary that a step goes: larger near the end of the path.
SHORTEST_SHARE, LONGEST_SHARE = 0.95, 1.0 - 1e-6
# Where the predictor goes far beyond the boundary, its products are unreliable: at most this many times a pair's own
# product is corrected. This saves up to a quarter of the steps, and some markets are not solved without it.
MOST_CORRECTION = 4.0
# Factor of the prices at the start over their final sum.
OVERPRICED = 5.0
FactorT = TypeVar("FactorT")
# Shift of the diagonal, in its own unit, where rounding has left the matrix indefinite; then ten thousand times it.
REPAIR, REPAIR_GROWTH, REPAIRS = 1e-15, 1e4, 4


class _Change(NamedTuple):
    """Changes of prices, shape (T, J), and of w, shape (N,); and of slacks, shape (T, J), relative to the slacks."""

    prices: Floats
    marginal: Floats
    slacks: Floats


class LeontiefPath:
    """One point of the path, and the step from it.

    Rates r and slacks s >= 0 with ``sum_i need r + s = 1``; prices p >= 0 and w_i, the marginal utility of money, with
    reduced costs ``z = need'p - yield w >= 0``; and ``U_i w_i = B_i``, ``r z = mu``, ``p s = mu`` as mu goes to 0. All
    but the products are linear, so rates and prices may step by different lengths. The reduced costs are feasible from
    the start; the rates become feasible with the first full step.

    Attributes
    ----------
    rates, reduced : list of ndarray of float, shape (T, n) each
        Rates and reduced costs by block of buyers.
    prices, slacks : ndarray of float, shape (T, J)
    levels, marginal : ndarray of float, shape (N,)
        Utilities U and the marginal w.
    """

    def __init__(self, scaled: ScaledLeontief) -> None:
        self.scaled = scaled
        goods = (scaled.rounds, scaled.resources)
        self.prices = np.full(goods, OVERPRICED / math.prod(goods))
        mu = (OVERPRICED - 1.0) / (scaled.rounds * scaled.count)
        self.slacks = mu / self.prices
        self.rates: list[Floats] = []
        self.reduced: list[Floats] = []
        self.levels, self.marginal = np.empty(scaled.count), np.empty(scaled.count)
        for block in scaled.blocks:
            budgets, served = scaled.budgets[block.buyers], block.yields > 0
            costs = block.costs(self.prices)
            least = np.divide(costs, block.yields, out=np.full_like(costs, np.inf), where=served).min(axis=0)
            marginal = least * (budgets / (budgets + mu))  # exact for a buyer of one round
            reduced = np.where(served, costs - block.yields * marginal, PROHIBITIVE)
            self.marginal[block.buyers] = marginal
            self.reduced.append(reduced)
            self.rates.append(mu / reduced)
        self._set_levels()
        # Workspace, by block: the correction of r dz + z dr to r z, over r z. The other arrays of a step are made block
        # by block.
        self._aims = [np.empty_like(rates) for rates in self.rates]

    def step(self) -> None:
        """Step on; raise `numpy.linalg.LinAlgError` where rounding permits no further step."""
        heights, system = self._system()
        # Predictor: straight for mu = 0.
        own = self.scaled.budgets / self.marginal
        change = self._changed(system, self._pulled(own, heights), own, heights, 0.0)
        target, mean, level_change = self._foreseen(change)
        # Corrector: for the target mu, corrected by the products of the predictor's changes.
        goods_aim = target / (self.prices * self.slacks) - _limited(change.prices / self.prices, change.slacks)
        own = own - _limited(change.marginal / self.marginal, level_change / self.levels) * self.levels
        right = self._corrected(change, own, heights, target) + self.slacks * goods_aim
        change = self._changed(system, right, own, heights, goods_aim)
        self._move(change, min(max(SHORTEST_SHARE, 1.0 - target / mean), LONGEST_SHARE))

    def _system(self) -> tuple[Floats, GoodsSystem]:
        """Return the h_i and the system that all right-hand sides of this step share."""
        heights = self.levels / self.marginal
        for k, block in enumerate(self.scaled.blocks):
            heights[block.buyers] += np.einsum("tn,tn->n", self._weights(k), block.yields)
        curvature = (rates / reduced for rates, reduced in zip(self.rates, self.reduced, strict=True))
        return heights, GoodsSystem(self.scaled, curvature, heights, self.slacks / self.prices)

    def _weights(self, k: int) -> Floats:
        """Return rate over reduced cost times yield, for one block."""
        return np.asarray(self.rates[k] / self.reduced[k] * self.scaled.blocks[k].yields)

    def _fall(self, k: int, change: _Change) -> Floats:
        """Return dz/z of one block; dr/r is its negative less 1, without a correction."""
        block = self.scaled.blocks[k]
        fall = block.costs(change.prices)
        fall -= block.yields * change.marginal[block.buyers]
        fall /= self.reduced[k]
        return fall

    def _pulled(self, own: Floats, heights: Floats) -> Floats:
        """Return the predictor's right-hand side: the rates' part of it has a closed form, the whole capacity."""
        right = np.full_like(self.prices, -1.0)
        for k, block in enumerate(self.scaled.blocks):
            right += block.loads(self._weights(k) * (own / heights)[block.buyers])
        return right

    def _corrected(self, change: _Change, own: Floats, heights: Floats, target: float) -> Floats:
        """Fill `_aims`, subtract their utility to the buyers from `own`, and return the right-hand side."""
        right = np.full_like(self.prices, -1.0)
        for k, block in enumerate(self.scaled.blocks):
            fall, aims, rates = self._fall(k, change), self._aims[k], self.rates[k]
            np.multiply(rates, self.reduced[k], out=aims)
            np.divide(target, aims, out=aims)
            aims += np.minimum(fall * (1.0 + fall), MOST_CORRECTION)
            extra = rates * aims
            own[block.buyers] -= np.einsum("tn,tn->n", block.yields, extra)
            extra += self._weights(k) * (own / heights)[block.buyers]
            right += block.loads(extra)
        return right

    def _changed(
        self, system: GoodsSystem, right: Floats, own: Floats, heights: Floats, goods_aim: Floats | float
    ) -> _Change:
        """Solve for the changes of prices, and derive the other changes."""
        change = system.solve(right)
        moved = np.empty(self.scaled.count)
        for k, block in enumerate(self.scaled.blocks):
            pulled = np.einsum("tn,tn->n", self._weights(k), block.costs(change))
            moved[block.buyers] = (own[block.buyers] + pulled) / heights[block.buyers]
        return _Change(change, moved, goods_aim - 1.0 - change / self.prices)

    def _foreseen(self, change: _Change) -> tuple[float, float, Floats]:
        """Return the target mu, the present mean product, and the changes of levels, by the predictor's change."""
        low, high = math.inf, -math.inf
        total = cross = bend = 0.0  # sums of r z, r dz, dz dr + r dz
        level_change = -self.levels
        for k, block in enumerate(self.scaled.blocks):
            fall = self._fall(k, change)
            low, high = min(low, float(fall.min())), max(high, float(fall.max()))
            product = self.rates[k] * self.reduced[k]
            total += float(product.sum())
            product *= fall
            cross += float(product.sum())
            bend -= float(product.ravel() @ fall.ravel())
            level_change[block.buyers] -= np.einsum("tn,tn,tn->n", block.yields, self.rates[k], fall)
        rises = change.prices / self.prices
        along = _length(1.0 + high, change.slacks)
        down = _length(-low, rises, change.marginal / self.marginal)
        goods = self.prices * self.slacks
        mean = (total + float(goods.sum())) / self.scaled.unknowns
        after = total + down * cross - along * (total + cross) + along * down * (bend - cross)
        after += float((goods * (1.0 + down * rises) * (1.0 + along * change.slacks)).sum())
        left = min(1.0, max(after / self.scaled.unknowns / mean, 0.0))
        return mean * left**3, mean, level_change

    def _move(self, change: _Change, share: float) -> None:
        """Go this share of the way to the boundary, or the whole step."""
        low, lowest = math.inf, math.inf
        for k, aims in enumerate(self._aims):
            fall = self._fall(k, change)
            aims -= 1.0
            aims -= fall  # dr/r
            low, lowest = min(low, float(fall.min())), min(lowest, float(aims.min()))
        rises, own_rises = change.prices / self.prices, change.marginal / self.marginal
        along = min(1.0, share * _length(-lowest, change.slacks, most=math.inf))
        down = min(1.0, share * _length(-low, rises, own_rises, most=math.inf))
        if not (math.isfinite(along) and math.isfinite(down)):
            raise np.linalg.LinAlgError("the step is not finite")
        for k, aims in enumerate(self._aims):
            fall = self._fall(k, change)
            aims *= along
            aims += 1.0
            self.rates[k] *= aims
            fall *= down
            fall += 1.0
            self.reduced[k] *= fall
        self.slacks *= 1.0 + along * change.slacks
        self.prices *= 1.0 + down * rises
        self.marginal *= 1.0 + down * own_rises
        self._set_levels()

    def _set_levels(self) -> None:
        for block, rates in zip(self.scaled.blocks, self.rates, strict=True):
            self.levels[block.buyers] = np.einsum("tn,tn->n", block.yields, rates)


def _limited(first: Floats, second: Floats) -> Floats:
    """Return the product of two relative changes, limited for the correction."""
    return np.clip(first * second, -MOST_CORRECTION, MOST_CORRECTION)


def _length(fastest: float, *relative: Floats, most: float = 1.0) -> float:
    """Return the largest step before a number is 0: `fastest` is the fall of some, the others are changes."""
    fall = max([fastest, *(-float(each.min()) for each in relative)])
    return most if fall <= 0 else min(most, 1.0 / fall)


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
