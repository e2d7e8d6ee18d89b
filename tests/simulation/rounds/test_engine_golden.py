"""The rounds engine against Shockwave's published runs: nine schedules replayed, and shares to schedules."""

import json
from functools import cache

import numpy as np
import pytest
from shared_data import SHOCKWAVE

from equipoise.simulation import (
    Profiles,
    ReplayedSchedule,
    Shares,
    SimulationResult,
    Trace,
    due_on_events,
    simulate_rounds,
)

DATA = SHOCKWAVE
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data set is not here")

NAMES = (
    "shockwave",
    "min_total_duration",
    "finish_time_fairness",
    "max_min_fairness",
    "allox",
    "max_sum_throughput_perf",
    "gandiva_fair",
    "old_shockwave",
    "new_orig_hyperparam_shockwave",
)
# Published per-job times have six decimals.
PRINTED_S = 5.01e-7


@cache
def inputs() -> tuple[Trace, Profiles]:
    return Trace.read(DATA / "trace_120.csv"), Profiles.read(DATA, "tacc")


def golden(name: str) -> dict:
    return json.loads((DATA / "golden_120_32gpu.json").read_text())[f"{name}|canonical|simulation"]


def schedule(name: str) -> list:
    return json.loads((DATA / "golden_120_32gpu_schedules.json").read_text())[f"{name}|canonical|simulation"]


@cache
def replayed(name: str) -> SimulationResult:
    trace, profiles = inputs()
    return simulate_rounds(trace, ReplayedSchedule(schedule(name)), gpus=32, profiles=profiles)


class EventShares:
    """Shares by a closed form, renewed on events at least 1,000 s apart."""

    name = "event shares"

    def __init__(self, width_matters: bool):
        self.width_matters = width_matters
        self.calls = []

    def due(self, state):
        return due_on_events(state, 1000.0)

    def decide(self, state):
        self.calls.append((state.time_s, [job.id for job in state.jobs]))
        share = state.total_gpus / len(state.jobs)
        gang_gpus = state.gang_gpus if self.width_matters else np.ones(len(state.jobs))
        return Shares(np.minimum(1.0, share / gang_gpus)[:, None])


@pytest.mark.parametrize("name", NAMES)
def test_replayed_schedule_gives_the_published_run(name):
    run, published = replayed(name), golden(name)
    assert [set(ids) for ids in run.schedule] == [set(ids) for ids in schedule(name)]
    np.testing.assert_allclose(run.jct_s, published["jct_list"], rtol=0, atol=PRINTED_S)
    np.testing.assert_allclose(run.run_s, published["job_run_time_per_gpu_s"], rtol=0, atol=PRINTED_S)
    np.testing.assert_allclose(run.ftf, published["finish_time_fairness_list"], rtol=0, atol=5.01e-6)
    contended = published["finish_time_fairness_themis_list"]
    np.testing.assert_allclose(run.contended_ftf, contended, rtol=0, atol=5.01e-6)
    np.testing.assert_allclose(run.round_shares, published["envy_ratio"], rtol=0, atol=5.01e-7)
    figures = run.metrics
    assert figures["makespan_s"] == pytest.approx(published["makespan_s"], rel=0, abs=1e-9)
    assert figures["avg_jct_s"] == pytest.approx(published["avg_jct_s"], rel=0, abs=1e-6)
    assert figures["worst_ftf"] == pytest.approx(published["worst_ftf"], rel=0, abs=5.01e-6)
    assert figures["utilisation"] == pytest.approx(published["cluster_util"], rel=0, abs=1e-5)
    assert figures["lease_extensions"] == published["num_lease_extensions"]
    assert figures["lease_opportunities"] == published["num_lease_extension_opportunities"]
    assert figures["lease_extension_pct"] == pytest.approx(published["lease_extension_pct"], rel=1e-12)
    assert figures["envy_mean"] == pytest.approx(published["envy_absdiff_mean"], rel=1e-12)
    assert figures["envy_max"] == pytest.approx(published["envy_absdiff_max"], rel=1e-12)
    for key, threshold in (("unfair_1_00_pct", "1_00"), ("unfair_pct", "1_05"), ("unfair_1_10_pct", "1_10")):
        assert figures[key] == pytest.approx(published[f"unfair_fraction_gt_{threshold}"], rel=0, abs=5.01e-4)
    assert figures["rounds"] == published["rounds"]


def test_gandiva_fair_comes_out_set_by_set_and_job_by_job():
    trace, profiles = inputs()
    run = simulate_rounds(trace, EventShares(width_matters=False), gpus=32, profiles=profiles)
    published = golden("gandiva_fair")
    assert [set(ids) for ids in run.schedule] == [set(ids) for ids in schedule("gandiva_fair")]
    np.testing.assert_allclose(run.jct_s, published["jct_list"], rtol=0, atol=PRINTED_S)
    assert run.metrics["lease_extensions"] == published["num_lease_extensions"]


def test_isolated_comes_out_in_sum():
    trace, profiles = inputs()
    policy = EventShares(width_matters=True)
    figures = simulate_rounds(trace, policy, gpus=32, profiles=profiles).metrics
    assert round(figures["makespan_s"]) == 33208
    assert round(figures["avg_jct_s"]) == 11268
    assert round(figures["worst_ftf"], 2) == 2.95
    assert figures["unfair_pct"] == 25.0
    # The calls whose inputs were published were made at the same times, with the same jobs.
    for call in json.loads((DATA / "policy_call_fixtures.json").read_text())["isolated"]:
        time_s, ids = policy.calls[call["call"]]
        assert time_s == pytest.approx(call["time_s"], abs=1e-6)
        assert ids == call["job_id"]


@pytest.mark.parametrize("example", range(3))
def test_worked_example_round_by_round(example):
    story = json.loads((DATA / "worked_examples.json").read_text())[example]
    run = replayed(story["policy"])
    starts = run.rounds.set_index("round")["start_s"]
    rows = run.runs[run.runs["job_id"] == story["job_id"]]
    assert len(rows) == len(story["rows"])
    for row, wanted in zip(rows.itertuples(), story["rows"], strict=True):
        told = dict(zip(story["columns"], wanted, strict=True))
        assert row.round == told["round"]
        assert starts[row.round] == pytest.approx(told["round_start_s"], abs=0.0051)
        assert row.batch_size == told["batch_size_used"]
        # The story gives steps beyond the total as negative ones done.
        assert row.steps == max(0, told["steps_done"])
        assert row.run_s == pytest.approx(told["exec_time_s"], abs=5.1e-4)
        assert (row.steps_run, row.total_steps, row.next_batch_size) == (
            told["steps_run_after"],
            told["total_steps_after"],
            told["batch_size_after"],
        )
    job = run.jobs.set_index("job_id").loc[story["job_id"]]
    assert job["jct_s"] == pytest.approx(story["golden_jct_s"], abs=1e-9)
    assert job["run_s"] == pytest.approx(story["golden_run_time_s"], abs=1e-9)
    assert job["exclusive_s"] == pytest.approx(story["exclusive_duration_s"], abs=1e-9)
