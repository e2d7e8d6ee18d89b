"""The exact certificate: closed forms in rationals, thousands of random markets in small, and what it must refuse."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import equipoise as eq
from equipoise.validation.certificates.certify import certify
from equipoise.validation.exact import certificate as module
from equipoise.validation.exact.certificate import exact_certificate, fault
from equipoise.validation.exact.flow import max_flow
from equipoise.validation.exact.market import exact_market, forest, prices_of

THIRD = Fraction(1, 3)


@st.composite
def markets(draw, most=6):
    """Draw a small market with zeros and ties, and some goods that nobody wants."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, goods = (int(n) for n in rng.integers(1, most, 2))
    utilities = rng.integers(0, draw(st.sampled_from([2, 3, 6])), (count, goods)).astype(float)
    utilities[np.arange(count), rng.integers(goods, size=count)] = 1.0
    capacities = rng.integers(1, 4, goods).astype(float)
    return eq.FisherMarket(utilities, rng.integers(1, 6, count).astype(float), capacities)


@given(markets(), st.sampled_from(["highs", "clarabel"]))
def test_it_closes_and_is_an_equilibrium_to_the_last_digit(market, backend):
    if backend == "clarabel":
        pytest.importorskip("clarabel")
    exact = exact_certificate(market, eq.solve(market, backend=backend, rel_gap=1e-8).plan)
    assert exact, exact.reason
    assert exact.check_result.holds
    # Each condition once more, written out, in rationals.
    price, amount = exact.prices, exact.allocation
    worth = [[Fraction(u) for u in row] for row in market.utilities]
    for k, capacity in enumerate(market.capacities):
        sold = sum(amount.get((i, k), Fraction(0)) for i in range(market.num_buyers))
        assert sold == (Fraction(capacity) if market.in_demand[k] else 0)
        assert (price[k] > 0) == market.in_demand[k]
    for i, budget in enumerate(market.budgets):
        assert sum(amount.get((i, k), Fraction(0)) * price[k] for k in range(market.num_goods)) == Fraction(budget)
        for k, other in product(range(market.num_goods), repeat=2):
            if (i, k) in amount:
                assert amount[i, k] > 0
                assert worth[i][k] * price[other] >= worth[i][other] * price[k]
    # Rounded, it is an equilibrium to what floats can tell.
    assert certify(market, exact.plan, gap=1e-12)


