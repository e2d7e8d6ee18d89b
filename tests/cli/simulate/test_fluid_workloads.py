"""Workloads of the fluid engine on the command line: generated ones, and virtual clusters of a trace of durations."""

import json

import numpy as np
import pytest

from equipoise.cli.main import run
from equipoise.heuristics import make_policy
from equipoise.simulation.fluid import Cdf, Speedups, generate_jobs, read_virtual_cluster, simulate_fluid
from equipoise.simulation.fluid.workloads.generator import WORKLOADS, Workload

ROWS = """job_id,submit_time_s,duration_s,num_gpus,model,batch_size,work_gpu_s
7,100,60,2,6214e9,,120
8,150,30,64,other,,1920
9,170,90,8,6214e9,,720
"""
CDF = "#minutes,cdf\n30,0.00\n100,0.5\n333,1.0\n"
TABLES = {
    "models": {"fast": {"speedup": [1, 2, 3, 4]}, "slow": {"speedup": [1, 1.2]}},
    "groups": {"realistic": ["fast"], "own": ["slow"], "none": []},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"jobs.csv": ROWS, "cdf.csv": CDF, "tables.json": json.dumps(TABLES)}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def found(capsys, trace, *arguments, policy="srsf"):
    assert run(["simulate", trace, "--policy", policy, *arguments, "--json", "--per-job"]) == 0
    return json.loads(capsys.readouterr().out)


def failing(capsys, trace, *arguments):
    """Return the error, which comes before anything runs."""
    assert run(["simulate", trace, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def ends_of(trace, speedups, gpus):
    return simulate_fluid(trace, make_policy("srsf", "fluid"), cluster=gpus, speedups=speedups).end_s.tolist()


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        ("generated:30,workload=training", WORKLOADS["training"]),
        ("generated:30,workload=automl,load=0.5", Workload(**vars(WORKLOADS["automl"]) | {"load": 0.5})),
        ("generated:30,workload=continuous", WORKLOADS["continuous"]),
        (
            "generated:30,workload=continuous,load=2",
            Workload(**vars(WORKLOADS["continuous"]) | {"load": 2, "jobs_per_hour": None}),
        ),
    ],
)
def test_a_generated_workload_is_that_of_the_library(capsys, text, workload):
    document = found(capsys, text, "--gpus", "16", "--seed", "3")
    trace = generate_jobs(np.random.default_rng(3), workload, num_jobs=30, gpus=16)
    assert (document["engine"], document["num_jobs"], document["trace"]) == ("fluid", 30, text)
    assert [job["end_s"] for job in document["jobs"]] == ends_of(trace, Speedups.builtin(), 16)


def test_files_of_distributions_and_a_group_replace_those_of_the_workload(capsys, folder):
    (folder / "gpus.csv").write_text("#gpus-per-job,cdf\n1,0\n9,1\n", encoding="utf-8")
    text = "generated:30,sizes=cdf.csv,demands=gpus.csv,group=own,jobs_per_hour=20"
    document = found(capsys, text, "--gpus", "4", "--speedups", "tables.json")
    workload = Workload(sizes=Cdf.read("cdf.csv"), demands=Cdf.read("gpus.csv"), group="own", jobs_per_hour=20)
    tables = Speedups.read("tables.json")
    trace = generate_jobs(np.random.default_rng(0), workload, num_jobs=30, gpus=4, speedups=tables)
    assert [job["end_s"] for job in document["jobs"]] == ends_of(trace, tables, 4)
    assert set(trace.gang_gpus.tolist()) == {1, 2}


def test_the_number_of_jobs_may_be_left_to_the_option(capsys):
    assert found(capsys, "generated:load=0.5", "--jobs", "7")["num_jobs"] == 7
    assert found(capsys, "generated:9,load=0.5", "--jobs", "7")["num_jobs"] == 7


