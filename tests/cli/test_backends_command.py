"""`equipoise backends`: the list, the contract of one or all, and what "auto" makes of an instance."""

import io
import json
import sys

import pytest

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.backends import named_backend
from equipoise.cli.errors import CommandError
from equipoise.solvers.external.highs import Highs
from equipoise.validation.contract import suite as contract

JOB = {"id": "a", "gpus": 2, "finished_epochs": 0, "total_epochs": 4, "regimes": [{"epochs": 4, "epoch_s": 60}]}
INSTANCE = {"format": "equipoise.window/1", "gpus": 4, "rounds": 3, "jobs": [JOB, {**JOB, "id": "b", "gpus": 3}]}


def run(capsys, *arguments):
    code = main.run(["backends", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def few_cases(monkeypatch):
    """The contract cut down to what the command needs to be seen."""
    monkeypatch.setattr(contract, "CASES", contract.chosen_cases(["optimal-LP", "optimal-ScheduleWindow"]))


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """A module of somebody else's in the current folder, with a good backend and a bad one."""
    (tmp_path / "strange_solver.py").write_text(
        "from equipoise.solvers.external.highs import Highs\n"
        "class Good(Highs):\n    name = 'good'\n"
        "class Bad(Highs):\n    name = 'bad'\n    licence = None\n"
        "    def solve(self, task, options, on_progress):\n        raise RuntimeError('no such luck')\n"
        "GOOD, BAD, NUMBER = Good(), Bad(), 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [""] + [each for each in sys.path if each])
    yield
    sys.modules.pop("strange_solver", None)


def test_without_options_it_lists(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert out.splitlines()[0].split() == ["name", "version", "usable", "accepts", "licence", "reason"]
    code, out, _ = run(capsys, "--json")
    assert {row["name"] for row in json.loads(out)} >= {"highs", "lagrangian", "gurobi"}


@pytest.mark.usefixtures("few_cases")
def test_check_prints_the_report(capsys):
    code, out, err = run(capsys, "--check", "highs")
    assert (code, err) == (0, "")
    assert "optimal  passed" in out
    assert out.endswith("highs: 1 passed, 1 skipped, 0 failed\n")
    assert "it does not read ScheduleWindow directly" in out


@pytest.mark.usefixtures("few_cases")
def test_check_of_several_and_of_all(capsys):
    code, out, _ = run(capsys, "--check", "lagrangian, highs", "--json")
    assert code == 0
    documents = json.loads(out)
    assert [each["backend"] for each in documents] == ["lagrangian", "highs"]
    assert all(each["passed"] for each in documents)
    assert [row["outcome"] for row in documents[0]["cases"]] == ["skipped", "passed"]
    code, out, _ = run(capsys, "--check", "all", "--json")
    assert [each["backend"] for each in json.loads(out)] == [row.name for row in eq.backends()]


@pytest.mark.usefixtures("few_cases", "strangers")
def test_check_of_an_object_of_somebody_elses(capsys):
    code, out, _ = run(capsys, "--check", "strange_solver:GOOD", "--seed", 3)
    assert (code, out.splitlines()[-1]) == (0, "good: 1 passed, 1 skipped, 0 failed")
    code, out, _ = run(capsys, "--check", "strange_solver:GOOD,strange_solver:BAD")
    assert code == 1
    assert "failed: optimal-LP: NUMERICAL: bad failed: RuntimeError: no such luck" in out


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("hihgs", 4, "did you mean 'highs'"),
        ("no_such_module:X", 4, "No module named 'no_such_module'"),
        ("strange_solver:WORSE", 4, "strange_solver has no 'WORSE'"),
        ("strange_solver:NUMBER", 2, "is no backend but of type int"),
        ("strange_solver:Good", 2, "is no backend but of type"),
        ("highs,", 4, "no backend ''"),
    ],
)
def test_a_backend_that_is_none_is_said_before_anything_runs(capsys, name, code, words):
    given, out, err = run(capsys, "--check", name)
    assert (given, out) == (code, "")
    assert words in err


def test_a_backend_that_cannot_run_here_is_said_before_anything_runs(capsys, monkeypatch):
    unusable = eq.solvers.backend.Availability(False, reason="it is broken: mend it")
    monkeypatch.setattr(Highs, "probe", lambda self: unusable)
    code, out, err = run(capsys, "--check", "highs")
    assert (code, out) == (4, "")
    assert "backend 'highs' cannot run here: it is broken: mend it" in err


def test_a_family_is_no_module():
    assert named_backend("pyomo:glpk").name == "pyomo:glpk"
    with pytest.raises(CommandError, match="No module named"):
        named_backend("pyom:glpk")


def test_for_an_instance_it_says_why_each_was_taken_or_passed_over(capsys, tmp_path, monkeypatch):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(INSTANCE))
    code, out, err = run(capsys, "--for", path)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["name", "verdict", "reason"]
    assert "made for ScheduleWindow" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(INSTANCE).encode())))
    code, out, _ = run(
        capsys, "--for", "-", "--form", "counts", "--threads", 2, "--rel-gap", 0.01, "--seed", 5, "--json"
    )
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert [name for name, row in rows.items() if row["taken"]] == ["highs"]
    assert rows["lagrangian"]["reason"] == "reads the problem itself, not its program 'counts'"
    assert rows["scipy"]["reason"] == "cannot honour threads, seed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--check", "highs", "--for", "x.json"], "--check and --for together"),
        (["--form", "counts"], "--form without --for"),
        (["--seed", "1"], "--seed without --for"),
        (["--check", "highs", "--threads", "2"], "--threads without --for"),
        (["--for", "no_such_file.json"], "no_such_file.json"),
    ],
)
def test_options_that_would_be_ignored_are_refused(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err
