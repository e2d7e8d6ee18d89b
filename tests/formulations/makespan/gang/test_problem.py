"""Gangs on a cluster: both optima against enumeration, the bounds, and what must not matter."""

import math
import pickle
import xml.etree.ElementTree as ElementTree
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optional import needs, usable
from patience import SOON_S

import equipoise as eq
from equipoise.formulations.makespan.gang.bounds import round_bound
from equipoise.formulations.makespan.gang.schedule import worst_gang_fault

GOOD = {"rounds": [2, 3, 1], "gang_gpus": [1, 2, 2], "gpus": 3}


@st.composite
def problems(draw, jobs=5, most=3, gpus=8):
    size = draw(st.integers(1, gpus))
    count = draw(st.integers(1, jobs))
    rounds = draw(st.lists(st.integers(0, most), min_size=count, max_size=count))
    gang_gpus = draw(st.lists(st.integers(1, size), min_size=count, max_size=count))
    return {"rounds": rounds, "gang_gpus": gang_gpus, "gpus": size}


def fewest_rounds(rounds, gang_gpus, gpus):
    """Return the least makespan with preemption: every set of jobs that fills a round, one round after another."""
    count = len(rounds)

    @cache
    def rest(left):
        active = [j for j in range(count) if left[j]]
        if not active:
            return 0
        best = math.inf
        for size in range(1, len(active) + 1):
            for chosen in combinations(active, size):
                used = sum(gang_gpus[j] for j in chosen)
                if used <= gpus and all(j in chosen or used + gang_gpus[j] > gpus for j in active):
                    best = min(best, 1 + rest(tuple(n - (j in chosen) for j, n in enumerate(left))))
        return best

    return rest(tuple(rounds))


def fewest_without_pause(rounds, gang_gpus, gpus):
    """Return the least makespan without: some order in which each job begins as early as it fits is optimal."""
    best = math.inf
    for order in permutations(range(len(rounds))):
        used, last = [0] * (sum(rounds) + 1), 0
        for j in order:
            if rounds[j]:
                t = 0
                while any(used[t + k] + gang_gpus[j] > gpus for k in range(rounds[j])):
                    t += 1
                for k in range(rounds[j]):
                    used[t + k] += gang_gpus[j]
                last = max(last, t + rounds[j])
        best = min(best, last)
    return best


def assert_schedule(data, plan, *, preemptive):
    """Check a schedule from its table of grants, without the library's own check."""
    held = np.zeros((len(data["rounds"]), plan.makespan), dtype=int)
    for j, a, b in zip(plan.job, plan.start, plan.end, strict=True):
        held[j, a:b] += 1
    assert held.max(initial=0) <= 1
    assert held.sum(axis=1).tolist() == list(data["rounds"])
    assert (np.array(data["gang_gpus"]) @ held).max(initial=0) <= data["gpus"]
    assert (plan.grants == held).all()
    assert (plan.gpus_in_use == np.array(data["gang_gpus"]) @ held).all()
    for t in range(plan.makespan):
        assert plan.running(t).tolist() == np.flatnonzero(held[:, t]).tolist()
    if not preemptive:
        assert (np.abs(np.diff(held, axis=1, prepend=0, append=0)).sum(axis=1) <= 2).all()


