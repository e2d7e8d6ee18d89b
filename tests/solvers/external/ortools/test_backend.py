"""CP-SAT through `solve`, always in a separate process: this one may have highspy loaded."""

import itertools
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from patience import SOON_S, until_incumbent

import equipoise as eq
from equipoise.solvers.external.ortools.backend import BACKEND

Reason, Limit = eq.Reason, eq.Limit
INF = math.inf

pytestmark = pytest.mark.skipif(not BACKEND.probe().usable, reason=BACKEND.probe().reason or "ortools is usable")


def dense(sense, objective, matrix, row_lower, row_upper, *, lower=0.0, upper=1.0, integer=True, offset=0.0):
    matrix = np.asarray(matrix, dtype=float)
    build = eq.ProgramBuilder(sense=sense)
    x = build.add_columns("x", (len(objective),), lower=lower, upper=upper, integer=integer)
    if len(matrix):
        rows = np.arange(len(matrix))[:, None]
        build.add_rows("row", (len(matrix),), terms=[(rows, x, matrix)], lower=row_lower, upper=row_upper)
    build.set_objective([(x, objective)], offset=offset)
    return build.program()


def solve(program, **options):
    # A busy machine may take seconds to load CP-SAT: it is not ended for that.
    return eq.solve(program, "ortools", isolate=eq.Isolation(grace_s=SOON_S), **options)


def own(**options):
    return {"backend_options": {"ortools": options}}


