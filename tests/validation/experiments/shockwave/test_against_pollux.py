"""Figure 11 on small traces: the same jobs under all policies, GPU-hours by hand, and claims that follow the rows."""

from xml.etree import ElementTree

import numpy as np
import pytest
from shared_data import DATA

from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Profiles, RoundRules, Schedule, Trace, read_durations, simulate_rounds
from equipoise.simulation.placement import (
    ModelSpeeds,
    ModelTable,
    PlacementRules,
    ProfileSpeeds,
    Start,
    Stop,
    Wake,
    simulate_placement,
)
from equipoise.validation.experiments.experiment import ExperimentSettings
from equipoise.validation.experiments.papers import EXPERIMENTS
from equipoise.validation.experiments.shockwave.against_pollux import (
    GANGS,
    REPLAYS,
    USERS,
    VARIATIONS,
    _claims,
    gpu_hours,
    least_gpu_hours,
)

FIGURE = EXPERIMENTS["shockwave"].find("11")
JOBS = """job_id,submit_time_s,duration_s,num_gpus,model,batch_size
cifar10-0,0,900,6,cifar10,2048
ncf-1,10,33,1,ncf,32768
bert-2,20,1500,8,bert,96
deepspeech2-3,400,2000,4,deepspeech2,320
"""


@pytest.fixture(name="settings")
def small_settings(tmp_path):
    folder = tmp_path / "pollux"
    folder.mkdir()
    (folder / "pollux_160_w1.csv").write_text(JOBS)
    (folder / "pollux_160_w2.csv").write_text(JOBS.replace(",900,", ",1200,"))
    return ExperimentSettings(jobs=4, data=tmp_path)


@pytest.mark.thorough
def test_every_policy_runs_the_jobs_of_every_trace(settings):
    steps = []
    settings = ExperimentSettings(jobs=4, data=settings.data, on_step=lambda done, total: steps.append((done, total)))
    outcome = FIGURE.run(settings)
    rows = {(row["trace"], row["policy"]): row for row in outcome.rows}
    names = {*REPLAYS, USERS, GANGS, *(f"{name}{label}" for name in ("pollux", "shockwave") for label in VARIATIONS)}
    assert {policy for trace, policy in rows if trace == "mean"} == names
    assert len(rows) == len(outcome.rows) == len(names) + 2 * 2
    assert steps[-1] == (14 * 8, 14 * 8)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    for column in ("mean jct s", "gpu hours"):
        each = [rows[f"pollux_160_{name}", "pollux"][column] for name in ("w1", "w2")]
        assert rows["mean", "pollux"][column] == pytest.approx(np.mean(each), abs=1.0)
    # Alone, the users' own jobs take the seconds of the files, in both engines.
    for policy in ("pollux", USERS):
        assert rows["mean", policy]["alone s"] == round((900 + 1200 + 2 * (33 + 1500 + 2000)) / 8)
    assert rows["mean", GANGS]["alone s"] < rows["mean", USERS]["alone s"]
    # The job of 33 s lasts less than a round, and counts in the column of all jobs alone.
    assert all(row["worst ftf"] <= row["all worst ftf"] for row in outcome.rows)
    assert rows["mean", USERS]["worst ftf"] < rows["mean", USERS]["all worst ftf"]
    assert len(outcome.claims) == 4
    for plot in outcome.plots:
        ElementTree.fromstring(plot.svg())
    assert FIGURE.run(settings).rows == outcome.rows


def row(trace, policy, value):
    return dict.fromkeys(("makespan s", "mean jct s", "gpu hours", "worst ftf"), value) | {
        "trace": trace, "policy": policy
    }  # fmt: skip


