"""The share_prices backend: optimal by other solvers' word, the nearest optimum by its defining inequality, fast."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import equipoise as eq
from equipoise.formulations.shares.kernels import alike
from equipoise.solvers.shares.backend import nearest_optimum
from equipoise.solvers.shares.decomposition import SAMPLE
from equipoise.solvers.shares.restricted_master import RestrictedMaster
from equipoise.validation.benchmarks.shares import PROBLEMS, share_problem, share_rows

NEAREST = "the optimum nearest to isolated shares"


def draw(rng, jobs=None, types=None):
    """Return (rates, gangs, gpus); half of the time whole rates, which make ties."""
    jobs, types = jobs or int(rng.integers(1, 10)), types or int(rng.integers(1, 5))
    rates = rng.uniform(0.5, 4.0, (jobs, types)) * (rng.random((jobs, types)) > 0.2)
    if rng.random() < 0.5:
        rates = np.rint(rates)
    rates[rates.max(axis=1) == 0, int(rng.integers(types))] = 1.0
    return rates, rng.integers(1, 6, jobs), rng.integers(1, 12, types)


def problems(rng):
    rates, gang_gpus, gpus = draw(rng)
    yield eq.MaxMinFairness(rates, gang_gpus, gpus, rng.uniform(0.5, 2.0, len(gang_gpus)), bool(rng.random() < 0.5))
    yield eq.MaxSumThroughput(rates, gang_gpus, gpus)
    yield eq.MinTotalDuration(rates, rng.uniform(1.0, 9.0, len(gang_gpus)), gang_gpus, gpus)


def solved(problem, rel_gap=1e-9):
    result = eq.solve(problem, "share_prices", rel_gap=rel_gap)
    assert result.termination.reason is eq.Reason.OPTIMAL, result
    assert result.notes[-1] == NEAREST
    assert result.residuals.worst <= 1e-11
    return result


def furthest_optimum(problem, direction, least):
    """Return the largest direction.x over the optima, stated without the library: worth_j.x_j >= least_j for all.

    For the sum of worth, `least` is one number.
    """
    jobs, types = problem.rates.shape
    worth = problem.rates if isinstance(problem, eq.MaxSumThroughput) else problem.worth
    each = np.kron(np.eye(jobs), np.ones(types))
    capacity = np.vstack([(problem.gang_gpus[:, None] * (np.arange(types) == k)).ravel() for k in range(types)])
    need = -worth.ravel()[None, :] if np.ndim(least) == 0 else -each * worth.ravel()
    size = np.abs(need).max(axis=1)  # rows of one size: the solver's tolerance is absolute
    return linprog(
        -direction.ravel(),
        A_ub=np.vstack([each, capacity, need / size[:, None]]),
        b_ub=np.concatenate([np.ones(jobs), problem.gpus, np.atleast_1d(-np.asarray(least)) / size]),
        bounds=[(0.0, 1.0 if rate > 0 else 0.0) for rate in problem.rates.ravel()],
        # At this tolerance the presolve of HiGHS calls levels that a plan attains infeasible.
        options={"primal_feasibility_tolerance": 1e-10, "presolve": False},
    )


@given(seed=st.integers(0, 10**6))
def test_it_is_as_good_as_highs(seed):
    for problem in problems(np.random.default_rng(seed)):
        mine, other = solved(problem), eq.solve(problem, "highs", rel_gap=1e-9)
        assert mine.objective == pytest.approx(other.objective, rel=1e-8)


@given(seed=st.integers(0, 10**6))
def test_it_is_the_optimum_nearest_to_isolated_shares(seed):
    """x is nearest to y in a convex set exactly if no z of the set has (y - x).z > (y - x).x."""
    for problem in problems(np.random.default_rng(seed)):
        result = solved(problem)
        x = result.plan.shares
        away = problem.isolated_shares - x
        if isinstance(problem, eq.MaxSumThroughput):
            least = result.objective * (1 - 1e-12)
        else:
            least = np.full(len(x), problem.levels(x).min() * (1 - 1e-12))
        found = furthest_optimum(problem, away, least)
        assert found.status == 0
        assert -found.fun <= (away * x).sum() + 2e-7


def lexicographic(problem):
    """Return the levels of the lexicographic optimum, by one linear program per level and one per job and level."""
    worth, jobs = problem.worth, problem.num_jobs
    types = problem.num_types
    each = np.kron(np.eye(jobs), np.ones(types))
    capacity = np.vstack([(problem.gang_gpus[:, None] * (np.arange(types) == k)).ravel() for k in range(types)])
    limits = np.concatenate([np.ones(jobs), problem.gpus])
    bounds = [(0.0, 1.0 if rate > 0 else 0.0) for rate in problem.rates.ravel()]
    floor, fixed = np.zeros(jobs), np.zeros(jobs, dtype=bool)
    while not fixed.all():
        rising = (~fixed).astype(float)
        table = np.vstack([
            np.hstack([np.vstack([each, capacity]), np.zeros((jobs + types, 1))]),
            np.hstack([-each * worth.ravel(), rising[:, None]]),
        ])  # fmt: skip
        level = -linprog(
            np.append(np.zeros(jobs * types), -1.0),
            A_ub=table, b_ub=np.concatenate([limits, np.where(fixed, -floor, 0.0)]), bounds=[*bounds, (0, None)],
        ).fun  # fmt: skip
        floor = np.where(fixed, floor, level)
        before = fixed.copy()
        for j in np.flatnonzero(~before):
            most = -linprog(
                -(worth * (np.arange(jobs) == j)[:, None]).ravel(),
                A_ub=np.vstack([each, capacity, -each * worth.ravel()]),
                b_ub=np.concatenate([limits, -floor * (1 - 1e-9)]), bounds=bounds,
            ).fun  # fmt: skip
            fixed[j] = most <= level * (1 + 1e-4)
        assert (fixed & ~before).any()
    return floor


@pytest.mark.parametrize("seed", range(12))
def test_water_filling_is_the_lexicographic_optimum(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng, jobs=int(rng.integers(2, 7)))
    problem = eq.MaxMinFairness(rates, gang_gpus, gpus, water_filling=True)
    result = solved(problem)
    levels = problem.levels(result.plan.shares)
    assert levels == pytest.approx(lexicographic(problem), rel=1e-4)
    assert problem.shortfall(result.plan) <= 1e-9
    assert levels.min() == pytest.approx(solved(eq.MaxMinFairness(rates, gang_gpus, gpus)).objective, rel=1e-9)


def rises(problem, levels):
    """Return what each job could reach if no other fell below the lesser of its own level and that job's."""
    reached = []
    for j, level in enumerate(levels):
        own = (np.arange(problem.num_jobs) == j)[:, None] * problem.worth / problem.highest[j]
        reached.append(-furthest_optimum(problem, own, np.minimum(levels, level) * (1 - 1e-12)).fun)
    return np.array(reached) * problem.highest


