"""Workloads of the placement engine's models on the command line: generated, and samples of a trace of durations."""

import json

import numpy as np
import pytest

from equipoise.cli.main import run
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import (
    ModelSpeeds,
    ModelTable,
    draw_cluster_jobs,
    draw_models,
    draw_testbed_jobs,
    sample_busiest,
    simulate_placement,
)

OPTIONS = ("--engine", "placement", "--speeds", "models", "--gpus-per-machine", "4", "--policy", "sjf")


def found(capsys, text, gpus, *more):
    assert run(["simulate", text, *OPTIONS, "--gpus", str(gpus), *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def expected(trace, gpus):
    cluster = Cluster(gpus_by_type={"gpu": gpus}, gpus_per_machine=4)
    speeds = ModelSpeeds(ModelTable.builtin(), 4)
    return simulate_placement(trace, make_policy("sjf", "placement"), cluster=cluster, speeds=speeds).metrics


@pytest.mark.parametrize(
    ("text", "gpus", "draw"),
    [
        ("generated:12,workload=cluster", 16, lambda rng: draw_cluster_jobs(rng, num_jobs=12)),
        (
            "generated:12,workload=cluster,mean_interarrival_s=5,sigma=0.5",
            16,
            lambda rng: draw_cluster_jobs(rng, num_jobs=12, mean_interarrival_s=5.0, sigma=0.5),
        ),
        (
            "generated:9,workload=testbed,mean_interarrival_s=60",
            16,
            lambda rng: draw_testbed_jobs(rng, small_jobs=6, large_jobs=3, mean_interarrival_s=60.0),
        ),
    ],
)
def test_a_generated_workload_is_that_of_the_library(capsys, text, gpus, draw):
    shown, library = found(capsys, text, gpus, "--seed", "4"), expected(draw(np.random.default_rng(4)), gpus)
    assert shown["makespan_s"] == pytest.approx(library["makespan_s"])
    assert shown["avg_jct_s"] == pytest.approx(library["avg_jct_s"])


def test_gangs_that_do_not_fit_are_not_drawn(capsys):
    assert found(capsys, "generated:40,workload=cluster", 8)["num_jobs"] == 40


def test_a_sample_is_that_of_the_library(capsys, tmp_path):
    file = tmp_path / "jobs.csv"
    lines = [f"j{index},{index * 7 % 50},{100 + index},{1 + index % 4},vc" for index in range(30)]
    file.write_text("\n".join(("job_id,submit_time_s,duration_s,num_gpus,model", *lines)) + "\n")
    shown = found(capsys, f"{file}:sample=5,period_s=20", 8, "--seed", "2")
    rng = np.random.default_rng(2)
    library = expected(draw_models(rng, sample_busiest(rng, Trace.read(file), num_jobs=5, window_s=20.0)), 8)
    assert shown["avg_jct_s"] == pytest.approx(library["avg_jct_s"])
    assert shown["num_jobs"] == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generated:9,workload=gavel", "must be cluster or testbed"),
        ("generated:9,workload=testbed,sigma=1", "no option 'sigma'"),
        ("generated:9,workload=cluster,static=1", "no option 'static'"),
        ("generated:9,workload=cluster,sigma=no", "sigma = 'no'"),
        ("{file}:sample=3", "sample and period_s go together"),
        ("{file}:sample=9,period_s=60", "num_jobs = 9"),
        ("{file}:sample=x,period_s=60", "num_jobs = 'x'"),
    ],
)
def test_bad_workloads_are_refused(capsys, tmp_path, text, message):
    file = tmp_path / "jobs.csv"
    file.write_text("job_id,submit_time_s,duration_s,num_gpus,model\na,0,9,1,m\nb,1,9,1,m\n")
    assert run(["simulate", text.format(file=file), *OPTIONS, "--gpus", "16"]) == 2
    assert message in capsys.readouterr().err


def test_a_sample_needs_speeds_by_models(capsys, tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text("job_id,submit_time_s,duration_s,num_gpus,model\na,0,9,1,m\n")
    assert run(["simulate", f"{file}:sample=1,period_s=60", "--engine", "placement", "--policy", "sjf"]) == 2
    assert "no option" in capsys.readouterr().err