def test_closed_forms():
    """One good; one buyer; two buyers of whom one is indifferent."""
    exact = exact_certificate(eq.FisherMarket([[2.0], [5.0]], [1.0, 2.0], [3.0]), [[1.0], [2.0]])
    assert exact.prices == (1,)
    assert exact.allocation == {(0, 0): 1, (1, 0): 2}
    exact = exact_certificate(eq.FisherMarket([[1.0, 2.0, 0.0]], [3.0]), [[1.0, 1.0, 0.0]])
    assert exact.prices == (1, 2, 0)
    market = eq.FisherMarket([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    exact = exact_certificate(market, eq.solve(market, rel_gap=1e-8).plan)
    assert exact.prices == (2, 2)
    assert exact.allocation == {(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 2), (1, 1): 1}


def test_it_needs_only_who_buys_what():
    """An allocation a percent off, without prices, leads to the same equilibrium."""
    rng = np.random.default_rng(3)
    market = eq.FisherMarket(rng.integers(1, 9, (6, 4)).astype(float), np.arange(1.0, 7.0))
    plan = eq.solve(market, rel_gap=1e-8).plan
    exact = exact_certificate(market, plan)
    rough = plan.allocation * (1 + 0.01 * rng.random(plan.allocation.shape)) + 1e-6
    assert exact_certificate(market, rough).prices == exact.prices
    assert "within" in str(exact.check_result)


def test_numbers_that_floats_round_are_taken_as_they_are_or_as_given():
    market = eq.FisherMarket([[1.0, 0.1], [0.3, 1.0]], [1 / 3, 2 / 3])
    plan = eq.solve(market, rel_gap=1e-8).plan
    floats = exact_certificate(market, plan)
    assert floats.prices == (Fraction(1 / 3), Fraction(2 / 3))
    assert floats.prices != (THIRD, 2 * THIRD)
    given_exactly = exact_certificate(market, plan, budgets=[THIRD, 2 * THIRD])
    assert given_exactly.prices == (THIRD, 2 * THIRD)
    with pytest.raises(eq.InvalidInput, match=r"budgets\[1\] = 1/3: the market has 0.6666666666666666 there"):
        exact_certificate(market, plan, budgets=[THIRD, THIRD])
    with pytest.raises(eq.InvalidInput, match=r"capacities\[0\] = None|capacities\[0\] = 'one'"):
        exact_certificate(market, plan, capacities=["one", 1])


def test_sparse_and_volatile_markets():
    table = np.array([[2.0, 1.0, 0.0, 3.0], [1.0, 0.0, 4.0, 1.0], [0.0, 2.0, 1.0, 1.0]])
    dense = eq.FisherMarket(table, [1.0, 2.0, 3.0])
    sparse = eq.FisherMarket(csr_array(table), [1.0, 2.0, 3.0])
    volatile = eq.VolatileFisherMarket(utilities=table.reshape(3, 2, 2), budgets=[1.0, 2.0, 3.0])
    plans = [exact_certificate(market, eq.solve(market, rel_gap=1e-8).plan) for market in (dense, sparse, volatile)]
    assert plans[0].prices == plans[1].prices == plans[2].prices
    for exact in plans:
        assert certify(exact.market, exact.plan, gap=1e-12)
        assert "found" in repr(exact)


@given(markets(4))
def test_it_says_why_it_cannot(market):
    """From an allocation of nothing, or of everything to the first, it finds the equilibrium or gives the reason."""
    for allocation in (np.zeros(market.utilities.shape), np.eye(market.num_buyers)[:, :1] * market.capacities):
        exact = exact_certificate(market, allocation)
        assert bool(exact) == exact.check_result.holds == (exact.reason == "") == bool(exact.prices)
        if not exact:
            assert np.isinf(exact.check_result.violation)
            assert exact.reason in str(exact.check_result)
            with pytest.raises(eq.UnsupportedProblem, match="no exact equilibrium"):
                _ = exact.plan


def test_pivots_lead_from_a_wrong_support_to_the_right_one(monkeypatch):
    market = eq.FisherMarket([[5.0, 2.0, 1.0], [2.0, 3.0, 5.0], [3.0, 1.0, 2.0]], [1.0, 1.0, 1.0])
    split = np.full((3, 3), 1 / 3)
    right = exact_certificate(market, eq.solve(market, rel_gap=1e-8).plan)
    found = exact_certificate(market, split)
    assert found.prices == right.prices
    assert found.attempts >= 2
    monkeypatch.setattr(module, "MOST_PIVOTED", 0)
    exact = exact_certificate(market, split)
    assert not exact
    assert exact.attempts == found.attempts - 1
    assert "would rather not buy" in exact.reason
    assert "not found" in repr(exact)


@given(markets(), st.integers(0, 2**32))
def test_pivots_need_no_solver(market, seed):
    """Any allocation in which everybody has something of everything leads to the equilibrium."""
    exact = exact_certificate(market, np.random.default_rng(seed).random(market.utilities.shape))
    assert exact, exact.reason
    assert certify(market, exact.plan, gap=1e-12)


def test_ties_nearer_than_floats_can_tell():
    """Utilities of 0.1 and 0.3 are no multiples of each other as floats: the exact market has no tie, barely."""
    table = np.array([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [0.01, 0.02, 0.03]])
    market = eq.FisherMarket(table, [1e-6, 1.0, 1e6])
    exact = exact_certificate(market, eq.solve(market, rel_gap=1e-8).plan)
    assert exact, exact.reason
    assert len(exact.allocation) <= 5  # a forest
    assert exact.prices[1] != 2 * exact.prices[0] or exact.prices[2] != 3 * exact.prices[0]


CORRUPTIONS = {
    "a good partly unsold": lambda p, x: x.update({(0, 0): x[0, 0] / 2}),
    "a good sold beyond capacity": lambda p, x: x.update({(0, 0): x[0, 0] * 2}),
    "a negative amount": lambda p, x: x.update({(0, 1): Fraction(-1, 7)}),
    "one digit of a price": lambda p, x: p.__setitem__(0, p[0] + Fraction(1, 10**30)),
    "a good for nothing": lambda p, x: p.__setitem__(1, Fraction(0)),
    "all prices doubled": lambda p, x: p.__setitem__(slice(None), [2 * price for price in p]),
    "what is not wanted most": lambda p, x: x.update({(0, 1): x[1, 1] / 2, (1, 1): x[1, 1] / 2}),
    "bundles exchanged": lambda p, x: x.update({(0, 1): x.pop((1, 1)), (1, 0): x.pop((0, 0))}),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_last_check_catches_corrupted_equilibria(name):
    market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0])
    exact = exact_certificate(market, np.eye(2))
    prices, allocation = list(exact.prices), dict(exact.allocation)
    assert fault(exact_market(market), prices, allocation) == ""
    CORRUPTIONS[name](prices, allocation)
    assert fault(exact_market(market), prices, allocation) != ""


def test_bad_input():
    market = eq.FisherMarket([[1.0, 2.0]], [1.0])
    with pytest.raises(eq.InvalidInput, match="allocation"):
        exact_certificate(market, [[1.0]])
    with pytest.raises(eq.InvalidInput, match=r"allocation = .*must be finite"):
        exact_certificate(market, [[1.0, np.nan]])
    with pytest.raises(eq.InvalidInput, match=r"prices = .*must be finite"):
        exact_certificate(market, [[1.0, 1.0]], [1.0, np.nan])
    leontief = eq.VolatileFisherMarket(requirements=np.ones((1, 1, 1)), budgets=[1.0], family="leontief")
    with pytest.raises(eq.UnsupportedProblem, match="can be irrational"):
        exact_certificate(leontief, np.ones((1, 1, 1)))


@given(st.integers(0, 2**32))
def test_flow_is_what_the_smallest_cut_allows(seed):
    """Max flow is min cut: over every set of buyers, what it cannot send and what its goods take."""
    rng = np.random.default_rng(seed)
    count, goods = (int(n) for n in rng.integers(1, 6, 2))
    supply, demand = rng.integers(0, 9, count).tolist(), rng.integers(0, 9, goods).tolist()
    allowed = [set(np.flatnonzero(rng.random(goods) < 0.5).tolist()) for _ in range(count)]
    start = {(i, k): int(rng.integers(1, 5)) for i in range(count) for k in allowed[i] if rng.random() < 0.3}
    flow = max_flow(supply, demand, allowed, start)
    assert all(amount > 0 and k in allowed[i] for (i, k), amount in flow.items())
    for i in range(count):
        assert sum(amount for (j, _), amount in flow.items() if j == i) <= supply[i]
    for k in range(goods):
        assert sum(amount for (_, other), amount in flow.items() if other == k) <= demand[k]
    cuts = []
    for chosen in product([False, True], repeat=count):
        reached = set().union(*(allowed[i] for i in range(count) if chosen[i]))
        cuts.append(sum(supply[i] for i in range(count) if not chosen[i]) + sum(demand[k] for k in reached))
    assert sum(flow.values()) == min(cuts)


def test_a_forest_fixes_prices_tree_by_tree():
    market = exact_market(eq.FisherMarket([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]], [3.0, 1.0, 5.0]))
    trees = forest([(0, 0), (0, 1), (2, 2)], 3)
    assert prices_of(market, trees) == [2, 1, 5]
    assert prices_of(market, forest([(0, 0), (2, 2)], 3)) is None
    with_cycle = forest([(0, 0), (0, 1), (0, 0), (1, 1), (1, 2), (2, 2)], 3)
    assert sum(len(tree) for tree in with_cycle) == 5
