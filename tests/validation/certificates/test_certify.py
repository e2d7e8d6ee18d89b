"""Every checker passes equilibria and catches corrupted ones; tolerances are what the gap allows, and no less."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import equipoise as eq
from equipoise import validation
from equipoise.validation import certificates
from equipoise.validation.certificates.certify import (
    PROPERTIES,
    budget_clearing,
    certify,
    duality_gap,
    feasibility,
    market_clearing,
    optimal_spending,
    price_total,
)
from equipoise.validation.certificates.check_result import Certificate, CheckResult, PropertyFails
from equipoise.validation.certificates.efficiency import maximal_nash_welfare, pareto_optimality
from equipoise.validation.certificates.fairness import (
    envy_freeness,
    finish_time_fairness_product,
    proportionality,
    sharing_incentive,
)
from equipoise.validation.certificates.market_state import MarketState, reach

GAP = 1e-8
FAMILIES = ("static", "sparse", "linear", "leontief", "ces +", "ces -", "cobb-douglas")


@cache
def case(family):
    """Return a market whose good (1, 2), or 5, nobody wants, and an equilibrium within GAP."""
    rng = np.random.default_rng(7)
    weights = rng.dirichlet([0.6, 0.6], size=(4, 3)).transpose(0, 2, 1)
    weights[:, :, 2] = [1.0, 0.0]
    yields = rng.integers(1, 5, (4, 3)).astype(float)
    goods = {"budgets": np.ones(4), "capacities": [[1.0, 2.0, 0.7], [1.5, 0.5, 1.0]]}
    worth = weights * yields[:, None, :]
    if family in ("static", "sparse"):
        table = worth.reshape(4, -1)
        market = eq.FisherMarket(
            csr_array(table) if family == "sparse" else table, np.ones(4), np.ravel(goods["capacities"])
        )
    elif family == "linear":
        market = eq.VolatileFisherMarket(utilities=worth, **goods)
    elif family == "leontief":
        needs = np.divide(weights, yields[:, None, :])
        market = eq.VolatileFisherMarket(requirements=needs, family="leontief", **goods)
    else:
        rho = {"ces +": 0.5, "ces -": -1.0, "cobb-douglas": None}[family]
        name = family.removesuffix(" +").removesuffix(" -")
        market = eq.VolatileFisherMarket(utilities=weights, productivity=yields, family=name, rho=rho, **goods)
        return market, by_response(market)
    return market, eq.solve(market, backend="highs", rel_gap=GAP / 2).require_optimal()


def by_response(market):
    """Return an equilibrium by proportional response, damped where goods are complements."""
    damping = 1.0 if market.rho is None else min(1.0, 1.0 / (1.0 - market.rho))
    budgets = market.budgets[:, None, None]
    bids = budgets * market.arithmetic.has_demand
    for _ in range(5000):
        bids = bids * budgets / bids.sum(axis=(1, 2), keepdims=True)
        prices = bids.sum(axis=0) / market.capacities
        allocation = bids / np.where(prices > 0, prices, 1.0)
        claims = market.arithmetic.contributions(allocation)
        bids = (claims / claims.sum(axis=(1, 2), keepdims=True)) ** damping * bids ** (1.0 - damping)
    plan = market.equilibrium(allocation, prices)
    assert MarketState(market, plan).measured_gap < GAP / 2
    return plan


CHECKERS = {
    check.__name__: check
    for check in (
        feasibility,
        price_total,
        budget_clearing,
        optimal_spending,
        market_clearing,
        duality_gap,
        maximal_nash_welfare,
        envy_freeness,
        proportionality,
        sharing_incentive,
        finish_time_fairness_product,
        pareto_optimality,
    )
}


def corruption(change):
    """Turn a change of (allocation, prices), flat over goods and in place, into one of a market and a plan."""

    def corrupt(market, plan):
        allocation = plan.allocation if isinstance(plan.allocation, np.ndarray) else plan.allocation.toarray()
        flat, prices = allocation.reshape(market.num_buyers, -1).copy(), plan.prices.ravel().copy()
        wanted, capacities = market.in_demand.ravel(), market.capacities.ravel()
        result = change(flat, prices, wanted, capacities)
        flat = flat if result is None else result
        whole = flat.reshape(allocation.shape)
        return csr_array(whole) if not isinstance(plan.allocation, np.ndarray) else whole, prices.reshape(
            plan.prices.shape
        )

    return corrupt


def _of(index, value, prices=False):
    def change(x, p, wanted, capacities):
        (p if prices else x)[index] = value

    return change


def _scaled(index, factor, prices=False):
    def change(x, p, wanted, capacities):
        (p if prices else x)[index] *= factor

    return change


def _swap_prices(x, p, wanted, capacities):
    low, high = np.argmin(np.where(wanted, p, np.inf)), np.argmax(p)
    p[[low, high]] = p[[high, low]]


def _rich_from_poor(x, p, wanted, capacities):
    x[1] += 0.5 * x[0]
    x[0] *= 0.5


def _made_up_for(x, p, wanted, capacities):
    worth = p @ capacities
    p[1] = -0.1
    p[0] += (worth - p @ capacities) / capacities[0]


def _price_unwanted(x, p, wanted, capacities):
    p[~wanted] = p.max()


def _all_to_one(x, p, wanted, capacities):
    x[:] = 0.0
    x[2] = capacities


def _idle_good(x, p, wanted, capacities):
    x[:, np.argmax(p)] *= 0.8


def _twice(x, p, wanted, capacities):
    x[0] = x.sum(axis=0)


def _hand_unwanted(x, p, wanted, capacities):
    """Give the unwanted good for half of what buyer 1 has."""
    x[1] *= 0.5
    x[1, ~wanted] = capacities[~wanted]


CORRUPTIONS = {
    name: corruption(change)
    for name, change in {
        "a number is missing": _of((1, 0), math.nan),
        "an infinite amount": _of((2, 1), math.inf),
        "a negative amount": _of((0, 0), -0.2),
        "all goods handed out twice": lambda x, p, w, c: 2.0 * x,
        "one buyer gets everything too": _twice,
        "one amount beyond its capacity": lambda x, p, w, c: x + np.outer(np.arange(len(x)) == 3, c),
        "one per mille too much": lambda x, p, w, c: 1.001 * x,
        "prices in another unit": _scaled(slice(None), 2.0, prices=True),
        "two prices swapped": _swap_prices,
        "one price doubled": _scaled(0, 2.0, prices=True),
        "a wanted good for nothing": _of(0, 0.0, prices=True),
        "a negative price that others make up for": _made_up_for,
        "a negative price": _of(1, -1.0, prices=True),
        "a price is missing": _of(2, math.nan, prices=True),
        "a price on what nobody wants": _price_unwanted,
        "one buyer cut by half": _scaled(0, 0.5),
        "one buyer left out": _scaled(3, 0.0),
        "a tenth of all goods idle": lambda x, p, w, c: 0.9 * x,
        "a good partly idle": _idle_good,
        "half of one buyer's goods to another": _rich_from_poor,
        "bundles permuted": lambda x, p, w, c: x[[1, 2, 3, 0]],
        "all to one buyer": _all_to_one,
        "goods for an unwanted one": _hand_unwanted,
        "an equal split": lambda x, p, w, c: np.broadcast_to(c / 4, x.shape).copy(),
    }.items()
}

MISSING = {"a number is missing", "an infinite amount"}
BAD_PRICES = {
    "one price doubled",
    "two prices swapped",
    "a wanted good for nothing",
    "a negative price",
    "a negative price that others make up for",
    "a price is missing",
}
LESS_FOR_ONE = {"one buyer cut by half", "one buyer left out", "bundles permuted"}
IDLE = {
    "one buyer cut by half",
    "one buyer left out",
    "a tenth of all goods idle",
    "a good partly idle",
    "goods for an unwanted one",
}
UNFAIR = LESS_FOR_ONE | {"half of one buyer's goods to another", "all to one buyer"}
TOO_MUCH = {
    "all goods handed out twice",
    "one buyer gets everything too",
    "one amount beyond its capacity",
    "one per mille too much",
}
WORSE = UNFAIR | IDLE | {"an equal split"}
# What each checker must catch in every family.
CAUGHT = {
    "feasibility": MISSING | TOO_MUCH | {"a negative amount"},
    "price_total": BAD_PRICES | {"prices in another unit", "a price on what nobody wants"},
    "budget_clearing": MISSING
    | BAD_PRICES
    | TOO_MUCH
    | (UNFAIR | IDLE) - {"bundles permuted"}
    | {"prices in another unit"},
    "optimal_spending": MISSING
    | BAD_PRICES
    | {"half of one buyer's goods to another", "bundles permuted", "all to one buyer", "an equal split"},
    "market_clearing": MISSING | IDLE | TOO_MUCH | {"a negative amount", "a price on what nobody wants"},
    "duality_gap": MISSING | BAD_PRICES | WORSE | TOO_MUCH | {"a price on what nobody wants"},
    "maximal_nash_welfare": MISSING | WORSE,
    "envy_freeness": MISSING | UNFAIR,
    "proportionality": MISSING | UNFAIR | {"goods for an unwanted one"},
    "sharing_incentive": MISSING | UNFAIR | {"goods for an unwanted one"},
    "finish_time_fairness_product": MISSING | WORSE,
    "pareto_optimality": MISSING | IDLE | {"bundles permuted", "an equal split"},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_equilibrium_has_every_property(family):
    market, plan = case(family)
    certificate = certify(market, plan, gap=GAP)
    assert certificate.holds, certificate
    assert len(certificate) == len(CHECKERS)
    assert certify(market, plan).require() is not None
    assert all(math.isfinite(finding.tolerance) for finding in certificate)


@pytest.mark.thorough
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_checker_catches_corrupted_plans(family, checker):
    market, plan = case(family)
    assert len(CAUGHT[checker] - MISSING) >= 5
    for name in sorted(CAUGHT[checker]):
        allocation, prices = CORRUPTIONS[name](market, plan)
        finding = CHECKERS[checker](market, allocation, prices, gap=GAP)
        assert not finding.holds, (name, finding)
        assert finding.violation > finding.tolerance
        assert finding.witness is not None


# Without prices, wrong ones cannot be told from right ones.
ABOUT_PRICES = BAD_PRICES | {"prices in another unit", "a price on what nobody wants"}


@cache
def without_prices(family, name):
    market, plan = case(family)
    return MarketState(market, CORRUPTIONS[name](market, plan)[0], gap=GAP)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_equilibrium_without_its_prices_has_every_property(family):
    market, plan = case(family)
    certificate = certify(market, plan.allocation, gap=GAP)
    assert certificate.holds, certificate
    assert certify(market, plan.allocation).holds


@pytest.mark.parametrize("checker", [name for name in CHECKERS if CAUGHT[name] - ABOUT_PRICES])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_checker_catches_corrupted_allocations_without_prices(family, checker):
    for name in sorted(CAUGHT[checker] - ABOUT_PRICES):
        finding = CHECKERS[checker](case(family)[0], without_prices(family, name))
        assert not finding.holds, (name, finding)
        assert finding.violation > finding.tolerance
        assert finding.witness is not None


def test_the_prices_of_complements_are_those_of_a_solve():
    """Over several rounds an allocation does not tell what each part of a bundle costs."""
    market, plan = case("leontief")
    assert not duality_gap(market, plan.allocation, market.implied_prices(plan.allocation), gap=GAP)
    finding = duality_gap(market, plan.allocation, gap=GAP)
    assert finding.holds
    assert "prices of a solve made here" in finding.statement


@pytest.mark.parametrize("family", FAMILIES)
def test_prices_of_a_solve_excuse_no_more_than_the_gap(family):
    market, plan = case(family)
    assert certify(market, plan.allocation * math.exp(-0.2 * GAP), gap=GAP)
    for finding in (duality_gap, maximal_nash_welfare, finish_time_fairness_product):
        assert not finding(market, plan.allocation * math.exp(-2.0 * GAP), gap=GAP)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_equilibrium_of_other_budgets_is_none_of_this_market(family):
    market, _ = case(family)
    other = eq.solve(replace(market, budgets=[2.0, 1.0, 1.0, 1.0]), rel_gap=GAP).require_optimal()
    certificate = certify(market, other.allocation, gap=GAP)
    failed = {finding.statement.split(" (")[0] for finding in certificate.failures}
    assert {"budgets spent", "prices prove it optimal", "most Nash welfare over time"} <= failed


@pytest.mark.parametrize(
    ("name", "checker", "buyer", "good"),
    [
        ("a negative amount", feasibility, 0, 0),
        ("a number is missing", envy_freeness, 1, 0),
        ("an infinite amount", pareto_optimality, 2, 1),
        ("a negative price", price_total, None, 1),
        ("a price is missing", optimal_spending, None, 2),
        ("a price on what nobody wants", market_clearing, None, 5),
        ("one buyer cut by half", proportionality, 0, None),
        ("one buyer left out", budget_clearing, 3, None),
        ("one buyer left out", duality_gap, 3, None),
    ],
)
@pytest.mark.parametrize("family", ["static", "sparse", "ces -"])
def test_the_witness_names_the_culprit(family, name, checker, buyer, good):
    market, plan = case(family)
    allocation, prices = CORRUPTIONS[name](market, plan)
    witness = checker(market, allocation, prices, gap=GAP).witness
    if good is not None and family == "ces -":
        good = tuple(int(i) for i in np.unravel_index(good, market.capacities.shape))
    assert (witness.buyer, witness.good) == (buyer, good)


def test_what_prices_say_does_not_touch_feasibility():
    market, plan = case("static")
    assert feasibility(market, plan.allocation, np.full(6, np.nan), gap=GAP)


@st.composite
def feasible_plans(draw):
    """Draw a market of any family, an allocation within its capacities, and any prices."""
    family = draw(st.sampled_from(["linear", "leontief", "ces", "cobb-douglas"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = tuple(int(n) for n in rng.integers(1, 5, 3))
    budgets = np.exp(draw(st.sampled_from([0.0, 1.0, 6.0])) * rng.normal(size=shape[0]))
    capacities = np.exp(rng.normal(size=shape[1:]))
    data = rng.random(shape) * (rng.random(shape) < 0.8) + (np.arange(shape[1]) == 0)[:, None] * 0.01
    extra = {}
    if family in ("ces", "cobb-douglas"):
        data = data / data.sum(axis=1, keepdims=True)
        extra["productivity"] = np.exp(rng.normal(size=(shape[0], shape[2])))
    if family == "ces":
        extra["rho"] = draw(st.sampled_from([0.9, 0.5, 0.01, -0.5, -5.0]))
    name = "requirements" if family == "leontief" else "utilities"
    market = eq.VolatileFisherMarket(**{name: data}, budgets=budgets, capacities=capacities, family=family, **extra)
    noise = draw(st.sampled_from([0.01, 0.3, 2.0]))
    allocation = budgets[:, None, None] * np.exp(noise * rng.normal(size=shape))
    allocation *= capacities / allocation.sum(axis=0) * draw(st.sampled_from([1.0, 0.9]))
    prices = market.implied_prices(allocation) * np.exp(noise * rng.normal(size=shape[1:]))
    return market, allocation, market.normal_prices(prices)


@given(feasible_plans())
def test_no_feasible_plan_violates_anything_by_more_than_its_gap_allows(plan):
    """The tolerances are theorems: at the plan's own gap, whatever it is, everything holds."""
    market, allocation, prices = plan
    gap = MarketState(market, allocation, prices).measured_gap
    assert gap >= -1e-12
    for check in CHECKERS.values():
        finding = check(market, allocation, prices, gap=max(gap, 0.0))
        assert finding.holds, finding


