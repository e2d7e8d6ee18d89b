"""Solvers behind Pyomo against closed forms, enumeration and finite differences; their options, words and traces."""

import itertools
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from patience import SOON_S, until_incumbent

import equipoise as eq
from equipoise.solvers.backend import Claim
from equipoise.solvers.external.pyomo.backend import KNOWN, backend
from equipoise.solvers.external.pyomo.cbc import outcome as cbc_outcome
from equipoise.solvers.external.pyomo.cbc import take_digits
from equipoise.solvers.external.pyomo.glpk import outcome as glpk_outcome

pyo = pytest.importorskip("pyomo.environ", reason="pyomo is not installed")

Reason, Limit = eq.Reason, eq.Limit
INF = math.inf
LINEAR = ["pyomo:glpk", "pyomo:cbc", "pyomo:highs", "pyomo:ipopt"]
INTEGER = LINEAR[:3]
senses = pytest.mark.parametrize("sense", ["max", "min"])


def needs(name):
    """Skip where the solver of this name is missing."""
    found = backend(name).probe()
    if not found.usable:
        pytest.skip(found.reason)


@pytest.fixture(params=LINEAR)
def linear(request):
    needs(request.param)
    return request.param


@pytest.fixture(params=INTEGER)
def integer(request):
    needs(request.param)
    return request.param


@pytest.fixture
def glpk():
    needs("pyomo:glpk")
    return "pyomo:glpk"


@pytest.fixture
def cbc():
    needs("pyomo:cbc")
    return "pyomo:cbc"


@pytest.fixture
def ipopt():
    needs("pyomo:ipopt")
    return "pyomo:ipopt"


@pytest.fixture(autouse=True)
def no_trace(tmp_path, monkeypatch, capfd):
    """Nothing is left in the folder of temporary files, nor in the working one, and nothing printed unasked."""
    temporary, working = tmp_path / "temporary", tmp_path / "working"
    temporary.mkdir()
    working.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(working)
    yield
    assert list(temporary.rglob("*")) == []
    assert list(working.rglob("*")) == []
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == ""


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


def knapsack(seed, size=12, *, sense="max", scale=1.0, offset=0.0):
    rng = np.random.default_rng(seed)
    weights = rng.integers(5, 30, (2, size))
    half = weights.sum(axis=1) // 2
    sides = (-INF, half) if sense == "max" else (half, INF)
    return dense(sense, scale * rng.integers(5, 30, size), weights, *sides, upper=1.0, integer=True, offset=offset)


