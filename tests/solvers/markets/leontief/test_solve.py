"""The interior point on Leontief markets over rounds: closed forms, agreement, scales, edges, and what is left over."""

import math
import tracemalloc

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.markets.leontief import scaling as leontief_scaled
from equipoise.solvers.markets.leontief.central_path import GoodsSystem, LeontiefPath
from equipoise.solvers.markets.leontief.scaling import ScaledLeontief
from equipoise.solvers.result import Limit, Reason
from equipoise.validation.instances.markets import random_leontief_market


def market(requirements, budgets, capacities=None):
    return eq.VolatileFisherMarket(requirements=requirements, budgets=budgets, capacities=capacities, family="leontief")


def solved(problem, rel_gap=1e-6, **options):
    return eq.solve(problem, "interior_point", rel_gap=rel_gap, **options)


def wild_market(seed):
    """Return a small market of many scales, ties and zeros."""
    rng = np.random.default_rng(seed)
    shape = N, J, T = tuple(int(rng.choice(sizes)) for sizes in ([1, 2, 3, 5, 10, 40], [1, 2, 3, 6], [1, 2, 4, 10]))
    needs = [
        np.exp(rng.normal(size=shape)),
        10.0 ** rng.uniform(-6, 6, size=shape),
        rng.integers(0, 3, size=shape).astype(float),
        np.repeat(np.exp(rng.normal(size=(1, J, T))), N, axis=0),  # identical buyers
        np.ones(shape),
        np.exp(rng.normal(size=shape)) * (np.arange(T) == rng.integers(T, size=N)[:, None])[:, None, :],  # one round
        10.0 ** rng.integers(-6, 7, size=shape) * (rng.random(shape) < 0.5),
    ][rng.integers(7)]
    if rng.random() < 0.5:
        needs *= rng.random(shape) >= rng.uniform(0, 0.8)
    if T > 1 and rng.random() < 0.2:
        needs[:, :, rng.integers(T)] = 0.0  # a round that serves nobody
    if J > 1 and rng.random() < 0.2:
        needs[:, rng.integers(J)] = 0.0  # a resource that nobody needs
    needs[~needs.any(axis=(1, 2)), 0, 0] = 1.0
    budgets = [np.ones(N), np.exp(rng.normal(size=N)), 10.0 ** rng.uniform(-6, 6, size=N)][rng.integers(3)]
    goods = (J, T)
    capacities = [None, np.exp(rng.normal(size=goods)), 10.0 ** rng.uniform(-6, 6, size=goods)][rng.integers(3)]
    return market(needs, budgets, capacities)


# -- Closed forms ------------------------------------------------------------------------------------------------------


def test_one_resource_in_one_round_is_split_by_budgets():
    plan = solved(market([[[2.0]], [[7.0]], [[0.1]]], [1.0, 2.0, 5.0], [[4.0]]), 1e-9).require_optimal()
    assert plan.allocation.ravel() == pytest.approx([0.5, 1.0, 2.5], rel=1e-6)
    assert plan.prices.ravel() == pytest.approx([2.0])


def test_two_jobs_with_different_bottlenecks_use_up_both_resources():
    # <1 core, 4 GB> and <3 cores, 1 GB> out of 9 cores and 18 GB: x + 3y = 9, 4x + y = 18.
    result = solved(market([[[1.0], [4.0]], [[3.0], [1.0]]], [1.0, 1.0], [[9.0], [18.0]]), 1e-9)
    assert result.require_optimal().utilities == pytest.approx([45 / 11, 18 / 11], rel=1e-5)
    # Each price by what the two stationarity conditions say: p_cpu + 4 p_ram = 11/45, 3 p_cpu + p_ram = 11/18.
    assert result.plan.prices.ravel() == pytest.approx(np.linalg.solve([[1, 4], [3, 1]], [11 / 45, 11 / 18]), rel=1e-4)


def test_a_buyer_of_one_round_and_one_of_two():
    # Budgets 1 and 3: the first gets r of round 0 with 1/r = 3/(2 - r), and both rounds cost 2.
    plan = solved(market([[[1.0, 0.0]], [[1.0, 1.0]]], [1.0, 3.0]), 1e-9).require_optimal()
    assert plan.allocation[:, 0] == pytest.approx(np.array([[0.5, 0.0], [0.5, 1.0]]), abs=1e-5)
    assert plan.prices.ravel() == pytest.approx([2.0, 2.0], rel=1e-6)


