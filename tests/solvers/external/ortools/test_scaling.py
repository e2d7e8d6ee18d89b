"""Programs in whole numbers, as CP-SAT is given them: every claim of the scaling, in exact fractions."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.external.ortools.columns import useful_range, whole_columns
from equipoise.solvers.external.ortools.integrality import whole_at_optimum
from equipoise.solvers.external.ortools.scaling import MOST_ACTIVITY, scaled_rows, whole_program

# The package itself is not needed, but all of this serves its backend.
pytestmark = pytest.mark.thorough

INF = math.inf
TOLERANCE = 1e-6


def dense(sense, objective, matrix, row_lower, row_upper, *, lower=0.0, upper=1.0, integer=True, offset=0.0):
    matrix = np.asarray(matrix, dtype=float)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (len(objective),), lower=lower, upper=upper, integer=integer)
    if len(matrix):
        rows = np.arange(len(matrix))[:, None]
        build.add_rows("row", (len(matrix),), terms=[(rows, x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective([(x, objective)], offset=offset)
    return build.program()


def scaled(program, grid=None, **options):
    return whole_program(program, eq.Options(**options), grid)


def exact_sums(program, point):
    """Return each row's sum at the point, and the objective, as fractions."""
    starts, columns, values = program.matrix.starts, program.matrix.columns, program.matrix.values
    x = [Fraction(float(value)) for value in point]
    sums = [
        sum((Fraction(float(values[k])) * x[columns[k]] for k in range(starts[i], starts[i + 1])), Fraction(0))
        for i in range(program.num_rows)
    ]
    cost = [Fraction(float(c)) * v for c, v in zip(program.objective, x, strict=True)]
    return sums, sum(cost, Fraction(program.offset))


def violation(program, point):
    sums, _ = exact_sums(program, point)
    worst = Fraction(0)
    for total, low, high in zip(sums, program.row_lower, program.row_upper, strict=True):
        worst = max(worst, Fraction(float(low)) - total if low > -INF else worst)
        worst = max(worst, total - Fraction(float(high)) if high < INF else worst)
    return worst


def satisfies(whole, counts):
    """Whether whole numbers satisfy the whole rows, in Python's integers."""
    entries, coefficients = whole.entries.tolist(), whole.coefficients.tolist()
    starts, n = whole.starts.tolist(), [int(count) for count in counts]
    for i, (low, high) in enumerate(zip(whole.lower.tolist(), whole.upper.tolist(), strict=True)):
        total = sum(coefficients[k] * n[entries[k]] for k in range(starts[i], starts[i + 1]))
        if not low <= total <= high:
            return False
    return not whole.never


def least(whole, counts):
    """Return what the whole costs say of the objective as a minimisation: a lower bound on it."""
    total = sum(int(c) * int(n) for c, n in zip(whole.costs, counts, strict=True))
    return Fraction(whole.bound(float(total / Fraction(whole.scale) + Fraction(whole.constant))))


def ugly(rng, size):
    """Coefficients that no plain scale makes whole, of sizes from 1e-3 to 1e3."""
    return rng.normal(size=size) * 10.0 ** rng.integers(-3, 4, size=size)


# -- Integer programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ["ugly", "decimal", "whole"])
def test_no_point_is_lost_and_none_is_added_beyond_the_tolerance(draw):
    rng = np.random.default_rng({"ugly": 1, "decimal": 2, "whole": 3}[draw])
    kept = added = 0
    for _ in range(40):
        n, m = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        sizes = {
            "ugly": lambda size: ugly(rng, size),
            "decimal": lambda size: np.round(rng.normal(0, 5, size), 2),
            "whole": lambda size: rng.integers(-9, 10, size).astype(float),
        }[draw]
        lower = rng.integers(-3, 2, size=n).astype(float)
        upper = lower + rng.integers(0, 4, size=n)
        matrix = sizes((m, n))
        planted = matrix @ rng.integers(lower, upper + 1)  # sides that a point meets, to the last bit or nearly
        high = planted + np.where(rng.random(m) < 0.5, 0.0, rng.random(m))
        low = np.where(rng.random(m) < 0.3, planted, -INF)
        program = dense("min", sizes(n), matrix, low, high, lower=lower, upper=upper, offset=0.1)
        whole = scaled(program)
        assert (np.abs(whole.coefficients).astype(float) <= MOST_ACTIVITY).all()
        for point in itertools.product(*(np.arange(a, b + 1) for a, b in zip(lower, upper, strict=True))):
            counts = whole.columns.counts(np.array(point))
            assert whole.columns.values(counts).tolist() == list(point)
            broken = violation(program, point)
            if broken <= Fraction(1, 10**12):  # the planted point may miss its side by a rounding of floats
                assert satisfies(whole, counts)
                kept += 1
            elif satisfies(whole, counts):
                assert broken < TOLERANCE
                added += 1
            assert least(whole, counts) <= exact_sums(program, point)[1]
    assert kept > 100
    assert added == 0  # ugly numbers all of them, so that none comes within the tolerance of a side by chance