@given(feasible_plans())
def test_no_prices_that_are_found_hide_what_is_missing(plan):
    market, allocation, _ = plan
    best = eq.solve(market, rel_gap=1e-7, time_limit=20.0)
    missing = (best.objective - market.welfare(market.utilities_at(allocation))) / market.total_budget
    assert duality_gap(market, allocation, gap=1e-6).violation >= missing - 1e-12


@given(st.floats(0.001, 0.999), st.floats(0.01, 0.99), st.booleans())
def test_the_tolerances_are_reached(share, part, more):
    """Two buyers and one good: no smaller tolerance would do for who gets too little, or too much."""
    market = eq.FisherMarket([[1.0], [1.0]], budgets=[share, 1.0 - share])
    mine = share * part if not more else share + (1.0 - share) * part
    allocation = np.array([[mine], [1.0 - mine]])
    reading = MarketState(market, allocation, [1.0])
    gap = reading.measured_gap
    below, above = reach(reading.shares, gap)
    off = (1.0 - mine / share) if not more else (mine / share - 1.0)
    assert off == pytest.approx((below if not more else above)[0], rel=1e-5, abs=1e-7)
    loser = proportionality(market, allocation, [1.0], gap=gap)
    assert loser.holds
    assert loser.violation == pytest.approx(loser.tolerance, rel=1e-5, abs=1e-6)
    if loser.violation > 1e-3:
        assert not proportionality(market, allocation, [1.0], gap=0.98 * gap).holds
        assert not budget_clearing(market, allocation, [1.0], gap=0.5 * gap).holds


