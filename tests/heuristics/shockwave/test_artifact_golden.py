"""The planner on the 120-job trace beside the released code's published run (shared data; skipped without it)."""

import json

import numpy as np
import pytest
from shared_data import SHOCKWAVE

from equipoise.heuristics.shockwave.artifact import released_prediction
from equipoise.heuristics.shockwave.artifact_programs import LOG_NODES, LOG_ORIGIN, ArtifactJobs, counts_program
from equipoise.heuristics.shockwave.policy import ShockwavePolicy
from equipoise.simulation import JobState, Profiles, Trace, simulate_rounds
from equipoise.solvers.solve import solve

FOLDER = SHOCKWAVE
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="shared/data/shockwave is not here")


def golden():
    runs = json.loads((FOLDER / "golden_120_32gpu.json").read_text(encoding="utf-8"))
    return runs["shockwave|canonical|simulation"]


def run(policy):
    trace = Trace.read(FOLDER / "trace_120.csv")
    return simulate_rounds(trace, policy, gpus=32, profiles=Profiles.read(FOLDER, "tacc"))


def test_defaults_are_at_least_as_good_as_the_released_code_on_all_four_measures():
    result, theirs = run(ShockwavePolicy()), golden()
    metrics = result.metrics
    assert metrics["makespan_s"] <= theirs["makespan_s"]
    assert metrics["avg_jct_s"] <= theirs["avg_jct_s"]
    assert metrics["worst_ftf"] <= theirs["worst_ftf"]
    assert metrics["unfair_pct"] <= theirs["unfair_fraction_gt_1_05"]
    assert set(result.solves["reason"]) == {"OPTIMAL"}
    assert result.solves["gap"].max() <= 1e-4
    # Nothing ends before the work is done: the bound of all GPU-seconds, less what adapting sooner than planned saves.
    assert metrics["makespan_s"] >= 0.97 * 19868


@pytest.mark.parametrize("index", range(3))
def test_the_variants_program_reaches_the_recorded_optima(index):
    fixture = json.loads((FOLDER / "window_fixtures.json").read_text(encoding="utf-8"))[index]
    column = {name: np.asarray(fixture[name], dtype=float) for name in fixture if name not in ("results", "gpus")}
    program = counts_program(
        ArtifactJobs(
            gang_gpus=np.asarray(fixture["gpus"]),
            total_epochs=column["num_epochs"],
            finished_epochs=column["epoch_progress"],
            epoch_s=column["epoch_duration_s"],
            remaining_s=column["remaining_runtime_s"],
            target_s=column["finish_time_target_s"],
        ),
        weights=column["weight"],
        gpus=fixture["num_gpus"],
        rounds=fixture["future_rounds"],
        round_s=fixture["round_duration_s"],
        makespan_weight=fixture["k_makespan_weight"],
    )
    assert tuple(fixture["log_bases"]) == LOG_NODES
    assert fixture["log_origin"] == LOG_ORIGIN
    result = solve(program, "highs", rel_gap=0.0)
    assert result.objective == pytest.approx(fixture["results"]["agg"]["objective_max"], rel=1e-6)


def test_the_variants_epoch_and_remaining_times_are_the_recorded_ones():
    """Job 1, 40 of 92 epochs run at the first fixture: both figures follow from Bayes over 32 and 256."""
    fixture = json.loads((FOLDER / "window_fixtures.json").read_text(encoding="utf-8"))[0]
    profiles = Profiles.read(FOLDER, "tacc")
    state = JobState(
        id=1,
        gpus=1,
        mode="accordion",
        total_epochs=92,
        finished_epochs=40,
        batch_sizes=(32, 256),
        regime_epochs=(28, 12),
        epoch_s={size: profiles.epoch_s("ResNet-18", size, 1) for size in (32, 256)},
        future=((256, 52),),
        attained_s=1400.0,
        waiting_s=0.0,
    )
    epoch_s, remaining_s = released_prediction(state)
    assert epoch_s == pytest.approx(fixture["epoch_duration_s"][0], rel=1e-12)
    assert remaining_s == pytest.approx(fixture["remaining_runtime_s"][0], rel=1e-12)