def hard(rows=30, size=60):
    """A program of many near-optimal points, which none of these solvers closes in seconds."""
    rng = np.random.default_rng(0)
    weights = rng.integers(5, 1000, (rows, size))
    worth = weights.sum(axis=0) / rows + rng.integers(0, 100, size)
    return dense("max", worth, weights, -INF, weights.sum(axis=1) // 2, upper=1.0, integer=True)


def without_incumbent():
    """Return four equality knapsacks of 50 items, and one solution: none is found in seconds."""
    rng = np.random.default_rng(0)
    weights, solution = rng.integers(0, 100, (4, 50)), rng.integers(0, 2, 50).astype(float)
    sides = weights @ solution
    return dense("max", rng.integers(0, 100, 50), weights, sides, sides, upper=1.0, integer=True), solution


def enumerated(program):
    """The best objective over all 0/1 points."""
    points = np.array(list(itertools.product((0.0, 1.0), repeat=program.num_columns)))
    activity = points @ program.to_scipy().toarray().T
    fits = ((activity >= program.row_lower - 1e-9) & (activity <= program.row_upper + 1e-9)).all(axis=1)
    values = points[fits] @ program.objective + program.offset
    return values.max() if program.sense == "max" else values.min()


# -- Linear programs ---------------------------------------------------------------------------------------------------


def test_a_closed_form_with_offset_and_duals(linear):
    program = dense("max", [1, 4], [[1, 1]], -INF, [5], upper=[3, 10], offset=7.0)
    result = eq.solve(program, linear, rel_gap=1e-6)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(27)
    assert result.bound == pytest.approx(27)
    np.testing.assert_allclose(result.duals["row"], [4], atol=1e-6)
    np.testing.assert_allclose(result.reduced_costs["x"], [-3, 0], atol=1e-6)


@senses
def test_duals_are_finite_differences(linear, sense):
    flip = 1.0 if sense == "max" else -1.0
    lower, upper = np.array([0.0, -INF, 2.0, -1.0]), np.array([4.0, INF, 9.0, 1.5])
    sides = (np.array([-INF, -3.0, 6.0, -20.0]), np.array([10.0, INF, 6.0, 50.0]))  # above, below, equal, a range
    matrix = np.array([[1, 2, 0.5, 1], [1, -1, 0, 1], [1, 1, 1, 0], [2, 0.5, 3, -4]])
    objective = flip * np.array([3.0, 2.0, 1.0, 4.0])

    def best(row_lower=sides[0], row_upper=sides[1]):
        program = dense(sense, objective, matrix, row_lower, row_upper, lower=lower, upper=upper)
        return eq.solve(program, "highs").objective

    program = dense(sense, objective, matrix, *sides, lower=lower, upper=upper)
    result = eq.solve(program, linear, rel_gap=1e-7)
    assert result.termination.reason is Reason.OPTIMAL
    step, rates = 1e-4, []
    for i in range(4):
        moved = np.eye(4)[i] * step
        rates.append((best(sides[0] + moved, sides[1] + moved) - best()) / step)
    np.testing.assert_allclose(result.duals["row"], rates, atol=1e-5)
    np.testing.assert_allclose(result.reduced_costs["x"], objective - matrix.T @ rates, atol=1e-5)
    assert np.abs(rates).max() > 0.5


def test_a_range_that_binds_below_and_one_that_binds_above(linear):
    program = dense("min", [1, -1], np.eye(2), [2, 1], [5, 4], lower=-INF)
    result = eq.solve(program, linear, rel_gap=1e-7)
    np.testing.assert_allclose(result.plan["x"], [2, 4], atol=1e-5)
    np.testing.assert_allclose(result.duals["row"], [1, -1], atol=1e-6)


def test_rows_that_say_nothing_have_a_dual_of_zero(linear):
    program = dense("max", [2.0], [[1.0], [0.0], [1.0]], [-INF, -1, -INF], [3, 1, INF])
    result = eq.solve(program, linear, rel_gap=1e-7)
    np.testing.assert_allclose(result.duals["row"], [2, 0, 0], atol=1e-6)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_all_digits_of_a_linear_solution_arrive(linear, size):
    rng = np.random.default_rng(2)
    matrix = rng.random((5, 8)) * 100
    program = dense("max", rng.random(8) * size, matrix, -INF, np.full(5, 1e6 / 7), upper=1e5 / 3)
    result = eq.solve(program, linear, rel_gap=1e-6, feasibility_tol=1e-7)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(eq.solve(program, "highs").objective, rel=2e-6)


# -- Integer programs --------------------------------------------------------------------------------------------------


@senses
def test_integer_programs_against_enumeration(integer, sense):
    for seed in range(5):
        program = knapsack(seed, size=9, sense=sense, offset=-3.5)
        result = eq.solve(program, integer, rel_gap=0.0)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(enumerated(program), abs=1e-9)
        assert result.bound == pytest.approx(result.objective, abs=1e-9)
        assert result.duals is None


@pytest.mark.parametrize("scale", [1e-7, 0.137, 1e6])
def test_an_optimum_is_one_however_small_the_objective(integer, scale):
    for seed in range(2):
        program = knapsack(seed, scale=scale)
        result = eq.solve(program, integer, rel_gap=1e-6)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(enumerated(program), rel=1e-6)


def test_whole_numbers_between_bounds_that_are_not(integer):
    program = dense(
        "max", [1, -1, 2], [[1, 1, 1]], -INF, [8.5], lower=[0.5, -2.5, -3.0], upper=[2.5, 9, 7.2], integer=True
    )
    result = eq.solve(program, integer)
    assert result.termination.reason is Reason.OPTIMAL
    np.testing.assert_array_equal(result.plan["x"], [2, -2, 7])


def test_no_whole_number_between_its_bounds(integer):
    result = eq.solve(dense("max", [1, 1], [[1, 1]], -INF, [9], lower=[0, 0.2], upper=[1, 0.8], integer=True), integer)
    assert result.termination.reason is Reason.INFEASIBLE
    assert result.termination.message == "column 1 is integer, and none is in [0.2, 0.8]"


def test_mixed_columns(integer):
    program = dense(
        "min", [3, 1.5, 2], [[1, 1, 0], [0, 1, 1]], [2.5, 1.25], INF, upper=[9, 1.1, 9], integer=[True, False, False]
    )
    result = eq.solve(program, integer, rel_gap=1e-7)
    assert result.objective == pytest.approx(7.95)  # two whole ones, 1.1 of the second, 0.15 of the third
    np.testing.assert_allclose(result.plan["x"], [2, 1.1, 0.15] if result.plan["x"][0] == 2 else result.plan["x"])


@pytest.mark.parametrize("rel_gap", [1e-1, 1e-3])
def test_the_bound_is_right_whatever_gap_is_asked_for(integer, rel_gap):
    for seed in range(3):
        program = knapsack(seed)
        best = enumerated(program)
        result = eq.solve(program, integer, rel_gap=rel_gap)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.gap <= rel_gap
        assert result.objective <= best + 1e-9 <= result.bound + 2e-9
        absolute = eq.solve(replace(program, gap_unit=10.0), integer, rel_gap=rel_gap)
        assert absolute.termination.reason is Reason.OPTIMAL
        assert absolute.bound >= best - 1e-9
        assert absolute.bound - absolute.objective <= 10 * rel_gap + 1e-9


# -- Other outcomes ----------------------------------------------------------------------------------------------------


def test_infeasible(linear):
    result = eq.solve(dense("max", [1, 1], [[1, 1], [1, 1]], [-INF, 2], [1, INF]), linear)
    assert result.termination.reason is Reason.INFEASIBLE
    assert result.plan is None


def test_unbounded(linear):
    result = eq.solve(dense("max", [1, 1], [[1, -1], [1, 1]], [-INF, 3], [1, INF]), linear)
    assert result.termination.reason is Reason.UNBOUNDED
    assert result.plan is None


@pytest.mark.parametrize("upper", [3.0, 300.5])
def test_infeasible_in_whole_numbers(integer, upper):
    program = dense("max", [1, 1], [[2, 2]], [upper], [upper], upper=10, integer=True)
    assert eq.solve(program, integer).termination.reason is Reason.INFEASIBLE


def test_unbounded_in_whole_numbers(integer):
    program = dense("max", [1, 1], [[1, -1], [1, 1]], [-INF, 3], [1, INF], integer=True)
    assert eq.solve(program, integer).termination.reason is Reason.UNBOUNDED


def test_neither_bounded_nor_feasible(integer):
    """The relaxation is unbounded, but no whole numbers fit: infeasible, and not without end."""
    program = dense("max", [0, 1], [[2, 0]], [1], [1], upper=[9, INF], integer=True)
    assert eq.solve(program, integer).termination.reason is Reason.INFEASIBLE


def test_without_rows(linear):
    result = eq.solve(dense("max", [2, -3], [], (), (), lower=-1, upper=5), linear, rel_gap=1e-6)
    np.testing.assert_allclose(result.plan["x"], [5, -1], atol=1e-5)
    nothing = eq.solve(dense("min", [0, 0], [], (), (), lower=-1, upper=5, offset=2.0), linear)
    assert (nothing.termination.reason, nothing.objective, nothing.bound) == (Reason.OPTIMAL, 2.0, 2.0)


def test_no_time_at_all(linear):
    result = eq.solve(dense("max", [1, 4], [[1, 1]], -INF, [5], upper=[3, 10]), linear, time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert "the time was over before" in result.termination.message


def test_a_limit_with_an_incumbent(integer):
    program = hard()
    result = until_incumbent(lambda limit: eq.solve(program, integer, time_limit=limit, rel_gap=1e-9), 0.4)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert program.residuals_at(result.plan["x"]).worst <= 1e-6
    assert result.objective < result.bound < 20_000
    assert result.wall_time < SOON_S


def test_a_limit_without_an_incumbent(integer):
    result = eq.solve(without_incumbent()[0], integer, time_limit=0.4)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert result.plan is None
    assert result.bound < 3000  # the relaxation's, not garbage
    assert result.wall_time < SOON_S


def pretend(monkeypatch, folder, program, otherwise):
    """Put a program on PATH that states a version, and else does something else than solve."""
    path = folder / program
    path.write_text(f'#!/bin/sh\ncase "$*" in -quit|-stop|--version) echo version 5.1.2 ;; *) {otherwise} ;; esac\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_solver_that_ignores_its_limit_is_ended(tmp_path, monkeypatch):
    pretend(monkeypatch, tmp_path, "cbc", "exec /bin/sleep 60")
    result = eq.solve(knapsack(0), "pyomo:cbc", time_limit=0.3)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert "CBC did not stop at the time limit, and was ended" in result.termination.message
    assert result.wall_time < SOON_S


def test_a_program_that_fails_is_numerical_and_says_how(tmp_path, monkeypatch):
    pretend(monkeypatch, tmp_path, "glpsol", "echo broken pipes; exit 3")
    result = eq.solve(knapsack(0), "pyomo:glpk")
    assert result.termination.reason is Reason.NUMERICAL
    assert "GLPK failed" in result.termination.message
    assert "broken pipes" in result.termination.message


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupt_ends_the_solver_and_clears_up(cbc, tmp_path):
    script = (
        "import sys, equipoise as eq\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_backend import hard\n"
        "print('ready', flush=True)\n"
        "eq.solve(hard(), 'pyomo:cbc', rel_gap=1e-9)\n"
    )
    folder = tmp_path / "child"
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 20
    while not list(folder.rglob("*.lp")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)  # the solver has started
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in said
    assert list(folder.rglob("*")) == []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(folder).encode() not in process.read_bytes()
        except OSError:
            continue


# -- Words of the solvers, as they were said ---------------------------------------------------------------------------


def test_glpks_last_words():
    program = knapsack(0)
    whole = "GLPK Integer Optimizer 5.0\nOPTIMAL LP SOLUTION FOUND\n"

    def read(text, has_solution=True):
        found = glpk_outcome(program, text, has_solution)
        return found.claim, found.limit, found.has_point, found.bound

    line = "+ 24929: mip =   1.673510000e+04 <=   1.735064671e+04   3.7% (3388; 351)\n"
    time_up = "TIME LIMIT EXCEEDED; SEARCH TERMINATED\n"
    bound = pytest.approx(17350.64671, rel=2e-9)
    assert read(whole + line + time_up) == (Claim.STOPPED, Limit.TIME, True, bound)
    none = "+    57: mip =     not found yet <=              +inf        (1; 0)\n"
    assert read(whole + none + time_up, False) == (Claim.STOPPED, Limit.TIME, False, None)
    assert read(whole + line + "RELATIVE MIP GAP TOLERANCE REACHED; SEARCH TERMINATED\n")[0] is Claim.SOLVED
    # The relaxation's verdict is not the program's, and a basis left by the limit is not optimal.
    assert read(whole)[0] is Claim.FAILED
    assert read("OPTIMAL LP SOLUTION FOUND\n")[0] is Claim.SOLVED
    assert read("OPTIMAL LP SOLUTION FOUND\n", False)[0] is Claim.FAILED
    assert read("PROBLEM HAS NO PRIMAL FEASIBLE SOLUTION\n", False)[0] is Claim.INFEASIBLE
    assert read("PROBLEM HAS NO DUAL FEASIBLE SOLUTION\n", False)[0] is Claim.INFEASIBLE_OR_UNBOUNDED
    assert read("LP HAS UNBOUNDED PRIMAL SOLUTION\n", False)[0] is Claim.UNBOUNDED
    assert read("NUMERIC INSTABILITY; SEARCH TERMINATED\n")[0] is Claim.FAILED
    assert read("", False)[0] is Claim.FAILED


def cbc_said(log, condition, status):
    from pyomo.opt import SolverResults

    results = SolverResults()
    results.solver.termination_condition = condition
    if status:
        results.solution.add().status = status
    return cbc_outcome(knapsack(0), results, log)


def test_cbcs_words_at_a_limit():
    partial = "Cbc0005I Partial search - best objective {} (best possible -17397.054), took 1 iterations and 5 nodes\n"
    stopped = "Result - Stopped on {} limit\n"
    found = cbc_said(partial.format(-16752.067) + stopped.format("node"), "maxEvaluations", "stoppedByLimit")
    assert (found.claim, found.limit, found.has_point) == (Claim.STOPPED, Limit.NODES, True)
    assert found.bound == pytest.approx(17397.054, rel=2e-7)
    assert found.bound > 17397.054
    # The relaxation's point stands in the solution file: it is none.
    log = partial.format("1e+50") + stopped.format("time") + "\nNo feasible solution found\n"
    for status in ("other", "stoppedByLimit"):
        found = cbc_said(log, "intermediateNonInteger", status)
        assert (found.limit, found.has_point) == (Limit.TIME, False)
    early = "(best possible -1e+50)\n" + stopped.format("time")
    assert cbc_said(early, "maxTimeLimit", "stoppedByLimit").bound is None


def test_cbcs_optimum_within_a_gap_has_the_bound_that_it_left():
    log = (
        "Cbc0011I Exiting as integer gap of 182.06025 less than 1e-10 or 3%\n"
        "Cbc0001I Search completed - best objective -11974.8, took 0 iterations and 0 nodes (0.02 seconds)\n"
        "Result - Optimal solution found (within gap tolerance)\n"
    )
    assert cbc_said(log, "optimal", "optimal").bound == pytest.approx(11974.8 + 182.06025, rel=1e-7)


def test_cbc_saying_infeasible_is_not_believed_of_what_may_be_unbounded():
    assert cbc_said("Problem is infeasible\n", "infeasible", "").claim is Claim.INFEASIBLE_OR_UNBOUNDED
    searched = "Continuous objective value is 1.5\nResult - Problem proven infeasible\n"
    assert cbc_said(searched, "infeasible", "").claim is Claim.INFEASIBLE
    unsure = "Continuous objective value is 1e15\nPre-processing says infeasible or unbounded\n"
    assert cbc_said(unsure, "infeasible", "").claim is Claim.INFEASIBLE_OR_UNBOUNDED


def test_cbcs_saved_doubles_replace_the_printed_digits():
    from pyomo.opt import SolverResults

    saved = np.array([2, 2], dtype=np.int32).tobytes()
    exact = [1.0, 14285.714285714286, 3.0, 0.0047122339123, -0.25, 42.254369551, 0.0, 0.0, 0.0]
    saved += np.array(exact).tobytes()
    printed = (
        "Optimal - objective value 1\n"
        "      0 c_u_x1_       14285.714             0.0047122339\n"
        "**    1 r_l_x2_               3                    -0.25\n"
        "      0 x3             42.25437                        0\n"
        "      1 x4                    0                        0\n"
    )
    solution = SolverResults().solution.add()
    solution.variable["x3"] = {"Value": 42.25437}
    solution.constraint["c_u_x1_"] = {"Dual": -0.0047122339}  # turned over, as Pyomo does for an old CBC
    solution.constraint["r_l_x2_"] = {"Dual": -0.25}
    take_digits(solution, printed, saved)
    assert solution.variable["x3"]["Value"] == 42.254369551
    assert solution.constraint["c_u_x1_"]["Dual"] == -0.0047122339123
    assert solution.constraint["r_l_x2_"]["Dual"] == -0.25


# -- Options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("pyomo:glpk", {"threads": 2}),
        ("pyomo:glpk", {"seed": 3}),
        ("pyomo:glpk", {"warm_start": {"x": np.zeros(12)}}),
        ("pyomo:ipopt", {"threads": 2}),
        ("pyomo:ipopt", {"seed": 3}),
    ],
)
def test_what_a_solver_cannot_honour_is_refused(name, option):
    program = knapsack(0) if name == "pyomo:glpk" else dense("max", [1.0] * 12, [[1.0] * 12], -INF, [1])
    with pytest.raises(eq.InvalidInput, match="cannot honour it"):
        eq.solve(program, name, **option)


@pytest.mark.parametrize(
    ("name", "own", "words"),
    [
        ("pyomo:glpk", {"mipgap": 0.1}, "use rel_gap= instead"),
        ("pyomo:glpk", {"tmlim": 3}, "use time_limit= instead"),
        ("pyomo:glpk", {"cutz": True}, "its options are adv, amd, bestb"),
        ("pyomo:glpk", {"nomip": True}, "its options are "),
        ("pyomo:glpk", {"cuts": "on"}, "a switch has no value: give True, or leave it out"),
        ("pyomo:cbc", {"ratioGap": 0.1}, "use rel_gap= instead"),
        ("pyomo:cbc", {"sec": 0.1}, "use time_limit= instead"),
        ("pyomo:cbc", {"THREADS": 2}, "use threads= instead"),
        ("pyomo:cbc", {"direction": "min"}, "the program has its sense"),
        ("pyomo:cbc", {"presolv": "off"}, "CBC does not take this option or value: Short match"),
        ("pyomo:cbc", {"foo": 3}, "CBC does not take this option or value: No match for foo"),
        (
            "pyomo:cbc",
            {"presolve": "sideways"},
            "CBC does not take this option or value: <Possible",
        ),
        ("pyomo:cbc", {"maxNodes": "many"}, "CBC does not take this option or value: String of many is illegal"),
        ("pyomo:cbc", {"maxNodes": -5}, "CBC does not take this option or value: -5 was provided"),
        ("pyomo:cbc", {"initialSolve": ""}, "CBC's actions are no options"),
        ("pyomo:highs", {"mip_rel_gap": 0.1}, "use rel_gap= instead"),
        ("pyomo:highs", {"presolv": "off"}, "HiGHS does not take this option or value"),
        ("pyomo:highs", {"presolve": "sideways"}, "HiGHS does not take this option or value"),
        ("pyomo:ipopt", {"max_wall_time": 1.0}, "use time_limit= instead"),
        ("pyomo:ipopt", {"toll": 1e-3}, "Ipopt does not take this option or value"),
        ("pyomo:ipopt", {"tol": "tight"}, "Ipopt does not take this option or value"),
        ("pyomo:ipopt", {"tol": "1 2"}, "Ipopt's options are words"),
        ("pyomo:ipopt", {"option_file_name": "x"}, "Pyomo sets it"),
    ],
)
def test_own_options_that_are_wrong(name, own, words):
    needs(name)
    program = dense("max", [1, 4], [[1, 1]], -INF, [5], upper=[3, 10], integer=name != "pyomo:ipopt")
    with pytest.raises(eq.InvalidInput) as caught:
        eq.solve(program, name, backend_options={name: own})
    (option,) = own
    assert str(caught.value).startswith(f"backend_options['{name}']['{option}'] = ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("pyomo:glpk", {"cuts": True, "fpump": True, "nointopt": True}),
        ("pyomo:cbc", {"presolve": "off", "cuts": "off", "maxNodes": 10_000}),
        ("pyomo:highs", {"presolve": "off"}),
    ],
)
def test_own_options_that_are_right(name, own):
    needs(name)
    program = knapsack(1)
    result = eq.solve(program, name, backend_options={name: own})
    assert result.objective == pytest.approx(enumerated(program))