def test_a_side_gives_way_to_rounding_and_to_no_more():
    steps = [math.pi, math.e, math.sqrt(2.0)]
    for beyond, kept in ((1e-8, True), (4e-7, False)):
        for sign in (1.0, -1.0):
            high = 3.0 * sum(steps) - beyond
            low, high = (-INF, high) if sign > 0 else (-high, INF)
            program = dense("min", [1.0] * 3, [[sign * step for step in steps]], low, high, upper=3.0)
            assert satisfies(scaled(program), [3, 3, 3]) is kept


def test_decimals_become_small_whole_numbers():
    program = dense("max", [0.07, 1.5], [[0.1, 0.2], [1 / 60, 7 / 60]], -INF, [0.3, 8 / 60])
    whole = scaled(program)
    assert whole.coefficients.tolist() == [1, 2, 1, 7]
    assert whole.upper.tolist() == [3, 8]  # 0.1 + 0.2 exceeds 0.3 in floats: the scaling forgives that
    assert (whole.costs.tolist(), whole.scale) == ([-7, -150], 100.0)
    assert whole.loss < 1e-14


def test_whole_numbers_stay_as_they_are():
    program = dense("min", [3.0, -4.0], [[2.0, 5.0]], 1.5, 6.9, lower=-1.0, upper=3.0, offset=2.0)
    whole = scaled(program)
    assert (whole.coefficients.tolist(), whole.costs.tolist(), whole.scale, whole.bound(7.0)) == (
        [2, 5],
        [3, -4],
        1.0,
        7.0,
    )
    assert (whole.lower.tolist(), whole.upper.tolist()) == ([2 + 7], [6 + 7])  # counted from the lower bounds
    assert whole.constant == -3.0 + 4.0 + 2.0


def test_a_power_of_two_is_fine_enough_and_no_finer():
    rng = np.random.default_rng(4)
    row, weights, most = np.repeat(np.arange(5), 30), ugly(rng, 150), rng.integers(1, 9, size=150).astype(float)
    whole, scale = scaled_rows(row, weights, most, 5, 1e-7)
    off = np.bincount(row, weights=np.abs(weights - whole / scale[row]) * most)
    assert (off <= 1e-7).all()
    assert (off > 1e-7 / 8).all()
    assert (np.frexp(scale)[0] == 0.5).all()


def test_the_costs_are_finer_where_a_finer_gap_is_asked():
    program = dense("max", ugly(np.random.default_rng(5), 30), [], None, None, upper=1e4)
    errors = []
    for gap in (1e-4, 1e-8, 0.0):
        whole = scaled(program, rel_gap=gap)
        lost = np.abs(program.objective + whole.costs / whole.scale).sum() / np.abs(program.objective).sum()
        errors.append(lost)
    assert errors[0] < 1e-9
    assert errors[1] < 1e-11
    assert errors[2] < 1e-12
    assert errors[0] > errors[1] > errors[2]


def test_a_fixed_column_may_have_any_coefficient():
    program = dense("min", [1.0, 1e30], [[1.0, 1e5 / 3]], -INF, 1e5, lower=[0, 2], upper=[9e5, 2])
    whole = scaled(program)
    assert (whole.coefficients.tolist(), whole.costs.tolist()) == ([1, 0], [1, 0])
    assert whole.upper.tolist() == [33333]
    assert whole.constant == 2e30


def test_what_rules_out_every_point_is_said():
    assert scaled(dense("min", [1.0], [], None, None, lower=0.3, upper=0.7)).never == (
        "no whole number lies between the bounds of column 'x'[0]"
    )
    between = dense("min", [1.0, 1.0], [[1, 1], [2, 2]], [-INF, 2.4], [3.0, 2.6])
    assert scaled(between).never == "no whole numbers satisfy row 'row'[1]"
    assert scaled(dense("min", [1.0], [[1.0]], 2.0, INF)).never == "no whole numbers satisfy row 'row'[0]"
    assert not scaled(dense("min", [1.0, 1.0], [[1, 1], [2, 2]], [-INF, 2], [3, 3.6])).never


