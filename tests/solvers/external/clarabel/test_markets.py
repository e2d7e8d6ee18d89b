"""CES and Cobb-Douglas markets on Clarabel: closed forms, limits of the families, edges, and honest ends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import SOON_S

import equipoise as eq

pytest.importorskip("clarabel", reason="clarabel is not installed")
import itertools

from equipoise.solvers.external.clarabel import markets as module
from equipoise.solvers.external.clarabel.market_cones import SMALL_RHO, MarketCones

Reason, Limit = eq.Reason, eq.Limit
GAP = 1e-6
RHOS = [0.9, 0.5, 0.1, 0.01, 1e-6, -1e-6, -0.01, -0.5, -1.0, -5.0]


def normal(weights):
    sums = weights.sum(axis=1, keepdims=True)
    return weights / np.where(sums > 0, sums, 1.0)


def drawn(seed, shape=(5, 3, 4), *, rho=None, orders=0.5):
    """Lognormal weights and productivity, a fifth of them 0; rho None: Cobb-Douglas."""
    rng = np.random.default_rng(seed)
    weights = np.exp(rng.normal(size=shape)) * (rng.random(shape) >= 0.2)
    weights[~weights.any(axis=(1, 2)), 0, 0] = 1.0
    productivity = np.exp(rng.normal(size=(shape[0], shape[2]))) * (rng.random((shape[0], shape[2])) >= 0.1)
    idle = ~((weights.any(axis=1)) & (productivity > 0)).any(axis=1)
    productivity[idle] = 1.0
    return eq.VolatileFisherMarket(
        utilities=normal(weights),
        budgets=np.exp(orders * rng.normal(size=shape[0])),
        capacities=np.exp(rng.normal(size=shape[1:])),
        family="cobb-douglas" if rho is None else "ces",
        rho=rho,
        productivity=productivity,
    )


def solve(market, **options):
    return eq.solve(market, "clarabel", **{"rel_gap": GAP, **options})


def of_family(market, family, rho=None):
    return eq.VolatileFisherMarket(
        utilities=market.utilities, budgets=market.budgets, capacities=market.capacities,
        family=family, rho=rho, productivity=market.productivity,
    )  # fmt: skip


# -- Closed forms ------------------------------------------------------------------------------------------------------


def test_cobb_douglas_in_one_round_costs_what_the_weights_bid():
    weights = normal(np.array([[[2.0], [1.0], [1.0]], [[1.0], [0.0], [3.0]], [[1.0], [1.0], [0.0]]]))
    budgets, capacities = np.array([1.0, 2.0, 5.0]), np.array([[4.0], [0.5], [1.0]])
    market = eq.VolatileFisherMarket(
        utilities=weights, budgets=budgets, capacities=capacities, family="cobb-douglas", productivity=[[3], [1], [2]]
    )
    plan = solve(market, rel_gap=1e-8).require_optimal()
    prices = np.einsum("i,ijt->jt", budgets, weights) / capacities
    assert plan.prices == pytest.approx(prices, rel=1e-5)
    assert plan.allocation == pytest.approx(budgets[:, None, None] * weights / prices, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("rho", RHOS)
def test_two_mirrored_buyers_pay_the_same_for_both_goods(rho):
    """Prices are 1; of the good of weight w each buys w^sigma / (w^sigma + (1 - w)^sigma)."""
    weights = np.array([[[0.7], [0.3]], [[0.3], [0.7]]])
    plan = solve(
        eq.VolatileFisherMarket(utilities=weights, budgets=[1.0, 1.0], family="ces", rho=rho), rel_gap=1e-8
    ).require_optimal()
    part = 1.0 / (1.0 + (0.3 / 0.7) ** (1.0 / (1.0 - rho)))
    assert plan.prices == pytest.approx(np.ones((2, 1)), rel=1e-4)
    assert plan.allocation[0, :, 0] == pytest.approx([part, 1.0 - part], abs=2e-4)


@pytest.mark.parametrize("rho", [None, 0.5, 0.01, -2.0])
def test_equal_buyers_get_what_their_budgets_buy_of_everything(rho):
    one = drawn(3, (1, 3, 4), rho=rho)
    budgets = np.array([1.0, 2.0, 5.0])
    market = eq.VolatileFisherMarket(
        utilities=np.repeat(one.utilities, 3, axis=0), budgets=budgets, capacities=one.capacities,
        family=one.family, rho=rho, productivity=np.repeat(one.productivity, 3, axis=0),
    )  # fmt: skip
    result = solve(market)
    whole = one.utilities_at(one.capacities[None])[0]
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(float(budgets @ np.log(budgets / 8.0 * whole)), abs=8 * GAP)


@pytest.mark.parametrize("rho", [None, *RHOS])
def test_a_buyer_spends_only_in_rounds_of_the_cheapest_utility(rho):
    for seed in range(4):
        market = drawn(seed, rho=rho)
        result = solve(market, rel_gap=1e-8) if rho is None else solve(market, rel_gap=1e-7)
        plan = result.require_optimal()
        spent = np.einsum("ijt,jt->it", plan.allocation, plan.prices)
        costs = market.arithmetic.unit_costs(plan.prices)
        dear = np.where(np.isfinite(costs), costs / costs.min(axis=1, keepdims=True) - 1.0, 0.0)
        # To first order the gap holds every unit of money that goes where utility is dear, by how much it is.
        assert (spent * np.minimum(dear, 1.0)).sum() <= 3 * (result.gap + 1e-12) * market.total_budget
        assert plan.spending == pytest.approx(market.budgets, rel=1e-2)


# -- Random markets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [None, 0.999, 0.031, 0.029, -0.029, -0.031, -20.0, *RHOS])
def test_random_markets_close(rho):
    for seed in range(6):
        market = drawn(seed, rho=rho)
        result = solve(market)
        assert result.termination.reason is Reason.OPTIMAL, (seed, result)
        assert result.residuals.worst <= 1e-9
        assert result.gap <= GAP


@pytest.mark.parametrize("rho", [None, 0.5, -1.0])
def test_budgets_over_twelve_orders_close(rho):
    for seed in range(4):
        market = drawn(seed, rho=rho, orders=6.0)
        assert solve(market).termination.reason is Reason.OPTIMAL


@given(
    seed=st.integers(0, 10_000),
    rho=st.sampled_from([None, 0.9, 0.5, 0.02, -0.02, -1.0, -5.0]),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
)
def test_no_split_is_better_than_the_bound(seed, rho, shape):
    market = drawn(seed, shape, rho=rho)
    result = solve(market)
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(shape[0]), size=shape[1:]).transpose(2, 0, 1)
    for allocation in (shares, (market.budgets / market.total_budget)[:, None, None] * np.ones(shape)):
        welfare = market.welfare(market.utilities_at(allocation * market.capacities))
        assert welfare <= result.bound + 1e-12 * market.total_budget
    assert result.gap <= GAP


# -- Limits of the families --------------------------------------------------------------------------------------------


def test_welfare_rises_with_rho_through_cobb_douglas():
    for seed in range(3):
        base = drawn(seed, rho=0.5)
        value = [solve(of_family(base, "ces", rho)).objective for rho in (-5.0, -1.0, -0.02, -1e-4)]
        value.append(solve(of_family(base, "cobb-douglas")).objective)
        value += [solve(of_family(base, "ces", rho)).objective for rho in (1e-4, 0.02, 0.5, 0.9)]
        assert all(after >= before - 2 * GAP * base.total_budget for before, after in itertools.pairwise(value))
        # At rho = 1e-4 all three are one to 1e-3.
        assert value[5] - value[3] <= 1e-3 * base.total_budget


def test_near_one_it_is_the_linear_market():
    """(sum w x^rho)^(1/rho) lies between least^(1/rho - 1) and 1 times sum w x."""
    rho = 0.999
    for seed in range(3):
        base = drawn(seed, rho=rho)
        worth = base.utilities * base.productivity[:, None, :]
        linear = eq.VolatileFisherMarket(
            utilities=worth, budgets=base.budgets, capacities=base.capacities, family="linear"
        )
        best, here = eq.solve(linear, "highs", rel_gap=GAP).objective, solve(base).objective
        least = base.utilities[base.utilities > 0].min()
        slack = 2 * GAP * base.total_budget
        assert best + base.total_budget * (1 / rho - 1) * math.log(least) - slack <= here <= best + slack


def test_far_below_zero_it_is_the_leontief_market():
    """(sum w x^rho)^(1/rho) lies between 1 and least^(1/rho) times min x."""
    rho = -50.0
    for seed in range(3):
        base = drawn(seed, rho=rho)
        with np.errstate(divide="ignore", invalid="ignore"):
            needs = np.where(base.arithmetic.has_demand, 1.0 / base.productivity[:, None, :], 0.0)
        leontief = eq.VolatileFisherMarket(
            requirements=needs, budgets=base.budgets, capacities=base.capacities, family="leontief"
        )
        best, here = eq.solve(leontief, "highs", rel_gap=GAP).objective, solve(base).objective
        least = base.utilities[base.utilities > 0].min()
        slack = 2 * GAP * base.total_budget
        assert best - slack <= here <= best + base.total_budget * math.log(least) / rho + slack


# -- Edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["ces", "cobb-douglas"])
def test_one_resource_makes_every_family_linear(family):
    base = drawn(1, (4, 1, 3), rho=-1.0)
    market = of_family(base, family, -1.0 if family == "ces" else None)
    worth = base.utilities * base.productivity[:, None, :]
    linear = eq.VolatileFisherMarket(utilities=worth, budgets=base.budgets, capacities=base.capacities, family="linear")
    best = eq.solve(linear, "highs", rel_gap=GAP).objective
    assert solve(market).objective == pytest.approx(best, abs=2 * GAP * base.total_budget)
    assert MarketCones.of(market, None).powers == 0


def test_what_nobody_wants_is_free_and_rounds_that_serve_nobody_are_left_out():
    weights = np.zeros((2, 3, 3))
    weights[0, 0, 0] = weights[1, 1, 0] = 1.0
    weights[:, 0, 1], weights[:, 1, 1] = 0.25, 0.75
    weights[:, :, 2] = 1 / 3
    market = eq.VolatileFisherMarket(
        utilities=weights, budgets=[1.0, 3.0], family="ces", rho=0.5, productivity=[[1, 1, 0], [1, 1, 0]]
    )
    plan = solve(market).require_optimal()
    assert plan.prices[2].tolist() == [0.0, 0.0, 0.0]
    assert plan.prices[:, 2].tolist() == [0.0, 0.0, 0.0]
    assert plan.allocation[:, :, 2].max() == 0.0


def test_one_buyer_takes_everything_it_wants():
    market = drawn(5, (1, 3, 4), rho=0.3)
    plan = solve(market).require_optimal()
    assert plan.allocation[0] == pytest.approx(np.where(market.in_demand, market.capacities, 0.0), rel=1e-5)


# -- Options, and honest ends ------------------------------------------------------------------------------------------


def test_no_time_at_all_is_no_plan():
    result = solve(drawn(0, rho=0.5), time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert result.plan is None


def test_a_limit_of_iterations_leaves_a_plan_with_a_true_gap():
    market = drawn(0, (8, 3, 4), rho=0.5)
    best = solve(market).objective
    result = solve(market, backend_options={"clarabel": {"max_iter": 4}})
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.ITERATIONS)
    assert result.objective <= best + GAP * market.total_budget
    assert result.bound >= best
    assert len(result.history) == 2  # it is not repeated


def test_a_short_time_limit_leaves_a_plan_with_a_true_gap():
    market = drawn(0, (200, 3, 12), rho=0.5)
    result = solve(market, time_limit=0.1)
    assert result.termination.limit in (Limit.TIME, None)
    assert result.wall_time < SOON_S
    if result.plan is not None:
        assert result.bound >= result.objective
        assert result.residuals.worst <= 1e-9


def test_what_clarabel_does_not_solve_is_told(monkeypatch):
    class Lost:
        status, x, z = "NumericalError", np.full(1000, np.nan), np.full(1000, np.nan)

    market = drawn(2, rho=-0.5)
    best = solve(market).objective
    monkeypatch.setattr(module, "solved", lambda *args: Lost)
    result = solve(market)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.METHOD)
    assert "Clarabel: NumericalError" in result.termination.message
    assert result.objective <= best <= result.bound


def test_a_later_solve_closes_what_the_first_left_open(monkeypatch):
    """Next to rho = 0 one solve of the Cobb-Douglas market that touches it is not enough."""
    market = drawn(4, (8, 3, 4), rho=0.9 * SMALL_RHO)
    assert solve(market, rel_gap=1e-8).termination.reason is Reason.OPTIMAL
    monkeypatch.setattr(module, "ATTEMPTS", module.ATTEMPTS[:1])
    assert solve(market, rel_gap=1e-8).termination.reason is Reason.FEASIBLE


def test_sharing_spends_every_budget_and_brings_a_rough_plan_nearer(monkeypatch):
    for rho in (0.5, None, -3.0):
        market = drawn(7, rho=rho)

        def rough(market=market):
            return solve(market, rel_gap=0.0, backend_options={"clarabel": {"max_iter": 8}})

        plan = rough().plan
        assert module.spending(market, plan.allocation, plan.prices).sum(axis=(1, 2)) == pytest.approx(market.budgets)
        with monkeypatch.context() as patched:
            patched.setattr(module, "SHARINGS", 0)
            without = rough().gap
        assert rough().gap < 0.9 * without


def test_own_options_are_checked_and_common_ones_not_repeated(capfd):
    market = drawn(0, rho=0.5)
    for own, said in (({"no_such_setting": 1}, "no such setting"), ({"tol_gap_rel": 1.0}, "use rel_gap= instead")):
        with pytest.raises(eq.InvalidInput, match=said):
            solve(market, backend_options={"clarabel": own})
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        solve(market, warm_start=solve(market).plan)
    assert capfd.readouterr().out == ""
    solve(market, log=True)
    assert "iter" in capfd.readouterr().out


def test_the_same_call_gives_the_same_plan_in_this_process_and_in_one_of_its_own():
    market = drawn(6, rho=-1.0)
    here, again, there = solve(market), solve(market), solve(market, isolate=True)
    assert here.plan.allocation.tobytes() == again.plan.allocation.tobytes() == there.plan.allocation.tobytes()
    assert here.plan.prices.tobytes() == there.plan.prices.tobytes()
