"""LP and MPS files, read back by HiGHS: the same program, to the last bit of every number."""

import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import equipoise as eq
from equipoise.validation.strategies.programs import programs

highspy = pytest.importorskip("highspy")

INF = math.inf


def read(path):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


def write(program: eq.Program, path) -> None:
    (program.write_lp if path.suffix == ".lp" else program.write_mps)(path)


def optimum(solver) -> float:
    solver.setOptionValue("mip_rel_gap", 0.0)
    for tolerance in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
        solver.setOptionValue(tolerance, 1e-9)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value


def awkward(sense: str) -> eq.Program:
    """One of every kind of bound, row and column."""
    build = eq.ProgramBuilder(sense)
    x = build.add_columns(
        "x",
        (2, 3),
        lower=[[0.0, -INF, -2.5], [-INF, 1.5, -7.0]],
        upper=[[INF, 4.0, -1.25], [INF, 1.5, 3.0]],
        integer=[[False, False, False], [False, False, True]],
    )
    y = build.add_binaries("y", (2,), upper=[1.0, 0.0])
    z = build.add_columns("z", (), lower=-3.0, upper=1e9, integer=True)
    flat = x.ravel()
    build.add_rows("range", (1,), terms=[(0, flat, [1, 2, 3, 0.1, -1, 1])], lower=-20.0, upper=30.0)
    build.add_rows("equal", (1,), terms=[(0, flat[[0, 3]], [1.0, -1.0])], lower=1 / 3, upper=1 / 3)
    build.add_rows("free", (1,), terms=[(0, y, 5.0)])
    build.add_rows("empty", (2,), terms=[], lower=[-1.0, 0.0], upper=[INF, 0.0])
    build.add_rows(
        "sides", (2,), terms=[([[0], [1]], np.stack([flat[:2], flat[:2]]), 1.0)], lower=[-9, -INF], upper=[INF, 8]
    )
    build.add_rows("knot", (1,), terms=[(0, z, 1.0), (0, y, 2.0)], lower=-2.5, upper=2.5)
    sign = 1.0 if sense == "max" else -1.0
    build.set_objective(
        [(flat, sign * np.array([-1.0, 1.0, 0.5, 0.0, 7.0, 0.3])), (y, sign * 0.1), (z, sign)], offset=-12.75
    )
    return build.program()


@pytest.mark.parametrize("kind", ["lp", "mps"])
@pytest.mark.parametrize("sense", ["max", "min"])
def test_everything_at_once_has_the_same_optimum(kind, sense, tmp_path):
    program = awkward(sense)
    path = tmp_path / f"program.{kind}"
    write(program, path)
    expected = eq.solve(program, backend="highs", rel_gap=0.0)
    assert optimum(read(path)) == pytest.approx(program.objective_at(program.encode(expected.require_plan())), abs=1e-9)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_mps_holds_every_number_as_it_is(sense, tmp_path):
    program = awkward(sense)
    write(program, tmp_path / "program.mps")
    model = read(tmp_path / "program.mps").getLp()
    assert (model.sense_ == highspy.ObjSense.kMaximize) == (sense == "max")
    assert list(model.col_cost_) == program.objective.tolist()
    assert list(model.col_lower_) == program.lower.tolist()
    assert list(model.col_upper_) == program.upper.tolist()
    assert model.offset_ == program.offset
    assert [kind == highspy.HighsVarType.kInteger for kind in model.integrality_] == program.integer.tolist()
    assert list(model.col_names_) == [
        "x.0.0", "x.0.1", "x.0.2", "x.1.0", "x.1.1", "x.1.2", "y.0", "y.1", "z"
    ]  # fmt: skip
    # HiGHS drops free rows on reading an MPS file; the others are as they were, a range perhaps but for rounding.
    kept = np.isfinite(program.row_lower) | np.isfinite(program.row_upper)
    assert list(model.row_lower_) == pytest.approx(program.row_lower[kept].tolist(), abs=1e-12)
    assert list(model.row_upper_) == pytest.approx(program.row_upper[kept].tolist(), abs=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs(integers=True, max_rows=4))
