"""The two general backends against closed forms, planted optima and finite differences."""

import math

import numpy as np
import pytest
from examples import examples
from patience import SOON_S, until_incumbent

import equipoise as eq

Reason, Limit = eq.Reason, eq.Limit
INF = math.inf
# scipy is a backend by name only.
both = pytest.mark.parametrize("backend", ["highs", pytest.param("scipy", marks=pytest.mark.thorough)])
senses = pytest.mark.parametrize("sense", ["max", "min"])


def dense(
    sense, objective, matrix, row_lower, row_upper, *, lower=0.0, upper=INF, integer=False, offset=0.0, gap_unit=None
):
    """A program from dense arrays."""
    matrix = np.asarray(matrix, dtype=float)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (len(objective),), lower=lower, upper=upper, integer=integer)
    if len(matrix):
        rows = np.arange(len(matrix))[:, None]
        build.add_rows("row", (len(matrix),), terms=[(rows, x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective([(x, objective)], offset=offset)
    return build.program(gap_unit=gap_unit)


def knapsack(rng, size=30, rows=3):
    weights = rng.integers(5, 60, size=(rows, size))
    return dense(
        "max", rng.integers(5, 60, size=size), weights, -INF, weights.sum(axis=1) // 3, upper=1.0, integer=True
    )


@both
@senses
def test_a_small_mixed_program_against_enumeration(backend, sense):
    rng = np.random.default_rng(1)
    for _ in range(20):
        cost, weights = rng.integers(-9, 10, size=6), rng.integers(-5, 8, size=(2, 6))
        points = np.array(np.meshgrid(*[[0, 1, 2]] * 6)).reshape(6, -1).T
        fits = (points @ weights.T <= 7).all(axis=1)
        best = (points[fits] @ cost).max() if sense == "max" else (points[fits] @ cost).min()
        result = eq.solve(
            dense(sense, cost, weights, -INF, 7, upper=2.0, integer=True, offset=2.5), backend, rel_gap=0.0
        )
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == best + 2.5
        assert result.bound == pytest.approx(best + 2.5, abs=1e-9)
        assert result.gap <= 1e-9


@both
@pytest.mark.parametrize("integer", [False, True])
@senses
def test_infeasible(backend, integer, sense):
    program = dense(sense, [1.0, 1.0], [[1, 1], [1, 1]], [3, -INF], [INF, 2], integer=integer)
    result = eq.solve(program, backend)
    assert result.termination.reason is Reason.INFEASIBLE
    assert result.termination.limit is None
    assert (result.plan, result.objective) == (None, None)
    assert result.bound == (-INF if sense == "max" else INF)


@both
def test_whole_numbers_alone_can_make_it_infeasible(backend):
    program = dense("max", [1.0], [[2.0]], 1.0, 1.0, upper=5.0, integer=True)
    assert eq.solve(program, backend).termination.reason is Reason.INFEASIBLE


@both
@pytest.mark.parametrize("integer", [False, True])
@senses
def test_unbounded(backend, integer, sense):
    program = dense(sense, [1.0 if sense == "max" else -1.0, 0.0], [[-1, 1]], -INF, 2, integer=integer)
    result = eq.solve(program, backend)
    assert result.termination.reason in (Reason.UNBOUNDED, Reason.INFEASIBLE_OR_UNBOUNDED)
    assert result.bound == (INF if sense == "max" else -INF)
    assert result.plan is None


def test_highs_tells_unbounded_from_infeasible():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows("apart", (1,), terms=[(0, x, [1.0, -1.0])], upper=1.0)
    build.set_objective([(x, 1.0)])
    assert eq.solve(build.program(), "highs").termination.reason is Reason.UNBOUNDED
    build.add_rows("never", (1,), terms=[(0, x, [1.0, -1.0])], lower=2.0)
    assert eq.solve(build.program(), "highs").termination.reason is Reason.INFEASIBLE


@both
def test_an_empty_program(backend):
    build = eq.ProgramBuilder(sense="max")
    build.set_objective([], offset=-1.5)
    result = eq.solve(build.program(), backend)
    assert (result.termination.reason, result.objective, result.bound) == (Reason.OPTIMAL, -1.5, -1.5)


@both
@pytest.mark.parametrize("integer", [False, True])
@senses
def test_no_rows(backend, integer, sense):
    program = dense(sense, [2.0, -3.0], np.zeros((0, 2)), None, None, lower=[-1, -4], upper=[5, 6], integer=integer)
    result = eq.solve(program, backend)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.plan["x"].tolist() == ([5, -4] if sense == "max" else [-1, 6])
    assert result.objective == (22.0 if sense == "max" else -20.0)


@both
def test_no_objective_and_an_empty_row(backend):
    program = dense("max", [0.0, 0.0], [[0, 0], [1, 1]], [-1, 2], [1, 2], integer=True)
    result = eq.solve(program, backend)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.plan["x"].sum() == 2.0
    broken = dense("max", [0.0, 0.0], [[0, 0], [1, 1]], [1, 2], [1, 2], integer=True)
    assert eq.solve(broken, backend).termination.reason is Reason.INFEASIBLE


@both
def test_free_columns(backend):
    program = dense("min", [1.0, 1.0], [[1, 2], [3, 1]], [-4, -7], INF, lower=-INF)
    result = eq.solve(program, backend)
    assert result.plan["x"] == pytest.approx([-2.0, -1.0])
    assert result.objective == pytest.approx(-3.0)
    assert result.bound == pytest.approx(-3.0)


@both
def test_fixed_and_negative_integers(backend):
    program = dense("max", [1.0, 1.0, 1.0], [[2, 2, 2]], -INF, 3, lower=[2, -7, 0], upper=[2, -3, 1], integer=True)
    result = eq.solve(program, backend)
    assert result.plan["x"].tolist() == [2.0, -3.0, 1.0]
    assert result.termination.reason is Reason.OPTIMAL


@both
def test_fractional_bounds_of_integers(backend):
    """HiGHS 1.15 stops at -8.51 if it is given these bounds as they are."""
    program = dense("min", [2.59, 2.96], [[2, 4]], -12, INF, lower=[-2.5, -2.5], upper=[2.5, -1.5], integer=True)
    result = eq.solve(program, backend, rel_gap=0.0)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(-11.1)
    never = dense("min", [1.0], [[1.0]], -INF, 5, lower=0.2, upper=0.8, integer=True)
    assert eq.solve(never, backend).termination.reason is Reason.INFEASIBLE


@both
def test_all_columns_fixed(backend):
    program = dense("max", [1.0, 5.0], [[1, 1]], 3, 3, lower=[1, 2], upper=[1, 2], integer=True)
    assert eq.solve(program, backend).objective == 11.0
    program = dense("max", [1.0, 5.0], [[1, 1]], 4, 4, lower=[1, 2], upper=[1, 2], integer=True)
    assert eq.solve(program, backend).termination.reason is Reason.INFEASIBLE


def equality_knapsack():
    """Market split: too hard to solve in no time, and rounding does not find a point."""
    rng = np.random.default_rng(4)
    weights = rng.integers(0, 100, size=(5, 40))
    return dense(
        "max",
        rng.integers(1, 50, size=40),
        weights,
        weights.sum(axis=1) // 2,
        weights.sum(axis=1) // 2,
        upper=1.0,
        integer=True,
    )


@both
def test_no_time_at_all_is_an_ordinary_outcome(backend):
    result = eq.solve(equality_knapsack(), backend, time_limit=0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert result.plan is None
    assert not math.isnan(result.bound)
    assert result.bound > 0
    assert result.wall_time < SOON_S


@both
def test_a_short_time_keeps_incumbent_bound_and_gap(backend):
    rng = np.random.default_rng(5)
    program = knapsack(rng, size=400, rows=25)
    result = until_incumbent(lambda limit: eq.solve(program, backend, time_limit=limit, rel_gap=0.0), 1.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert result.objective == program.objective_at(result.plan["x"])
    assert result.objective < result.bound < INF
    assert result.gap == pytest.approx((result.bound - result.objective) / result.objective)
    assert result.wall_time < SOON_S


def planted(rng, columns=8, rows=6):
    """An LP with a known optimum: choose x, y and slacks that are complementary, and derive objective and sides."""
    matrix = rng.normal(size=(rows, columns)).round(2)
    x = np.where(rng.random(columns) < 0.5, 0.0, rng.uniform(0.5, 3.0, size=columns))
    y = np.where(rng.random(rows) < 0.4, 0.0, rng.uniform(0.2, 2.0, size=rows))
    kind = rng.integers(0, 3, size=rows)  # of a maximum: 0: <= with y >= 0, 1: >= with y <= 0, 2: = with any sign
    y = np.select([kind == 0, kind == 1], [y, -y], np.where(rng.random(rows) < 0.5, y, -y))
    slack = np.where((y == 0) & (kind != 2), rng.uniform(0.1, 1.0, size=rows), 0.0)
    activity = matrix @ x
    low = np.select([kind == 0, kind == 1], [-INF, activity - slack], activity)
    high = np.select([kind == 0, kind == 1], [activity + slack, INF], activity)
    reduced = np.where(x > 0, 0.0, -rng.uniform(0.0, 1.0, size=columns))
    return matrix, low, high, matrix.T @ y + reduced, x, y


@both
@senses
def test_planted_optima(backend, sense):
    rng = np.random.default_rng(6)
    sign = 1.0 if sense == "max" else -1.0
    for _ in range(40):
        matrix, low, high, cost, x, _ = planted(rng)
        result = eq.solve(dense(sense, sign * cost, matrix, low, high), backend, rel_gap=1e-8)
        best = sign * float(cost @ x)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1e-6)
        assert sign * (result.bound - best) >= -1e-7
        # The duals prove it: weak duality at the reported duals gives the same figure.
        program = dense(sense, sign * cost, matrix, low, high)
        assert program.linear_bound(result.duals["row"]) == pytest.approx(best, abs=1e-6)


@pytest.mark.thorough
@both
@senses
def test_duals_and_reduced_costs_are_the_change_of_the_optimum(backend, sense):
    """Central differences in each row's and column's active side; planted points are non-degenerate or skipped."""
    rng = np.random.default_rng(7)
    sign = 1.0 if sense == "max" else -1.0
    step, checked = 1e-4, 0

    def best(cost, matrix, low, high, lower):
        return eq.solve(dense(sense, cost, matrix, low, high, lower=lower), backend, rel_gap=1e-8).objective

    count = 3 + examples(9)
    for _ in range(count):
        matrix, low, high, cost, _, _ = planted(rng, columns=5, rows=4)
        cost, lower = sign * cost, np.zeros(5)
        result = eq.solve(dense(sense, cost, matrix, low, high), backend, rel_gap=1e-8)
        dual, reduced = result.duals["row"], result.reduced_costs["x"]
        for i in range(4):
            move = np.zeros(4)
            move[i] = step
            sides = [best(cost, matrix, low + s * move, high + s * move, lower) for s in (-1, 1)]
            if None in sides:
                continue
            centre, (back, ahead) = result.objective, sides
            if abs((ahead - centre) - (centre - back)) > 1e-7:
                continue  # a kink: the derivative is not one number
            assert dual[i] == pytest.approx((ahead - back) / (2 * step), abs=1e-5)
            # A better side of a maximum: raising an upper side helps, raising a lower side harms.
            if np.isinf(low[i]):
                assert sign * dual[i] >= -1e-9
            elif np.isinf(high[i]):
                assert sign * dual[i] <= 1e-9
            checked += 1
        for j in range(5):
            move = np.zeros(5)
            move[j] = step
            sides = [best(cost, matrix, low, high, lower + s * move) for s in (-1, 1)]
            if None in sides or abs(sides[1] + sides[0] - 2 * result.objective) > 1e-7:
                continue
            assert reduced[j] == pytest.approx((sides[1] - sides[0]) / (2 * step), abs=1e-5)
            checked += 1
    assert checked > 4 * count


@both
@senses
@pytest.mark.parametrize(
    ("low", "high", "want"), [(-INF, 4.0, "upper"), (2.0, INF, "lower"), (3.0, 3.0, "both"), (1.0, 4.0, "range")]
)
def test_the_sign_of_a_dual(backend, sense, low, high, want):
    """One column, one row: the dual is d objective / d side, whichever side is active."""
    for cost in (2.0, -2.0):
        program = dense(sense, [cost], [[1.0]], low, high, lower=-100.0, upper=100.0)
        result = eq.solve(program, backend)
        up = (cost > 0) == (sense == "max")
        side = high if up else low
        assert result.duals["row"][0] == pytest.approx(cost if math.isfinite(side) else 0.0), want
        assert result.reduced_costs["x"][0] == pytest.approx(0.0 if math.isfinite(side) else cost)
        assert result.objective == pytest.approx(cost * (side if math.isfinite(side) else math.copysign(100.0, side)))


@both
def test_mixed_integer_programs_have_no_duals(backend):
    result = eq.solve(knapsack(np.random.default_rng(8)), backend)
    assert result.duals is None
    assert result.reduced_costs is None


@both
def test_a_degenerate_assignment(backend):
    rng = np.random.default_rng(9)
    n = 12
    cost = rng.integers(0, 3, size=(n, n))  # many ties
    build = eq.ProgramBuilder(sense="min")
    x = build.add_columns("x", (n, n), upper=1.0)
    i = np.arange(n)
    build.add_rows("one", (n,), terms=[(i[:, None], x, 1.0)], lower=1, upper=1)
    build.add_rows("each", (n,), terms=[(i[None, :], x, 1.0)], lower=1, upper=1)
    build.set_objective([(x, cost)])
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    result = eq.solve(build.program(), backend, rel_gap=1e-9)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(cost[rows, columns].sum(), abs=1e-9)


@both
@senses
def test_badly_scaled_planted_optima(backend, sense):
    """Columns and rows in units from 1e-6 to 1e6: the optimum must not move."""
    rng = np.random.default_rng(10)
    sign = 1.0 if sense == "max" else -1.0
    for _ in range(15):
        matrix, low, high, cost, x, _ = planted(rng, columns=6, rows=4)
        column, row = 10.0 ** rng.integers(-3, 4, size=6), 10.0 ** rng.integers(-3, 4, size=4)
        scaled = dense(sense, sign * cost * column, matrix * column * row[:, None], low * row, high * row)
        result = eq.solve(scaled, backend, rel_gap=1e-5)
        assert result.termination.reason is Reason.OPTIMAL
        # What a tolerance on every row can be worth at the duals, beside the gap asked for.
        worth = 1e-6 * np.abs(result.duals["row"]).sum() + 1e-5 * max(1.0, abs(float(cost @ x)))
        assert abs(result.objective - sign * float(cost @ x)) <= worth
        assert result.residuals.worst <= 1e-6


def test_a_warm_start_is_accepted():
    program = knapsack(np.random.default_rng(11))
    best = eq.solve(program, "highs", rel_gap=0.0)
    again = eq.solve(program, "highs", rel_gap=0.0, warm_start=best.plan)
    assert any(note.startswith("warm start accepted") for note in again.notes)
    assert again.objective == best.objective
    assert again.history[0].objective == best.objective  # it was the first incumbent


def test_a_warm_start_survives_a_short_limit():
    program = equality_knapsack()
    half = dense(
        "max", program.objective, program.to_scipy().toarray()[:, :], -INF, program.row_upper, upper=1.0, integer=True
    )
    good = eq.solve(half, "highs", time_limit=1.0)
    again = eq.solve(
        half, "highs", time_limit=0.05, warm_start=good.plan, backend_options={"highs": {"mip_heuristic_effort": 0.0}}
    )
    assert again.objective >= good.objective


def test_an_incomplete_warm_start_is_completed_and_a_wrong_one_named():
    build = eq.ProgramBuilder(sense="max")
    a = build.add_binaries("a", (3,))
    b = build.add_columns("b", (2,), upper=4.0)
    build.add_rows("room", (1,), terms=[(0, a, [4, 2, 2]), (0, b, 1.0)], upper=6)
    build.set_objective([(a, [5.0, 3.0, 3.0]), (b, 0.25)])
    program = build.program()
    part = eq.solve(program, "highs", warm_start={"a": [0, 1, 1]})
    assert any("3 of 5 columns" in note for note in part.notes)
    wrong = eq.solve(program, "highs", warm_start={"a": [1, 1, 1], "b": [0, 0]})
    assert any("violates the program by 2" in note for note in wrong.notes)
    assert part.objective == wrong.objective == eq.solve(program, "scipy").objective == 8.0


def test_scipy_refuses_what_it_cannot_honour():
    program = knapsack(np.random.default_rng(12))
    plan = eq.solve(program, "highs").plan
    for name, value in (("threads", 2), ("seed", 1), ("warm_start", plan)):
        with pytest.raises(eq.InvalidInput, match="highs") as caught:
            eq.solve(program, "scipy", **{name: value})
        assert caught.value.field == name


def test_a_loose_gap_is_honoured():
    program = knapsack(np.random.default_rng(13), size=200, rows=15)
    loose = eq.solve(program, "highs", rel_gap=0.5)
    tight = eq.solve(program, "highs", rel_gap=0.01)
    assert loose.termination.reason is tight.termination.reason is Reason.OPTIMAL
    assert tight.gap <= 0.01
    assert loose.gap <= 0.5
    assert loose.gap > tight.gap  # it stopped sooner
    absolute = eq.solve(program, "highs", rel_gap=0.0, abs_gap=0.5 * loose.objective)
    assert absolute.termination.reason is Reason.OPTIMAL
    assert absolute.bound - absolute.objective <= 0.5 * loose.objective


@pytest.mark.thorough
def test_a_gap_in_the_programs_own_unit_is_honoured():
    """The objective is far from zero, so a gap relative to it would stop at once."""
    rng = np.random.default_rng(14)
    weights = rng.integers(5, 60, size=(8, 60))
    cost = rng.integers(5, 60, size=60)
    far = dense(
        "max", cost, weights, -INF, weights.sum(axis=1) // 3, upper=1.0, integer=True, offset=1e6, gap_unit=10.0
    )
    result = eq.solve(far, "highs", rel_gap=0.5)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.bound - result.objective <= 5.0 + 1e-6
    assert result.gap == pytest.approx((result.bound - result.objective) / 10.0)
    exact = eq.solve(far, "scipy", rel_gap=0.05)
    assert exact.bound - exact.objective <= 0.5 + 1e-6
    assert result.bound >= exact.objective - 1e-6


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_seed_gives_the_same_bits(threads):
    program = knapsack(np.random.default_rng(15), size=60, rows=6)
    runs = [eq.solve(program, "highs", seed=3, threads=threads, rel_gap=0.01) for _ in range(2)]
    assert runs[0].plan["x"].tobytes() == runs[1].plan["x"].tobytes()
    assert (runs[0].objective, runs[0].bound) == (runs[1].objective, runs[1].bound)
    assert runs[0].seed == 3


@pytest.mark.parametrize(
    ("common", "own", "value"),
    [
        ("threads", "threads", 2),
        ("seed", "random_seed", 5),
        ("time_limit", "time_limit", 7.0),
        ("abs_gap", "mip_abs_gap", 0.5),
        ("rel_gap", "mip_rel_gap", 0.25),
        ("log", "output_flag", True),
    ],
)
def test_common_options_reach_highs(monkeypatch, common, own, value):
    import highspy

    passed = {}

    class Spy(highspy.Highs):
        def run(self):
            passed[own] = self.getOptionValue(own)[1]
            return super().run()

    monkeypatch.setattr(highspy, "Highs", Spy)
    result = eq.solve(knapsack(np.random.default_rng(16)), "highs", **{common: value})
    assert result.plan is not None
    if common == "time_limit":
        assert 6.0 < passed[own] <= 7.0  # less what building took
    else:
        assert passed[own] == value


def test_the_log_is_silent_unless_asked_for(capfd):
    program = knapsack(np.random.default_rng(17))
    for backend in ("highs", "scipy"):
        eq.solve(program, backend)
        assert capfd.readouterr().out == ""
        eq.solve(program, backend, log=True)
        assert "HiGHS" in capfd.readouterr().out


def test_incumbents_and_bounds_are_streamed():
    program = knapsack(np.random.default_rng(18), size=250, rows=15)
    heard = []
    result = eq.solve(program, "highs", rel_gap=0.006, time_limit=20.0, on_progress=heard.append)
    objectives = [point.objective for point in result.history if point.objective is not None]
    assert len(set(objectives)) > 1
    assert objectives == sorted(objectives)
    assert list(result.history[:-1]) == heard
    # Every bound reported on the way was one: none is below the best plan.
    assert all(point.bound >= result.objective - 1e-6 for point in result.history)
    assert result.history[-1].objective == result.objective


def test_options_of_highs_are_passed_on_and_checked():
    program = knapsack(np.random.default_rng(19), size=120, rows=10)
    few = eq.solve(
        program, "highs", rel_gap=0.0, backend_options={"highs": {"mip_max_improving_sols": 1, "presolve": "off"}}
    )
    assert (few.termination.reason, few.termination.limit) == (Reason.FEASIBLE, Limit.SOLUTIONS)
    for bad in ({"presolve": 3.5}, {"presolve": "sometimes"}, {"mip_max_nodes": -5}, {"nonsense": 1}):
        with pytest.raises(eq.InvalidInput, match=next(iter(bad))):
            eq.solve(program, "highs", backend_options={"highs": bad})


@pytest.mark.thorough
def test_a_node_limit_is_a_limit():
    program = knapsack(np.random.default_rng(20), size=100, rows=10)
    for backend, name in (("highs", "mip_max_nodes"), ("scipy", "node_limit")):
        result = eq.solve(program, backend, rel_gap=0.0, backend_options={backend: {name: 1}})
        assert result.termination.reason in (Reason.FEASIBLE, Reason.NO_SOLUTION_FOUND)
        # HiGHS calls its limits on nodes and on solutions by one name.
        assert result.termination.limit is (Limit.SOLUTIONS if backend == "highs" else Limit.NODES)
        assert result.bound < INF


def test_options_of_scipy_are_checked():
    linear = dense("max", [1.0], [[1.0]], -INF, 2.0)
    assert eq.solve(linear, "scipy", backend_options={"scipy": {"presolve": False}}).objective == 2.0
    with pytest.raises(eq.InvalidInput, match="node_limit"):
        eq.solve(linear, "scipy", backend_options={"scipy": {"node_limit": 5}})


@both
def test_a_bound_of_an_lp_is_proved_by_its_duals(backend):
    """It is not the solver's objective repeated: weak duality is evaluated here, and never below a better point."""
    rng = np.random.default_rng(21)
    for _ in range(10):
        matrix = rng.uniform(0.1, 1.0, size=(8, 12))
        program = dense("max", rng.uniform(0.1, 1.0, size=12), matrix, -INF, rng.uniform(1.0, 2.0, size=8), upper=5.0)
        result = eq.solve(program, backend)
        assert result.bound == program.linear_bound(result.duals["row"]) or result.bound == result.objective
        assert result.gap <= 1e-7