def test_what_64_bits_do_not_hold_is_refused_with_words():
    program = dense("max", [1.0, 1.0], [[1.0, 2.0], [1e17, math.pi]], -INF, [2.0, 1e17])
    with pytest.raises(eq.UnsupportedProblem, match=r"row 'row'\[1\] in 64-bit whole numbers .* backend='highs'"):
        scaled(program)
    long = dense("max", [1.0], [], None, None, upper=1e17)
    with pytest.raises(eq.UnsupportedProblem, match=r"the range of column 'x'\[0\] is 1e\+17 long"):
        scaled(long)


# -- Continuous columns ------------------------------------------------------------------------------------------------


def mixed(rng):
    """A program with a feasible point planted, two integer and two or three continuous columns, equations among it."""
    n, m = int(rng.integers(4, 6)), int(rng.integers(1, 4))
    integer = np.arange(n) < 2
    lower = np.where(integer, -1.0, np.round(rng.random(n), 3))
    upper = lower + np.where(integer, 3.0, np.round(rng.random(n) * 4, 3))
    point = np.where(integer, rng.integers(-1, 3, size=n), lower + rng.random(n) * (upper - lower))
    matrix = np.round(rng.normal(0, 3, size=(m, n)), 2)
    planted = matrix @ point
    low = np.where(rng.random(m) < 0.5, planted, -INF)
    high = np.where(rng.random(m) < 0.6, planted, planted + 1.0)
    program = dense(
        "max", np.round(rng.normal(size=n), 3), matrix, low, high, lower=lower, upper=upper, integer=integer
    )
    return program, point


def test_the_grid_stands_for_every_value():
    rng = np.random.default_rng(6)
    on_grid = 0
    for _ in range(60):
        program, point = mixed(rng)
        whole = scaled(program)
        columns = whole.columns
        assert columns.covers
        on_grid += int(columns.on_grid.sum())
        # Points of the program: the planted one, and the planted one pushed about where rows allow it.
        for _ in range(20):
            near = np.where(program.integer, point, np.clip(point + rng.normal(size=len(point)), 0, 5))
            near = np.clip(near, program.lower, program.upper)
            for candidate in (point, near):
                if program.residuals_at(candidate).worst < 1e-12:
                    counts = columns.counts(candidate)
                    assert satisfies(whole, counts)
                    assert least(whole, counts) <= -exact_sums(program, candidate)[1]
    assert on_grid > 100


def test_a_point_of_the_grid_violates_nothing_beyond_the_tolerance():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(300):
        program, point = mixed(rng)
        whole = scaled(program)
        # Steps of a few points around a feasible one: some satisfy the whole rows, though not the program's own.
        counts = whole.columns.counts(point) + rng.integers(-2, 3, size=len(point)) * whole.columns.on_grid
        counts = np.clip(counts, 0, whole.columns.most)
        if satisfies(whole, counts):
            values = whole.columns.values(counts)
            assert (program.lower <= values).all()
            assert (values <= program.upper).all()
            assert violation(program, values) < TOLERANCE
            found += violation(program, values) > 0
    assert found > 30


def test_both_ends_of_a_grid_are_the_bounds():
    program = dense("max", [1.0, 1.0], [[1.0, 1.0]], -INF, 9.0, lower=[0.1, 0.0], upper=[3.7, 5.0], integer=False)
    columns = whole_columns(program, eq.Options(), None)
    assert columns.values(columns.most).tolist() == [3.7, 5.0]
    assert columns.values(columns.most * 0).tolist() == [0.1, 0.0]
    assert columns.on_grid.all()
    assert (2.0 * columns.step.max()) <= TOLERANCE


def test_a_coarse_grid_keeps_rows_as_they_are_and_says_that_it_restricts():
    program = dense("max", [1.0], [[1.0]], -INF, 1.05, lower=0.05, upper=3.3, integer=False)
    whole = scaled(program, grid=0.25)
    assert not whole.columns.covers
    assert whole.columns.values(whole.columns.most).tolist() == [pytest.approx(3.3)]
    assert satisfies(whole, [4])
    assert not satisfies(whole, [5])


