"""A program as a gurobipy model: every array arrives, side constraints hold, and plans come back."""

import math
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.program.to_gurobi import gurobi_model, gurobi_values

gp = pytest.importorskip("gurobipy", reason="gurobipy is not installed")
GRB = gp.GRB
INF = math.inf


@pytest.fixture(scope="module")
def env():
    with gp.Env(params={"LogToConsole": 0}) as started:
        yield started


def mixed(sense="max"):
    """Blocks of every kind and shape, and rows of every kind, one of them a range and one without a side."""
    build = eq.ProgramBuilder(sense=sense)
    grant = build.add_binaries("grant", (2, 3), upper=[[1, 1, 0], [1, 1, 1]])
    spare = build.add_columns("spare", (), lower=-INF)
    level = build.add_columns("level", (2,), lower=[-4, 1], upper=[7, INF], integer=[True, False])
    build.add_rows("room", (3,), terms=[(np.arange(3), grant, [[2.0], [3.0]])], upper=[4, INF, 3])
    build.add_rows("tie", (1, 2), terms=[(np.arange(2), level, 1.0), (np.arange(2), spare, -1.5)], lower=0, upper=0)
    build.add_rows("band", (2,), terms=[(np.arange(2), level, [1.0, 2.0])], lower=[-3, 2], upper=[6, INF])
    build.set_objective([(grant, [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), (level, -0.25)], offset=1.5)
    return build.program()


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("names", [True, False])
def test_every_array_of_the_program_is_in_the_model(env, sense, names):
    program = mixed(sense)
    model = gurobi_model(program, env, names=names)
    columns = program.num_columns
    np.testing.assert_array_equal(model.getAttr("LB")[:columns], program.lower)
    np.testing.assert_array_equal(model.getAttr("UB")[:columns], program.upper)
    np.testing.assert_array_equal(model.getAttr("Obj")[:columns], program.objective)
    np.testing.assert_array_equal(np.array(model.getAttr("VType")[:columns]) != GRB.CONTINUOUS, program.integer)
    assert model.ObjCon == program.offset
    assert model.ModelSense == (GRB.MAXIMIZE if sense == "max" else GRB.MINIMIZE)
    np.testing.assert_array_equal(model.getA().toarray()[:, :columns], program.to_scipy().toarray())

    # One row has two sides: it equals a variable that has these for bounds, and no cost.
    assert model.NumVars == columns + 1
    extra = model.getVars()[-1]
    assert (extra.LB, extra.UB, extra.Obj) == (-3.0, 6.0, 0.0)
    np.testing.assert_array_equal(model.getA().toarray()[:, columns], [0, 0, 0, 0, 0, -1, 0])
    assert "".join(model.getAttr("Sense")) == "<<<===>"
    np.testing.assert_array_equal(model.getAttr("RHS"), [4, INF, 3, 0, 0, 0, 2])


def test_blocks_are_found_by_name(env):
    model = gurobi_model(mixed(), env)
    assert model._columns["grant"].shape == (2, 3)
    assert model._columns["spare"].shape == ()
    assert model._rows["tie"].shape == (1, 2)
    assert model.getVarByName("grant[1,2]").sameAs(model._columns["grant"][1, 2].item())
    assert model.getVarByName("level[0]").VType == GRB.INTEGER
    assert model.getVarByName("grant[0,0]").VType == GRB.BINARY
    assert model.getConstrByName("room[2]").RHS == 3.0
    np.testing.assert_array_equal(model._rows["band"].RHS, [0.0, 2.0])


def test_blocks_that_leave_columns_out_or_in_another_order_are_found_as_well(env):
    program = mixed()
    odd = replace(
        program,
        columns={"last": np.array([8, 6]), "first": np.array([0, 1]), "none": np.zeros(0, dtype=np.int64)},
        rows={"middle": np.array([3, 4])},
    )
    model = gurobi_model(odd, env)
    np.testing.assert_array_equal(model.getAttr("LB")[:9], program.lower)
    np.testing.assert_array_equal(model.getA().toarray()[:, :9], program.to_scipy().toarray())
    np.testing.assert_array_equal(model._columns["last"].LB, program.lower[[8, 6]])
    assert model.getVarByName("first[1]").index == 1
    assert model._columns["none"].shape == (0,)
    assert model._rows["middle"].shape == (2,)


def test_a_program_without_rows_or_without_columns(env):
    build = eq.ProgramBuilder(sense="max")
    nothing = gurobi_model(build.program(), env)
    assert (nothing.NumVars, nothing.NumConstrs) == (0, 0)
    x = build.add_columns("x", (2,), upper=[3.0, 4.0])
    build.set_objective([(x, [1.0, -1.0])])
    model = gurobi_model(build.program(), env)
    model.optimize()
    assert gurobi_values(build.program(), model).tolist() == [3.0, 0.0]


def test_a_small_window_with_a_side_constraint_gives_a_plan(env):
    jobs = [
        eq.WindowJob(id="a", gpus=2, finished_epochs=0, total_epochs=6, regimes=[eq.Regime(6, 100.0)]),
        eq.WindowJob(id="b", gpus=2, finished_epochs=1, total_epochs=5, regimes=[eq.Regime(4, 120.0)]),
        eq.WindowJob(id="c", gpus=1, finished_epochs=0, total_epochs=4, regimes=[eq.Regime(4, 90.0)]),
    ]
    window = eq.ScheduleWindow(jobs, gpus=3, rounds=4)
    program = window.program("time_indexed")
    model = gurobi_model(program, env)
    model.Params.MIPGap = 0.0
    model.optimize()
    free = window.decode(gurobi_values(program, model), None, "time_indexed")
    want = eq.solve(window, "highs", form="time_indexed", rel_gap=0.0)
    assert window.evaluate(free)[0] == pytest.approx(want.objective, abs=1e-9)
    assert free.grants[1].any()

    # "b" must wait for the last round: a line on the block of grants, and the plan obeys it.
    model.addConstr(model._columns["grant"][1, :3] == 0, name="wait")
    model.optimize()
    plan = window.decode(gurobi_values(program, model), None, "time_indexed")
    objective, residuals = window.evaluate(plan)
    assert not plan.grants[1, :3].any()
    assert objective <= want.objective + 1e-9
    assert residuals.worst <= 1e-6


def test_logarithms_are_native_and_exact(env):
    """Two buyers with money 1 and 2 for one good: they get 1/3 and 2/3 of it."""
    build = eq.ProgramBuilder(sense="max")
    share = build.add_columns("share", (2,))
    build.add_rows("supply", (), terms=[(0, share, 1.0)], upper=1.0)
    # A term that counts for nothing, and offsets, are there to be lost.
    build.add_logs([1.0, 0.0, 2.0], terms=[([0, 2], share, [3.0, 5.0])], offsets=[0.0, -7.0, 0.0])
    build.set_objective([(share, 0.0)], offset=0.5)
    program = build.program()
    model = gurobi_model(program, env)
    assert (model.NumVars, model.NumGenConstrs) == (4, 2)
    assert np.array(model.getAttr("Obj")).tolist() == [0.0, 0.0, 1.0, 2.0]
    model.Params.MIPGap = 1e-9
    model.Params.FeasibilityTol = 1e-9
    model.optimize()
    values = gurobi_values(program, model)
    best = math.log(3.0 / 3) + 2 * math.log(5.0 * 2 / 3) + 0.5
    assert model.ObjVal == pytest.approx(best, abs=1e-6)
    assert program.objective_at(values) == pytest.approx(best, abs=1e-6)
    assert values == pytest.approx([1 / 3, 2 / 3], abs=1e-3)


def test_an_offset_inside_a_logarithm_counts(env):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=10.0)
    build.add_rows("room", (), terms=[(0, x, 1.0)], upper=4.0)
    build.add_logs([1.0, 1.0], terms=[(np.arange(2), x, 1.0)], offsets=[2.0, 0.0])  # water filling: levels meet at 3
    program = build.program()
    model = gurobi_model(program, env)
    model.Params.MIPGap = 1e-8
    model.optimize()
    assert gurobi_values(program, model) == pytest.approx([1.0, 3.0], abs=1e-2)
    assert model.ObjVal == pytest.approx(2 * math.log(3.0), abs=1e-5)