# -- Against others, and against the conditions themselves -------------------------------------------------------------


@pytest.mark.parametrize("other", ["highs", "clarabel"])
def test_agreement_with_a_general_solver(other):
    if other == "clarabel":
        pytest.importorskip("clarabel")
    for seed in range(12):
        problem = wild_market(100 + seed) if seed % 2 else random_leontief_market(30, 3, 5, seed)
        mine, theirs = solved(problem, 1e-8), eq.solve(problem, other, rel_gap=1e-6)
        assert mine.termination.reason is Reason.OPTIMAL
        budget = problem.total_budget
        assert mine.objective >= theirs.objective - 1e-8 * budget
        assert mine.bound <= theirs.bound + 1e-8 * budget
        assert theirs.objective <= mine.bound + 1e-9 * budget
        assert mine.objective <= theirs.bound + 1e-9 * budget


@pytest.mark.parametrize(("buyers", "resources", "rounds"), [(40, 3, 6), (8, 5, 12)])
def test_the_conditions_of_the_optimum_hold(buyers, resources, rounds):
    problem = random_leontief_market(buyers, resources, rounds, 3)
    plan = solved(problem, 1e-9).require_optimal()
    rates = problem.arithmetic.rates(plan.allocation)
    budget = problem.total_budget
    assert plan.allocation == pytest.approx(problem.requirements * rates[:, None, :])  # nothing is handed out in vain
    slack = problem.capacities - plan.allocation.sum(axis=0)
    assert slack.min() >= 0
    assert (plan.prices * slack).sum() <= 1e-8 * budget
    worth = (problem.budgets / rates.sum(axis=1))[:, None]
    reduced = np.where(problem.active, problem.arithmetic.unit_costs(plan.prices) - worth, 0.0)
    # A gap g leaves a buyer's dearest price and worth apart by about sqrt(2 g B / B_i), as logarithms are flat there.
    apart = np.sqrt(2e-9 * budget / problem.budgets)[:, None]
    assert (reduced >= -2 * apart * worth).all()
    assert (reduced * rates).sum() <= 1e-8 * budget
    assert (np.abs(plan.spending / problem.budgets - 1.0) <= 2 * apart.ravel()).all()


@pytest.mark.thorough
@pytest.mark.parametrize("hundred", range(4))
def test_markets_of_all_scales_are_solved(hundred):
    for seed in range(100 * hundred, 100 * hundred + 100):
        problem = wild_market(seed)
        result = solved(problem)
        assert result.termination.reason is Reason.OPTIMAL, seed
        assert result.gap <= 1e-6
        assert result.residuals.worst == 0.0, seed
        plan = result.plan
        welfare = problem.welfare(problem.utilities_at(plan.allocation))
        assert result.objective == pytest.approx(welfare, abs=1e-9 * problem.total_budget)
        assert result.bound == pytest.approx(problem.bound_at(plan.prices), abs=1e-9 * problem.total_budget)


@pytest.mark.parametrize("dims", [(2_000, 3, 20), (60, 10, 30), (10, 4, 100)])
def test_larger_markets_take_few_steps(dims):
    result = solved(random_leontief_market(*dims))
    assert result.termination.reason is Reason.OPTIMAL
    assert 5 <= int(result.notes[-1].split()[0]) <= 30


# -- Edges -------------------------------------------------------------------------------------------------------------


def test_identical_buyers_get_the_same_utility():
    needs = np.repeat(np.random.default_rng(0).random((1, 2, 3)), 4, axis=0)
    assert np.ptp(solved(market(needs, np.ones(4)), 1e-9).plan.utilities) <= 1e-6


def test_one_buyer_takes_what_the_scarcest_resource_allows():
    plan = solved(market([[[1.0, 4.0], [2.0, 1.0]]], [3.0], [[1.0, 2.0], [4.0, 8.0]]), 1e-9).plan
    assert plan.utilities == pytest.approx([1.0 + 0.5], rel=1e-8)
    assert plan.prices[1] == pytest.approx([0.0, 0.0], abs=1e-6)  # of the other resource much is left


