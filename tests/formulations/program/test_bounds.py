"""Bounds proved from duals: never wrong whatever the duals, and as good as the duals are."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import equipoise as eq
from equipoise.formulations.program.bounds import implied_bounds, proved_bound, proves_infeasible
from equipoise.formulations.program.data import Csr
from equipoise.formulations.program.exact_sums import exact_products, exact_sums, upper_sum
from equipoise.solvers.backend import Task
from equipoise.solvers.external.highs import BACKEND as HIGHS
from equipoise.solvers.options import Options
from equipoise.solvers.result import Reason

NAN, INF = math.nan, math.inf


@dataclass
class Planted:
    """A program of small whole numbers with an optimal point, its duals and the slopes of its logarithms."""

    program: eq.Program
    point: np.ndarray
    duals: np.ndarray
    slopes: np.ndarray | None

    @property
    def optimum(self) -> float:
        return self.program.objective_at(self.point)

    @property
    def sign(self) -> float:
        return 1.0 if self.program.sense == "max" else -1.0

    def wrong_by(self, error: float) -> float:
        """What duals wrong by `error` can cost: as if each missed its side, and each column its box."""
        program = self.program
        sides = np.maximum(*(np.where(np.isfinite(s), np.abs(s), 0.0) for s in (program.row_lower, program.row_upper)))
        lower, upper = implied_bounds(program)
        width = upper - lower
        reach = np.abs(self.point) + np.where(np.isfinite(width), width, 0.0) + 1.0
        terms = sides.sum() + (abs(program.to_scipy()) @ reach).sum()
        if self.slopes is not None:
            logs = program.log_matrix
            inside = Csr(logs.starts, logs.columns, np.abs(logs.values)).times(reach) + np.abs(program.log_offsets)
            terms += self.slopes @ inside
        return error * float(1.0 + terms)


@st.composite
def planted(draw, logs: bool = False, boxed: bool = False, degenerate: bool = True) -> Planted:
    n, m = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    k = draw(st.integers(1, 3)) if logs else 0
    whole = lambda shape, low, high: draw(arrays(np.int64, shape, elements=st.integers(low, high))).astype(float)  # noqa: E731
    matrix, point = whole((m, n), -3, 3), whole(n, -4, 4)
    # Columns: free, one bound, two; at a bound with a reduced cost that fits, or between.
    kind, at, slack = whole(n, 3 if boxed else 0, 3), whole(n, 0, 2), whole(n, 1, 5)
    reduced = whole(n, 0 if degenerate else 1, 3)
    low, high = kind % 2 == 1, kind >= 2
    at_low, at_high = (at == 1) & low, (at == 2) & high
    lower = np.where(low, np.where(at_low, point, point - slack), -INF)
    upper = np.where(high, np.where(at_high, point, point + slack), INF)
    reduced = np.where(at_high, reduced, np.where(at_low, -reduced, 0.0))
    # Rows: equality, one side, range; active with a dual that fits, or slack.
    kind, slack, size = whole(m, 0, 5), whole(m, 1, 5), whole(m, 0 if degenerate else 1, 4)
    activity = matrix @ point
    row_lower = np.select(
        [kind == 0, kind == 1, kind == 2, kind == 5], [activity, activity, activity - slack, activity], -INF
    )
    row_upper = np.select(
        [kind == 0, kind == 3, kind == 4, kind == 5], [activity, activity, activity + slack, activity + slack], INF
    )
    y = np.select([kind == 0, kind == 3, (kind == 1) | (kind == 5)], [size - 2, size, -size], 0.0)
    # Logarithms, each with its derivative at the point: a double, so that the planted costs are exact.
    inner, weights, inside = whole((k, n), 0, 2), whole(k, 1, 3), 2.0 ** whole(k, 0, 2)
    slopes = weights / inside
    sense = "max" if logs else draw(st.sampled_from(["max", "min"]))
    sign = 1.0 if sense == "max" else -1.0
    build = eq.ProgramBuilder(sense)
    x = build.add_columns("x", (n,), lower=lower, upper=upper)
    build.add_rows("row", (m,), terms=[(np.arange(m)[:, None], x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective(
        [(x, sign * (matrix.T @ y + reduced - inner.T @ slopes))], offset=draw(st.sampled_from([0.0, 1.5]))
    )
    if logs:
        build.add_logs(weights, terms=[(np.arange(k)[:, None], x, inner)], offsets=inside - inner @ point)
    return Planted(build.program(), point, sign * y, slopes if logs else None)


PROGRAMS = st.one_of(planted(), planted(logs=True))
ERRORS = st.integers(-10, 10).map(lambda tenths: tenths / 10)


def shifted(data, known: Planted, error: float) -> tuple[np.ndarray, np.ndarray | None]:
    """Return duals and slopes that are wrong by up to `error`."""
    off = data.draw(arrays(np.float64, len(known.duals), elements=ERRORS))
    if known.slopes is None:
        return known.duals + error * off, None
    return known.duals + error * off, known.slopes * (
        1 + error * data.draw(arrays(np.float64, len(known.slopes), elements=ERRORS))
    )


def test_a_dual_whose_worth_is_beyond_the_range_of_doubles_proves_nothing():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,), lower=-np.inf)
    build.add_rows("row", (1,), terms=[(0, x, -3.0)], lower=-3.0, upper=-3.0)
    build.set_objective([(x, 6.0)])
    assert proved_bound(build.program(), np.array([6e307])) >= 6.0


# -- Never wrong -------------------------------------------------------------------------------------------------------


@given(PROGRAMS)
def test_optimal_duals_prove_the_optimum(known):
    bound = proved_bound(known.program, known.duals, known.slopes, repair=False)
    assert bound == pytest.approx(known.optimum, rel=1e-12, abs=1e-11)


@given(st.data(), PROGRAMS)
def test_no_duals_prove_anything_wrong(data, known):
    wild = st.one_of(st.floats(-10, 10), st.floats(), st.sampled_from([0.0, 1e300, -1e300, 1e-300, NAN, INF]))
    duals = data.draw(arrays(np.float64, len(known.duals), elements=wild))
    slopes = None if known.slopes is None else data.draw(arrays(np.float64, len(known.slopes), elements=wild))
    bound = proved_bound(known.program, duals, slopes)
    assert not math.isnan(bound)
    if not (np.isfinite(duals).all() and (slopes is None or np.isfinite(slopes).all())):
        assert bound == known.sign * INF
    size = 1.0 + np.abs(duals[np.isfinite(duals)]).max(initial=0.0)
    assert known.sign * (bound - known.optimum) >= -known.wrong_by(1e-13) * size


@given(st.data(), PROGRAMS, st.sampled_from([1e-14, 1e-10, 1e-7, 1e-3, 1.0]))
def test_repaired_duals_prove_nothing_wrong_of_any_feasible_point(data, known, error):
    duals, slopes = shifted(data, known, error)
    assert known.sign * (proved_bound(known.program, duals, slopes) - known.optimum) >= -known.wrong_by(1e-13)


def test_neither_numbers_nor_slopes_prove_anything():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), upper=2.0)
    build.add_logs([1.0, 0.0], terms=[([0, 1], x, 1.0)])
    program = build.program()
    assert proved_bound(program, np.zeros(0), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert proved_bound(program, np.zeros(0), np.array([0.5, NAN])) == pytest.approx(math.log(2))  # of weight 0
    for slope in (0.0, -1.0, NAN, INF):
        assert proved_bound(program, np.zeros(0), np.array([slope, 0.5])) == INF
    with pytest.raises(ValueError, match="slopes"):
        proved_bound(program, np.zeros(0))


def test_a_small_slope_without_end_is_no_proof():
    """Only rounding of the costs counts as a reduced cost of 0, whatever else is in the program."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (3,), upper=[INF, 1.0, 1.0])
    build.add_rows("row", (1,), terms=[(0, x, [-1.0, 1.0, 1.0])], lower=-5.0, upper=5.0)
    build.set_objective([(x, [1e-10, 1e6, 1.0])])
    assert proved_bound(build.program(), np.zeros(1), repair=False) == pytest.approx(1e6 + 1 + 1e-10 * 7)  # by the row
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), upper=[INF, 1.0])
    build.set_objective([(x, [1e-10, 1e6])])
    assert proved_bound(build.program(), np.zeros(0)) == INF
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows("row", (1,), terms=[(0, x, [0.1, 0.2])], upper=1.0)
    build.set_objective([(x, [0.3, 0.6])])  # 0.3 is not 3 * 0.1 in doubles
    program = build.program()
    for off in (0.0, 1e-13, 1e-10, -1e-10):
        unrepaired = proved_bound(program, np.array([3.0 + off]), repair=False)
        assert unrepaired == (pytest.approx(3.0) if off == 0.0 else INF)
        assert proved_bound(program, np.array([3.0 + off])) == pytest.approx(3.0, abs=1e-12)


