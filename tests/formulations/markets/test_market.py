"""What holds for every market: the bound that prices prove, the prices it normalises, the plans it makes sound."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

import equipoise as eq
from equipoise.validation.strategies.programs import allocations, fisher_markets, volatile_markets

FAMILIES = ("linear", "leontief", "ces", "cobb-douglas")
MARKETS = st.one_of(fisher_markets(), *(volatile_markets(family) for family in FAMILIES))
PRICES = st.sampled_from([1.0, 0.0, 0.5, 3.0, 7.0, 1e-300, 1e300, math.inf, math.nan, -1.0])


def prices_for(data, market):
    count = market.capacities.size
    drawn = data.draw(st.lists(PRICES, min_size=count, max_size=count))
    return np.array(drawn).reshape(market.capacities.shape)


def scale(market, utilities):
    """What rounding in a sum of B log U is measured by."""
    return math.fsum(market.budgets * (1.0 + np.abs(np.log(market.budgets)) + np.abs(np.log(utilities))))


def entries(allocation):
    return allocation if isinstance(allocation, np.ndarray) else allocation.toarray()


@given(st.data(), MARKETS)
def test_no_allocation_beats_the_bound_of_any_prices(data, market):
    """Weak duality, whatever the prices: zeros, infinities, and what is no number at all."""
    utilities = market.utilities_at(data.draw(allocations(market, serving=True)))
    bound = market.bound_at(prices_for(data, market))
    assert math.isfinite(bound)
    assert bound >= market.welfare(utilities) - 1e-13 * scale(market, utilities)


@given(st.data(), MARKETS)
def test_the_bound_is_of_the_prices_ratios_alone(data, market):
    prices = prices_for(data, market)
    some = np.where(np.isfinite(prices) & (prices > 1e-9) & (prices < 1e9), prices, 1.0)
    assert market.bound_at(1e200 * some) == pytest.approx(market.bound_at(some), rel=1e-12, abs=1e-12)
    assert market.bound_at(1e-200 * some) == pytest.approx(market.bound_at(some), rel=1e-12, abs=1e-12)


@given(st.data(), MARKETS)
def test_normal_prices_cost_all_money_and_only_wanted_goods_have_one(data, market):
    prices = market.normal_prices(prices_for(data, market))
    assert math.fsum((prices * market.capacities).ravel()) == pytest.approx(market.total_budget, rel=1e-14)
    assert ((prices > 0) == market.in_demand).all()
    assert np.isfinite(prices).all()
    assert market.normal_prices(prices) == pytest.approx(prices, rel=1e-13)


@given(st.data(), MARKETS)
def test_the_price_of_what_nobody_wants_changes_nothing(data, market):
    prices = prices_for(data, market)
    dear = np.where(market.in_demand, prices, data.draw(PRICES))
    assert market.normal_prices(dear).tolist() == market.normal_prices(prices).tolist()
    assert market.bound_at(dear) == market.bound_at(prices)


def test_prices_and_capacities_far_apart_do_not_overflow():
    market = eq.FisherMarket([[1e-200, 1.0]], [1.0], [1e200, 1.0])
    prices = market.normal_prices(np.array([1e300, 1e300]))
    assert prices * market.capacities == pytest.approx([1.0, 1e-12 / 2], rel=1e-9)


@given(st.data(), MARKETS)
def test_plans_are_made_sound(data, market):
    """Too much is cut down to the capacity, less than nothing to nothing; prices are normal, the rest recomputed."""
    x = data.draw(allocations(market))
    wild = 3.0 * entries(x)
    wild[0] -= 0.25 * market.capacities
    plan = market.equilibrium(csr_array(wild) if not isinstance(x, np.ndarray) else wild)
    got = entries(plan.allocation)
    assert (got >= 0).all()
    assert (got.sum(axis=0) <= market.capacities * (1 + 1e-15)).all()
    kept = np.maximum(wild, 0.0)
    cut = np.maximum(kept.sum(axis=0) / market.capacities, 1.0)
    assert got == pytest.approx(kept / cut, rel=1e-14)
    assert type(plan.allocation) is type(x)
    assert plan.prices.shape == market.capacities.shape
    assert market.normal_prices(plan.prices) == pytest.approx(plan.prices, rel=1e-13)
    assert plan.utilities == pytest.approx(market.utilities_at(got), rel=1e-14)
    assert plan.spending == pytest.approx((got * plan.prices).reshape(len(got), -1).sum(axis=1), rel=1e-13)
    objective, residuals = market.evaluate(plan)
    assert residuals.worst <= 1e-15
    assert objective == market.welfare(plan.utilities)


@given(st.data(), MARKETS)
def test_a_sound_allocation_is_kept_as_it_is(data, market):
    x = data.draw(allocations(market))
    plan = market.equilibrium(x)
    assert plan.allocation is x or np.shares_memory(plan.allocation.data, x.data) or not x.nnz
    assert repr(plan) == f"<Equilibrium: {market.num_buyers} buyers, {market.capacities.size} goods>"


@given(st.data(), MARKETS)
def test_violations_are_told_as_shares_of_the_capacity(data, market):
    plan = market.equilibrium(data.draw(allocations(market)), market.capacities)
    x = entries(plan.allocation)
    place = tuple(data.draw(st.integers(0, size - 1)) for size in market.capacities.shape)
    beyond, below, none = x.copy(), x.copy(), x.copy()
    beyond[0, *place] += market.capacities[place] * (1.25 - x[:, *place].sum() / market.capacities[place])
    below[0, *place] = -0.5 * market.capacities.min()
    none[0, *place] = math.nan
    assert market.evaluate(dataclasses.replace(plan, allocation=beyond))[1].row == pytest.approx(0.25, rel=1e-12)
    assert market.evaluate(dataclasses.replace(plan, allocation=below))[1].bound == pytest.approx(0.5, rel=1e-12)
    unsound = market.evaluate(dataclasses.replace(plan, allocation=none))[1]
    assert unsound.bound == unsound.row == unsound.worst == math.inf


SMALL = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        ([[1.0, math.nan], [0.0, 1.0]], "allocation[0, 1] = nan: must be finite"),
        (np.array([[1.0, math.nan], [0.0, 1.0]]), "allocation = nan: must be finite, and its sums too"),
        (np.array([[1.0, math.inf], [0.0, 1.0]]), "allocation = inf: must be finite, and its sums too"),
        (np.full((2, 2), 1e308), "allocation = 1e+308: must be finite, and its sums too"),
        (csr_array([[1.0, math.nan], [0.0, 1.0]]), "allocation = nan: must be finite, and its sums too"),
        (np.eye(3), "allocation = (3, 3): must have shape (2, 2)"),
        (csr_array(np.eye(3)), "allocation = (3, 3): must have shape (2, 2)"),
        (np.ones(2), "allocation = (2,): must have shape (2, 2)"),
        ([1.0, 1.0], "allocation = 'array of shape (2,)': must have 2 dimension(s)"),
        ("all", "allocation = 'all': must be a sequence of numbers, not text"),
        (None, "allocation = None: must be a sequence of numbers"),
        ([[True, 0.0], [0.0, 1.0]], "allocation[0, 0] = True: must be a number"),
    ],
)
def test_what_is_no_allocation_is_refused(allocation, message):
    with pytest.raises(eq.InvalidInput) as caught:
        SMALL.equilibrium(allocation)
    assert str(caught.value) == message


def test_allocations_come_in_many_types():
    want = [[1.0, 0.0], [0.0, 1.0]]
    for given_ in (
        want,
        np.eye(2, dtype=np.int64),
        np.eye(2, dtype=np.float32),
        csr_array(np.eye(2)),
        csr_matrix(want),
    ):
        assert entries(SMALL.equilibrium(given_).allocation).tolist() == want
        assert SMALL.equilibrium(given_, [1, 2]).prices.tolist() == [1.0, 2.0]
    twice = SMALL.equilibrium(csr_matrix(2 * np.eye(2)))
    assert entries(twice.allocation).tolist() == want


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("prices", np.ones(3), "plan.prices = (3,): must have shape (2,)"),
        ("prices", 1.0, "plan.prices = (): must have shape (2,)"),
        ("allocation", np.eye(3), "plan.allocation = (3, 3): must have shape (2, 2)"),
    ],
)
def test_a_plan_of_another_market_is_refused(field, value, message):
    plan = SMALL.equilibrium(np.eye(2))
    with pytest.raises(eq.InvalidInput) as caught:
        SMALL.evaluate(dataclasses.replace(plan, **{field: value}))
    assert str(caught.value) == message
    if field == "prices":
        with pytest.raises(eq.InvalidInput, match=r"^prices = "):
            SMALL.equilibrium(np.eye(2), value)


def test_welfare_is_weighted_by_budgets_and_nothing_is_worth_no_welfare():
    assert SMALL.welfare(np.array([math.e, math.e**2])) == pytest.approx(5.0, rel=1e-15)
    for nothing in (0.0, -1.0, math.nan):
        assert SMALL.welfare(np.array([1.0, nothing])) == -math.inf
    assert SMALL.gap_scale(123.0) == SMALL.total_budget == 3.0


@given(st.data(), MARKETS)
def test_gaps_are_free_of_units(data, market):
    """The bound less the welfare is the same whatever units budgets' owners count utility in."""
    if isinstance(market, eq.FisherMarket) and not market.is_sparse:
        twin = dataclasses.replace(market, utilities=market.utilities * 1024.0)
    elif not isinstance(market, eq.FisherMarket) and market.family in ("ces", "cobb-douglas"):
        twin = dataclasses.replace(market, productivity=market.productivity * 1024.0)
    else:
        return
    plan = market.equilibrium(data.draw(allocations(market, serving=True)))
    gap = market.proved_bound(plan) - market.welfare(plan.utilities)
    its = twin.proved_bound(plan) - twin.welfare(twin.utilities_at(plan.allocation))
    assert its == pytest.approx(gap, abs=1e-13 * (scale(market, plan.utilities) + 10 * market.total_budget))


