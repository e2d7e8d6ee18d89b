"""Utility families of a volatile market: the utility of a round, and its unit expenditure function.

A family returns the utility (`rates`) of an allocation, shape (N, J, T), and the least money that buys one unit of
utility (`unit_costs`) at prices, shape (J, T), for each buyer and round, shape (N, T). The contribution ``x dU/dx`` of
each good (`contributions`) sums over resources to the utility. A round in which a buyer has no demand (`has_demand`,
shape (N, J, T)) has utility 0 and infinite unit expenditure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats

# Resources whose utilisation differs by less than this share are equally scarce.
TIED = 1e-9


@dataclass(frozen=True, eq=False)
class Linear:
    """``u_it = sum_j u_ijt x_ijt``."""

    utilities: Floats

    @property
    def has_demand(self) -> NDArray[np.bool_]:
        """Whether the good has positive utility."""
        return self.utilities > 0

    def rates(self, allocation: Floats) -> Floats:
        """Return ``sum_j u_ijt x_ijt``."""
        return np.asarray(np.einsum("ijt,ijt->it", self.utilities, allocation))

    def unit_costs(self, prices: Floats) -> Floats:
        """Return ``min_j p_jt / u_ijt``."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.asarray(np.where(self.has_demand, prices / self.utilities, np.inf).min(axis=1))

    def contributions(self, allocation: Floats) -> Floats:
        """Return ``u_ijt x_ijt``."""
        return self.utilities * allocation


@dataclass(frozen=True, eq=False)
class Leontief:
    """``u_it = min_j x_ijt / a_ijt`` over the required resources (a > 0)."""

    requirements: Floats
    capacities: Floats

    @property
    def has_demand(self) -> NDArray[np.bool_]:
        """Whether the resource is required."""
        return self.requirements > 0

    def rates(self, allocation: Floats) -> Floats:
        """Return the number of bundles of required resources in the allocation."""
        active = self.has_demand.any(axis=1)
        bundles = np.where(active, np.inf, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            for j in range(allocation.shape[1]):  # one resource at a time saves a temporary array of shape (N, J, T)
                needs = self.requirements[:, j]
                most = np.divide(allocation[:, j], needs, out=np.full_like(bundles, np.inf), where=needs > 0)
                np.minimum(bundles, most, out=bundles)
        return bundles

    def unit_costs(self, prices: Floats) -> Floats:
        """Return ``sum_j a_ijt p_jt``."""
        costs = np.einsum("ijt,jt->it", self.requirements, prices)
        return np.asarray(np.where(self.has_demand.any(axis=1), costs, np.inf))

    def contributions(self, allocation: Floats) -> Floats:
        """Return the rates, attributed to the scarcest resource of each round: complements have no unique split."""
        used = np.where(self.has_demand, allocation.sum(axis=0) / self.capacities, -1.0)
        scarcest = (used >= (1.0 - TIED) * used.max(axis=1, keepdims=True)) & self.has_demand
        counts = np.maximum(scarcest.sum(axis=1, keepdims=True), 1)
        return np.asarray(scarcest / counts * self.rates(allocation)[:, None, :])


@dataclass(frozen=True, eq=False)
class Weighted:
    """Data of the families with weights."""

    weights: Floats
    productivity: Floats

    @property
    def has_demand(self) -> NDArray[np.bool_]:
        """Whether the resource has weight in a round that is productive."""
        return (self.weights > 0) & (self.productivity > 0)[:, None, :]


@dataclass(frozen=True, eq=False)
class Ces(Weighted):
    """``u_it = s_it (sum_j w_ijt x_ijt^rho)^(1/rho)``, computed in logarithms so that no power overflows."""

    rho: float

    def rates(self, allocation: Floats) -> Floats:
        """Return the utility of each round."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            exponents = self.rho * np.log(np.maximum(allocation, 0.0))
            means = _log_mean(self.weights, exponents, self.has_demand)
            rates = self.productivity * np.exp(means / self.rho)
        return np.asarray(np.where(self.has_demand.any(axis=1), rates, 0.0))

    def unit_costs(self, prices: Floats) -> Floats:
        """Return ``(1/s) (sum_j w^sigma p^(1-sigma))^(1/(1-sigma))``, with ``sigma = 1/(1-rho)``."""
        power = -self.rho / (1.0 - self.rho)  # 1 - sigma
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            exponents = power * (np.log(prices) - np.log(self.weights))
            costs = np.exp(_log_mean(self.weights, exponents, self.has_demand) / power) / self.productivity
        return np.asarray(np.where(self.has_demand.any(axis=1), costs, np.inf))

    def contributions(self, allocation: Floats) -> Floats:
        """Return ``u w x^rho / sum w x^rho``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = self.rho * np.log(np.maximum(allocation, 0.0))
            exponents = np.where(self.has_demand, powers + np.log(self.weights), -np.inf)
            largest = exponents.max(axis=1, keepdims=True)
            shares = np.exp(exponents - largest)
            shares = shares / shares.sum(axis=1, keepdims=True)
        return np.asarray(np.where(np.isfinite(shares), shares, 0.0) * self.rates(allocation)[:, None, :])


@dataclass(frozen=True, eq=False)
class CobbDouglas(Weighted):
    """``u_it = s_it prod_j x_ijt^w_ijt``."""

    def rates(self, allocation: Floats) -> Floats:
        """Return the utility of each round."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            logs = np.where(self.has_demand, self.weights * np.log(np.maximum(allocation, 0.0)), 0.0).sum(axis=1)
            return np.asarray(np.where(self.has_demand.any(axis=1), self.productivity * np.exp(logs), 0.0))

    def unit_costs(self, prices: Floats) -> Floats:
        """Return ``(1/s) prod_j (p/w)^w``."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            logs = np.where(self.has_demand, self.weights * (np.log(prices) - np.log(self.weights)), 0.0).sum(axis=1)
            return np.asarray(np.where(self.has_demand.any(axis=1), np.exp(logs) / self.productivity, np.inf))

    def contributions(self, allocation: Floats) -> Floats:
        """Return ``w u``."""
        return np.asarray(self.weights * self.rates(allocation)[:, None, :])


Family = Linear | Leontief | Ces | CobbDouglas


def _log_mean(weights: Floats, exponents: Floats, has_demand: NDArray[np.bool_]) -> Floats:
    """Return ``log sum_j w_j exp(t_j)`` over goods in demand, for weights of sum 1; accurate as all t tend to 0."""
    t = np.where(has_demand, exponents, -np.inf)
    most = t.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        most = np.where(np.isfinite(most), most, 0.0)
        large = np.log(np.where(has_demand, weights * np.exp(t - most), 0.0).sum(axis=1)) + most[:, 0, :]
        small_terms = np.where(has_demand, weights * np.expm1(np.clip(t, -1.0, 1.0)), 0.0).sum(axis=1)
        small = np.abs(np.where(has_demand, exponents, 0.0)).max(axis=1) < 0.5
        return np.asarray(np.where(small, np.log1p(small_terms), large))