def test_an_own_limit_of_nodes(cbc):
    result = eq.solve(hard(10, 40), cbc, rel_gap=1e-9, backend_options={cbc: {"maxNodes": 1}})
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.NODES)


@pytest.mark.parametrize("name", INTEGER)
def test_the_log_goes_to_standard_output_when_asked(name, capfd):
    needs(name)
    eq.solve(knapsack(0), name, log=True)
    words = {"pyomo:glpk": "INTEGER OPTIMAL SOLUTION FOUND", "pyomo:cbc": "Search completed", "pyomo:highs": "Status"}
    assert words[name] in capfd.readouterr().out


def test_one_seed_one_result_and_threads(cbc):
    plans = [eq.solve(hard(6, 30), cbc, seed=seed, rel_gap=0.03).plan["x"] for seed in (7, 7, 2**31 - 1)]
    np.testing.assert_array_equal(plans[0], plans[1])
    assert eq.solve(knapsack(0), cbc, threads=2).objective == pytest.approx(enumerated(knapsack(0)))


def test_highs_takes_another_number_of_threads_in_one_process():
    needs("pyomo:highs")
    for threads in (1, 2, 1):
        result = eq.solve(knapsack(0), "pyomo:highs", threads=threads)
        assert result.objective == pytest.approx(enumerated(knapsack(0)))