def test_tolerances_shrink_with_the_gap_and_with_the_rest_of_the_budgets():
    below, above = reach(np.array([0.5, 0.01, 1.0]), 1e-6)
    assert below == pytest.approx(np.sqrt([2e-6, 2e-6 * 99, 0.0]), rel=1e-2, abs=2e-6)
    assert above == pytest.approx(np.sqrt([2e-6, 2e-6 * 99, 0.0]), rel=1e-2, abs=2e-6)
    tiny_below, tiny_above = reach(np.array([1e-12, 1.0 - 1e-12]), 1e-4)
    assert tiny_below[0] == pytest.approx(1.0)  # a gap of 1e-4 says nothing of a buyer with so little
    assert tiny_above[0] > 1e7
    assert tiny_below[1] == pytest.approx(1e-4, rel=1e-2)  # all but everything: what it may lack is the gap itself
    assert tiny_above[1] < 1e-11


def test_by_default_a_plan_is_held_to_its_own_gap_but_to_no_more_than_solve_closes():
    market, plan = case("static")
    good, bad = plan.allocation, CORRUPTIONS["an equal split"](market, plan)[0]
    assert proportionality(market, good, plan.prices).tolerance < 1e-3
    coarse = eq.solve(market, backend="highs", rel_gap=1e-2)
    assert coarse.gap > 1e-4
    assert duality_gap(market, coarse.plan).tolerance == pytest.approx(1e-4)
    assert not certify(market, coarse.plan)
    assert certify(market, coarse.plan, gap=coarse.gap)
    assert not certify(market, bad)
    poor = CORRUPTIONS["one buyer cut by half"](market, plan)[0]
    assert not proportionality(market, poor)
    assert not envy_freeness(market, poor)
    own = MarketState(market, bad).measured_gap
    assert own > 0.01
    assert certify(market, bad, gap=own)  # nothing is claimed of it that its own gap does not prove


