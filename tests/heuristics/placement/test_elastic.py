"""Pollux and Sia on the placement engine: allocations with gaps, growth by steps, restarts, and what they need."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.heuristics.placement.elastic import PolluxPolicy, best_configuration
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import (
    DurationSpeeds,
    ModelSpeeds,
    ModelTable,
    PlacementRules,
    simulate_placement,
)

TABLE = ModelTable.builtin()
SPEEDS = ModelSpeeds(TABLE, 4)
CLUSTER = Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=4)
NAMES = ("pollux", "sia")


def trace_of(models, arrival_s, hours=1.0):
    count = len(models)
    return Trace(
        job_id=list(range(count)), model=models, gang_gpus=[1] * count, arrival_s=arrival_s,
        batch_size=[TABLE.row(model).min_gpu_batch for model in models], duration_s=[3600.0 * hours] * count,
    )  # fmt: skip


def drawn(seed, count=12):
    rng = np.random.default_rng(seed)
    models = rng.choice(TABLE.models, count).tolist()
    return trace_of(models, np.cumsum(rng.exponential(200.0, count)), hours=0.5)


def simulated(name, trace, **options):
    policy = make_policy(name, "placement", **options)
    return simulate_placement(trace, policy, cluster=CLUSTER, speeds=SPEEDS, rules=PlacementRules(restart_s=30.0))


@pytest.mark.parametrize("model", TABLE.models)
@pytest.mark.parametrize("gpus", [1, 3, 8])
def test_the_batch_is_within_a_step_of_the_best_of_all(model, gpus):
    row, machines = TABLE.row(model), -(-gpus // 4)
    best = best_configuration(SPEEDS, model, gpus, machines)
    assert best.sub_batch <= row.max_gpu_batch
    assert best.batch_size * gpus <= row.max_batch
    assert best.goodput == SPEEDS.goodput(model, gpus, best.batch_size, sub_batch=best.sub_batch, machines=machines)
    sizes = np.unique(np.linspace(row.min_gpu_batch, row.max_batch // gpus, 200).round()).astype(int)
    others = [
        SPEEDS.goodput(model, gpus, size, sub_batch=-(-size // parts), machines=machines)
        for size in sizes.tolist()
        for parts in (-(-size // row.max_gpu_batch), -(-size // row.max_gpu_batch) + 1)
        if size * gpus >= row.first_batch and -(-size // parts) <= row.max_gpu_batch
    ]
    assert best.goodput >= 0.97 * max(others)


@pytest.mark.parametrize("name", NAMES)
def test_every_allocation_has_a_gap_and_comes_at_intervals(name):
    result = simulated(name, drawn(1))
    solves = result.solves[result.solves["reason"] != "rule"]
    assert set(solves["reason"]) == {"OPTIMAL"}
    assert solves["gap"].between(0.0, 1e-3).all()
    assert np.diff(solves["time_s"]).min() >= 60.0 - 1e-6
    assert (result.ended_by == "completed").all()
    assert result.restarts.sum() == result.preemptions.sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_job_alone_doubles_its_gpus_while_that_pays(name):
    result = simulated(name, trace_of(["cifar10"], [30.0], hours=4.0))
    widths = result.stretches.gpus.tolist()
    assert widths[:3] == [1.0, 2.0, 4.0]
    assert all(later <= 2 * earlier for earlier, later in pairwise(widths))
    assert result.stretches.start_s[:3].tolist() == pytest.approx([30.0, 90.0, 150.0], abs=1e-6)
    # A job alone on more GPUs ends before its recorded time on one.
    assert result.end_s[0] < 30.0 + 4 * 3600.0


@pytest.mark.parametrize("name", NAMES)
def test_a_job_whose_number_of_gpus_stays_keeps_its_gpus(name):
    result = simulated(name, drawn(2))
    stretches = result.stretches
    ids = stretches.ids()
    for job in range(12):
        mine = np.flatnonzero(stretches.trace_index == job)
        for one, other in pairwise(mine):
            if stretches.end_s[one] == stretches.start_s[other]:
                assert len(ids[one]) != len(ids[other])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_run_twice_is_the_same(name):
    first, second = (simulated(name, drawn(3)) for _ in range(2))
    assert np.array_equal(first.end_s, second.end_s)
    assert np.array_equal(first.stretches.gpu_ids, second.stretches.gpu_ids)


def test_more_jobs_than_gpus_wait_and_all_end():
    small = Cluster(gpus_by_type={"gpu": 2}, machines=1)
    trace = trace_of(["ncf"] * 6, [0.0] * 6, hours=0.05)
    result = simulate_placement(trace, PolluxPolicy(), cluster=small, speeds=ModelSpeeds(TABLE, 2))
    assert (result.ended_by == "completed").all()
    assert result.levels.gpus_busy.max() <= 2
    assert result.levels.waiting.max() >= 4


@pytest.mark.parametrize("name", NAMES)
def test_a_job_never_has_fewer_gpus_than_it_can_run_on(name):
    trace = replace(drawn(3), gang_gpus=[4] * 12, min_gpus=[1, 2, 3, 4] * 3)
    stretches = simulated(name, trace).stretches
    assert (stretches.gpus >= trace.min_gpus[stretches.trace_index]).all()
    assert (stretches.gpus == trace.min_gpus[stretches.trace_index]).any()


def test_speeds_without_models_are_refused():
    with pytest.raises(eq.InvalidInput, match="speeds = 'DurationSpeeds': pollux needs ModelSpeeds"):
        simulate_placement(drawn(1), PolluxPolicy(), cluster=CLUSTER, speeds=DurationSpeeds())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"interval_s": 0.0}, "interval_s = 0.0: must be greater than 0"),
        ({"restart_s": -1.0}, "restart_s = -1.0"),
        ({"growth": 1.0}, "growth = 1.0: must be greater than 1"),
        ({"rel_gap": 0.0}, "rel_gap = 0.0"),
        ({"time_limit": -1.0}, "time_limit = -1.0"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(eq.InvalidInput, match=said):
        make_policy("pollux", **options)