@pytest.mark.parametrize("seed", [156, 183])
def test_no_job_is_held_that_can_rise(seed):
    """Many types and weights over three decades: some prices are rounding, and must hold nobody."""
    rng = np.random.default_rng(seed)
    jobs, types = int(rng.integers(20, 81)), int(rng.integers(6, 13))
    rates = rng.uniform(0.5, 4.0, (jobs, types)) * (rng.random((jobs, types)) > 0.3)
    rates[np.arange(jobs), rng.integers(0, types, jobs)] += rates.max(axis=1) == 0
    gang_gpus = rng.choice([1, 2, 4, 8], jobs)
    gpus = rng.integers(1, max(2, int(jobs * rng.choice([0.1, 0.3, 0.8])) + 1), types)
    problem = eq.MaxMinFairness(rates, gang_gpus, gpus, 10 ** rng.uniform(-1.5, 1.5, jobs), water_filling=True)
    result = eq.solve(problem, "share_prices", rel_gap=1e-4)
    result.require_optimal()
    levels = problem.levels(result.plan.shares)
    assert (rises(problem, levels) <= levels * (1 + 1e-4)).all()
    # A plan in which one job has less than it could have is not proved to be optimal by any of these prices.
    worse = eq.GpuShares(result.plan.shares.copy(), result.plan.prices, level_prices=result.plan.level_prices)
    worse.shares[int(levels.argmax())] *= 0.7
    assert problem.shortfall(worse) >= 0.3 - 1e-4