def unsolvable(env, kind):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), integer=kind == "whole")
    build.add_rows("row", (1,), terms=[(0, x, [-1.0, 1.0])], upper=2.0)
    if kind == "never":
        build.add_rows("never", (1,), terms=[(0, x, [-1.0, 1.0])], lower=3.0)
    build.set_objective([(x, [0.0 if kind == "never" else 1.0, 0.0])])
    program = build.program()
    model = gurobi_model(program, env)
    model.Params.InfUnbdInfo = 1  # with it Gurobi answers X of an infeasible program
    return program, model


@pytest.mark.parametrize(
    ("kind", "status"), [("never", "INFEASIBLE"), ("endless", "UNBOUNDED"), ("whole", "UNBOUNDED"), ("early", "LOADED")]
)
def test_values_are_never_read_where_there_is_no_solution(env, kind, status):
    program, model = unsolvable(env, kind)
    if kind != "early":
        model.optimize()
    assert kind in ("early", "endless") or len(model.getAttr("X")) == 2  # zeros, or 1e30: Gurobi would hand them out
    with pytest.raises(eq.NoSolution, match=f"the model holds no solution: Gurobi's status is {status}$"):
        gurobi_values(program, model)


def test_a_model_of_another_program_is_refused(env):
    small = gurobi_model(eq.ProgramBuilder(sense="max").program(), env)
    with pytest.raises(eq.InvalidInput, match="too few variables for a program of 9 columns"):
        gurobi_values(mixed(), small)


def test_old_gurobipy_is_told_what_it_lacks(env, monkeypatch):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,), upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)])
    monkeypatch.delattr(gp, "nlfunc")
    with pytest.raises(eq.UnsupportedProblem, match=r"cannot state logarithms exactly: pip install 'gurobipy>=12'"):
        gurobi_model(build.program(), env)


def test_a_licence_that_does_not_work_is_said_in_words(tmp_path, monkeypatch):
    gp.disposeDefaultEnv()
    monkeypatch.setenv("GRB_LICENSE_FILE", str(tmp_path / "gone.lic"))
    with pytest.raises(eq.BackendUnavailable, match="Gurobi does not start: Unable to open Gurobi license file"):
        gurobi_model(mixed())


def test_many_binaries_arrive_without_a_loop(env):
    """Larger than the licence lets solve, but not build; the sums tell an entry that went astray."""
    build = eq.ProgramBuilder(sense="max")
    grant = build.add_binaries("grant", (300, 100))
    rng = np.random.default_rng(0)
    gpus = rng.integers(1, 9, size=(300, 1)).astype(float)
    build.add_rows("capacity", (100,), terms=[(np.arange(100), grant, gpus)], upper=64)
    build.add_rows("rounds", (300,), terms=[(np.arange(300)[:, None], grant, 1.0)], upper=7)
    build.set_objective([(grant, rng.random((300, 100)))])
    program = build.program()
    model = gurobi_model(program, env)
    assert (model.NumVars, model.NumConstrs, model.NumNZs) == (30_000, 400, 60_000)
    assert (model.getA() != program.to_scipy()).nnz == 0
    np.testing.assert_array_equal(model.getAttr("Obj"), program.objective)
    assert model.getVarByName("grant[299,99]").index == 29_999
