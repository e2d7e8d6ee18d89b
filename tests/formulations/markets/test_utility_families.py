"""What a round yields and what a unit of it costs, against twins written with nothing but Python's own numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.markets.utility_families import Ces, CobbDouglas, Leontief, Linear
from equipoise.validation.strategies.programs import allocations, volatile_markets

FAMILIES = ("linear", "leontief", "ces", "cobb-douglas")
PRICES = st.sampled_from([0.25, 1.0, 3.0, 7.0, 1e-6, 1e6])


def table_of(market):
    return market.requirements if market.family == "leontief" else market.utilities


def cells(market):
    """Yield buyer, round, the round's row of data, and its productivity (None where the family has none)."""
    for i in range(market.num_buyers):
        for t in range(market.num_rounds):
            productivity = None if market.productivity is None else float(market.productivity[i, t])
            yield i, t, table_of(market)[i, :, t].tolist(), productivity


def rate(market, row, productivity, x):
    """The utility of one buyer in one round, by the definition of its family."""
    pairs = [(a, got) for a, got in zip(row, x, strict=True) if a > 0]
    if not pairs or productivity == 0:
        return 0.0
    if market.family == "linear":
        return float(sum(Fraction(a) * Fraction(got) for a, got in pairs))
    if market.family == "leontief":
        return float(min(Fraction(got) / Fraction(a) for a, got in pairs))
    if market.family == "cobb-douglas":
        return productivity * math.prod(got**a for a, got in pairs)
    if market.rho < 0 and any(got == 0 for _, got in pairs):
        return 0.0
    total = math.fsum(a * got**market.rho for a, got in pairs)
    return productivity * total ** (1 / market.rho) if total else 0.0


def cheapest(market, row, productivity, prices):
    """A bundle that gives the most utility per money, by its closed form."""
    bundle = np.zeros(len(row))
    if market.family == "linear":
        best = min((j for j, a in enumerate(row) if a > 0), key=lambda j: prices[j] / row[j])
        bundle[best] = 1.0
        return bundle
    if market.family == "leontief":
        return np.array(row)
    sigma = 1.0 if market.family == "cobb-douglas" else 1.0 / (1.0 - market.rho)
    return np.array([(w / p) ** sigma if w > 0 else 0.0 for w, p in zip(row, prices, strict=True)])


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_rates_are_what_the_family_says(family, data):
    market = data.draw(volatile_markets(family))
    x = data.draw(allocations(market))
    rates = market.arithmetic.rates(x)
    for i, t, row, productivity in cells(market):
        assert rates[i, t] == pytest.approx(rate(market, row, productivity, x[i, :, t].tolist()), rel=1e-12)
    assert market.utilities_at(x) == pytest.approx([math.fsum(each) for each in rates], rel=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_no_bundle_is_cheaper_than_the_unit_cost_and_one_costs_just_that(family, data):
    market = data.draw(volatile_markets(family))
    count = market.capacities.size
    prices = np.array(data.draw(st.lists(PRICES, min_size=count, max_size=count))).reshape(market.capacities.shape)
    x = data.draw(allocations(market))
    costs, rates = market.arithmetic.unit_costs(prices), market.arithmetic.rates(x)
    for i, t, row, productivity in cells(market):
        assert market.active[i, t] == (any(row) and productivity != 0)
        if not market.active[i, t]:
            assert costs[i, t] == math.inf
            continue
        paid = math.fsum(prices[:, t] * x[i, :, t])
        assert paid >= costs[i, t] * rates[i, t] * (1 - 1e-13)
        bundle = cheapest(market, row, productivity, prices[:, t].tolist())
        utility = rate(market, row, productivity, bundle.tolist())
        assert math.fsum(prices[:, t] * bundle) == pytest.approx(costs[i, t] * utility, rel=1e-11)
    assert market.unit_costs(prices).tolist() == costs.min(axis=1).tolist()


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_claims_add_up_to_the_utility_of_each_round(family, data):
    """Euler's theorem for functions of degree one."""
    market = data.draw(volatile_markets(family))
    x = data.draw(allocations(market))
    claims = market.arithmetic.contributions(x)
    assert (claims >= 0).all()
    assert not claims[~market.arithmetic.has_demand].any()
    assert claims.sum(axis=1) == pytest.approx(market.arithmetic.rates(x), rel=1e-14)


@pytest.mark.parametrize("family", ["linear", "ces", "cobb-douglas"])
@given(data=st.data())
def test_claims_are_amounts_times_slopes(family, data):
    market = data.draw(volatile_markets(family, max_buyers=2, max_resources=3, max_rounds=2))
    x = data.draw(allocations(market, serving=True))
    claims, rates = market.arithmetic.contributions(x), market.arithmetic.rates(x)
    for j in range(market.num_resources):
        step = 1e-5
        more, less = x.copy(), x.copy()
        more[:, j] *= 1 + step
        less[:, j] *= 1 - step
        slopes = (market.arithmetic.rates(more) - market.arithmetic.rates(less)) / (2 * step)
        assert claims[:, j] == pytest.approx(slopes, rel=1e-6, abs=1e-8 * max(1.0, rates.max()))


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data(), factor=st.sampled_from([0.5, 4.0, 1024.0]))
def test_twice_the_goods_twice_the_utility(family, data, factor):
    market = data.draw(volatile_markets(family))
    x = data.draw(allocations(market))
    assert market.utilities_at(factor * x) == pytest.approx(factor * market.utilities_at(x), rel=1e-12)
    prices = np.ones(market.capacities.shape)
    assert market.unit_costs(factor * prices) == pytest.approx(factor * market.unit_costs(prices), rel=1e-12)


