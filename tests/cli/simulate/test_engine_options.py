"""Options of the placement engine on the command line: what they choose, what they make, and what is refused."""

import json

import pandas as pd
import pytest

from equipoise.cli.main import run
from equipoise.heuristics import policies_of

SHORT = ["generated:12", "--jobs", "12"]


def failing(capsys, *arguments):
    """Return the line of an error that comes before anything runs."""
    assert run([*arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def result_of(capsys, *arguments):
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_option_of_one_engine_chooses_it_and_is_part_of_the_document(capsys):
    found = result_of(capsys, "simulate", *SHORT, "--policy", "fifo", "--machines", "4", "--gpus-per-machine", "2")
    assert (found["engine"], found["gpus"], found["machines"], found["gpus_per_machine"]) == ("placement", 8, 4, 2)
    assert (found["racks"], found["speeds"], found["interference"]) == (None, None, None)
    assert found["preemptions"] == 0
    rounds = result_of(capsys, "simulate", *SHORT, "--policy", "fifo", "--gpus", "8")
    assert rounds["engine"] == "rounds"
    assert "machines" not in rounds


def test_the_page_repeats_the_options(tmp_path, capsys):
    options = ["--machines", "4", "--racks", "2", "--interference", "1.5", "--rules", "jobs_per_gpu=2"]
    assert run(["simulate", *SHORT, "--policy", "srtf", *options, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("--machines 4", "--racks 2", "--interference 1.5", "--rules jobs_per_gpu=2"):
        assert words in page
    assert "with at most 2 job(s) on a GPU" in page
    assert (tmp_path / "jobs.csv").read_text(encoding="utf-8").splitlines()[0].count("preemptions") == 1
    capsys.readouterr()


def test_policies_of_the_engine_are_compared(capsys):
    found = result_of(capsys, "compare", *SHORT, "--engine", "placement", "--machines", "2", "--gpus", "8")
    # Pollux and Sia need --speeds models.
    assert found["asked"] == [name for name in policies_of("placement") if name not in ("pollux", "sia")]
    assert found["machines"] == 2
    by_policy = {each["policy"]: each for each in found["policies"]}
    assert by_policy["srtf"]["preemptions"] > 0 == by_policy["sjf"]["preemptions"]


def test_every_metric_is_given_for_wide_and_narrow_jobs(tmp_path, capsys):
    arguments = [*SHORT, "--policy", "srtf", "--machines", "4", "--gpus", "8", "--split-gpus", "1"]
    assert run(["simulate", *arguments, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    jobs = pd.read_csv(tmp_path / "jobs.csv")
    groups = {"more": jobs[jobs["gpus"] > 1], "at_most": jobs[jobs["gpus"] <= 1]}
    for name, some in groups.items():
        metrics = found["by_gpus"][name]
        assert metrics["jobs"] == len(some) > 0
        assert metrics["avg_jct_s"] == pytest.approx(some["jct_s"].mean())
        assert metrics["avg_waited_s"] == pytest.approx(some["waited_s"].mean())
        assert metrics["preemptions"] == some["preemptions"].sum()
    assert "> 1 GPUs" in shown
    assert "<= 1 GPUs" in shown
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "more than 1 GPUs" in page
    assert "on 4 machines" in page
    none = result_of(capsys, "simulate", *SHORT, "--policy", "fifo", "--gpus", "8", "--split-gpus", "8")
    assert none["by_gpus"]["more"] == {}
    assert none["by_gpus"]["at_most"]["jobs"] == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "rounds", "--machines", "2"], "--machines: not an option of the engine rounds"),
        (["--policy", "gavel", "--speeds", "profiles"], "it is a policy of rounds; the policies of placement are"),
        (["--policy", "sjf", "--machines", "3"], "--machines = 3: does not divide the 32 GPUs"),
        (["--policy", "sjf", "--machines", "0"], "--machines = 0: at least 1"),
        (["--policy", "sjf", "--gpus-per-machine", "5"], "--gpus-per-machine = 5: does not divide the 32 GPUs"),
        (
            ["--policy", "sjf", "--machines", "3", "--gpus-per-machine", "4", "--gpus", "8"],
            "--gpus = '8': 3 machines of 4 GPUs have 12",
        ),
        (["--policy", "sjf", "--racks", "2"], "--racks = 2: needs machines or gpus_per_machine"),
        (["--policy", "sjf", "--machines", "4", "--racks", "3"], "--racks = 3: 4 machines do not divide into so many"),
        (["--policy", "sjf", "--interference", "0.5"], "--interference = 0.5: at least 1"),
        (
            ["--policy", "sjf", "--interference", "many"],
            "--interference = 'many': must be a number of at least 1, a file",
        ),
        (["--policy", "sjf", "--interference", "nan"], "--interference = nan: must be finite"),
        (["--policy", "sjf", "--gpus", "a=1,b=2", "--machines", "3"], "--gpus with types: the placement engine takes"),
        (["--policy", "sjf", "--models", "own.csv"], "--models own.csv: read by --speeds models only"),
        (["--policy", "sjf", "--speeds", "models"], "model[0] = 'Recommendation': not in the table of models"),
        (["--policy", "sjf", "--speeds", "fast"], "--speeds = 'fast': must be one of durations, models, profiles"),
        (["--policy", "sjf", "--speeds", "durations"], "--speeds = 'durations': the trace has no durations"),
        (["--policy", "sjf", "--split-gpus", "0"], "--split-gpus = 0: at least 1"),
        (["--engine", "place"], "--engine place: unknown"),
    ],
)
def test_bad_options_are_refused_by_name(options, said, capsys):
    assert said in failing(capsys, "simulate", *SHORT, *options)


def test_a_trace_of_durations_runs_at_its_durations(tmp_path, capsys):
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submit_time_s,duration_s,num_gpus,model\na,0,600.4,1,m\nb,5.5,90,4,m\nc,7,33,1,m\n")
    found = result_of(capsys, "simulate", str(trace), "--policy", "fifo", "--machines", "1", "--gpus", "4", "--per-job")
    ends = {job["job_id"]: job["end_s"] for job in found["jobs"]}
    # A strict queue: b needs all GPUs and waits for a, and c waits behind b.
    assert ends == pytest.approx({"a": 600.4, "b": 690.4, "c": 723.4})


PAIRS = """gpu,job_a,job_b,solo_a_steps_s,solo_b_steps_s,xi_a,xi_b
v100,ncf (batch size 8192),ncf (batch size 8192),9,9,1.5,1.5
"""


def test_speeds_by_models_and_measured_or_drawn_interference(tmp_path, capsys):
    trace, pairs = tmp_path / "jobs.csv", tmp_path / "pairs.csv"
    trace.write_text(
        "job_id,submit_time_s,duration_s,num_gpus,model,batch_size\na,0,60,1,ncf,8192\nb,0,60,1,ncf,8192\n"
    )
    pairs.write_text(PAIRS)
    base = ["simulate", str(trace), "--speeds", "models", "--machines", "1", "--gpus", "1", "--policy", "fifo"]
    for text in (str(pairs), f"drawn:{pairs}"):
        found = result_of(capsys, *base, "--interference", text, "--rules", "jobs_per_gpu=2")
        assert (found["interference"], found["speeds"], found["makespan_s"]) == (text, "models", pytest.approx(120.0))
    pairs.write_text(PAIRS.replace("ncf", "bert"))
    said = failing(capsys, *base, "--interference", str(pairs), "--rules", "jobs_per_gpu=2")
    assert "the file has no ratio of ncf (batch size 8192) beside ncf (batch size 8192)" in said
