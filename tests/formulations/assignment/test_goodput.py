"""Goodput allocation: Pollux's fitness and Sia's program against enumeration, bounds by prices, restarts, bad input."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.assignment.goodput import restart_factors
from equipoise.solvers import deadline
from equipoise.solvers.assignment.goodput import backend as goodput
from equipoise.solvers.assignment.goodput import kernels as goodput_kernels

ONE = {"goodputs": [[0.0, 1.0, 1.5]], "gpus": 2}
BACKENDS = [row.name for row in eq.backends(eq.GoodputAllocation(**ONE), usable=True)]


def table(seed, jobs, types, most=3):
    """Goodputs that rise ever more slowly, on types of different speeds; some configurations are not possible."""
    rng = np.random.default_rng(seed)
    ranks = np.arange(most + 1)
    speeds = rng.uniform(1, 4, (jobs, types, 1)) * ranks ** rng.uniform(0.3, 1.0, (jobs, 1, 1))
    return speeds * ((rng.random(speeds.shape) < 0.85) | (ranks == 1))


def best_of(problem):
    """The best objective by trying everything; utilities from the definition, not from the library's tables."""
    jobs, types, length = problem.goodputs.shape
    sign = np.sign(problem.power)

    def utility(job, kind, count):
        if not count:
            return -problem.idle_penalty if problem.idle_penalty is not None else worth(problem.idle_speedup)
        speed = problem.goodputs[job, kind, count] / problem.base_goodputs[job]
        if problem.current is not None and problem.current[job, 1] > 0 and tuple(problem.current[job]) != (kind, count):
            speed *= problem.restart_factors[job]
        return worth(speed)

    def worth(speed):
        return np.log(speed) if sign == 0 else sign * speed**problem.power

    configurations = [(0, 0), *itertools.product(range(types), range(1, length))]
    best = -np.inf
    for choice in itertools.product(configurations, repeat=jobs):
        used = np.zeros(types)
        for kind, count in choice:
            used[kind] += count
        if (used > problem.gpus).any():
            continue
        if any(count and not problem.goodputs[job, kind, count] for job, (kind, count) in enumerate(choice)):
            continue
        best = max(best, np.mean([utility(job, *each) for job, each in enumerate(choice)]))
    return best


def drawn(seed, jobs=3, types=2, power=-1.0, **more):
    gpus = np.random.default_rng(seed + 1).integers(1, 4, types)
    return eq.GoodputAllocation(goodputs=table(seed, jobs, types), gpus=gpus, power=power, **more)


