"""Small markets for the contract and the agreement of backends: planted equilibria, closed forms, arbitrary markets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...formulations.arrays import Floats
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import FamilyName, VolatileFisherMarket

STATIC = "FisherMarket"
FAMILY_OF: dict[str, FamilyName] = {
    "VolatileFisherMarket:linear": "linear",
    "VolatileFisherMarket:leontief": "leontief",
    "VolatileFisherMarket:ces": "ces",
    "VolatileFisherMarket:cobb-douglas": "cobb-douglas",
}
#: The kinds of market by which backends list them.
MARKETS = (STATIC, *FAMILY_OF)
UNWEIGHTED = (STATIC, *list(FAMILY_OF)[:2])
# Substitutes and complements, on both sides of the Cobb-Douglas limit and next to it.
RHOS = (0.9, 0.5, 0.25, 0.01, -0.01, -0.5, -1.0, -2.0, -5.0)
# What each buyer pays for a unit of utility in a planted market.
COSTS = (0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownMarket:
    """A market, and the greatest Nash welfare as its `optimum`; nan if it is not known."""

    market: Market
    optimum: float


def random_market(rng: np.random.Generator, kind: str) -> Market:
    """Draw a small market of small whole numbers, with zeros and ties; now and then one of its edges.

    Now and then: all buyers alike, budgets over twelve orders of magnitude, an unwanted good or round, one
    round, other capacities, rounds that serve one buyer nothing, a sparse static market.
    """
    buyers, resources, rounds = (int(rng.integers(1, most + 1)) for most in (6, 3, 3))
    if kind == STATIC:
        resources, rounds = int(rng.integers(1, 7)), 1
    shape = buyers, resources, rounds
    data = rng.integers(0, int(rng.choice([2, 4, 9])), shape).astype(np.float64)
    if rng.random() < 0.2:
        data[:] = data[:1]
    if rng.random() < 0.2:
        data[:, rng.integers(resources), rng.integers(rounds)] = 0.0
    if rng.random() < 0.1:
        data[:, :, rng.integers(rounds)] = 0.0
    idle = ~data.any(axis=(1, 2))
    data[idle, rng.integers(resources), rng.integers(rounds)] = 1.0
    budgets = rng.integers(1, 6, buyers).astype(np.float64)
    if rng.random() < 0.2:
        budgets *= 10.0 ** rng.integers(-6, 7, buyers)
    capacities = rng.integers(1, 5, (resources, rounds)).astype(np.float64) if rng.random() < 0.3 else None
    return _market(
        kind, data, budgets, capacities, rng,
        rho=float(rng.choice(RHOS)), productivity=rng.integers(0, 4, (buyers, rounds)).astype(np.float64),
    )  # fmt: skip


def planted_market(rng: np.random.Generator, kind: str, *, orders: int = 0) -> KnownMarket:
    """Draw a market around an equilibrium: prices, what utility costs each buyer, and what each spends in each round.

    Rounds that a buyer does not use are dearer, or as dear: ties are drawn as well. Data are such that the demands at
    the prices are what was drawn, and capacities are their sums. The first buyer demands every good that is offered.
    Budgets go over so many `orders` of magnitude.
    """
    buyers, resources, rounds = (int(rng.integers(1, most + 1)) for most in (5, 3, 3))
    if kind == STATIC:
        resources, rounds = int(rng.integers(1, 6)), 1
    shape = buyers, resources, rounds
    prices = rng.integers(1, 6, (resources, rounds)).astype(np.float64)
    offered = rng.random((resources, rounds)) < 0.85
    offered[rng.integers(resources)] = True
    prices = np.where(offered, prices, 0.0)
    cost = rng.choice(COSTS, buyers)
    money = rng.integers(0, 3, (buyers, rounds)).astype(np.float64)
    money[np.arange(buyers), rng.integers(0, rounds, buyers)] += 1.0
    money[0] += 1.0
    money *= 10.0 ** (rng.integers(-orders, orders + 1, buyers) / 2.0)[:, None]
    used = money > 0
    # A round that is not used is dear by such a factor; at 0 it serves the buyer nothing.
    factor = np.where(used, 1.0, rng.choice([0.0, 0.5, 1.0], (buyers, rounds)))
    wants = (rng.random(shape) < 0.7) & offered
    wants[0] = offered
    first = np.argmax(offered, axis=0)
    wants[:, first, np.arange(rounds)] |= ~wants.any(axis=1)
    plan = _Planned(rng=rng, prices=prices, offered=offered, wants=wants, cost=cost, money=money, factor=factor)
    family, rho, productivity = FAMILY_OF.get(kind, "linear"), 0.0, np.ones((buyers, rounds))
    if family == "linear":
        data, demand = plan.linear()
    elif family == "leontief":
        data, demand = plan.leontief()
    else:
        rho = 0.0 if family == "cobb-douglas" else float(rng.choice(RHOS))
        data, demand, productivity = plan.weighted(rho)
    capacities = demand.sum(axis=0)
    capacities = np.where(capacities > 0, capacities, 1.0)
    budgets = money.sum(axis=1)
    market = _market(kind, data, budgets, capacities, rng, rho=rho, productivity=productivity)
    return KnownMarket(market=market, optimum=float(budgets @ np.log(budgets / cost)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Planned:
    """Prices (J, T), what is `offered` (J, T), who wants what (N, J, T), costs (N,), money and factors (N, T)."""

    rng: np.random.Generator
    prices: Floats
    offered: NDArray[np.bool_]
    wants: NDArray[np.bool_]
    cost: Floats
    money: Floats
    factor: Floats

    @property
    def _paid(self) -> Floats:
        """Prices, 1 where nothing is offered."""
        return np.where(self.offered, self.prices, 1.0)

    def linear(self) -> tuple[Floats, Floats]:
        """Return utilities and demands: of the wanted goods all cost the same per worth, others as much or more."""
        shape, factor = self.wants.shape, self.factor[:, None, :]
        parts = np.where(self.wants, self.rng.integers(1, 4, shape), 0).astype(np.float64)
        less = np.where(self.wants, 1.0, self.rng.choice([0.0, 0.5, 1.0], shape))
        demand = self.money[:, None, :] * parts / parts.sum(axis=1, keepdims=True) / self._paid
        return less * self.prices / self.cost[:, None, None] * factor, demand

    def leontief(self) -> tuple[Floats, Floats]:
        """Return requirements, scaled so that a unit of utility costs what it should, and demands."""
        needs = np.where(self.wants, self.rng.integers(1, 4, self.wants.shape), 0).astype(np.float64)
        sums = np.einsum("ijt,jt->it", needs, self.prices)
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = needs * (self.cost[:, None] / sums / self.factor)[:, None, :]
        data = np.where(self.factor[:, None, :] > 0, scaled, 0.0)
        return data, data * (self.money / self.cost[:, None])[:, None, :]

    def weighted(self, rho: float) -> tuple[Floats, Floats, Floats]:
        """Return weights, demands, and the productivity at which a unit of utility costs what it should."""
        wants, paid = self.wants, self._paid
        data = np.where(wants, self.rng.integers(1, 4, wants.shape), 0).astype(np.float64)
        data /= data.sum(axis=1, keepdims=True)
        logs = np.log(np.where(wants, data, 1.0))
        terms = np.where(wants, np.exp((logs - rho * np.log(paid)) / (1.0 - rho)), 0.0)  # w^sigma p^(1 - sigma)
        total = terms.sum(axis=1)
        unit = total ** (-(1.0 - rho) / rho) if rho else np.exp((data * (np.log(paid) - logs)).sum(axis=1))
        demand = (self.money / total)[:, None, :] * terms / paid
        return data, demand, unit / self.cost[:, None] * self.factor


def identical_buyers(rng: np.random.Generator, kind: str) -> KnownMarket:
    """Return a market of buyers who all want the same: each gets of everything what its budget is of all budgets."""
    one = random_market(rng, kind)
    budgets = rng.integers(1, 6, 4) * 10.0 ** rng.integers(-6, 7, 4)
    data, capacities, more = _data_of(one)
    data, more = np.repeat(data[:1], 4, axis=0), {k: np.repeat(v[:1], 4, axis=0) for k, v in more.items()}
    rho = one.rho if isinstance(one, VolatileFisherMarket) else None
    market = _market(kind, data, budgets, capacities, rng, rho=rho, **more)
    whole = market.utilities_at(np.repeat(market.capacities[None], 4, axis=0))
    return KnownMarket(market=market, optimum=float(budgets @ np.log(budgets / budgets.sum() * whole)))


def one_good_buyers(rng: np.random.Generator, kind: str) -> KnownMarket:
    """Return a market in which each buyer wants one good: it is shared as the budgets of those who want it."""
    buyers, resources, rounds = 5, 3, (1 if kind == STATIC else 2)
    data = np.zeros((buyers, resources, rounds))
    good, when = rng.integers(0, resources, buyers), rng.integers(0, rounds, buyers)
    data[np.arange(buyers), good, when] = rng.integers(1, 5, buyers) if kind in UNWEIGHTED else 1.0
    budgets = rng.integers(1, 6, buyers).astype(np.float64)
    capacities = rng.integers(1, 5, (resources, rounds)).astype(np.float64)
    market = _market(kind, data, budgets, capacities, rng, rho=0.5, productivity=np.ones((buyers, rounds)))
    bids = np.zeros((resources, rounds))
    np.add.at(bids, (good, when), budgets)
    share = budgets / bids[good, when]
    whole = market.utilities_at(np.repeat(market.capacities[None], buyers, axis=0))
    return KnownMarket(market=market, optimum=float(budgets @ np.log(share * whole)))


def large_market(rng: np.random.Generator, kind: str) -> Market:
    """Draw a market of some ten thousand entries, which takes a moment."""
    buyers, resources, rounds = (600, 60, 1) if kind == STATIC else (200, 3, 20)
    return _market(
        kind, rng.random((buyers, resources, rounds)) + 0.1, rng.random(buyers) + 0.1, None, rng,
        rho=float(rng.choice(RHOS)), productivity=rng.random((buyers, rounds)) + 0.1,
    )  # fmt: skip


def _market(
    kind: str, data: Floats, budgets: Floats, capacities: Floats | None, rng: np.random.Generator, *,
    rho: float | None = None, productivity: Floats | None = None,
) -> Market:  # fmt: skip
    """Return the market of this kind, weights divided by their sums, and a round that serves every buyer."""
    given: Any = capacities  # None: 1 of each
    if kind == STATIC:
        utilities: Any = data[:, :, 0]
        if rng.random() < 0.25:
            utilities = csr_array(utilities)
        given = given if given is None else given[:, 0]
        return FisherMarket(utilities, budgets, given)
    family = FAMILY_OF[kind]
    if family in ("linear", "leontief"):
        field = {"requirements" if family == "leontief" else "utilities": data}
        return VolatileFisherMarket(**field, budgets=budgets, capacities=given, family=family)  # type: ignore[arg-type]
    assert productivity is not None
    sums = data.sum(axis=1)
    served = (sums > 0) & (productivity > 0)
    productivity = np.where(served.any(axis=1, keepdims=True), productivity, 1.0)
    return VolatileFisherMarket(
        utilities=data / np.where(sums > 0, sums, 1.0)[:, None, :], budgets=budgets, capacities=given,
        family=family, rho=rho if family == "ces" else None, productivity=productivity,
    )  # fmt: skip


def _data_of(market: Market) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Return data and capacities over (buyer, resource, round), and the productivity where there is one."""
    if isinstance(market, FisherMarket):
        table: Any = market.utilities
        dense = table.toarray() if market.is_sparse else table
        return dense[:, :, None], market.capacities[:, None], {}
    assert isinstance(market, VolatileFisherMarket)
    if market.family == "leontief":
        return market.requirements, market.capacities, {}
    more = {} if market.family == "linear" else {"productivity": market.productivity}
    return market.utilities, market.capacities, more