def test_a_grid_that_is_fine_enough_covers():
    program = dense("max", [1.0], [[1.0]], -INF, 1.05, upper=3.3, integer=False)
    assert whole_columns(program, eq.Options(), 5e-7).covers
    assert not whole_columns(program, eq.Options(), 7e-7).covers
    assert whole_columns(program, eq.Options(feasibility_tol=1e-5), 5e-6).covers


def test_an_infinite_range_is_refused_with_words():
    build = eq.ProgramBuilder(sense="max")
    build.add_binaries("go", (1,))
    build.add_columns("far", (2,), lower=-1.0, integer=True)
    build.set_objective([(np.array([2]), 1.0)])
    with pytest.raises(eq.UnsupportedProblem, match=r"column 'far'\[1\] has no upper bound and the rows imply none"):
        whole_columns(build.program(), eq.Options(), None)


def test_ranges_are_taken_from_rows_and_from_what_the_objective_can_want():
    build = eq.ProgramBuilder(sense="min")
    choice = build.add_binaries("choice", (2,))
    longest = build.add_columns("longest", (1,))
    free = build.add_columns("free", (1,), lower=-INF)
    spent = build.add_columns("spent", (1,))
    build.add_rows("each", (2,), terms=[(np.arange(2), longest, 1.0), (np.arange(2), choice, [-3.0, -7.0])], lower=0)
    build.add_rows("least", (1,), terms=[(0, free, 2.0), (0, choice, 1.0)], lower=-5.0)
    build.add_rows("budget", (1,), terms=[(0, spent, 2.0)], upper=5.0)
    build.set_objective([(longest, 1.0), (free, 0.5), (spent, -1.0)])
    program = build.program()
    lower, upper = useful_range(program, program.integer)
    assert lower[2:] == pytest.approx([0.0, -3.5, 0.0], abs=1e-6)
    assert upper[2:] == pytest.approx([7.0, -2.5, 2.5], abs=1e-6)
    assert upper[2] >= 7.0


# -- Continuous columns that some optimum has whole --------------------------------------------------------------------


def test_an_equation_of_whole_numbers_makes_a_column_whole():
    build = eq.ProgramBuilder(sense="min")
    x = build.add_columns("x", (2,), upper=5.0, integer=True)
    y = build.add_columns("y", (3,), upper=7.5)
    build.add_rows("whole", (1,), terms=[(0, x, [2.0, 3.0]), (0, y[0], -1.0)], lower=4.0, upper=4.0)
    build.add_rows("half", (1,), terms=[(0, x, [2.0, 3.0]), (0, y[1], -2.0)], lower=4.0, upper=4.0)
    build.add_rows("fraction", (1,), terms=[(0, x, [2.5, 3.0]), (0, y[2], -1.0)], lower=4.0, upper=4.0)
    assert whole_at_optimum(build.program()).tolist() == [True, True, True, False, False]


def test_rows_of_whole_numbers_make_a_column_whole_one_after_the_other():
    build = eq.ProgramBuilder(sense="min")
    x = build.add_binaries("x", (2,))
    y = build.add_columns("y", (5,), upper=[1.0, 2.0, 1.0, 1.0, 1.5])
    build.add_rows("first", (1,), terms=[(0, x, [1.0, 1.0]), (0, y[0], -1.0)], lower=1.0, upper=1.0)
    build.add_rows("next", (1,), terms=[(0, y[:2], [2.0, 1.0])], lower=1.0)  # y[1] is whole once y[0] is
    build.add_rows("shared", (1,), terms=[(0, y[2:4], 1.0)], lower=1.0)
    build.add_rows("ends_between", (1,), terms=[(0, x, 1.0), (0, y[4], -1.0)], lower=-2.0)
    build.set_objective([(y, [1.0, 2.0, 1.0, 1.0, -1.0])])
    assert whole_at_optimum(build.program()).tolist() == [True, True, True, True, False, False, False]


def mean(values, *, sense="max", side="none", coefficients=None, numbers=None):
    """One column `rounds`, and weights of its possible values 0..K worth `values`, as in a window program."""
    build = eq.ProgramBuilder(sense=sense)
    rounds = build.add_columns("rounds", (1,), upper=len(values) - 1, integer=True)
    weights = build.add_columns("weight", (len(values),), upper=1.0)
    numbers = np.arange(len(values)) if numbers is None else numbers
    build.add_rows("one", (1,), terms=[(0, weights, 1.0)], lower=1.0, upper=1.0)
    build.add_rows("link", (1,), terms=[(0, weights, numbers), (0, rounds, -1.0)], lower=0.0, upper=0.0)
    if coefficients is not None:
        low, high = {"lower": (2.0, INF), "upper": (-INF, 2.0), "both": (1.0, 2.0)}[side]
        build.add_rows("use", (1,), terms=[(0, weights, coefficients)], lower=low, upper=high)
    build.set_objective([(weights, values), (rounds, -0.3 if sense == "max" else 0.3)])
    return build.program()


