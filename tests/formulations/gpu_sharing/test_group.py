"""GroupSharing: its ends against an exact simulation, its candidates against many delays, examples, and bad input."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.gpu_sharing.group_ends import group_ends, linear_pieces
from equipoise.validation.oracles.sharing import ends_over_delays, simulated_ends

times = st.integers(1, 24).map(lambda n: Fraction(n, 2))
ratios = st.integers(2, 44).map(lambda n: Fraction(n, 4))  # from a half to 11
OBJECTIVES = [("mean_jct", None), ("weighted_jct", (3, 0, 1, 2)), ("makespan", None)]


@st.composite
def groups(draw, most=3):
    jobs = draw(st.integers(1, most))
    a, x, y = (draw(st.lists(each, min_size=jobs, max_size=jobs)) for each in (times, ratios, ratios))
    return a, draw(times), x, y


def problem(data, objective="mean_jct", weights=None):
    a, b, x, y = data
    a, x, y = (list(map(float, each)) for each in (a, x, y))
    weights = None if weights is None else weights[: len(a) + 1]
    return eq.GroupSharing(
        running_s=a, waiting_s=float(b), running_ratios=x, waiting_ratios=y, objective=objective, weights=weights
    )


@given(groups(), st.integers(0, 60).map(lambda n: Fraction(n, 5)))
def test_ends_are_those_of_the_simulation(data, delay):
    assert group_ends(*data, delay) == simulated_ends(*data, delay)


@given(groups())
def test_ends_are_linear_between_the_candidates_and_keep_their_order(data):
    points = list(linear_pieces(*data))
    assert points[0] == 0
    assert points[-1] == max(data[0])
    assert points == sorted(set(points))
    assert set(data[0]) <= set(points)
    for low, high in pairwise(points):
        first, last = simulated_ends(*data, low), simulated_ends(*data, high)
        orders = set()
        for part in (Fraction(1, 7), Fraction(1, 2), Fraction(8, 9)):
            between = simulated_ends(*data, low + part * (high - low))
            assert between == [one + part * (two - one) for one, two in zip(first, last, strict=True)]
            orders.add(tuple(sorted(range(len(between)), key=between.__getitem__)))
        assert len(orders) == 1


@given(groups(), st.sampled_from(OBJECTIVES))
def test_no_delay_is_better(data, objective):
    group = problem(data, *objective)
    result = eq.solve(group, "delay_candidates")
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.gap <= 1e-12
    last = max(data[0])
    best = min(group.exact_objective(last * Fraction(k, 40)) for k in range(60))
    assert result.objective <= float(best) * (1 + 1e-12)
    exact = group.exact_objective(Fraction(result.plan.delay_s))
    assert result.objective == pytest.approx(float(exact), rel=1e-15)
    assert result.plan.ends_s.tolist() == [float(end) for end in simulated_ends(*data, Fraction(result.plan.delay_s))]


@given(groups(), st.sampled_from(OBJECTIVES))
def test_the_program_has_the_same_optimum(data, objective):
    group = problem(data, *objective)
    exact, found = (eq.solve(group, backend, rel_gap=0.0) for backend in ("delay_candidates", "highs"))
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)


@given(groups())
@example(data=([Fraction(9, 2), Fraction(21, 2)], Fraction(3), [Fraction(9, 4)] * 2, [Fraction(1, 2), Fraction(21, 4)]))
def test_many_delays_at_once_are_the_simulation(data):
    a, b, x, y = data
    delays = [max(a) * Fraction(k, 9) for k in range(14)]
    exact = np.array([[float(end) for end in simulated_ends(*data, delay)] for delay in delays]).T
    arrays = (np.array(list(map(float, each))) for each in (x, y, delays))
    assert ends_over_delays(np.array(list(map(float, a))), float(b), *arrays) == pytest.approx(exact, rel=1e-9)


@given(groups(), st.sampled_from(OBJECTIVES[:2]))
def test_only_common_ends_of_running_jobs_matter_for_completion_times(data, objective):
    a, b, x, y = data
    x, y = ([max(Fraction(1), each) for each in ratio] for ratio in (x, y))
    group = problem((a, b, x, y), *objective)
    meets = {
        (x[i] * a[i] - x[j] * a[j]) / (x[i] - x[j]) for i, j in combinations(range(len(a)), 2) if x[i] != x[j]
    }  # fmt: skip
    few = {Fraction(0), *a, *(meet for meet in meets if 0 < meet < max(a))}
    assert min(map(group.exact_objective, few)) == min(map(group.exact_objective, group.breakpoints()))


@given(groups(), st.permutations(range(3)))
def test_the_order_of_running_jobs_does_not_matter(data, order):
    a, b, x, y = data
    order = [i for i in order if i < len(a)]
    other = [a[i] for i in order], b, [x[i] for i in order], [y[i] for i in order]
    assert eq.solve(problem(data)).objective == eq.solve(problem(other)).objective


@given(groups(), st.sampled_from(OBJECTIVES), st.sampled_from([2.0**-40, 2.0**30]))
def test_the_unit_of_time_does_not_matter(data, objective, unit):
    a, b, x, y = data
    scaled = [Fraction(unit) * each for each in a], Fraction(unit) * b, x, y
    for backend in ("delay_candidates", "highs"):
        here, there = (eq.solve(problem(each, *objective), backend, rel_gap=0.0) for each in (data, scaled))
        assert there.objective == pytest.approx(unit * here.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("data", "objective", "values", "best"),
    [
        # The mean JCT at 0, at the end of the first running job, and at that of the second.
        (([1, 100], 10, [10, 1.01], [10, 1.01]), "mean_jct", {0: 43.093, 1: 37.4, 100: 70.3333}, 1.0),
        # Two jobs end together at 8/5.
        (([3, 4], 3, [3, 1], [1, 2]), "makespan", {0: 19 / 3, 1.6: 5.8, 3: 6.5, 4: 7.0}, 1.6),
        # No end of a running job is best for the mean JCT: at 1, both running jobs would end together.
        (([2, 2.4], 10, [1.4, 1], [2, 2]), "mean_jct", {0: 16.6 / 3, 1: 5.5, 2: 16.6 / 3, 2.4: 5.6}, 1.0),
    ],
)
def test_examples_in_which_the_best_delay_lies_inside(data, objective, values, best):
    group = problem(data, objective)
    for delay, value in values.items():
        assert float(group.exact_objective(Fraction(delay))) == pytest.approx(value, abs=1e-4)
    result = eq.solve(group)
    assert result.plan.delay_s == pytest.approx(best, abs=1e-12)
    assert result.plan.share
    for row in eq.backends(group, usable=True):
        assert eq.solve(group, row.name, rel_gap=1e-6).plan.delay_s == pytest.approx(best, abs=1e-12), row.name


def test_one_running_job_is_a_pair():
    rng = np.random.default_rng(4)
    for _ in range(100):
        a, b = rng.uniform(1, 100, 2)
        x, y = rng.uniform(1, 11, 2)
        group = problem(([a], b, [x], [y]))
        pair = eq.PairSharing(running_s=a, waiting_s=b, running_ratio=x, waiting_ratio=y)
        one, two = eq.solve(group), eq.solve(pair)
        assert one.objective == two.objective
        assert one.plan.delay_s == two.plan.delay_s


def test_a_plan_shows_a_table_and_a_picture():
    plan = eq.solve(problem(([3, 4], 3, [3, 1], [1, 2]), "makespan")).plan
    frame = plan.to_frame()
    assert frame.index.tolist() == ["running 0", "running 1", "waiting"]
    assert frame["start_s"].tolist() == [0.0, 0.0, 1.6]
    assert frame["end_s"].tolist() == pytest.approx([5.8, 4.0, 5.8])
    assert "job 2: 1.6 to 4" in plan.to_svg()
    assert plan.running_ends_s.tolist() == frame["end_s"].tolist()[:2]


def test_no_time_still_gives_a_plan():
    result = eq.solve(problem(([3, 4], 3, [3, 1], [1, 2]), "makespan"), "delay_candidates", time_limit=0.0)
    assert result.plan is not None
    assert result.bound == -np.inf or result.termination.reason is eq.Reason.OPTIMAL


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("running_s", [1.0, -2.0], r"running_s\[1\] = -2.0: must be greater than 0"),
        ("running_s", [1.0, float("nan")], r"running_s\[1\] = nan: must be finite"),
        ("running_s", [], "running_s = .*must not be empty"),
        ("waiting_s", float("inf"), "waiting_s = inf: must be finite"),
        ("waiting_s", 0.0, "waiting_s = 0.0: must be greater than 0"),
        ("running_ratios", [1.0], "running_ratios"),
        ("running_ratios", [1.0, 0.0], r"running_ratios\[1\] = 0.0: must be greater than 0"),
        ("waiting_ratios", [1e61, 1.0], r"waiting_ratios\[0\] = 1e\+61: at most 1e\+60"),
        ("objective", "jct", "objective = 'jct': must be one of mean_jct, weighted_jct, makespan"),
        ("objective", "weighted_jct", "weighted_jct needs a weight"),
        ("weights", [1.0, 1.0, 1.0], "mean_jct has no weights"),
    ],
)
def test_bad_input_names_field_index_and_value(field, value, message):
    data = {"running_s": [1.0, 2.0], "waiting_s": 1.0, "running_ratios": [1.0, 2.0], "waiting_ratios": [1.0, 2.0]}
    with pytest.raises(eq.InvalidInput, match=message):
        eq.GroupSharing(**(data | {field: value}))


@pytest.mark.parametrize("weights", [[1.0, 1.0], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [1.0, float("nan"), 1.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(eq.InvalidInput, match="weights"):
        eq.GroupSharing(
            running_s=[1.0, 2.0], waiting_s=1.0, running_ratios=[1.0, 2.0], waiting_ratios=[1.0, 2.0],
            objective="weighted_jct", weights=weights,
        )  # fmt: skip


@given(groups(), st.integers(0, 50).map(lambda n: n / 4))
def test_a_warm_start_states_its_delay(data, delay):
    group = problem(data)
    program = group.program()
    values = group.encode(group.plan_of(delay))
    assert program.residuals_at(values).worst <= 1e-12
    if delay <= float(max(data[0])):
        assert program.objective_at(values) == pytest.approx(float(group.exact_objective(Fraction(delay))), rel=1e-9)
    with pytest.raises(eq.InvalidInput, match=r"plan\.delay_s = -1\.0"):
        group.encode(group.plan_of(-1.0))