@pytest.mark.parametrize("power", [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize(("seed", "jobs", "types"), [(0, 4, 1), (1, 3, 2), (2, 3, 3)])
def test_against_enumeration(seed, jobs, types, power):
    problem = drawn(seed, jobs, types, power)
    result = eq.solve(problem, rel_gap=1e-9)
    result.require_optimal()
    assert result.backend == "goodput"
    assert result.objective == pytest.approx(best_of(problem), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_sia_against_enumeration(seed):
    now = [[0, 1], [1, 2], [0, 0]]
    problem = eq.GoodputAllocation.sia(
        goodputs=table(seed, 3, 2), gpus=[2, 2], current=now, restart_factors=[0.9, 0.3, 0.5]
    )
    result = eq.solve(problem, rel_gap=1e-9)
    assert result.objective == pytest.approx(best_of(problem), rel=1e-9)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("types", [1, 2])
def test_every_capable_backend_agrees(name, types):
    problem = drawn(5, jobs=4, types=types)
    result = eq.solve(problem, name, rel_gap=1e-6, time_limit=30)
    result.require_optimal()
    assert result.objective == pytest.approx(best_of(problem), rel=2e-6)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000), prices=st.lists(st.floats(-1, 20), min_size=2, max_size=2),
    power=st.sampled_from([-1.0, 0.0, 0.5]),
)  # fmt: skip
def test_whatever_the_prices_their_bound_holds(seed, prices, power):
    problem = drawn(seed, jobs=3, power=power)
    objective = eq.solve(problem, rel_gap=1e-9).objective
    assert problem.bound_at(np.array(prices)) >= objective - 1e-12 * max(1.0, abs(objective))


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), power=st.sampled_from([-1.0, 0.0, 1.0]))
def test_metamorphic_relations(seed, power):
    problem = drawn(seed, jobs=5, power=power)
    best = eq.solve(problem, rel_gap=1e-9).objective

    def objective(**changed):
        data = {"goodputs": problem.goodputs, "gpus": problem.gpus, "power": power} | changed
        return eq.solve(eq.GoodputAllocation(**data), rel_gap=1e-9).objective

    # The unit of a job's goodput is its own; the order of jobs and of types is nobody's.
    units = np.array([1.0, 10.0, 0.1, 3.0, 7.0])[:, None, None]
    assert objective(goodputs=problem.goodputs * units) == pytest.approx(best, rel=1e-8, abs=1e-9)
    assert objective(goodputs=problem.goodputs[::-1]) == pytest.approx(best, rel=1e-8, abs=1e-9)
    turned = objective(goodputs=problem.goodputs[:, ::-1], gpus=problem.gpus[::-1])
    assert turned == pytest.approx(best, rel=1e-8, abs=1e-9)
    # More GPUs are no worse, at the same base.
    more = objective(gpus=problem.gpus + np.array([0, 1]), base_goodputs=problem.base_goodputs)
    assert more >= best - 1e-9 * max(1.0, abs(best))
    # A factor of 1 is no restart.
    still = {"current": np.tile([0, 1], (5, 1)), "restart_factors": np.ones(5)}
    assert objective(**still) == pytest.approx(best, rel=1e-8, abs=1e-9)


def test_one_type_equals_the_same_gpus_as_two_types():
    goodputs = table(9, 6, 1, most=1)
    one = eq.solve(eq.GoodputAllocation(goodputs=goodputs, gpus=[4]), rel_gap=1e-9)
    both = np.repeat(goodputs, 2, axis=1)
    two = eq.solve(eq.GoodputAllocation(goodputs=both, gpus=[1, 3]), rel_gap=1e-9)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)


def test_the_fitness_is_the_power_mean():
    goodputs = [[0, 1.0, 2.0], [0, 1.0, 1.5]]
    for power, wanted in ((-1.0, 2 / (1 / 2.0 + 1 / 3.0)), (0.0, np.sqrt(6.0)), (1.0, 2.5)):
        problem = eq.GoodputAllocation(goodputs=goodputs, gpus=4, power=power, base_goodputs=[1.0, 0.5])
        plan = eq.GoodputPlan(problem, np.array([0, 0]), np.array([2, 2]))
        assert plan.speedups.tolist() == [2.0, 3.0]
        assert plan.fitness == pytest.approx(wanted)
        objective = problem.evaluate(plan)[0]
        recovered = np.exp(objective) if power == 0 else abs(objective) ** (1 / power)
        assert recovered == pytest.approx(wanted)
    sia = eq.GoodputAllocation.sia(goodputs=goodputs, gpus=1)
    assert eq.GoodputPlan(sia, np.array([0, 0]), np.array([1, 0])).fitness == 0.0


def test_the_base_is_what_the_papers_say():
    # Pollux: the goodput of a fair share, 4 GPUs / 2 jobs. Job 1 cannot run on 2: the count below stands for it.
    pollux = eq.GoodputAllocation(goodputs=[[0, 1.0, 1.8, 2.5], [0, 2.0, 0, 5.0]], gpus=4)
    assert pollux.base_goodputs.tolist() == [1.8, 2.0]
    # Sia: a job that needs two GPUs at least starts from a normalised goodput of 2.
    sia = eq.GoodputAllocation.sia(goodputs=[[0, 1.0, 1.8, 2.5], [0, 0, 4.0, 5.0]], gpus=4)
    assert sia.speedups[1, 0].tolist() == [0.0, 0.0, 2.0, 2.5]
    assert sia.speedups[0, 0].tolist() == [0.0, 1.0, 1.8, 2.5]


