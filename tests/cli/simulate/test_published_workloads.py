"""Dally's workloads and Helios traces on the command line: what is simulated, noted, written and refused."""

import json

import numpy as np
import pandas as pd
import pytest

from equipoise.cli.main import run
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, read_helios, simulate
from equipoise.simulation.network import TableSpeeds
from equipoise.simulation.network.workloads import assign_models, draw_dally_jobs

DAY = "2021-03-04"
HELIOS = f"""job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,ua,vcX,8,4,1,COMPLETED,{DAY} 10:00:00,{DAY} 10:00:30,{DAY} 11:00:30,3600,30
12,ub,vcY,0,16,1,COMPLETED,{DAY} 10:00:00,{DAY} 10:00:00,{DAY} 10:00:09,9,0
13,ub,vcY,16,64,2,FAILED,{DAY} 10:05:00,{DAY} 10:05:00,{DAY} 10:25:00,1200,0
14,uc,vcX,64,256,8,CANCELLED,{DAY} 10:06:00,{DAY} 10:06:00,{DAY} 10:36:00,1800,0
15,uc,vcX,1,2,1,NODE_FAIL,{DAY} 10:07:00,{DAY} 10:07:00,{DAY} 10:07:10,10,0
"""
RACKS = 2
CLUSTER = Cluster(gpus_by_type={"gpu": 64 * RACKS}, machines=8 * RACKS, racks=RACKS)


