"""Metamorphic relations of markets: exactly in rationals for linear ones, within the certified gaps for the others."""

import math
from fractions import Fraction

import numpy as np
import pytest
from enumerated_markets import enumerated_equilibrium
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.validation.certificates.market_state import reach
from equipoise.validation.exact.certificate import exact_certificate
from equipoise.validation.oracles.market_relations import (
    duplicate_round,
    in_other_money,
    in_other_units,
    permuted,
    scaled,
    split_buyer,
    split_good,
    with_idle_round,
    with_useless_good,
)
from equipoise.validation.strategies.programs import allocations, fisher_markets, volatile_markets

FAMILIES = ("linear", "leontief", "ces", "cobb-douglas")
MARKETS = st.one_of(fisher_markets(), *(volatile_markets(family) for family in FAMILIES))
# Each example is two solves.
SOLVED = settings(max_examples=max(10, settings().max_examples // 5))
# Binary fractions, so that products and shares of whole numbers are exact.
FACTORS, SHARES = st.sampled_from([0.5, 1.0, 2.0, 8.0]), st.sampled_from([0.25, 0.5, 0.75])


@st.composite
def relations(draw, market):
    """Draw a market related to this one in any way that there is."""

    def array(shape):
        size = math.prod(shape)
        return np.array(draw(st.lists(FACTORS, min_size=size, max_size=size))).reshape(shape)

    def order(size):
        return draw(st.permutations(range(size)))

    shape = market.capacities.shape
    names = ["scaled", "permuted", "split buyer", "useless good", "units", "money"]
    names += ["split good"] if len(shape) == 1 else ["duplicate round", "idle round"]
    name = draw(st.sampled_from(names))
    if name == "scaled":
        return scaled(market, array((market.num_buyers,)))
    if name == "permuted":
        orders = dict(zip(("goods", "rounds"), map(order, shape), strict=False))
        return permuted(market, buyers=order(market.num_buyers), **orders)
    if name == "split buyer":
        return split_buyer(market, draw(st.integers(0, market.num_buyers - 1)), draw(SHARES))
    if name == "useless good":
        return with_useless_good(market)
    if name == "units":
        return in_other_units(market, array(shape))
    if name == "money":
        return in_other_money(market, draw(FACTORS))
    if name == "split good":
        return split_good(market, draw(st.integers(0, market.num_goods - 1)), draw(SHARES))
    if name == "idle round":
        return with_idle_round(market)
    return duplicate_round(market, draw(st.integers(0, market.num_rounds - 1)), draw(SHARES))


def rounding(market, utilities):
    return 1e-13 * math.fsum(market.budgets * (4.0 + np.abs(np.log(market.budgets)) + np.abs(np.log(utilities))))


# -- Any plan ----------------------------------------------------------------------------------------------------------


@given(st.data(), MARKETS)
def test_a_plan_carried_over_keeps_its_gap_and_its_utilities(data, market):
    """True of every allocation and of all prices, not of equilibria alone."""
    x = data.draw(allocations(market, serving=True))
    count = market.capacities.size
    prices = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), dtype=np.float64)
    plan = market.equilibrium(x, prices.reshape(market.capacities.shape))
    related = data.draw(relations(market))
    carried = related.carried(plan)
    tolerance = rounding(related.market, carried.utilities) + related.money * rounding(market, plan.utilities)
    objective, residuals = related.market.evaluate(carried)
    assert residuals.worst <= 1e-14
    assert carried.utilities == pytest.approx(related.utilities(plan.utilities), rel=1e-12)
    assert carried.prices.ravel() == pytest.approx(related.prices(plan.prices.ravel()), rel=1e-12)
    assert objective == pytest.approx(related.welfare(market.welfare(plan.utilities)), abs=tolerance)
    assert related.market.proved_bound(carried) == pytest.approx(
        related.welfare(market.proved_bound(plan)), abs=tolerance
    )


# -- Linear markets, in rationals --------------------------------------------------------------------------------------


@given(st.data(), fisher_markets(max_buyers=3, max_goods=3, exact=True))
def test_equilibria_of_linear_markets_follow_exactly(data, market):
    first = enumerated_equilibrium(market)
    related = data.draw(relations(market))
    second = enumerated_equilibrium(related.market)
    assert list(second.prices) == related.prices(first.prices)
    assert list(second.utilities) == related.utilities(first.utilities)


