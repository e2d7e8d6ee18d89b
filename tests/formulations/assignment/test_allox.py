"""AlloX's matching: recorded calls, oracles, slot prices that prove it, what the plan says of queues, bad input."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from shared_data import SHOCKWAVE

import equipoise as eq

FIXTURES = SHOCKWAVE / "policy_call_fixtures.json"
ONE = {"steps": [4.0], "rates": [[1.0, 2.0]], "waited_s": [3.0], "workers_of_type": [1, 1]}
BACKENDS = [row.name for row in eq.backends(eq.AlloxMatching(**ONE), usable=True)]


def drawn(seed, jobs, workers, whole=False):
    rng = np.random.default_rng(seed)
    types = len(workers)
    rates = rng.uniform(0.3, 3.0, (jobs, types)) * (rng.random((jobs, types)) < 0.8)
    steps = rng.integers(1, 6, jobs).astype(float) if whole else rng.uniform(1, 100, jobs)
    rates = np.where(rates > 0, 1.0, 0.0) if whole else rates
    rates[rates.max(axis=1) == 0, 0] = 1.0
    return eq.AlloxMatching(steps=steps, rates=rates, waited_s=rng.uniform(0, 50, jobs), workers_of_type=workers)


def by_assignment(problem):
    """Every worker's every place as a column of its own, as AlloX's paper states it."""
    jobs = len(problem.steps)
    with np.errstate(divide="ignore"):
        times = np.where(problem.rates > 0, problem.steps[:, None] / problem.rates, 1e12)
    columns = [
        k * times[:, [kind]] for kind, count in enumerate(problem.workers_of_type) for _ in range(count)
        for k in range(1, jobs + 1)
    ]  # fmt: skip
    costs = np.hstack(columns)
    rows, chosen = linear_sum_assignment(costs)
    return float(costs[rows, chosen].sum() + problem.waited_s.sum())


@pytest.mark.skipif(not FIXTURES.is_file(), reason="shared/data/shockwave/policy_call_fixtures.json is not here")
@pytest.mark.parametrize("index", range(4))
def test_recorded_policy_calls_have_the_same_matching_cost(index):
    call = json.loads(FIXTURES.read_text(encoding="utf-8"))["allox"][index]
    steps, rate, waited, gang_gpus, given_shares = (
        np.array(call[name], dtype=float)
        for name in ("steps_remaining", "throughput", "time_since_arrival_s", "scale_factor", "allocation")
    )
    # The earliest max(alpha m, free workers) of the jobs, as the policy takes them.
    taken = np.argsort(-waited, kind="stable")[: max(int(0.2 * len(steps)), call["num_gpus"])]
    problem = eq.AlloxMatching(
        steps=steps[taken], rates=rate[taken, None], waited_s=waited[taken], workers_of_type=[call["num_gpus"]]
    )
    plan = eq.solve(problem, "matching", rel_gap=0.0).require_optimal()
    # Recorded: who was first on a worker, at a share of 1/g; nobody waited behind another.
    theirs = given_shares > 0
    assert problem.evaluate(plan)[0] == pytest.approx((steps / rate + waited)[theirs].sum(), abs=1e-6)
    shares = np.zeros(len(steps))
    shares[taken] = plan.shares(gang_gpus[taken])[:, 0]
    assert shares == pytest.approx(given_shares, abs=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [[3], [2, 1], [1, 4, 2], [0, 2], [1, 1, 1, 1]])
@pytest.mark.parametrize("seed", range(3))
def test_as_cheap_as_an_assignment_of_every_place(seed, workers):
    rng = np.random.default_rng(seed)
    problem = drawn(seed, jobs=12, workers=workers) if workers[0] else eq.AlloxMatching(
        steps=rng.uniform(1, 9, 12), rates=np.ones((12, 2)), waited_s=np.zeros(12), workers_of_type=workers
    )  # fmt: skip
    result = eq.solve(problem, "matching", rel_gap=0.0)
    result.require_optimal()
    assert result.objective == pytest.approx(by_assignment(problem), rel=1e-12)
    assert result.bound == pytest.approx(result.objective, rel=1e-12)


@pytest.mark.thorough
def test_every_order_of_few_jobs():
    problem = drawn(8, jobs=5, workers=[1, 1])
    best = np.inf
    for kinds in itertools.product(range(2), repeat=5):
        for order in itertools.permutations(range(5)):
            clock, total = np.zeros(2), problem.waited_s.sum()
            for job in order:
                rate = problem.rates[job, kinds[job]]
                clock[kinds[job]] += problem.steps[job] / rate if rate > 0 else np.inf
                total += clock[kinds[job]]
            best = min(best, total)
    assert eq.solve(problem, rel_gap=0.0).objective == pytest.approx(best, rel=1e-12)


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 15), whole=st.booleans())
def test_the_prices_prove_it_however_many_jobs_are_alike(seed, jobs, whole):
    problem = drawn(seed, jobs, [2, 1], whole)
    result = eq.solve(problem, "matching", rel_gap=0.0)
    result.require_optimal()
    assert result.bound == pytest.approx(by_assignment(problem), rel=1e-9)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    prices=st.lists(st.lists(st.integers(-3, 40), min_size=3, max_size=3), min_size=2, max_size=2),
)  # fmt: skip
def test_whatever_the_prices_their_bound_holds(seed, prices):
    problem = drawn(seed, 7, [1, 2])
    plan = eq.AlloxPlan(problem, problem.times_s.argmin(axis=1), np.array(prices, dtype=float))
    assert problem.proved_bound(plan) <= by_assignment(problem) * (1 + 1e-12)


def test_queues_grow_where_all_want_one_type():
    rates = np.ones((60, 2))
    rates[:, 1] = 1e-3
    rates[5:20, 1] = 0
    problem = eq.AlloxMatching(steps=np.linspace(1, 9, 60), rates=rates, waited_s=np.zeros(60), workers_of_type=[1, 30])
    result = eq.solve(problem, "matching", rel_gap=0.0)
    assert result.objective == pytest.approx(by_assignment(problem), rel=1e-9)
    assert result.bound == pytest.approx(result.objective, rel=1e-12)
    assert result.plan.depth.max() > 20


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("seed", "workers"), [(1, [2, 1]), (2, [3])])
def test_every_capable_backend_agrees(name, seed, workers):
    problem = drawn(seed, jobs=7, workers=workers)
    result = eq.solve(problem, name, rel_gap=1e-6, time_limit=30)
    assert result.plan is not None, result.termination
    assert result.objective == pytest.approx(by_assignment(problem), rel=1e-6)
    assert result.bound <= by_assignment(problem) * (1 + 1e-9)


def test_a_mixture_of_optimal_matchings_becomes_one():
    # Two like jobs and two like types: an interior-point method gives every slot half of each.
    problem = eq.AlloxMatching(
        steps=[5.0, 5.0, 5.0], rates=np.ones((3, 2)), waited_s=np.zeros(3), workers_of_type=[1, 1]
    )
    program = problem.program()
    vertices = []
    for kinds in itertools.product(range(2), repeat=3):
        plan = eq.AlloxPlan(problem, np.array(kinds))
        if problem.evaluate(plan)[0] == 20.0:
            vertices.append(problem.encode(plan))
    mixed = np.mean(vertices, axis=0)
    assert len(vertices) > 1
    assert program.residuals_at(mixed).worst < 1e-12
    assert problem.evaluate(problem.decode(mixed))[0] == 20.0


def test_the_plan_tells_the_queues():
    problem = eq.AlloxMatching(
        steps=[60.0, 30.0, 10.0, 20.0], rates=[[1.0, 2.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        waited_s=[1.0, 2.0, 3.0, 4.0], workers_of_type=[1, 1],
    )  # fmt: skip
    plan = eq.AlloxPlan(problem, np.array([1, 0, 0, 1]))
    assert plan.depth.tolist() == [1, 1, 2, 2]
    assert plan.first.tolist() == [False, False, True, True]
    assert plan.completion_s.tolist() == [50.0, 40.0, 10.0, 20.0]
    # The costs of the slots add up to completion times since arrival.
    assert problem.evaluate(plan)[0] == plan.completion_s.sum() + 10.0
    assert plan.shares().tolist() == [[0, 0], [0, 0], [1, 0], [0, 1]]
    assert plan.shares([1, 1, 4, 2]).tolist() == [[0, 0], [0, 0], [0.25, 0], [0, 0.5]]
    frame = plan.to_frame()
    assert frame["runs_now"].tolist() == [False, False, True, True]


def test_like_jobs_keep_their_order():
    problem = eq.AlloxMatching(steps=[3.0] * 5, rates=np.ones((5, 1)), waited_s=np.zeros(5), workers_of_type=[2])
    plan = eq.solve(problem).plan
    assert plan.depth.tolist() == [1, 1, 2, 2, 3]
    assert plan.worker.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.thorough
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from([0.5, 8.0]))
def test_metamorphic_relations(seed, factor):
    problem = drawn(seed, jobs=9, workers=[2, 1])
    best = eq.solve(problem, rel_gap=0.0).objective

    def cost(**changed):
        data = {name: getattr(problem, name) for name in ONE} | changed
        return eq.solve(eq.AlloxMatching(**data), rel_gap=0.0).objective

    assert cost(rates=problem.rates / factor, waited_s=problem.waited_s * factor) == pytest.approx(best * factor)
    assert cost(steps=problem.steps * factor, rates=problem.rates * factor) == pytest.approx(best)
    assert cost(rates=problem.rates[:, ::-1], workers_of_type=[1, 2]) == pytest.approx(best)
    turned = {name: getattr(problem, name)[::-1] for name in ("steps", "rates", "waited_s")}
    assert cost(**turned) == pytest.approx(best)
    assert cost(waited_s=problem.waited_s + 10.0) == pytest.approx(best + 90.0)
    assert cost(workers_of_type=[3, 1]) <= best * (1 + 1e-12)
    # A type split in two is the same workers.
    split = problem.rates[:, [0, 0, 1]]
    assert cost(rates=split, workers_of_type=[1, 1, 1]) == pytest.approx(best)


def test_thousands_of_places_and_out_of_time():
    problem = drawn(3, jobs=1200, workers=[64, 32, 16])
    result = eq.solve(problem, "matching", rel_gap=1e-9)
    result.require_optimal()
    assert result.gap <= 1e-12
    stopped = eq.solve(problem, "matching", time_limit=0.0, rel_gap=0.0)
    assert stopped.termination.limit is not None
    assert stopped.plan is not None
    assert stopped.bound <= result.objective <= stopped.objective


def test_jobs_without_steps_and_a_plan_that_is_wrong():
    rates = [[1.0, 0.0], [1.0, 1.0]]
    problem = eq.AlloxMatching(steps=[0.0, 4.0], rates=rates, waited_s=[1, 1], workers_of_type=[1, 1])
    assert eq.solve(problem, rel_gap=0.0).objective == 6.0
    assert problem.evaluate(eq.AlloxPlan(problem, np.array([1, 0])))[1].worst == 1.0
    with pytest.raises(eq.InvalidInput, match="plan"):
        problem.evaluate(eq.AlloxPlan(problem, np.array([0])))
    with pytest.raises(eq.InvalidInput, match="type_of"):
        problem.evaluate(eq.AlloxPlan(problem, np.array([0, 2])))
    with pytest.raises(eq.InvalidInput, match="no options"):
        eq.solve(problem, "matching", backend_options={"matching": {"depth": 3}})
    with pytest.raises(eq.InvalidInput, match="form"):
        problem.program("dense")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", [-1.0]),
        ("steps", [np.nan]),
        ("steps", [1.0, 2.0]),
        ("steps", "4"),
        ("rates", [[-1.0, 2.0]]),
        ("rates", [[0.0, 0.0]]),
        ("rates", [1.0, 2.0]),
        ("rates", [[1.0, "2"]]),
        ("waited_s", [-3.0]),
        ("waited_s", [np.inf]),
        ("waited_s", []),
        ("workers_of_type", [1]),
        ("workers_of_type", [1, -1]),
        ("workers_of_type", [1, 0.5]),
    ],
)
def test_bad_input_is_named(field, value):
    with pytest.raises(eq.InvalidInput) as error:
        eq.AlloxMatching(**ONE | {field: value})
    assert error.value.field == field


def test_no_worker_at_all():
    with pytest.raises(eq.InvalidInput, match="no worker can run"):
        eq.AlloxMatching(**ONE | {"workers_of_type": [0, 0]})