def pyomo_hands_starts_to_highs():
    from pyomo.contrib.appsi.solvers import Highs

    return "warmstart" in Highs().config


@pytest.mark.parametrize(
    ("name", "rest"), [("pyomo:cbc", "CBC completes the rest"), ("pyomo:highs", "the others count as 0")]
)
def test_a_warm_start_is_where_the_search_begins(name, rest):
    needs(name)
    if name == "pyomo:highs" and not pyomo_hands_starts_to_highs():
        with pytest.raises(eq.InvalidInput, match="this Pyomo hands none to HiGHS: pip install -U pyomo"):
            eq.solve(knapsack(0), name, warm_start={"x": np.zeros(12)})
        return
    program, solution = without_incumbent()
    result = eq.solve(program, name, warm_start={"x": solution}, time_limit=0.7)
    worth = program.objective_at(solution)
    assert result.objective >= worth
    assert result.notes[0] == f"warm start accepted, objective {worth:.12g}"
    some = eq.solve(knapsack(0), name, warm_start={"x": np.where(np.arange(12) < 5, 0.0, np.nan)})
    assert some.notes[0] == f"warm start: 5 of 12 columns given, {rest}"


def test_cbc_says_what_became_of_a_start_that_fits_nothing(cbc):
    result = eq.solve(knapsack(0), cbc, warm_start={"x": np.ones(12)})
    assert result.objective == pytest.approx(enumerated(knapsack(0)))
    assert "warm start dropped: CBC could build no solution of it" in result.notes
    program = dense("max", [1, 4], [[1, 1]], -INF, [5], upper=[3, 10])
    linear = eq.solve(program, cbc, warm_start={"x": np.zeros(2)})
    assert "warm start not used: CBC takes one for integer programs only" in linear.notes


