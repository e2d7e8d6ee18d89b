"""The generator: frequencies within binomial bounds, honest job sizes, same seed same bits, bad arguments by name."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.simulation import SIZE_CLASSES, Profiles, SizeClass, Trace, generate_trace

N = 20_000


def gpu_hours(trace: Trace, profiles: Profiles) -> np.ndarray:
    rates = [
        profiles.steps_per_s(*each)
        for each in zip(trace.model, trace.batch_size.tolist(), trace.gang_gpus.tolist(), strict=True)
    ]
    return trace.total_steps / np.array(rates) * trace.gang_gpus / 3600


def close(count: int, probability: float, total: int = N) -> bool:
    # Five standard deviations: a false alarm in two million draws, and the seed is fixed besides.
    return abs(count - total * probability) <= 5 * np.sqrt(total * probability * (1 - probability)) + 1


@pytest.fixture(scope="module")
def drawn() -> Trace:
    return generate_trace(np.random.default_rng(7), num_jobs=N)


def test_job_sizes_fall_into_the_classes_of_the_paper(drawn):
    hours = gpu_hours(drawn, Profiles.builtin())
    for each in SIZE_CLASSES:
        count = int(((hours >= each.min_gpu_hours) & (hours < each.max_gpu_hours)).sum())
        assert close(count, each.probability), (each.name, count)
    assert [each.probability for each in SIZE_CLASSES] == [0.72, 0.2, 0.05, 0.03]


def test_gangs_and_modes_come_at_their_probabilities(drawn):
    for gang, probability in zip((1, 2, 4, 8), (0.6, 0.3, 0.09, 0.01), strict=True):
        assert close(int((drawn.gang_gpus == gang).sum()), probability)
    for mode in ("static", "accordion", "gns"):
        assert close(drawn.mode.count(mode), 1 / 3)


def test_configurations_come_evenly(drawn):
    pairs = list(zip(drawn.model, drawn.batch_size.tolist(), strict=True))
    choices = Profiles.builtin().configurations(1)
    for pair in choices:
        assert close(pairs.count(pair), 1 / len(choices)), pair


def test_arrivals_are_poisson(drawn):
    gaps = np.diff(drawn.arrival_s)
    assert drawn.arrival_s[0] == 0.0
    assert (gaps >= 0).all()
    assert gaps.mean() == pytest.approx(40.0, rel=5 / np.sqrt(N))
    # The share of exponential gaps above the mean is 1/e, above three means 1/e^3.
    assert close(int((gaps > 40.0).sum()), np.exp(-1), N - 1)
    assert close(int((gaps > 120.0).sum()), np.exp(-3), N - 1)


def test_epochs_and_schedules_are_those_of_the_profiles(drawn):
    profiles = Profiles.builtin()
    for index in range(0, N, 97):
        model, size, gpus = drawn.model[index], int(drawn.batch_size[index]), int(drawn.gang_gpus[index])
        epochs = profiles.total_epochs(model, size, int(drawn.total_steps[index]))
        assert drawn.total_epochs[index] == epochs
        assert drawn.schedule[index] == profiles.schedule(model, size, gpus, drawn.mode[index], epochs)


@given(st.integers(0, 2**63 - 1), st.integers(1, 40))
def test_same_seed_same_bits(seed, num_jobs):
    one, two = (generate_trace(np.random.default_rng(seed), num_jobs=num_jobs) for _ in range(2))
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame(), check_exact=True)


def test_another_arrival_rate_changes_arrivals_only():
    slow, fast = (
        generate_trace(np.random.default_rng(3), num_jobs=50, mean_interarrival_s=mean) for mean in (80.0, 40.0)
    )
    np.testing.assert_allclose(slow.arrival_s, 2 * fast.arrival_s)
    pd.testing.assert_frame_equal(slow.to_frame().drop(columns="arrival_s"), fast.to_frame().drop(columns="arrival_s"))


def test_arguments_are_obeyed():
    trace = generate_trace(
        np.random.default_rng(0),
        num_jobs=200,
        mean_interarrival_s=0.0,
        size_classes=[SizeClass(name="one", probability=1.0, min_gpu_hours=1.0, max_gpu_hours=2.0)],
        gpu_counts=[4],
        gpu_probabilities=[1.0],
        mode_probabilities={"gns": 1.0},
    )
    hours = gpu_hours(trace, Profiles.builtin())
    assert (trace.arrival_s == 0.0).all()
    assert set(trace.mode) == {"gns"}
    assert set(trace.gang_gpus.tolist()) == {4}
    assert hours.min() >= 0.999
    assert hours.max() <= 2.001


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_jobs", 0, "num_jobs = 0: at least 1"),
        ("num_jobs", 2.5, "num_jobs = 2.5: must be a whole number"),
        ("mean_interarrival_s", -1.0, "mean_interarrival_s = -1.0: at least 0"),
        ("mean_interarrival_s", float("nan"), "mean_interarrival_s = nan: must be finite"),
        ("size_classes", [], "size_classes = '\\[\\]': must not be empty"),
        ("size_classes", SIZE_CLASSES[:2], "size_classes = 0.9.*: probabilities must add up to 1"),
        ("gpu_counts", [0, 1, 2, 4], r"gpu_counts\[0\] = 0: at least 1"),
        ("gpu_counts", [1, 2], "gpu_probabilities has length 4, gpu_counts has length 2"),
        ("gpu_counts", [1, 2, 4, 16], "gpu_counts = 16: no model of profiles 'builtin' has a rate"),
        ("gpu_probabilities", [0.5, 0.5, 0.5, -0.5], r"gpu_probabilities\[3\] = -0.5: at least 0"),
        ("gpu_probabilities", [0.1] * 4, "gpu_probabilities = 0.4: probabilities must add up to 1"),
        ("mode_probabilities", {"pollux": 1.0}, "mode_probabilities = 'pollux': modes are static, accordion, gns"),
        ("mode_probabilities", {"static": 0.5}, "mode_probabilities = 0.5: probabilities must add up to 1"),
    ],
)
def test_bad_arguments_are_named(field, value, message):
    with pytest.raises(eq.InvalidInput, match=message):
        generate_trace(np.random.default_rng(1), **{"num_jobs": 2000} | {field: value})


def test_a_seed_is_not_a_generator():
    with pytest.raises(eq.InvalidInput, match=r"rng = 7: must be a numpy.random.Generator"):
        generate_trace(7, num_jobs=3)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("probability", 1.5, "probability = 1.5: at most 1"),
        ("min_gpu_hours", 0.0, "min_gpu_hours = 0.0: must be greater than 0"),
        ("max_gpu_hours", 1.0, "max_gpu_hours = 1.0: must be greater than 2"),
    ],
)
def test_bad_size_classes_are_named(field, value, message):
    good = {"name": "x", "probability": 1.0, "min_gpu_hours": 2.0, "max_gpu_hours": 3.0}
    with pytest.raises(eq.InvalidInput, match=message):
        SizeClass(**good | {field: value})
