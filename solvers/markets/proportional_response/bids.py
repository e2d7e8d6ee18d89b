"""The goods that buyers bid on in proportional response: all goods, as a table, or the relevant ones, as lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats
from ....formulations.markets.fisher import FisherMarket
from . import kernels

# Lists omit bids below exp(-DEPTH) of both the buyer's largest and the good's price: 2e-5.
DEPTH = 11.0
# Least price, as a share of all budgets, while bids on a good are too small to count.
LEAST_SHARE = 1e-30


@dataclass(frozen=True, eq=False)
class State:
    """The state that determines all bids: the sharpness of demand, and the summed logarithms of prices.

    Attributes
    ----------
    weights : ndarray of float, shape (K,)
    """

    theta: float
    weights: Floats

    def moved(self, other: State, step: float) -> State:
        """Return this state moved by `step` times the difference to the other one."""
        return State(
            self.theta + step * (self.theta - other.theta), self.weights + step * (self.weights - other.weights)
        )


class Entries(Protocol):
    """The operations of both a table and lists."""

    def respond(self, state: State) -> tuple[Floats, float]:
        """Let every buyer bid; return the prices, shape (K,), and ``sum b log u``."""

    def bound_and_welfare(self, state: State, log_prices: Floats) -> tuple[float, float]:
        """Return (bound, welfare) of the state's bids at the prices that they make, short of ``sum B log B``."""

    def bound(self, log_prices: Floats) -> float:
        """Return the bound that prices prove, short of ``sum B log B``."""

    def narrowed(self, state: State, log_prices: Floats, most: float) -> Lists | None:
        """Return the relevant bids as lists; None if they are more than this share of all."""

    def shares(self, state: State, prices: Floats) -> Any:
        """Return every buyer's share of each good: an array, or (values, goods, starts)."""


class Table:
    """All goods of a dense market."""

    def __init__(self, market: FisherMarket) -> None:
        utilities: Any = market.utilities
        worth: Floats = utilities * market.capacities
        with np.errstate(divide="ignore"):
            worth /= market.largest[:, None]
            np.log(worth, out=worth)
        np.maximum(worth, kernels.LOG_OF_ZERO, out=worth)
        self.worth = worth
        self.budgets = market.budgets / market.total_budget
        goods = worth.shape[1]
        self._bids, self._gains = np.empty(goods), np.empty(goods)

    def respond(self, state: State) -> tuple[Floats, float]:
        """Let every buyer bid on every good."""
        prices = np.empty(self.worth.shape[1])
        linear = kernels.respond_table(self.worth, state.theta, state.weights, self.budgets, self._bids, prices)
        return prices, linear

    def bound_and_welfare(self, state: State, log_prices: Floats) -> tuple[float, float]:
        """Return (bound, welfare)."""
        bound, welfare = kernels.table_bound_and_welfare(
            self.worth, state.theta, state.weights, self.budgets, log_prices, self._bids, self._gains
        )
        return bound, welfare

    def bound(self, log_prices: Floats) -> float:
        """Return the bound that prices prove."""
        return float(kernels.best_table(self.worth, log_prices, self.budgets))

    def narrowed(self, state: State, log_prices: Floats, most: float) -> Lists | None:
        """Return the relevant bids as lists; None if they are more than this share of all."""
        counts = np.empty(len(self.worth), dtype=np.int64)
        floors = np.empty((2, len(self.worth)))
        theta, weights = state.theta, state.weights
        kernels.count_near(self.worth, theta, weights, self.budgets, log_prices, DEPTH, self._bids, floors, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        if starts[-1] > most * self.worth.size:
            return None
        kept, good = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int32)
        kernels.list_near(self.worth, theta, weights, log_prices, floors, starts, kept, good)
        return Lists(kept, good, starts, self.budgets)

    def shares(self, state: State, prices: Floats) -> Floats:
        """Return an array, shape (N, K)."""
        shares = state.theta * self.worth
        shares -= state.weights
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares *= (self.budgets / shares.sum(axis=1))[:, None]
        shares /= prices
        return np.asarray(shares)


@dataclass(frozen=True, eq=False)
class Lists:
    """Some goods of every buyer, as the arrays of a CSR matrix.

    Attributes
    ----------
    worth : ndarray of float, shape (L,)
        Logarithms of utilities over each buyer's best.
    good : ndarray of int32, shape (L,)
    starts : ndarray of int64, shape (N + 1,)
    budgets : ndarray of float, shape (N,)
        Budgets, with sum 1.
    """

    worth: Floats
    good: NDArray[np.int32]
    starts: NDArray[np.int64]
    budgets: Floats
    bids: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bids", np.empty(len(self.worth)))

    @classmethod
    def of(cls, market: FisherMarket) -> Lists:
        """Return all wanted goods of a sparse market."""
        table: Any = market.utilities
        good = table.indices.astype(np.int32)
        owner = np.repeat(np.arange(market.num_buyers), np.diff(table.indptr))
        worth = np.log(table.data * market.capacities[good] / market.largest[owner])
        budgets = market.budgets / market.total_budget
        return cls(np.maximum(worth, kernels.LOG_OF_ZERO), good, table.indptr.astype(np.int64), budgets)

    def respond(self, state: State) -> tuple[Floats, float]:
        """Let every buyer bid on the goods listed."""
        prices = np.empty(len(state.weights))
        linear = kernels.respond_lists(
            self.worth, self.good, self.starts, state.theta, state.weights, self.budgets, self.bids, prices
        )
        return prices, linear

    def bound_and_welfare(self, state: State, log_prices: Floats) -> tuple[float, float]:
        """Return (bound, welfare) of the bids of the last response."""
        bound, welfare = kernels.list_bound_and_welfare(
            self.worth, self.good, self.starts, self.budgets, log_prices, self.bids
        )
        return bound, welfare

    def bound(self, log_prices: Floats) -> float:
        """Return the bound that prices prove, if all wanted goods are listed."""
        gains = self.worth - log_prices[self.good]
        return float(self.budgets @ np.maximum.reduceat(gains, self.starts[:-1]))

    def narrowed(self, state: State, log_prices: Floats, most: float) -> Lists | None:
        """Return the relevant bids as lists; None if they are more than this share of all."""
        sizes = np.diff(self.starts)
        power = state.theta * self.worth - state.weights[self.good]
        largest = np.maximum.reduceat(power, self.starts[:-1])
        power -= np.repeat(largest, sizes)
        scale = np.log(np.add.reduceat(np.exp(power), self.starts[:-1])) - np.log(self.budgets)
        near = (power >= -DEPTH) | (power - np.repeat(scale, sizes) - log_prices[self.good] >= -DEPTH)
        if near.sum() > most * len(near):
            return None
        starts = np.concatenate(([0], np.cumsum(np.add.reduceat(near.astype(np.int64), self.starts[:-1]))))
        return Lists(self.worth[near], self.good[near], starts, self.budgets)

    def shares(self, state: State, prices: Floats) -> tuple[Floats, NDArray[np.int32], NDArray[np.int64]]:
        """Return (values, goods, starts) of the bids of the last response."""
        return self.bids / prices[self.good], self.good, self.starts