def test_a_virtual_cluster_runs_with_models_by_seed(capsys, folder):
    # As a number, its name would be 6.214e12.
    document = found(capsys, "jobs.csv:cluster=6214e9", "--engine", "fluid", "--seed", "5", "--gpus", "8")
    speedups = Speedups.builtin()
    trace = read_virtual_cluster("jobs.csv", "6214e9", rng=np.random.default_rng(5), speedups=speedups)
    assert [job["job_id"] for job in document["jobs"]] == [7, 9]
    assert [job["end_s"] for job in document["jobs"]] == ends_of(trace, speedups, 8)
    own = found(capsys, "jobs.csv:cluster=6214e9,group=own", "--speedups", "tables.json", "--gpus", "8")
    # Alone: 60 s on two GPUs from 100 s on; then the second runs for its 90 s, on two GPUs too.
    assert [job["end_s"] for job in own["jobs"]] == pytest.approx([160, 260])


def test_models_are_drawn_for_a_whole_file(capsys, folder):
    document = found(capsys, "jobs.csv:group=realistic", "--speedups", "tables.json", "--gpus", "16")
    assert document["num_jobs"] == 3


@pytest.mark.parametrize("engine", ["rounds", "placement"])
def test_other_engines_take_a_virtual_cluster_without_models(capsys, folder, engine):
    document = found(capsys, "jobs.csv:cluster=6214e9", "--engine", engine, "--gpus", "8", policy="fifo")
    assert [job["job_id"] for job in document["jobs"]] == [7, 9]


def test_policies_are_compared_and_the_page_repeats_the_trace(capsys, folder):
    names = "fifo,srsf,wfq"
    arguments = ["compare", "jobs.csv:cluster=6214e9", "--engine", "fluid", "--policies", names, "--gpus", "8"]
    assert run([*arguments, "--html", "page.html", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["policy"] for each in document["policies"]] == names.split(",")
    assert "jobs.csv:cluster=6214e9" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_file_whose_name_looks_like_options_is_a_file(capsys, folder):
    (folder / "a:b=c.csv").write_text(ROWS, encoding="utf-8")
    assert found(capsys, "a:b=c.csv", "--engine", "fluid", "--gpus", "64")["num_jobs"] == 3


@pytest.mark.parametrize(
    ("trace", "more", "why"),
    [
        ("generated:9,load=1,static=1", [], "no option 'static'"),
        ("generated:9,laod=1", [], "or else, in the fluid engine, workload, load"),
        ("generated:0,load=1", [], "num_jobs = 0: at least 1"),
        ("generated:x,load=1", [], "'x' is not a number of jobs"),
        ("generated:9,load=1,load=2", [], "load is given twice"),
        ("generated:9,load=no", [], "load = 'no': must be a number"),
        ("generated:9,load=1,jobs_per_hour=1", [], "must be given, not both"),
        ("generated:9,workload=gavel", [], "the workloads are training, automl, continuous"),
        ("generated:9,sizes=none.csv", [], "No such file"),
        ("generated:9,demands=cdf.csv", [], "demands.unit = 'minutes': must be one of gpus-per-job, jobs"),
        ("generated:9,group=none", ["--speedups", "tables.json"], "group = 'none': must name at least one model"),
        ("generated:9,group=real", [], "the groups of speedups are: realistic, linear"),
        ("jobs.csv:cluster=6214e8", [], "did you mean '6214e9'?"),
        ("jobs.csv:clusters=6214e9", [], "no option 'clusters'"),
        ("jobs.csv:cluster=", [], "'cluster=' is not KEY=VALUE"),
        ("none.csv:cluster=6214e9", [], "none.csv"),
    ],
)
def test_bad_workloads_are_refused_by_name(capsys, folder, trace, more, why):
    assert why in failing(capsys, trace, "--engine", "fluid", "--policy", "srsf", *more)


def test_models_are_an_option_of_the_fluid_engine_alone(capsys, folder):
    assert "no option 'group'" in failing(capsys, "jobs.csv:group=realistic", "--policy", "las", "--engine", "rounds")
    assert "no option 'load'" in failing(capsys, "generated:9,load=1", "--policy", "las", "--engine", "rounds")