@given(st.data(), volatile_markets("linear", max_buyers=2, max_resources=2, max_rounds=2, exact=True))
def test_equilibria_of_linear_markets_over_rounds_follow_exactly(data, market):
    first = enumerated_equilibrium(market.static)
    related = data.draw(relations(market))
    second = enumerated_equilibrium(related.market.static)
    assert list(second.prices) == related.prices(first.prices)
    assert list(second.utilities) == related.utilities(first.utilities)


def certified(market, backend):
    """Exact prices and utilities, from what a backend found."""
    plan = eq.solve(market, backend=backend, rel_gap=1e-9).require_plan()
    exact = exact_certificate(market, plan)
    assert exact, exact.reason
    flat = market if isinstance(market, eq.FisherMarket) else market.static
    table = flat.utilities.toarray() if flat.is_sparse else flat.utilities
    utilities = [Fraction(0)] * market.num_buyers
    for (buyer, good), amount in exact.allocation.items():
        utilities[buyer] += Fraction(float(table[buyer, good])) * amount
    return list(exact.prices), utilities


@SOLVED
@given(
    st.data(),
    st.one_of(fisher_markets(exact=True), volatile_markets("linear", exact=True)),
    st.sampled_from(["interior_point", "highs"]),
)
def test_solutions_of_linear_markets_follow_exactly(data, market, backend):
    """Found in floats, made exact by certificate: then prices and utilities are equal, not nearly so."""
    related = data.draw(relations(market))
    prices, utilities = certified(market, backend)
    its_prices, its_utilities = certified(related.market, backend)
    assert its_prices == related.prices(prices)
    assert its_utilities == related.utilities(utilities)


@given(fisher_markets(max_buyers=3, max_goods=3))
def test_the_enumerated_equilibrium_is_one(market):
    """Everyone spends everything, on the best buys alone; every wanted good is sold out: all exactly."""
    found = enumerated_equilibrium(market)
    table = market.utilities.toarray() if market.is_sparse else market.utilities
    worth = [[Fraction(value) for value in row] for row in table.tolist()]
    sold = [sum(money for (_, k), money in found.spending.items() if k == good) for good in range(market.num_goods)]
    for good, price in enumerate(found.prices):
        assert (price > 0) == market.in_demand[good]
        assert sold[good] == price * Fraction(market.capacities[good])
    for buyer, budget in enumerate(market.budgets.tolist()):
        mine = {k: money for (i, k), money in found.spending.items() if i == buyer}
        rates = {k: u / found.prices[k] for k, u in enumerate(worth[buyer]) if u > 0}
        assert sum(mine.values()) == Fraction(budget)
        assert all(money >= 0 and rates[k] == max(rates.values()) for k, money in mine.items())
        assert found.utilities[buyer] == max(rates.values()) * Fraction(budget)


def test_only_tiny_markets_are_enumerated():
    with pytest.raises(eq.InvalidInput, match=r"utilities = '16 wanted pairs': at most 12 can be enumerated"):
        enumerated_equilibrium(eq.FisherMarket(np.ones((4, 4)), np.ones(4)))


# -- All families, solved ----------------------------------------------------------------------------------------------


def spread(market, gap):
    """How far the logarithm of each utility may be below and above that of the equilibrium, at a gap.

    With r the utilities over the equilibrium's and q the shares of all budgets: ``sum q r <= 1``, as an optimum is one
    of its own linearisation, and ``sum q log r >= -gap``. That is all that `reach` needs.
    """
    below, above = reach(market.budgets / market.total_budget, gap)
    return -np.log1p(-below), np.log1p(above)


def solved(market, backend):
    result = eq.solve(market, backend=backend, rel_gap=1e-7)
    plan = result.require_plan()
    gap = result.gap + rounding(market, plan.utilities) / market.total_budget
    assert gap <= 1e-4, result
    return plan, market.welfare(plan.utilities), gap


def backends_of(family):
    """One that reads the family's own data, and one that reads its program, if there is one."""
    table = [[[2.0, 1.0]], [[1.0, 3.0]]]
    given_ = {"linear": {"utilities": table}, "leontief": {"requirements": table}}
    weights = {"utilities": [[[1.0]], [[1.0]]]} | ({"rho": 0.5} if family == "ces" else {})
    market = eq.VolatileFisherMarket(**given_.get(family, weights), budgets=[1.0, 1.0], family=family)
    names = [row.name for row in eq.backends(market, usable=True)]
    return [name for name in ("clarabel", "highs", "interior_point", "proportional_response") if name in names]