def test_a_result_brings_its_market_its_plan_and_its_gap():
    market, _ = case("static")
    coarse = eq.solve(market, backend="highs", rel_gap=1e-2)
    assert coarse.problem is market
    certificate = certify(coarse)
    assert certificate == certify(market, coarse) == certify(market, coarse.plan, gap=coarse.gap)
    assert certificate.holds
    assert not certify(coarse, gap=1e-6)
    worse = replace(coarse, plan=market.equilibrium(0.5 * coarse.plan.allocation, coarse.plan.prices))
    assert not certify(worse)  # the gap of the solve excuses no other plan
    closed = replace(eq.solve(market, rel_gap=1e-9), gap=0.0)
    assert certify(closed) == certify(market, closed.plan, gap=1e-9)
    unproved = replace(coarse, gap=math.inf)
    assert str(certify(unproved)) == str(certify(market, coarse.plan))
    with pytest.raises(eq.NoSolution, match="no plan"):
        certify(replace(coarse, plan=None))
    with pytest.raises(eq.InvalidInput, match="market"):
        certify(eq.solve(eq.OpenShop([[1.0]])))


def test_a_bare_allocation_is_judged_at_the_prices_it_implies():
    market, plan = case("static")
    assert certify(market, plan.allocation, gap=GAP)
    finding = optimal_spending(market, plan.allocation)
    assert "prices implied by the allocation" in finding.statement
    assert "implied" not in optimal_spending(market, plan).statement
    assert optimal_spending(market, plan.allocation, plan.prices) == optimal_spending(market, plan)


