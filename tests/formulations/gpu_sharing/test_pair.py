"""PairSharing: all backends against brute force over the delay, the pieces of its program, its picture, bad input."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once
from equipoise.validation.oracles.sharing import simulated_ends

times = st.integers(1, 60).map(lambda n: Fraction(n, 4))
ratios = st.integers(1, 44).map(lambda n: Fraction(n, 4))
OBJECTIVES = [("mean_jct", None), ("weighted_jct", (3.0, 1.0)), ("weighted_jct", (0.0, 1.0)), ("makespan", None)]
EXAMPLE = {"running_s": 100.0, "waiting_s": 1.0, "running_ratio": 2.0, "waiting_ratio": 2.0}


def pair(a, b, x, y, objective="mean_jct", weights=None):
    data = dict(zip(EXAMPLE, map(float, (a, b, x, y)), strict=True))
    return eq.PairSharing(**data, objective=objective, weights=weights)


@given(times, times, ratios, ratios, st.integers(0, 80).map(lambda n: Fraction(n, 5)))
def test_ends_are_those_of_the_simulation(a, b, x, y, delay):
    assert list(pair_ends(a, b, x, y, delay)) == simulated_ends([a], b, [x], [y], delay)


@given(times, times, ratios, ratios, st.sampled_from(OBJECTIVES))
def test_one_of_two_delays_is_best(a, b, x, y, objective):
    problem = pair(a, b, x, y, *objective)
    best = min(problem.exact_objective(each) for each in (Fraction(0), a))
    assert all(problem.exact_objective(a * Fraction(k, 30)) >= best for k in range(45))
    result = eq.solve(problem)
    assert result.objective == result.bound == float(best)
    assert result.termination.reason is eq.Reason.OPTIMAL


@given(times, times, ratios, ratios)
def test_the_plan_follows_the_rule(a, b, x, y):
    plan = eq.solve(pair(a, b, x, y)).plan
    assert plan.share == shares_at_once(a, b, x, y)
    assert plan.delay_s == (0.0 if plan.share else float(a))
    assert (plan.running_end_s, plan.waiting_end_s) == tuple(map(float, pair_ends(a, b, x, y, Fraction(plan.delay_s))))


@given(times, times, ratios, ratios, st.sampled_from(OBJECTIVES))
def test_every_program_has_two_pieces_and_one_binary(a, b, x, y, objective):
    program = pair(a, b, x, y, *objective).program()
    assert program.integer.sum() == 1
    assert program.columns["share"].shape == (2, 2)
    assert program.problem_class is eq.ProblemClass.MILP


@pytest.mark.parametrize("row", eq.backends(eq.PairSharing(**EXAMPLE), usable=True), ids=lambda row: row.name)
@pytest.mark.parametrize(
    "data",
    [
        (100, 1, 2, 2),
        (1, 1, 1.5, 1.5),
        (10, 10, 11, 11),
        (1e-7, 3e-6, 2, 1.1),
        (1e7, 3, 11, 1.01),
        (3, 1e7, 1.2, 9),
        (1, 1e-6, 1.2, 9),
    ],
)
def test_every_backend_agrees_also_with_tiny_times_and_large_ratios(row, data):
    for objective in OBJECTIVES:
        problem = pair(*data, *objective)
        exact = eq.solve(problem, "delay_candidates").objective
        result = eq.solve(problem, row.name, rel_gap=1e-9)
        if row.name != "ortools":  # its integer grid does not close a gap of 1e-9
            assert result.termination.reason is eq.Reason.OPTIMAL, result
        assert result.objective == pytest.approx(exact, rel=1e-9)
        assert result.plan.delay_s in (0.0, problem.running_s)


def test_a_warm_start_is_accepted_and_a_group_plan_refused():
    problem = eq.PairSharing(**EXAMPLE)
    result = eq.solve(problem, "highs", warm_start=problem.plan_of(50.0))
    assert result.objective == 51.5
    other = eq.GroupSharing(running_s=[1, 2], waiting_s=1, running_ratios=[1, 1], waiting_ratios=[1, 1])
    with pytest.raises(eq.InvalidInput, match="plan of 2 jobs"):
        eq.solve(problem, "highs", warm_start=eq.solve(other).plan)


def test_what_is_no_delay_is_infeasible():
    problem = eq.PairSharing(**EXAMPLE)
    assert problem.evaluate(problem.plan_of(-2.0))[1].bound == 2.0
    assert problem.evaluate(problem.plan_of(float("nan")))[1].bound == np.inf
    assert problem.evaluate(problem.plan_of(200.0))[0] == (100 + 201) / 2


def test_the_picture_shows_three_schedules():
    plan = eq.solve(eq.PairSharing(running_s=10.0, waiting_s=4.0, running_ratio=1.5, waiting_ratio=1.25)).plan
    picture = plan.to_svg()
    for line in ("at once: R", "at once: W", "delayed: R", "in turn: W"):
        assert line in picture
    # Both would end together after 10 - 5/1.5 s.
    assert "job 1: 6.66667 to 11.6667" in picture
    assert "job 1: 10 to 14" in picture
    assert repr(plan) == "<PairPlan: start after 0 s, ends 11.6667, 5 s>"


def test_the_objective_is_drawn_against_the_delay(tmp_path):
    picture = eq.PairSharing(**EXAMPLE).to_svg(tmp_path / "curve.svg")
    assert "mean JCT, least at 0 s: 51.5" in picture
    assert picture.count("<circle") == 3  # 0, the delay of a common end, and the running job's time
    assert (tmp_path / "curve.svg").read_text() == picture
    flat = eq.PairSharing(running_s=2.0, waiting_s=1.0, running_ratio=1.0, waiting_ratio=1.0, objective="makespan")
    assert "makespan, least at 0 s: 2" in flat.to_svg()


@pytest.mark.parametrize("field", EXAMPLE)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "1", True, None, 1e61])
def test_bad_input_names_the_field(field, value):
    with pytest.raises(eq.InvalidInput, match=f"^{field} = "):
        eq.PairSharing(**(EXAMPLE | {field: value}))


def test_bad_objectives_and_weights_are_refused():
    for change in (
        {"objective": "jct"},
        {"objective": "weighted_jct"},
        {"weights": (1.0, 1.0)},
        {"objective": "weighted_jct", "weights": (1.0, 1.0, 1.0)},
        {"objective": "weighted_jct", "weights": (0.0, 0.0)},
    ):
        with pytest.raises(eq.InvalidInput, match=r"objective|weights"):
            replace(eq.PairSharing(**EXAMPLE), **change)
