"""From job states to window jobs: nothing lost, fairness by Eq. 9, and a window that takes them."""

from dataclasses import replace

import numpy as np
import pytest
from shared_data import SHOCKWAVE

import equipoise as eq
from equipoise.heuristics import PREDICTORS, planned_ftf, predict, predicted_total_s, window_job
from equipoise.simulation import JobState, Profiles, Trace, exclusive_s, generate_trace, snapshot

JOB = JobState(
    id="a",
    gpus=4,
    mode="accordion",
    total_epochs=100.0,
    finished_epochs=40.0,
    batch_sizes=(16,),
    regime_epochs=(40.0,),
    epoch_s={16: 30.0, 64: 10.0},
    future=((16, 20.0), (64, 40.0)),
    attained_s=1200.0,
    waiting_s=600.0,
    contention=1.5,
    weight=2.0,
)


def test_a_job_by_hand():
    # Two regimes of 50 epochs expected: 10 more at 30 s, then 50 at 10 s.
    job = window_job(JOB)
    assert (job.id, job.gpus, job.weight) == ("a", 4, 2.0)
    assert (job.finished_epochs, job.total_epochs) == (40.0, 100.0)
    assert [(regime.epochs, regime.epoch_s) for regime in job.regimes] == [(10.0, 30.0), (50.0, 10.0)]
    assert predicted_total_s(JOB) == 1200.0 + 300.0 + 500.0
    assert job.ftf == (1200.0 + 600.0 + 800.0 * 1.5) / (2000.0 * 1.5)


@pytest.mark.parametrize(("predictor", "total_s"), [("greedy", 3000.0), ("oracle", 2200.0), ("restatement", 2000.0)])
def test_the_predictor_reaches_the_total(predictor, total_s):
    assert predicted_total_s(JOB, predictor) == total_s


def test_max_regimes_reaches_the_prediction():
    assert [regime.epochs for regime in window_job(JOB, max_regimes=4).regimes] == [20.0, 20.0, 20.0]
    assert predicted_total_s(JOB, max_regimes=4) == 1200.0 + 200.0 + 600.0 + 200.0


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_a_snapshot_becomes_a_window(predictor):
    profiles = Profiles.builtin()
    trace = generate_trace(np.random.default_rng(5), num_jobs=60, profiles=profiles)
    states = snapshot(trace, at_s=float(trace.arrival_s.max()), gpus=32, profiles=profiles)
    assert len(states) > 30
    jobs = [window_job(state, predictor) for state in states]
    for state, job in zip(states, jobs, strict=True):
        left_s = sum(regime.epochs * regime.epoch_s for regime in job.regimes)
        left = job.total_epochs - job.finished_epochs
        assert sum(regime.epochs for regime in job.regimes) == pytest.approx(left, rel=1e-12)
        assert predicted_total_s(state, predictor) == pytest.approx(state.attained_s + left_s)
        assert job.ftf == pytest.approx(planned_ftf(state.attained_s, state.waiting_s, left_s, state.contention))
    window = eq.ScheduleWindow(
        jobs, gpus=32, makespan_scale=sum(predicted_total_s(state, predictor) for state in states)
    )
    assert window.ids == tuple(state.id for state in states)


def test_the_oracles_total_is_the_isolated_run_time_of_the_whole_trajectory():
    profiles = Profiles.builtin()
    trace = generate_trace(np.random.default_rng(6), num_jobs=40, profiles=profiles)
    states = snapshot(trace, at_s=float(trace.arrival_s.max()), gpus=32, profiles=profiles)
    alone = dict(zip(trace.job_id, exclusive_s(trace, profiles), strict=True))
    assert [predicted_total_s(state, "oracle") for state in states] == pytest.approx([alone[s.id] for s in states])


@pytest.mark.skipif(not SHOCKWAVE.is_dir(), reason="the released trace is not beside the repository")
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_the_released_trace_becomes_a_window(predictor):
    profiles = Profiles.read(SHOCKWAVE, "tacc")
    trace = Trace.read(SHOCKWAVE / "trace_120.csv")
    states = snapshot(trace, at_s=6000.0, gpus=32, profiles=profiles)
    window = eq.ScheduleWindow([window_job(state, predictor) for state in states], gpus=32)
    assert len(window.ids) == len(states) > 0


def test_static_jobs_are_foreseen_by_every_predictor():
    job = replace(JOB, mode="static", epoch_s={16: 30.0}, future=((16, 60.0),))
    assert {predict(job, predictor).regimes for predictor in PREDICTORS} == {((16, 60.0),)}
