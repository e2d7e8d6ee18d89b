"""The time of an iteration in closed form, its properties, and its fit to measurements."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.simulation.placement.model_table import ModelTable
from equipoise.simulation.placement.time_model import TimeModel, fit_time_model

# compute 1 + 2 b; within a machine 3 + 1 (K - 2), across machines 10 + 4 (K - 2); no overlap.
PLAIN = {
    "compute_s": 1.0,
    "compute_s_per_sample": 2.0,
    "within_s": 3.0,
    "within_s_per_gpu": 1.0,
    "across_s": 10.0,
    "across_s_per_gpu": 4.0,
    "overlap": 1.0,
}
times = st.builds(
    TimeModel,
    compute_s=st.floats(0.0, 10.0),
    compute_s_per_sample=st.floats(1e-6, 1.0),
    within_s=st.floats(0.0, 10.0),
    within_s_per_gpu=st.floats(0.0, 1.0),
    across_s=st.floats(0.0, 10.0),
    across_s_per_gpu=st.floats(0.0, 1.0),
    overlap=st.floats(1.0, 10.0),
)


@pytest.mark.parametrize(
    ("gpus", "machines", "sub_batch", "seconds", "exposed"),
    [
        (1, 1, None, 9.0, 0.0),
        (2, 1, None, 12.0, 3.0),
        (5, 1, None, 15.0, 6.0),
        (2, 2, None, 19.0, 10.0),
        (5, 2, None, 31.0, 22.0),
        (2, 1, 2, 5.0 + 5.0 + 3.0, 3.0),  # two sub-batches of two samples
        (2, 1, 3, 5.0 + 5.0 + 3.0, 3.0),  # the fewest equal ones of at most three
        (1, 1, 1, 4 * 3.0, 0.0),
    ],
)
def test_times_add_up_without_overlap(gpus, machines, sub_batch, seconds, exposed):
    iteration = TimeModel(**PLAIN).iteration(gpus, 4, sub_batch=sub_batch, machines=machines)
    assert iteration == pytest.approx((seconds, exposed), abs=1e-12)


def test_overlap_two_is_the_euclidean_norm_of_the_last_sub_batch_and_the_communication():
    time = TimeModel(**{**PLAIN, "within_s": 12.0, "overlap": 2.0})
    assert time.iteration(2, 2) == pytest.approx((13.0, 8.0))
    assert time.iteration(2, 4, sub_batch=2) == pytest.approx((5.0 + 13.0, 8.0))


def test_a_large_overlap_hides_the_shorter_time():
    time = TimeModel(**{**PLAIN, "overlap": 1e4})
    assert time.iteration(2, 4) == pytest.approx((9.0, 0.0), abs=0.01)
    assert time.iteration(5, 1, machines=3) == pytest.approx((22.0, 19.0), abs=0.01)


def test_the_overlap_is_that_of_the_samples_computed_at_once():
    constants = {**PLAIN, "within_s": 12.0}
    mapped = TimeModel(**{**constants, "overlap": {2: 2.0, 4: 1.0, 10: 3.0}})
    # 1 sample: the overlap of the least; 3 and 4: that of the nearest smaller one.
    for size, overlap in ((1, 2.0), (2, 2.0), (3, 2.0), (4, 1.0), (9, 1.0), (10, 3.0), (50, 3.0)):
        plain = TimeModel(**{**constants, "overlap": overlap})
        assert mapped.iteration(2, size) == plain.iteration(2, size)
        assert mapped.iteration(2, 2 * size, sub_batch=size) == plain.iteration(2, 2 * size, sub_batch=size)
    # At the full batch of 4 nothing overlaps, so that two sub-batches with one more fixed time are shorter here.
    assert mapped.iteration(2, 4, sub_batch=2).total_s == 18.0 < mapped.iteration(2, 4).total_s == 21.0


@given(time=times, gpus=st.integers(2, 64), size=st.integers(1, 1000), machines=st.integers(1, 2))
def test_iterations_are_within_maximum_and_sum_and_gpus_never_gain_more_than_their_number(time, gpus, size, machines):
    total_s, exposed_s = time.iteration(gpus, size, machines=machines)
    compute, network = time.compute(size), time.network(gpus, machines)
    assert max(compute, network) <= total_s <= (compute + network) * (1 + 1e-12)
    assert 0.0 <= exposed_s <= total_s
    assert total_s >= time.iteration(1, size).total_s


@given(time=times, gpus=st.integers(1, 8), size=st.integers(1, 200), sub_batch=st.integers(1, 200))
def test_accumulation_never_shortens_an_iteration(time, gpus, size, sub_batch):
    whole = time.iteration(gpus, size)
    divided = time.iteration(gpus, size, sub_batch=sub_batch)
    # Less computation in the last sub-batch hides less of the communication.
    assert divided.total_s >= whole.total_s * (1 - 1e-12)
    assert divided.exposed_s >= whole.exposed_s - 1e-9
    assert divided == whole or sub_batch < size


@given(
    time=times, factor=st.floats(0.1, 10.0), gpus=st.integers(1, 8), size=st.integers(1, 200), steps=st.integers(1, 4)
)
def test_seconds_scale_with_the_seconds_of_the_constants(time, factor, gpus, size, steps):
    constants = {name: value * factor for name, value in vars(time).items() if name != "overlap"}
    scaled = TimeModel(**constants, overlap=time.overlap).iteration(gpus, size * steps, sub_batch=size)
    assert scaled == pytest.approx([factor * value for value in time.iteration(gpus, size * steps, sub_batch=size)])


def test_an_overlap_of_a_mapping_is_named_by_its_batch():
    with pytest.raises(eq.InvalidInput, match=r"^overlap\[4\] = 0.5"):
        TimeModel(**{**PLAIN, "overlap": {2: 1.0, 4: 0.5}})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("compute_s", -1.0),
        ("compute_s_per_sample", 0.0),
        ("within_s", -1e-9),
        ("within_s_per_gpu", "much"),
        ("across_s", math.nan),
        ("across_s_per_gpu", math.inf),
        ("overlap", 0.99),
        ("overlap", {}),
        ("overlap", {0: 1.0}),
    ],
)
def test_a_constant_out_of_range_is_named(field, value):
    with pytest.raises(eq.InvalidInput, match=f"^{field} = "):
        TimeModel(**{**PLAIN, field: value})


def measurements(time: TimeModel, sizes, gpus=(1, 2, 3, 4, 8, 16), machines=(1, 2)):
    rows = [(k, b, n) for k in gpus for b in sizes for n in machines if n <= k]
    throughput = [k * b / time.iteration(k, b, machines=n).total_s for k, b, n in rows]
    columns = np.array(rows).T
    return columns[0], columns[1], np.array(throughput), columns[2]


@pytest.mark.parametrize("model", ModelTable.builtin().models)
def test_a_fit_recovers_the_constants_of_the_six_models(model):
    row = ModelTable.builtin().row(model)
    sizes = np.unique(np.geomspace(row.min_gpu_batch, row.max_gpu_batch, 5).astype(int)).tolist()
    gpus, batch, throughput, machines = measurements(row.time, sizes)
    fit = fit_time_model(gpus, batch, throughput, machines=machines)
    assert fit.rms_log_error < 1e-9
    assert vars(fit.time) == pytest.approx(vars(row.time), rel=1e-5)


def test_residuals_are_logarithms_of_predicted_over_measured_throughput():
    time = ModelTable.builtin().row("cifar10").time
    gpus, batch, throughput, machines = measurements(time, [32, 128, 512, 1024])
    noise = np.random.default_rng(7).normal(0.0, 0.1, len(gpus))
    fit = fit_time_model(gpus, batch, throughput * np.exp(noise), machines=machines)
    measured = throughput * np.exp(noise)
    predicted = [
        k * b / fit.time.iteration(k, b, machines=n).total_s
        for k, b, n in zip(gpus.tolist(), batch.tolist(), machines.tolist(), strict=True)
    ]
    assert fit.log_residuals == pytest.approx(np.log(predicted / measured))
    assert fit.rms_log_error == pytest.approx(math.sqrt(np.mean(fit.log_residuals**2)))
    # No worse than the constants that made the measurements.
    assert 0.05 < fit.rms_log_error <= math.sqrt(np.mean(noise**2)) + 1e-9


@pytest.mark.parametrize(
    ("constants", "seed", "error"),
    [
        # A search from a small overlap ends at 0.0806, and one from a large overlap at 0.0896.
        ((0.572, 0.00914, 0.453, 0.00448, 0.00723, 0.0202, 2.69), 11, 0.0799),
        ((0.42, 3.25e-05, 0.00176, 0.0207, 0.151, 0.000224, 1.91), 39, 0.0891),
    ],
)
def test_a_fit_takes_the_better_of_two_local_optima(constants, seed, error):
    time = TimeModel(**dict(zip(PLAIN, constants, strict=True)))
    gpus, batch, throughput, machines = measurements(time, [8, 32, 128, 1024], gpus=(1, 2, 4, 8, 16))
    noise = np.random.default_rng(seed).normal(0.0, 0.1, len(gpus))
    assert fit_time_model(gpus, batch, throughput * np.exp(noise), machines=machines).rms_log_error < error + 2e-4


def test_what_was_not_measured_follows_the_rules():
    time = TimeModel(**PLAIN)
    one_level = fit_time_model(*measurements(time, [1, 2, 8], machines=(1,))[:3]).time
    assert (one_level.across_s, one_level.across_s_per_gpu) == (one_level.within_s, one_level.within_s_per_gpu)
    assert one_level.within_s == pytest.approx(3.0, rel=1e-4)
    single = fit_time_model([1, 1, 1], [1, 2, 8], [1 / 3, 2 / 5, 8 / 17]).time
    assert (single.compute_s, single.compute_s_per_sample) == pytest.approx((1.0, 2.0))
    assert (single.within_s, single.across_s, single.overlap) == (0.0, 0.0, 1.0)
    one_size = fit_time_model([1, 2], [4, 4], [4 / 9, 8 / 12]).time
    assert (one_size.compute_s, one_size.within_s_per_gpu) == (0.0, 0.0)
    assert one_size.iteration(2, 4).total_s == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], [], None), r"gpus = '\[\]': must not be empty"),
        (([0], [4], [1.0], None), r"gpus\[0\] = 0"),
        (([1], [0], [1.0], None), r"batch_size\[0\] = 0"),
        (([1, 1], [4, 4], [1.0, 0.0], None), r"throughput\[1\] = 0"),
        (([1], [4], [1.0], [0]), r"machines\[0\] = 0"),
        (([2], [4], [1.0], [3]), r"machines\[0\] = 3: more machines than GPUs"),
        (([1, 2], [4], [1.0, 1.0], None), "batch_size = '1 values'"),
    ],
)
def test_a_bad_measurement_is_named(columns, message):
    gpus, sizes, throughput, machines = columns
    with pytest.raises(eq.InvalidInput, match=message):
        fit_time_model(gpus, sizes, throughput, machines=machines)
