"""`equipoise compare`: each row is what `simulate` says, in one process or several; what is finished stays on disk."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from equipoise.cli import main
from equipoise.cli.compare import command as compare
from equipoise.cli.compare import run as compare_run
from equipoise.cli.compare.run import workers_for
from equipoise.formulations.errors import InvalidInput

GENERATED = ["generated:9", "--gpus", "4"]
POLICIES = "fifo,las,gandiva-fair"
FILES = {"jobs.csv", "page.html", "rounds.csv", "solves.csv", "summary.json"}


def runs(capsys, *arguments, command="compare"):
    assert main.run([command, *map(str, arguments)]) == 0, capsys.readouterr().err
    return capsys.readouterr()


def fails(capsys, arguments, code=2):
    assert main.run(["compare", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    *told, line, hint = err.splitlines()
    assert line.startswith("equipoise: error: ")
    assert hint.startswith("hint: ")
    assert all(each.startswith("equipoise: ") for each in told)
    return line.removeprefix("equipoise: error: "), out, told


def without_times(row):
    return {key: value for key, value in row.items() if key not in ("wall_s", "cpu_s") and "solve" not in key}


def test_each_policy_is_as_simulate_says(capsys):
    document = json.loads(
        runs(capsys, *GENERATED, "--policies", f"{POLICIES}:interval_s=99", "--workers", 1, "--json").out
    )
    assert document["format"] == "equipoise.comparison/1"
    assert document["asked"] == ["fifo", "las", "gandiva-fair:interval_s=99"]
    assert document["relative_to"] == "fifo"
    assert document["failed"] == {}
    for row, policy in zip(document["policies"], document["asked"], strict=True):
        alone = json.loads(runs(capsys, *GENERATED, "--policy", policy, "--json", command="simulate").out)
        common = {key: value for key, value in document.items() if key in alone and key != "format"}
        assert alone.pop("format") == "equipoise.simulation/1"
        assert without_times(row | common) == without_times(alone)


def test_several_processes_find_the_same(tmp_path, capsys):
    pytest.importorskip("joblib")
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        arguments = [*GENERATED, "--policies", POLICIES, "--workers", workers, "--out", out, "--json"]
        document = json.loads(runs(capsys, *arguments).out)
        document["policies"] = [without_times(row) for row in document["policies"]]
        jobs = {each.parent.name: each.read_text() for each in out.glob("*/jobs.csv")}
        found.append((document, jobs))
    assert found[0] == found[1]
    assert set(found[0][1]) == {"fifo", "las", "gandiva-fair"}


def test_the_folder_holds_all_policies_and_the_comparison(tmp_path, capsys):
    out = tmp_path / "out"
    shown = runs(capsys, *GENERATED, "--policies", POLICIES, "--workers", 1, "--out", out)
    assert shown.err == f"equipoise: wrote 3 of 3 policies (fifo, las, gandiva-fair) to {out}\n"
    assert {each.name for each in out.iterdir()} == {
        *("comparison.csv", "page.html", "summary.json"),
        *("fifo", "las", "gandiva-fair"),
    }
    table = pd.read_csv(out / "comparison.csv").set_index("policy")
    for policy in POLICIES.split(","):
        assert {each.name for each in (out / policy).iterdir()} == FILES
        summary = json.loads((out / policy / "summary.json").read_text())
        assert table.loc[policy, "makespan_s"] == pytest.approx(summary["makespan_s"])
        makespan = f"{summary['makespan_s']:,.0f}"
        assert makespan in shown.out
        assert makespan in (out / "page.html").read_text()


def test_the_page_shows_every_policy(tmp_path, capsys):
    page = tmp_path / "page.html"
    runs(capsys, *GENERATED, "--policies", POLICIES, "--workers", 1, "--html", page)
    text = page.read_text(encoding="ascii")
    assert "3 policies on 4 GPUs" in text
    assert re.findall("<h3>(.*?)</h3>", text) == ["fifo", "las", "gandiva-fair"]
    assert text.count("<svg") == 1 + 2 * 3 + 4
    assert "equipoise compare generated:9 --policies fifo,las,gandiva-fair --gpus 4 --seed 0" in text
    assert "not finished" not in text.lower()
    assert "<!--" not in text.replace("<!doctype", "")
    assert "<script" not in text


def test_without_a_place_the_page_has_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs(capsys, "generated:3", "--gpus", 2, "--policies", "fifo")
    assert [each.name for each in tmp_path.iterdir()] == ["compare.html"]


def test_shockwave_is_what_others_are_relative_to(monkeypatch, capsys):
    # Under its name another policy, so that the test is about the comparison and not about the planner.
    from equipoise.heuristics import registry as policies

    entry = policies.PolicyEntry(
        name="shockwave", engine="rounds", description="", module=".rounds.queue", maker="LasPolicy"
    )
    monkeypatch.setattr(policies, "ENTRIES", {**policies.ENTRIES, ("shockwave", "rounds"): entry})
    monkeypatch.setattr(policies, "POLICIES", {**policies.POLICIES, "shockwave": entry})
    out = runs(capsys, *GENERATED, "--policies", "fifo,shockwave", "--workers", 1, "--json").out
    assert json.loads(out)["relative_to"] == "shockwave"


def test_a_policy_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    original = compare_run.run_policy

    def run_policy(setting, spec, on_step=None):
        if spec.name == "gandiva-fair":
            raise InvalidInput("shares", 2.0, "more than there is")
        return original(setting, spec, on_step)

    monkeypatch.setattr(compare_run, "run_policy", run_policy)
    out = tmp_path / "out"
    line, shown, told = fails(capsys, [*GENERATED, "--policies", POLICIES, "--workers", 1, "--out", out])
    assert line == "1 of 3 policies failed"
    assert "equipoise: gandiva-fair: shares = 2.0: more than there is" in told
    assert "fifo" in shown
    assert "gandiva" not in shown
    assert sorted(each.parent.name for each in out.glob("*/summary.json")) == ["fifo", "las"]
    assert json.loads((out / "summary.json").read_text())["failed"] == {
        "gandiva-fair": "shares = 2.0: more than there is"
    }
    assert "Failed: gandiva-fair (shares = 2.0: more than there is)" in (out / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policies", "fifo,fifo"], "policy fifo: named twice"),
        (["--policies", "fifo,lass"], "name = 'lass': did you mean 'las'"),
        (["--policies", ","], "no policy named"),
        (["--policies", "fifo", "--workers", "0"], "--workers = 0: at least 1"),
        (["--policies", "fifo", "--engine", "liquid"], "--engine liquid: unknown"),
        (["--policies", "fifo", "--html", "none/such.html"], "--html none/such.html: the folder none does not exist"),
        (["--policies", "fifo", "--gpus", "x"], "--gpus x: not a number of GPUs"),
    ],
)
def test_a_bad_option_is_one_line_and_a_hint(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    line, out, _ = fails(capsys, ["generated:3", *arguments])
    assert line.startswith(message)
    assert out == ""
    assert not list(tmp_path.iterdir())


def test_a_fault_of_the_trace_names_its_line(tmp_path, capsys):
    trace = tmp_path / "jobs.csv"
    header = "job_id,model,batch_size,scale_factor,mode,total_steps,arrival_time_s"
    trace.write_text(f"{header}\n1,LM,10,1,static,9,0\n2,Gone,10,1,static,9,0\n")
    line, _, _ = fails(capsys, [trace, "--policies", POLICIES, "--html", tmp_path / "page.html"])
    assert line.startswith("model = 'Gone': no data set size in profiles 'builtin'")
    assert line.endswith("(jobs.csv, line 3)")
    assert not (tmp_path / "page.html").exists()


def test_as_many_at_once_as_there_are_policies_or_processors(monkeypatch):
    assert workers_for(None, 1) == (1, "")
    assert workers_for(1, 5) == (1, "")
    monkeypatch.setattr(compare_run, "find_spec", lambda name: None)
    count, note = workers_for(4, 5)
    assert count == 1
    assert "pip install 'equipoise[distributed]'" in note
    monkeypatch.setattr(compare_run, "find_spec", lambda name: object())
    assert workers_for(4, 3) == (3, "")
    assert workers_for(2, 5) == (2, "")
    assert 1 <= workers_for(None, 100)[0] <= (os.cpu_count() or 1)


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_leaves_the_finished_policies_and_says_so(tmp_path, workers):
    if workers > 1:
        pytest.importorskip("joblib")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    out = tmp_path / "out"
    policies = ["gandiva-fair", "fifo", "las", "gavel", "isolated", "proportional"]
    arguments = ["generated:150", "--policies", ",".join(policies), "--workers", str(workers), "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "equipoise", "compare", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        while not (out / "summary.json").is_file():
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the command
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == ""
    first, last = said.splitlines()
    assert last == "equipoise: interrupted"
    count, names, place = re.fullmatch(r"equipoise: wrote (\d) of 6 policies \((.*)\) to (.*)", first).groups()
    finished = names.split(", ")
    assert place == str(out)
    assert int(count) == len(finished) < 6
    assert set(finished) <= set(policies)
    for policy in finished:
        assert {each.name for each in (out / policy).iterdir()} == FILES
        assert json.loads((out / policy / "summary.json").read_text())["num_jobs"] == 150
    waiting = ", ".join(policy for policy in policies if policy not in finished)
    assert f"Not finished: {waiting}." in (out / "page.html").read_text()
    assert json.loads((out / "summary.json").read_text())["asked"] == policies
    assert pd.read_csv(out / "comparison.csv")["policy"].tolist() == finished
    # Nothing half-written, in the folder of whichever policy was next either.
    assert not [each for each in out.rglob("*") if each.name.startswith(".")]
    assert all(each.name in FILES for each in out.glob("*/*"))


def test_an_interrupt_before_anything_is_finished_says_so(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "run_policies", interrupted)
    arguments = [*GENERATED, "--policies", POLICIES, "--workers", "1", "--out", str(tmp_path / "out")]
    assert main.run(["compare", *arguments]) == 130
    assert capsys.readouterr().err.splitlines() == [
        "equipoise: no policy had finished; nothing was written",
        "equipoise: interrupted",
    ]
    assert not list((tmp_path / "out").iterdir())