@given(seed=st.integers(0, 10**6))
def test_whatever_the_prices_no_job_rises_above_its_proved_level(seed):
    rng = np.random.default_rng(seed)
    rates, gang_gpus, gpus = draw(rng)
    weights = 10 ** rng.uniform(-1.5, 1.5, len(gang_gpus))
    problem = eq.MaxMinFairness(rates, gang_gpus, gpus, weights, water_filling=True)
    best = eq.solve(problem, "share_prices").plan
    drawn = rng.random((2, len(gpus))) * 10.0 ** rng.integers(-14, 1, (2, len(gpus)))  # some are like rounding
    for shares, prices in (
        (best.shares, np.vstack([drawn, best.level_prices + 1e-12 * drawn[:1]])),
        (best.shares * rng.uniform(0.5, 1.0, (len(gang_gpus), 1)), best.level_prices),
        (problem.isolated_shares * problem.runnable, drawn),
    ):
        plan = eq.GpuShares(shares, level_prices=prices)
        reach = rises(problem, problem.levels(shares))
        for settled in (1e-9, 1e-3):
            assert (reach <= problem.proved_levels(plan, settled) * (1 + 1e-6)).all()


def test_water_filling_on_one_type_is_the_water_level():
    problem = eq.MaxMinFairness([[1.0]] * 4, [1, 1, 2, 4], [7], water_filling=True)
    # Level 1 caps the two narrow jobs; what they leave, 5 GPUs, would be 2.5 each; the job of two GPUs has 2 at most.
    assert problem.levels(solved(problem).plan.shares).tolist() == pytest.approx([1.0, 1.0, 2.0, 3.0])


def test_a_plan_that_stops_at_the_first_level_is_short():
    problem = eq.MaxMinFairness([[1.0]] * 4, [1, 1, 2, 4], [7], water_filling=True)
    plan = eq.GpuShares(np.array([[1.0], [1.0], [0.5], [0.25]]), np.zeros(1), level_prices=np.array([[1 / 7]]))
    assert problem.shortfall(plan) == pytest.approx(3 / 4)  # the last job alone could have the whole time
    assert problem.proved_bound(plan) == pytest.approx(
        4.0
    )  # a gap of three quarters counts like one of the least level


def test_no_general_backend_takes_water_filling_for_less():
    problem = eq.MaxMinFairness([[1.0]], [1], [1], water_filling=True)
    with pytest.raises(eq.UnsupportedProblem, match="share_prices"):
        eq.solve(problem, "highs")
    assert eq.solve(problem).backend == "share_prices"


@given(seed=st.integers(0, 10**6))
def test_relations_between_problems(seed):
    rng = np.random.default_rng(seed)
    for problem in problems(rng):
        rates, gang_gpus, gpus = problem.rates, problem.gang_gpus, problem.gpus
        extra = {
            name: getattr(problem, name) for name in ("weights", "agnostic", "steps") if hasattr(problem, name)
        }  # fmt: skip

        def made(rates, gang_gpus, gpus, jobs=slice(None), scale=1.0, problem=problem, extra=extra):
            data = {k: v[jobs] if np.ndim(v) else v for k, v in extra.items()}
            return solved(type(problem)(rates=rates * scale, gang_gpus=gang_gpus, gpus=gpus, **data))

        base = solved(problem)
        factor = {eq.MaxMinFairness: 1.0, eq.MaxSumThroughput: 1000.0, eq.MinTotalDuration: 0.001}[type(problem)]
        faster = made(rates, gang_gpus, gpus, scale=1000.0)  # the shares are the same, whatever a step is
        assert faster.objective == pytest.approx(factor * base.objective, rel=1e-9)
        assert faster.plan.shares == pytest.approx(base.plan.shares, abs=1e-6)
        order = rng.permutation(len(gang_gpus))
        turned = made(rates[order], gang_gpus[order], gpus, jobs=order)
        assert turned.plan.shares == pytest.approx(base.plan.shares[order], abs=1e-6)
        twice = np.tile(np.arange(len(gang_gpus)), 2)
        double = made(rates[twice], gang_gpus[twice], 2 * gpus, jobs=twice)
        assert double.plan.shares == pytest.approx(base.plan.shares[twice], abs=1e-6)
        useless = made(np.column_stack([rates, np.zeros(len(gang_gpus))]), gang_gpus, np.append(gpus, 3))
        if not isinstance(problem, eq.MaxMinFairness):  # there the type counts in what is proportional
            assert useless.objective == pytest.approx(base.objective, rel=1e-9)
        assert (useless.plan.shares[:, -1] == 0).all()