@pytest.fixture
def helios(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helios.csv").write_text(HELIOS, encoding="utf-8")


def found(capsys, trace, *arguments, policy="dally"):
    arguments = ["simulate", trace, "--policy", policy, "--racks", str(RACKS), *arguments, "--json", "--per-job"]
    assert run(arguments) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def failing(capsys, *arguments):
    """Return the error, which comes before anything runs."""
    assert run([*arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def ends_of(trace, policy="dally"):
    result = simulate(trace, make_policy(policy), cluster=CLUSTER, speeds=TableSpeeds(cluster=CLUSTER))
    return result.end_s.tolist()


@pytest.mark.parametrize(
    ("text", "jobs", "options"),
    [
        ("generated:30,workload=batch", 30, {}),
        ("generated:20,workload=poisson,load=3", 20, {"arrivals": "poisson", "load": 3}),
        ("generated:20,median_s=600,sigma=0.5,workload=poisson", 20,
         {"arrivals": "poisson", "median_s": 600, "sigma": 0.5}),
    ],
)  # fmt: skip
def test_a_generated_workload_is_that_of_the_function(capsys, text, jobs, options):
    document, _ = found(capsys, text, "--speeds", "table", "--seed", "3")
    trace = draw_dally_jobs(np.random.default_rng(3), jobs=jobs, gpus=CLUSTER.gpus, **options)
    assert [row["end_s"] for row in document["jobs"]] == ends_of(trace)
    assert (document["num_jobs"], document["gpus"], document["profiles"]) == (jobs, 128, "the trace's own")
    for name in ("waited_s", "exposed_s"):
        values = [row[name] for row in document["jobs"]]
        assert document[f"avg_{name}"] == pytest.approx(np.mean(values))
        assert document[f"p99_{name}"] == pytest.approx(np.percentile(values, 99))
    assert document["billed_gpu_h"] == pytest.approx(128 * document["makespan_s"] / 3600)


def test_the_numbers_of_jobs_are_the_published_ones(capsys):
    for workload, jobs in (("batch", 500), ("poisson", 400)):
        text, cluster = f"generated:workload={workload},sigma=0.1", ("--gpus", "512", "--machines", "64")
        document, _ = found(capsys, text, "--speeds", "durations", *cluster, policy="fifo")
        assert document["num_jobs"] == jobs
    assert found(capsys, "generated:workload=batch", "--jobs", "7", policy="tiresias")[0]["num_jobs"] == 7


def test_gangs_that_do_not_fit_are_left_out(tmp_path, capsys):
    arguments = ["generated:40,workload=batch", "--policy", "tiresias", "--machines", "2", "--gpus", "8"]
    assert run(["simulate", *arguments, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert set(pd.read_csv(tmp_path / "jobs.csv")["gpus"]) <= {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generated:5,workload=batch,load=2", "--racks", "2"], "load = 2: belongs to Poisson arrivals"),
        (["generated:5,workload=batch,gpus=3", "--racks", "2"], "no option 'gpus'"),
        (["generated:0,workload=batch", "--racks", "2"], "jobs = 0: at least 1"),
        (["generated:5,workload=poisson,load=x", "--racks", "2"], "load = 'x': must be a number"),
        (["generated:5,workload=batch", "--racks", "2", "--speeds", "models"], "must be cluster or testbed"),
        (["generated:5,workload=batch", "--gpus", "8", "--policy", "las"], "no option 'workload'"),
        (["helios.csv", "--racks", "2", "--speeds", "models"], "models = 'ModelSpeeds': must be left out"),
        (["helios.csv:cluster=vcZ", "--racks", "2"], "cluster = 'vcZ': "),
        (["helios.csv:workload=batch", "--racks", "2"], "no option 'workload'"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(helios, capsys, arguments, message):
    policy = [] if "--policy" in arguments else ["--policy", "tiresias"]
    assert message in failing(capsys, "simulate", *arguments, *policy)


def test_a_helios_trace_gets_models_by_seed(helios, capsys):
    for seed in (0, 1):
        document, said = found(capsys, "helios.csv", "--speeds", "table", "--seed", str(seed))
        assert "left out 1 job(s) without GPUs, and 0 with GPUs that never ran" in said
        assert f"models: helios.csv names none; they are drawn from Dally's mix by --seed {seed}" in said
        with pytest.warns(UserWarning, match="left out"):
            trace = assign_models(np.random.default_rng(seed), read_helios("helios.csv"))
        assert [row["job_id"] for row in document["jobs"]] == [11, 13, 14, 15]
        assert [row["end_s"] for row in document["jobs"]] == ends_of(trace)


def test_a_virtual_cluster_of_a_helios_trace(helios, capsys):
    document, _ = found(capsys, "helios.csv:cluster=vcX", "--speeds", "penalties", policy="gandiva")
    assert [row["job_id"] for row in document["jobs"]] == [11, 14, 15]


@pytest.mark.parametrize(("engine", "policy"), [("rounds", "fifo"), ("fluid", "srsf")])
def test_other_engines_run_helios_traces_as_durations(helios, capsys, engine, policy):
    options = ["--gpus", "128", "--engine", engine, "--json"]
    name = "helios.csv:group=realistic" if engine == "fluid" else "helios.csv"
    assert run(["simulate", name, "--policy", policy, *options]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["num_jobs"] == 4
    assert "Dally's mix" not in captured.err


def test_the_page_shows_jobs_left_and_timers_where_there_are_any(tmp_path, capsys):
    trace = "generated:30,workload=batch"
    for policy, tuned in (("dally", True), ("dally-nowait", False)):
        arguments = ["simulate", trace, "--policy", policy, "--racks", "2", "--speeds", "table"]
        assert run([*arguments, "--out", str(tmp_path / policy)]) == 0
        shown = capsys.readouterr().out
        page = (tmp_path / policy / "page.html").read_text(encoding="ascii")
        assert page.count("<svg") == 5 + tuned
        assert "Jobs left" in page
        assert ("Timer of a machine" in page) == tuned
        assert (tmp_path / policy / "timers.csv").exists() == tuned
        assert "exposed s" in page
        assert "exposed s" in shown
    timers = pd.read_csv(tmp_path / "dally" / "timers.csv")
    assert (np.diff(timers["time_s"]) >= 0).all()


def test_a_comparison_has_communication_where_speeds_know_it(tmp_path, capsys):
    arguments = ["compare", "generated:12,workload=batch", "--policies", "dally,tiresias", "--racks", "2"]
    for speeds in ("table", "durations"):
        page = tmp_path / f"{speeds}.html"
        assert run([*arguments, "--speeds", speeds, "--workers", "1", "--html", str(page)]) == 0
        shown = capsys.readouterr().out
        assert ("exposed" in shown) == (speeds == "table")
        text = page.read_text(encoding="ascii")
        assert "GPUs in use and jobs left" in text
        assert ("exposed s" in text) == (speeds == "table")
