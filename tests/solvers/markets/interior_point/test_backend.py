"""The interior point for linear markets: certified on every kind of market, whatever its scales, by every route."""

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import equipoise as eq
from equipoise.formulations.errors import InvalidInput
from equipoise.solvers.backend import Task
from equipoise.solvers.markets.blas_threads import _libraries, blas_threads
from equipoise.solvers.markets.interior_point import backend as interior_point
from equipoise.solvers.markets.interior_point import pairs as market_edges
from equipoise.solvers.markets.interior_point import sifting as market_sifting
from equipoise.solvers.markets.interior_point.newton import InteriorPoint
from equipoise.solvers.markets.interior_point.pairs import Edges
from equipoise.solvers.markets.interior_point.pricing import NormalizedMarket
from equipoise.solvers.markets.interior_point.rough_prices import rough_prices
from equipoise.solvers.options import Options
from equipoise.validation.instances.markets import KINDS, random_fisher_market
from equipoise.validation.strategies.markets import fisher_markets

Reason, Limit = eq.Reason, eq.Limit


def solved(market, rel_gap=1e-6, **options):
    """An optimal result, with what must hold of it by the market's own arithmetic."""
    result = eq.solve(market, backend="interior_point", rel_gap=rel_gap, **options)
    assert result.termination.reason is Reason.OPTIMAL, (result.termination, result.gap, result.notes)
    assert result.gap <= max(rel_gap, 1e-9)
    assert result.residuals.worst <= 1e-12
    plan = result.plan
    assert (plan.prices * market.capacities).sum() == pytest.approx(market.total_budget)
    assert plan.spending.sum() == pytest.approx(market.total_budget, rel=1e-5)
    return result


def steps_of(result):
    note = next(note for note in result.notes if "pairs of buyer and good" in note)
    return int(note.split(" ")[0])


@pytest.fixture
def sifted(monkeypatch):
    """Sift even the smallest market, from a selection as small as can be."""
    monkeypatch.setattr(market_sifting, "FEW_PAIRS", 0)
    monkeypatch.setattr(market_sifting, "FEW_PER_SIDE", 0)
    monkeypatch.setattr(market_sifting, "FIRST_PAIRS", range(1, 2))


@pytest.fixture
def by_forest(monkeypatch):
    """Solve Newton's equations by conjugate gradients even where they are small."""
    monkeypatch.setattr(market_edges, "MOST_DENSE", 0)
    monkeypatch.setattr(market_edges, "DENSE_ENTRIES", 0)


def random_hard_market(rng):
    """A small market of one of the kinds that trouble solvers."""
    buyers, goods = int(rng.integers(1, 30)), int(rng.integers(1, 30))
    shape = (buyers, goods)
    draws = (
        lambda: rng.integers(0, 3, shape),
        lambda: rng.integers(1, 3, shape),
        lambda: 10.0 ** rng.uniform(-24, 0, shape),
        lambda: 10.0 ** rng.uniform(-12, 12, shape) * (rng.random(shape) < 0.4),
        lambda: np.repeat(rng.integers(0, 5, (1, goods)), buyers, axis=0),
        lambda: (rng.random(shape) < 2.0 / goods) * rng.integers(1, 4, shape),
        lambda: rng.random((buyers, 2)) @ rng.random((2, goods)),
        lambda: np.ones(shape) + 1e-9 * rng.integers(0, 2, shape),
    )
    utilities = np.asarray(draws[rng.integers(len(draws))](), dtype=float)
    for buyer in np.flatnonzero(utilities.max(axis=1) <= 0):
        utilities[buyer, rng.integers(goods)] = 1.0
    budgets = (np.ones(buyers), 10.0 ** rng.uniform(-6, 6, buyers))[rng.integers(2)]
    capacities = (np.ones(goods), 10.0 ** rng.uniform(-6, 6, goods))[rng.integers(2)]
    return eq.FisherMarket(csr_array(utilities) if rng.random() < 0.3 else utilities, budgets, capacities)