@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_random_programs_come_back(kind, tmp_path, program):
    path = tmp_path / f"program.{kind}"
    write(program, path)
    solver = read(path)
    result = eq.solve(program, backend="highs", rel_gap=1e-6)  # HiGHS keeps rows to 1e-7 only
    assert optimum(solver) == pytest.approx(program.objective_at(result.require_plan()["x"]), abs=1e-5)
    model = solver.getLp()
    assert model.num_col_ == program.num_columns
    order = [list(model.col_names_).index(f"x.{i}") for i in range(program.num_columns)]
    assert np.array(model.col_lower_)[order].tolist() == program.lower.tolist()
    assert np.array(model.col_upper_)[order].tolist() == program.upper.tolist()
    if len(model.integrality_):
        whole = np.array([each == highspy.HighsVarType.kInteger for each in model.integrality_])
        assert whole[order].tolist() == program.integer.tolist()
    else:
        assert not program.integer.any()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs(integers=True, bounded=False))
@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_infinite_bounds_come_back(kind, tmp_path, program):
    path = tmp_path / f"program.{kind}"
    write(program, path)
    model = read(path).getLp()
    order = [list(model.col_names_).index(f"x.{i}") for i in range(program.num_columns)]
    assert np.array(model.col_lower_)[order].tolist() == program.lower.tolist()
    assert np.array(model.col_upper_)[order].tolist() == program.upper.tolist()


@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_a_window_comes_back(kind, tmp_path):
    jobs = [
        eq.WindowJob(
            id=j, gpus=1 + j % 2, finished_epochs=1, total_epochs=5, regimes=[eq.Regime(1, 90.0), eq.Regime(3, 40.0)]
        )
        for j in range(4)
    ]
    window = eq.ScheduleWindow(jobs, gpus=3, rounds=4, round_s=60.0, makespan_weight=1.0)
    for form in window.forms:
        path = tmp_path / f"{form}.{kind}"
        write(window.program(form), path)
        result = eq.solve(window, backend="highs", form=form, rel_gap=0.0)
        assert optimum(read(path)) == pytest.approx(result.bound, abs=1e-6)


@pytest.mark.parametrize("kind", ["lp", "mps"])
def test_log_terms_do_not_fit_in_a_file(kind, tmp_path):
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)])
    path = tmp_path / f"program.{kind}"
    with pytest.raises(eq.UnsupportedProblem, match="log terms"):
        write(build.program(), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["write_lp", "write_mps"])
def test_a_missing_folder_is_an_os_error_and_leaves_nothing(method, tmp_path):
    with pytest.raises(OSError, match="missing"):
        getattr(awkward("max"), method)(tmp_path / "missing" / "program")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "program.lp"
    path.write_text("what was there", encoding="utf-8")

    def failing(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="the disk is full"):
        awkward("max").write_lp(path)
    assert path.read_text(encoding="utf-8") == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_programs_without_columns_or_rows(tmp_path):
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (1,), upper=2.0)
    build.set_objective([(x, 3.0)], offset=1.0)
    for kind in ("lp", "mps"):
        path = tmp_path / f"program.{kind}"
        write(build.program(), path)
        assert optimum(read(path)) == 7.0


@pytest.mark.parametrize("kind", ["lp", "mps"])
@pytest.mark.parametrize(
    "name",
    [
        "x_1",
        "free",
        "inf",
        "e",
        "e1",
        "E_2",
        "end",
        "bounds",
        "objective",
        "st",
        "RHS",
        "MARKER",
        "info",
        "nano",
        "max",
        "semi",
        "block",
        "größe",
    ],
)
def test_every_block_keeps_names_of_its_own(kind, name, tmp_path):
    """Blocks "x_1" of shape (2,) and "x" of shape (2, 2) differ, and a word of the format may be a block's name."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2, 2), upper=1.0, integer=True)
    more = [build.add_columns(name, (), upper=2.0), build.add_columns(f"{name}_1", (2,), upper=4.0, integer=True)]
    build.add_rows(name, (), terms=[(0, x, 1.0), (0, more[0], 1.0)], lower=1.0, upper=4.5)
    build.set_objective([(x, 1.0), (more[0], 1.5), (more[1], [1.0, 0.5])])
    path = tmp_path / f"program.{kind}"
    write(build.program(), path)
    solver = read(path)
    model = solver.getLp()
    assert len(set(model.col_names_)) == model.num_col_ == 7
    assert optimum(solver) == pytest.approx(11.25)  # 3 of x and 1.5 of the scalar, then 4 and 4
