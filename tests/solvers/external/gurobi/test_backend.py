"""Gurobi against closed forms, enumeration and finite differences; its options, its licences, its silences."""

import math
import re
import sys

import numpy as np
import pytest
from patience import SOON_S, until_incumbent

import equipoise as eq
from equipoise.solvers.external.gurobi import licence as gurobi_licence

gp = pytest.importorskip("gurobipy", reason="gurobipy is not installed")

Reason, Limit = eq.Reason, eq.Limit
INF = math.inf
senses = pytest.mark.parametrize("sense", ["max", "min"])


@pytest.fixture(autouse=True)
def bundled(monkeypatch):
    """The licence that comes with gurobipy, whatever this machine has."""
    places = gurobi_licence._places
    monkeypatch.setattr(gurobi_licence, "_places", lambda release: iter(()))
    gurobi_licence._tried.cache_clear()
    return places


def dense(sense, objective, matrix, row_lower, row_upper, *, lower=0.0, upper=INF, integer=False, offset=0.0):
    """A program from dense arrays."""
    matrix = np.asarray(matrix, dtype=float)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (len(objective),), lower=lower, upper=upper, integer=integer)
    if len(matrix):
        rows = np.arange(len(matrix))[:, None]
        build.add_rows("row", (len(matrix),), terms=[(rows, x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective([(x, objective)], offset=offset)
    return build.program()


def knapsack(seed, size=30, rows=3):
    rng = np.random.default_rng(seed)
    weights = rng.integers(5, 60, size=(rows, size))
    return dense(
        "max", rng.integers(5, 60, size=size), weights, -INF, weights.sum(axis=1) // 3, upper=1.0, integer=True
    )


def market(utilities, budgets, *, supply=1.0, integer=False):
    """The Eisenberg-Gale program of a Fisher market."""
    utilities = np.asarray(utilities, dtype=float)
    buyers, goods = utilities.shape
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (buyers, goods), integer=integer)
    build.add_rows("supply", (goods,), terms=[(np.arange(goods), x, 1.0)], upper=supply)
    build.add_logs(budgets, terms=[(np.arange(buyers)[:, None], x, utilities)])
    return build.program()


# -- Linear and integer programs ---------------------------------------------------------------------------------------


@senses
def test_a_small_mixed_program_against_enumeration(sense):
    rng = np.random.default_rng(1)
    points = np.array(np.meshgrid(*[[0, 1, 2]] * 5)).reshape(5, -1).T
    for _ in range(20):
        cost, weights = rng.integers(-9, 10, size=5), rng.integers(-5, 8, size=(2, 5))
        activity = points @ weights.T
        fits = ((activity <= 7) & (activity >= -4)).all(axis=1)
        best = (points[fits] @ cost).max() if sense == "max" else (points[fits] @ cost).min()
        program = dense(sense, cost, weights, -4, 7, upper=2.0, integer=True, offset=2.5)
        result = eq.solve(program, "gurobi", rel_gap=0.0)
        assert result.termination.reason is Reason.OPTIMAL
        assert (result.objective, result.gap) == (best + 2.5, pytest.approx(0.0, abs=1e-9))
        assert (result.duals, result.reduced_costs) == (None, None)


@pytest.mark.parametrize("integer", [False, True])
@senses
def test_infeasible(sense, integer):
    result = eq.solve(dense(sense, [1.0, 1.0], [[1, 1], [1, 1]], [3, -INF], [INF, 2], integer=integer), "gurobi")
    assert result.termination.reason is Reason.INFEASIBLE
    assert result.bound == (-INF if sense == "max" else INF)
    proved = any("is proved: multipliers" in note for note in result.notes)
    assert proved is not integer


@senses
def test_rays_prove_infeasible_linear_programs(sense):
    """Rows of every kind: random programs made infeasible by one more row that contradicts a mix of the others."""
    rng = np.random.default_rng(2)
    for _ in range(25):
        matrix = rng.integers(-4, 5, size=(4, 6)).astype(float)
        low = np.where(rng.random(4) < 0.5, rng.integers(-3, 1, size=4).astype(float), -INF)
        high = np.where(rng.random(4) < 0.3, low, rng.integers(1, 6, size=4).astype(float))
        high = np.where(np.isfinite(high), high, 3.0)
        mix = rng.integers(1, 4, size=4).astype(float)
        contradiction = np.vstack([matrix, mix @ matrix])
        program = dense(sense, rng.normal(size=6), contradiction, [*low, mix @ high + 1.0], [*high, INF], lower=-9)
        result = eq.solve(program, "gurobi")
        assert result.termination.reason is Reason.INFEASIBLE
        assert any("is proved: multipliers" in note for note in result.notes)


@pytest.mark.parametrize("integer", [False, True])
@senses
def test_unbounded(sense, integer):
    program = dense(sense, [1.0 if sense == "max" else -1.0, 0.0], [[-1, 1]], -INF, 2, integer=integer)
    result = eq.solve(program, "gurobi")
    assert str(result.termination) == "UNBOUNDED"
    assert result.plan is None
    assert result.bound == (INF if sense == "max" else -INF)


@pytest.mark.parametrize("integer", [False, True])
def test_a_ray_without_a_plan_is_infeasible(integer):
    """Both variables may grow without end together, but their difference cannot be what the rows ask."""
    for high in (1.0, 4.0):
        program = dense("max", [1.0, 1.0], [[1, -1], [1, -1]], [-INF, 2], [high, INF], lower=-INF, integer=integer)
        result = eq.solve(program, "gurobi")
        assert result.termination.reason is (Reason.INFEASIBLE if high < 2 else Reason.UNBOUNDED)


def planted(rng, columns, rows):
    """A linear program (of a maximum) and its optimum, by complementary x, y and slacks."""
    matrix = rng.normal(size=(rows, columns)).round(2)
    x = np.where(rng.random(columns) < 0.5, 0.0, rng.uniform(0.5, 3.0, size=columns))
    kind = rng.integers(0, 4, size=rows)  # <=, >=, =, two sides
    up = rng.random(rows) < 0.5
    y = np.where(rng.random(rows) < 0.4, 0.0, rng.uniform(0.2, 2.0, size=rows))
    y = np.select([kind == 0, kind == 1], [y, -y], np.where(up, y, -y))
    gap = rng.uniform(0.1, 1.0, size=(2, rows))
    slack = np.where(y == 0, gap, 0.0)
    activity = matrix @ x
    low = np.select([kind == 0, kind == 1, kind == 2], [-INF, activity - slack[0], activity], activity - gap[0])
    high = np.select([kind == 0, kind == 1, kind == 2], [activity + slack[1], INF, activity], activity + gap[1])
    low = np.where((kind == 3) & (y < 0), activity, low)
    high = np.where((kind == 3) & (y > 0), activity, high)
    reduced = np.where(x > 0, 0.0, -rng.uniform(0.1, 1.0, size=columns))
    return matrix, low, high, matrix.T @ y + reduced, x


@senses
def test_planted_optima_are_proved_by_the_duals(sense):
    rng = np.random.default_rng(3)
    sign = 1.0 if sense == "max" else -1.0
    for _ in range(40):
        matrix, low, high, cost, x = planted(rng, columns=8, rows=5)
        program = dense(sense, sign * cost, matrix, low, high)
        result = eq.solve(program, "gurobi", rel_gap=1e-9)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(sign * float(cost @ x), abs=1e-6)
        assert program.linear_bound(result.duals["row"]) == pytest.approx(result.objective, abs=1e-7)


@senses
def test_duals_and_reduced_costs_are_the_change_of_the_optimum(sense):
    """Central differences in every row's sides and every column's lower bound, where they are no kink."""
    rng = np.random.default_rng(4)
    sign = 1.0 if sense == "max" else -1.0
    step, checked = 1e-4, 0
    for _ in range(10):
        matrix, low, high, cost, _ = planted(rng, columns=5, rows=4)

        def best(rows=0.0, columns=0.0, data=(matrix, low, high, cost)):
            matrix, low, high, cost = data
            program = dense(sense, sign * cost, matrix, low + rows, high + rows, lower=np.zeros(5) + columns)
            return eq.solve(program, "gurobi", rel_gap=1e-9)

        result = best()
        slopes = [*result.duals["row"], *result.reduced_costs["x"]]
        for k, slope in enumerate(slopes):
            move = step * np.eye(4 if k < 4 else 5)[k if k < 4 else k - 4]
            back, ahead = (best(**{"rows" if k < 4 else "columns": s * move}).objective for s in (-1, 1))
            if back is None or ahead is None or abs(ahead + back - 2 * result.objective) > 1e-7:
                continue
            assert slope == pytest.approx((ahead - back) / (2 * step), abs=1e-5)
            checked += 1
    assert checked > 40


@senses
@pytest.mark.parametrize(("low", "high"), [(-INF, 4.0), (2.0, INF), (3.0, 3.0), (1.0, 4.0)])
def test_the_sign_of_a_dual(sense, low, high):
    """One column, one row: the dual is d objective / d side, whichever side is active."""
    for cost in (2.0, -2.0):
        result = eq.solve(dense(sense, [cost], [[1.0]], low, high, lower=-100.0, upper=100.0), "gurobi")
        side = high if (cost > 0) == (sense == "max") else low
        assert result.duals["row"][0] == pytest.approx(cost if math.isfinite(side) else 0.0)
        assert result.reduced_costs["x"][0] == pytest.approx(0.0 if math.isfinite(side) else cost)


def test_rows_that_are_empty_or_free_or_missing():
    assert eq.solve(dense("max", [2.0, -3.0], np.zeros((0, 2)), None, None, upper=5), "gurobi").objective == 10.0
    program = dense("max", [1.0, 1.0], [[0, 0], [1, 1], [1, 0]], [-1, -INF, -INF], [1, 2, INF])
    assert eq.solve(program, "gurobi").objective == 2.0
    broken = dense("max", [1.0, 1.0], [[0, 0], [1, 1]], [1, -INF], [1, 2])
    assert eq.solve(broken, "gurobi").termination.reason is Reason.INFEASIBLE


# -- Logarithms --------------------------------------------------------------------------------------------------------

TWO_BUYERS = [  # utilities, budgets, prices of goods 1 and 2, shares of buyer 1
    ([[3, 1], [1, 2]], [1, 1], [1, 1], [1, 0]),  # each buys what it likes
    ([[3, 1], [1, 2]], [5, 1], [4.5, 1.5], [1, 1 / 3]),  # the rich one is indifferent: prices as its utilities
    ([[3, 1], [1, 2]], [1, 8], [3, 6], [1 / 3, 0]),  # so is the other
    ([[1, 1], [1, 1]], [2, 3], [2.5, 2.5], None),  # only the sums are determined
]


@pytest.mark.parametrize(("utilities", "budgets", "prices", "shares"), TWO_BUYERS)
@pytest.mark.parametrize("rel_gap", [1e-4, 1e-9])
def test_a_market_of_two_buyers(utilities, budgets, prices, shares, rel_gap):
    result = eq.solve(market(utilities, budgets), "gurobi", rel_gap=rel_gap)
    assert result.termination.reason is Reason.OPTIMAL
    # At equilibrium a buyer's money buys the good of best value: utility = budget x max(u / price).
    worth = np.asarray(budgets) * (np.asarray(utilities) / prices).max(axis=1)
    best = float(np.asarray(budgets) @ np.log(worth))
    assert result.objective == pytest.approx(best, rel=max(rel_gap, 1e-8))
    assert best - 1e-9 <= result.bound <= best + rel_gap * abs(best) + 1e-9
    near = 1e-3 if rel_gap < 1e-6 else 0.1  # plan and prices are as good as the square root of the gap
    assert result.duals["supply"] == pytest.approx(prices, abs=near)  # the duals are the prices
    assert not any("word" in note for note in result.notes)  # the bound is proved
    if shares is not None:
        assert result.plan["x"][0] == pytest.approx(shares, abs=near)


def test_continuous_logarithms_close_a_fine_gap_with_rows_of_every_kind():
    rng = np.random.default_rng(5)
    for _ in range(40):
        n, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
        build = eq.ProgramBuilder(sense="max")
        x = build.add_columns("x", (n,), upper=rng.choice([3.0, INF], size=n))
        build.add_rows("all", (), terms=[(0, x, 1.0)], lower=rng.choice([-INF, 0.5, 2.0 * n]), upper=2.0 * n)
        build.add_rows("cap", (2,), terms=[([[0], [1]], x, rng.integers(0, 5, size=(2, n)))], upper=9.0 * n)
        inside = rng.integers(1, 4, size=(k, n)) * (rng.random((k, n)) < 0.7)
        offsets = rng.choice([0.0, 0.5], size=k) + (inside.sum(axis=1) == 0)
        build.add_logs(
            rng.choice([0.1, 1.0, 30.0], size=k), terms=[(np.arange(k)[:, None], x, inside)], offsets=offsets
        )
        build.set_objective([(x, rng.integers(-3, 3, size=n))], offset=4.0)
        result = eq.solve(build.program(), "gurobi", rel_gap=1e-7)
        assert result.termination.reason is Reason.OPTIMAL, result
        assert not any("word" in note for note in result.notes)


@pytest.mark.parametrize("rel_gap", [1e-4, 1e-8])
def test_integer_logarithms_against_enumeration(rel_gap):
    rng = np.random.default_rng(6)
    splits = np.array(np.meshgrid(*[np.arange(5)] * 3)).reshape(3, -1).T  # of 4 pieces of each good, to buyer 1
    for _ in range(15):
        utilities, budgets = rng.integers(1, 9, size=(2, 3)), rng.integers(1, 4, size=2)
        worth = np.stack([splits @ utilities[0], (4 - splits) @ utilities[1]], axis=1)
        best = (np.log(np.maximum(worth, 1e-300)) @ budgets).max()
        result = eq.solve(market(utilities, budgets, supply=4.0, integer=True), "gurobi", rel_gap=rel_gap)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective >= best - rel_gap * abs(best) - 1e-9
        assert result.objective <= best + 1e-9 <= result.bound + 2e-9


@pytest.mark.parametrize("integer", [False, True])
def test_logarithms_beyond_the_bundled_licence_are_cut_by_tangents(integer):
    """15 x 15 = 225 columns: too many for a native logarithm, few enough for linear programs."""
    rng = np.random.default_rng(7)
    utilities = rng.integers(1, 9, size=(15, 15))
    program = market(utilities, rng.integers(1, 4, size=15), supply=3.0, integer=integer)
    result = eq.solve(program, "gurobi", rel_gap=1e-4, time_limit=10.0)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.gap <= 1e-4
    want = eq.solve(program, "highs", rel_gap=1e-4, time_limit=10.0)
    assert abs(result.objective - want.objective) <= 2e-4 * abs(want.objective)


def test_logarithms_that_no_plan_can_make_finite():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0)
    build.add_rows("never", (1,), terms=[(0, x, 1.0)], lower=3.0)
    build.add_logs([1.0, 1.0], terms=[([0, 1], x, 1.0)])
    result = eq.solve(build.program(), "gurobi")
    assert result.termination.reason is Reason.INFEASIBLE


# -- Options -----------------------------------------------------------------------------------------------------------


def test_common_options_reach_gurobi(capfd):
    """Gurobi's own log lists what differs from its defaults."""
    program = knapsack(8)
    eq.solve(
        program, "gurobi", log=True, threads=2, seed=7, time_limit=60.0, rel_gap=0.01, abs_gap=0.5, feasibility_tol=1e-5
    )
    said = capfd.readouterr().out
    values = dict(re.findall(r"^(\w+)  (\S+)$", said, flags=re.MULTILINE))
    assert float(values.pop("TimeLimit")) == pytest.approx(60.0, abs=1.0)  # less what building took
    want = {"MIPGap": 0.0099, "MIPGapAbs": 0.495, "IntFeasTol": 1e-6, "OptimalityTol": 1e-9, "Threads": 2, "Seed": 7}
    values.pop("FeasibilityTol", None)  # asked for: what is Gurobi's default but for rounding
    assert {name: float(value) for name, value in values.items()} == pytest.approx(want)


def test_the_log_is_silent_unless_asked_for(capfd):
    program, logs = knapsack(9), market([[3, 1], [1, 2]], [1, 1])
    for each in (program, logs):
        eq.solve(each, "gurobi")
        captured = capfd.readouterr()
        assert captured.out + captured.err == ""
        eq.solve(each, "gurobi", log=True)
        assert "Gurobi Optimizer version" in capfd.readouterr().out
    eq.backends()
    assert capfd.readouterr().out == ""


def test_gaps_are_honoured():
    program = knapsack(13, size=120, rows=10)
    loose = eq.solve(program, "gurobi", rel_gap=0.3)
    tight = eq.solve(program, "gurobi", rel_gap=0.01)
    assert loose.termination.reason is tight.termination.reason is Reason.OPTIMAL
    assert tight.gap <= 0.01 < loose.gap <= 0.3
    absolute = eq.solve(program, "gurobi", rel_gap=0.0, abs_gap=0.3 * loose.objective)
    assert 0 < absolute.bound - absolute.objective <= 0.3 * loose.objective
    assert absolute.termination.reason is Reason.OPTIMAL


@pytest.mark.parametrize("integer", [False, True])
def test_no_time_at_all(integer):
    program = dense("max", np.arange(1, 21), [np.arange(1, 21)], 30.5, 30.5, upper=1.0, integer=integer)
    result = eq.solve(program, "gurobi", time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert "Gurobi: TIME_LIMIT" in result.termination.message
    assert (result.plan, result.bound) == (None, INF)
    logs = eq.solve(market([[3, 1], [1, 2]], [1, 1], integer=integer), "gurobi", time_limit=0.0)
    assert (logs.termination.reason, logs.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)


def test_a_time_limit_keeps_the_incumbent_and_its_bound():
    program = knapsack(21, size=400, rows=40)
    result = until_incumbent(lambda limit: eq.solve(program, "gurobi", rel_gap=0.0, time_limit=limit), 0.5)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert program.residuals_at(result.plan["x"]).worst == 0.0
    assert result.objective < result.bound < INF
    assert result.wall_time < SOON_S


def test_options_of_gurobi_are_passed_on_and_checked():
    program = knapsack(19, size=120, rows=10)
    for own, limit in (({"SolutionLimit": 1, "Presolve": 0}, Limit.SOLUTIONS), ({"NodeLimit": 1}, Limit.NODES)):
        result = eq.solve(program, "gurobi", rel_gap=0.0, backend_options={"gurobi": own})
        assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, limit)
    work = eq.solve(knapsack(21, 400, 40), "gurobi", rel_gap=0.0, backend_options={"gurobi": {"WorkLimit": 0.1}})
    assert (work.termination.reason, work.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert "Gurobi: WORK_LIMIT" in work.termination.message
    for bad, words in (
        ({"nonsense": 1}, "Gurobi has no parameter of this name"),
        ({"presolve": 0}, "spelt as in its manual"),
        ({"__class__": 0}, "Gurobi has no parameter of this name"),
        ({"Presolve": 9}, "maximum is 2"),
        ({"Presolve": 1.5}, "must be of type int"),
        ({"Presolve": True}, "must be of type int"),
        ({"Heuristics": "much"}, "must be of type float"),
    ):
        with pytest.raises(eq.InvalidInput, match=words) as caught:
            eq.solve(program, "gurobi", backend_options={"gurobi": bad})
        assert caught.value.field == f"backend_options['gurobi'][{next(iter(bad))!r}]"


@pytest.mark.parametrize(
    ("own", "common"),
    [("TimeLimit", "time_limit"), ("MIPGap", "rel_gap"), ("IntFeasTol", "feasibility_tol"), ("OutputFlag", "log")],
)
def test_what_a_common_option_says_is_not_said_twice(own, common):
    with pytest.raises(eq.InvalidInput, match=f"use {common}= instead"):
        eq.solve(knapsack(1), "gurobi", backend_options={"gurobi": {own: 1}})


def test_a_log_file_is_written_without_a_word_on_the_screen(tmp_path, capfd):
    path = tmp_path / "gurobi.log"
    eq.solve(knapsack(2), "gurobi", backend_options={"gurobi": {"LogFile": str(path)}})
    assert "Optimal solution found" in path.read_text(encoding="utf-8")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("seed", [3, 2**31 - 1])
def test_the_same_seed_gives_the_same_bits(seed):
    program = knapsack(15, size=60, rows=6)
    runs = [eq.solve(program, "gurobi", seed=seed, threads=2, rel_gap=0.01) for _ in range(2)]
    assert runs[0].plan["x"].tobytes() == runs[1].plan["x"].tobytes()
    assert (runs[0].objective, runs[0].bound) == (runs[1].objective, runs[1].bound)


# -- Warm starts and progress ------------------------------------------------------------------------------------------


def test_a_warm_start_is_the_first_incumbent():
    program = knapsack(11)
    best = eq.solve(program, "gurobi", rel_gap=0.0)
    again = eq.solve(program, "gurobi", rel_gap=0.0, warm_start=best.plan)
    assert again.notes == (f"warm start accepted, objective {best.objective:.12g}",)
    assert again.history[0].objective == best.objective == again.objective
    # With no time but for the start, it is what comes back.
    at_once = eq.solve(program, "gurobi", time_limit=0.0, warm_start=best.plan)
    assert (at_once.termination.limit, at_once.objective) == (Limit.TIME, best.objective)


def test_gurobi_itself_starts_from_a_warm_start(capfd):
    program = knapsack(12)
    best = eq.solve(program, "gurobi", rel_gap=0.0)
    eq.solve(program, "gurobi", rel_gap=0.0, warm_start=best.plan, log=True)
    assert f"Loaded user MIP start with objective {best.objective:g}" in capfd.readouterr().out
    rng = np.random.default_rng(0)
    linear = dense("max", rng.random(200), rng.random((100, 200)), -INF, 50.0)
    point = eq.solve(linear, "gurobi")

    def iterations(**options):
        eq.solve(linear, "gurobi", log=True, **options)
        return int(re.search(r"Solved in (\d+) iterations", capfd.readouterr().out)[1])

    assert iterations(warm_start=point.plan) < 0.7 * iterations()


def test_an_incomplete_warm_start_is_completed_and_a_wrong_one_named():
    build = eq.ProgramBuilder(sense="max")
    a = build.add_binaries("a", (3,))
    b = build.add_columns("b", (2,), upper=4.0)
    build.add_rows("room", (1,), terms=[(0, a, [4, 2, 2]), (0, b, 1.0)], upper=6)
    build.set_objective([(a, [5.0, 3.0, 3.0]), (b, 0.25)])
    program = build.program()
    part = eq.solve(program, "gurobi", warm_start={"a": [0, 1, 1]})
    assert part.notes == ("warm start: 3 of 5 columns given, Gurobi completes the rest",)
    wrong = eq.solve(program, "gurobi", warm_start={"a": [1, 1, 1], "b": [0, 0]})
    assert wrong.notes == ("warm start violates the program by 2: Gurobi may repair or drop it",)
    assert part.objective == wrong.objective == 8.0


def test_warm_starts_of_programs_with_logarithms():
    for integer in (False, True):
        program = market([[3, 1], [1, 2]], [5, 1], supply=3.0, integer=integer)
        best = eq.solve(program, "gurobi")
        again = eq.solve(program, "gurobi", warm_start=best.plan)
        assert f"warm start accepted, objective {best.objective:.12g}" in again.notes
        assert again.history[0].objective == pytest.approx(best.objective)
        assert again.objective == pytest.approx(best.objective, abs=1e-7)
        nothing = eq.solve(program, "gurobi", warm_start={"x": np.zeros((2, 2))})  # log 0
        assert any(note.startswith("warm start ") and "accepted" not in note for note in nothing.notes)
        assert nothing.objective == pytest.approx(best.objective, abs=1e-7)


def test_incumbents_and_bounds_are_streamed():
    program = knapsack(18, size=200, rows=12)
    heard = []
    result = eq.solve(program, "gurobi", rel_gap=0.004, time_limit=20.0, on_progress=heard.append)
    objectives = [point.objective for point in heard if point.objective is not None]
    assert len(set(objectives)) > 1
    assert objectives == sorted(objectives)
    bounds = [point.bound for point in heard]
    assert bounds == sorted(bounds, reverse=True)
    assert min(bounds) >= result.objective - 1e-6
    assert all(abs(bound) < 1e100 for bound in bounds if math.isfinite(bound))


def test_an_error_of_the_listener_ends_the_solve_and_is_raised():
    calls = []

    def listen(point):
        calls.append(point)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        eq.solve(knapsack(18, size=200, rows=12), "gurobi", rel_gap=0.0, on_progress=listen)
    assert len(calls) == 1


# -- Licences ----------------------------------------------------------------------------------------------------------


def wide(columns, rows=20):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_binaries("x", (columns,))
    build.add_rows("row", (rows,), terms=[(np.arange(rows)[:, None], x[:3], 1.0)], upper=1.0)
    build.set_objective([(x, 1.0)])
    return build.program()


def test_a_program_too_large_for_the_bundled_licence_is_refused_in_words():
    with pytest.raises(eq.LicenseLimit) as caught:
        eq.solve(wide(3_000), "gurobi")
    assert str(caught.value) == (
        "3,000 variables and 20 rows; the licence that comes with gurobipy allows 2,000 of each: "
        "use backend='highs', or install a full licence (https://gurobi.com/unrestricted)"
    )
    with pytest.raises(eq.LicenseLimit, match="5 variables and 2,001 rows; the licence"):
        eq.solve(wide(5, rows=2_001), "gurobi")
    ranged = dense("max", np.ones(1_990), np.ones((11, 1_990)), 1, 5, upper=1.0)
    with pytest.raises(
        eq.LicenseLimit, match=r"^2,001 variables \(11 for rows of two sides\) and 11 rows; the licence"
    ):
        eq.solve(ranged, "gurobi")
    logs = market(np.ones((2, 1_000)), [1.0, 1.0])
    with pytest.raises(eq.LicenseLimit, match=r"^2,002 variables \(2 for logarithms\) and 1,000 rows; the licence"):
        eq.solve(logs, "gurobi")


def test_the_limit_itself_is_within_the_licence():
    assert eq.solve(wide(2_000, rows=2_000), "gurobi").objective == 1_998.0
    at_most = market(np.ones((2, 99)), [1.0, 1.0])  # with two logarithms 200 variables
    assert eq.solve(at_most, "gurobi").termination.reason is Reason.OPTIMAL


def test_the_bundled_licence_is_known_without_starting_anything(monkeypatch):
    monkeypatch.setattr(gp, "Env", lambda *_, **__: pytest.fail("an environment was started"))
    row = next(row for row in eq.backends() if row.name == "gurobi")
    assert (row.usable, row.version) == (True, ".".join(map(str, gp.gurobi.version())))
    assert row.reason == "licence limited to 2,000 variables and 2,000 rows (200 variables with native logarithms)"
    why = next(row for row in eq.candidates(knapsack(1)) if row.name == "gurobi")
    assert not why.taken
    assert "used by name only" in why.reason


def test_without_gurobipy_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gurobipy", None)  # what importlib.util.find_spec looks at first
    with pytest.raises(eq.BackendUnavailable, match=r"gurobipy is not installed: pip install 'equipoise\[gurobi\]'"):
        eq.solve(knapsack(1), "gurobi")


@pytest.fixture
def places(bundled, monkeypatch, tmp_path):
    """Look for licences as on any machine, but at home in an empty folder."""
    monkeypatch.setattr(gurobi_licence, "_places", bundled)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("GRB_LICENSE_FILE", raising=False)
    if next(bundled("0.0.0"), None) is not None:
        pytest.skip("this machine has a licence of Gurobi's in its default place")
    return tmp_path


def probe():
    return next(row for row in eq.backends() if row.name == "gurobi")


@pytest.mark.parametrize("where", ["home", "variable"])
def test_a_licence_that_does_not_work_makes_it_unusable(places, monkeypatch, where, capfd):
    path = places / ("gurobi.lic" if where == "home" else "other.lic")
    path.write_text("# nothing\n", encoding="utf-8")
    if where == "variable":
        monkeypatch.setenv("GRB_LICENSE_FILE", str(path))
    row = probe()
    assert not row.usable
    assert row.reason.startswith(f"the licence in {path} does not work: No HostID specified in license file. Renew it")
    with pytest.raises(eq.BackendUnavailable, match="backend 'gurobi' cannot run here: the licence in"):
        eq.solve(knapsack(1), "gurobi")
    assert eq.solve(knapsack(1)).backend == "highs"  # the default is what it was
    assert capfd.readouterr().out == ""


def test_a_licence_file_that_is_not_there_is_named(places, monkeypatch):
    monkeypatch.setenv("GRB_LICENSE_FILE", str(places / "gone.lic"))
    assert "Unable to open Gurobi license file" in probe().reason


class Unlimited:
    """Stands in for `gurobipy.Model` where a full licence would let it solve anything."""

    asked = 0

    def __init__(self, env):
        Unlimited.asked += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def addMVar(self, count):  # noqa: N802
        assert count == 2_001

    def optimize(self):
        pass


class Licensed:
    """Stands in for `gurobipy.Env`: starts, as with a licence that works."""

    def __init__(self, empty):
        self.parameters = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def setParam(self, name, value):  # noqa: N802
        self.parameters[name] = value

    def start(self):
        assert self.parameters == {"LogToConsole": 0}


def test_a_full_licence_is_tried_once_and_makes_it_the_default(places, monkeypatch):
    path = places / "gurobi.lic"
    path.write_text("# a full one\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(gp, "Env", Licensed)
        patch.setattr(gp, "Model", Unlimited)
        Unlimited.asked = 0
        for _ in range(3):
            assert (probe().usable, probe().reason) == (True, "")
        assert Unlimited.asked == 1
        taken = next(row for row in eq.candidates(knapsack(1)) if row.taken)
        assert taken.name == "gurobi"
    # What it turns out not to cover after all is said in words, too.
    monkeypatch.setattr(gurobi_licence, "_tried", lambda place, changed: ("", ""))
    path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(gurobi_licence, "_places", lambda release: iter([str(path)]))
        with pytest.raises(
            eq.LicenseLimit, match="3,000 variables and 20 rows: beyond this Gurobi's licence; use back"
        ):
            eq.solve(wide(3_000), "gurobi")


def test_a_full_licence_in_the_file_but_limited_in_fact_is_limited(places, monkeypatch):
    def refuse(self):
        raise gp.GurobiError(10010, "Model too large for size-limited license")

    (places / "gurobi.lic").write_text("# a small one\n", encoding="utf-8")
    monkeypatch.setattr(gp, "Env", Licensed)
    monkeypatch.setattr(gp, "Model", Unlimited)
    monkeypatch.setattr(Unlimited, "optimize", refuse)
    assert (probe().usable, probe().reason[:19]) == (True, "licence limited to ")


def test_a_licence_given_with_the_options_is_tried_for_what_it_is():
    """No token server answers here: that is said, and not that the program is too large for the bundled licence."""
    own = {"TokenServer": "127.0.0.1", "TSPort": 9}
    with pytest.raises(
        eq.BackendUnavailable, match="Gurobi's licence does not work: Failed to connect to token server"
    ):
        eq.solve(wide(3_000), "gurobi", backend_options={"gurobi": own})