# -- The edges of each family ------------------------------------------------------------------------------------------

WEIGHTS = np.array([[[0.25], [0.75], [0.0]]])
AMOUNTS = np.array([[[3.0], [5.0], [7.0]]])
PRICE = np.array([[2.0], [11.0], [13.0]])
ONE = np.ones((1, 1))


@pytest.mark.parametrize("rho", [1e-6, -1e-6])
def test_ces_meets_cobb_douglas_at_zero(rho):
    ces, limit = Ces(WEIGHTS, ONE, rho), CobbDouglas(WEIGHTS, ONE)
    assert ces.rates(AMOUNTS) == pytest.approx(limit.rates(AMOUNTS), rel=1e-6)
    assert ces.unit_costs(PRICE) == pytest.approx(limit.unit_costs(PRICE), rel=1e-6)
    assert ces.contributions(AMOUNTS) == pytest.approx(limit.contributions(AMOUNTS), rel=1e-5)
    # The first-order term is rho/2 times the variance of the logarithms: even that is there to six digits.
    logs = np.log(AMOUNTS[0, :2, 0])
    variance = 0.25 * 0.75 * (logs[0] - logs[1]) ** 2
    excess = math.log(ces.rates(AMOUNTS)[0, 0]) - math.log(limit.rates(AMOUNTS)[0, 0])
    assert excess == pytest.approx(rho / 2 * variance, rel=1e-5, abs=1e-14)


def test_ces_meets_the_linear_family_at_one():
    ces, limit = Ces(WEIGHTS, ONE, 1 - 1e-9), Linear(WEIGHTS)
    assert ces.rates(AMOUNTS) == pytest.approx(limit.rates(AMOUNTS), rel=1e-8)
    assert ces.unit_costs(PRICE) == pytest.approx(limit.unit_costs(PRICE), rel=1e-6)


def test_ces_meets_leontief_far_below_zero():
    """Weights to the power of 1/rho become 1: what is left is the least amount."""
    ces, limit = Ces(WEIGHTS, ONE, -1e7), Leontief((WEIGHTS > 0).astype(float), np.ones((3, 1)))
    assert ces.rates(AMOUNTS) == pytest.approx(limit.rates(AMOUNTS), rel=1e-6)
    assert ces.unit_costs(PRICE) == pytest.approx(limit.unit_costs(PRICE), rel=1e-5)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
