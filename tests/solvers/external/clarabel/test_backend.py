"""Clarabel against closed forms: allocations, prices, slopes, rays; its settings checked."""

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.bounds import proves_infeasible
from equipoise.validation.contract.programs import planted

pytest.importorskip("clarabel", reason="clarabel is not installed")
from equipoise.solvers.backend import Task
from equipoise.solvers.external.clarabel import backend as module

Reason = eq.Reason
INF = math.inf


def market(worth, budgets, capacity=1.0):
    """A Fisher market by Eisenberg and Gale: buyers share goods, the duals of the goods are their prices."""
    worth = np.asarray(worth, dtype=float)
    build = eq.ProgramBuilder(sense="max")
    share = build.add_columns("share", worth.shape)
    goods = np.arange(worth.shape[1])
    build.add_rows("good", (len(goods),), terms=[(goods, share, 1.0)], upper=capacity)
    build.add_logs(budgets, terms=[(np.arange(len(worth))[:, None], share, worth)])
    return build.program(gap_unit=float(np.sum(budgets)))


def solve(program, **options):
    return eq.solve(program, "clarabel", **{"rel_gap": 1e-8, **options})


def test_two_buyers_share_two_goods_at_the_prices_of_the_closed_form():
    """Buyer 0 wants good 0 twice as much: it takes all of it; the prices are the budgets."""
    result = solve(market([[2.0, 1.0], [1.0, 2.0]], [3.0, 5.0]))
    assert result.termination.reason is Reason.OPTIMAL
    # Good 1 costs more than good 0, but buyer 1 stays with it: 2 / 5 >= 1 / 3.
    assert result.duals["good"] == pytest.approx([3.0, 5.0], rel=1e-4)
    assert result.plan["share"] == pytest.approx(np.eye(2), abs=1e-4)
    assert result.objective == pytest.approx(8 * math.log(2.0), abs=1e-7)
    assert result.bound >= result.objective
    assert result.gap <= 1e-8


def test_a_good_is_shared_where_that_equalises_bang_per_buck():
    """Buyer 1 has nine tenths of the money: it buys all of good 1 and part of good 0, and both goods cost the same."""
    result = solve(market([[1.0, 1.0], [1.0, 1.0]], [1.0, 9.0]))
    assert result.duals["good"] == pytest.approx([5.0, 5.0], rel=1e-4)
    assert result.plan["share"].sum(axis=1) == pytest.approx([0.2, 1.8], rel=1e-4)


def test_slopes_are_the_change_of_the_optimum_inside_the_logarithm():
    program = market([[2.0, 1.0], [1.0, 3.0], [1.0, 1.0]], [1.0, 2.0, 1.5])
    answer = module.BACKEND.solve(Task(problem=program, form="matrix", program=program), eq.Options(), lambda *a: None)
    inside = program.log_matrix.times(answer.values)
    assert answer.slopes == pytest.approx(program.log_weights / inside, rel=1e-5)
    assert program.linear_bound(answer.duals, answer.slopes) >= program.objective_at(answer.values) - 1e-9


@pytest.mark.parametrize("sense", ["max", "min"])
def test_duals_are_the_change_of_the_optimum_per_unit_of_a_side(sense):
    flip = 1.0 if sense == "max" else -1.0

    def optimum(side):
        build = eq.ProgramBuilder(sense=sense)
        x = build.add_columns("x", (3,), lower=[0.0, -2.0, -INF], upper=[4.0, 5.0, INF])
        matrix = np.array([[1.0, 2.0, 1.0], [1.0, -1.0, 0.0], [0.0, 1.0, 1.0]])
        build.add_rows("row", (3,), terms=[(np.arange(3)[:, None], x, matrix)], lower=[-INF, -1.0, -9.0], upper=side)
        build.set_objective([(x, flip * np.array([3.0, 2.0, 2.5]))], offset=7.0)
        return solve(build.program())

    side, step = np.array([6.0, 8.0, 2.0]), 1e-3
    middle = optimum(side)
    for i in range(3):
        up, down = (optimum(side + sign * step * np.eye(3)[i]).objective for sign in (1, -1))
        assert middle.duals["row"][i] == pytest.approx((up - down) / (2 * step), abs=1e-4)


