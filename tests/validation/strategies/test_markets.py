"""What the market strategies draw: everything they promise, and nothing that a market refuses."""

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import equipoise as eq
from equipoise.validation.strategies.programs import (
    allocations,
    fisher_markets,
    programs,
    stochastic_markets,
    volatile_markets,
    windows,
)

FAMILIES = ("linear", "leontief", "ces", "cobb-douglas")
SEARCH = settings(max_examples=2000, database=None, phases=[Phase.generate], derandomize=True)


def table(market):
    return market.utilities.toarray() if market.is_sparse else market.utilities


def identical(market):
    rows = table(market) / table(market).max(axis=1, keepdims=True)
    return len(rows) > 1 and (rows == rows[0]).all() and rows.shape[1] > 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "wanted",
    [
        lambda market: not market.in_demand.all(),
        lambda market: market.num_goods > 2 and ((table(market) > 0).sum(axis=1) == 1).any(),
        identical,
        lambda market: market.num_buyers > 2 and market.num_goods > 2 and table(market).min() == table(market).max(),
        lambda market: market.budgets.max() / market.budgets.min() >= 1e12,
        lambda market: len(set(market.budgets)) == 1 and market.num_buyers > 2,
        lambda market: (market.capacities != 1).any(),
        lambda market: market.is_sparse,
        lambda market: market.num_buyers == market.num_goods == 5,
        lambda market: market.num_buyers == market.num_goods == 1,
    ],
)
def test_fisher_markets_have_every_edge(wanted):
    assert wanted(find(fisher_markets(), wanted, settings=SEARCH))


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "wanted",
    [
        lambda market: market.num_rounds == 1 and market.num_buyers > 1,
        lambda market: market.num_rounds > 1 and not market.active.any(axis=0).all(),
        lambda market: not market.active.all() and market.active.any(axis=0).all(),
        lambda market: not market.in_demand.any(axis=1).all(),
        lambda market: market.budgets.max() / market.budgets.min() >= 1e9,
        lambda market: (market.capacities != 1).any(),
    ],
)
def test_volatile_markets_have_every_edge(family, wanted):
    market = find(volatile_markets(family), wanted, settings=SEARCH)
    assert wanted(market)
    assert market.family == family


def test_ces_markets_are_of_substitutes_and_of_complements():
    assert find(volatile_markets("ces"), lambda market: market.rho < -1, settings=SEARCH).rho == -4.0
    assert find(volatile_markets("ces"), lambda market: market.rho > 0.5, settings=SEARCH).rho == 0.9


@given(fisher_markets(exact=True, sparse=False), volatile_markets("leontief", exact=True))
def test_exact_markets_hold_small_whole_numbers(market, leontief):
    for array in (market.utilities, market.budgets, market.capacities, leontief.requirements, leontief.capacities):
        assert (array == np.rint(array)).all()
        assert array.max() <= 18
    assert not market.is_sparse


@given(fisher_markets(2, 3, orders=0), volatile_markets("ces", 2, 1, 3, orders=4))
def test_sizes_and_orders_are_kept_to(market, ces):
    assert market.num_buyers <= 2
    assert market.num_goods <= 3
    assert market.budgets.max() / market.budgets.min() <= 5
    assert all(size <= most for size, most in zip(ces.shape, (2, 1, 3), strict=True))
    assert ces.budgets.max() / ces.budgets.min() <= 1e4


@given(st.data(), st.one_of(fisher_markets(), *(volatile_markets(family) for family in FAMILIES)), st.booleans())
def test_allocations_are_feasible_to_the_last_bit(data, market, serving):
    x = data.draw(allocations(market, serving=serving))
    entries = x if isinstance(x, np.ndarray) else x.toarray()
    assert (entries >= 0).all()
    assert (entries.sum(axis=0) <= market.capacities).all()
    assert isinstance(x, csr_array) == getattr(market, "is_sparse", False)
    assert not serving or (market.utilities_at(x) > 0).all()


def test_allocations_leave_goods_over_and_buyers_without():
    market = eq.FisherMarket(np.ones((3, 2)), np.ones(3))
    assert find(allocations(market), lambda x: not x.any(), settings=SEARCH).shape == (3, 2)
    assert (
        find(allocations(market), lambda x: (x.sum(axis=0) == 1).all() and not x[0].any(), settings=SEARCH).sum() == 2
    )
    assert find(allocations(market), lambda x: 0 < x[0, 0] < x[1, 0] and x[0, 1] > x[1, 1] > 0, settings=SEARCH).any()


@given(st.one_of(windows(), programs(), stochastic_markets()))
def test_the_other_strategies_stand_beside_them(problem):
    assert isinstance(problem, eq.ScheduleWindow | eq.Program) or type(problem).__name__ == "StochasticMarket"