def test_a_claim_fails_where_pollux_is_behind_on_one_trace():
    means = [row("mean", f"{name}{label}", {"pollux": 2.0, "shockwave": 5.0}[name])
             for name in ("pollux", "shockwave") for label in VARIATIONS]  # fmt: skip
    ahead = [row(trace, name, value) for trace in "ab" for name, value in (("pollux", 2.0), ("shockwave", 5.0))]
    claims = _claims([*means, *ahead], least=1.0)
    assert all(claim.holds for claim in claims)
    assert "2.50x on average (paper: 3x), 2.50x to 2.50x" in claims[0].numbers
    assert "no policy could reach more than 5.00x" in claims[1].numbers
    behind = [row("c", "pollux", 5.0), row("c", "shockwave", 4.9)]
    assert not any(claim.holds for claim in _claims([*means, *ahead, *behind], least=1.0))


class Twice:
    """Runs a job for 100 s, stops it, and starts it again 50 s later."""

    name, knows = "twice", frozenset()

    def decide(self, state):
        for job in state.jobs.values():
            if job.run is None:
                yield Start(job.trace_index, (0, 1))
            if state.time_s == 0.0:
                yield Wake(100.0)
            elif state.time_s == 100.0:
                yield Stop(job.trace_index)
                yield Wake(150.0)


def test_gpu_hours_count_training_and_restarts_in_both_engines():
    profiles = Profiles(name="p", rates={("m", 1, 2): 2.0}, dataset_sizes={"m": 2}, max_batch_sizes={})
    trace = Trace(
        job_id=["a"], model=["m"], gang_gpus=[2], total_steps=[600], arrival_s=[0.0], total_epochs=[300],
    )  # fmt: skip
    # 300 s of training on 2 GPUs, and a restart of 30 s.
    rules = PlacementRules(restart_s=30.0)
    placed = simulate_placement(trace, Twice(), cluster=2, speeds=ProfileSpeeds(profiles), rules=rules)
    assert gpu_hours(placed) * 3600 == pytest.approx(2 * 330.0)

    class Pausing:
        name = "pausing"

        def due(self, state):
            return False

        def decide(self, state):
            return Schedule([{} if state.round == 1 else {job.id: 0 for job in state.jobs}])

    rounds = simulate_rounds(trace, Pausing(), gpus=2, profiles=profiles, rules=RoundRules(restart_s=20.0))
    assert rounds.restarts.tolist() == [1]
    assert gpu_hours(rounds) * 3600 == pytest.approx(2 * 320.0)


def test_no_policy_uses_fewer_gpu_hours_than_the_least(settings):
    speeds = ModelSpeeds(ModelTable.builtin(), 4)
    with pytest.warns(UserWarning, match="have a batch size"):
        trace, _ = read_durations(settings.data / "pollux/pollux_160_w1.csv", models=speeds)
    cluster, rules = Cluster(gpus_by_type={"gpu": 16}, machines=4), PlacementRules(restart_s=30.0)
    for name in ("pollux", "sia", "fifo"):
        policy = make_policy(name, "placement")
        result = simulate_placement(trace, policy, cluster=cluster, speeds=speeds, rules=rules)
        assert gpu_hours(result) > least_gpu_hours(trace, speeds, 16)
    # An ncf job on the one GPU that it asks for, at the largest batch that a GPU holds, is already there.
    ncf = trace.select([1])
    assert least_gpu_hours(ncf, speeds, 16) == pytest.approx(33.0 / 3600)


def test_it_is_skipped_in_words_without_the_data(tmp_path):
    assert "--data" in FIGURE.run(ExperimentSettings()).skipped
    assert "pollux_160_w*.csv" in FIGURE.run(ExperimentSettings(data=tmp_path)).skipped


@pytest.mark.thorough
@pytest.mark.skipif(not (DATA / "pollux").is_dir(), reason="shared/data/pollux is not here")
def test_every_claim_holds_on_a_full_trace(tmp_path):
    (tmp_path / "pollux").mkdir()
    (tmp_path / "pollux/pollux_160_w1.csv").write_bytes((DATA / "pollux/pollux_160_w1.csv").read_bytes())
    assert FIGURE.run(ExperimentSettings(data=tmp_path)).in_shape