def test_the_tie_break_is_one_function_of_the_problem():
    # Three equal jobs for two GPUs: any two of them are optimal, and the nearest to 2/3 each is 2/3 each.
    problem = eq.MaxSumThroughput([[1.0]] * 3, [1, 1, 1], [2])
    assert nearest_optimum(problem).shares[:, 0].tolist() == pytest.approx([2 / 3] * 3)
    # With GPUs to spare beyond the least level, the narrow jobs keep their isolated shares.
    fair = eq.MaxMinFairness([[1.0]] * 3, [1, 1, 4], [6])
    assert nearest_optimum(fair).shares[:, 0].tolist() == pytest.approx([1.0, 1.0, 0.5])
    other = eq.solve(fair, "highs", rel_gap=1e-9)
    assert nearest_optimum(fair).shares.tobytes() == solved(fair).plan.shares.tobytes()
    assert fair.levels(other.plan.shares).min() == pytest.approx(fair.levels(nearest_optimum(fair).shares).min())
    with pytest.raises(eq.UnsupportedProblem, match="OpenShop"):
        nearest_optimum(eq.OpenShop([[1]]))


def test_the_same_problem_has_the_same_bits():
    rng = np.random.default_rng(8)
    for problem in problems(rng):
        first, again = solved(problem).plan, solved(problem).plan
        assert first.shares.tobytes() == again.shares.tobytes()
        assert first.prices.tobytes() == again.prices.tobytes()


def test_jobs_that_are_alike_get_the_same_and_cost_no_more():
    rng = np.random.default_rng(2)
    rates, gang_gpus = rng.uniform(1.0, 3.0, (7, 3)), rng.integers(1, 5, 7)
    kind = rng.integers(0, 7, 500)
    problem = eq.MaxSumThroughput(rates[kind], gang_gpus[kind], [80, 60, 40])
    result = solved(problem)
    assert result.notes[0].startswith("7 groups of 500 jobs")
    for k in range(7):
        rows = result.plan.shares[kind == k]
        assert (rows == rows[0]).all()
    assert result.objective == pytest.approx(eq.solve(problem, "highs", rel_gap=1e-9).objective, rel=1e-9)


def test_groups_are_equal_rows():
    rows = np.array([[1.0, 2.0], [0.0, 2.0], [1.0, 2.0], [-0.0, 2.0], [0.0, 2.0]])
    first, of_job, counts = alike(rows)
    assert first.tolist() == [0, 1, 3]  # -0.0 may be a group of its own: that changes no answer
    assert of_job.tolist() == [0, 1, 0, 2, 1]
    assert counts.tolist() == [2.0, 2.0, 1.0]


@given(seed=st.integers(0, 10**6))
def test_the_master_is_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 30))
    limits, table = rng.uniform(0.5, 2.0, rows), rng.uniform(0.0, 1.0, (rows, columns)) + 0.01
    worth = rng.uniform(0.0, 1.0, columns)
    master = RestrictedMaster(limits)
    for s in range(columns):
        master.add(float(worth[s]), table[:, s])
    expected = linprog(-worth, A_ub=table, b_ub=limits)
    assert master.value == pytest.approx(-expected.fun, rel=1e-9)
    assert master.prices @ limits == pytest.approx(-expected.fun, rel=1e-9)
    assert (sum(table[:, s] * z for s, z in master.parts) <= limits + 1e-9).all()
    assert all(master.gain(float(worth[s]), table[:, s]) <= 1e-9 for s in range(columns))


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROBLEMS)
def test_many_different_jobs_are_certified(name):
    """More groups than a sample holds: prices come from the sample first, and most jobs are asked only once more."""
    problem = share_problem(name, jobs=2 * SAMPLE + 2000, types=3, distinct=None, seed=1)
    # Rounding of the whole sum lets a single job rise by so much more as there are jobs.
    result = solved(problem, rel_gap=1e-8 if name == "water_filling" else 1e-9)
    if name in ("max_sum", "duration"):  # HiGHS takes 10 s for the others
        assert result.objective == pytest.approx(eq.solve(problem, "highs", rel_gap=1e-7).objective, rel=1e-7)