def test_a_restart_keeps_a_job_where_it_is():
    data = {"goodputs": [[[0, 1.0], [0, 1.2]]], "gpus": [1, 1], "current": [[0, 1]]}
    moves = eq.solve(eq.GoodputAllocation(**data, restart_factors=[0.9])).plan
    stays = eq.solve(eq.GoodputAllocation(**data, restart_factors=[0.8])).plan
    assert (moves.type_of.tolist(), stays.type_of.tolist()) == ([1], [0])
    factors = restart_factors([300.0, 60.0, 0.0], [2, 0, 5], [30.0, 30.0, 30.0])
    assert factors == pytest.approx([240 / 330, 60 / 90, 1e-3])


def test_idle_jobs_cost_what_was_said():
    # Three jobs, one GPU: someone idles, and the harmonic mean is that of the idle speedup.
    problem = eq.GoodputAllocation(goodputs=np.tile([0.0, 1.0], (3, 1)), gpus=1, idle_speedup=0.1)
    result = eq.solve(problem)
    assert result.objective == pytest.approx(-(1 + 10 + 10) / 3)
    # Sia's penalty of 1.1 is more than any job's s^p, so nobody idles by choice; one of .5 is not.
    goodputs = [[0, 1.0, 1.1]]
    assert eq.solve(eq.GoodputAllocation.sia(goodputs=goodputs, gpus=1)).plan.count_of.tolist() == [1]
    assert eq.solve(eq.GoodputAllocation.sia(goodputs=goodputs, gpus=1, idle_penalty=0.5)).plan.count_of.tolist() == [0]


def test_nobody_can_run_and_no_gpus():
    problem = eq.GoodputAllocation(goodputs=[[0.0, 0.0], [0.0, 1.0]], gpus=0)
    assert eq.solve(problem).plan.count_of.tolist() == [0, 0]
    assert eq.solve(problem).objective == pytest.approx(-100.0)
    two = eq.GoodputAllocation(goodputs=[[[0.0, 0.0], [0.0, 1.0]]], gpus=[3, 0])
    assert eq.solve(two).plan.count_of.tolist() == [0]
    assert eq.solve(two, "highs").objective == pytest.approx(-100.0)


def test_prices_alone_when_there_is_no_time():
    problem = eq.GoodputAllocation(goodputs=table(4, 60, 3), gpus=[9, 11, 13])
    stopped = eq.solve(problem, "goodput", time_limit=0.0, rel_gap=0.0)
    best = eq.solve(problem, "goodput", rel_gap=1e-9)
    best.require_optimal()
    assert stopped.objective <= best.objective <= stopped.bound + 1e-9
    assert stopped.residuals.worst == 0.0
    assert best.objective == pytest.approx(eq.solve(problem, "highs", rel_gap=1e-9).objective, rel=1e-8)


def counted(monkeypatch, module, names):
    """Count the calls of these functions of a module."""
    calls = dict.fromkeys(names, 0)

    def wrapped(name, function):
        def call(*args):
            calls[name] += 1
            return function(*args)

        return call

    for name in names:
        monkeypatch.setattr(module, name, wrapped(name, getattr(module, name)))
    return calls


def test_one_type_stops_at_the_time_limit(monkeypatch):
    """Work is counted, not seconds: after the deadline no part of the table, and no plan is improved."""
    problem = eq.GoodputAllocation(goodputs=table(7, 60, 1, most=80), gpus=[300])
    best = eq.solve(problem, "goodput").require_optimal()
    calls = counted(monkeypatch, goodput_kernels, ["add_configurations", "best_change", "choices"])
    stopped = eq.solve(problem, "goodput", time_limit=0.0, rel_gap=0.0)
    assert stopped.termination.reason is eq.Reason.FEASIBLE
    assert stopped.termination.limit is eq.Limit.TIME
    assert (calls["add_configurations"], calls["best_change"]) == (0, 0)
    assert calls["choices"] <= 10  # one bound, and a few multiples of its prices until they fit
    assert stopped.residuals.worst == 0.0
    objective = problem.evaluate(best)[0]
    assert stopped.objective <= objective <= stopped.bound < 0
    # A clock that ticks at every look: the table is given up as soon as it is seen to end too late.
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    for module in (goodput, deadline):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(goodput, "WORK", 1000)
    late = eq.solve(problem, "goodput", time_limit=100.0, rel_gap=1e-9)
    assert 1 <= calls["add_configurations"] <= 3
    assert late.objective == pytest.approx(objective, rel=2e-9)  # by prices and HiGHS, in the time that is left
    whole = eq.solve(problem, "goodput", time_limit=1e9)  # the table in small pieces is the same table
    assert calls["add_configurations"] > 100
    assert whole.require_optimal().count_of.tolist() == best.count_of.tolist()