@pytest.mark.parametrize(
    "family", [Ces(WEIGHTS, ONE, 0.9), Ces(WEIGHTS, ONE, -4.0), Ces(WEIGHTS, ONE, 1e-6), CobbDouglas(WEIGHTS, ONE)]
)
def test_far_scales_keep_their_digits(family, scale):
    assert family.rates(scale * AMOUNTS) == pytest.approx(scale * family.rates(AMOUNTS), rel=1e-7, abs=0)
    assert family.unit_costs(scale * PRICE) == pytest.approx(scale * family.unit_costs(PRICE), rel=1e-7, abs=0)
    assert family.contributions(scale * AMOUNTS) == pytest.approx(
        scale * family.contributions(AMOUNTS), rel=1e-7, abs=0
    )


@pytest.mark.parametrize(
    ("family", "rates", "claims"),
    [
        (Linear(WEIGHTS), 0.75 * 5.0, [0.0, 3.75, 0.0]),
        (Leontief(WEIGHTS, np.ones((3, 1))), 0.0, [0.0, 0.0, 0.0]),
        (Ces(WEIGHTS, ONE, 0.5), 0.75**2 * 5.0, [0.0, 0.75**2 * 5.0, 0.0]),
        (Ces(WEIGHTS, ONE, -1.0), 0.0, [0.0, 0.0, 0.0]),
        (CobbDouglas(WEIGHTS, ONE), 0.0, [0.0, 0.0, 0.0]),
    ],
)
def test_none_of_a_wanted_resource(family, rates, claims):
    for lacking in (0.0, -1.0) if not isinstance(family, Linear | Leontief) else (0.0,):
        x = AMOUNTS.copy()
        x[0, 0, 0] = lacking  # of less than nothing there is no power: it counts as nothing
        assert family.rates(x)[0, 0] == pytest.approx(rates, rel=1e-15)
        assert family.contributions(x)[0, :, 0] == pytest.approx(claims, rel=1e-15)


@pytest.mark.parametrize(
    ("family", "cost"),
    [
        (Linear(WEIGHTS), 0.0),
        (Leontief(WEIGHTS, np.ones((3, 1))), 0.75 * 11.0),
        (Ces(WEIGHTS, ONE, 0.5), 0.0),
        (Ces(WEIGHTS, ONE, -1.0), 0.75 * 11.0),  # of the first there is no end: w2/x2 is left of the harmonic mean
        (CobbDouglas(WEIGHTS, ONE), 0.0),
    ],
)
def test_a_wanted_resource_for_nothing(family, cost):
    prices = PRICE.copy()
    prices[0] = 0.0
    assert family.unit_costs(prices)[0, 0] == pytest.approx(cost, rel=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_no_number_is_passed_off_as_one(family, data):
    market = data.draw(volatile_markets(family))
    i, j, t = np.argwhere(market.arithmetic.has_demand)[0]
    x = data.draw(allocations(market, serving=True))
    x[i, j, t] = math.nan
    assert math.isnan(market.utilities_at(x)[i])
    assert market.welfare(market.utilities_at(x)) == -math.inf


def test_the_scarcest_resource_is_the_one_most_used_of_its_capacity():
    market = eq.VolatileFisherMarket(
        requirements=[[[1.0], [1.0]]], budgets=[2.0], capacities=[[1.0], [100.0]], family="leontief"
    )
    x = np.array([[[1.0], [50.0]]])
    assert market.arithmetic.contributions(x).tolist() == [[[1.0], [0.0]]]
    plan = market.equilibrium(x)
    assert plan.prices.ravel() == pytest.approx([2.0, 0.0], abs=1e-10)
    assert market.proved_bound(plan) == pytest.approx(market.welfare(plan.utilities), abs=1e-9)
