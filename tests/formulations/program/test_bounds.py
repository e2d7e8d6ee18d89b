"""Bounds proved from duals: never wrong whatever the duals, and as good as the duals are."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import equipoise as eq
from equipoise.formulations.program.bounds import implied_bounds, proved_bound, proves_infeasible
from equipoise.formulations.program.data import Csr

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
    # Logarithms, each with its derivative at the point.
    inner, weights, inside = whole((k, n), 0, 2), whole(k, 1, 3), whole(k, 1, 4)
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
    """Only a reduced cost that its own rounding explains counts as 0, whatever else is in the program."""
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
    assert proved_bound(program, np.array([3.0]), repair=False) == pytest.approx(3.0)
    for off in (1e-13, 1e-10, -1e-10):
        assert proved_bound(program, np.array([3.0 + off]), repair=False) == INF
        assert proved_bound(program, np.array([3.0 + off])) == pytest.approx(3.0, abs=1e-12)


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
