"""The problems over P: their checks, their programs against a second statement, and the bounds that prices prove."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from shared_data import SHOCKWAVE

import equipoise as eq

FIXTURES = SHOCKWAVE / "policy_call_fixtures.json"
GENERAL = ("highs", "scipy", "clarabel", "scip")


def draw(rng: np.random.Generator, jobs: int | None = None, types: int | None = None, *, whole: bool | None = None):
    """Return (rates, gangs, gpus): some pairs cannot run, every job can somewhere; whole rates make ties."""
    jobs, types = jobs or int(rng.integers(1, 9)), types or int(rng.integers(1, 4))
    rates = rng.uniform(0.5, 4.0, (jobs, types)) * (rng.random((jobs, types)) > 0.2)
    if rng.random() < 0.5 if whole is None else whole:
        rates = np.rint(rates)
    rates[rates.max(axis=1) == 0, int(rng.integers(types))] = 1.0
    return rates, rng.integers(1, 5, jobs), rng.integers(1, 9, types)


def rows_of(rates, gang_gpus, gpus):
    """Return P as scipy's linprog reads it, share by share; pairs that cannot run are left to `bounds`."""
    jobs, types = rates.shape
    time = np.kron(np.eye(jobs), np.ones(types))
    capacity = np.vstack([np.outer(gang_gpus, np.arange(types) == k).ravel() for k in range(types)])
    bounds = [(0.0, 1.0 if rate > 0 else 0.0) for rate in rates.ravel()]
    return np.vstack([time, capacity]), np.concatenate([np.ones(jobs), gpus]), bounds


def best_level(worth, rates, gang_gpus, gpus):
    """Return the largest level, stated without the library."""
    table, limits, bounds = rows_of(rates, gang_gpus, gpus)
    jobs, types = worth.shape
    need = np.zeros((jobs, jobs * types + 1))
    for j in range(jobs):
        need[j, j * types : (j + 1) * types] = -worth[j]
    need[:, -1] = 1.0
    table = np.vstack([np.hstack([table, np.zeros((len(table), 1))]), need])
    found = linprog(
        np.append(np.zeros(jobs * types), -1.0),
        A_ub=table, b_ub=np.append(limits, np.zeros(jobs)), bounds=[*bounds, (0, None)],
    )  # fmt: skip
    return -found.fun


def gavel_worth(rates, gang_gpus, gpus, weights, agnostic):
    """The levels as Gavel's released code states them, one job at a time."""
    speed = np.where(rates > 0, 1.0, 0.0) if agnostic else rates
    return np.array([
        gang_gpus[j] * speed[j] / (weights[j] * sum(speed[j, k] * gpus[k] / sum(gpus) for k in range(len(gpus))))
        for j in range(len(gang_gpus))
    ])  # fmt: skip


@given(seed=st.integers(0, 10**6))
def test_max_min_is_what_a_second_statement_says(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    weights, agnostic = rng.uniform(0.5, 3.0, len(gang_gpus)), bool(rng.random() < 0.5)
    problem = eq.MaxMinFairness(rates, gang_gpus, gpus, weights, agnostic)
    expected = best_level(gavel_worth(rates, gang_gpus, gpus, weights, agnostic), rates, gang_gpus, gpus)
    result = eq.solve(problem, "highs", rel_gap=1e-8)
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-7)
    assert result.residuals.worst <= 1e-9


