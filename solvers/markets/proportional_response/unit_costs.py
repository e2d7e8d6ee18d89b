"""Unit costs of utility in each round of a CES or Cobb-Douglas market, and the shares of goods in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats
from ....formulations.markets.volatile import VolatileFisherMarket

# Called with (round, bound, welfare, found); found() returns the best allocation and the best prices so far.
Report = Callable[[int, float, float, Callable[[], tuple[Any, Floats]]], None]


class RoundCosts:
    """Logarithms of unit costs and spending shares at log prices, by round: arrays are (T, N), (T, N, J) and (T, J).

    Attributes
    ----------
    weights : ndarray of float, shape (T, N, J)
        Utility weights; 0 where a good is not wanted.
    served : ndarray of bool, shape (T, N)
    wanted : ndarray of bool, shape (T, J)
    elasticity : float
        Elasticity of substitution between the resources of a round; 1 in a Cobb-Douglas market.
    """

    def __init__(self, market: VolatileFisherMarket) -> None:
        wants: NDArray[np.bool_] = market.arithmetic.has_demand
        self.weights = np.ascontiguousarray(np.moveaxis(np.where(wants, market.utilities, 0.0), 2, 0))
        self.served = np.ascontiguousarray(market.active.T)
        self.wanted = np.ascontiguousarray(market.in_demand.T)
        rho = market.rho
        self.power = 0.0 if rho is None else -rho / (1.0 - rho)  # 1 - elasticity
        self.elasticity = 1.0 - self.power
        with np.errstate(divide="ignore"):
            self._log_weights = np.where(self.weights > 0, np.log(self.weights), 0.0)
            self._log_yield = np.where(self.served, np.log(market.productivity.T), 0.0)

    def at(self, log_prices: Floats) -> tuple[Floats, Floats]:
        """Return log unit costs (infinite where nothing is served) and each good's share of spending."""
        relative = log_prices[:, None, :] - self._log_weights
        if self.power == 0.0:
            costs = (self.weights * relative).sum(axis=2) - self._log_yield
            return np.where(self.served, costs, np.inf), self.weights
        powers = np.where(self.weights > 0, self.power * relative, -np.inf)
        most = powers.max(axis=2, keepdims=True)
        most = np.where(np.isfinite(most), most, 0.0)
        parts = self.weights * np.exp(powers - most)
        total = parts.sum(axis=2, keepdims=True)
        total = np.where(total > 0, total, 1.0)
        costs = (np.log(total) + most)[:, :, 0] / self.power - self._log_yield
        return np.where(self.served, costs, np.inf), parts / total

    def spent(self, bids: Floats, shares: Floats) -> Floats:
        """Return the money spent on each good, shape (T, J), when `bids`, shape (T, N), are split by `shares`."""
        return np.asarray(np.matmul(bids[:, None, :], shares)[:, 0, :])
