"""Metamorphic relations of markets: changed markets whose equilibria follow from those of the original."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from ...formulations.arrays import Floats, Indices
from ...formulations.checks import as_integer, as_integers, as_real, as_reals
from ...formulations.errors import InvalidInput, UnsupportedProblem
from ...formulations.markets.equilibrium import Equilibrium
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import VolatileFisherMarket


@dataclass(frozen=True, kw_only=True, eq=False)
class Related:
    """A market made from another, and what becomes of prices and utilities, allocations and welfare on the way.

    An equilibrium of the other one, carried over, is an equilibrium here; any plan keeps its gap.

    Attributes
    ----------
    market : Market
        The new one, of N' buyers.
    origin : Market
        The one it is made from.
    buyers : ndarray of int, shape (N',)
        Which buyer of the other market each one is, or is a part of.
    portions : ndarray of float, shape (N',)
        Which part of that buyer's goods, and of its utility.
    worth : ndarray of float, shape (N',)
        How many new units of utility one old unit is.
    goods : ndarray of int, shape of the new prices
        Index into the other market's prices in C order: which good each one is, or is a part of; -1 for a new good.
    parts : ndarray of float, shape of the new prices
        Which part of that good.
    units : ndarray of float, shape of the new prices
        How many new units of the good one old unit is.
    money : float
        How many new units of money one old unit is.
    """

    market: Market
    origin: Market
    buyers: Indices
    portions: Floats
    worth: Floats
    goods: Indices
    parts: Floats
    units: Floats
    money: float

    def welfare(self, value: float) -> float:
        """Return the Nash welfare here of a plan with this welfare in the other market."""
        return self.money * value + math.fsum(self.market.budgets * np.log(self.portions * self.worth))

    def utilities(self, values: Sequence[Any] | Floats) -> list[Any]:
        """Return the utilities here; of Fractions, exactly."""
        kind = type(values[0])
        factors = zip(self.buyers.tolist(), self.portions.tolist(), self.worth.tolist(), strict=True)
        return [values[buyer] * kind(portion) * kind(worth) for buyer, portion, worth in factors]

    def prices(self, values: Sequence[Any] | Floats) -> list[Any]:
        """Return the prices here, in C order; of Fractions in C order, exactly."""
        kind = type(values[0])
        pairs = zip(self.goods.ravel().tolist(), self.units.ravel().tolist(), strict=True)
        return [values[good] * kind(self.money) / kind(unit) if good >= 0 else kind(0) for good, unit in pairs]

    def carried(self, plan: Equilibrium) -> Equilibrium:
        """Return the plan that a plan of the other market is here."""
        old: Any = plan.allocation
        old = old if isinstance(old, np.ndarray) else old.toarray()
        old = old.reshape(len(old), -1)[self.buyers][:, np.maximum(self.goods, 0).ravel()]
        share = np.where(self.goods >= 0, self.parts * self.units, 0.0)
        allocation: Any = (old * share.ravel() * self.portions[:, None]).reshape(-1, *self.goods.shape)
        if isinstance(self.market, FisherMarket) and self.market.is_sparse:
            allocation = csr_array(allocation)
        prices = np.array(self.prices(np.asarray(plan.prices).ravel())).reshape(self.goods.shape)
        return self.market.equilibrium(allocation, prices)


def permuted(
    market: Market, *, buyers: ArrayLike | None = None, goods: ArrayLike | None = None, rounds: ArrayLike | None = None
) -> Related:
    """Return the market with its buyers, goods (or resources) and rounds in another order: nothing changes.

    Parameters
    ----------
    buyers, goods, rounds : array_like of int, optional
        The old index at each new place.

    Raises
    ------
    InvalidInput
        If one is no permutation.
    """
    shape = (market.num_buyers, *market.capacities.shape)
    names = ("buyers", "goods", "rounds")
    if rounds is not None and len(shape) == 2:
        raise InvalidInput("rounds", "given", "the market has none")
    orders = []
    for name, order, size in zip(names, (buyers, goods, rounds), shape, strict=False):
        chosen = np.arange(size) if order is None else as_integers(name, order, minimum=0, shape=(size,))
        if len(np.unique(chosen)) != size or chosen.max() >= size:
            raise InvalidInput(name, chosen.tolist(), f"must hold each of 0 to {size - 1} once")
        orders.append(chosen)
    return _related(market, buyers=orders[0], axes=orders[1:])


def scaled(market: Market, factors: ArrayLike) -> Related:
    """Return the market with each buyer's utility in a unit of its own: prices and allocation stay.

    Parameters
    ----------
    factors : array_like of float, shape (N,)
        How many new units of utility one old unit is; greater than 0.
    """
    return _related(market, worth=as_reals("factors", factors, above=0.0, shape=(market.num_buyers,)))


def split_buyer(market: Market, buyer: int, share: float = 0.5) -> Related:
    """Return the market with one buyer as two, who share its budget and then its goods: prices stay.

    The first keeps the place, the second comes last.

    Parameters
    ----------
    buyer : int
    share : float
        The first one's share of the budget, between 0 and 1.
    """
    buyers, portions = _split("buyer", buyer, market.num_buyers, share)
    return _related(market, buyers=buyers, portions=portions)


def split_good(market: FisherMarket, good: int, share: float = 0.5) -> Related:
    """Return a static market with one good as two that are worth the same, of a part of the capacity each.

    Parameters
    ----------
    good : int
    share : float
        The first one's share of the capacity, between 0 and 1. It keeps the place, the second comes last.
    """
    if not isinstance(market, FisherMarket):
        raise UnsupportedProblem("split_good is for a FisherMarket; of a VolatileFisherMarket, duplicate_round")
    goods, parts = _split("good", good, market.num_goods, share)
    return _related(market, axes=[goods], parts=parts)


def duplicate_round(market: VolatileFisherMarket, round_: int, share: float = 0.5) -> Related:
    """Return the market with one round as two alike, of a part of the capacities each: utilities and prices stay.

    Parameters
    ----------
    round_ : int
    share : float
        The first one's share of the capacities, between 0 and 1. It keeps the place, the second comes last.
    """
    _rounds_of(market, "duplicate_round")
    rounds, parts = _split("round_", round_, market.num_rounds, share)
    axes = [np.arange(market.num_resources), rounds]
    return _related(market, axes=axes, parts=np.broadcast_to(parts, (market.num_resources, len(parts))))


def with_useless_good(market: Market) -> Related:
    """Return the market with one good (or resource) more, that no buyer wants: its price is 0, and all else stays."""
    first, *rest = (np.arange(size) for size in market.capacities.shape)
    return _related(market, axes=[np.append(first, -1), *rest])


def with_idle_round(market: VolatileFisherMarket) -> Related:
    """Return the market with one round more, that serves no buyer: its prices are 0, and all else stays."""
    _rounds_of(market, "with_idle_round")
    return _related(market, axes=[np.arange(market.num_resources), np.append(np.arange(market.num_rounds), -1)])


def in_other_units(market: Market, units: ArrayLike) -> Related:
    """Return the market with its goods counted in other units: capacities and prices change, and utilities stay.

    Parameters
    ----------
    units : array_like of float, shape of the capacities
        How many new units one old unit is; greater than 0.
    """
    shape = market.capacities.shape
    return _related(market, units=as_reals("units", units, above=0.0, shape=shape, ndim=len(shape)))


def in_other_money(market: Market, money: float) -> Related:
    """Return the market with all budgets in another currency: prices follow, and the allocation stays.

    Parameters
    ----------
    money : float
        How many new units of money one old unit is; greater than 0.
    """
    return _related(market, money=as_real("money", money, above=0.0))


def _related(
    market: Market, *, buyers: Indices | None = None, portions: Floats | None = None, worth: Floats | None = None,
    axes: Sequence[Indices] | None = None, parts: Floats | None = None, units: Floats | None = None, money: float = 1.0,
) -> Related:  # fmt: skip
    """Return the market of chosen buyers and goods; `axes` are indices along each axis of the prices, -1 for new."""
    shape = market.capacities.shape
    buyers = np.arange(market.num_buyers) if buyers is None else buyers
    portions = np.ones(len(buyers)) if portions is None else portions
    worth = np.ones(len(buyers)) if worth is None else worth
    grid = np.ix_(*(np.arange(size) for size in shape) if axes is None else axes)
    new = np.logical_or.reduce(np.broadcast_arrays(*(index < 0 for index in grid)))
    old = tuple(np.maximum(index, 0) for index in grid)
    goods = np.where(new, -1, np.arange(market.capacities.size).reshape(shape)[old])
    parts = np.ones(goods.shape) if parts is None else parts
    units = np.ones(goods.shape) if units is None else units
    budgets = market.budgets[buyers] * portions * money
    capacities = np.where(new, 1.0, market.capacities[old] * parts * units)
    if isinstance(market, FisherMarket):
        table: Any = market.utilities
        table = table[buyers][:, old[0]]
        factors = np.where(new, 0.0, 1.0 / units)
        if market.is_sparse:
            table = table.multiply(worth[:, None]).tocsr().multiply(factors[None, :]).tocsr()
        else:
            table = table * worth[:, None] * factors
        made: Market = FisherMarket(table, budgets, capacities)
    else:
        assert isinstance(market, VolatileFisherMarket)
        made = _volatile(market, buyers, worth, old, np.where(new, 0.0, units), budgets, capacities)
    return Related(
        market=made, origin=market, buyers=buyers, portions=portions, worth=worth, goods=goods, parts=parts,
        units=units, money=money,
    )  # fmt: skip


def _volatile(
    market: VolatileFisherMarket, buyers: Indices, worth: Floats, old: tuple[Indices, ...], units: Floats,
    budgets: Floats, capacities: Floats,
) -> VolatileFisherMarket:  # fmt: skip
    """Return a market over rounds with its data in other units; units are 0 for new goods, of no use to anybody."""
    resources, rounds = old
    old_good = (buyers[:, None, None], resources[None], rounds[None])
    some = units > 0
    per_unit = np.where(some, 1.0 / np.where(some, units, 1.0), 0.0)
    if market.family == "leontief":
        requirements = market.requirements[old_good] * units / worth[:, None, None]
        return replace(market, requirements=requirements, budgets=budgets, capacities=capacities)
    if market.family == "linear":
        utilities = market.utilities[old_good] * per_unit * worth[:, None, None]
        return replace(market, utilities=utilities, budgets=budgets, capacities=capacities)
    weights = np.where(some, market.utilities[old_good], 0.0)
    productivity = market.productivity[buyers][:, rounds[0]] * worth[:, None]
    logs = np.log(np.where(some, units, 1.0))
    if market.family == "cobb-douglas":
        productivity = productivity * np.exp(-(weights * logs).sum(axis=1))
    else:
        assert market.rho is not None
        weights = weights * np.exp(-market.rho * logs)
        sums = weights.sum(axis=1)
        served = sums > 0
        weights = weights / np.where(served, sums, 1.0)[:, None, :]
        productivity = productivity * np.where(served, sums, 1.0) ** (1.0 / market.rho)
    return replace(market, utilities=weights, productivity=productivity, budgets=budgets, capacities=capacities)


def _split(name: str, place: int, size: int, share: float) -> tuple[Indices, Floats]:
    """Return the old places of new ones, of which one is split and its second part comes last, and the parts."""
    place, share = as_integer(name, place, minimum=0, maximum=size - 1), as_real("share", share, above=0.0)
    if share >= 1.0:
        raise InvalidInput("share", share, "must be less than 1")
    parts = np.ones(size + 1)
    parts[place], parts[-1] = share, 1.0 - share
    return np.append(np.arange(size), place), parts


def _rounds_of(market: Any, name: str) -> None:
    if not isinstance(market, VolatileFisherMarket):
        raise UnsupportedProblem(f"{name} is for a VolatileFisherMarket: a {type(market).__name__} has no rounds")
