"""Open shops: the preemptive optimum in closed form, the other against enumeration, and what must not matter."""

import math
import pickle
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from examples import examples, fewer
from hypothesis import given
from hypothesis import strategies as st
from optional import needs, usable

import equipoise as eq
from equipoise.formulations.makespan.open_shop.schedule import worst_fault
from equipoise.solvers.external.ortools.schedule import whole_times

GOOD = [[3.0, 1.0], [2.0, 4.0]]


def tables(jobs=3, machines=3, most=6):
    """Draw small tables of whole times, zeros among them."""
    return st.integers(1, jobs).flatmap(
        lambda n: st.integers(1, machines).flatmap(
            lambda m: st.lists(st.lists(st.integers(0, most), min_size=m, max_size=m), min_size=n, max_size=n)
        )
    )


def loads(table):
    return [sum(map(Fraction, row)) for row in table] + [sum(map(Fraction, row)) for row in zip(*table, strict=True)]


def assert_schedule(table, plan, *, preemptive, within=0):
    """Check a schedule in fractions, piece by piece, without the library's own check."""
    pieces = [
        (int(j), int(k), Fraction(a), Fraction(b))
        for j, k, a, b in zip(plan.job, plan.machine, plan.start.tolist(), plan.end.tolist(), strict=True)
    ]
    for place in (0, 1):
        for owner in {piece[place] for piece in pieces}:
            spans = sorted((a, b) for *names, a, b in pieces if names[place] == owner)
            assert all(b <= c + within for (_, b), (c, _) in pairwise(spans))
    done: dict[tuple[int, int], Fraction] = {}
    for j, k, a, b in pieces:
        assert 0 <= a < b
        assert preemptive or (j, k) not in done
        done[j, k] = done.get((j, k), Fraction(0)) + b - a
    for j, row in enumerate(table):
        for k, time in enumerate(row):
            assert abs(done.get((j, k), Fraction(0)) - Fraction(time)) <= within


def shortest(table):
    """Return the shortest makespan without preemption, by all orders in which operations can be placed."""
    jobs, machines = len(table), len(table[0])

    @cache
    def rest(left, job_free, machine_free):
        best = max(*job_free, *machine_free) if not left else math.inf
        for j, k in left:
            end = max(job_free[j], machine_free[k]) + table[j][k]
            free_j = (*job_free[:j], end, *job_free[j + 1 :])
            free_k = (*machine_free[:k], end, *machine_free[k + 1 :])
            best = min(best, rest(left - {(j, k)}, free_j, free_k))
        return best

    every = frozenset((j, k) for j in range(jobs) for k in range(machines) if table[j][k])
    return rest(every, (0,) * jobs, (0,) * machines)


# -- Input -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("times", [[1.0, math.nan]], "times[0, 1] = nan: must be finite"),
        ("times", [[1.0], [math.inf]], "times[1, 0] = inf: must be finite"),
        ("times", [[1.0, -0.5]], "times[0, 1] = -0.5: at least 0"),
        ("times", [[1.0, 1e101]], "times[0, 1] = 1e+101: at most 1e+100"),
        ("times", [[1.0, True]], "times[0, 1] = True: must be a number"),
        ("times", [[1.0, "2"]], "times[0, 1] = '2': must be a number"),
        ("times", [[1.0, None]], "times[0, 1] = None: must be a number"),
        ("times", [[1.0, 2.0], [3.0]], "times[1] = '1 values': must be an array of one shape, and times[0] has 2"),
        ("times", [1.0, 2.0], "times = 'array of shape (2,)': must have 2 dimension(s)"),
        ("times", [], "times = 'array of shape (0,)': must have 2 dimension(s)"),
        ("times", np.ones((0, 3)), "times = '[]': must not be empty"),
        ("times", "12", "times = '12': must be a sequence of numbers, not text"),
        ("times", None, "times = None: must be a sequence of numbers"),
        ("preemptive", 1, "preemptive = 1: must be True or False"),
        ("preemptive", None, "preemptive = None: must be True or False"),
    ],
)
def test_wrong_input_is_named(field, value, message):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.OpenShop(**({"times": GOOD} | {field: value}))
    assert str(caught.value) == message
    assert caught.value.field == field


def test_it_is_frozen_and_keeps_a_copy():
    given_times = np.array(GOOD)
    shop = eq.OpenShop(given_times)
    given_times[0, 0] = 9.0
    assert shop.times[0, 0] == 3.0
    with pytest.raises(AttributeError):
        shop.preemptive = True
    with pytest.raises(ValueError, match="read-only"):
        shop.times[0, 0] = 1.0
    assert pickle.loads(pickle.dumps(shop)).times.tolist() == GOOD