def test_a_plan_goes_into_the_program_and_back():
    problem = drawn(12, jobs=4)
    plan = eq.solve(problem, rel_gap=1e-9).plan
    values = problem.encode(plan)
    program = problem.program()
    assert program.residuals_at(values).worst == 0.0
    assert program.objective_at(values) == pytest.approx(problem.evaluate(plan)[0], rel=1e-12)
    back = problem.decode(values)
    assert back.count_of.tolist() == plan.count_of.tolist()
    assert len(plan.to_frame()) == 4


def test_evaluate_sees_what_is_wrong_with_a_plan():
    problem = eq.GoodputAllocation(goodputs=[[0, 1.0, 2.0], [0, 1.0, 0.0]], gpus=2)

    def worst(counts):
        return problem.evaluate(eq.GoodputPlan(problem, np.zeros(2, int), np.array(counts)))[1].worst

    assert worst([1, 1]) == 0.0
    assert worst([2, 1]) == 1.0  # one GPU too many
    assert worst([0, 2]) == 1.0  # cannot run on two
    for counts in ([3, 0], [1]):
        with pytest.raises(eq.InvalidInput, match="plan"):
            worst(counts)
    with pytest.raises(eq.InvalidInput, match="no options"):
        eq.solve(problem, "goodput", backend_options={"goodput": {"cells": 3}})
    with pytest.raises(eq.InvalidInput, match="form"):
        problem.program("counts")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"goodputs": [[1.0, 1.0]]}, "goodputs"),
        ({"goodputs": [[0.0, -1.0]]}, "goodputs"),
        ({"goodputs": [[0.0, np.nan]]}, "goodputs"),
        ({"goodputs": [0.0, 1.0]}, "goodputs"),
        ({"goodputs": []}, "goodputs"),
        ({"goodputs": [[0.0, 1e-300, 1.0]], "power": -20.0}, "goodputs"),
        ({"gpus": -1}, "gpus"),
        ({"gpus": [1, 1]}, "gpus"),
        ({"gpus": 1.5}, "gpus"),
        ({"power": np.nan}, "power"),
        ({"power": 21.0}, "power"),
        ({"power": True}, "power"),
        ({"base_goodputs": [0.0]}, "base_goodputs"),
        ({"base_goodputs": [1.0, 1.0]}, "base_goodputs"),
        ({"idle_speedup": 0.0}, "idle_speedup"),
        ({"idle_penalty": np.inf}, "idle_penalty"),
        ({"idle_penalty": 1.0, "idle_speedup": 1.0}, "idle_penalty"),
        ({"current": [[0, 1]]}, "restart_factors"),
        ({"restart_factors": [0.5]}, "current"),
        ({"current": [[1, 1]], "restart_factors": [0.5]}, "current"),
        ({"current": [[0, 3]], "restart_factors": [0.5]}, "current"),
        ({"current": [[0, 1]], "restart_factors": [0.0]}, "restart_factors"),
        ({"current": [[0, 1]], "restart_factors": [1.5]}, "restart_factors"),
    ],
)
def test_bad_input_is_named(changed, field):
    with pytest.raises(eq.InvalidInput) as error:
        eq.GoodputAllocation(**ONE | changed)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("values", "field"),
    [(([-1.0], [0], [1.0]), "age_s"), (([1.0], [-1], [1.0]), "restarts"), (([1.0], [0], [0.0]), "restart_s")],
)
def test_restart_factors_refuse_bad_input(values, field):
    with pytest.raises(eq.InvalidInput) as error:
        restart_factors(*values)
    assert error.value.field == field