@given(seed=st.integers(0, 10**6))
def test_min_total_duration_is_one_over_the_level(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    steps = rng.uniform(10.0, 1e4, len(gang_gpus))
    result = eq.solve(eq.MinTotalDuration(rates, steps, gang_gpus, gpus), "highs", rel_gap=1e-8)
    assert 1.0 / result.objective == pytest.approx(best_level(rates / steps[:, None], rates, gang_gpus, gpus), rel=1e-7)
    assert result.bound <= result.objective
    finished = (rates * result.plan.shares).sum(axis=1) * result.objective
    assert (finished >= steps * (1 - 1e-9)).all()


@given(seed=st.integers(0, 10**6))
def test_max_sum_is_what_a_second_statement_says_with_cost_and_deadline_rows(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    table, limits, bounds = rows_of(rates, gang_gpus, gpus)
    data = {}
    if rng.random() < 0.6:
        data |= {"costs_per_s": rng.uniform(0.1, 2.0, len(gpus)), "budget_per_s": float(rng.uniform(0.5, 8.0))}
        spent = (gang_gpus[:, None] * data["costs_per_s"]).ravel()
        table, limits = np.vstack([table, spent]), np.append(limits, data["budget_per_s"])
    if rng.random() < 0.6:
        data["least_rates"] = rates.max(axis=1) * rng.uniform(0.0, 0.3, len(gang_gpus))
        need = np.kron(np.eye(len(gang_gpus)), np.ones(rates.shape[1])) * -rates.ravel()
        table, limits = np.vstack([table, need]), np.append(limits, -data["least_rates"])
    expected = linprog(-rates.ravel(), A_ub=table, b_ub=limits, bounds=bounds)
    problem = eq.MaxSumThroughput(rates, gang_gpus, gpus, **data)
    result = eq.solve(problem, "highs", rel_gap=1e-8)
    if expected.status == 2:
        assert result.termination.reason is eq.Reason.INFEASIBLE
        return
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == pytest.approx(-expected.fun, rel=1e-7)
    assert result.residuals.worst <= 1e-8
    if "budget_per_s" in data:
        assert problem.spending(result.plan.shares) <= data["budget_per_s"] * (1 + 1e-8)


@given(seed=st.integers(0, 10**6))
def test_no_prices_prove_less_than_what_can_be_had(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    steps, prices = (
        rng.uniform(1.0, 9.0, len(gang_gpus)),
        rng.exponential(1.0, len(gpus)) * (rng.random(len(gpus)) > 0.3),
    )
    level, total = eq.MinTotalDuration(rates, steps, gang_gpus, gpus), eq.MaxSumThroughput(rates, gang_gpus, gpus)
    assert level.level_bound(prices) >= best_level(level.worth, rates, gang_gpus, gpus) * (1 - 1e-9)
    assert level.level_bound(prices) == pytest.approx(level.level_bound(7.0 * prices), rel=1e-9)  # whatever the unit
    table, limits, bounds = rows_of(rates, gang_gpus, gpus)
    best = -linprog(-rates.ravel(), A_ub=table, b_ub=limits, bounds=bounds).fun
    assert total.bound_at(prices) >= best * (1 - 1e-9)
    gains = np.maximum(0.0, (rates - gang_gpus[:, None] * prices).max(axis=1))
    assert total.bound_at(prices) == pytest.approx(prices @ gpus + gains.sum(), rel=1e-12)
    bounded = eq.MaxSumThroughput(rates, gang_gpus, gpus, costs_per_s=np.ones(len(gpus)), budget_per_s=1.0)
    assert bounded.bound_at(prices, 0.5) >= eq.solve(bounded, "highs").objective * (1 - 1e-9)


def hull_cost(worth, cost, rate):
    """Return the least cost of a rate over mixes of idleness and the types, by trying all pairs."""
    points = [(0.0, 0.0), *zip(worth, cost, strict=True)]
    values = [c for w, c in points if w == rate]
    for low, paid_low in points:
        for high, paid_high in points:
            if low < rate < high:
                values.append(paid_low + (paid_high - paid_low) * (rate - low) / (high - low))
    values += [c * rate / w for w, c in points if w >= rate and w > 0]
    return min(values, default=math.inf)


@given(seed=st.integers(0, 10**6))
def test_the_level_bound_is_the_dual_of_the_hulls(seed):
    """p.M + max_t (t - s sum_i cost_i(t; p)), at its best scale s of the prices, is the largest t that they can pay."""
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    problem = eq.MinTotalDuration(rates, rng.uniform(1.0, 9.0, len(gang_gpus)), gang_gpus, gpus)
    prices = rng.exponential(1.0, len(gpus)) + 1e-3
    bound = problem.level_bound(prices)
    worth = problem.worth

    def paid(level):
        return sum(hull_cost(worth[j], gang_gpus[j] * prices, level) for j in range(len(gang_gpus)))

    assert paid(bound * (1 - 1e-9)) <= prices @ gpus * (1 + 1e-9)
    assert bound >= worth.max(axis=1).min() * (1 - 1e-12) or paid(bound * (1 + 1e-6)) > prices @ gpus


@given(seed=st.integers(0, 10**6))
def test_a_plan_becomes_columns_and_comes_back(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    for problem in (eq.MaxMinFairness(rates, gang_gpus, gpus), eq.MaxSumThroughput(rates, gang_gpus, gpus)):
        shares = problem.isolated_shares * problem.runnable
        values = problem.encode(eq.GpuShares(shares))
        assert problem.decode(values).shares == pytest.approx(shares)
        assert problem.program().residuals_at(values).worst <= 1e-12
        assert problem.program().objective_at(values) == pytest.approx(problem.evaluate(eq.GpuShares(shares))[0])


@pytest.mark.parametrize("backend", GENERAL)
def test_general_backends_agree(backend):
    if not eq.backends(usable=True) or backend not in [row.name for row in eq.backends(usable=True)]:
        pytest.skip(f"{backend} is not installed")
    rng = np.random.default_rng(5)
    rates, gang_gpus, gpus = draw(rng, 8, 3, whole=False)
    steps = rng.uniform(1.0, 9.0, 8)
    for problem in (
        eq.MaxMinFairness(rates, gang_gpus, gpus),
        eq.MaxSumThroughput(rates, gang_gpus, gpus, [1.0, 2.0, 3.0], 9.0, least_rates=rates[:, 0] / 9),
        eq.MinTotalDuration(rates, steps, gang_gpus, gpus),
    ):
        result = eq.solve(problem, backend, rel_gap=1e-6)
        assert result.termination.reason is eq.Reason.OPTIMAL
        assert result.objective == pytest.approx(eq.solve(problem, "highs", rel_gap=1e-9).objective, rel=1e-6)


def test_one_type_has_its_closed_forms():
    rng = np.random.default_rng(3)
    for _ in range(40):
        rates, gang_gpus, gpus = draw(rng, types=1)
        n, m = rng.uniform(1.0, 99.0, len(gang_gpus)), int(gpus[0])
        fair = eq.solve(eq.MaxMinFairness(rates, gang_gpus, gpus), "highs").objective
        assert fair == pytest.approx(min(gang_gpus.min(), m / len(gang_gpus)), rel=1e-8)
        last = eq.solve(eq.MinTotalDuration(rates, n, gang_gpus, gpus), "highs").objective
        alone = n / rates[:, 0]
        assert last == pytest.approx(max(alone.max(), (gang_gpus * alone).sum() / m), rel=1e-8)
        left, best = float(m), 0.0
        for j in sorted(range(len(gang_gpus)), key=lambda j: -rates[j, 0] / gang_gpus[j]):
            share = min(1.0, left / gang_gpus[j])
            left -= share * gang_gpus[j]
            best += share * rates[j, 0]
        assert eq.solve(eq.MaxSumThroughput(rates, gang_gpus, gpus), "highs").objective == pytest.approx(best, rel=1e-8)


GOOD = {"rates": [[1.0, 2.0], [3.0, 0.0]], "gang_gpus": [1, 2], "gpus": [2, 4]}


@pytest.mark.parametrize(
    ("change", "field", "index"),
    [
        ({"rates": [[1.0, math.nan], [3.0, 0.0]]}, "rates", (0, 1)),
        ({"rates": [[1.0, 2.0], [3.0, -1.0]]}, "rates", (1, 1)),
        ({"rates": [[1.0, 2.0], [0.0, 0.0]]}, "rates", (1,)),
        ({"rates": [1.0, 3.0]}, "rates", None),
        ({"rates": [[1.0, 2.0]]}, "gang_gpus", None),
        ({"rates": []}, "rates", None),
        ({"rates": [["fast", 2.0], [3.0, 0.0]]}, "rates", (0, 0)),
        ({"gang_gpus": [1, 0]}, "gang_gpus", (1,)),
        ({"gang_gpus": [1.5, 1]}, "gang_gpus", (0,)),
        ({"gang_gpus": [True, 1]}, "gang_gpus", (0,)),
        ({"gang_gpus": []}, "gang_gpus", None),
        ({"gpus": [2, 0]}, "gpus", (1,)),
        ({"gpus": [2]}, "gpus", None),
        ({"weights": [1.0, 0.0]}, "weights", (1,)),
        ({"weights": [1.0]}, "weights", None),
        ({"weights": [1.0, math.inf]}, "weights", (1,)),
        ({"agnostic": 1}, "agnostic", None),
        ({"water_filling": "yes"}, "water_filling", None),
    ],
)
def test_bad_data_of_max_min_is_named(change, field, index):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.MaxMinFairness(**GOOD | change)
    assert caught.value.field == field
    assert caught.value.index == (index if index is None or len(index) > 1 else caught.value.index)
    if index is not None:
        assert np.ravel(caught.value.index).tolist() == list(index)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rates": [[1.0, math.inf], [3.0, 0.0]]}, "rates"),
        ({"rates": [[1e308, 1.0], [1e308, 0.0]]}, "rates"),
        ({"costs_per_s": [1.0, 2.0]}, "budget_per_s"),
        ({"budget_per_s": 3.0}, "costs_per_s"),
        ({"costs_per_s": [1.0], "budget_per_s": 3.0}, "costs_per_s"),
        ({"costs_per_s": [1.0, -2.0], "budget_per_s": 3.0}, "costs_per_s"),
        ({"costs_per_s": [1.0, 2.0], "budget_per_s": 0.0}, "budget_per_s"),
        ({"costs_per_s": [1.0, 2.0], "budget_per_s": "much"}, "budget_per_s"),
        ({"least_rates": [1.0]}, "least_rates"),
        ({"least_rates": [1.0, -1.0]}, "least_rates"),
    ],
)
def test_bad_data_of_max_sum_is_named(change, field):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.MaxSumThroughput(**GOOD | change)
    assert caught.value.field == field


@pytest.mark.parametrize("steps", [[1.0], [0.0, 1.0], [math.nan, 1.0], [1.0, -1.0], "ab", [1.0, None]])
def test_bad_steps_are_named(steps):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.MinTotalDuration(steps=steps, **GOOD)
    assert caught.value.field == "steps"


def test_a_plan_of_another_problem_is_refused():
    problem = eq.MaxMinFairness(**GOOD)
    for plan, field in (
        ("none", "plan"),
        (eq.GpuShares(np.zeros((3, 2))), "plan.shares"),
        (eq.GpuShares(np.zeros((2, 2)), np.zeros(3)), "plan.prices"),
    ):
        with pytest.raises(eq.InvalidInput) as caught:
            problem.evaluate(plan)
        assert caught.value.field == field
    with pytest.raises(eq.InvalidInput):
        problem.program("counts")


def test_what_breaks_p_is_measured():
    problem = eq.MaxMinFairness(**GOOD)

    def worst(shares):
        return problem.evaluate(eq.GpuShares(np.array(shares)))[1]

    assert worst([[1.0, 0.0], [0.5, 0.0]]).worst == 0.0
    assert worst([[-0.1, 0.0], [0.5, 0.0]]).bound == pytest.approx(0.1)
    assert worst([[0.0, 0.0], [0.5, 0.2]]).bound == pytest.approx(0.2)  # cannot run there
    assert worst([[0.6, 0.7], [0.0, 0.0]]).row == pytest.approx(0.3)  # more than the whole time
    assert worst([[1.0, 0.0], [1.0, 0.0]]).row == pytest.approx(0.5)  # 3 of 2 GPUs
    assert worst([[math.nan, 0.0], [0.0, 0.0]]).worst == math.inf
    late = eq.MaxSumThroughput(**GOOD, least_rates=[2.0, 0.0], costs_per_s=[1.0, 1.0], budget_per_s=2.0)
    found = late.evaluate(eq.GpuShares(np.array([[1.0, 0.0], [0.5, 0.0]])))[1]
    assert found.row == pytest.approx(0.5)  # half the least rate
    assert late.spending(np.array([[1.0, 0.0], [1.0, 0.0]])) == pytest.approx(3.0)


def test_a_job_that_runs_nowhere_gets_nothing_of_the_sum():
    result = eq.solve(eq.MaxSumThroughput([[0.0, 0.0], [1.0, 2.0]], [1, 1], [1, 1]), "highs")
    assert result.plan.shares.round(9).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_the_table_names_jobs_and_types():
    plan = eq.GpuShares(np.array([[0.5, 0.0], [0.0, 1.0]]), np.zeros(2))
    frame = plan.to_frame(jobs=["a", "b"], types=["v100", "k80"])
    assert frame.loc["b", "k80"] == 1.0
    assert plan.to_frame().index.tolist() == [0, 1]
    assert "2 jobs on 2 type(s)" in repr(plan)


def recorded(name):
    if not FIXTURES.exists():
        pytest.skip("the recorded calls are not here")
    return json.loads(FIXTURES.read_text())[name]


@pytest.mark.parametrize("backend", ["highs", "share_prices"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_min_fairness", "objective_closed_form"),
        ("max_sum_throughput_perf", "objective_closed_form"),
        ("min_total_duration", "T_closed_form_s"),
    ],
)
def test_recorded_calls_reach_their_closed_forms(name, value, backend):
    for call in recorded(name):
        rates, gang_gpus, gpus = np.array(call["throughput"])[:, None], call["scale_factor"], [call["num_gpus"]]
        if name == "max_min_fairness":
            problem = eq.MaxMinFairness(rates, gang_gpus, gpus)
        elif name == "max_sum_throughput_perf":
            problem = eq.MaxSumThroughput(rates, gang_gpus, gpus)
        else:
            problem = eq.MinTotalDuration(rates, call["steps_remaining"], gang_gpus, gpus)
        result = eq.solve(problem, backend, rel_gap=1e-8)
        assert result.objective == pytest.approx(call[value], rel=1e-7)
        assert result.termination.reason is eq.Reason.OPTIMAL
        if name == "max_min_fairness" and len(gang_gpus) >= gpus[0]:
            expected = gpus[0] / (len(gang_gpus) * np.array(gang_gpus))
            assert result.plan.shares[:, 0] == pytest.approx(expected, rel=1e-6)


def test_nothing_is_heard_of_extreme_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = [[1e-6, 1e6], [1e6, 1e-6], [1.0, 1.0]]
        for problem in (
            eq.MaxMinFairness(rates, [1, 4, 2], [3, 2]),
            eq.MinTotalDuration(rates, [1e-6, 1e6, 1.0], [1, 4, 2], [3, 2]),
            eq.MaxSumThroughput(rates, [1, 4, 2], [3, 2]),
        ):
            result = eq.solve(problem, rel_gap=1e-6)
            assert result.termination.reason is eq.Reason.OPTIMAL
