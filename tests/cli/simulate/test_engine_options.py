"""Options of the placement engine on the command line: what they choose, what they make, and what is refused."""

import json
from importlib.resources import files

import pandas as pd
import pytest
from shared_data import DATA

from equipoise.cli.main import run
from equipoise.heuristics import policies_of
from equipoise.simulation import delimited_files

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
        (["--policy", "sjf", "--racks", "0"], "--racks = 0: at least 1"),
        (["--policy", "sjf", "--racks", "2", "--gpus", "64"], "--gpus = '64': 16 machines of 8 GPUs have 128"),
        (["--policy", "sjf", "--machines", "4", "--racks", "3"], "--racks = 3: 4 machines do not divide into so many"),
        (["--policy", "sjf", "--interference", "0.5"], "--interference = 0.5: at least 1"),
        (
            ["--policy", "sjf", "--interference", "many"],
            "--interference = 'many': must be a number of at least 1, a file",
        ),
        (["--policy", "sjf", "--interference", "nan"], "--interference = nan: must be finite"),
        (["--policy", "sjf", "--gpus", "a=1,b=2", "--machines", "3"], "--gpus with types: this engine takes"),
        (["--policy", "sjf", "--models", "own.csv"], "--models own.csv: read by --speeds models only"),
        (["--policy", "sjf", "--speeds", "models"], "model[0] = 'Recommendation': not in the table of models"),
        (["--policy", "sjf", "--slowdown", "0.5"], "--slowdown = 0.5: at least 1"),
        (["--policy", "sjf", "--slowdown", "nan"], "--slowdown = nan: must be finite"),
        (
            ["--policy", "sjf", "--slowdown", "much"],
            "--slowdown = 'much': must be a number of at least 1, or a file of",
        ),
        (["--policy", "sjf", "--slowdown", "2", "--speeds", "models"], "--slowdown = '2': --speeds models states the"),
        (["--engine", "rounds", "--slowdown", "2"], "--slowdown: not an option of the engine rounds"),
        (["--policy", "gavel", "--slowdown", "2"], "it is a policy of rounds; the policies of placement are"),
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


def slow(folder, *lines):
    path = folder / "slowdowns.csv"
    path.write_text("\n".join(["job,gpus,slowdown", *lines]) + "\n")
    return path


def durations(folder, *lines):
    path = folder / "jobs.csv"
    path.write_text("\n".join(["job_id,submit_time_s,duration_s,num_gpus,model,batch_size", *lines]) + "\n")
    return path


def ends(capsys, *arguments):
    found = result_of(capsys, "simulate", *map(str, arguments), "--per-job")
    return {job["job_id"]: job["end_s"] for job in found["jobs"]}


def test_a_job_on_more_machines_than_it_needs_is_slowed(tmp_path, capsys):
    # Two jobs leave one GPU free on each of two machines.
    trace = durations(tmp_path, "a,0,400,2,m,8", "b,0,600,2,m,8", "c,1,100,2,m,8")
    base = [trace, "--policy", "fifo", "--machines", 2, "--gpus", 6, "--engine", "placement"]
    assert ends(capsys, *base) == {"a": 400, "b": 600, "c": 101}
    assert ends(capsys, *base, "--slowdown", 1.5) == {"a": 400, "b": 600, "c": 151}
    assert ends(capsys, *base, "--slowdown", 1.5, "--speeds", "profiles")["c"] == 151
    table = slow(tmp_path, "m (batch size 8),2,2.5", "m (batch size 8),8,5")
    for name in ("durations", "profiles"):
        found = result_of(capsys, "simulate", *map(str, base), "--slowdown", str(table), "--speeds", name)
        assert (found["makespan_s"], found["slowdown"], found["speeds"]) == (600, str(table), name)
    assert ends(capsys, *base, "--slowdown", table)["c"] == 251
    arguments = ["compare", *map(str, [*base, "--policies", "fifo", "--slowdown", table])]
    del arguments[2:4]
    assert result_of(capsys, *arguments)["policies"][0]["avg_jct_s"] == pytest.approx((400 + 600 + 250) / 3)


def test_jobs_without_a_measured_slowdown_are_counted(tmp_path, capsys):
    trace = durations(tmp_path, "a,0,400,2,m,8", "b,0,600,2,other,8")
    arguments = [str(trace), "--policy", "fifo", "--machines", "2", "--gpus", "6"]
    assert run(["simulate", *arguments, "--slowdown", str(slow(tmp_path, "other,2,2.5"))]) == 0
    assert "1 of 2 jobs are not in the table of slowdowns" in capsys.readouterr().err