@st.composite
def far_markets(draw, family):
    """Draw data over 300 orders of magnitude."""

    def powers(shape, most):
        size = math.prod(shape)
        some = st.sampled_from([0, -most, most, -most // 3, most // 7])
        exponents = draw(st.lists(some, min_size=size, max_size=size))
        return 10.0 ** np.array(exponents, dtype=np.float64).reshape(shape)

    shape = buyers, resources, rounds = tuple(draw(st.integers(1, 3)) for _ in range(3))
    capacities = powers((resources, rounds), draw(st.sampled_from([0, 100])))
    given_ = {"budgets": powers((buyers,), 6), "capacities": capacities}
    if family == "static":
        return eq.FisherMarket(powers((buyers, resources), 150), given_["budgets"], capacities[:, 0])
    if family in ("linear", "leontief"):
        field = "utilities" if family == "linear" else "requirements"
        return eq.VolatileFisherMarket(**{field: powers(shape, 150)}, family=family, **given_)
    weights = powers(shape, 12)
    given_ |= {"utilities": weights / weights.sum(axis=1, keepdims=True), "productivity": powers((buyers, rounds), 150)}
    rho = {"rho": draw(st.sampled_from([1e-6, -1e-6, 0.999999, -1e3]))} if family == "ces" else {}
    return eq.VolatileFisherMarket(family=family, **rho, **given_)


@pytest.mark.parametrize("family", ["static", *FAMILIES])
@given(data=st.data())
def test_far_scales_give_numbers(family, data):
    market = data.draw(far_markets(family))
    x = np.broadcast_to(market.capacities / market.num_buyers, (market.num_buyers, *market.capacities.shape))
    plan = market.equilibrium(x)
    assert (np.isfinite(plan.utilities) & (plan.utilities > 0)).all()
    assert np.isfinite(plan.prices).all()
    assert plan.spending.sum() == pytest.approx(market.total_budget, rel=1e-9)
    welfare = market.evaluate(plan)[0]
    assert math.isfinite(welfare)
    for prices in (plan.prices, prices_for(data, market)):
        bound = market.bound_at(prices)
        assert not math.isnan(bound)
        assert bound >= welfare - 1e-13 * scale(market, plan.utilities)
    assert math.isfinite(market.proved_bound(plan))
