"""The level_programs backend: agreement with share_prices on water filling, limits and options."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.validation.benchmarks.shares import share_problem


@pytest.mark.parametrize(("jobs", "types", "distinct"), [(60, 2, None), (60, 4, None), (300, 3, 20), (40, 1, None)])
def test_it_agrees_with_share_prices_on_water_filling(jobs, types, distinct):
    problem = share_problem("water_filling", jobs=jobs, types=types, distinct=distinct, seed=2)
    first, second = (eq.solve(problem, name, rel_gap=1e-7) for name in ("share_prices", "level_programs"))
    assert first.termination.reason is second.termination.reason is eq.Reason.OPTIMAL
    levels = problem.levels(first.plan.shares)
    assert problem.levels(second.plan.shares) == pytest.approx(levels, rel=1e-7)
    assert second.plan.shares == pytest.approx(first.plan.shares, abs=1e-5)


def test_the_program_of_a_step_is_the_part_of_the_way():
    problem = eq.HierarchicalFairness([[1.0], [1.0]], [2, 2], [3], [0, 1])
    half = problem.highest / 2
    answer = eq.solve(problem.step_program(half, problem.highest), "highs")
    assert answer.objective == pytest.approx(0.5)  # from one GPU each to two each, there are three
    assert eq.solve(problem.step_program(0 * half, half), "highs").objective == pytest.approx(1.0)


def test_out_of_time_it_gives_what_there_is():
    problem = share_problem("water_filling", jobs=300, types=3, distinct=None, seed=0)
    result = eq.solve(problem, "level_programs", time_limit=0.0)
    assert result.termination.limit is eq.Limit.TIME
    assert result.plan is None or result.residuals.worst <= 1e-9


def test_options_go_to_highs_and_others_are_refused():
    problem = eq.HierarchicalFairness([[1.0, 2.0]] * 3, [1, 2, 2], [2, 1], [0, 1, 0])
    plain = eq.solve(problem, "level_programs")
    tuned = eq.solve(problem, "level_programs", backend_options={"highs": {"presolve": "off"}}, threads=1, seed=3)
    assert tuned.plan.shares == pytest.approx(plain.plan.shares, abs=1e-9)
    assert "linear programs by HiGHS" in plain.notes[0]
    with pytest.raises(eq.InvalidInput, match="presolv"):
        eq.solve(problem, "level_programs", backend_options={"highs": {"presolv": "off"}})
    with pytest.raises(eq.InvalidInput, match="it has no options"):
        eq.solve(problem, "level_programs", backend_options={"level_programs": {"cuts": 3}})
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(problem, "level_programs", warm_start=eq.GpuShares(np.ones((3, 2))))