def test_forms_are_its_own():
    with pytest.raises(eq.InvalidInput, match="disjunctive"):
        eq.solve(eq.OpenShop(GOOD), "highs", form="loads")
    with pytest.raises(eq.InvalidInput, match="loads"):
        eq.solve(eq.OpenShop(GOOD, preemptive=True), "highs", form="disjunctive")


# -- With preemption ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_preemptive_optimum_is_the_longest_load_on_random_tables():
    rng = np.random.default_rng(1976)
    for number in range(examples(1000)):
        jobs, machines = rng.integers(1, 13, 2)
        times = rng.integers(0, 100, (jobs, machines)) * (rng.random((jobs, machines)) < rng.uniform(0.2, 1.0))
        shop = eq.OpenShop(times, preemptive=True)
        result = eq.solve(shop, rel_gap=0.0)
        plan = result.require_optimal()
        longest = max(loads(times.tolist()))
        assert Fraction(plan.makespan) == longest == Fraction(result.bound), number
        assert result.backend == "birkhoff"
        assert_schedule(times.tolist(), plan, preemptive=True)


@pytest.mark.thorough
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1e-3, 1.0, 1e9, 1e60]))
def test_preemptive_schedules_of_any_floats_are_right_to_the_15th_digit(seed, scale):
    rng = np.random.default_rng(seed)
    times = rng.random((rng.integers(1, 8), rng.integers(1, 8))) * scale
    plan = eq.solve(eq.OpenShop(times, preemptive=True), rel_gap=0.0).require_optimal()
    longest = max(loads(times.tolist()))
    assert abs(Fraction(plan.makespan) - longest) <= longest * Fraction(1, 10**14)
    assert_schedule(times.tolist(), plan, preemptive=True, within=longest * Fraction(1, 10**14))


@pytest.mark.parametrize("times", [[[0.0]], [[0.0, 0.0], [0.0, 0.0]]])
@pytest.mark.parametrize("preemptive", [False, True])
def test_no_work_takes_no_time(times, preemptive):
    result = eq.solve(eq.OpenShop(times, preemptive=preemptive), rel_gap=0.0)
    assert result.require_optimal().makespan == 0.0
    assert len(result.plan.job) == 0


def test_few_pieces():
    # A matching runs until one of its pairs is out of work, and only the rows of such pairs change their columns.
    times = np.random.default_rng(5).integers(1, 100, (60, 60))
    plan = eq.solve(eq.OpenShop(times, preemptive=True)).plan
    assert len(plan.job) <= 4 * times.size


# -- Without preemption ------------------------------------------------------------------------------------------------


@fewer(2)
@given(tables())
def test_the_optimum_is_that_of_enumeration(table):
    shop, best = eq.OpenShop(table), shortest(table)
    for backend in usable("cp_sat_schedule", "highs"):
        result = eq.solve(shop, backend, rel_gap=0.0)
        plan = result.require_optimal()
        assert result.objective == pytest.approx(best, abs=1e-6), backend
        assert result.bound == pytest.approx(best, abs=1e-6), backend
        assert_schedule(table, plan, preemptive=False)
    assert shop.lower_bound <= best <= shop.list_plan.makespan <= 2 * shop.lower_bound
    assert_schedule(table, shop.list_plan, preemptive=False)


def test_three_machines_may_need_more_than_the_longest_load():
    table = [[2, 2, 4], [3, 3, 2], [3, 3, 1]]
    assert shortest(table) == 9
    for backend in usable("cp_sat_schedule", "highs"):
        result = eq.solve(eq.OpenShop(table), backend, rel_gap=0.0)
        assert result.require_optimal().makespan == result.bound == 9.0, backend
    assert eq.solve(eq.OpenShop(table, preemptive=True)).require_optimal().makespan == 8.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=7))
def test_two_machines_never_need_more_than_the_longest_load(table):
    # Gonzalez and Sahni 1976, Section 2: with two machines preemption gains nothing.
    result = eq.solve(eq.OpenShop(table), rel_gap=0.0)
    assert Fraction(result.require_optimal().makespan) == max(loads(table))


@pytest.mark.parametrize("preemptive", [False, True])
def test_all_backends_agree(preemptive):
    times = np.random.default_rng(3).integers(1, 20, (3, 4)).astype(float)
    shop = eq.OpenShop(times, preemptive=preemptive)
    best = eq.solve(shop, rel_gap=0.0).objective
    rows = eq.backends(shop, usable=True)
    assert len(rows) >= 2
    for row in rows:
        result = eq.solve(shop, row.name, rel_gap=1e-6, time_limit=20.0)
        if result.termination.reason.name != "OPTIMAL":
            assert row.name in ("pyomo:ipopt", "pyomo:glpk"), row.name
            continue
        assert result.objective == pytest.approx(best, rel=1e-5), row.name
        assert result.bound <= best * (1 + 1e-6), row.name
        assert_schedule(times.tolist(), result.plan, preemptive=preemptive, within=Fraction(1, 10**5))