def knapsack(seed, size=40, rows=5):
    """A program that is hard for its size: worths near the weights."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(20, 99, size=(rows, size))
    return dense("max", weights.mean(axis=0) + rng.uniform(0, 10, size), weights, -INF, weights.sum(axis=1) // 2)


def enumerated(program):
    """Return (best objective, that no point is near a side) of an integer program, by looking at every point."""
    ranges = [np.arange(a, b + 1) for a, b in zip(program.lower, program.upper, strict=True)]
    points = np.array(list(itertools.product(*ranges)))
    sums = points @ program.to_scipy().toarray().T
    over = np.maximum(program.row_lower - sums, sums - program.row_upper).max(axis=1, initial=-INF)
    clear = not ((over > 1e-10) & (over < 1e-6)).any()
    points = points[over <= 1e-10]
    objectives = points @ program.objective + program.offset
    if not len(objectives):
        return None, clear
    return (objectives.max() if program.sense == "max" else objectives.min()), clear


# -- Integer programs --------------------------------------------------------------------------------------------------


def drawn(rng):
    """A small integer program with ugly, decimal or whole coefficients, and sides that a point meets exactly."""
    n, m = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    kind = rng.integers(3)
    if kind == 0:
        draw = lambda size: rng.normal(size=size) * 10.0 ** rng.integers(-3, 4, size=size)  # noqa: E731
    elif kind == 1:
        draw = lambda size: np.round(rng.normal(0, 5, size=size), 2)  # noqa: E731
    else:
        draw = lambda size: rng.integers(-9, 10, size=size).astype(float)  # noqa: E731
    lower = rng.integers(-3, 2, size=n).astype(float)
    upper = lower + rng.integers(0, 4, size=n)
    matrix = draw((m, n))
    planted = matrix @ rng.integers(lower, upper + 1)
    impossible = 0.37 * (rng.random(m) < 0.1)
    return dense(
        "max" if rng.random() < 0.5 else "min",
        draw(n),
        matrix,
        np.where(rng.random(m) < 0.3, planted, -INF) + impossible,
        planted + impossible + np.where(rng.random(m) < 0.5, 0.0, 3 * rng.random(m)),
        lower=lower,
        upper=upper,
        offset=float(rng.choice([0.0, 2.5, -100.3])),
    )


def test_small_programs_against_enumeration_and_the_bound_is_never_on_the_wrong_side():
    rng = np.random.default_rng(11)
    reasons = dict.fromkeys(Reason, 0)
    for _ in range(200):
        program = drawn(rng)
        best, clear = enumerated(program)
        seen = []
        result = solve(program, rel_gap=1e-7, on_progress=seen.append)
        reasons[result.termination.reason] += 1
        if best is None:
            assert not clear or result.termination.reason is Reason.INFEASIBLE
            continue
        assert not clear or result.objective == pytest.approx(best, rel=2e-7, abs=1e-9)
        turn = 1.0 if program.sense == "max" else -1.0
        slack = 1e-14 * (1.0 + abs(best))  # floats of this test
        for bound in [result.bound, *(point.bound for point in seen)]:
            assert turn * (bound - best) >= -slack
        assert turn * (result.bound - best) <= 2e-7 * abs(best) + 1e-12 or not clear
    assert reasons[Reason.OPTIMAL] > 150
    assert reasons[Reason.FEASIBLE] <= 3  # an optimum of 0, where a relative gap is never closed by ugly numbers
    assert reasons[Reason.INFEASIBLE] > 3


def test_the_bound_of_a_search_cut_short_is_on_the_right_side_all_the_way():
    program = knapsack(1, size=26, rows=4)
    proved = solve(program, rel_gap=0.0)
    assert proved.termination.reason is Reason.OPTIMAL
    assert proved.gap <= 1e-9
    short = solve(program, rel_gap=0.0, **own(max_number_of_conflicts=200))
    assert short.termination.limit is Limit.NODES
    for point in [*proved.history, *short.history]:
        assert point.bound >= proved.objective * (1 - 1e-15)
        assert point.objective is None or point.objective <= proved.objective * (1 + 1e-15)
    bounds = [point.bound for point in proved.history]
    assert bounds == sorted(bounds, reverse=True)
    assert sum(point.objective is not None for point in proved.history) > 1


def test_whole_data_give_a_bound_to_the_last_bit():
    result = solve(dense("max", [5.0, 3, 3, 1], [[4.0, 2, 2, 1]], -INF, 5, offset=-2.0), rel_gap=0.0)
    assert (result.objective, result.bound, result.gap) == (5.0, 5.0, 0.0)
    assert result.plan["x"].tolist() == [0, 1, 1, 1]
    assert result.notes == ()


def test_no_objective_no_rows_and_empty_rows():
    assert solve(dense("max", [0.0, 0.0], [[1, 1]], 2, 2, offset=1.5)).bound == 1.5
    ends = solve(dense("min", [2.0, -3.0], [], None, None, lower=[-1, -4], upper=[5, 6]))
    assert (ends.plan["x"].tolist(), ends.objective, ends.bound) == ([-1, 6], -20.0, -20.0)
    assert solve(dense("max", [1.0], [[0.0]], -1, 1)).objective == 1.0
    assert solve(dense("max", [1.0], [[0.0]], 1, 2)).termination.reason is Reason.INFEASIBLE
    fixed = solve(dense("min", [1.5, 2.0], [[1.0, 1.0]], 3, INF, lower=[2, 0], upper=[2, 9]))
    assert fixed.objective == 5.0


@pytest.mark.parametrize("sense", ["max", "min"])
def test_infeasible(sense):
    result = solve(dense(sense, [1.0, 1.0], [[1, 1], [1, 1]], [3, -INF], [INF, 2], upper=5.0))
    assert (result.termination.reason, result.plan, result.gap) == (Reason.INFEASIBLE, None, INF)
    assert result.bound == (-INF if sense == "max" else INF)
    parity = solve(dense(sense, [1.0, 1.0], [[2.0, 4.0]], 3.0, 3.0, upper=5.0))
    assert parity.termination.reason is Reason.INFEASIBLE
    between = solve(dense(sense, [1.0], [], None, None, lower=0.3, upper=0.7))
    assert between.termination.reason is Reason.INFEASIBLE
    assert "no whole number lies between the bounds of column 'x'[0]" in between.termination.message


def test_windows_of_both_forms_against_enumeration(draw_small, exhausted):
    rng = np.random.default_rng(12)
    for k in range(12):
        window = draw_small(rng, restarts=k % 3 == 0)
        result = eq.solve(window, "ortools", form="time_indexed", rel_gap=1e-6)
        best = exhausted(window).best
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1.1e-6 * window.gap_scale(best))
        assert result.bound >= best - 1e-12
        relaxed = eq.solve(window, "ortools", form="counts", rel_gap=1e-6)
        assert relaxed.bound >= best - 1e-12


# -- Continuous columns ------------------------------------------------------------------------------------------------


def test_mixed_programs_against_highs():
    rng = np.random.default_rng(13)
    solved = 0
    for _ in range(30):
        n, m = 6, 3
        integer = np.arange(n) < 3
        matrix = rng.integers(-4, 5, size=(m, n)) / 2
        point = np.where(integer, rng.integers(0, 4, size=n), 3 * rng.random(n))
        planted = np.round(matrix @ point, 3)
        low = np.where(np.arange(m) == 0, planted, -INF)  # one equation
        program = dense(
            "max",
            np.round(rng.normal(size=n), 3),
            matrix,
            low,
            planted,
            upper=np.where(integer, 3, 3.5),
            integer=integer,
        )
        expected = eq.solve(program, "highs", rel_gap=1e-7)
        result = solve(program, rel_gap=1e-5, time_limit=20.0)
        if expected.objective is None:
            assert result.objective is None
            continue
        solved += 1
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(expected.objective, rel=2e-5, abs=1e-5)
        assert result.bound >= expected.objective - 1e-9
        assert "on a grid of" in result.notes[0]
        assert "stands for every value; the bound is corrected by" in result.notes[0]
    assert solved > 15


def test_a_restricting_grid_gives_a_plan_and_no_bound():
    program = dense("max", [1.0, 2.0], [[1.0, 1.0]], -INF, 2.3, upper=3.0, integer=[True, False])
    result = solve(program, **own(grid=0.5))
    assert (result.objective, result.plan["x"].tolist()) == (4.0, [0.0, 2.0])
    assert (result.termination.reason, result.termination.limit, result.bound) == (Reason.FEASIBLE, Limit.METHOD, INF)
    assert all(point.bound == INF for point in result.history)
    assert result.notes == (
        "1 continuous column on a grid of 0.5, which leaves values out: CP-SAT's bound holds on the grid only and is "
        "dropped",
    )
    assert solve(program, rel_gap=1e-6).objective == pytest.approx(4.6, abs=1e-5)


def test_no_point_on_a_restricting_grid_proves_nothing():
    program = dense("max", [1.0, 2.0], [[0.0, 1.0]], 1.25, 1.25, upper=3.0, integer=[True, False])
    result = solve(program, **own(grid=0.5))
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.METHOD)
    assert "the grid has no point; there may be one off it" in result.termination.message
    assert solve(program).plan["x"] == pytest.approx([3.0, 1.25], abs=1e-6)


# -- What it refuses ---------------------------------------------------------------------------------------------------


def test_what_cannot_be_held_is_refused_with_words():
    unbounded = dense("max", [1.0, 0.0], [[-1, 1]], -INF, 2, upper=INF)
    with pytest.raises(
        eq.UnsupportedProblem, match=r"column 'x'\[0\] has no upper bound and the rows imply none.*highs"
    ):
        solve(unbounded)
    too_wide = dense("max", [1.0, 1.0], [[1e17, math.pi]], -INF, 1e17)
    with pytest.raises(eq.UnsupportedProblem, match=r"row 'row'\[0\] in 64-bit whole numbers would be off"):
        solve(too_wide)
    with pytest.raises(eq.UnsupportedProblem, match=r"ortools cannot state this LP program"):
        solve(dense("max", [1.0], [[1.0]], -INF, 1, integer=False))
    build = eq.ProgramBuilder(sense="max")
    build.add_logs(1.0, terms=[(0, build.add_binaries("x", (2,)), 1.0)])
    with pytest.raises(eq.UnsupportedProblem, match=r"ortools cannot state this MILOG program"):
        solve(build.program())


def test_an_integer_column_that_rows_bound_needs_no_bound_of_its_own():
    result = solve(dense("max", [1.0, 1.0], [[2.0, 3.0]], -INF, 12.5, upper=INF))
    assert (result.objective, result.bound) == (6.0, 6.0)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_workers", 2, "use threads= instead"),
        ("max_time_in_seconds", 2.0, "use time_limit= instead"),
        ("relative_gap_limit", 0.1, "use rel_gap= instead"),
        ("random_seed", 3, "use seed= instead"),
        ("log_search_progress", True, "use log= instead"),
        ("no_such_parameter", 1, "CP-SAT has no such parameter"),
        ("linearization_level", 1.5, "CP-SAT does not take this value"),
        ("search_branching", "NO_SUCH_SEARCH", "CP-SAT does not take this value"),
        ("max_deterministic_time", -1.0, "max_deterministic_time must be non-negative"),
        ("mip_var_scaling", 10.0, "it is given integers here"),
        ("fix_variables_to_their_hinted_value", True, "it would solve another program"),
        ("instantiate_all_variables", False, "CP-SAT leaves columns open"),
        ("use_exact_lp_reason", False, "CP-SAT's bounds are wrong"),
        ("grid", 0.0, "must be greater than 0"),
    ],
)
def test_own_options_are_checked(name, value, words):
    with pytest.raises(eq.InvalidInput, match=words):
        solve(knapsack(2, size=5), **own(**{name: value}))


def test_own_options_reach_cp_sat(capfd):
    options = {"search_branching": "FIXED_SEARCH", "cp_model_presolve": False, "ignore_subsolvers": ["core"]}
    result = solve(knapsack(2, size=8), log=True, **own(**options))
    assert result.termination.reason is Reason.OPTIMAL
    printed = capfd.readouterr().out
    assert "search_branching: FIXED_SEARCH" in printed
    assert "cp_model_presolve: false" in printed
    assert 'ignore_subsolvers: "core"' in printed
    assert "CpSolverResponse summary" in printed


# -- Common options ----------------------------------------------------------------------------------------------------


def test_it_is_silent_unless_asked(capfd):
    solve(knapsack(2, size=8))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_time_limit_zero_gives_neither_a_plan_nor_garbage():
    for sense in ("max", "min"):
        weights = np.random.default_rng(3).integers(10**5, 10**6, size=40)
        worth = np.where(sense == "max", 1.0, -1.0) * -np.arange(1.0, 41.0)
        equation = dense(sense, worth, [weights], weights.sum() // 2, weights.sum() // 2)
        result = solve(equation, time_limit=0.0)
        assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
        assert (result.plan, result.objective) == (None, None)
        # CP-SAT's own bound is 0.0 here by default, which is right by chance only; the columns' ranges prove as much.
        assert result.bound == 0.0
    rewarded = solve(knapsack(3), time_limit=0.0)
    assert rewarded.bound >= knapsack(3).objective.sum() * (1 - 1e-12)


def test_a_time_limit_with_an_incumbent():
    program = knapsack(4, size=60)
    result = until_incumbent(lambda limit: solve(program, time_limit=limit, rel_gap=0.0), 1.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert 0 < result.gap < 0.2
    assert result.residuals.worst == 0.0
    assert result.wall_time < SOON_S
    assert result.history[-2].objective == result.objective


def test_the_gap_asked_for_ends_the_search():
    program = knapsack(4, size=60)
    result = solve(program, rel_gap=0.05)
    assert (result.termination.reason, result.termination.limit) == (Reason.OPTIMAL, None)
    assert 1e-9 < result.gap <= 0.05
    absolute = solve(program, rel_gap=0.0, abs_gap=100.0)
    assert absolute.termination.reason is Reason.OPTIMAL
    assert 1e-6 < absolute.bound - absolute.objective <= 100.0
    # An objective far below 1, where CP-SAT takes a relative gap for an absolute one.
    small = replace(program, objective=program.objective * 1e-6)
    result = solve(small, rel_gap=0.05)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.gap <= 0.05


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_seed_gives_the_same_result(threads):
    program = knapsack(5, size=60)
    results = [
        solve(program, threads=threads, seed=seed, rel_gap=0.0, **own(max_deterministic_time=0.05))
        for seed in (1, 1, 0, 2)
    ]
    outcomes = [(result.objective, result.bound, *result.plan["x"]) for result in results]
    assert outcomes[0] == outcomes[1]
    assert len(set(outcomes)) > 1
    assert results[2].seed == 0
    assert {result.termination.limit for result in results} == {Limit.ITERATIONS}


def test_a_warm_start_is_taken():
    program = knapsack(6, size=60)
    good = solve(program, rel_gap=0.03)
    again = solve(program, warm_start=good.plan, time_limit=0.0)
    assert again.notes == (f"warm start accepted, objective {good.objective:.12g}",)
    assert again.objective == good.objective
    first = solve(program, warm_start=good.plan, **own(stop_after_first_solution=True))
    assert first.objective == good.objective
    assert first.termination.limit is Limit.SOLUTIONS


def test_a_warm_start_in_part_or_broken():
    build = eq.ProgramBuilder(sense="max")
    x, y = build.add_binaries("x", (4,)), build.add_binaries("y", (4,))
    build.add_rows("row", (1,), terms=[(0, x, [4, 2, 2, 1]), (0, y, 1.0)], upper=6)
    build.set_objective([(x, [5.0, 3, 3, 1]), (y, 0.1)])
    part = solve(build.program(), warm_start={"x": [0, 1, 1, 1]})
    assert part.notes == ("warm start: 4 of 8 columns given, CP-SAT completes the rest",)
    assert part.objective == pytest.approx(8.0)
    broken = solve(build.program(), warm_start={"x": np.ones(4), "y": np.ones(4)})
    assert broken.notes == ("warm start violates the program by 7: CP-SAT may repair or drop it",)
    assert broken.objective == pytest.approx(8.0)


# -- Its process -------------------------------------------------------------------------------------------------------


def test_an_old_ortools_is_not_used(monkeypatch):
    monkeypatch.setattr("equipoise.solvers.backend._installed", lambda name: "9.14.6206")
    with pytest.raises(eq.BackendUnavailable, match=r"ortools 9.14.6206 is too old: pip install 'ortools>=9.15'"):
        solve(knapsack(7, size=5))


def test_ortools_is_not_loaded_here_nor_highspy_by_the_backend():
    solve(knapsack(7, size=5))
    assert "ortools" not in sys.modules
    script = (
        "import sys, numpy as np, equipoise as eq\n"
        "from equipoise.solvers.backend import Task\n"
        "from equipoise.solvers.external.ortools.backend import BACKEND\n"
        "build = eq.ProgramBuilder(sense='max')\n"
        "build.set_objective([(build.add_binaries('x', (3,)), [1.0, 2.0, 3.0])])\n"
        "program = build.program()\n"
        "answer = BACKEND.solve(Task(problem=program, form='matrix', program=program), eq.Options(), lambda *_: None)\n"
        "assert answer.bound == 6.0 and answer.values.tolist() == [1, 1, 1]\n"
        "assert 'ortools' in sys.modules and 'highspy' not in sys.modules\n"
    )
    path = ":".join(entry for entry in sys.path if entry)
    run = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