# -- Ipopt -------------------------------------------------------------------------------------------------------------


def test_a_market_of_two_buyers(ipopt):
    """One good, budgets 1 and 3: it is shared in proportion, at the price of all budgets."""
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,))
    build.add_rows("supply", (1,), terms=[(0, x, 1.0)], upper=2.0)
    build.add_logs([1.0, 3.0], terms=[(np.arange(2), x, [5.0, 7.0])])
    program = build.program()
    for scale in (1e-6, 1.0, 1e6):
        scaled = replace(program, log_weights=program.log_weights * scale)
        result = eq.solve(scaled, ipopt, rel_gap=1e-7)
        assert result.termination.reason is Reason.OPTIMAL
        assert "the bound is the backend's word: it gave no duals to prove it" not in result.notes
        np.testing.assert_allclose(result.plan["x"], [0.5, 1.5], rtol=1e-5)
        np.testing.assert_allclose(result.duals["supply"], [2.0 * scale], rtol=1e-5)
        assert result.objective == pytest.approx(scale * (math.log(2.5) + 3 * math.log(10.5)), rel=1e-7)


def test_logarithms_whose_domain_does_not_hold_zero(ipopt):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows("row", (2,), terms=[(0, x, [1.0, 2.0]), (1, x, [1.0, -1.0])], upper=[-1.0, 10.0])
    build.add_logs([1.0, 2.0, 0.0], terms=[(0, x[0], 1.0), (1, x, [1.0, -0.5]), (2, x[0], -1.0)], offsets=[0, -3.0, 0])
    result = eq.solve(build.program(), ipopt, rel_gap=1e-8)
    assert result.termination.reason is Reason.OPTIMAL
    np.testing.assert_allclose(result.plan["x"], [19 / 3, -11 / 3], rtol=1e-5)