@needs("cp_sat_schedule")
def test_times_off_any_grid_are_rounded_up_and_said():
    times = np.random.default_rng(8).random((4, 4)) * math.pi
    shop = eq.OpenShop(times)
    result = eq.solve(shop, "cp_sat_schedule", rel_gap=1e-4)
    plan = result.require_optimal()
    exact = eq.solve(shop, "highs", rel_gap=1e-7, time_limit=60.0)
    assert result.bound <= exact.objective * (1 + 1e-9)
    assert plan.makespan == pytest.approx(exact.objective, rel=1e-4)
    if plan.makespan > shop.list_plan.makespan:
        raise AssertionError("worse than the list it began with")
    assert any("grid" in note or "list meets" in note for note in result.notes)


def test_what_cp_sat_is_given():
    whole, unit, exact = whole_times(np.array([[0.1, 2.5], [3.0, 0.25]]), 5.5)
    assert (whole.tolist(), unit, exact) == ([[10, 250], [300, 25]], 0.01, True)
    times = np.array([[math.pi, 1.0], [2.0, math.sqrt(2.0)]])
    whole, unit, exact = whole_times(times, times.sum(axis=1).max())
    assert not exact
    assert (whole * unit >= times).all()  # rounded up: what CP-SAT finds can be done
    assert (whole * unit - times < unit).all()
    assert whole_times(1e9 * times, 1e9)[2] is False


@pytest.mark.parametrize("scale", [0.01, 1e-8, 1e8])
def test_the_unit_does_not_matter(scale):
    times = np.array([[4, 7, 3], [5, 5, 5], [8, 2, 6]])
    best = eq.solve(eq.OpenShop(times), rel_gap=0.0).objective
    for backend in usable("cp_sat_schedule", "highs"):
        result = eq.solve(eq.OpenShop(times * scale), backend, rel_gap=1e-5)
        assert result.require_optimal().makespan == pytest.approx(best * scale, rel=1e-5), backend


@given(tables(), st.randoms(use_true_random=False), st.booleans())
def test_what_must_not_matter(table, random, preemptive):
    def best(times):
        return eq.solve(eq.OpenShop(times, preemptive=preemptive), rel_gap=0.0).objective

    expected = best(table)
    shuffled = random.sample(table, len(table))
    assert best(shuffled) == expected
    assert best(np.transpose(table)) == expected  # jobs and machines are alike
    assert best([*table, [0] * len(table[0])]) == expected
    assert best(3 * np.array(table)) == 3 * expected
    assert expected <= best(np.array(table) + 1)


# -- Programs and warm starts ------------------------------------------------------------------------------------------


@given(tables())
def test_a_schedule_is_a_point_of_the_program(table):
    for preemptive in (False, True):
        shop = eq.OpenShop(table, preemptive=preemptive)
        plan = eq.solve(shop, rel_gap=0.0).plan
        program = shop.program()
        values = shop.encode(plan)
        assert program.residuals_at(values).worst <= 1e-9
        assert program.objective_at(values) == pytest.approx(plan.makespan)
        assert shop.decode(values).makespan <= plan.makespan + 1e-9


@pytest.mark.parametrize("backend", [pytest.param("cp_sat_schedule", marks=needs("cp_sat_schedule")), "highs"])
def test_a_warm_start_is_taken_and_said(backend):
    shop = eq.OpenShop(np.random.default_rng(1).integers(1, 30, (4, 4)))
    plan = eq.solve(shop, rel_gap=0.0).plan
    result = eq.solve(shop, backend, rel_gap=0.0, warm_start=plan)
    assert result.objective == plan.makespan
    assert any("warm start accepted" in note for note in result.notes)


@needs("cp_sat_schedule")
def test_a_wrong_warm_start_is_refused():
    shop = eq.OpenShop(GOOD)
    plan = eq.solve(shop).plan
    late = eq.ShopSchedule(num_jobs=2, num_machines=2, job=[0], machine=[0], start=[0.0], end=[3.0])
    result = eq.solve(shop, "cp_sat_schedule", warm_start=late)
    assert result.require_optimal().makespan == plan.makespan
    assert any("warm start rejected" in note for note in result.notes)
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(shop, "cp_sat_schedule", warm_start="now")
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(eq.OpenShop([[1.0]]), "cp_sat_schedule", warm_start=plan)


@needs("cp_sat_schedule")
def test_without_time_the_list_stands():
    shop = eq.OpenShop(np.random.default_rng(1).integers(1, 30, (6, 6)))
    result = eq.solve(shop, "cp_sat_schedule", rel_gap=0.0, time_limit=0.0)
    assert result.plan is not None
    assert result.objective <= shop.list_plan.makespan
    assert result.bound >= shop.lower_bound
    assert result.termination.reason.name == "OPTIMAL" or result.termination.limit is eq.Limit.TIME


