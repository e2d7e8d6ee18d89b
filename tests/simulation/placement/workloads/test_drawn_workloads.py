"""Workloads of the placement engine: the busiest period, drawn models, and jobs by formula."""

import math

import numpy as np
import pytest

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import ModelSpeeds, ModelTable, simulate_placement
from equipoise.simulation.placement.workloads.busiest_period import sample_busiest
from equipoise.simulation.placement.workloads.drawn_jobs import draw_cluster_jobs, draw_testbed_jobs
from equipoise.simulation.placement.workloads.drawn_models import MODEL_CLASSES, ModelClass, draw_models, gpu_batches

TABLE = ModelTable.builtin()


def rng(seed=0):
    return np.random.default_rng(seed)


def recorded(arrivals, durations=None, gangs=None):
    count = len(arrivals)
    return Trace(
        job_id=[f"j{index}" for index in range(count)],
        model=["vc"] * count,
        gang_gpus=np.ones(count, dtype=np.int64) if gangs is None else np.array(gangs),
        arrival_s=np.array(arrivals, dtype=float),
        duration_s=np.full(count, 60.0) if durations is None else np.array(durations, dtype=float),
    )


def same(first, second):
    return first.to_frame().equals(second.to_frame())


# -- The busiest period ------------------------------------------------------------------------------------------------


def test_the_busiest_period_is_the_earliest_with_most_arrivals():
    trace = recorded([50, 0, 100, 10, 104, 55])  # of 6 s: only (50, 55) and (100, 104) have two
    found = sample_busiest(rng(), trace, num_jobs=2, window_s=6.0)
    assert list(found.job_id) == ["j0", "j5"]
    assert found.arrival_s.tolist() == [0.0, 5.0]
    # A period ends before its length is over.
    assert list(sample_busiest(rng(), trace, num_jobs=2, window_s=5.0).job_id) == ["j2", "j4"]


def test_a_sample_is_of_the_period_and_by_seed():
    arrivals = np.concatenate((np.arange(50) * 100.0, 7000.0 + np.arange(40), 9000.0 + np.arange(50) * 100.0))
    trace = recorded(arrivals)
    samples = [sample_busiest(rng(seed), trace, num_jobs=15, window_s=40.0) for seed in range(300)]
    assert same(samples[7], sample_busiest(rng(7), trace, num_jobs=15, window_s=40.0))
    counts = np.zeros(140)
    for sample in samples:
        places = [int(name[1:]) for name in sample.job_id]
        assert places == sorted(set(places))
        counts[places] += 1
    assert counts[:50].sum() == counts[90:].sum() == 0
    assert abs(counts[50:90] / 300 - 15 / 40).max() < 0.12  # equal probability
    # All of them are the period itself.
    assert sample_busiest(rng(), trace, num_jobs=40, window_s=40.0).arrival_s.tolist() == list(range(40))


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("num_jobs", {"num_jobs": 3}),
        ("num_jobs", {"num_jobs": 0}),
        ("window_s", {"window_s": 0.0}),
        ("rng", {"rng": 3}),
    ],
)
def test_a_sample_refuses_bad_input(field, changes):
    arguments = {"rng": rng(), "trace": recorded([0, 1, 9]), "num_jobs": 2, "window_s": 2.0} | changes
    with pytest.raises(InvalidInput) as error:
        sample_busiest(arguments.pop("rng"), arguments.pop("trace"), **arguments)
    assert error.value.field == field


# -- Models ------------------------------------------------------------------------------------------------------------


def test_models_follow_gpu_hours_and_jobs_take_their_durations():
    # Just below 1, 1, just below 10, 10, just below 100 and 100 GPU-hours, and many small ones.
    durations = [3599.0, 3600.0, 4499.0, 4500.0, 22499.0, 22500.0] + [30.0] * 60
    gangs = [1, 1, 8, 8, 16, 16] + [1] * 60
    found = draw_models(rng(), recorded(np.arange(66) * 1e5, durations, gangs))
    assert found.model[0] in ("cifar10", "ncf")
    assert {found.model[1], found.model[2]} <= {"deepspeech2", "bert"}
    assert list(found.model[3:6]) == ["yolov3", "yolov3", "imagenet"]
    assert set(found.model[6:]) == {"cifar10", "ncf"}
    assert same(found, draw_models(rng(), recorded(np.arange(66) * 1e5, durations, gangs)))
    result = simulate_placement(
        found,
        make_policy("fifo", "placement"),
        cluster=Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=4),
        speeds=ModelSpeeds(TABLE, 4),
    )
    assert result.jct_s == pytest.approx(durations)


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.model)
@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 16, 64, 1024])
def test_batches_are_halvings_that_the_model_can_train_with(row, gpus):
    sizes = gpu_batches(row, gpus)
    assert sizes
    for size in sizes:
        assert row.min_gpu_batch <= size <= row.max_gpu_batch
        assert size == math.ceil(row.max_gpu_batch / 2 ** round(math.log2(row.max_gpu_batch / size)))
    if len(sizes) > 1:
        assert all(row.first_batch <= gpus * size <= row.max_batch for size in sizes)


