"""`equipoise snapshot`, `backends`, `schema`, `demo`, `bench`, and how fast the command starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared_data import SHOCKWAVE

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.bench.rows import split_names
from equipoise.cli.errors import CommandError
from equipoise.cli.plan.schema import check_document
from equipoise.heuristics import predicted_total_s
from equipoise.simulation import Profiles, Trace, snapshot

SHARED = SHOCKWAVE
needs_trace = pytest.mark.skipif(
    not (SHARED / "trace_120.csv").is_file(), reason="the trace of the paper is not beside the repository"
)


def fails(capsys, arguments, code):
    assert main.run([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    *told, line, hint = err.splitlines()
    assert out == ""
    assert line.startswith("equipoise: error: ")
    assert hint.startswith("hint: ")
    assert all(each.startswith("equipoise: ") for each in told)
    return line


@needs_trace
def test_a_snapshot_is_an_instance_of_the_unfinished_jobs(capsys):
    trace = SHARED / "trace_120.csv"
    assert main.run(["snapshot", str(trace), "--at", "6000", "--gpus", "32"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    check_document("instance", document)
    states = snapshot(Trace.read(trace), at_s=6000.0, gpus=32, profiles=Profiles.read(SHARED))
    assert [job["id"] for job in document["jobs"]] == [state.id for state in states]
    assert document["running"] == [state.id for state in states if state.running]
    assert document["makespan_scale"] == pytest.approx(sum(predicted_total_s(state) for state in states))
    assert "beside the trace" in err


@needs_trace
def test_the_predictor_and_the_window_reach_the_instance(tmp_path, capsys):
    trace = SHARED / "trace_120.csv"
    documents = {}
    for predictor in ("restatement", "oracle", "greedy"):
        out = tmp_path / f"{predictor}.json"
        arguments = ["--predictor", predictor, "--rounds", "7", "--round-s", "60", "--out", str(out)]
        assert main.run(["snapshot", str(trace), "--at", "6000", "--gpus", "32", *arguments]) == 0
        documents[predictor] = json.loads(out.read_text())
    assert capsys.readouterr().out == ""
    assert {(each["rounds"], each["round_s"]) for each in documents.values()} == {(7, 60.0)}
    assert len({json.dumps(each["jobs"]) for each in documents.values()}) == 3


@needs_trace
def test_profiles_can_be_named(capsys):
    base = ["snapshot", str(SHARED / "trace_120.csv"), "--at", "6000", "--gpus", "32"]
    assert main.run([*base, "--profiles", str(SHARED), "--cluster", "tacc"]) == 0
    named = capsys.readouterr()
    assert main.run(base) == 0
    assert capsys.readouterr().out == named.out
    assert "profiles:" not in named.err
    assert "nowhere" in fails(capsys, [*base, "--profiles", SHARED, "--cluster", "nowhere"], 2)
    assert "--cluster" in fails(capsys, [*base, "--profiles", "builtin", "--cluster", "tacc"], 2)
    assert "has no throughputs.csv" in fails(capsys, [*base, "--profiles", Path(__file__).parent], 2)


@needs_trace
def test_a_snapshot_of_nobody_is_bad_input(capsys):
    trace = SHARED / "trace_120.csv"
    assert "no job" in fails(capsys, ["snapshot", trace, "--at", "1e9", "--gpus", "32"], 2)
    assert "gpus" in fails(capsys, ["snapshot", trace, "--at", "6000", "--gpus", "0"], 2)
    assert "at_s" in fails(capsys, ["snapshot", trace, "--at", "nan", "--gpus", "32"], 2)
    fails(capsys, ["snapshot", trace, "--at", "6000", "--gpus", "32", "--predictor", "psychic"], 2)
    fails(capsys, ["snapshot", trace, "--at", "6000", "--gpus", "32", "--rounds", "0"], 2)
    fails(capsys, ["snapshot", trace, "--at", "6000", "--gpus", "32", "--out", "none/such/x.json"], 2)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\xff", b"a,b\n1,2\n"])
def test_a_file_that_is_no_trace_is_bad_input(content, tmp_path, capsys):
    trace = tmp_path / "trace.csv"
    trace.write_bytes(content)
    fails(capsys, ["snapshot", trace, "--at", "0", "--gpus", "4"], 2)
    fails(capsys, ["snapshot", tmp_path / "none.csv", "--at", "0", "--gpus", "4"], 2)
    fails(capsys, ["snapshot", tmp_path, "--at", "0", "--gpus", "4"], 2)


@needs_trace
def test_snapshot_pipes_into_plan(tmp_path):
    html = tmp_path / "plan.html"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"}
    run = [sys.executable, "-m", "equipoise"]
    first = subprocess.Popen(
        [*run, "snapshot", str(SHARED / "trace_120.csv"), "--at", "6000", "--gpus", "32"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    second = subprocess.run(
        [*run, "plan", "-", "--html", str(html), "--json"], stdin=first.stdout, capture_output=True, env=environment
    )
    first.stdout.close()
    assert (first.wait(), second.returncode) == (0, 0)
    document = json.loads(second.stdout)
    assert document["gap"] <= 1e-4
    assert max(document["gpus_in_use"]) <= 32
    assert len(document["jobs"]) > 32
    assert html.stat().st_size > 1000


def test_backends_lists_what_the_library_lists(capsys):
    assert main.run(["backends", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["usable"]) for row in rows] == [(row.name, row.usable) for row in eq.backends()]
    assert main.run(["backends"]) == 0
    assert capsys.readouterr().out == f"{eq.backends()}\n"


def test_schema_and_version_and_help(capsys):
    for name in ("instance", "plan"):
        assert main.run(["schema", name]) == 0
        assert json.loads(capsys.readouterr().out)["$schema"].endswith("2020-12/schema")
    assert "no schema 'x'" in fails(capsys, ["schema", "x"], 2)
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"equipoise {eq.__version__}\n"
    for arguments in ([], ["--help"]):
        assert main.run(arguments) == 0
        assert "snapshot" in capsys.readouterr().out


def test_the_demo_plans_a_generated_cluster(tmp_path, capsys):
    html = tmp_path / "demo.html"
    arguments = ["demo", "--jobs", "30", "--gpus", "8", "--seed", "3", "--html", str(html)]
    assert main.run(arguments) == 0
    first = capsys.readouterr().out
    assert "30 jobs (seed 3) on 8 GPUs" in first
    assert "OPTIMAL" in first or "FEASIBLE" in first
    assert "<html" in html.read_text()
    fails(capsys, ["demo", "--jobs", "0"], 2)
    fails(capsys, ["demo", "--html", str(tmp_path / "none" / "x.html")], 2)


def test_bench_window_prints_its_rows(capsys):
    arguments = ["bench", "window", "--jobs", "12", "--gpus", "8", "--seed", "1", "--rounds", "5"]
    assert main.run([*arguments, "--backends", "marginal,highs", "--time-limit", "5", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["backend"] for row in rows} == {"marginal", "highs"}
    assert all({"backend", "form", "wall_s", "cpu_s", "objective", "bound", "gap"} <= set(row) for row in rows)
    assert all(row["bound"] >= row["objective"] - 1e-9 for row in rows)
    assert main.run([*arguments, "--backends", "marginal"]) == 0
    assert "marginal" in capsys.readouterr().out
    assert "hihgs" in fails(capsys, [*arguments, "--backends", "hihgs"], 4)


def test_bench_prediction_prints_its_rows(capsys):
    assert main.run(["bench", "prediction", "--jobs", "5", "--seed", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"restatement", "bayes", "greedy", "oracle"} >= {row["predictor"] for row in rows} > set()


def test_names_of_backends_are_split_at_commas():
    assert split_names(None) is None
    assert split_names(["a,b", " c"]) == ["a", "b", "c"]
    with pytest.raises(CommandError, match="an empty name"):
        split_names(["a,,b"])


def test_help_loads_no_solver_and_no_table_library():
    script = (
        "import sys; from equipoise.cli.main import run; run(['--help']);"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert not {"scipy", "pandas", "numba", "highspy", "jsonschema"} & set(child.stderr.split())


def test_the_instance_on_the_page_can_be_planned(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "command.md").read_text(encoding="utf-8")
    source = tmp_path / "page.json"
    source.write_text(page.split("```json\n", 1)[1].split("```", 1)[0])
    assert main.run(["plan", str(source), "--json"]) == 0
    check_document("plan", json.loads(capsys.readouterr().out))