# -- Input -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rounds", [2, -1, 1], "rounds[1] = -1: at least 0"),
        ("rounds", [2, 1.5, 1], "rounds[1] = 1.5: must be a whole number"),
        ("rounds", [2, math.nan, 1], "rounds[1] = nan: must be finite"),
        ("rounds", [2, True, 1], "rounds[1] = True: must be a number"),
        ("rounds", [2, "3", 1], "rounds[1] = '3': must be a number"),
        ("rounds", [2, 10**9, 1], "rounds[1] = 1000000000: at most 20000000"),
        ("rounds", [2 * 10**7, 1, 1], "rounds = 20000002: all jobs together at most 20000000 rounds"),
        ("rounds", [2, 3], "rounds = '2 values': rounds has length 2, gang_gpus has length 3"),
        ("rounds", [], "rounds = '[]': must not be empty"),
        ("rounds", None, "rounds = None: must be a sequence of numbers"),
        ("gang_gpus", [1, 0, 2], "gang_gpus[1] = 0: at least 1"),
        ("gang_gpus", [1, 2, 4], "gang_gpus[2] = 4: the cluster has 3 GPUs"),
        ("gang_gpus", [1, 2.5, 2], "gang_gpus[1] = 2.5: must be a whole number"),
        ("gang_gpus", "122", "gang_gpus = '122': must be a sequence of numbers, not text"),
        ("gpus", 0, "gpus = 0: at least 1"),
        ("gpus", 2.5, "gpus = 2.5: must be a whole number"),
        ("gpus", None, "gpus = None: must be a number"),
        ("gpus", True, "gpus = True: must be a number"),
        ("preemptive", "no", "preemptive = 'no': must be True or False"),
    ],
)
def test_wrong_input_is_named(field, value, message):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.GangMakespan(**(GOOD | {field: value}))
    assert str(caught.value) == message
    assert caught.value.field == field


def test_it_is_frozen():
    problem = eq.GangMakespan(**GOOD)
    with pytest.raises(AttributeError):
        problem.gpus = 4
    with pytest.raises(ValueError, match="read-only"):
        problem.rounds[0] = 9
    assert pickle.loads(pickle.dumps(problem)).gang_gpus.tolist() == GOOD["gang_gpus"]
    assert repr(problem) == "<GangMakespan: 3 jobs, 3 GPUs, round-preemptive>"


def test_forms_are_its_own():
    with pytest.raises(eq.InvalidInput, match="time_indexed, patterns"):
        eq.solve(eq.GangMakespan(**GOOD), "highs", form="counts")
    with pytest.raises(eq.InvalidInput, match="must be one of time_indexed"):
        eq.solve(eq.GangMakespan(**GOOD, preemptive=False), "highs", form="patterns")


# -- With preemption between rounds ------------------------------------------------------------------------------------


@pytest.mark.thorough
@given(problems())
def test_the_optimum_is_that_of_enumeration(data):
    problem, best = eq.GangMakespan(**data), fewest_rounds(**data)
    assert problem.lower_bound <= best <= problem.list_plan.makespan
    assert_schedule(data, problem.list_plan, preemptive=True)
    for backend, form in (("gang_packing", None), ("highs", "patterns"), ("highs", "time_indexed")):
        result = eq.solve(problem, backend, form=form, rel_gap=0.0)
        assert_schedule(data, result.require_optimal(), preemptive=True)
        assert result.objective == best, (backend, form)
        assert result.bound == pytest.approx(best, abs=1e-6), (backend, form)


def test_the_bound_that_is_not_reached():
    # Shockwave's bound is 2 rounds here: 6 GPU rounds on 3 GPUs. No two of the jobs fit side by side.
    problem = eq.GangMakespan(rounds=[1, 1, 1], gang_gpus=[2, 2, 2], gpus=3)
    result = eq.solve(problem, rel_gap=0.0)
    assert result.require_optimal().makespan == 3
    assert result.bound == 3.0
    # And here no bound sees it: whatever runs beside the job of width 3, a GPU is idle.
    problem = eq.GangMakespan(rounds=[1, 1, 1, 1], gang_gpus=[3, 3, 2, 2], gpus=5)
    assert eq.solve(problem, rel_gap=0.0).require_optimal().makespan == 2


@pytest.mark.thorough
def test_optimal_is_claimed_only_at_a_bound():
    rng = np.random.default_rng(0)
    closed = 0
    for _ in range(60):
        gpus = int(rng.integers(5, 40))
        data = {"rounds": rng.integers(0, 30, 80), "gang_gpus": rng.integers(1, gpus + 1, 80), "gpus": gpus}
        problem = eq.GangMakespan(**data)
        result = eq.solve(problem, "gang_packing", rel_gap=0.0, time_limit=0.0)
        assert_schedule(data | {"rounds": data["rounds"].tolist()}, result.plan, preemptive=True)
        assert (result.termination.reason.name == "OPTIMAL") is (result.objective == problem.lower_bound)
        assert result.bound == problem.lower_bound
        closed += result.objective == problem.lower_bound
    assert closed > 15  # of any widths up to the whole cluster; with powers of two it is nearly all