def test_batches_by_hand():
    assert gpu_batches(TABLE.row("bert"), 1) == [12]  # 6 samples are fewer than the first batch of 12
    assert gpu_batches(TABLE.row("bert"), 4) == [12, 6]
    assert gpu_batches(TABLE.row("bert"), 64) == [6]
    assert gpu_batches(TABLE.row("bert"), 128) == [6]  # 768 samples exceed the largest batch: the least remains
    assert gpu_batches(TABLE.row("deepspeech2"), 16) == [40, 20, 10]


@pytest.mark.parametrize(
    ("field", "classes"),
    [
        ("classes", []),
        ("classes", [ModelClass(1.0, ("ncf",))]),
        ("classes", [ModelClass(math.inf, ("ncf",)), ModelClass(math.inf, ("bert",))]),
        ("classes", [ModelClass(5.0, ()), ModelClass(math.inf, ("bert",))]),
        ("model", [ModelClass(math.inf, ("gpt",))]),
    ],
)
def test_classes_that_cannot_be_are_refused(field, classes):
    with pytest.raises(InvalidInput) as error:
        draw_models(rng(), recorded([0]), TABLE, classes)
    assert error.value.field == field


def test_models_need_durations():
    trace = Trace(job_id=[0], model=["m"], gang_gpus=[1], arrival_s=[0.0], total_steps=[5])
    with pytest.raises(InvalidInput, match="duration_s"):
        draw_models(rng(), trace)
    with pytest.raises(InvalidInput, match="rng"):
        draw_models(0, recorded([0]))


# -- Jobs by formula ---------------------------------------------------------------------------------------------------


def test_the_testbed_has_twenty_small_and_ten_large_jobs():
    orders = set()
    for seed in range(20):
        trace = draw_testbed_jobs(rng(seed), mean_interarrival_s=60.0)
        gangs = trace.gang_gpus
        assert len(trace) == 30
        assert sorted(set(gangs[gangs > 8].tolist())) == [12, 16]
        assert set(gangs[gangs <= 8].tolist()) <= {1, 2, 4, 8}
        assert (gangs <= 8).sum() == 20
        iterations = trace.total_steps / gangs
        assert (iterations == iterations.round()).all()
        assert iterations.min() >= 100
        assert iterations.max() <= 5000
        assert trace.arrival_s[0] == 0.0
        assert (np.diff(trace.arrival_s) >= 0).all()
        orders.add(tuple(gangs.tolist()))
    assert len(orders) == 20
    assert same(draw_testbed_jobs(rng(3)), draw_testbed_jobs(rng(3)))
    assert not draw_testbed_jobs(rng(3)).arrival_s.any()


def test_cluster_jobs_have_the_proportions_that_the_tables_imply():
    trace = draw_cluster_jobs(rng(), num_jobs=20_000)
    assert trace.duration_s.mean() / 3600.0 == pytest.approx(0.69, rel=0.03)
    assert (trace.gang_gpus > 4).mean() == pytest.approx(0.12, abs=0.01)
    assert np.diff(trace.arrival_s).mean() == pytest.approx(90.0, rel=0.03)
    assert set(trace.model) == {model for each in MODEL_CLASSES for model in each.models}
    assert same(draw_cluster_jobs(rng(5), num_jobs=40), draw_cluster_jobs(rng(5), num_jobs=40))
    assert not same(draw_cluster_jobs(rng(5), num_jobs=40), draw_cluster_jobs(rng(6), num_jobs=40))


@pytest.mark.parametrize(
    ("field", "draw", "options"),
    [
        ("small_jobs", draw_testbed_jobs, {"small_jobs": -1}),
        ("small_jobs", draw_testbed_jobs, {"small_jobs": 0, "large_jobs": 0}),
        ("large_jobs", draw_testbed_jobs, {"large_jobs": 2.5}),
        ("mean_interarrival_s", draw_testbed_jobs, {"mean_interarrival_s": -1.0}),
        ("num_jobs", draw_cluster_jobs, {"num_jobs": 0}),
        ("mean_interarrival_s", draw_cluster_jobs, {"num_jobs": 2, "mean_interarrival_s": math.nan}),
        ("mean_duration_s", draw_cluster_jobs, {"num_jobs": 2, "mean_duration_s": 0.0}),
        ("sigma", draw_cluster_jobs, {"num_jobs": 2, "sigma": 0.0}),
        ("gpu_counts", draw_cluster_jobs, {"num_jobs": 2, "gpu_counts": (0, 1), "gpu_probabilities": (0.5, 0.5)}),
        ("gpu_probabilities", draw_cluster_jobs, {"num_jobs": 2, "gpu_counts": (1,), "gpu_probabilities": (0.5,)}),
        ("gpu_probabilities", draw_cluster_jobs, {"num_jobs": 2, "gpu_counts": (1,)}),
        ("gpu_counts", draw_cluster_jobs, {"num_jobs": 2, "gpu_counts": (), "gpu_probabilities": ()}),
    ],
)
def test_bad_input_is_refused_by_field(field, draw, options):
    with pytest.raises(InvalidInput) as error:
        draw(rng(), **options)
    assert error.value.field == field


def test_formulas_need_a_generator():
    for draw in (draw_testbed_jobs, lambda wrong: draw_cluster_jobs(wrong, num_jobs=1)):
        with pytest.raises(InvalidInput, match="rng"):
            draw(np.random.RandomState(0))