def test_rounds_for_nobody_and_resources_for_nobody_cost_nothing():
    needs = np.random.default_rng(1).random((5, 3, 4)) + 0.1
    needs[:, :, 2] = 0.0
    needs[:, 1, :] = 0.0
    plan = solved(market(needs, np.ones(5)), 1e-9).require_optimal()
    assert (plan.prices[1] == 0).all()
    assert (plan.prices[:, 2] == 0).all()
    assert (plan.allocation[:, :, 2] == 0).all()


def test_units_change_nothing():
    problem = random_leontief_market(20, 3, 4, 5)
    scale = 10.0 ** np.random.default_rng(0).integers(-6, 7, size=(3, 4))
    per_buyer = 10.0 ** np.arange(-10.0, 10.0)[:, None, None]
    other = market(problem.requirements * scale * per_buyer, problem.budgets * 1e9, problem.capacities * scale)
    one, two = solved(problem, 1e-9).plan, solved(other, 1e-9).plan
    assert two.utilities * per_buyer.ravel() == pytest.approx(one.utilities, rel=1e-6)


def test_what_numbers_cannot_hold_is_said():
    problem = market(np.full((2, 1, 1), 1e200), [1.0, 1.0], [[1e-115]])
    result = solved(problem)
    assert result.termination.reason is Reason.NUMERICAL
    assert "state them in other units" in result.termination.message


# -- Options -----------------------------------------------------------------------------------------------------------


def test_no_time_leaves_a_plan_that_is_checked():
    problem = random_leontief_market(200, 3, 10)
    result = solved(problem, time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert result.residuals.worst == 0.0
    assert 0.0 < result.gap < 5.0
    shares = problem.budgets / problem.total_budget  # nobody gets more than the budget's share of anything
    assert (result.plan.allocation <= shares[:, None, None] * problem.capacities * (1 + 1e-12)).all()


def test_a_limit_of_steps():
    own = {"interior_point": {"max_steps": 3}}
    result = solved(random_leontief_market(200, 3, 10), backend_options=own)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.ITERATIONS)
    assert result.notes[-1] == "3 steps"


def test_gaps_are_what_is_asked_for():
    problem = random_leontief_market(100, 3, 10)
    loose, tight = solved(problem, 0.05), solved(problem, 1e-8)
    assert tight.gap <= 1e-8 < loose.gap <= 0.05
    absolute = solved(problem, 0.0, abs_gap=0.05 * problem.total_budget)
    assert absolute.termination.reason is Reason.OPTIMAL
    assert 1e-6 < absolute.gap <= 0.05


def test_the_finest_gap_ends_without_harm():
    for seed in range(0, 400, 4):
        result = solved(wild_market(seed), 0.0)
        assert result.termination.reason is Reason.OPTIMAL or result.termination.limit is Limit.METHOD
        assert result.gap <= 1e-7, seed


def test_a_warm_start_is_the_first_incumbent():
    problem = random_leontief_market(50, 3, 6)
    best = solved(problem, 1e-8)
    again = solved(problem, 1e-6, warm_start=best.plan)
    assert again.notes == (f"warm start accepted, welfare {best.objective:.12g}", "0 steps")
    assert again.objective == pytest.approx(best.objective, abs=1e-9)
    assert again.history[0].objective == pytest.approx(best.objective, abs=1e-9)
    finer = solved(problem, 1e-9, warm_start=solved(problem, 1e-2).plan)
    assert finer.gap <= 1e-9
    at_once = solved(problem, 1e-9, warm_start=solved(problem, 1e-4).plan, time_limit=0.0)
    assert (at_once.termination.limit, at_once.gap <= 1e-4) == (Limit.TIME, True)


def test_a_warm_start_that_is_none_is_named():
    problem = random_leontief_market(6, 2, 3)
    good = solved(problem).plan

    def start(allocation=good.allocation, prices=good.prices):
        return eq.Equilibrium(allocation=allocation, prices=prices, spending=good.spending, utilities=good.utilities)

    too_much = solved(problem, warm_start=start(good.allocation * 1.5))
    assert too_much.notes[0].startswith("warm start rejected: it violates the market by 0.5")
    allocation = good.allocation.copy()
    allocation[2] = 0.0
    assert solved(problem, warm_start=start(allocation)).notes[0] == "warm start rejected: a buyer gets nothing"
    for wrong, field in (
        (start(good.allocation[:3]), "warm_start.allocation"),
        (start(prices=good.prices[:1]), "warm_start.prices"),
        (good.allocation, "warm_start"),
    ):
        with pytest.raises(eq.InvalidInput) as caught:
            solved(problem, warm_start=wrong)
        assert caught.value.field == field