def test_the_skew_of_models_reaches_the_policies_that_read_it(tmp_path, capsys):
    builtin = (files("equipoise.simulation.placement") / "data" / "six_models.csv").read_text(encoding="utf-8")
    header, *lines = builtin.splitlines()
    bert = next(line for line in lines if line.startswith("bert,"))
    own = tmp_path / "models.csv"

    def end_of_c(*more):
        return ends(
            capsys, trace, "--machines", 2, "--gpus", 6, "--speeds", "models", "--policy", *(more or ["tiresias"])
        )["c"]

    # Two jobs leave one GPU free on each of two machines; the third starts there unless its model is skewed.
    trace = durations(tmp_path, "a,0,4000,2,ncf,512", "b,0,6000,2,ncf,512", "c,1,100,2,bert,12")
    spread = end_of_c()
    assert 101 < spread < 1000
    own.write_text("\n".join([header, bert.replace(",0.215,", ",0.9,")]) + "\n")
    assert end_of_c("tiresias", "--models", own) == pytest.approx(4100, abs=1e-3)
    assert end_of_c("tiresias-gittins", "--models", own) == pytest.approx(4100, abs=1e-3)
    assert end_of_c("tiresias:skew_threshold=0.95", "--models", own) == spread
    # The option of the policy itself goes first.
    assert end_of_c("tiresias:skew=ncf:0.5", "--models", own) == spread
    assert end_of_c("fifo", "--models", own) == spread


def test_files_are_read_once(tmp_path, capsys, monkeypatch):
    read, original = [], delimited_files.read_lines

    def counting(path):
        read.append(path.name)
        return original(path)

    monkeypatch.setattr(delimited_files, "read_lines", counting)
    trace, pairs = durations(tmp_path, "a,0,60,1,ncf,8192", "b,0,60,1,ncf,8192"), tmp_path / "pairs.csv"
    pairs.write_text(PAIRS)
    own = tmp_path / "models.csv"
    own.write_text((files("equipoise.simulation.placement") / "data" / "six_models.csv").read_text(encoding="utf-8"))
    base = [
        str(trace),
        "--gpus",
        "1",
        "--engine",
        "placement",
        "--interference",
        str(pairs),
        "--rules",
        "jobs_per_gpu=2",
    ]
    result_of(
        capsys,
        "compare",
        *base,
        "--policies",
        "fifo,sjf,lucid",
        "--workers",
        "1",
        "--speeds",
        "models",
        "--models",
        str(own),
    )
    assert sorted(name for name in read if name != "six_models.csv") == ["jobs.csv", "models.csv", "pairs.csv"]
    read.clear()
    table = slow(tmp_path, "ncf,2,2.5")
    result_of(capsys, "simulate", *base, "--policy", "sjf", "--slowdown", str(table))
    assert sorted(read) == ["jobs.csv", "pairs.csv", "slowdowns.csv"]


def test_measured_pairs_match_the_models_of_a_trace_of_durations(tmp_path, capsys):
    trace, pairs = durations(tmp_path, "a,0,60,2,LM,10", "b,0,60,2,LM,10", "c,0,60,2,A3C,"), tmp_path / "pairs.csv"
    pairs.write_text(PAIRS.replace("ncf (batch size 8192)", "LM (batch size 10)"))
    base = [
        trace,
        "--machines",
        1,
        "--gpus",
        2,
        "--policy",
        "lucid",
        "--interference",
        pairs,
        "--rules",
        "jobs_per_gpu=2",
    ]
    assert ends(capsys, *base, "--jobs", 2) == {"a": 90, "b": 90}
    said = failing(capsys, "simulate", *map(str, base))
    assert "the file has no ratio of A3C (batch size 1) beside A3C (batch size 1)" in said


@pytest.mark.skipif(not (DATA / "gavel").is_dir(), reason="the published tables are not beside the repository")
def test_the_published_pairs_match_a_published_trace_of_durations(tmp_path, capsys):
    lines = (DATA / "gavel" / "gavel_msr_51b7ef.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    # Of these two not all pairs were measured.
    trace = tmp_path / "jobs.csv"
    trace.write_text(
        "".join(line for line in lines if ",ResNet-50,128," not in line and ",Transformer,256," not in line)
    )
    base = ["simulate", str(trace), "--machines", "2", "--gpus", "8", "--policy", "lucid", "--rules", "jobs_per_gpu=2"]
    found = result_of(capsys, *base, "--interference", str(DATA / "gavel" / "interference_1gpu.csv"), "--skip-wide")
    assert (found["num_jobs"], found["speeds"]) == (15, None)


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
