"""The backends by name, and the table of what each can do here."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

import equipoise as eq
from equipoise.solvers import backend as solver_backend
from equipoise.solvers import registry
from equipoise.solvers.backend import OPTIONAL

PACKAGES = {"lagrangian": "numba", "highs": "highspy", "scipy": "scipy"}  # the core's


def program(kind: str) -> eq.Program:
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), upper=1.0, integer=kind.startswith("MI"))
    if kind.endswith("LOG"):
        build.add_logs([1.0], terms=[(0, x, 1.0)])
    build.set_objective([(x, 1.0)])
    return build.program()


def window() -> eq.ScheduleWindow:
    job = eq.WindowJob(id="a", gpus=1, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 90.0)])
    return eq.ScheduleWindow([job], gpus=1, rounds=3)


@pytest.fixture
def core_only():
    """Let the registry hold what the core dependencies bring, and nothing else."""
    kept = dict(registry.BACKENDS)
    for name in set(kept) - set(PACKAGES):
        del registry.BACKENDS[name]
    yield
    registry.BACKENDS.clear()  # the order is the order of preference: put all back in it
    registry.BACKENDS.update(kept)


def hide(monkeypatch, *names: str) -> None:
    """Let the packages behind these backends look as if they were not installed."""
    missing = {PACKAGES[name] for name in names}
    monkeypatch.setattr(solver_backend, "find_spec", lambda what: None if what in missing else find_spec(what))


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("higs", "highs"),
        ("HIGHS", None),
        ("sciPy", "scipy"),
        ("lagrangians", "lagrangian"),
        ("gurobipy", "gurobi"),
        ("glpk", "pyomo:glpk"),
    ],
)
def test_a_name_nearly_right_is_corrected(wrong, near):
    with pytest.raises(eq.BackendNotFound) as caught:
        registry.find_backend(wrong)
    assert repr(wrong) in str(caught.value)
    if near:
        assert f"did you mean {near!r}" in str(caught.value)
    for name in registry.BACKENDS:
        assert name in str(caught.value)


@pytest.mark.parametrize("wrong", ["", "zzzzzz", None, 3, ["highs"]])
def test_a_name_that_is_nothing_like_one_lists_all(wrong):
    with pytest.raises(eq.BackendNotFound) as caught:
        eq.solve(program("LP"), wrong)
    for name in registry.BACKENDS:
        assert name in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_not_found_is_a_lookup_error_of_ours():
    assert issubclass(eq.BackendNotFound, LookupError)
    assert issubclass(eq.BackendNotFound, eq.EquipoiseError)


@pytest.mark.parametrize("name", sorted(registry.BACKENDS))
def test_every_backend_says_what_it_is(name):
    backend = registry.find_backend(name)
    assert backend.name == name
    assert backend.licence
    assert backend.classes or backend.formulations
    assert backend.supported_options <= set(OPTIONAL)
    assert backend.delegates_to <= set(registry.BACKENDS)
    found = backend.probe()
    assert bool(found.reason) != found.usable
    assert found.usable or not found.limit
    assert not found.usable or found.version


def test_the_table_lists_every_backend_in_order_of_preference():
    table = eq.backends()
    assert [row.name for row in table] == list(registry.BACKENDS)
    assert isinstance(table, tuple)
    by_name = {row.name: row for row in table}
    assert by_name["lagrangian"].classes == ("ScheduleWindow",)
    assert by_name["highs"].classes == by_name["scipy"].classes == ("LP", "MILP", "LOG", "MILOG")
    assert by_name["clarabel"].classes[:2] == ("LP", "LOG")
    assert by_name["highs"].licence == "MIT"
    assert by_name["highs"].version.count(".") == 2


def test_it_prints_as_a_table_with_aligned_columns():
    lines = str(eq.backends()).splitlines()
    assert len(lines) == 1 + len(registry.BACKENDS)
    assert lines[0].split() == ["name", "version", "usable", "accepts", "licence", "reason"]
    for row, line in zip(eq.backends(), lines[1:], strict=True):
        assert line.startswith(row.name)
        assert line[lines[0].index("usable") :].startswith("yes" if row.usable else "no")
        assert line[lines[0].index("accepts") :].startswith(row.classes[0])
    assert repr(eq.backends()) == str(eq.backends())


@pytest.mark.parametrize("kind", ["LP", "MILP", "LOG", "MILOG"])
def test_it_can_be_asked_who_states_a_problem(kind):
    assert program(kind).problem_class.value == kind
    able = [row.name for row in eq.backends(program(kind))]
    assert able == [row.name for row in eq.backends() if kind in row.classes]
    assert {"highs", "scipy"} <= set(able)
    assert "lagrangian" not in able
    assert ("clarabel" in able) is (kind in ("LP", "LOG"))


def test_special_backends_come_first():
    assert [row.name for row in eq.backends(window())][:3] == ["lagrangian", "gurobi", "highs"]
    assert eq.solve(window()).backend == "lagrangian"
    assert eq.solve(window(), form="counts").backend == "highs"


@pytest.mark.usefixtures("core_only")
def test_what_is_not_installed_is_listed_with_the_reason_and_refused_by_name(monkeypatch):
    hide(monkeypatch, "highs")
    row = next(row for row in eq.backends() if row.name == "highs")
    assert not row.usable
    assert "pip install highspy" in row.reason
    assert row.reason in str(eq.backends())
    assert [row.name for row in eq.backends(usable=False)] == ["highs"]
    assert "highs" not in [row.name for row in eq.backends(usable=True)]
    assert "highs" not in [row.name for row in eq.backends(program("LP"), usable=True)]
    with pytest.raises(eq.BackendUnavailable, match="pip install highspy"):
        eq.solve(program("LP"), "highs")


@pytest.mark.usefixtures("core_only")
def test_auto_skips_what_is_not_installed(monkeypatch):
    hide(monkeypatch, "lagrangian")
    assert eq.solve(window(), rel_gap=1e-6).backend == "highs"
    assert eq.solve(window(), form="counts", rel_gap=1e-6).backend == "highs"


@pytest.mark.usefixtures("core_only")
def test_auto_never_takes_scipy(monkeypatch):
    reasons = {row.name: row.reason for row in eq.candidates(program("MILP"))}
    assert reasons["scipy"].startswith("used by name only")
    hide(monkeypatch, "highs")
    with pytest.raises(eq.BackendUnavailable, match="scipy: used by name only"):
        eq.solve(program("MILP"))
    assert eq.solve(program("MILP"), "scipy").objective == 2.0


@pytest.mark.usefixtures("core_only")
def test_auto_with_nothing_installed_says_why_for_each(monkeypatch):
    hide(monkeypatch, "highs", "scipy")
    with pytest.raises(eq.BackendUnavailable) as caught:
        eq.solve(program("LP"))
    assert "pip install highspy" in str(caught.value)
    assert "scipy: used by name only" in str(caught.value)
    with pytest.raises(eq.BackendUnavailable, match="pip install scipy"):
        eq.solve(program("LP"), "scipy")


@pytest.mark.usefixtures("core_only")
def test_a_program_that_nobody_states_is_unsupported_not_unavailable():
    del registry.BACKENDS["highs"], registry.BACKENDS["scipy"]
    with pytest.raises(eq.UnsupportedProblem, match="no backend can"):
        eq.solve(program("LOG"), "lagrangian")
    with pytest.raises(eq.BackendUnavailable, match="lagrangian: reads ScheduleWindow only"):
        eq.solve(program("LOG"))


def test_a_backend_that_cannot_state_the_problem_names_those_that_can():
    with pytest.raises(eq.UnsupportedProblem, match="this LP program: it reads ScheduleWindow; use backend='highs'"):
        eq.solve(program("LP"), "lagrangian")


@pytest.mark.parametrize("thing", [None, 3, "window", {"jobs": []}, SimpleNamespace(gpus=3)])
def test_what_is_no_problem_at_all_is_refused(thing):
    with pytest.raises(eq.UnsupportedProblem, match=type(thing).__name__):
        eq.solve(thing)


def test_a_form_must_be_one_of_the_problems_own():
    with pytest.raises(eq.InvalidInput, match="counts, time_indexed"):
        eq.solve(window(), "highs", form="matrix")
    with pytest.raises(eq.InvalidInput, match="matrix"):
        eq.solve(program("LP"), "highs", form="counts")
    with pytest.raises(eq.InvalidInput, match="general backend"):
        eq.solve(window(), "lagrangian", form="counts")


def test_a_former_name_of_a_backend_works_and_warns():
    with pytest.warns(DeprecationWarning, match="the backend 'marginal' is called 'lagrangian' now"):
        found = registry.find_backend("marginal")
    assert found is registry.find_backend("lagrangian")
    with pytest.warns(DeprecationWarning, match="'lagrangian'"):
        result = eq.solve(window(), "marginal")
    assert result.backend == "lagrangian"
    with pytest.warns(DeprecationWarning, match="'lagrangian'"):
        options = eq.Options(backend_options={"marginal": {}, "highs": {"presolve": "off"}})
    assert dict(options.backend_options) == {"lagrangian": {}, "highs": {"presolve": "off"}}
    with pytest.raises(eq.InvalidInput, match="former name of 'lagrangian'"):
        eq.Options(backend_options={"marginal": {}, "lagrangian": {}})