@pytest.mark.parametrize("backend", ["birkhoff", pytest.param("cp_sat_schedule", marks=needs("cp_sat_schedule"))])
def test_own_options_there_are_none(backend):
    shop = eq.OpenShop(GOOD, preemptive=backend == "birkhoff")
    with pytest.raises(eq.InvalidInput, match="it has no options"):
        eq.solve(shop, backend, backend_options={backend: {"speed": 2}})


@pytest.mark.parametrize("preemptive", [False, True])
def test_the_same_call_gives_the_same_schedule(preemptive):
    shop = eq.OpenShop(np.random.default_rng(4).integers(1, 30, (5, 5)), preemptive=preemptive)
    first, second = (eq.solve(shop, rel_gap=0.0).plan for _ in range(2))
    for name in ("job", "machine", "start", "end"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


# -- The check itself, and what a plan shows ---------------------------------------------------------------------------


def changed(plan, **changes):
    data = {name: getattr(plan, name).copy() for name in ("job", "machine", "start", "end")}
    for name, (at, value) in changes.items():
        data[name][at] = value
    return eq.ShopSchedule(num_jobs=plan.num_jobs, num_machines=plan.num_machines, **data)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, 0.0),
        ({"end": (0, 2.5)}, 0.5),  # work is missing
        ({"start": (0, -1.0)}, 1.0),  # before the beginning, and too much work
        ({"start": (1, 1.0), "end": (1, 5.0)}, 1.0),  # over another piece
        ({"job": (0, 1)}, 3.0),
        ({"job": (0, 7)}, math.inf),
        ({"machine": (0, -1)}, math.inf),
        ({"end": (0, math.nan)}, math.inf),
    ],
)
def test_the_check_finds_each_fault(changes, fault):
    plan = eq.ShopSchedule(
        num_jobs=2, num_machines=2, job=[0, 1, 1, 0], machine=[0, 1, 0, 1], start=[0, 0, 4, 4], end=[3, 4, 6, 5]
    )
    assert plan.start.tolist() == [0, 0, 4, 4]
    plan = changed(plan, **changes)
    assert worst_fault(np.array(GOOD), plan, preemptive=False) >= fault
    assert (worst_fault(np.array(GOOD), plan, preemptive=False) == 0) is (fault == 0)
    shop = eq.OpenShop(GOOD)
    share = worst_fault(np.array(GOOD), plan, preemptive=False) / shop.lower_bound
    assert shop.evaluate(plan)[1].worst == pytest.approx(share)


def test_an_operation_in_two_pieces_needs_preemption():
    plan = eq.ShopSchedule(num_jobs=1, num_machines=1, job=[0, 0], machine=[0, 0], start=[0, 3], end=[2, 4])
    assert worst_fault(np.array([[3.0]]), plan, preemptive=True) == 0.0
    assert worst_fault(np.array([[3.0]]), plan, preemptive=False) == 1.0
    assert plan.preemptions == 1
    assert worst_fault(np.array([[3.0]]), "no plan", preemptive=True) == math.inf


def test_a_plan_has_arrays_of_one_length():
    with pytest.raises(eq.InvalidInput, match="one entry for each piece"):
        eq.ShopSchedule(num_jobs=1, num_machines=1, job=[0], machine=[0, 0], start=[0.0], end=[1.0])


def test_what_a_plan_shows(tmp_path):
    plan = eq.solve(eq.OpenShop(GOOD)).require_optimal()
    frame = plan.to_frame()
    assert frame.columns.tolist() == ["job", "machine", "start", "end"]
    assert frame.start.is_monotonic_increasing
    assert (frame.end - frame.start).sum() == 10.0
    assert "makespan 6" in repr(plan)
    text = plan.to_svg(tmp_path / "gantt.svg")
    assert (tmp_path / "gantt.svg").read_text(encoding="utf-8") == text == plan._repr_svg_()
    root = ElementTree.fromstring(text)
    bars = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(bars) == len(plan.job)
    # As wide as its work is long: 680 pixels are the makespan.
    assert sorted(float(bar.get("width")) for bar in bars) == pytest.approx(
        sorted(680 * (plan.end - plan.start) / plan.makespan), abs=0.01
    )


def test_auto_takes_the_special_backends():
    taken = {
        preemptive: next(row.name for row in eq.candidates(eq.OpenShop(GOOD, preemptive=preemptive)) if row.taken)
        for preemptive in (False, True)
    }
    assert taken[True] == "birkhoff"
    assert taken[False] in ("cp_sat_schedule", "highs")  # without ortools, the program goes to HiGHS