@pytest.mark.thorough
def test_sparse_and_dense_give_the_same_results():
    (dense, plan), (sparse, _) = case("static"), case("sparse")
    for name, corrupt in CORRUPTIONS.items():
        allocation, prices = corrupt(dense, plan)
        for checker in CHECKERS.values():
            one = checker(dense, allocation, prices, gap=GAP)
            other = checker(sparse, csr_array(allocation), prices, gap=GAP)
            mixed = checker(dense, csr_array(allocation), prices, gap=GAP)
            assert one.holds == other.holds == mixed.holds, (name, one, other, mixed)


def test_no_word_of_the_plan_is_believed():
    market, plan = case("static")
    allocation = CORRUPTIONS["bundles permuted"](market, plan)[0]
    lying = eq.Equilibrium(
        allocation=allocation, prices=plan.prices, spending=market.budgets, utilities=10 * plan.utilities
    )
    assert optimal_spending(market, lying, gap=GAP) == optimal_spending(market, allocation, plan.prices, gap=GAP)
    assert not certify(market, lying, gap=GAP)


def test_results_and_certificates_print():
    market, plan = case("static")
    good, bad = envy_freeness(market, plan, gap=GAP), envy_freeness(market, np.zeros((4, 6)), gap=GAP)
    assert str(feasibility(market, 2 * plan.allocation)).startswith(
        "allocation within capacities: FAILS, off by 1.0e+00, 6.2e-14 allowed (good"
    )
    assert "\n" not in str(bad)
    assert bool(good)
    assert good.require() is good
    broken = certify(market, CORRUPTIONS["one buyer left out"](market, plan)[0], gap=GAP)
    lines = str(broken).splitlines()
    assert lines[0].split() == ["statement", "holds", "violation", "tolerance", "witness"]
    assert len(lines) == len(broken) + 1
    with pytest.raises(PropertyFails, match="no envy: FAILS") as raised:
        broken.require()
    assert raised.value.failures == broken.failures
    assert not Certificate(())
    with pytest.raises(PropertyFails):
        CheckResult(statement="s", source="", holds=False, violation=1.0).require()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"allocation": np.zeros((4, 5))}, r"allocation = 'array of shape \(4, 5\)': must have shape \(4, 6\)"),
        ({"allocation": "all"}, "allocation"),
        ({"allocation": None}, "allocation"),
        ({"allocation": np.zeros((4, 6), dtype=bool)}, "allocation = bool: must be numbers"),
        (
            {"allocation": np.zeros((4, 6)), "prices": [1.0]},
            r"prices = 'array of shape \(1,\)': must have shape \(6,\)",
        ),
        ({"allocation": np.zeros((4, 6)), "gap": -1.0}, "gap = -1.0: at least 0"),
        ({"allocation": np.zeros((4, 6)), "gap": math.nan}, "gap = nan: must be finite"),
    ],
)
def test_bad_input_names_the_field(arguments, message):
    market, _ = case("static")
    with pytest.raises(eq.InvalidInput, match=message):
        envy_freeness(market, **arguments)


