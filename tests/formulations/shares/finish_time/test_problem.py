"""Finish-time fairness: closed forms and oracles, bounds that prices prove, ties, agreement of backends, bad input."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from shared_data import SHOCKWAVE

import equipoise as eq

FIXTURES = SHOCKWAVE / "policy_call_fixtures.json"
FIELDS = ("rates", "gang_gpus", "gpus", "steps", "elapsed_s", "isolated_elapsed_s", "isolated_rates")
ONE = dict(zip(FIELDS, ([[1.0, 2.0]], [1], [1, 1], [5.0], [1.0], [1.0], [1.0]), strict=True))
BACKENDS = [row.name for row in eq.backends(eq.FinishTimeFairness(**ONE), usable=True)]


def recorded():
    if not FIXTURES.is_file():
        return [None] * 4
    return json.loads(FIXTURES.read_text(encoding="utf-8"))["finish_time_fairness"]


def drawn(seed, jobs, types, contended=True):
    """A problem whose level is set by contention, or by the job that has waited longest."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.5, 4.0, (jobs, types)) * (rng.random((jobs, types)) < 0.8)
    rates[rates.max(axis=1) == 0, 0] = 1.0
    gang_gpus = rng.choice([1, 1, 2, 4], jobs)
    gpus = rng.integers(1, 3, types) + (0 if contended else 4 * jobs)
    elapsed = rng.uniform(0, 50, jobs) if contended else rng.uniform(0, 500, jobs)
    return eq.FinishTimeFairness(
        rates=rates,
        gang_gpus=gang_gpus,
        gpus=gpus,
        steps=rng.uniform(50, 400, jobs),
        elapsed_s=elapsed,
        isolated_elapsed_s=elapsed * rng.uniform(0.2, 1.0, jobs),
        isolated_rates=rng.uniform(0.1, 1.0, jobs),
    )


def data_of(problem, **changed):
    return {name: getattr(problem, name) for name in FIELDS} | changed


def reachable(problem, level):
    """Whether some shares reach the level, by an LP on the data alone."""
    jobs, types = problem.rates.shape
    late = level * (problem.isolated_elapsed_s + problem.steps / problem.isolated_rates) - problem.elapsed_s
    if (late <= 0).any():
        return False
    rows, sides = [], []
    for j in range(jobs):
        row = np.zeros((jobs, types))
        row[j] = -problem.rates[j]
        rows.append(row.ravel())
        sides.append(-problem.steps[j] / late[j])
        row = np.zeros((jobs, types))
        row[j] = 1.0
        rows.append(row.ravel())
        sides.append(1.0)
    for k in range(types):
        row = np.zeros((jobs, types))
        row[:, k] = problem.gang_gpus
        rows.append(row.ravel())
        sides.append(problem.gpus[k])
    return linprog(np.zeros(jobs * types), A_ub=rows, b_ub=sides, method="highs").status == 0