class TestEveryMarket:
    @given(fisher_markets(max_buyers=7, max_goods=7))
    def test_of_small_whole_numbers(self, market):
        solved(market)

    @pytest.mark.parametrize("seed", range(4))
    def test_hard(self, seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            assert steps_of(solved(random_hard_market(rng))) <= 100

    @pytest.mark.parametrize("seed", range(4))
    def test_hard_and_sifted(self, seed, sifted):
        rng = np.random.default_rng(100 + seed)
        for _ in range(40):
            solved(random_hard_market(rng), rel_gap=1e-8)

    @pytest.mark.parametrize("seed", range(4))
    def test_hard_by_forest(self, seed, sifted, by_forest):
        rng = np.random.default_rng(200 + seed)
        for _ in range(30):
            solved(random_hard_market(rng), rel_gap=1e-8)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(("buyers", "goods"), [(1000, 60), (60, 1000), (200, 200)])
    def test_at_scale_and_finely(self, kind, buyers, goods):
        result = solved(random_fisher_market(kind, buyers, goods, seed=3), rel_gap=1e-9)
        assert steps_of(result) < 60

    @pytest.mark.parametrize("kind", KINDS)
    def test_no_finer_gap_diverges(self, kind):
        result = eq.solve(random_fisher_market(kind, 300, 40), backend="interior_point", rel_gap=0.0)
        assert result.gap <= 1e-9

    def test_prices_agree_with_clarabel(self):
        pytest.importorskip("clarabel")
        rng = np.random.default_rng(5)
        for _ in range(5):
            market = eq.FisherMarket(rng.integers(1, 6, (6, 4)), rng.integers(1, 5, 6), rng.integers(1, 4, 4))
            ours, theirs = (eq.solve(market, backend=name, rel_gap=1e-8) for name in ("interior_point", "clarabel"))
            assert ours.objective == pytest.approx(theirs.objective, abs=2e-8 * market.total_budget)
            np.testing.assert_allclose(ours.plan.prices, theirs.plan.prices, rtol=1e-3)

    def test_known_equilibrium(self):
        market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0], [4.0, 0.5])
        plan = solved(market, rel_gap=1e-9).plan
        # By hand: the second buyer buys both goods, whose capacities are worth 4 and 3/2 to it.
        assert plan.prices * market.capacities == pytest.approx([16 / 11, 6 / 11], abs=1e-6)
        assert plan.allocation == pytest.approx(np.array([[2.75, 0.0], [1.25, 0.5]]), abs=1e-5)