@pytest.mark.parametrize("family", FAMILIES)
@SOLVED
@given(data=st.data())
def test_solutions_of_related_markets_agree_within_their_gaps(family, data):
    market = data.draw(volatile_markets(family, max_buyers=3, max_resources=2, max_rounds=3, orders=2))
    related = data.draw(relations(market))
    names = backends_of(family)
    assert names, f"no backend solves a {family} market"
    backend = data.draw(st.sampled_from(names))
    (plan, objective, gap), (other, its, its_gap) = solved(market, backend), solved(related.market, backend)
    allowed = gap * market.total_budget * related.money + its_gap * related.market.total_budget
    assert its == pytest.approx(related.welfare(objective), abs=allowed)
    below, above = spread(market, gap)
    less, more = spread(related.market, its_gap)
    logs = np.log(other.utilities) - np.log(related.utilities(plan.utilities))
    assert (logs <= more + below[related.buyers] + 1e-12).all()
    assert (logs >= -less - above[related.buyers] - 1e-12).all()


# -- The relations themselves ------------------------------------------------------------------------------------------


@given(st.data(), MARKETS)
def test_an_order_undone_is_the_market_again(data, market):
    order = data.draw(st.permutations(range(market.num_buyers)))
    again = permuted(permuted(market, buyers=order).market, buyers=np.argsort(order)).market
    x = data.draw(allocations(market))
    assert again.budgets.tolist() == market.budgets.tolist()
    assert again.utilities_at(x) == pytest.approx(market.utilities_at(x), rel=1e-14)
    assert again.kind == market.kind


def test_a_round_twice_without_splitting_its_capacity_is_another_market():
    """So the relation says something: more of a round is worth more."""
    market = eq.VolatileFisherMarket(utilities=[[[1.0, 2.0]], [[3.0, 1.0]]], budgets=[1.0, 1.0])
    split = duplicate_round(market, 1).market
    assert split.capacities.tolist() == [[1.0, 0.5, 0.5]]
    whole = eq.VolatileFisherMarket(utilities=split.utilities, budgets=split.budgets)
    assert enumerated_equilibrium(split.static).utilities == (2, 3)
    assert enumerated_equilibrium(whole.static).utilities == (4, 3)


STATIC = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])
OVER_ROUNDS = eq.VolatileFisherMarket(utilities=[[[1.0, 2.0]], [[3.0, 1.0]]], budgets=[1.0, 1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scaled(STATIC, [1.0, 0.0]), "factors[1] = 0.0: must be greater than 0"),
        (lambda: scaled(STATIC, [1.0]), "factors = 'array of shape (1,)': must have shape (2,)"),
        (lambda: permuted(STATIC, buyers=[0, 0]), "buyers = [0, 0]: must hold each of 0 to 1 once"),
        (lambda: permuted(STATIC, goods=[1, 2]), "goods = [1, 2]: must hold each of 0 to 1 once"),
        (lambda: permuted(STATIC, goods=[1, -1]), "goods[1] = -1: at least 0"),
        (lambda: permuted(STATIC, rounds=[0]), "rounds = 'given': the market has none"),
        (lambda: split_buyer(STATIC, 2), "buyer = 2: at most 1"),
        (lambda: split_buyer(STATIC, 0, 1.0), "share = 1.0: must be less than 1"),
        (lambda: split_buyer(STATIC, 0, 0.0), "share = 0.0: must be greater than 0"),
        (lambda: split_good(STATIC, -1), "good = -1: at least 0"),
        (lambda: duplicate_round(OVER_ROUNDS, 2), "round_ = 2: at most 1"),
        (lambda: in_other_units(OVER_ROUNDS, [1.0, 1.0]), "units = 'array of shape (2,)': must have 2 dimension(s)"),
        (lambda: in_other_money(STATIC, math.inf), "money = inf: must be finite"),
    ],
)
def test_what_no_market_follows_from_is_refused(call, message):
    with pytest.raises(eq.InvalidInput) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_good(OVER_ROUNDS, 0), "split_good is for a FisherMarket"),
        (lambda: duplicate_round(STATIC, 0), "a FisherMarket has no rounds"),
        (lambda: with_idle_round(STATIC), "a FisherMarket has no rounds"),
    ],
)
def test_some_relations_are_of_one_kind_of_market(call, message):
    with pytest.raises(eq.UnsupportedProblem, match=message):
        call()