def test_ipopt_stopped_early_still_proves_a_bound_if_it_can(ipopt):
    program = dense("max", [1, 4], [[1, 1]], -INF, [5], upper=[3, 10])
    result = eq.solve(program, ipopt, backend_options={ipopt: {"max_iter": 3}})
    assert (result.termination.limit, result.termination.reason) == (Limit.ITERATIONS, Reason.FEASIBLE)
    assert 20 <= result.bound < 60
    assert result.objective < 20


# -- The family --------------------------------------------------------------------------------------------------------


def test_a_name_that_pyomo_does_not_know():
    with pytest.raises(eq.BackendNotFound) as caught:
        eq.solve(knapsack(0), "pyomo:gplk")
    assert str(caught.value).startswith("no backend 'pyomo:gplk': did you mean 'pyomo:glpk'? Pyomo knows ")
    assert "pyomo:highs, pyomo:cbc, pyomo:glpk, pyomo:ipopt and others" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pyomo:glpk", "glpsol, GLPK's program, is not on PATH: apt-get install glpk-utils"),
        ("pyomo:cbc", "cbc, CBC's program, is not on PATH: apt-get install coinor-cbc"),
        ("pyomo:ipopt", "ipopt, Ipopt's program, is not on PATH: conda install -c conda-forge ipopt"),
    ],
)
def test_an_executable_that_is_missing(name, words, monkeypatch):
    monkeypatch.setenv("PATH", "")
    program = dense("max", [1.0], [[1.0]], -INF, [1])
    with pytest.raises(eq.BackendUnavailable) as caught:
        eq.solve(program, name)
    assert str(caught.value) == f"backend {name!r} cannot run here: {words}"


