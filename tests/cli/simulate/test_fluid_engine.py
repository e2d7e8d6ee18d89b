"""The fluid engine on the command line: policies with files, predictions, speedups and what is refused."""

import json
import math

import pandas as pd
import pytest

from equipoise import WfqConfig
from equipoise.cli.main import run
from equipoise.heuristics import policies_of

TRACE = """app_id,submit_time,service,num_jobs,sleep_time,model_name
0,0.0,100.0,4,0.0,m
1,5.0,10.0,2,5.0,m
2,6.0,300.0,1,1.0,n
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(TRACE, encoding="utf-8")
    speedups = {"models": {"m": {"speedup": [1.0, 1.5, 2.0, 2.5]}, "n": {"speedup": [1.0]}}}
    (tmp_path / "speedups.json").write_text(json.dumps(speedups), encoding="utf-8")
    WfqConfig(thresholds=[50.0, math.inf], weights=["1/2", "1/2"]).to_json(tmp_path / "config.json")
    return tmp_path


def test_a_run_with_predictions(files, capsys):
    words = ["simulate", "jobs.csv", "--policy", "wfq:config=config.json", "--gpus", "4", "--speedups", "speedups.json"]
    assert run([*words, "--predict", "--json", "--per-job", "--out", "results"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["engine"], found["speedups"], found["gpus"]) == ("fluid", "speedups.json", 4)
    assert found["rules"]["predict"] is True
    # 10 of work on the 2 GPUs of its queue, at s(2) = 1.5.
    assert found["jobs"][1]["end_s"] == pytest.approx(5.0 + 10.0 / 1.5)
    assert found["avg_error_pct"] > 0.0
    assert found["jobs"][1]["bound_s"] == found["jobs"][1]["predicted_end_s"]
    assert found["jobs"][1]["preemptions"] == 0
    jobs = pd.read_csv(files / "results" / "jobs.csv")
    assert (jobs["end_s"] <= jobs["bound_s"] * (1 + 1e-9)).all()
    assert jobs["predicted_end_s"].notna().all()
    page = (files / "results" / "page.html").read_text(encoding="utf-8")
    assert "predicted end s" in page
    assert "--speedups speedups.json" in page


def test_the_jobs_are_printed_with_their_predictions(files, capsys):
    words = ["simulate", "jobs.csv", "--policy", "fs", "--engine", "fluid", "--gpus", "4", "--per-job"]
    assert run([*words, "--predict", "--rules", "preemption_s=3"]) == 0
    printed = capsys.readouterr().out
    assert "decisions by rule in compiled loops" in printed
    assert all(title in printed for title in ("predicted end s", "bound s", "error %", "unfairness", "preemptions"))
    assert run(words) == 0
    assert "-" in capsys.readouterr().out
    assert run(["simulate", "generated:5", "--policy", "fifo", "--predict"]) == 2
    assert "--rules predict: no such rule" in capsys.readouterr().err


def test_all_policies_of_the_engine_are_compared_by_default(files, capsys):
    assert (
        run(["compare", "jobs.csv", "--engine", "fluid", "--gpus", "4", "--predict", "--json", "--workers", "1"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [each["policy"] for each in found["policies"]] == list(policies_of("fluid"))


def test_policies_are_compared(files, capsys):
    words = ["compare", "jobs.csv", "--policies", "srsf,fs,wfq,themis", "--engine", "fluid", "--gpus", "4"]
    assert run([*words, "--speedups", "speedups.json", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("srsf", "fs", "wfq", "themis", "unfairness"))


def test_the_own_speedups_are_the_default(files, capsys):
    assert run(["simulate", "jobs.csv", "--engine", "fluid", "--policy", "fifo", "--gpus", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["speedups"] is None


def test_a_generated_workload_takes_its_durations_from_the_profiles(capsys):
    assert run(["simulate", "generated:12", "--engine", "fluid", "--policy", "fifo", "--gpus", "64", "--json"]) == 0
    fluid = json.loads(capsys.readouterr().out)
    assert run(["simulate", "generated:12", "--engine", "placement", "--policy", "fifo", "--gpus", "64", "--json"]) == 0
    placed = json.loads(capsys.readouterr().out)
    # No job waits on so many GPUs, so each takes its duration.
    assert fluid["avg_jct_s"] == pytest.approx(placed["avg_jct_s"], rel=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "gavel", "--speedups", "speedups.json"], "gavel"),
        (["--policy", "sjf", "--speedups", "speedups.json"], "sjf"),
        (["--policy", "srsf", "--speedups", "none.json"], "none.json"),
        (["--policy", "srsf", "--machines", "2"], "it is a policy of fluid"),
        (["--policy", "wfq:config=none.json"], "none.json"),
        (["--policy", "srsf", "--rules", "size_error_pct=200"], "size_error_pct"),
    ],
)
def test_what_is_refused(files, capsys, words, message):
    assert run(["simulate", "jobs.csv", "--gpus", "4", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