def test_ten_thousand_jobs_meet_the_bound():
    rng = np.random.default_rng(1)
    data = {"rounds": rng.integers(1, 60, 10_000), "gang_gpus": rng.choice([1, 2, 4, 8], 10_000), "gpus": 256}
    result = eq.solve(eq.GangMakespan(**data), rel_gap=0.0)
    plan = result.require_optimal()
    assert plan.makespan == max(-(-int(data["rounds"] @ data["gang_gpus"]) // 256), data["rounds"].max())
    assert plan.gpus_in_use.max() <= 256
    assert np.bincount(plan.job, weights=plan.end - plan.start).tolist() == data["rounds"].tolist()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.integers(1, 9))
def test_jobs_of_one_gpu_always_meet_the_plain_bound(rounds, gpus):
    # R. McNaughton, "Scheduling with deadlines and loss functions", Management Science 6, 1959.
    best = max(-(-sum(rounds) // gpus), *rounds)
    assert eq.solve(eq.GangMakespan(rounds, [1] * len(rounds), gpus), rel_gap=0.0).require_optimal().makespan == best


@given(problems(jobs=6))
def test_the_bounds_hold_and_are_no_less_than_the_plain_ones(data):
    rounds, gang_gpus = np.array(data["rounds"]), np.array(data["gang_gpus"])
    value, why = round_bound(rounds, gang_gpus, data["gpus"])
    assert max(-(-int(rounds @ gang_gpus) // data["gpus"]), rounds.max()) <= value <= fewest_rounds(**data)
    assert why


@pytest.mark.parametrize(
    ("rounds", "gang_gpus", "gpus", "bound", "why"),
    [
        ([0, 0], [1, 1], 2, 0, "no work"),
        ([5, 1], [1, 1], 4, 5, "the longest job"),
        ([2, 2, 2], [1, 1, 1], 2, 3, "GPUs in total"),
        ([1, 1, 1], [2, 2, 2], 3, 3, "rounded gang sizes"),
        ([3, 2], [3, 2], 4, 5, "jobs that exclude each other"),
        ([1, 1, 1, 1], [7, 7, 7, 4], 10, 4, "gangs too large to share a round"),
    ],
)
def test_which_bound_counts(rounds, gang_gpus, gpus, bound, why):
    assert round_bound(np.array(rounds), np.array(gang_gpus), gpus) == (bound, why)
    assert eq.solve(eq.GangMakespan(rounds, gang_gpus, gpus), rel_gap=0.0).require_optimal().makespan == bound


# -- Without preemption ------------------------------------------------------------------------------------------------


@given(problems())
def test_without_pause_the_optimum_is_that_of_enumeration(data):
    problem, best = eq.GangMakespan(**data, preemptive=False), fewest_without_pause(**data)
    assert problem.lower_bound <= best <= problem.list_plan.makespan
    for backend in usable("cp_sat_schedule", "gang_packing", "highs"):
        result = eq.solve(problem, backend, rel_gap=0.0)
        assert_schedule(data, result.require_optimal(), preemptive=False)
        assert result.objective == best, backend
        assert result.bound == pytest.approx(best, abs=1e-6), backend
    assert fewest_rounds(**data) <= best


@needs("cp_sat_schedule")
def test_twenty_jobs_without_pause():
    rng = np.random.default_rng(5)
    data = {"rounds": rng.integers(1, 13, 20).tolist(), "gang_gpus": rng.choice([1, 2, 3, 4], 20).tolist(), "gpus": 8}
    problem = eq.GangMakespan(**data, preemptive=False)
    assert problem.list_plan.makespan > problem.lower_bound  # there is something left to find
    best = eq.solve(problem, "cp_sat_schedule", rel_gap=0.0, time_limit=60.0)
    assert_schedule(data, best.require_optimal(), preemptive=False)
    soon = eq.solve(problem, "gang_packing", rel_gap=0.0, time_limit=2.0)
    assert_schedule(data, soon.plan, preemptive=False)
    assert soon.bound <= best.objective <= soon.objective


def test_many_jobs_without_pause_go_to_the_lists():
    rng = np.random.default_rng(2)
    problem = eq.GangMakespan(rng.integers(1, 60, 3_000), rng.choice([1, 2, 4, 8], 3_000), 64, preemptive=False)
    result = eq.solve(problem, rel_gap=0.0)
    assert result.backend == "gang_packing"
    assert problem.evaluate(result.plan)[1].worst == 0.0
    assert result.gap < 0.02


# -- All backends, and what must not matter ----------------------------------------------------------------------------


@pytest.mark.parametrize("preemptive", [False, True])
def test_all_backends_agree(preemptive):
    data = {"rounds": [2, 3, 1, 2, 2], "gang_gpus": [1, 3, 2, 2, 4], "gpus": 5}
    problem = eq.GangMakespan(**data, preemptive=preemptive)
    best = (fewest_rounds if preemptive else fewest_without_pause)(**data)
    rows = eq.backends(problem, usable=True)
    assert len(rows) >= 3
    for row in rows:
        result = eq.solve(problem, row.name, rel_gap=1e-6, time_limit=30.0)
        assert_schedule(data, result.require_optimal(), preemptive=preemptive)
        assert result.objective == best, row.name


@given(problems(jobs=4), st.randoms(use_true_random=False), st.booleans())
def test_what_must_not_matter(data, random, preemptive):
    def best(rounds, gang_gpus, gpus):
        return eq.solve(eq.GangMakespan(rounds, gang_gpus, gpus, preemptive), rel_gap=0.0).require_optimal().makespan

    rounds, gang_gpus, gpus = data["rounds"], data["gang_gpus"], data["gpus"]
    expected = best(rounds, gang_gpus, gpus)
    order = random.sample(range(len(rounds)), len(rounds))
    assert best([rounds[j] for j in order], [gang_gpus[j] for j in order], gpus) == expected
    assert best([*rounds, 0], [*gang_gpus, 1], gpus) == expected
    assert best(rounds, [3 * g for g in gang_gpus], 3 * gpus) == expected
    assert best(rounds, [3 * g for g in gang_gpus], 3 * gpus + 2) == expected  # two GPUs that nobody can use
    assert best(rounds, gang_gpus, gpus + 1) <= expected
    doubled = best([2 * n for n in rounds], gang_gpus, gpus)
    assert doubled <= 2 * expected if preemptive else doubled == 2 * expected


@pytest.mark.thorough
@pytest.mark.parametrize("preemptive", [False, True])
def test_the_same_call_gives_the_same_schedule(preemptive):
    rng = np.random.default_rng(4)
    problem = eq.GangMakespan(rng.integers(1, 9, 10), rng.integers(1, 6, 10), 7, preemptive)
    first, second = (eq.solve(problem, rel_gap=0.0, time_limit=SOON_S).require_optimal() for _ in range(2))
    for name in ("job", "start", "end"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


# -- Programs and warm starts ------------------------------------------------------------------------------------------


@given(problems(), st.booleans())
def test_a_schedule_is_a_point_of_each_program(data, preemptive):
    problem = eq.GangMakespan(**data, preemptive=preemptive)
    for form in problem.forms:
        program = problem.program(form)
        values = problem.encode(problem.list_plan, form)
        assert program.residuals_at(values).worst <= 1e-9
        assert program.objective_at(values) == pytest.approx(problem.list_plan.makespan)
        decoded = problem.decode(values, form=form)
        assert_schedule(data, decoded, preemptive=preemptive)
        assert decoded.makespan <= problem.list_plan.makespan


@pytest.mark.parametrize("preemptive", [False, True])
def test_a_warm_start_is_taken_or_refused(preemptive):
    problem = eq.GangMakespan(**GOOD, preemptive=preemptive)
    plan = eq.solve(problem, rel_gap=0.0).plan
    for backend in ("gang_packing", "highs"):
        result = eq.solve(problem, backend, rel_gap=0.0, warm_start=plan)
        assert result.objective == plan.makespan
        assert any("warm start accepted" in note for note in result.notes), backend
    crowded = eq.GangSchedule(gang_gpus=problem.gang_gpus, gpus=3, job=[0, 1, 2], start=[0, 0, 0], end=[2, 3, 1])
    result = eq.solve(problem, "gang_packing", warm_start=crowded)
    assert any("warm start rejected" in note for note in result.notes)
    assert result.require_optimal().makespan == plan.makespan
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(eq.GangMakespan([1], [1], 3, preemptive), "gang_packing", warm_start=plan)


def test_own_options_there_are_none():
    with pytest.raises(eq.InvalidInput, match="it has no options"):
        eq.solve(eq.GangMakespan(**GOOD), "gang_packing", backend_options={"gang_packing": {"depth": 2}})


def test_too_many_patterns_are_refused():
    problem = eq.GangMakespan(rounds=[3] * 400, gang_gpus=list(range(1, 41)) * 10, gpus=200)
    with pytest.raises(eq.InvalidInput, match="patterns of gangs fill a round"):
        problem.program("patterns")
    assert eq.solve(problem, time_limit=20.0).plan is not None


# -- The check itself, and what a plan shows ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, 0.0),
        ({"end": [2, 3, 3]}, 1.0),  # a round is missing
        ({"start": [0, 0, 1], "end": [2, 3, 2]}, 2.0),  # 5 GPUs of 3 in use
        ({"start": [-1, 0, 3], "end": [1, 3, 4]}, math.inf),
        ({"job": [0, 1, 3]}, math.inf),
        ({"start": [0, 0, 5], "end": [2, 3, 4]}, math.inf),
        ({"job": [0, 1, 2, 1], "start": [0, 0, 3, 1], "end": [2, 3, 4, 2]}, 1.0),  # twice at once
    ],
)
def test_the_check_finds_each_fault(changes, fault):
    data = {"job": [0, 1, 2], "start": [0, 0, 3], "end": [2, 3, 4]} | changes
    problem = eq.GangMakespan(**GOOD)
    plan = eq.GangSchedule(gang_gpus=problem.gang_gpus, gpus=3, **data)
    assert problem.evaluate(plan)[1].worst >= fault
    assert (problem.evaluate(plan)[1].worst == 0) is (fault == 0)


def test_a_pause_needs_preemption_and_a_plan_its_own_problem():
    plan = eq.GangSchedule(gang_gpus=np.array([1]), gpus=1, job=[0, 0], start=[0, 2], end=[1, 3])
    rounds, gang_gpus = np.array([2]), np.array([1])
    assert worst_gang_fault(rounds, gang_gpus, 1, plan, preemptive=True) == 0.0
    assert worst_gang_fault(rounds, gang_gpus, 1, plan, preemptive=False) == 1.0
    assert worst_gang_fault(rounds, gang_gpus, 2, plan, preemptive=True) == math.inf
    assert worst_gang_fault(rounds, gang_gpus, 1, None, preemptive=True) == math.inf
    assert plan.preemptions == 1
    with pytest.raises(eq.InvalidInput, match="one entry for each run"):
        eq.GangSchedule(gang_gpus=gang_gpus, gpus=1, job=[0], start=[0, 1], end=[1])


def test_what_a_plan_shows(tmp_path):
    plan = eq.solve(eq.GangMakespan(**GOOD)).require_optimal()
    frame = plan.to_frame()
    assert frame.columns.tolist() == ["job", "gpus", "start", "end"]
    assert (frame.gpus * (frame.end - frame.start)).sum() == 10
    assert "4 rounds" in repr(plan)
    text = plan.to_svg(tmp_path / "gangs.svg")
    assert (tmp_path / "gangs.svg").read_text(encoding="utf-8") == text == plan._repr_svg_()
    bars = list(ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect"))
    assert len(bars) == sum(GOOD["rounds"])  # one for each job and round
    tops, bottoms = (
        [float(bar.get("y")) for bar in bars],
        [float(bar.get("y")) + float(bar.get("height")) for bar in bars],
    )
    assert min(tops) >= 16
    assert max(bottoms) <= 16 + 3 * 26  # no bar leaves the three GPUs