def test_progress_and_log(capsys):
    problem = random_leontief_market(100, 3, 10)
    heard = []
    result = solved(problem, on_progress=heard.append)
    assert capsys.readouterr().out == ""
    objectives, bounds = [point.objective for point in heard], [point.bound for point in heard]
    assert objectives == sorted(objectives)
    assert bounds == sorted(bounds, reverse=True)
    assert len(heard) == int(result.notes[-1].split()[0])
    assert bounds[-1] - objectives[-1] <= 1e-6 * problem.total_budget
    solved(problem, log=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(heard)
    assert lines[-1].startswith(f"step {len(heard):3d}  welfare ")


def test_memory_stays_within_four_times_the_data():
    """The market itself is one of the four."""
    problem = random_leontief_market(10_000, 3, 20)
    assert problem.active.any()
    tracemalloc.start()
    try:
        solved(problem, 1e-3)
        assert tracemalloc.get_traced_memory()[1] <= 3.0 * problem.requirements.nbytes
    finally:
        tracemalloc.stop()


# -- Parts -------------------------------------------------------------------------------------------------------------


def test_scaled_units_and_back():
    problem = wild_market(6)
    scaled = ScaledLeontief(problem)
    rng = np.random.default_rng(0)
    levels, rates = np.empty(scaled.count), []
    for block in scaled.blocks:
        served = block.yields > 0
        assert block.needs.max(axis=1)[served] == pytest.approx(1.0)
        assert block.yields.max(axis=0) == pytest.approx(1.0)
        rates.append(rng.random(block.yields.shape) * served)
        levels[block.buyers] = (block.yields * rates[-1]).sum(axis=0)
    own = problem.welfare(scaled.rates_of(rates).sum(axis=1)) / problem.total_budget
    assert own == pytest.approx(float(scaled.budgets @ np.log(levels)) + scaled.offset)


def test_blocks_of_buyers_change_nothing(monkeypatch):
    problem = random_leontief_market(50, 3, 6)
    whole = solved(problem, 1e-9)
    monkeypatch.setattr(leontief_scaled, "BLOCK", 48)
    assert len(ScaledLeontief(problem).blocks) == math.ceil(50 / 8)
    assert solved(problem, 1e-9).objective == pytest.approx(whole.objective, abs=1e-8)


@pytest.mark.parametrize(("buyers", "resources", "rounds"), [(30, 2, 3), (5, 2, 3), (4, 6, 1)])
def test_the_reduced_system_is_the_whole_one(buyers, resources, rounds):
    """Both ways of solving, over goods and over buyers, against one dense matrix."""
    scaled = ScaledLeontief(random_leontief_market(buyers, resources, rounds, 2))
    rng = np.random.default_rng(0)
    (block,) = scaled.blocks
    curvature = rng.random(block.yields.shape)
    weights = curvature * block.yields
    heights = rng.random(buyers) + (weights * block.yields).sum(axis=0)
    diagonal = rng.random((rounds, resources))
    goods = rounds * resources
    dense = np.diag(diagonal.ravel())
    for i in range(buyers):
        for t in range(rounds):
            place = np.zeros((rounds, resources))
            place[t] = block.needs[t, :, i]
            dense += curvature[t, i] * np.outer(place, place)
        own = (weights[:, None, i] * block.needs[:, :, i]).ravel()
        dense -= np.outer(own, own) / heights[i]
    right = rng.normal(size=(rounds, resources))
    found = GoodsSystem(scaled, [curvature], heights, diagonal).solve(right)
    assert found == pytest.approx(np.linalg.solve(dense, right.ravel()).reshape(rounds, resources), rel=1e-8)
    assert goods > buyers or buyers == 30


def test_a_system_without_numbers_ends_the_steps():
    path = LeontiefPath(ScaledLeontief(random_leontief_market(5, 2, 3)))
    path.prices[0, 0] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        path.step()
