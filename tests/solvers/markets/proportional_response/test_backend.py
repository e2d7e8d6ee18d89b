"""The proportional_response backend: rounds of bids, the path over prices, and the same rounds on other arrays."""

import math
import types

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import equipoise as eq
from equipoise.formulations.errors import InvalidInput
from equipoise.solvers.deadline import Deadline
from equipoise.solvers.markets.proportional_response import array_api as response_arrays
from equipoise.solvers.markets.proportional_response import backend
from equipoise.solvers.markets.proportional_response import linear as response_linear
from equipoise.solvers.markets.proportional_response.array_api import proportional_response
from equipoise.solvers.markets.proportional_response.bids import DEPTH, Lists, State, Table
from equipoise.solvers.markets.proportional_response.linear import respond
from equipoise.solvers.markets.proportional_response.plain import respond_rounds
from equipoise.solvers.markets.proportional_response.price_path import RoundCosts
from equipoise.solvers.result import Limit, Reason
from equipoise.validation.instances.markets import random_fisher_market

NAME = "proportional_response"


def solve(market, **options):
    return eq.solve(market, backend=NAME, **options)


def gap_of(market, plan):
    """(D - P) / sum B from the market's own arithmetic, and that the plan keeps to the capacities."""
    welfare, residuals = market.evaluate(plan)
    assert residuals.worst <= 1e-9
    return (market.proved_bound(plan) - welfare) / market.total_budget


def linear_market(rng, sparse=False):
    N, K = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    worth = rng.integers(0, 4, (N, K)) * rng.choice([1.0, rng.random()])
    worth[~worth.any(axis=1), rng.integers(K)] = 1.0
    budgets, capacities = rng.integers(1, 5, N).astype(float), rng.integers(1, 4, K) / 2.0
    return eq.FisherMarket(sp.csr_array(worth) if sparse else worth, budgets, capacities)


