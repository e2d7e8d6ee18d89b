"""What "auto" takes, and that installing an optional solver does not change it behind the user's back."""

import json
import os
import subprocess
import sys

import pytest

import equipoise as eq
from equipoise.solvers.backend import Availability
from equipoise.solvers.external.gurobi import backend as gurobi

SCRIPT = """
import importlib.abc, json, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
for name in sys.argv[1:]:
    sys.modules[name] = None  # what importlib.util.find_spec looks at first

import numpy as np
import equipoise as eq

def program(kind):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (6,), upper=3.0, integer=kind.startswith("MI"))
    build.add_rows("row", (2,), terms=[([[0], [1]], x, [[4, 2, 2, 3, 1, 5], [1, 3, 2, 2, 4, 1]])], upper=[9, 8])
    build.set_objective([(x, [5.0, 3.0, 3.0, 4.0, 2.0, 6.0])])
    if kind.endswith("LOG"):
        build.add_logs([1.0, 2.0], terms=[([[0], [1]], x[:2], np.eye(2))], offsets=0.5)
    return build.program()

jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 100.0)]) for i in "ab"]
window = eq.ScheduleWindow(jobs, gpus=1, rounds=3)
data = np.array([[[1.0, 0.25], [0.0, 0.75]], [[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.0], [0.75, 1.0]]])
markets = {"static": eq.FisherMarket(data[:, :, 0] + 1.0, [1.0, 2.0, 1.0])}
for family in ("linear", "leontief", "ces", "cobb-douglas"):
    field = "requirements" if family == "leontief" else "utilities"
    rho = -1.0 if family == "ces" else None
    markets[family] = eq.VolatileFisherMarket(**{field: data}, budgets=[1.0, 2.0, 1.0], family=family, rho=rho)
programs = {kind: program(kind) for kind in ("LP", "MILP", "LOG", "MILOG")}
found = {}
for name, problem in {**programs, "window": window, **markets}.items():
    result = eq.solve(problem, rel_gap=1e-6)
    found[name] = [result.backend, result.termination.reason.name, result.objective.hex(), result.bound.hex()]
found["usable"] = [row.name for row in eq.backends(usable=True)]
found["reasons"] = {row.name: row.reason for row in eq.backends(usable=False)}
print(json.dumps(found))
"""
MARKETS = ("static", "linear", "leontief", "ces", "cobb-douglas")
OPTIONAL = ["gurobipy", "pyscipopt", "ortools", "pyomo", "clarabel", "pymoo"]


def outcome(*hidden):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *hidden], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def full():
    return outcome()


def test_with_the_core_alone_everything_has_an_answer_and_the_rest_says_why_it_is_missing(full):
    core = outcome(*OPTIONAL)
    special = ["lagrangian", "proportional_response", "interior_point", "share_prices", "level_programs", "finish_time"]
    special += ["matching", "goodput", "birkhoff", "delay_candidates", "gang_packing", "random", "grid"]
    assert core["usable"] == [*special, "highs", "scipy"]
    assert core["window"] == full["window"]
    assert [core[kind][0] for kind in ("LP", "MILP", "LOG", "MILOG")] == ["highs"] * 4
    assert all(core[kind][1] == "OPTIMAL" for kind in ("LP", "MILP", "LOG", "MILOG", "window"))
    assert set(core["reasons"]) == {row.name for row in eq.backends()} - set(core["usable"])
    for name, reason in core["reasons"].items():
        searches = dict.fromkeys(("differential_evolution", "spea2", "nsga2"), "search")
        extra = {"cp_sat_schedule": "ortools", **searches}.get(name, name.split(":")[0])
        assert f"pip install 'equipoise[{extra}]'" in reason
    for kind in ("LP", "MILP", "MILOG", *MARKETS):
        assert core[kind] == full[kind]  # to the last bit
    assert all(core[kind][1] == "OPTIMAL" for kind in MARKETS)
    assert [core[kind][0] for kind in MARKETS] == ["interior_point"] * 3 + ["proportional_response"] * 2


def test_installing_gurobipy_changes_no_default_result(full):
    pytest.importorskip("gurobipy", reason="gurobipy is not installed")
    without = outcome("gurobipy")
    assert "gurobi" not in without["usable"]
    for kind in ("LP", "MILP", "LOG", "MILOG", "window", *MARKETS):
        assert without[kind] == full[kind]


def test_gurobi_comes_first_only_with_a_full_licence(monkeypatch):
    build = eq.ProgramBuilder(sense="max")
    build.add_binaries("x", (2,))
    program = build.program()
    limit = "2,000 variables and rows"
    monkeypatch.setattr(type(gurobi.BACKEND), "probe", lambda self: Availability(True, "13.0", limit=limit))
    table = {row.name: row for row in eq.candidates(program)}
    assert not table["gurobi"].taken
    assert table["gurobi"].reason == "its licence is limited to 2,000 variables and rows: used by name only"
    assert table["highs"].taken
    monkeypatch.setattr(type(gurobi.BACKEND), "probe", lambda self: Availability(True, "13.0"))
    assert [row.name for row in eq.candidates(program) if row.taken] == ["gurobi"]


def log_program(entries):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (entries,), upper=1.0)
    build.add_logs([1.0], terms=[(0, x, 1.0)])
    return build.program()


def test_logarithms_go_to_the_conic_method_by_size_and_gap(monkeypatch):
    clarabel = next(row for row in eq.backends() if row.name == "clarabel")
    if not clarabel.usable:
        pytest.skip(clarabel.reason)
    from equipoise.solvers import selection as choice

    monkeypatch.setattr(choice, "CONIC_ENTRIES", 10)
    taken = {row.name: row for row in eq.candidates(log_program(10))}
    assert taken["clarabel"].taken
    assert taken["clarabel"].reason == "reads LOG programs"
    larger = {row.name: row for row in eq.candidates(log_program(11))}
    assert larger["highs"].taken
    assert larger["highs"].reason == "solves LOG programs by tangent cuts"
    assert "tangent cuts are faster beyond 10 entries, here 11" in larger["clarabel"].reason
    finer = {row.name: row for row in eq.candidates(log_program(10), rel_gap=1e-10)}
    assert finer["highs"].taken
    assert "asked 1e-10" in finer["clarabel"].reason