def test_an_infeasible_program_is_proved_so_by_its_ray():
    build = eq.ProgramBuilder(sense="min")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows(
        "row", (2,), terms=[(np.arange(2)[:, None], x, [[1.0, 1.0], [1.0, 1.0]])], lower=[3, -INF], upper=[INF, 2]
    )
    build.set_objective([(x, 1.0)])
    program = build.program()
    result = solve(program)
    assert result.termination.reason is Reason.INFEASIBLE
    assert "infeasibility is proved: multipliers of the rows, checked here" in result.notes
    answer = module.BACKEND.solve(Task(problem=program, form="matrix", program=program), eq.Options(), lambda *a: None)
    assert proves_infeasible(program, answer.ray)


def test_unbounded_and_infeasible_are_told_apart():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), lower=-INF)
    build.add_rows("apart", (1,), terms=[(0, x, [1.0, -1.0])], upper=1.0)
    build.set_objective([(x, 1.0)])
    assert solve(build.program()).termination.reason is Reason.UNBOUNDED
    build.add_rows("never", (1,), terms=[(0, x, [1.0, -1.0])], lower=2.0)
    assert solve(build.program()).termination.reason is Reason.INFEASIBLE


def test_a_logarithm_that_no_point_can_take_leaves_no_plan():
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,), upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)], offsets=-2.0)
    result = solve(build.program())
    assert result.plan is None
    assert result.termination.reason is Reason.INFEASIBLE


@pytest.mark.parametrize("kind", [eq.ProblemClass.LP, eq.ProblemClass.LOG])
def test_planted_optima_free_columns_ranges_and_equations(kind):
    for k in range(60):
        known = planted(np.random.default_rng([3, k]), kind, "min" if k % 2 and kind is eq.ProblemClass.LP else "max")
        result = solve(known.program, rel_gap=1e-7)
        assert result.termination.reason is Reason.OPTIMAL, (k, result)
        assert result.objective == pytest.approx(known.optimum, rel=1e-6, abs=1e-6)


def test_most_badly_scaled_programs_are_solved_and_no_bound_is_wrong():
    """Coefficients from 1e-6 to 1e6: not all gaps close, but what is said is true."""
    closed = 0
    for k in range(40):
        known = planted(np.random.default_rng([11, k]), eq.ProblemClass.LOG, "max", scaled=True)
        result = solve(known.program, rel_gap=1e-6)
        closed += result.termination.reason is Reason.OPTIMAL
        allowed = 1e-6 * (known.rate + abs(known.optimum))
        assert result.bound >= known.optimum - allowed
        assert result.objective is None or result.objective <= known.optimum + allowed
        assert result.termination.reason in (Reason.OPTIMAL, Reason.FEASIBLE, Reason.NO_SOLUTION_FOUND)
    assert closed >= 32


def test_solving_again_around_the_point_is_what_closes_the_gap(monkeypatch):
    def open_gaps():
        programs = (planted(np.random.default_rng([11, k]), eq.ProblemClass.LOG, "max", scaled=True) for k in range(40))
        return sum(solve(each.program, rel_gap=1e-6).termination.reason is not Reason.OPTIMAL for each in programs)

    several = open_gaps()
    monkeypatch.setattr(module, "MOST_ATTEMPTS", 1)
    assert several < open_gaps()


@pytest.mark.parametrize("kind", ["LP", "LOG"])
def test_no_time_at_all(kind):
    program = (
        market([[1.0]], [1.0])
        if kind == "LOG"
        else planted(np.random.default_rng(0), eq.ProblemClass.LP, "max").program
    )
    result = solve(program, time_limit=0.0)
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, eq.Limit.TIME)


def test_settings_are_passed_on_and_checked(capfd):
    program = market([[2.0, 1.0], [1.0, 2.0]], [3.0, 5.0])
    stopped = solve(program, backend_options={"clarabel": {"max_iter": 1}})
    assert stopped.termination.limit is eq.Limit.ITERATIONS
    for name, value in (("no_such_setting", 1), ("max_iter", "many"), ("max_iter", True), ("max_iter", -1), (3, 1)):
        with pytest.raises(eq.InvalidInput, match="clarabel"):
            solve(program, backend_options={"clarabel": {name: value}})
    for name, common in module.BACKEND.covered_options.items():
        with pytest.raises(eq.InvalidInput, match=f"use {common}= instead"):
            solve(program, backend_options={"clarabel": {name: 1}})
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        solve(program, warm_start={"share": np.zeros((2, 2))})
    assert capfd.readouterr().out == ""
    solve(program, log=True)
    assert "iter" in capfd.readouterr().out


def test_integers_are_refused_with_words():
    build = eq.ProgramBuilder(sense="max")
    build.add_binaries("x", (2,))
    with pytest.raises(eq.UnsupportedProblem, match="LP, LOG programs; use backend='highs'"):
        solve(build.program())
