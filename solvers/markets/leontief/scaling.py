"""A Leontief market in units near 1, in blocks of buyers that fit a cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.markets.volatile import VolatileFisherMarket

# Cost of a round that serves a buyer nothing: its variable stays, at a cost that keeps it near 0, so that no step masks
# it.
PROHIBITIVE = 1e30
# Entries in one (round, buyer) array of a block.
BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class ScaledBlock:
    """Some buyers of the market, in units of their scarcest good and of their best round's utility.

    Attributes
    ----------
    needs : ndarray of float, shape (T, J, n)
        Share of each good that one unit of rate takes; the largest of a served round is 1.
    yields : ndarray of float, shape (T, n)
        Utility per unit of rate; the largest of a buyer is 1, and 0 where the round does not serve it.
    """

    buyers: slice
    needs: Floats
    yields: Floats

    def costs(self, prices: Floats) -> Floats:
        """Return the cost of a unit of rate at prices of shape (T, J), shape (T, n)."""
        return np.asarray(np.matmul(prices[:, None, :], self.needs)[:, 0, :])

    def loads(self, rates: Floats) -> Floats:
        """Return the share of every good that rates of shape (T, n) use, shape (T, J)."""
        return np.asarray(np.matmul(self.needs, rates[:, :, None])[:, :, 0])


class ScaledLeontief:
    """The market with capacities of 1, budgets that sum to 1, and the units of `ScaledBlock`.

    Attributes
    ----------
    budgets : ndarray of float, shape (N,)
    offset : float
        Difference of Nash welfare between the market and the scaled one, over the sum of the budgets.
    representable : bool
        Whether all scaled numbers are finite and none vanishes.
    """

    def __init__(self, market: VolatileFisherMarket) -> None:
        self.market = market
        count, resources, rounds = market.shape
        self.count, self.resources, self.rounds = count, resources, rounds
        self.unknowns = rounds * (count + resources)  # complementary pairs: rates and prices
        self._total = market.total_budget
        self.budgets = market.budgets / self._total
        self.blocks: list[ScaledBlock] = []
        self.representable = True
        logs = np.empty(count)
        size = max(1, min(count, BLOCK // rounds))
        for first in range(0, count, size):
            buyers = slice(first, min(first + size, count))
            needs, units = self._needs(buyers)
            served = units > 0
            self.representable &= bool(np.isfinite(units).all() and (served == market.active[buyers].T).all())
            least = np.where(served, units, np.inf).min(axis=0)
            yields = np.divide(least, units, out=np.zeros_like(units), where=served)
            logs[buyers] = -np.log(least)
            self.blocks.append(ScaledBlock(buyers, needs, yields))
        self.offset = float(self.budgets @ logs)

    def rates_of(self, scaled: list[Floats]) -> Floats:
        """Return rates of the market, shape (N, T), for scaled ones by block."""
        rates = np.empty((self.count, self.rounds))
        for block, values in zip(self.blocks, scaled, strict=True):
            _, units = self._needs(block.buyers)
            served = units > 0
            rates[block.buyers] = np.divide(values, units, out=np.zeros_like(units), where=served).T
        return rates

    def prices_of(self, scaled: Floats) -> Floats:
        """Return prices of the market, shape (J, T), for scaled ones of shape (T, J)."""
        return scaled.T * (self._total / self.market.capacities)

    def _needs(self, buyers: slice) -> tuple[Floats, Floats]:
        """Return needs, shape (T, J, n), and the shares of the scarcest good that divide them, shape (T, n)."""
        shares = self.market.requirements[buyers] / self.market.capacities
        needs = np.ascontiguousarray(shares.transpose(2, 1, 0))
        units = needs.max(axis=1)
        needs /= np.where(units > 0, units, 1.0)[:, None, :]
        return needs, units