concave, convex, straight = [0.0, 2.0, 3.0, 3.5], [0.0, 0.5, 2.0, 4.0], [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("program", "whole"),
    [
        (mean(concave), True),
        (mean(convex), False),
        (mean(convex, sense="min"), True),
        (mean(concave, sense="min"), False),
        (mean(straight), True),
        (mean(concave, coefficients=convex, side="upper"), True),
        (mean(concave, coefficients=convex, side="lower"), False),
        (mean(concave, coefficients=concave, side="lower"), True),
        (mean(concave, coefficients=concave, side="both"), False),
        (mean(concave, coefficients=straight, side="both"), True),
        (mean(concave, numbers=[0, 1, 2, 4]), False),
        (mean(concave, numbers=[0, 1, 2, 2]), False),
        (mean(concave, numbers=[3, 2, 1, 0]), True),
    ],
)
def test_weights_of_a_mean_are_whole_where_mixing_never_pays(program, whole):
    assert whole_at_optimum(program)[1:].tolist() == [whole] * 4


def test_weights_of_two_means_are_left_alone():
    build = eq.ProgramBuilder(sense="max")
    rounds = build.add_columns("rounds", (1,), upper=1.0, integer=True)
    weight = build.add_columns("weight", (4,), upper=1.0)
    build.add_rows("one", (1,), terms=[(0, weight[:3], 1.0)], lower=1.0, upper=1.0)
    build.add_rows("another", (1,), terms=[(0, weight[[0, 3]], 1.0)], lower=1.0, upper=1.0)
    build.add_rows("link", (1,), terms=[(0, weight[:3], [0.0, 1.0, 2.0]), (0, rounds, -1.0)], lower=0.0, upper=0.0)
    build.set_objective([(weight, [0.0, 0.0, 1.0, 0.0])])
    program = build.program()
    assert eq.solve(program, "highs").objective == pytest.approx(0.5)  # halves of 0 and 2
    assert not whole_at_optimum(program)[1:].any()


def test_searching_columns_as_whole_numbers_costs_nothing():
    rng = np.random.default_rng(8)
    made_whole = 0
    for _ in range(40):
        jobs, most = int(rng.integers(1, 4)), 4
        build = eq.ProgramBuilder(sense="max")
        grant = build.add_binaries("grant", (jobs, most))
        weight = build.add_columns("weight", (jobs, most + 1), upper=1.0)
        bends = rng.random(jobs) < 0.7
        steps = np.sort(rng.random((jobs, most)), axis=1)
        values = np.cumsum(np.where(bends[:, None], steps[:, ::-1], steps), axis=1)
        values = np.hstack((np.zeros((jobs, 1)), values))
        j = np.arange(jobs)[:, None]
        build.add_rows("one", (jobs,), terms=[(j, weight, 1.0)], lower=1, upper=1)
        build.add_rows("link", (jobs,), terms=[(j, weight, np.arange(most + 1)), (j, grant, -1.0)], lower=0, upper=0)
        build.add_rows("capacity", (most,), terms=[(np.arange(most), grant, 1.0)], upper=int(rng.integers(1, 3)))
        build.add_rows("use", (1,), terms=[(0, weight, values**2 * np.where(bends, 0, 1)[:, None])], upper=rng.random())
        build.set_objective([(weight, values), (grant, -0.2 * rng.random((jobs, most)))])
        program = build.program()
        whole = whole_at_optimum(program)
        found = eq.solve(program, "highs", rel_gap=0.0)
        searched = eq.solve(replace(program, integer=whole), "highs", rel_gap=0.0)
        assert searched.objective == pytest.approx(found.objective, abs=1e-6)
        made_whole += int((whole & ~program.integer).sum())
    assert made_whole > 100


def test_a_window_needs_no_grid_but_for_its_makespan(draw_small):
    rng = np.random.default_rng(9)
    for restarts in (False, True):
        for _ in range(15):
            window = draw_small(rng, restarts=restarts)
            for form in window.forms:
                program = window.program(form)
                left = np.flatnonzero(~whole_at_optimum(program))
                assert set(left) <= set(np.ravel(program.columns.get("horizon", [])))