def lowest(problem):
    low, high = 0.0, 1.0
    while not reachable(problem, high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if reachable(problem, middle) else (middle, high)
    return high


@pytest.mark.skipif(not FIXTURES.is_file(), reason="shared/data/shockwave/policy_call_fixtures.json is not here")
@pytest.mark.parametrize("index", range(4))
def test_recorded_policy_calls_reach_their_closed_form(index):
    call = recorded()[index]
    problem = eq.FinishTimeFairness(
        rates=np.array(call["throughput"])[:, None],
        gang_gpus=call["scale_factor"],
        gpus=[call["num_gpus"]],
        steps=call["steps_remaining"],
        elapsed_s=call["time_since_arrival_s"],
        isolated_elapsed_s=call["cumulative_isolated_time_s"],
        isolated_rates=call["isolated_throughput"],
    )
    for backend in ("finish_time", "highs"):
        result = eq.solve(problem, backend, rel_gap=1e-7)
        result.require_optimal()
        assert result.objective == pytest.approx(call["rho_closed_form"], rel=1e-6)
        assert result.bound == pytest.approx(call["rho_closed_form"], rel=1e-6)
    # The artifact's own shares are no better than their level says.
    theirs = eq.GpuShares(np.array(call["allocation"])[:, None])
    assert problem.evaluate(theirs)[0] == pytest.approx(call["rho_achieved"], rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_one_type_is_the_closed_form(seed):
    problem = drawn(seed, jobs=6, types=1)
    denominator = problem.isolated_elapsed_s + problem.steps / problem.isolated_rates
    seconds = problem.steps / problem.rates[:, 0]
    low, high = 0.0, 1e6
    for _ in range(200):
        level = (low + high) / 2
        late = level * denominator - problem.elapsed_s
        used = (problem.gang_gpus * seconds / np.where(late > 0, late, 1)).sum()
        fits = (late >= seconds).all() and used <= problem.gpus[0]
        low, high = (low, level) if fits else (level, high)
    result = eq.solve(problem, rel_gap=1e-9)
    assert result.objective == pytest.approx(high, rel=1e-9)
    assert result.bound == pytest.approx(high, rel=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("contended", [True, False])
@pytest.mark.parametrize(("seed", "types"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_several_types_against_a_bisection_over_linear_programs(seed, types, contended):
    problem = drawn(seed, jobs=5, types=types, contended=contended)
    level = lowest(problem)
    result = eq.solve(problem, rel_gap=1e-8)
    result.require_optimal()
    assert result.backend == "finish_time"
    assert result.objective == pytest.approx(level, rel=1e-6)
    assert result.bound <= level * (1 + 1e-6)


@pytest.mark.thorough
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), prices=st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_whatever_the_prices_their_bound_holds(seed, prices):
    problem = drawn(seed, jobs=5, types=3)
    best = eq.solve(problem, rel_gap=1e-7).objective
    plain = problem.isolated_shares
    assert problem.proved_bound(eq.GpuShares(plain, np.array(prices, dtype=float))) <= best * (1 + 1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize("prices", [[np.nan, 1.0], [-1.0, -2.0], [np.inf, 1.0], [0.0, 0.0], [1e300, 1e-300]])
def test_prices_that_are_none_prove_no_more_than_is_true(prices):
    problem = drawn(7, jobs=5, types=2)
    bound = problem.proved_bound(eq.GpuShares(problem.isolated_shares, np.array(prices)))
    assert 0 < bound <= eq.solve(problem, rel_gap=1e-7).objective * (1 + 1e-7)


def test_a_level_just_below_the_bound_is_out_of_reach():
    problem = drawn(11, jobs=6, types=2)
    result = eq.solve(problem, rel_gap=1e-9)
    assert not reachable(problem, result.bound * (1 - 1e-5))
    assert reachable(problem, result.objective * (1 + 1e-7))


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("types", [1, 3])
def test_every_capable_backend_agrees(name, types):
    problem = drawn(21, jobs=4, types=types)
    best = eq.solve(problem, "finish_time", rel_gap=1e-9).objective
    result = eq.solve(problem, name, rel_gap=1e-3, time_limit=20)
    assert result.plan is not None, result.termination
    assert result.objective >= best * (1 - 1e-9)
    assert result.objective == pytest.approx(best, rel=2e-3)
    assert result.bound <= best * (1 + 1e-9)


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from([0.25, 3.0, 1000.0]))
def test_metamorphic_relations(seed, factor):
    problem = drawn(seed, jobs=4, types=2)
    best = eq.solve(problem, rel_gap=1e-8).objective

    def level(**changed):
        return eq.solve(eq.FinishTimeFairness(**data_of(problem, **changed)), rel_gap=1e-8).objective

    # The unit of steps, and that of time, change nothing.
    rates, iso = problem.rates * factor, problem.isolated_rates * factor
    assert level(rates=rates, steps=problem.steps * factor, isolated_rates=iso) == pytest.approx(best, rel=1e-7)
    times = {"elapsed_s": problem.elapsed_s / factor, "isolated_elapsed_s": problem.isolated_elapsed_s / factor}
    assert level(rates=rates, isolated_rates=iso, **times) == pytest.approx(best, rel=1e-7)
    # Nor does the order of the jobs.
    turned = {name: getattr(problem, name)[::-1] for name in FIELDS if name != "gpus"}
    assert level(**turned) == pytest.approx(best, rel=1e-7)
    # All gangs and all types twice as large are the same problem; more GPUs alone are no worse.
    assert level(gang_gpus=2 * problem.gang_gpus, gpus=2 * problem.gpus) == pytest.approx(best, rel=1e-7)
    assert level(gpus=problem.gpus + np.array([1, 0])) <= best * (1 + 1e-7)


def test_ties_take_the_isolated_shares_where_there_is_room():
    # The first job has waited so long that only its own speed matters; the others may have anything that is enough.
    problem = eq.FinishTimeFairness(
        rates=np.ones((4, 1)),
        gang_gpus=[1, 1, 2, 1],
        gpus=[3],
        steps=[100.0] * 4,
        elapsed_s=[2000.0, 0.0, 0.0, 0.0],
        isolated_elapsed_s=[100.0, 0.0, 0.0, 0.0],
        isolated_rates=[0.75, 0.75, 0.375, 0.75],
    )
    plan = eq.solve(problem, rel_gap=1e-9).require_optimal()
    # Job 0 needs all its time. Two GPUs are left, and the isolated shares 3/4, 3/8, 3/4 take more: 2.25 in all. They
    # all give up a ninth of theirs: then sum_j (g_j / s_j) (x_j - s_j)^2 is least.
    assert plan.shares[:, 0] == pytest.approx([1.0, 0.75 * 8 / 9, 0.375 * 8 / 9, 0.75 * 8 / 9], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_ties_are_nearest_by_a_general_method(seed):
    rng = np.random.default_rng(seed)
    jobs, types = 4, 2
    problem = eq.FinishTimeFairness(
        rates=rng.uniform(0.5, 2.0, (jobs, types)),
        gang_gpus=[1, 2, 1, 1],
        gpus=[2, 1],
        steps=rng.uniform(50, 100, jobs),
        elapsed_s=np.array([3000.0, 0, 0, 0]),
        isolated_elapsed_s=np.array([200.0, 0, 0, 0]),
        isolated_rates=np.full(jobs, 0.05),
    )
    plan = eq.solve(problem, rel_gap=1e-6).require_optimal()
    level = problem.evaluate(plan)[0]
    need = problem.steps / (level * problem.isolated_s - problem.elapsed_s)

    def far(shares):
        weights = problem.gang_gpus / problem.isolated_shares.sum(axis=1)
        return float(weights @ ((shares.reshape(jobs, types) - problem.isolated_shares) ** 2).sum(axis=1))

    found = minimize(
        far,
        plan.shares.ravel(),
        bounds=[(0, 1)] * (jobs * types),
        constraints=[
            {"type": "ineq", "fun": lambda x: 1 - x.reshape(jobs, types).sum(axis=1)},
            {"type": "ineq", "fun": lambda x: problem.gpus - problem.gang_gpus @ x.reshape(jobs, types)},
            {"type": "ineq", "fun": lambda x: (problem.rates * x.reshape(jobs, types)).sum(axis=1) / need - 1},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert far(plan.shares) <= found.fun + 1e-6


def test_same_input_same_bits():
    first, second = (eq.solve(drawn(5, jobs=8, types=3), rel_gap=1e-6).plan.shares for _ in range(2))
    assert (first == second).all()


def test_a_job_with_no_steps_counts_with_what_it_took():
    problem = eq.FinishTimeFairness(
        rates=[[0.0], [1.0]], gang_gpus=[1, 1], gpus=[1], steps=[0, 100], elapsed_s=[90.0, 0.0],
        isolated_elapsed_s=[30.0, 0.0], isolated_rates=[1.0, 1.0],
    )  # fmt: skip
    result = eq.solve(problem, rel_gap=1e-9)
    assert result.objective == pytest.approx(3.0)
    assert eq.solve(problem, "highs").objective == pytest.approx(3.0)


def test_extremes():
    one = dict(zip(FIELDS, ([[1e-6]], [64], [1], [1e9], [0.0], [0.0], [1e-9]), strict=True))
    assert eq.solve(eq.FinishTimeFairness(**one), rel_gap=1e-9).objective == pytest.approx(1e-9 / 1e-6 * 64)
    none = eq.FinishTimeFairness(**one | {"steps": [0.0], "isolated_elapsed_s": [4.0], "elapsed_s": [0.0]})
    assert eq.solve(none).objective == 0.0
    stopped = eq.solve(drawn(3, jobs=30, types=3), time_limit=0.0, rel_gap=0.0)
    assert stopped.plan is not None
    assert stopped.bound <= stopped.objective
    assert stopped.residuals.worst <= 1e-9


def test_evaluate_sees_what_is_wrong_with_shares():
    problem = drawn(4, jobs=3, types=2)
    shares = eq.solve(problem).plan.shares
    assert problem.evaluate(eq.GpuShares(shares))[1].worst <= 1e-12
    assert problem.evaluate(eq.GpuShares(shares - 0.2))[1].bound > 0.05
    assert problem.evaluate(eq.GpuShares(shares + 5.0))[1].row > 1.0
    assert problem.evaluate(eq.GpuShares(0 * shares))[0] == np.inf
    with pytest.raises(eq.InvalidInput, match="plan"):
        problem.evaluate("shares")


def test_a_plan_goes_into_the_program_and_back():
    problem = drawn(6, jobs=4, types=2)
    plan = eq.solve(problem, rel_gap=1e-9).plan
    program = problem.program()
    values = problem.encode(plan)
    assert program.residuals_at(values).worst <= 1e-9
    assert np.allclose(problem.decode(values).shares, plan.shares, atol=1e-12)
    # The program is a relaxation: its value at the optimum is no more than the level, and near it.
    relaxed = eq.solve(problem, "highs")
    duals = np.concatenate([relaxed.duals[name].ravel() for name in program.rows])
    assert relaxed.objective * 0.99 <= program.linear_bound(duals) <= relaxed.objective


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rates", [[-1.0, 2.0]]),
        ("rates", [[np.nan, 2.0]]),
        ("rates", [[0.0, 0.0]]),
        ("rates", [1.0, 2.0]),
        ("rates", []),
        ("gang_gpus", [0]),
        ("gang_gpus", [1.5]),
        ("gang_gpus", [1, 1]),
        ("gpus", [1]),
        ("gpus", [0, 1]),
        ("gpus", [True, 1]),
        ("steps", [-1.0]),
        ("steps", ["5"]),
        ("steps", [1e308]),
        ("elapsed_s", [-1.0]),
        ("elapsed_s", [np.inf]),
        ("isolated_elapsed_s", [-0.1]),
        ("isolated_elapsed_s", [0.0, 1.0]),
        ("isolated_rates", [0.0]),
        ("isolated_rates", [None]),
    ],
)
def test_bad_input_is_named(field, value):
    eq.FinishTimeFairness(**ONE)
    with pytest.raises(eq.InvalidInput) as error:
        eq.FinishTimeFairness(**ONE | {field: value} | ({"isolated_rates": [1e-9]} if value == [1e308] else {}))
    assert error.value.field == field


def test_nothing_done_and_nothing_to_do_is_no_fairness():
    with pytest.raises(eq.InvalidInput, match="needs a positive isolated_elapsed_s"):
        eq.FinishTimeFairness(**ONE | {"steps": [0.0], "isolated_elapsed_s": [0.0]})


def test_the_backend_refuses_what_it_does_not_know():
    with pytest.raises(eq.InvalidInput, match="no options"):
        eq.solve(eq.FinishTimeFairness(**ONE), "finish_time", backend_options={"finish_time": {"x": 1}})
    with pytest.raises(eq.InvalidInput, match="form"):
        eq.solve(eq.FinishTimeFairness(**ONE), "highs", form="levels")