def test_only_markets_are_judged():
    with pytest.raises(eq.InvalidInput, match="market = 'int': must be a FisherMarket or a VolatileFisherMarket"):
        certify(3, [[1.0]])


@pytest.mark.parametrize("family", ["static", "sparse", "ces +", "ces -", "cobb-douglas"])
def test_an_amount_below_nothing_is_of_no_use_and_does_no_harm(family):
    """Rounding of a solver: of less than nothing no power can be taken, and no utility comes from it."""
    market, plan = case(family)
    allocation = plan.allocation if isinstance(plan.allocation, np.ndarray) else plan.allocation.toarray()
    allocation = np.where(allocation > 1e-12, allocation, -1e-18)
    assert (allocation < 0).any()
    assert certify(market, allocation, gap=GAP)
    below = MarketState(market, np.where(allocation > 0, allocation, -10.0))
    assert below.utilities == pytest.approx(plan.utilities)


@pytest.mark.parametrize("amount", [1e308, 1e-320, -1e308])
@pytest.mark.parametrize("family", FAMILIES)
def test_absurd_numbers_are_violations_and_no_crash(family, amount):
    market, plan = case(family)
    allocation = np.full((4, *market.capacities.shape), amount)
    assert not certify(market, csr_array(allocation) if family == "sparse" else allocation, gap=GAP)
    assert not budget_clearing(market, plan.allocation, np.full(market.capacities.shape, amount), gap=GAP)


def test_the_callers_own_matrix_is_left_as_it_is():
    market, _ = case("sparse")
    given = csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3, 3, 3, 3])), shape=(4, 6))
    feasibility(market, given)
    assert given.indices.tolist() == [2, 0, 0]


# -- Names -------------------------------------------------------------------------------------------------------------


def test_the_package_exports_every_property_of_a_certificate():
    assert set(validation.__all__) >= {check.__name__ for check in PROPERTIES}
    assert all(getattr(validation, check.__name__) is check for check in PROPERTIES)
    assert set(validation.__all__) <= set(dir(validation))
    for name in validation.__all__:
        assert getattr(validation, name).__module__.startswith("equipoise.validation.")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = validation.no_such_name


def test_former_names_warn():
    with pytest.warns(DeprecationWarning, match="CheckResult"):
        assert certificates.Finding is CheckResult
    failure = CheckResult(statement="s", source="", holds=False, violation=1.0)
    with pytest.warns(DeprecationWarning, match="failures"):
        assert PropertyFails((failure,)).findings == (failure,)