@st.composite
def small_lps(draw) -> eq.Program:
    """A linear program of small whole numbers and any kind of bounds, feasible or not, bounded or not."""
    n, m = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    whole = lambda shape, low, high: draw(arrays(np.int64, shape, elements=st.integers(low, high))).astype(float)  # noqa: E731
    low, width, side, spread = whole(n, -3, 3), whole(n, 0, 4), whole(m, -5, 5), whole(m, 0, 4)
    kind, row_kind = whole(n, 0, 3), whole(m, 0, 3)
    build = eq.ProgramBuilder(draw(st.sampled_from(["max", "min"])))
    x = build.add_columns(
        "x", (n,), lower=np.where(kind % 2 == 1, low, -INF), upper=np.where(kind >= 2, low + width, INF)
    )
    upper = np.where(row_kind == 3, side, np.where(row_kind >= 1, side + spread, INF))
    build.add_rows("row", (m,), terms=[(np.arange(m)[:, None], x, whole((m, n), -3, 3))],
                   lower=np.where(row_kind != 1, side, -INF), upper=upper)  # fmt: skip
    build.set_objective([(x, whole(n, -3, 3))], offset=draw(st.sampled_from([0.0, 1.5])))
    return build.program()


def exact_solution(matrix, sides):
    """Solve square equations in fractions by elimination; None where they are singular."""
    rows = [[Fraction(a) for a in row] + [Fraction(side)] for row, side in zip(matrix, sides, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[n] for row in rows]


def exact_vertices(program: eq.Program):
    """Yield every basic feasible point in fractions, and feasible points a unit further along every line from it."""
    n = program.num_columns
    rows = np.vstack([np.eye(n), program.to_scipy().toarray()]).astype(int).tolist()
    lower, upper = (np.concatenate(p).tolist() for p in ((program.lower, program.row_lower),
                                                        (program.upper, program.row_upper)))  # fmt: skip

    def feasible(point):
        activity = [sum(a * v for a, v in zip(row, point, strict=True)) for row in rows]
        return all(lo <= a <= up for lo, a, up in zip(lower, activity, upper, strict=True))

    sides = [
        (row, Fraction(side))
        for row, ends in zip(rows, zip(lower, upper, strict=True), strict=True)
        for side in set(ends)
        if math.isfinite(side)
    ]
    sides += [(row, Fraction(0)) for row in rows[:n]]
    vertices = set()
    for chosen in itertools.combinations(sides, n):
        solution = exact_solution(*zip(*chosen, strict=True))
        if solution is not None:
            vertices.add(tuple(solution))
    directions = [by for by in itertools.product((-1, 0, 1), repeat=n) if any(by)]
    for point in filter(feasible, vertices):
        yield point
        moved = ([p + 10**18 * d for p, d in zip(point, by, strict=True)] for by in directions)
        yield from filter(feasible, moved)


def assert_never_beaten(program: eq.Program, bound: float) -> None:
    """Compare the bound with exact points, in exact arithmetic."""
    sign = 1 if program.sense == "max" else -1
    cost, offset = [Fraction(c) for c in program.objective.tolist()], Fraction(program.offset)
    assert not math.isnan(bound)
    for point in exact_vertices(program) if math.isfinite(bound) else ():
        objective = offset + sum(c * v for c, v in zip(cost, point, strict=True))
        # A bound is proved to rounding of the costs: what that is worth at the point.
        rounding = Fraction(2) ** -50 * max(map(abs, cost)) * sum(map(abs, point))
        assert sign * (Fraction(bound) - objective) >= -rounding, (bound, float(objective))


@settings(max_examples=60)
@given(st.data(), small_lps(), st.sampled_from([1.0, 1e-9, 1e3, 1e15, 1e16, 1e300]), st.booleans())
def test_no_exact_point_beats_a_bound(data, program, scale, repair):
    duals = data.draw(arrays(np.float64, program.num_rows, elements=st.integers(-3, 3).map(float) | st.floats(-1, 1)))
    assert_never_beaten(program, proved_bound(program, scale * duals, repair=repair))
    if proves_infeasible(program, scale * duals):
        assert next(exact_vertices(program), None) is None


@settings(max_examples=60)
@given(st.data(), small_lps(), st.sampled_from([0.0, 1e-15, 1e-9, 1e-6]))
def test_no_exact_point_beats_a_bound_by_the_duals_of_a_solver(data, program, error):
    if not program.num_rows:
        return
    answer = HIGHS.solve(Task(problem=program, form="matrix", program=program), Options(), lambda *_: None)
    if answer.duals is None:
        return
    off = data.draw(arrays(np.float64, program.num_rows, elements=ERRORS))
    bound = proved_bound(program, answer.duals + error * off)
    assert_never_beaten(program, bound)
    if answer.claim is Reason.OPTIMAL:
        assert bound == pytest.approx(program.objective_at(answer.values), abs=1e3 * error + 1e-9)


@pytest.mark.parametrize("size", [1.0, 1e6, 1e15, 1e16, 1e300])
def test_large_duals_do_not_hide_a_reduced_cost(size):
    """Maximise x with x <= z, x >= z and x <= 10: at duals of 1e15, a cost of 1 is as small as their rounding."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), lower=-INF)
    z = build.add_columns("z", (1,), lower=-INF)
    build.add_rows("row", (3,), terms=[([0, 1, 2], x, 1.0), ([0, 1], z, -1.0)], lower=[-INF, 0.0, -INF],
                   upper=[0.0, INF, 10.0])  # fmt: skip
    build.set_objective([(x, 1.0)])
    program = build.program()
    for repair in (False, True):
        assert proved_bound(program, np.array([size, -size, 0.0]), repair=repair) >= 10.0
    assert proved_bound(program, np.array([size, -size, 1.0]), repair=False) == 10.0
    assert proved_bound(program, np.array([1.0, 0.0, 1e-12])) >= 10.0


@pytest.mark.parametrize("size", [1.0, 2.0**53, 2.0**60, 2.0**500])
def test_a_reduced_cost_is_exact_where_its_terms_cancel(size):
    """What is left where terms cancel counts, if it is more than rounding of the largest cost."""
    build = eq.ProgramBuilder("max")
    x, z = build.add_columns("x", (1,)), build.add_columns("z", (1,))
    build.add_rows("row", (3,), terms=[([0, 1, 2], x, [1.0, -1.0, -1.0]), ([0, 1, 2], z, -1.0)], upper=1.0)
    build.set_objective([(z, -3.0 * size)])
    program = build.program()
    for small in (size, size * 2.0**-45):  # the reduced cost of x, which no row limits
        assert proved_bound(program, np.array([size, size, small]), repair=False) == INF
        assert proved_bound(program, np.array([size, size + small, 0.0]), repair=False) == INF
    for rounding in (0.0, size * 2.0**-60):
        found = proved_bound(program, np.array([size, size, rounding]), repair=False)
        assert found == pytest.approx(2.0 * size, rel=1e-14)


@given(arrays(np.float64, st.integers(0, 30), elements=st.floats(-1e100, 1e100)), st.integers(1, 3))
def test_sums_and_products_are_exact(numbers, groups):
    numbers = np.where(np.abs(numbers) < 1e-100, 0.0, numbers)
    products = exact_products(numbers, numbers[::-1].copy())
    for a, b, parts in zip(numbers, numbers[::-1], products.T, strict=True):
        assert sum(map(Fraction, parts.tolist())) == Fraction(a) * Fraction(b)
    group = np.arange(len(numbers)) % groups
    levels = exact_sums(products.ravel(), np.tile(group, 2), groups)
    for g in range(groups):
        exact = sum((Fraction(each) for each in products[:, group == g].ravel().tolist()), Fraction())
        assert sum(map(Fraction, levels[:, g].tolist())) == exact
        assert (levels[0, g] > 0) == (exact > 0)
        assert (levels[0, g] < 0) == (exact < 0)
    total = sum((Fraction(each) for each in products.ravel().tolist()), Fraction(0.1))
    bound = upper_sum([products], 0.1)
    assert Fraction(math.nextafter(bound, -INF)) < total <= Fraction(bound)


# -- As good as the duals are ------------------------------------------------------------------------------------------


@given(st.data(), PROGRAMS, st.sampled_from([1e-13, 1e-10, 1e-7]))
def test_duals_that_are_a_little_wrong_prove_a_bound_that_is_a_little_worse(data, known, error):
    """Also with free columns, equalities, ranges and one-sided bounds, where wrong duals prove nothing as they are."""
    duals, slopes = shifted(data, known, error)
    loss = known.sign * (proved_bound(known.program, duals, slopes) - known.optimum)
    assert loss <= known.wrong_by(2 * error) + known.wrong_by(1e-13)


def test_the_slopes_are_repaired_where_there_are_no_rows():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), lower=[0.0, -INF])
    build.add_logs([1.0, 4.0], terms=[([0, 1], x, 1.0)], offsets=[0.0, 3.0])
    build.set_objective([(x, [-1.0, -2.0])])
    program = build.program()  # log x - x, and 4 log(x + 3) - 2 x
    optimum = -1.0 + 4 * math.log(2) + 2.0
    wrong = np.array([1.0, 2.0]) * (1 + 1e-7)
    assert proved_bound(program, np.zeros(0), wrong, repair=False) == INF
    assert proved_bound(program, np.zeros(0), wrong) == pytest.approx(optimum, abs=1e-12)


@pytest.mark.parametrize("far", [1e4, 1e7, 1e10])
def test_noise_against_far_bounds_is_repaired(far):
    """Duals of an interior-point method leave noise in reduced costs, which a far bound of the column multiplies."""
    rng = np.random.default_rng(5)
    rows, columns = 12, 20
    matrix, point = rng.integers(-3, 4, (rows, columns)).astype(float), rng.integers(0, 5, columns).astype(float)
    duals = rng.integers(1, 5, rows).astype(float)
    reduced = np.where(point == 0, -1.0, 0.0)
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (columns,), upper=far)
    build.add_rows("row", (rows,), terms=[(np.arange(rows)[:, None], x, matrix)], upper=matrix @ point)
    build.set_objective([(x, matrix.T @ duals + reduced)])
    program, noise = build.program(), 1e-9 * rng.uniform(-1, 1, rows)
    optimum = program.objective_at(point)
    assert proved_bound(program, duals + noise, repair=False) > optimum + 1e-9 * far
    assert proved_bound(program, duals + noise) == pytest.approx(optimum, abs=1e-7 + 1e-13 * far)  # rounding stays


def test_a_repair_that_is_not_asked_for_is_not_made():
    build = eq.ProgramBuilder("min")
    x = build.add_columns("x", (1,), lower=-INF)
    build.add_rows("row", (1,), terms=[(0, x, 1.0)], lower=2.0)
    build.set_objective([(x, 3.0)])
    program = build.program()
    assert proved_bound(program, np.array([3.0 - 1e-9]), repair=False) == pytest.approx(6.0)  # the row says x >= 2
    assert proved_bound(program, np.array([3.0 + 1e-9]), repair=False) == -INF
    assert proved_bound(program, np.array([3.0 + 1e-9])) == pytest.approx(6.0, abs=1e-12)


def test_both_sides_of_a_range_both_senses_and_the_offset():
    for sense, sign in (("max", 1.0), ("min", -1.0)):
        build = eq.ProgramBuilder(sense)
        x = build.add_columns("x", (1,), lower=-INF)
        build.add_rows("row", (1,), terms=[(0, x, 2.0)], lower=-4.0, upper=6.0)
        build.set_objective([(x, 1.0)], offset=0.5)
        assert proved_bound(build.program(), np.array([0.5])) == (3.5 if sense == "max" else -1.5)
        build.set_objective([(x, -1.0)], offset=0.5)
        assert proved_bound(build.program(), np.array([-0.5])) == (2.5 if sense == "max" else -2.5)
        build.set_objective([], offset=7.0)
        assert proved_bound(build.program(), np.zeros(1)) == 7.0
        assert sign * proved_bound(build.program(), np.array([1.0])) > 7.0 * sign  # true, and weak


# -- Implied bounds ----------------------------------------------------------------------------------------------------


@given(PROGRAMS)
def test_implied_bounds_hold_at_feasible_points_and_keep_what_was_there(known):
    lower, upper = implied_bounds(known.program)
    assert (lower <= known.point).all()
    assert (known.point <= upper).all()
    assert (lower[np.isfinite(known.program.lower)] == known.program.lower[np.isfinite(known.program.lower)]).all()
    assert (upper[np.isfinite(known.program.upper)] == known.program.upper[np.isfinite(known.program.upper)]).all()


@given(
    arrays(np.float64, (2, 4), elements=st.floats(0.1, 1e6) | st.floats(-1e6, -0.1)),
    arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)),
    st.floats(-1e9, 1e9),
)
def test_implied_bounds_are_wide_enough_for_their_own_rounding(coefficients, uppers, side):
    """In exact arithmetic: the furthest that a row lets its one open column go is within the implied bound."""
    a = coefficients[0]
    lows = uppers - np.abs(coefficients[1, :3])
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (4,), lower=[*lows, -INF], upper=[*uppers, INF])
    build.add_rows("row", (1,), terms=[(0, x, a)], upper=side)
    lower, upper = implied_bounds(build.program())
    least = sum(
        min(Fraction(c) * Fraction(lo), Fraction(c) * Fraction(up)) for c, lo, up in zip(a, lows, uppers, strict=False)
    )
    furthest = (Fraction(side) - least) / Fraction(a[3])
    found = Fraction(upper[3] if a[3] > 0 else lower[3])
    assert (found >= furthest) if a[3] > 0 else (found <= furthest)
    assert abs(found - furthest) <= Fraction(1e-13) * (abs(Fraction(side)) + 4 * Fraction(10**12)) / abs(Fraction(a[3]))
    assert (lower[3] if a[3] > 0 else -upper[3]) == -INF


def test_implied_bounds_of_one_row_then_of_the_next():
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (5,), lower=[0.0, -INF, -INF, -INF, -INF])
    terms = [(0, x[:2], [2.0, -1.0]), (0, x[0], 0.0), (1, x[1:3], [1.0, 1.0]), (2, x[3:], 1.0)]
    build.add_rows("row", (3,), terms=terms, lower=[4.0, 1.0, 0.0], upper=[6.0, 2.0, 0.0])
    build.set_objective([])
    lower, upper = implied_bounds(build.program())
    assert lower[:2].tolist() == pytest.approx([0.0, -6.0])
    assert upper[:3].tolist() == pytest.approx([INF, INF, 8.0])  # x0 <= (6 + x1) / 2 has no end: x1 has none above
    assert lower[2:].tolist() == [-INF] * 3
    assert upper[3:].tolist() == [INF] * 2


# -- No point at all ---------------------------------------------------------------------------------------------------


@st.composite
def infeasible(draw) -> tuple[eq.Program, np.ndarray]:
    """A program whose rows add up, each times its multiplier, to 0 x <= -1 or so; and the multipliers."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    matrix = draw(arrays(np.int64, (m, n), elements=st.integers(-3, 3)))
    ray = draw(arrays(np.int64, m, elements=st.integers(1, 3)))
    point = draw(arrays(np.int64, n, elements=st.integers(-4, 4)))
    kind = draw(arrays(np.int64, n, elements=st.integers(0, 2)))  # free, at least, at most
    spare = np.where(kind == 0, 0, draw(arrays(np.int64, n, elements=st.integers(0, 2))))
    last = -(ray @ matrix) + np.where(kind == 1, spare, -spare)
    sides = np.append(matrix @ point, last @ point - 1)
    build = eq.ProgramBuilder(draw(st.sampled_from(["max", "min"])))
    x = build.add_columns("x", (n,), lower=np.where(kind == 1, point, -INF), upper=np.where(kind == 2, point, INF))
    every = np.vstack([matrix, last])
    build.add_rows("row", (m + 1,), terms=[(np.arange(m + 1)[:, None], x, every)], upper=sides)
    build.set_objective([(x, 1.0)])
    return build.program(), np.append(ray, 1).astype(float)


@given(st.data(), infeasible(), st.sampled_from([0.0, 1e-12, 1e-8]), st.sampled_from([1.0, -1.0, 1e-6, 1e9]))
def test_farkas_multipliers_prove_that_there_is_no_point(data, known, error, scale):
    program, ray = known
    off = data.draw(arrays(np.float64, len(ray), elements=ERRORS))
    assert proves_infeasible(program, scale * (ray + error * off))


@given(st.data(), PROGRAMS)
def test_no_multipliers_prove_that_there_is_no_point_where_there_is_one(data, known):
    wild = st.integers(-4, 4).map(float) | st.floats(-10, 10) | st.sampled_from([1e300, 1e-300, NAN, INF])
    ray = data.draw(arrays(np.float64, len(known.duals), elements=wild))
    assert not proves_infeasible(known.program, ray)
    assert not proves_infeasible(known.program, known.duals)


@given(st.floats(1e-12, 1e-6), st.sampled_from([1.0, -1.0]))
def test_a_small_coefficient_is_not_none(coefficient, sign):
    """``1e-10 x >= 1`` has solutions, if far ones: a tolerance must not take the coefficient for 0."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows(
        "row", (2,), terms=[([0, 1], x, [coefficient, 1.0]), (1, x[0], coefficient)], lower=1.0, upper=[INF, 3.0]
    )
    assert not proves_infeasible(build.program(), sign * np.array([1.0, 0.0]))
    assert not proves_infeasible(build.program(), sign * np.array([1.0, 1e-16]))


def test_rounding_alone_does_not_prove_that_there_is_no_point():
    """0.1 x + 0.2 x against 0.3 x, times 1e12: the multipliers add up to -4e-5 or so instead of 0."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), lower=1e12, upper=1e12)
    build.add_rows("row", (3,), terms=[(np.arange(3), x, [0.1, 0.2, -0.3])], upper=[1e11, 2e11, -3e11])
    program = build.program()
    assert program.residuals_at(np.array([1e12])).worst <= 1e-3
    assert not proves_infeasible(program, np.ones(3))
    assert not proves_infeasible(program, np.zeros(3))
