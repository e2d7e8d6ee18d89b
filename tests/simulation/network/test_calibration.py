"""Layers, what the backward pass hides, and the calibration of a model's computation."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.simulation import Cluster
from equipoise.simulation.network import (
    ALGORITHMS,
    SCHEMES,
    TOPOLOGIES,
    AllReduceSpeeds,
    CommunicationRow,
    CommunicationTable,
    Dimension,
    Network,
    calibrate,
    exposed_s,
    layer_bytes,
    layer_times_s,
    placement_at,
)

TABLE = CommunicationTable.builtin()
PAPER = Cluster(gpus_by_type={"gpu": 128}, gpus_per_machine=8, racks=2)
BUILTIN = Network.builtin(PAPER)


def row(**changes):
    facts = {"model": "net", "machine": 0.5, "rack": 1.0, "network": 2.0, "gradient_mb": 12.0, "layers": 3, "skew": 0.5}
    return CommunicationRow(**facts | changes)


def networks():
    def network(topology, algorithm, scheme, sizes):
        links = zip(sizes, (112.5, 50.0, 100.0), (500.0, 500.0, 2000.0), strict=True)
        return Network(
            [
                Dimension(
                    topology=topology, algorithm=algorithm, size=size, bandwidth_gb_s=bandwidth, latency_ns=latency
                )
                for size, bandwidth, latency in links
            ],
            scheme,
        )

    names = (st.sampled_from(values) for values in (TOPOLOGIES, ALGORITHMS, SCHEMES))
    return st.builds(network, *names, st.tuples(*[st.integers(1, 8)] * 3))


def test_the_largest_layer_has_the_skew_and_comes_first():
    assert layer_bytes(row()).tolist() == [6e6, 3e6, 3e6]
    assert layer_bytes(row(layers=1, skew=1.0)).tolist() == [12e6]
    for each in TABLE.rows:
        found = layer_bytes(each)
        assert len(found) == each.layers
        assert found.sum() == pytest.approx(each.gradient_mb * 1e6)
        assert found[0] == found.max() == pytest.approx(each.skew * each.gradient_mb * 1e6)


def exposed_by_events(times, compute):
    """The same in exact fractions, moment by moment: a network that is free takes the first gradient that is ready."""
    layers = len(times)
    backward = Fraction(2, 3) * compute
    ready = [compute - backward + backward * (k + 1) / layers for k in range(layers)]
    now, waiting = Fraction(0), list(range(layers))
    while waiting:
        first = waiting[0]
        if ready[first] > now:
            now = ready[first]
            continue
        now += times[first]
        waiting.pop(0)
    return now - compute


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(1, 300))
def test_only_what_the_backward_pass_does_not_hide_is_exposed(times, compute):
    found = exposed_s(np.array(times, dtype=float), float(compute))
    assert found == pytest.approx(float(exposed_by_events(list(map(Fraction, times)), Fraction(compute))), abs=1e-9)
    # The last gradient is ready when the backward pass ends; at most, all all-reduces follow it.
    assert times[-1] - 1e-9 <= found <= sum(times) + 1e-9


def test_hiding_by_hand():
    # Ready at 5, 7 and 9 s; the network works from 5 to 10, from 10 to 11 and from 11 to 12.
    assert exposed_s(np.array([5.0, 1.0, 1.0]), 9.0) == pytest.approx(3.0)
    assert exposed_s(np.array([1.0, 1.0, 1.0]), 9.0) == pytest.approx(1.0)
    assert exposed_s(np.zeros(3), 9.0) == 0.0


@given(networks(), st.floats(1e-4, 10.0))
def test_more_computation_hides_more(network, compute_s):
    times = layer_times_s(row(layers=7, skew=0.3), network)
    assert exposed_s(times, 2.0 * compute_s) <= exposed_s(times, compute_s) + 1e-12


@pytest.mark.parametrize("model", TABLE.models)
def test_calibration_meets_the_measured_ratio_of_all_six_models(model):
    found = calibrate(TABLE.row(model), BUILTIN)
    assert abs(found.residual) < 0.01
    # Independently: the exact time of the layers in one machine of 8 GPUs behind a switch.
    sizes = [Fraction(size) for size in layer_bytes(TABLE.row(model)).tolist()]
    sent = [Fraction(7, 4) * size / (Fraction(225, 2) * 2**30) + Fraction(12 * 500, 10**9) for size in sizes]
    exposed = exposed_by_events(sent, Fraction(found.compute_s))
    assert float(exposed) / found.compute_s == pytest.approx(TABLE.row(model).machine, rel=1e-6)


@given(networks(), st.sampled_from(TABLE.models), st.floats(0.001, 50.0), st.integers(2, 64))
def test_calibration_meets_any_ratio_and_any_time(network, model, ratio, gpus):
    given_row = replace(TABLE.row(model), machine=ratio)
    sizes = (gpus, 1, 1)
    found = calibrate(given_row, network, gpus=gpus)
    assert abs(found.residual) < 1e-6
    assert found.ratio(sizes) == pytest.approx(ratio, rel=1e-6)
    timed = calibrate(given_row, network, gpus=gpus, iteration_s=found.iteration_s(sizes))
    assert abs(timed.residual) < 1e-6
    assert timed.compute_s == pytest.approx(found.compute_s, rel=1e-6)


def test_rack_and_network_are_predicted_not_fitted():
    speeds = AllReduceSpeeds(cluster=PAPER)
    for name, found in speeds.models.items():
        ratios = [speeds.ratio(placement_at(tier, name, 8, PAPER)) for tier in range(3)]
        assert ratios[0] == pytest.approx(TABLE.row(name).machine, rel=1e-9)
        for ratio, sizes in zip(ratios[1:], ((4, 2, 1), (4, 1, 2)), strict=True):
            times = layer_times_s(TABLE.row(name), BUILTIN.resized(sizes))
            assert ratio == pytest.approx(exposed_s(times, found.compute_s) / found.compute_s)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: calibrate(row(machine=0.0), BUILTIN), "machine"),
        (lambda: calibrate("net", BUILTIN), "row"),
        (lambda: calibrate(row(), 3), "network"),
        (lambda: calibrate(row(), BUILTIN, gpus=1), "gpus"),
        (lambda: calibrate(row(), BUILTIN, iteration_s=float("nan")), "iteration_s"),
        (lambda: calibrate(row(), BUILTIN, iteration_s=1e-9), "iteration_s"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(call, field):
    with pytest.raises(InvalidInput) as error:
        call()
    assert error.value.field == field