class TestRoutes:
    def test_sparse_is_dense(self):
        rng = np.random.default_rng(1)
        utilities = rng.random((80, 30)) * (rng.random((80, 30)) < 0.2)
        utilities[np.arange(80), rng.integers(0, 30, 80)] = 0.5
        dense = solved(eq.FisherMarket(utilities, np.ones(80)), rel_gap=1e-9)
        sparse = solved(eq.FisherMarket(csr_array(utilities), np.ones(80)), rel_gap=1e-9)
        assert isinstance(sparse.plan.allocation, csr_array)
        assert sparse.objective == pytest.approx(dense.objective, abs=2e-7)
        np.testing.assert_allclose(sparse.plan.prices, dense.plan.prices, atol=1e-4)

    def test_over_rounds_is_static(self):
        rng = np.random.default_rng(2)
        over_rounds = eq.VolatileFisherMarket(
            utilities=rng.random((9, 3, 4)), budgets=np.ones(9), capacities=1 + rng.random((3, 4)), family="linear"
        )
        result = solved(over_rounds, rel_gap=1e-8)
        assert result.plan.allocation.shape == (9, 3, 4)
        assert result.plan.prices.shape == (3, 4)
        assert result.objective == pytest.approx(solved(over_rounds.static, rel_gap=1e-8).objective, abs=2e-7)

    def test_unwanted_goods_are_left(self):
        utilities = np.random.default_rng(3).random((50, 12))
        utilities[:, [0, 7]] = 0.0
        plan = solved(eq.FisherMarket(utilities, np.ones(50))).plan
        assert not plan.prices[[0, 7]].any()
        assert not plan.allocation[:, [0, 7]].any()

    def test_large_and_sparse_without_a_dense_system(self):
        rng = np.random.default_rng(4)
        count = 4000
        goods = rng.integers(0, count, 3 * count)
        table = csr_array((rng.random(3 * count) + 0.1, (np.repeat(np.arange(count), 3), goods)), shape=(count, count))
        edges = NormalizedMarket(eq.FisherMarket(table, np.ones(count))).edges(*table.nonzero())
        assert edges.is_sparse
        solved(eq.FisherMarket(table, np.ones(count)))

    @pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
    def test_the_system_is_the_same_by_pairs_and_by_blocks(self, shape, monkeypatch):
        rng = np.random.default_rng(6)
        buyer, good = np.nonzero(rng.random(shape) < 0.8)
        worth = rng.random(len(buyer))
        monkeypatch.setattr(market_edges, "PAIR_S", 0.0)
        by_pairs = Edges(buyer, good, worth, *shape)
        monkeypatch.setattr(market_edges, "PAIR_S", 1.0)
        by_blocks = Edges(buyer, good, worth, *shape)
        assert by_blocks.in_blocks
        assert not by_pairs.in_blocks
        table = np.zeros((max(shape), min(shape)))
        table[by_pairs.large, by_pairs.small] = by_pairs.worth
        weights = 1 + rng.random(max(shape))
        expected = np.triu(table.T @ (table / weights[:, None]), 1)
        for edges in (by_pairs, by_blocks):
            np.testing.assert_allclose(
                np.triu(edges.gram(edges.worth, weights, np.empty(expected.shape)), 1), expected, rtol=1e-12
            )

    @pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
    @pytest.mark.parametrize("forest", [False, True])
    def test_a_step_solves_newtons_equations(self, shape, forest, request):
        if forest:
            request.getfixturevalue("by_forest")
        market = random_fisher_market("uniform", *shape, seed=1)
        normalized = NormalizedMarket(market)
        point = InteriorPoint.from_nothing(normalized.edges(*normalized.everything()), normalized.budgets)
        edges, x, w, z = point.edges, point.shares, point.rates, point.slacks
        utilities = edges.by_buyers(edges.worth * x)
        rng = np.random.default_rng(0)
        product, money = rng.normal(size=len(x)), rng.normal(size=len(w))
        d_x, d_w, d_p, d_z = point._newton(utilities / w)(product, money)
        np.testing.assert_allclose(z * d_x + x * d_z, product, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(d_z, d_p[edges.good] - edges.worth * d_w[edges.buyer], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            w * edges.by_buyers(edges.worth * d_x) + utilities * d_w, money, rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(edges.by_goods(d_x), 1 - edges.by_goods(x), atol=1e-6)


class TestPrices:
    @given(fisher_markets(max_buyers=6, max_goods=6), st.integers(0, 1000))
    def test_lowered_prices_prove_no_less(self, market, seed):
        normalized = NormalizedMarket(market)
        prices = np.random.default_rng(seed).random(normalized.num_goods) + 0.01
        shift = normalized.budgets @ np.log(market.largest)
        full = np.zeros(market.num_goods)
        full[normalized.goods] = prices / market.capacities[normalized.goods]
        ours = market.total_budget * (normalized.priced(prices).bound + shift)
        assert ours <= market.bound_at(full) + 1e-9 * market.total_budget * (1 + abs(ours))

    def test_a_selection_serves_every_buyer_and_good(self):
        for seed, sparse in ((0, False), (1, True)):
            rng = np.random.default_rng(seed)
            table = rng.random((40, 25)) * (rng.random((40, 25)) < 0.5) + np.eye(40, 25)
            table[25:, 3] += 1.0
            normalized = NormalizedMarket(eq.FisherMarket(csr_array(table) if sparse else table, np.ones(40)))
            priced = normalized.priced(rng.random(25) + 0.1)
            buyer, good = normalized.select(priced, 1e-9)
            assert set(buyer) == set(range(40))
            assert set(good) == set(range(25))
            wide = normalized.select(priced, normalized.widths_of(priced, [200])[0])
            assert len(buyer) < len(wide[0]) < 400

    @pytest.mark.parametrize("kind", KINDS)
    def test_rough_prices_and_what_they_hand_out_are_near(self, kind):
        market = random_fisher_market(kind, 400, 50)
        normalized = NormalizedMarket(market)
        found = rough_prices(normalized, 0.0)
        shift = normalized.budgets @ np.log(market.largest)
        best = solved(market).objective / market.total_budget - shift
        assert best <= normalized.priced(found.prices).bound < best + 1e-3
        assert best >= found.welfare > best - 0.02
        assert found.edges.by_goods(found.shares) == pytest.approx(np.ones(50))

    def test_a_good_beyond_soft_demand_is_still_sold(self):
        utilities = np.ones((300, 40))
        utilities[:, 7] = 1e-250
        utilities[0, 7] = 1e-12
        market = eq.FisherMarket(utilities, np.ones(300))
        result = solved(market)
        assert result.gap <= 1e-6
        assert result.plan.allocation[:, 7].sum() == pytest.approx(1.0)


class TestOptions:
    def test_no_time_still_gives_a_plan(self):
        for table in (np.arange(1.0, 13.0).reshape(4, 3), csr_array(np.eye(4, 3) + 2 * np.eye(4, 3, -1))):
            market = eq.FisherMarket(table, [1.0, 2.0, 3.0, 4.0])
            result = eq.solve(market, backend="interior_point", time_limit=0.0)
            assert result.termination.limit is Limit.TIME
            assert result.residuals.worst <= 1e-12
            assert np.isfinite(result.gap)

    def test_few_steps_stop_it(self):
        market = random_fisher_market("uniform", 100, 20)
        options = {"backend_options": {"interior_point": {"max_steps": 2}}}
        result = eq.solve(market, backend="interior_point", rel_gap=1e-6, **options)
        assert result.termination.limit is Limit.ITERATIONS
        assert steps_of(result) == 2
        assert 1e-6 < result.gap < 1

    @pytest.mark.parametrize("own", [{"max_stepz": 3}, {"tolerance": 1e-3}, {"max_steps": -1}, {"max_steps": 1.5}])
    def test_wrong_own_options(self, own):
        with pytest.raises(InvalidInput):
            eq.solve(random_fisher_market("uniform", 3, 2), "interior_point", backend_options={"interior_point": own})

    def test_a_good_start_needs_no_steps(self):
        market = random_fisher_market("lognormal", 300, 30)
        first = solved(market, rel_gap=1e-8)
        again = solved(market, rel_gap=1e-6, warm_start=first.plan)
        assert steps_of(again) == 0
        assert again.objective == pytest.approx(first.objective, rel=1e-14)

    def test_a_near_start_saves_steps(self):
        market = random_fisher_market("low_rank", 400, 400)
        near = solved(market, rel_gap=1e-5).plan
        assert steps_of(solved(market, rel_gap=1e-8, warm_start=near)) < steps_of(solved(market, rel_gap=1e-8))

    def test_a_start_that_breaks_the_market_is_rejected(self):
        market = random_fisher_market("uniform", 20, 5)
        plan = solved(market).plan
        broken = eq.Equilibrium(
            allocation=plan.allocation * 2, prices=plan.prices, spending=plan.spending, utilities=plan.utilities
        )
        result = solved(market, warm_start=broken)
        assert any(note.startswith("warm start rejected") for note in result.notes)

    @pytest.mark.parametrize("field", ["allocation", "prices"])
    def test_a_start_of_another_shape(self, field):
        market = random_fisher_market("uniform", 20, 5)
        plan = solved(market).plan
        parts = {name: getattr(plan, name) for name in ("allocation", "prices", "spending", "utilities")}
        parts[field] = parts[field][..., :-1]
        with pytest.raises(InvalidInput):
            eq.solve(market, backend="interior_point", warm_start=eq.Equilibrium(**parts))

    def test_the_worst_of_starts_does_no_harm(self):
        market = random_fisher_market("uniform", 60, 10)
        plan = market.equilibrium(np.full((60, 10), 1e-300), np.full(10, np.nan))
        solved(market, warm_start=plan)

    def test_progress_and_log(self, capsys):
        market, points = random_fisher_market("uniform", 200, 30), []
        result = solved(market, log=True, on_progress=points.append)
        assert capsys.readouterr().out.count("\n") == steps_of(result) + 1
        assert all(point.bound >= result.objective - 1e-6 for point in points)
        objectives = [point.objective for point in points]
        assert objectives == sorted(objectives)
        solved(market)
        assert capsys.readouterr().out == ""

    def test_incumbents_on_the_way(self, monkeypatch):
        monkeypatch.setattr(interior_point, "INCUMBENT_S", -1.0)
        market, seen = random_fisher_market("uniform", 100, 20), []
        task, options = Task(problem=market, form="special"), Options(rel_gap=1e-6)
        interior_point.BACKEND.solve(task, options, lambda objective, bound, plan=None: seen.append((objective, plan)))
        for objective, plan in seen:
            assert market.evaluate(plan)[0] == pytest.approx(objective)

    def test_the_same_twice(self):
        market = random_fisher_market("low_rank", 300, 40)
        one, two = solved(market), solved(market, seed=9)
        np.testing.assert_array_equal(one.plan.allocation, two.plan.allocation)


def numbers():
    """Return how many threads each BLAS takes."""
    return [library["num_threads"] for library in _libraries().found.info()]


class TestThreads:
    def test_the_number_is_set_and_restored(self):
        if not numbers():
            pytest.skip("threadpoolctl knows no BLAS here")
        before = numbers()
        with blas_threads(1):
            assert numbers() == [1] * len(before)
            with blas_threads(1):
                pass
            assert numbers() == [1] * len(before)
        assert numbers() == before

    def test_blocks_that_overlap_restore_what_was_first(self):
        before = numbers()
        entered, leave = threading.Event(), threading.Event()

        def other():
            with blas_threads(1):
                entered.set()
                leave.wait(10)

        thread = threading.Thread(target=other)
        with blas_threads(1):
            thread.start()
            entered.wait(10)
        leave.set()
        thread.join()
        assert numbers() == before


@pytest.mark.parametrize("shape", [(1000, 60), (300, 200)])
def test_memory_stays_within_four_times_the_data(shape):
    """The market itself is one of the four."""
    solved(random_fisher_market("uniform", 30, 10))  # loads what is loaded late
    market = random_fisher_market("low_rank", *shape)
    tracemalloc.start()
    try:
        solved(market)
        assert tracemalloc.get_traced_memory()[1] <= 3.0 * market.utilities.nbytes
    finally:
        tracemalloc.stop()
