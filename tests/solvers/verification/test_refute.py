"""What refutes a claim: a search that finds what there is, often enough, and never what there is not."""

import itertools
import math

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.solvers.verification.local_search import better_point, gradient, objective_if_feasible
from equipoise.solvers.verification.refute import better_step, feasible_point, refuted_bound

SEEDS = range(60 + examples(90))


def drawn(seed):
    """Draw a small program whose columns are 0, 1 or 2, with a point that satisfies it, and all its points."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    build = eq.ProgramBuilder(sense="max" if seed % 2 else "min")
    x = build.add_columns("x", (n,), upper=2.0, integer=True)
    coefficients = rng.integers(-3, 8, (m, n)).astype(float)
    planted = rng.integers(0, 3, n).astype(float)
    sides = coefficients @ planted
    lower = sides if seed % 3 == 0 else np.full(m, -np.inf) if seed % 3 == 1 else sides - rng.integers(0, 3, m)
    build.add_rows(
        "r", (m,), terms=[(np.arange(m)[:, None], x, coefficients)], lower=lower, upper=sides + rng.integers(0, 3, m)
    )
    build.set_objective([(x, rng.integers(-9, 10, n).astype(float))], offset=float(rng.integers(-5, 6)))
    program = build.program()
    points = [np.array(point, dtype=float) for point in itertools.product((0, 1, 2), repeat=n)]
    return program, planted, [point for point in points if program.residuals_at(point).worst == 0]


@pytest.mark.thorough
def test_the_best_point_is_never_beaten_and_its_bound_never_refuted():
    for seed in SEEDS:
        program, _, points = drawn(seed)
        sign = 1.0 if program.sense == "max" else -1.0
        best = max(points, key=lambda point: sign * program.objective_at(point))
        value = program.objective_at(best)
        assert better_point(program, best, value + sign * 1e-6 * max(1.0, abs(value)), 1e-6, moves=200) is None
        assert refuted_bound(program, best, value, 1e-6) == ""
        assert refuted_bound(program, None, value, 1e-6) == ""


def test_what_the_search_returns_is_a_point_beyond_and_it_is_found_more_often_than_by_single_steps():
    worse = searched = stepped = 0
    for seed in SEEDS:
        program, planted, points = drawn(seed)
        sign = 1.0 if program.sense == "max" else -1.0
        bound = program.objective_at(planted)
        if sign * (max(sign * program.objective_at(point) for point in points) - sign * bound) <= 0:
            continue
        worse += 1
        beyond = bound + sign * 1e-6 * max(1.0, abs(bound))
        found = better_point(program, planted, beyond, 1e-6)
        stepped += better_step(program, planted, beyond, 1e-6) is not None
        if found is not None:
            searched += 1
            assert program.residuals_at(found).worst <= 1e-8
            assert sign * (program.objective_at(found) - bound) > 0
            assert "is refuted" in refuted_bound(program, planted, bound, 1e-6)
    assert worse >= len(SEEDS) // 6
    assert searched >= 0.85 * worse
    assert searched > stepped


def test_a_point_is_found_in_most_programs_that_have_one_and_in_none_that_has_none():
    found = 0
    for seed in SEEDS:
        program, _, _ = drawn(seed)
        point = feasible_point(program, None, 1e-6)
        if point is not None:
            found += 1
            assert program.residuals_at(point).worst <= 1e-6
    assert found >= 0.8 * len(SEEDS)
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (3,), upper=2.0, integer=True)
    build.add_rows("odd", (1,), terms=[(0, x, 2.0)], lower=3.0, upper=3.0)
    assert feasible_point(build.program(), None, 1e-6) is None


def test_an_integer_column_without_a_whole_number_between_its_bounds_is_not_searched():
    build = eq.ProgramBuilder(sense="max")
    build.add_columns("x", (1,), lower=0.2, upper=0.8, integer=True)
    assert feasible_point(build.program(), None, 1e-6) is None


def pools(upper):
    """Maximise log x + 2 log y + log z over x + y + z <= 2 and upper bounds: at (0.5, 1, 0.5) if they are 1."""
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (3,), upper=upper)
    build.add_rows("sum", (1,), terms=[(0, x, 1.0)], upper=2.0)
    build.add_logs([1.0, 2.0, 1.0], terms=[(np.arange(3), x, 1.0)])
    return build.program()


def test_logarithms_are_searched_by_their_slope_and_where_they_have_a_value():
    program = pools(1.0)
    point = feasible_point(program, None, 1e-6)
    assert math.isfinite(program.objective_at(point))
    poor = np.full(3, 2 / 3)  # no single column can rise
    bound = program.objective_at(poor)
    assert better_step(program, poor, bound + 1e-6, 1e-6) is None
    assert program.objective_at(better_point(program, poor, bound + 1e-6, 1e-6)) > bound
    best = np.array([0.5, 1.0, 0.5])
    assert refuted_bound(program, best, program.objective_at(best), 1e-6) == ""
    assert feasible_point(pools(0.0), None, 1e-6) is None  # only at 0, where no logarithm has a value


def test_the_gradient_is_the_derivative():
    program, point = pools(1.0), np.array([0.3, 0.9, 0.4])
    for j in range(3):
        step = np.eye(3)[j] * 1e-6
        slope = (program.objective_at(point + step) - program.objective_at(point - step)) / 2e-6
        assert gradient(program, point)[j] == pytest.approx(slope, rel=1e-6)


def test_numbers_too_large_to_be_checked_are_no_point():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1e308)
    build.add_rows("near", (1,), terms=[(0, x, [10.0, -10.0])], lower=1.0, upper=5.0)
    build.set_objective([(x, [1.0, 1.0])])
    program = build.program()
    assert objective_if_feasible(program, np.full(2, 1e308), 1e-6) is None
    assert objective_if_feasible(program, np.array([0.3, 0.0]), 1e-6) == 0.3
    point = feasible_point(program, None, 1e-6)
    assert program.residuals_at(point).worst <= 1e-6
    assert refuted_bound(program, point, 1.7e308, 1e-6) == ""


def test_a_proved_bound_is_not_refuted_by_what_the_tolerance_lets_through():
    """A row missed by 1e-6, at a dual of 1e4, is worth 0.01; a bound without duals allows only 1e-6."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), upper=[np.inf, 1.0])
    build.add_rows("row", (1,), terms=[(0, x[0], 1.0)], upper=0.0)
    build.set_objective([(x, [1e4, 1.0])])
    program, values = build.program(), np.array([9e-7, 0.0])  # the step is of the second column
    assert "is refuted" in refuted_bound(program, values, 1.0, 1e-6)
    assert refuted_bound(program, values, 1.0, 1e-6, np.array([1e4])) == ""
    assert "is refuted" in refuted_bound(program, values, 0.5, 1e-6, np.array([1e4]))
