"""Hypothesis strategies: small markets of every family, and allocations of a market to test checkers with."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from scipy.sparse import csr_array

from ...formulations.arrays import Floats
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import FamilyName, VolatileFisherMarket

#: Substitutes and complements, near and far from the Cobb-Douglas limit at 0; binary fractions, save the middle two.
RHOS = (0.5, -1.0, 0.25, 0.9, -0.1, 0.0625, -4.0)
#: Capacities, where they are not all 1.
CAPACITIES = (1.0, 2.0, 3.0, 0.5, 8.0)
#: An allocation cuts each good into so many equal parts, so that sums of its shares are exact.
PARTS = 16


@st.composite
def fisher_markets(
    draw: DrawFn,
    max_buyers: int = 5,
    max_goods: int = 5,
    *,
    exact: bool = False,
    sparse: bool | None = None,
    orders: int = 12,
) -> FisherMarket:
    """Draw a small linear market.

    Utilities are whole numbers. Now and then there are goods that no buyer wants, buyers who want one good, identical
    buyers, ties everywhere, capacities other than 1, or budgets over many orders of magnitude. A buyer who would want
    nothing is given a good to want.

    Parameters
    ----------
    max_buyers, max_goods : int
        At least 1.
    exact : bool
        Whether utilities, budgets and capacities are all small whole numbers, so that rational arithmetic stays short.
    sparse : bool, optional
        Whether utilities are a csr_array; drawn, mostly False, by default.
    orders : int
        Over how many orders of magnitude budgets may go, at most; 0 or more.

    Returns
    -------
    SearchStrategy of FisherMarket

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from equipoise.validation.strategies.programs import fisher_markets
    >>> @settings(max_examples=10)
    ... @given(fisher_markets())
    ... def no_buyer_has_all(market):
    ...     assert market.total_budget >= market.budgets.max()
    >>> no_buyer_has_all()
    """
    buyers, goods = draw(st.integers(1, max_buyers)), draw(st.integers(1, max_goods))
    utilities = _worths(draw, (buyers, goods))
    budgets, capacities = _budgets(draw, buyers, 0 if exact else orders), _capacities(draw, (goods,), exact)
    if sparse or (sparse is None and _now_and_then(draw)):
        return FisherMarket(csr_array(utilities), budgets, capacities)
    return FisherMarket(utilities, budgets, capacities)


@st.composite
def volatile_markets(
    draw: DrawFn,
    family: FamilyName = "linear",
    max_buyers: int = 4,
    max_resources: int = 3,
    max_rounds: int = 4,
    *,
    exact: bool = False,
    orders: int = 12,
) -> VolatileFisherMarket:
    """Draw a small market over rounds.

    Worths and needs are whole numbers; weights are whole numbers divided by their sums. Besides what `fisher_markets`
    brings, there are single rounds and useless rounds. A buyer whom no round would serve gets one resource in
    one round to want.

    Parameters
    ----------
    family : {"linear", "leontief", "ces", "cobb-douglas"}
    max_buyers, max_resources, max_rounds : int
        At least 1.
    exact : bool
        Whether worths or needs, budgets, capacities and productivity are all small whole numbers. Weights are whole
        numbers over sums all the same.
    orders : int
        Over how many orders of magnitude budgets may go, at most; 0 or more.

    Returns
    -------
    SearchStrategy of VolatileFisherMarket
    """
    shape = buyers, resources, rounds = (
        draw(st.integers(1, max_buyers)),
        draw(st.integers(1, max_resources)),
        draw(st.integers(1, max_rounds)),
    )
    data = _worths(draw, (buyers, resources * rounds)).reshape(shape)
    if _now_and_then(draw):  # a round that serves no buyer, unless it is the only one of some buyer
        idle = draw(st.integers(0, rounds - 1))
        data[data.any(axis=(1, 2), where=np.arange(rounds) != idle), :, idle] = 0.0
    given: dict[str, Any] = {"family": family}
    if family in ("ces", "cobb-douglas"):
        served = data.any(axis=1)
        data = data / np.where(served, data.sum(axis=1), 1.0)[:, None, :]
        yields = floats(draw, st.integers(0, 3), (buyers, rounds))
        first = served.argmax(axis=1)  # a buyer whom nothing else serves is served here
        yields[np.arange(buyers), first] = np.maximum(yields[np.arange(buyers), first], 1.0)
        given["productivity"] = yields
    if family == "ces":
        given["rho"] = draw(st.sampled_from(RHOS))
    given["requirements" if family == "leontief" else "utilities"] = data
    return VolatileFisherMarket(
        budgets=_budgets(draw, buyers, 0 if exact else orders),
        capacities=_capacities(draw, (resources, rounds), exact),
        **given,
    )


@st.composite
def allocations(draw: DrawFn, market: Market, *, serving: bool = False) -> Any:
    """Draw any allocation within a market's capacities, good or bad: to test what judges allocations.

    Each good is cut into sixteenths. Buyers may get what they do not want, or nothing; goods may be left over.

    Parameters
    ----------
    market : Market
    serving : bool
        Whether every buyer gets some of everything, and so has a positive utility.

    Returns
    -------
    SearchStrategy of ndarray or csr_array of float
        Of the market's shape; a csr_array for a sparse market. Within the capacities exactly, where these have few
        digits, and to rounding otherwise.
    """
    buyers, goods = market.num_buyers, market.capacities.size
    cuts = np.sort(floats(draw, st.integers(0, PARTS), (buyers, goods)), axis=0)
    if draw(st.booleans()):
        cuts[-1] = PARTS  # nothing is left over
    parts = np.diff(cuts, axis=0, prepend=0.0)
    if draw(st.booleans()):
        parts = parts[::-1]  # else the last buyers would get most
    if serving:
        parts = 0.5 * parts + 0.5 * PARTS / 2.0 ** np.ceil(np.log2(buyers))
    allocation = (parts / PARTS).reshape(buyers, *market.capacities.shape) * market.capacities
    if isinstance(market, FisherMarket) and market.is_sparse:
        return csr_array(allocation)
    return allocation


def _worths(draw: DrawFn, shape: tuple[int, int]) -> Floats:
    """Return small whole numbers of which no row is all 0."""
    buyers, goods = shape
    low, most = draw(st.sampled_from([(0, 4), (0, 9), (0, 1), (1, 1)]))  # the last: ties everywhere
    worths = floats(draw, st.integers(low, most), shape)
    if _now_and_then(draw):  # identical buyers, in a unit of their own
        worths[1:] = worths[0] * floats(draw, st.sampled_from([1, 2]), (buyers - 1, 1))
    if _now_and_then(draw):  # buyers who want one good
        kept = floats(draw, st.integers(0, goods), (buyers,))  # `goods`: all that they wanted
        worths[(np.arange(goods) != kept[:, None]) & (kept < goods)[:, None]] = 0.0
    if goods > 1 and _now_and_then(draw):  # a good that no buyer wants
        worths[:, draw(st.integers(0, goods - 1))] = 0.0
    idle = ~worths.any(axis=1)
    if idle.any():
        worths[idle, draw(st.integers(0, goods - 1))] = 1.0
    return worths


def _budgets(draw: DrawFn, buyers: int, orders: int) -> Floats:
    if orders and _now_and_then(draw):
        return np.asarray(10.0 ** (floats(draw, st.integers(0, orders), (buyers,)) - orders // 2))
    return np.maximum(floats(draw, st.integers(0, 5), (buyers,)), 1.0)  # 1 twice: equal budgets are not rare


def _capacities(draw: DrawFn, shape: tuple[int, ...], exact: bool) -> Floats:
    if not draw(st.booleans()):
        return np.ones(shape)
    return floats(draw, st.sampled_from([size for size in CAPACITIES if not exact or size == int(size)]), shape)


def _now_and_then(draw: DrawFn) -> bool:
    return draw(st.integers(0, 4)) == 4


def floats(draw: DrawFn, entries: SearchStrategy[Any], shape: int | tuple[int, ...]) -> Floats:
    """Return an array of floats drawn from `entries`."""
    size = int(np.prod(shape))
    return np.array(draw(st.lists(entries, min_size=size, max_size=size)), dtype=np.float64).reshape(shape)