@pytest.mark.parametrize("name", ["pyomo:glpk", "pyomo:highs", "pyomo:mosek"])
def test_pyomo_that_is_missing(name, monkeypatch):
    for module in ("backend", "external.pyomo.backend"):
        monkeypatch.setattr(f"equipoise.solvers.{module}.find_spec", lambda wanted: None)
    found = backend(name).probe()
    assert (found.usable, found.reason) == (False, "pyomo is not installed: pip install 'equipoise[pyomo]'")


def test_highspy_that_is_missing(monkeypatch):
    monkeypatch.setattr("equipoise.solvers.backend.find_spec", lambda wanted: wanted == "pyomo" or None)
    assert backend("pyomo:highs").probe().reason == "highspy is not installed: pip install 'equipoise[pyomo]'"


def test_probing_again_starts_no_program_and_says_both_versions(linear, monkeypatch):
    backend(linear).probe()

    def started(*arguments, **options):
        raise AssertionError(f"a probe started {arguments}")

    monkeypatch.setattr(subprocess, "run", started)
    found = backend(linear).probe()
    title = KNOWN[linear].title
    assert title in found.version
    assert found.version[0].isdigit()


def test_a_solver_that_only_pyomo_knows():
    needs("pyomo:highs")
    other = "pyomo:appsi_highs"
    for program in (knapsack(0), knapsack(1, sense="min")):
        result = eq.solve(program, other)
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(enumerated(program))
        assert "gap and tolerances are those of appsi_highs: Pyomo has no one name for them" in result.notes
    program = dense("min", [1, 4], [[1, 1]], [5], INF, upper=[3, 10])
    result = eq.solve(program, other)
    np.testing.assert_allclose(result.duals["row"], [4])
    assert result.bound == pytest.approx(11)
    with pytest.raises(eq.InvalidInput, match="cannot honour it"):
        eq.solve(program, other, threads=2)
    assert eq.solve(program, other, time_limit=0.0).termination.limit is Limit.TIME


def test_programs_that_a_solver_cannot_read_are_refused(ipopt):
    with pytest.raises(eq.UnsupportedProblem, match="pyomo:ipopt cannot state this MILP program"):
        eq.solve(knapsack(0), ipopt)


def test_a_solver_that_pyomo_knows_and_does_not_find():
    with pytest.raises(eq.BackendUnavailable, match="Pyomo finds no conopt, its package or its program"):
        eq.solve(knapsack(0), "pyomo:conopt")