def test_extreme_instances():
    one = solved(eq.MaxMinFairness([[2.0]], [1], [4]))
    assert one.plan.shares.tolist() == [[1.0]]
    wide = solved(eq.MaxMinFairness([[1.0, 1.0]], [8], [2, 4]))  # P lets a gang have a part of its time on few GPUs
    assert wide.plan.shares.ravel().tolist() == pytest.approx([0.25, 0.5])
    idle = solved(eq.MaxSumThroughput([[0.0], [0.0]], [1, 1], [2]))
    assert idle.objective == 0.0
    assert idle.plan.shares.tolist() == [[0.0], [0.0]]
    nowhere = solved(eq.MaxSumThroughput([[0.0, 0.0], [1.0, 0.0]], [1, 1], [2, 2]))
    assert nowhere.plan.shares.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    rng = np.random.default_rng(4)
    for _ in range(20):  # speeds of jobs over 12 orders of magnitude
        jobs = int(rng.integers(2, 30))
        rates = 10 ** rng.uniform(-6, 6, (jobs, 1)) * rng.uniform(0.3, 1.0, (jobs, 3))
        gang_gpus, gpus = rng.integers(1, 9, jobs), rng.integers(1, 20, 3)
        for problem in (eq.MaxMinFairness(rates, gang_gpus, gpus), eq.MaxSumThroughput(rates, gang_gpus, gpus)):
            assert eq.solve(problem, "share_prices", rel_gap=1e-9).termination.reason is eq.Reason.OPTIMAL


@pytest.mark.parametrize("name", ["max_min", "water_filling", "max_sum"])
@pytest.mark.parametrize("jobs", [300, 2 * SAMPLE + 1000])
def test_out_of_time_is_said_and_what_there_is_is_feasible(name, jobs):
    problem = share_problem(name, jobs=jobs, types=3, distinct=None, seed=0)
    result = eq.solve(problem, "share_prices", time_limit=0.0, rel_gap=1e-9)
    assert result.termination.reason is eq.Reason.FEASIBLE
    assert result.termination.limit is eq.Limit.TIME
    assert result.residuals.worst <= 1e-9
    best = eq.solve(problem, "share_prices").objective
    assert 0.1 * best < result.objective < best < result.bound
    # With water filling the bound covers every level: of what is unfinished, single jobs may have much more.
    assert (problem.level_bound(result.plan.prices) if name == "water_filling" else result.bound) < 3.0 * best


def test_options_that_it_does_not_have_are_refused():
    problem = eq.MaxMinFairness([[1.0]], [1], [1])
    with pytest.raises(eq.InvalidInput, match="it has no options"):
        eq.solve(problem, "share_prices", backend_options={"share_prices": {"cuts": 3}})
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(problem, "share_prices", warm_start=eq.GpuShares(np.ones((1, 1))))


def test_it_runs_in_a_process_of_its_own():
    problem = eq.MaxMinFairness([[1.0], [2.0]], [1, 2], [1])
    result = eq.solve(problem, "share_prices", isolate=True)
    assert result.plan.shares.tobytes() == nearest_optimum(problem).shares.tobytes()


def test_the_benchmark_measures_all_it_is_asked_for():
    peers = ["share_prices", "highs ipm"]
    rows = list(share_rows(jobs=60, types=2, distinct=9, problems=["max_min", "water_filling"], peers=peers))
    assert [(row["problem"], row["backend"]) for row in rows] == [
        ("max_min", "share_prices"),
        ("max_min", "highs ipm"),
        ("water_filling", "share_prices"),
    ]
    assert all(row["state"] == "OPTIMAL" and row["gap"] <= 1e-6 and row["ratio"] > 0 for row in rows)
    for change in ({"jobs": 0}, {"problems": ["max"]}, {"peers": ["cplex"]}, {"time_limit": 0.0}, {"distinct": 0}):
        with pytest.raises(eq.InvalidInput):
            next(share_rows(**{"jobs": 5} | change))
    with pytest.raises(eq.InvalidInput):
        share_problem("min", jobs=5, types=1, distinct=None, seed=0)