def weighted_market(rng, family, rho=None, shape=None, spread=0.0):
    N, J, T = shape or (int(rng.integers(1, 8)), int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    weights = rng.random((N, J, T)) * (rng.random((N, J, T)) < 0.7)
    weights[~weights.any(axis=(1, 2)), 0, 0] = 1.0
    total = weights.sum(axis=1, keepdims=True)
    return eq.VolatileFisherMarket(
        utilities=weights / np.where(total > 0, total, 1.0),
        budgets=10.0 ** rng.uniform(-spread, spread, N),
        capacities=np.exp(rng.normal(size=(J, T))),
        productivity=np.exp(rng.normal(size=(N, T))),
        family=family,
        rho=rho,
    )


def entries_of(market):
    return Lists.of(market) if market.is_sparse else Table(market)


def bids_of(entries, state):
    prices, linear = entries.respond(state)
    shares = entries.shares(state, np.maximum(prices, 1e-30))
    if not isinstance(shares, np.ndarray):
        shares = sp.csr_array(shares, shape=(len(entries.budgets), len(prices))).toarray()
    return shares * prices, prices, linear


# -- Rounds of bids in a linear market ---------------------------------------------------------------------------------


def plain_rounds(market, rounds):
    """Proportional response in plain Python: bids of each round, for budgets that sum to 1."""
    N, K = market.utilities.shape
    u = [[float(market.utilities[i, k] * market.capacities[k]) for k in range(K)] for i in range(N)]
    B = [float(b) / math.fsum(market.budgets) for b in market.budgets]
    bids = [[B[i] * u[i][k] / sum(u[i]) for k in range(K)] for i in range(N)]
    yield bids
    for _ in range(rounds):
        prices = [sum(bids[i][k] for i in range(N)) for k in range(K)]
        gains = [[u[i][k] * bids[i][k] / prices[k] if bids[i][k] else 0.0 for k in range(K)] for i in range(N)]
        bids = [[B[i] * gains[i][k] / sum(gains[i]) for k in range(K)] for i in range(N)]
        yield bids


@pytest.mark.parametrize("sparse", [False, True])
def test_rounds_equal_those_of_plain_python(sparse):
    for seed in range(5):
        market = linear_market(np.random.default_rng(seed), sparse)
        entries, state = entries_of(market), State(1.0, np.zeros(market.num_goods))
        for twin in plain_rounds(market, 3):
            bids, prices, _ = bids_of(entries, state)
            np.testing.assert_allclose(bids, twin, rtol=1e-10, atol=1e-15)
            state = State(state.theta + 1.0, state.weights + np.log(np.maximum(prices, 1e-30)))


@given(seed=st.integers(0, 2**32), sparse=st.booleans())
def test_every_round_spends_the_budgets_and_a_plain_one_never_raises_the_potential(seed, sparse):
    market = linear_market(np.random.default_rng(seed), sparse)
    entries, state, last = entries_of(market), State(1.0, np.zeros(market.num_goods)), math.inf
    wanted = np.asarray(market.in_demand)
    for _ in range(12):
        bids, prices, linear = bids_of(entries, state)
        np.testing.assert_allclose(bids.sum(axis=1), market.budgets / market.total_budget, rtol=1e-12)
        np.testing.assert_allclose(bids.sum(axis=0), prices, rtol=1e-12, atol=1e-25)
        potential = float(prices[wanted] @ np.log(prices[wanted])) - linear
        assert potential <= last + 1e-14
        last = potential
        state = State(state.theta + 1.0, state.weights + np.log(np.maximum(prices, 1e-30)))


def test_what_a_round_is_judged_to_be_worth_is_what_the_market_says():
    rng = np.random.default_rng(3)
    for sparse in (False, True):
        market = linear_market(rng, sparse)
        entries, state = entries_of(market), State(7.0, rng.normal(size=market.num_goods))
        bids, prices, _ = bids_of(entries, state)
        log_prices = np.log(np.maximum(prices, 1e-30))
        bound, welfare = entries.bound_and_welfare(state, log_prices)
        shares = bids / np.where(prices > 0, prices, 1.0) * market.capacities
        plan = market.equilibrium(sp.csr_array(shares) if sparse else shares, prices / market.capacities)
        unit = market.budgets @ np.log(market.largest * market.budgets / market.total_budget)
        assert market.total_budget * welfare + unit == pytest.approx(market.welfare(plan.utilities), abs=1e-10)
        assert market.total_budget * bound + unit == pytest.approx(market.proved_bound(plan), abs=1e-10)
        assert entries.bound(log_prices) == pytest.approx(bound, abs=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_lists_hold_every_bid_that_matters_and_no_other(sparse):
    dense = random_fisher_market("lognormal", 60, 25, 4)
    market = eq.FisherMarket(sp.csr_array(dense.utilities), dense.budgets) if sparse else dense
    entries, state = entries_of(market), State(1.0, np.zeros(25))
    for _ in range(30):
        bids, prices, _ = bids_of(entries, state)
        state = State(state.theta + 1.0, state.weights + np.log(prices))
    bids, prices, _ = bids_of(entries, state)
    lists = entries.narrowed(state, np.log(prices), most=1.0)
    floor = math.exp(-DEPTH)
    matters = (bids >= floor * bids.max(axis=1, keepdims=True)) | (bids >= floor * prices)
    held = sp.csr_array((np.ones(len(lists.good)), lists.good, lists.starts), shape=bids.shape).toarray() > 0
    assert (held == matters).all()
    assert 0 < held.sum() < held.size
    assert entries.narrowed(state, np.log(prices), most=held.sum() / held.size * 0.9) is None
    fewer, fewer_prices, _ = bids_of(lists, state)
    np.testing.assert_allclose(fewer_prices, prices, rtol=1e-3)
    assert fewer[~matters].max() == 0.0


def test_a_good_left_out_of_the_lists_is_found_by_the_proof(monkeypatch):
    market = random_fisher_market("uniform", 300, 40, 1)
    monkeypatch.setattr(
        "equipoise.solvers.markets.proportional_response.bids.DEPTH", 0.3
    )  # lists that leave out what matters
    monkeypatch.setattr(response_linear, "LIST_SHARE", 1.0)
    result = solve(market, rel_gap=1e-5, backend_options={NAME: {"max_rounds": 400}})
    own = gap_of(market, result.plan)
    assert own == pytest.approx(result.gap, abs=1e-12)
    assert (own <= 1e-5) == (result.termination.reason is Reason.OPTIMAL)


def test_whenever_the_rounds_end_the_gap_is_that_of_the_market():
    market, restarts = random_fisher_market("lognormal", 60, 40, 0), 0
    for rounds in (0, 1, 7, 60, 61, 62, 63, 200, 201, 202):
        outcome = respond(
            Table(market),
            State(1.0, np.zeros(40)),
            variant="accelerated",
            gap=0.0,
            deadline=Deadline.of(eq.Options()),
            max_rounds=rounds,
            report=lambda *_: None,
        )
        shares = outcome.shares
        if not isinstance(shares, np.ndarray):
            shares = sp.csr_array(shares, shape=(60, 40)).toarray()
        plan = market.equilibrium(shares, outcome.prices)
        assert outcome.rounds == rounds
        assert outcome.gap == pytest.approx(gap_of(market, plan), abs=1e-10)
        restarts += outcome.restarts
    assert restarts > 0  # else this market does not test what it should


def test_momentum_needs_a_fraction_of_the_rounds():
    market = random_fisher_market("low_rank", 200, 30, 0)

    def rounds(variant):
        start = State(1.0, np.zeros(30))
        return respond(
            Table(market),
            start,
            variant=variant,
            gap=1e-4,
            deadline=Deadline.of(eq.Options()),
            max_rounds=20_000,
            report=lambda *_: None,
        )

    plain, fast = rounds("plain"), rounds("accelerated")
    assert max(plain.gap, fast.gap) <= 1e-4
    assert 5 * fast.rounds < plain.rounds


# -- The path over prices, and plain rounds, of CES and Cobb-Douglas markets -------------------------------------------


@pytest.mark.parametrize(("family", "rho"), [("cobb-douglas", None), ("ces", 0.6), ("ces", -2.0), ("ces", 1e-5)])
def test_costs_are_those_of_the_family_and_shares_are_their_slopes(family, rho):
    rng = np.random.default_rng(5)
    market = weighted_market(rng, family, rho, shape=(4, 3, 2))
    costs, q = RoundCosts(market), rng.normal(size=(2, 3))
    logs, shares = costs.at(q)
    np.testing.assert_allclose(np.exp(logs), market.arithmetic.unit_costs(np.exp(q).T).T, rtol=1e-9)
    for j in range(3):
        step = np.zeros((2, 3))
        step[:, j] = 1e-6
        with np.errstate(invalid="ignore"):  # where nothing is served, costs are infinite
            slope = (costs.at(q + step)[0] - costs.at(q - step)[0]) / 2e-6
        np.testing.assert_allclose(shares[:, :, j], np.where(costs.served, slope, 0.0), atol=1e-4)


@given(seed=st.integers(0, 2**32), rho=st.sampled_from([None, -5.0, -1.0, -1e-4, 0.3, 0.9]))
def test_small_markets_are_solved_to_a_millionth(seed, rho):
    market = weighted_market(np.random.default_rng(seed), "cobb-douglas" if rho is None else "ces", rho, spread=1.0)
    result = solve(market, rel_gap=1e-6)
    assert result.termination.reason is Reason.OPTIMAL, result.termination
    assert gap_of(market, result.plan) <= 1e-6


@pytest.mark.parametrize("variant", ["accelerated", "plain"])
def test_one_round_of_cobb_douglas_is_its_closed_form_at_once(variant):
    market = weighted_market(np.random.default_rng(2), "cobb-douglas", shape=(6, 3, 1))
    result = solve(market, rel_gap=1e-9, backend_options={NAME: {"variant": variant}})
    prices = np.einsum("i,ijt->jt", market.budgets, market.utilities) / market.capacities
    np.testing.assert_allclose(result.plan.prices, prices, rtol=1e-9)
    assert f"{variant}: 0 " in result.notes[0]


@pytest.mark.parametrize("rho", [0.99, -50.0])
def test_extreme_elasticities_end_with_a_gap_that_is_true(rho):
    for seed in range(3):
        market = weighted_market(np.random.default_rng(seed), "ces", rho, shape=(5, 3, 2), spread=3.0)
        for limit in (5, 1000):
            result = solve(market, rel_gap=1e-6, backend_options={NAME: {"max_rounds": limit}})
            assert gap_of(market, result.plan) == pytest.approx(result.gap, abs=1e-11)
            assert (result.termination.reason is Reason.OPTIMAL) == (result.gap <= 1e-6)
            if result.termination.reason is not Reason.OPTIMAL:
                assert result.termination.limit is Limit.ITERATIONS


@pytest.mark.parametrize(("family", "rho"), [("cobb-douglas", None), ("ces", 0.5), ("ces", -1.0)])
def test_plain_rounds_come_to_the_same_welfare(family, rho):
    market = weighted_market(np.random.default_rng(7), family, rho, shape=(6, 3, 2))
    path = solve(market, rel_gap=1e-8)
    plain = solve(market, rel_gap=1e-4, backend_options={NAME: {"variant": "plain"}})
    assert plain.termination.reason is path.termination.reason is Reason.OPTIMAL
    assert 0 <= path.bound - plain.objective <= 1e-4 * market.total_budget + 1e-9


def test_a_gap_beyond_rounding_ends_by_the_method_or_its_steps(monkeypatch):
    market = weighted_market(np.random.default_rng(7), "ces", 0.5, shape=(6, 3, 2))
    monkeypatch.setattr(backend, "CLOSED_GAP", 0.0)
    result = solve(market, rel_gap=0.0)
    assert result.gap <= 1e-9
    task = types.SimpleNamespace(problem=market)
    monkeypatch.setattr(
        "equipoise.solvers.markets.proportional_response.price_path._Path.step", lambda path, gap: False
    )
    answer = backend.BACKEND.solve(task, eq.Options(rel_gap=1e-6), lambda *_: None)
    assert answer.limit is Limit.METHOD
    assert gap_of(market, answer.plan) > 1e-6


def test_too_many_prices_for_the_path_are_left_to_rounds(monkeypatch):
    monkeypatch.setattr(backend, "MOST_PRICES", 5)
    market = weighted_market(np.random.default_rng(7), "ces", 0.5, shape=(6, 3, 2))
    result = solve(market, rel_gap=1e-3)
    assert result.termination.reason is Reason.OPTIMAL
    assert "too many for the path" in result.notes[0]
    assert "prices, here 6" in backend.BACKEND.skip_reason(market, eq.Options())


def test_plain_rounds_split_every_budget():
    market = weighted_market(np.random.default_rng(8), "ces", -3.0, shape=(5, 3, 2))
    seen = []
    respond_rounds(
        market,
        start=None,
        gap=0.0,
        deadline=Deadline.of(eq.Options()),
        max_rounds=20,
        report=lambda number, bound, welfare, found: seen.append((bound, welfare, found()[1])),
    )
    assert len(seen) == 3
    for bound, welfare, prices in seen:
        assert bound >= welfare
        assert (prices * market.capacities).sum() == pytest.approx(market.total_budget)
    assert seen[-1][1] > seen[0][1]


def test_families_agree_with_clarabel():
    pytest.importorskip("clarabel")
    for seed, rho in enumerate([None, -4.0, -0.5, 0.5, 0.85]):
        market = weighted_market(np.random.default_rng(seed), "cobb-douglas" if rho is None else "ces", rho)
        ours, theirs = (eq.solve(market, backend=name, rel_gap=1e-6) for name in (NAME, "clarabel"))
        assert ours.termination.reason is theirs.termination.reason is Reason.OPTIMAL
        assert abs(ours.objective - theirs.objective) <= 2e-6 * market.total_budget


# -- The backend -------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), sparse=st.booleans())
def test_linear_markets_agree_with_tangent_cuts(seed, sparse):
    market = linear_market(np.random.default_rng(seed), sparse)
    ours, theirs = solve(market, rel_gap=1e-6), eq.solve(market, backend="highs", rel_gap=1e-6)
    assert ours.termination.reason is Reason.OPTIMAL
    assert gap_of(market, ours.plan) <= 1e-6
    assert abs(ours.objective - theirs.objective) <= 2e-6 * market.total_budget


EDGES = {
    "one buyer": eq.FisherMarket([[3.0, 1.0]], [2.0]),
    "one good": eq.FisherMarket([[3.0], [1.0]], [2.0, 1.0]),
    "a good nobody wants": eq.FisherMarket([[1.0, 0.0, 2.0], [2.0, 0.0, 1.0]], [1.0, 3.0]),
    "buyers of one good": eq.FisherMarket(np.eye(4), [1.0, 2.0, 3.0, 4.0]),
    "identical buyers": eq.FisherMarket(np.tile([[1.0, 2.0, 3.0]], (5, 1)), np.ones(5)),
    "ties everywhere": eq.FisherMarket(np.ones((4, 6)), [1.0, 1.0, 2.0, 2.0]),
    "budgets of 12 orders": eq.FisherMarket(np.random.default_rng(0).random((7, 4)), 10.0 ** np.arange(-6, 8, 2)),
    "utilities of 24 orders": eq.FisherMarket(10.0 ** np.random.default_rng(1).uniform(-12, 12, (6, 5)), np.ones(6)),
    "rounds that serve nobody": eq.VolatileFisherMarket(
        utilities=[[[0.5, 0.0], [0.5, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], budgets=[1.0, 2.0], family="ces", rho=-1.0
    ),
    "one resource": eq.VolatileFisherMarket(
        utilities=np.ones((3, 1, 4)), budgets=[1.0, 2.0, 3.0], family="cobb-douglas", productivity=np.eye(3, 4) + 0.5
    ),
    "linear over rounds": eq.VolatileFisherMarket(utilities=np.arange(1.0, 13).reshape(2, 2, 3), budgets=[1.0, 5.0]),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("variant", ["accelerated", "plain"])
def test_edges(name, variant):
    market, gap = EDGES[name], 1e-6 if variant == "accelerated" else 1e-3
    result = solve(market, rel_gap=gap, backend_options={NAME: {"variant": variant}})
    assert result.termination.reason is Reason.OPTIMAL, result.termination
    assert gap_of(market, result.plan) <= gap


@pytest.mark.parametrize("name", EDGES)
def test_without_time_there_is_a_plan_and_a_true_gap(name):
    market = EDGES[name]
    result = solve(market, time_limit=0.0, rel_gap=1e-9)
    assert gap_of(market, result.plan) == pytest.approx(result.gap, abs=1e-9)
    if result.termination.reason is not Reason.OPTIMAL:
        assert result.termination.limit is Limit.TIME


@pytest.mark.parametrize(
    "own",
    [
        {"variant": "fast"},
        {"max_rounds": -1},
        {"max_rounds": 1.5},
        {"rounds": 3},
        {"time_limit": 1.0},
        {"rel_gap": 0.1},
    ],
)
def test_own_options_are_checked(own):
    with pytest.raises(InvalidInput, match=next(iter(own))):
        solve(EDGES["one buyer"], backend_options={NAME: own})


@pytest.mark.parametrize("family", ["linear", "ces", "cobb-douglas"])
@pytest.mark.parametrize("variant", ["accelerated", "plain"])
def test_a_warm_start_is_used_and_what_became_of_it_is_told(family, variant):
    rng = np.random.default_rng(9)
    market = (
        random_fisher_market("uniform", 80, 12, 0)
        if family == "linear"
        else weighted_market(rng, family, 0.5 if family == "ces" else None, shape=(6, 3, 3))
    )
    options = {"rel_gap": 1e-3, "backend_options": {NAME: {"variant": variant}}}
    cold = solve(market, **options)
    best = solve(market, rel_gap=1e-7).plan
    warm = solve(market, warm_start=best, **options)
    assert any("warm start accepted" in note for note in warm.notes)
    assert warm.objective >= market.welfare(best.utilities) - 1e-12
    assert warm.gap <= 1e-7 < cold.gap

    def count(result):
        return int(next(note for note in result.notes if note.startswith(variant)).split()[1])

    assert count(warm) <= count(cold)


def test_a_warm_start_that_is_none_is_refused_or_left():
    market = EDGES["a good nobody wants"]
    plan = solve(market).plan
    over = eq.Equilibrium(
        allocation=2.0 * plan.allocation, prices=plan.prices, spending=plan.spending, utilities=plan.utilities
    )
    result = solve(market, warm_start=over)
    assert "warm start rejected: it breaks the capacities" in result.notes
    assert result.termination.reason is Reason.OPTIMAL
    with pytest.raises(InvalidInput, match="warm_start"):
        solve(market, warm_start=plan.allocation)
    with pytest.raises(InvalidInput, match="shape"):
        solve(EDGES["one buyer"], warm_start=plan)


@pytest.mark.parametrize("name", ["ties everywhere", "rounds that serve nobody", "linear over rounds"])
def test_plans_reported_on_the_way_are_plans(name, monkeypatch):
    monkeypatch.setattr(backend, "FIRST_REPORT_S", 0.0)
    market, given_plans = EDGES[name], []
    task = types.SimpleNamespace(problem=market)
    options = eq.Options(rel_gap=0.0, backend_options={NAME: {"max_rounds": 12}})
    backend.BACKEND.solve(
        task, options, lambda objective, bound, plan=None: given_plans.append((objective, bound, plan))
    )
    assert any(plan is not None for *_, plan in given_plans)
    for objective, bound, plan in given_plans:
        if plan is not None:
            assert market.welfare(plan.utilities) == pytest.approx(objective, abs=1e-9)
            assert market.proved_bound(plan) == pytest.approx(bound, abs=1e-9)
            assert gap_of(market, plan) >= -1e-12


def test_auto_leaves_linear_markets_to_the_interior_point_and_takes_the_families():
    options = eq.Options()
    assert backend.LINEAR_FIRST in backend.BACKEND.skip_reason(EDGES["one buyer"], options)
    assert backend.BACKEND.skip_reason(EDGES["one resource"], options) == ""
    assert eq.solve(EDGES["one resource"]).backend == NAME


# -- Arrays of any library ---------------------------------------------------------------------------------------------


def array_market():
    rng = np.random.default_rng(6)
    worth = rng.random((40, 7)) * (rng.random((40, 7)) < 0.7)
    worth[:, 6] = 0.0
    worth[~worth.any(axis=1), 0] = 1.0
    return worth, np.exp(rng.normal(size=40)), rng.random(7) + 0.5


def test_arrays_are_solved_to_a_gap_that_the_market_confirms():
    worth, budgets, capacities = array_market()
    found = proportional_response(worth, budgets, capacities, rel_gap=1e-6, block_entries=70)
    market = eq.FisherMarket(worth, budgets, capacities)
    allocation = found.allocation()
    np.testing.assert_allclose(found.utilities, market.utilities_at(allocation), rtol=1e-12)
    plan = market.equilibrium(allocation, found.prices)
    assert gap_of(market, plan) == pytest.approx(found.gap, abs=1e-9)
    assert found.gap <= 1e-6
    assert found.objective == pytest.approx(market.welfare(plan.utilities), abs=1e-9)
    assert found.bound == pytest.approx(market.proved_bound(plan), abs=1e-6)
    np.testing.assert_array_equal(found.allocation(slice(3, 9)), allocation[3:9])


def test_arrays_of_the_standard_give_the_bits_that_numpy_gives():
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    worth, budgets, capacities = array_market()
    ours = proportional_response(worth, budgets, capacities, rel_gap=1e-5)
    theirs = proportional_response(*map(strict.asarray, (worth, budgets, capacities)), rel_gap=1e-5)
    assert type(theirs.prices) is type(strict.asarray(1.0))
    assert (theirs.gap, theirs.rounds, theirs.objective) == (ours.gap, ours.rounds, ours.objective)
    np.testing.assert_array_equal(np.asarray(theirs.prices), ours.prices)
    np.testing.assert_array_equal(np.asarray(theirs.allocation()), ours.allocation())


def test_a_pair_of_factors_is_their_product():
    rng = np.random.default_rng(1)
    F, G, budgets = rng.random((50, 3)), rng.random((3, 8)), np.ones(50)
    product = proportional_response(F @ G, budgets, rel_gap=1e-4)
    pair = proportional_response((F, G), budgets, rel_gap=1e-4, block_entries=64)
    assert pair.rounds == product.rounds
    np.testing.assert_allclose(pair.prices, product.prices, rtol=1e-9)


def test_single_precision_keeps_its_type():
    worth, budgets, _ = array_market()
    found = proportional_response(worth.astype(np.float32), budgets.astype(np.float32), rel_gap=1e-3)
    assert found.prices.dtype == found.utilities.dtype == found.allocation().dtype == np.float32
    assert found.gap <= 1e-3


def test_torch_is_spoken_to_in_its_own_words(monkeypatch):
    # torch itself is not needed: what is called of it has these names and arguments.
    def amax(array, dim, keepdim=False):
        return np.max(array, axis=dim, keepdims=keepdim)

    def total(array, dim=None):
        return np.sum(array, axis=dim)

    torch = types.SimpleNamespace(
        exp=np.exp, log=np.log, where=np.where, all=np.all, asarray=np.asarray, amax=amax, sum=total
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    worth, budgets, capacities = array_market()
    plain = proportional_response(worth, budgets, capacities)
    monkeypatch.setattr(response_arrays, "namespace_of", lambda array: response_arrays._Torch())
    spoken = proportional_response(worth, budgets, capacities)
    np.testing.assert_array_equal(spoken.prices, plain.prices)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"utilities": np.ones(3)}, "two dimensions"),
        ({"utilities": (np.ones((2, 3)), np.ones((2, 2)))}, "factors"),
        ({"utilities": np.array([[1.0, -1.0], [1.0, 1.0]])}, "at least 0"),
        ({"utilities": np.array([[1.0, 1.0], [0.0, 0.0]])}, "wants nothing"),
        ({"utilities": [[1.0]]}, "array API"),
        ({"utilities": np.ones((2, 2), dtype=np.int64)}, "utilities = 'int64': must be an array of floats"),
        ({"utilities": np.array([[np.nan, 1.0], [1.0, 1.0]])}, "utilities = 'rows 0 to 2': must be finite"),
        ({"capacities": [1.0, 1.0]}, "capacities = 'list': must be an array"),
        ({"budgets": np.ones(3)}, "shape"),
        ({"budgets": np.array([1.0, 0.0])}, "greater than 0"),
        ({"capacities": np.array([1.0, np.nan])}, "finite"),
        ({"capacities": np.ones(1)}, "shape"),
        ({"variant": "fast"}, "one of"),
        ({"rel_gap": -1.0}, "at least 0"),
        ({"max_rounds": 0.5}, "whole"),
    ],
)
def test_arrays_that_are_no_market_are_refused(change, match):
    given_arrays = {"utilities": np.ones((2, 2)), "budgets": np.ones(2)} | change
    with pytest.raises(InvalidInput, match=match):
        proportional_response(**given_arrays)
