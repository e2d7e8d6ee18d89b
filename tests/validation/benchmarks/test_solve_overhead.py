"""The benchmark of the overhead of `solve`: it counts what it says it counts, and puts back what it replaces."""

import time

import pytest

import equipoise as eq
from equipoise.solvers.verification.checked_solution import ProgressRecorder
from equipoise.validation.benchmarks import solve_overhead as module


def test_each_usable_solver_has_a_row_of_solve_and_one_of_isolation():
    rows = module.overhead_rows(jobs=6, gpus=8, repeats=1, time_limit=2.0)
    usable = {name for name in module.SOLVERS if next(row for row in eq.backends() if row.name == name).usable}
    assert {row["solver"] for row in rows} == set(module.SOLVERS)
    for what in ("solve", "isolation"):
        assert {row["solver"] for row in rows if row["what"] == what and "binaries" in row} == usable
    for row in rows:
        if "binaries" not in row:
            assert "not installed" in row["note"]
        elif row["what"] == "solve":
            assert row["overhead_ms"] == pytest.approx(row["own_ms"] - row["bare_own_ms"])
            assert row["overhead_pct"] == pytest.approx(0.1 * row["overhead_ms"] / row["bare_s"])
            assert row["own_ms"] > 0
            assert row["binaries"] > 6 * 5
        else:
            assert row["first_ms"] > row["later_ms"]


def test_the_time_inside_the_solver_is_left_out_and_that_of_the_listener_is_not(monkeypatch):
    class Solver:
        def run(self, listener):
            time.sleep(0.05)
            listener(1.0, 2.0)

    class Holder:
        pass

    holder = Holder()
    holder.Solver = Solver
    monkeypatch.setattr("importlib.import_module", lambda name: holder)
    slow = ProgressRecorder.__call__

    def heard(self, *args):
        time.sleep(0.02)

    monkeypatch.setattr(ProgressRecorder, "__call__", heard)
    run = Solver.run
    with module._watched("anything:Solver", "run") as inside:
        Solver().run(ProgressRecorder.__new__(ProgressRecorder))
    assert Solver.run is run
    assert ProgressRecorder.__call__ is heard
    assert slow is not heard
    assert 0.07 <= inside.solver < 0.5
    assert 0.02 <= inside.listener < inside.solver - 0.04


def test_the_bare_way_solves_the_program():
    build = eq.ProgramBuilder(sense="max")
    build.set_objective([(build.add_binaries("x", (3,)), 1.0)])
    assert 0 < module.bare_highs(build.program(), eq.Options(time_limit=5.0)) < 5.0


@pytest.mark.parametrize(("field", "value"), [("jobs", 0), ("gpus", -1), ("repeats", 0), ("time_limit", 0.0)])
def test_bad_input(field, value):
    with pytest.raises(eq.InvalidInput, match=field):
        module.overhead_rows(**{field: value})
    with pytest.raises(eq.InvalidInput, match="higs"):
        module.measured("higs", 4, 4, 1, 1.0, 0)
