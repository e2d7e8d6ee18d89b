"""Passes over all utilities of a linear market: the bound of prices, and the pairs of buyer and good that may trade."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.markets.fisher import BLOCK_ENTRIES, FisherMarket
from .pairs import Edges

# Entries of the sample that sets the width of a selection.
WIDTH_ENTRIES = 40_000


@dataclass(frozen=True)
class Prices:
    """Prices of the wanted goods with the bound that they prove; budgets and prices sum to 1.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
        Price of the whole capacity of each good, lowered to the highest payment of any buyer.
    rates : ndarray of float, shape (N,)
        Least cost of one unit of utility, ``min_k p_k/u_ik``.
    bound : float
        Bound on Nash welfare.
    """

    prices: Floats
    rates: Floats
    bound: float


class NormalizedMarket:
    """A linear market in units in which every capacity is 1, budgets sum to 1, and a buyer's best good has utility 1.

    Goods without a buyer are omitted: K counts the others.
    """

    def __init__(self, market: FisherMarket) -> None:
        self.market = market
        self.goods = np.flatnonzero(market.in_demand)
        self.num_buyers, self.num_goods = market.num_buyers, len(self.goods)
        self.budgets = market.budgets / market.total_budget
        table: Any = market.utilities
        self.table = table
        self._place = np.zeros(market.num_goods, dtype=np.int64)
        self._place[self.goods] = np.arange(self.num_goods)
        if market.is_sparse:
            self._buyer = np.repeat(np.arange(self.num_buyers), np.diff(table.indptr))
            self._good = table.indices.astype(np.int64)

    @property
    def num_pairs(self) -> int:
        """The largest possible number of pairs of buyer and good."""
        return int(self.table.nnz) if self.market.is_sparse else self.num_buyers * self.num_goods

    def edges(self, buyer: Indices, good: Indices) -> Edges:
        """Return pairs of buyer and good with their utilities."""
        values = np.asarray(self.table[buyer, good]).ravel()
        worth = values * self.market.capacities[good] / self.market.largest[buyer]
        return Edges(buyer, self._place[good], worth, self.num_buyers, self.num_goods)

    def everything(self) -> tuple[Indices, Indices]:
        """Return buyer and good of all pairs in which the buyer wants the good."""
        if self.market.is_sparse:
            return self._buyer, self._good
        buyer, good = np.nonzero(self.table)
        return buyer, good

    def priced(self, prices: Floats) -> Prices:
        """Lower prices to the highest payment of any buyer; return them with the bound that they prove."""
        factors = self.factors(prices)
        lowered = np.zeros(self.market.num_goods)
        if self.market.is_sparse:
            best = self.market.best(factors)
            np.maximum.at(lowered, self._good, self.table.data / best[self._buyer])
        else:
            best, workspace = np.empty(self.num_buyers), self.workspace()
            for rows in self.market.row_blocks():
                block = self.table[rows]
                own = workspace[: len(block)]
                best[rows] = np.multiply(block, factors, out=own).max(axis=1)
                np.maximum(lowered, np.multiply(block, 1.0 / best[rows, None], out=own).max(axis=0), out=lowered)
        worth = (lowered * self.market.capacities)[self.goods]
        total = worth.sum()
        rates = self.market.largest / best / total
        return Prices(worth / total, rates, float(self.budgets @ np.log(self.budgets / rates)))

    def select(self, priced: Prices, width: float) -> tuple[Indices, Indices]:
        """Return the pairs within 1 - width of the buyer's best utility per money: at least one per buyer and good."""
        if width >= 1.0:
            return self.everything()
        factors, least = self.factors(priced.prices), self._best(priced) * (1.0 - width)
        if self.market.is_sparse:
            near = np.flatnonzero(self.table.data * factors[self._good] >= least[self._buyer])
            return self._buyer[near], self._good[near]
        buyers, goods = [], []
        for rows in self.market.row_blocks():
            near = np.flatnonzero(self.table[rows] * factors >= least[rows, None])
            buyer, good = np.divmod(near, self.market.num_goods)
            buyers.append(buyer + rows.start)
            goods.append(good)
        return np.concatenate(buyers), np.concatenate(goods)

    def widths_of(self, priced: Prices, counts: Sequence[int]) -> Floats:
        """Return the widths at which about these numbers of pairs are selected, estimated on a sample."""
        factors, best = self.factors(priced.prices), self._best(priced)
        if self.market.is_sparse:
            sample = slice(None, None, max(1, self.num_pairs // WIDTH_ENTRIES))
            ratios = self.table.data[sample] * factors[self._good[sample]] / best[self._buyer[sample]]
        else:
            buyers = self.sample(max(1, WIDTH_ENTRIES // self.num_goods))
            ratios = (self.table[buyers] * factors / best[buyers, None])[:, self.goods].ravel()
        ranks = np.maximum(0, len(ratios) - 1 - (np.asarray(counts) / self.num_pairs * len(ratios)).astype(np.int64))
        widths = 1.0 - np.partition(ratios, ranks)[ranks]
        return np.asarray(np.where(np.asarray(counts) < self.num_pairs, widths, 1.0))

    def first_prices(self) -> Floats:
        """Return the prices if every buyer divides the budget by utilities: above 0 for every wanted good."""
        capacities = self.market.capacities
        rates = self.budgets / (self.table @ capacities)
        return np.asarray((self.table.T @ rates) * capacities)[self.goods]

    def factors(self, prices: Floats) -> Floats:
        """Return the factors of utilities that give utility per money by good; 0 for goods without a buyer."""
        factors = np.zeros(self.market.num_goods)
        factors[self.goods] = self.market.capacities[self.goods] / prices
        return factors

    def _best(self, priced: Prices) -> Floats:
        """Return each buyer's highest utility per money, in the market's own unit of utility."""
        return np.asarray(self.market.largest / priced.rates)

    def sample(self, count: int) -> Indices:
        """Return this number of buyers, evenly spread."""
        return np.linspace(0, self.num_buyers - 1, min(count, self.num_buyers)).astype(np.int64)

    def workspace(self) -> Floats:
        """Return workspace for one block of rows, allocated once for a pass: new arrays would be cleared each time."""
        return np.empty((max(1, BLOCK_ENTRIES // self.market.num_goods), self.market.num_goods))

    def blocks(self, buyers: Indices) -> Iterator[Indices]:
        """Yield the buyers in blocks that fit the workspace."""
        step = max(1, BLOCK_ENTRIES // self.market.num_goods)
        for start in range(0, len(buyers), step):
            yield buyers[start : start + step]
