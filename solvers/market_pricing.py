"""Passes over all utilities of a linear market: what prices prove, and which pairs of buyer and good may trade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formulations.fisher_market import BLOCK_ENTRIES, FisherMarket
from ..formulations.program import Floats, Indices
from .market_edges import Edges

# Entries of the sample of buyers that rough prices are made from, and the least buyers per good in it.
SAMPLE_ENTRIES = 1_000_000
SAMPLE_BUYERS = 4
# Exponents of the buyers' soft choices, as powers of 2, from vague to sharp.
SHARPNESS = (1, 2, 3, 4, 5, 6, 6, 7, 7, 8)
# The power that is sharp enough, times the width of the selection it is for, and the most, as a power of 2.
SHARP_ENOUGH = 2.0
MOST_SHARP = 12
SHARP_ROUNDS = 2
# The least demand for a good, as a share of all budgets: its price does not fall to 0.
LEAST_DEMAND = 1e-9
# Entries of the sample that the width of a selection is judged by.
WIDTH_ENTRIES = 100_000


@dataclass(frozen=True)
class Prices:
    """Prices of the wanted goods with what they prove; budgets and prices sum to 1.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
        Of the whole capacity of each good, lowered to what somebody would pay.
    rates : ndarray of float, shape (N,)
        Budget that one unit of utility takes at least, ``min_k p_k/u_ik``.
    bound : float
        On Nash welfare.
    """

    prices: Floats
    rates: Floats
    bound: float


class Wants:
    """All that a market wants, in units in which every capacity is 1, budgets sum to 1, and a buyer's best good is 1.

    Goods that nobody wants are left out: K counts the others.
    """

    def __init__(self, market: FisherMarket) -> None:
        self.market = market
        self.goods = np.flatnonzero(market.wanted)
        self.num_buyers, self.num_goods = market.num_buyers, len(self.goods)
        self.budgets = market.budgets / market.total_budget
        table: Any = market.utilities
        self._table = table
        self._place = np.zeros(market.num_goods, dtype=np.int64)
        self._place[self.goods] = np.arange(self.num_goods)
        if market.is_sparse:
            self._buyer = np.repeat(np.arange(self.num_buyers), np.diff(table.indptr))
            self._good = table.indices.astype(np.int64)

    @property
    def num_pairs(self) -> int:
        """How many pairs of buyer and good there are at most."""
        return int(self._table.nnz) if self.market.is_sparse else self.num_buyers * self.num_goods

    def edges(self, buyer: Indices, good: Indices) -> Edges:
        """Return pairs of buyer and good with their worth."""
        values = np.asarray(self._table[buyer, good]).ravel()
        worth = values * self.market.capacities[good] / self.market.largest[buyer]
        return Edges(buyer, self._place[good], worth, self.num_buyers, self.num_goods)

    def everything(self) -> tuple[Indices, Indices]:
        """Return buyer and good of all pairs in which the buyer wants the good."""
        if self.market.is_sparse:
            return self._buyer, self._good
        buyer, good = np.nonzero(self._table)
        return buyer, good

    def priced(self, prices: Floats) -> Prices:
        """Lower prices to the most that any buyer would pay; return them with what they prove."""
        factors = self._factors(prices)
        lowered = np.zeros(self.market.num_goods)
        if self.market.is_sparse:
            best = self.market.best(factors)
            np.maximum.at(lowered, self._good, self._table.data / best[self._buyer])
        else:
            best, room = np.empty(self.num_buyers), self._room()
            for rows in self.market.row_blocks():
                block = self._table[rows]
                own = room[: len(block)]
                best[rows] = np.multiply(block, factors, out=own).max(axis=1)
                np.maximum(lowered, np.multiply(block, 1.0 / best[rows, None], out=own).max(axis=0), out=lowered)
        worth = (lowered * self.market.capacities)[self.goods]
        total = worth.sum()
        rates = self.market.largest / best / total
        return Prices(worth / total, rates, float(self.budgets @ np.log(self.budgets / rates)))

    def select(self, priced: Prices, width: float) -> tuple[Indices, Indices]:
        """Return the pairs whose worth per money is at least 1 - width of the buyer's best: one per buyer and good."""
        if width >= 1.0:
            return self.everything()
        factors, least = self._factors(priced.prices), self._best(priced) * (1.0 - width)
        if self.market.is_sparse:
            near = np.flatnonzero(self._table.data * factors[self._good] >= least[self._buyer])
            return self._buyer[near], self._good[near]
        buyers, goods = [], []
        for rows in self.market.row_blocks():
            near = np.flatnonzero(self._table[rows] * factors >= least[rows, None])
            buyer, good = np.divmod(near, self.market.num_goods)
            buyers.append(buyer + rows.start)
            goods.append(good)
        return np.concatenate(buyers), np.concatenate(goods)

    def width_of(self, priced: Prices, count: int) -> float:
        """Return the width at which about so many pairs are selected, judged by a sample."""
        if count >= self.num_pairs:
            return 1.0
        factors, best = self._factors(priced.prices), self._best(priced)
        if self.market.is_sparse:
            sample = slice(None, None, max(1, self.num_pairs // WIDTH_ENTRIES))
            ratios = self._table.data[sample] * factors[self._good[sample]] / best[self._buyer[sample]]
        else:
            buyers = self._sample(max(1, WIDTH_ENTRIES // self.num_goods))
            ratios = (self._table[buyers] * factors / best[buyers, None])[:, self.goods].ravel()
        rank = max(0, len(ratios) - 1 - int(count / self.num_pairs * len(ratios)))
        return float(1.0 - np.partition(ratios, rank)[rank])

    def rough_prices(self, count: int) -> Floats:
        """Return prices at which soft demand is near supply: every buyer spends by a power of worth per money.

        The power rises from 2 until it tells the best so many pairs from the others; where there are many buyers, an
        even sample of them is asked.
        """
        buyers = self._sample(max(SAMPLE_ENTRIES // self.num_goods, SAMPLE_BUYERS * self.num_goods))
        prices = self._first_prices()
        for power in SHARPNESS:
            prices = self._nearer(prices, buyers, power)
        sharp = SHARP_ENOUGH / max(self.width_of(self.priced(prices), count), 2.0**-MOST_SHARP)
        while 2**power < sharp and power < MOST_SHARP:
            power += 1
            for _ in range(SHARP_ROUNDS):
                prices = self._nearer(prices, buyers, power)
        return prices

    def _nearer(self, prices: Floats, buyers: Indices, power: int) -> Floats:
        """Return prices at which soft demand of this power is nearer to supply."""
        demand = np.maximum(self._soft_demand(prices, buyers, power), LEAST_DEMAND)
        # Soft demand falls about as the price to the power of -2**power.
        nearer = prices * (demand / prices) ** (1.0 / (1 + 2**power))
        return np.asarray(nearer / nearer.sum())

    def _soft_demand(self, prices: Floats, buyers: Indices, power: int) -> Floats:
        """Return what the buyers spend on each good if they spend by worth per money to the power of 2**power."""
        factors = self._factors(prices)
        demand = np.zeros(self.market.num_goods)
        if self.market.is_sparse:
            ratios = self._table.data * factors[self._good]
            ratios /= self.market.best(factors)[self._buyer]
            for _ in range(power):
                ratios *= ratios
            rates = self.budgets / np.bincount(self._buyer, weights=ratios, minlength=self.num_buyers)
            spent = np.bincount(self._good, weights=ratios * rates[self._buyer], minlength=len(demand))
            return np.asarray(spent[self.goods])
        room = self._room()
        for some in self._blocks(buyers):
            ratios = np.take(self._table, some, axis=0, out=room[: len(some)], mode="clip")
            ratios *= factors
            ratios /= ratios.max(axis=1)[:, None]
            for _ in range(power):
                ratios *= ratios
            demand += (self.budgets[some] / ratios.sum(axis=1)) @ ratios
        return np.asarray(demand[self.goods] / self.budgets[buyers].sum())

    def _first_prices(self) -> Floats:
        """Return prices if every buyer spent on each good by its worth: above 0 for every wanted good."""
        capacities = self.market.capacities
        rates = self.budgets / (self._table @ capacities)
        return np.asarray((self._table.T @ rates) * capacities)[self.goods]

    def _factors(self, prices: Floats) -> Floats:
        """Return what utilities are multiplied by to compare goods by worth per money; 0 for those nobody wants."""
        factors = np.zeros(self.market.num_goods)
        factors[self.goods] = self.market.capacities[self.goods] / prices
        return factors

    def _best(self, priced: Prices) -> Floats:
        """Return each buyer's most utility per money, in the market's own unit of utility."""
        return np.asarray(self.market.largest / priced.rates)

    def _sample(self, count: int) -> Indices:
        """Return so many buyers, evenly spread."""
        return np.linspace(0, self.num_buyers - 1, min(count, self.num_buyers)).astype(np.int64)

    def _room(self) -> Floats:
        """Return room for one block of rows, made once for a pass: what is made anew, the system clears anew."""
        return np.empty((max(1, BLOCK_ENTRIES // self.market.num_goods), self.market.num_goods))

    def _blocks(self, buyers: Indices) -> Iterator[Indices]:
        step = max(1, BLOCK_ENTRIES // self.market.num_goods)
        for start in range(0, len(buyers), step):
            yield buyers[start : start + step]
