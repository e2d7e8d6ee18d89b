"""Decisions of the policies of the fluid engine by hand, and what their options refuse."""

import math
from fractions import Fraction

import numpy as np
import pytest

from equipoise import InvalidInput, WfqConfig
from equipoise.heuristics import make_policy
from equipoise.simulation import Trace
from equipoise.simulation.fluid import FluidRules, Speedups, simulate_fluid

CURVES = Speedups(tables={"a": np.array([1.0, 2.0, 3.0, 4.0]), "b": np.array([1.0, 1.5, 1.75])})


def first_answer(name, jobs, gpus, **options):
    """Return the GPUs of jobs (model, maximum demand, size) that arrive together, before the first ends."""
    models, gangs, sizes = zip(*jobs, strict=True)
    count = len(jobs)
    trace = Trace(job_id=range(count), model=models, gang_gpus=gangs, arrival_s=[0.0] * count, size_s=sizes)
    policy = make_policy(name, "fluid", **options)
    result = simulate_fluid(trace, policy, cluster=gpus, speedups=CURVES, compiled=False)
    held = dict.fromkeys(range(count), 0.0)
    stretches = result.stretches
    for index, start_s, amount in zip(stretches.trace_index, stretches.start_s, stretches.gpus, strict=True):
        if start_s == 0.0:
            held[int(index)] = float(amount)
    return list(held.values())


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("fifo", [4.0, 1.0, 0.0]),
        # Service left: 40; 2 x 20 / 1.5 = 26.7; 50. Time left: 10; 13.3; 50.
        ("srsf", [3.0, 2.0, 0.0]),
        ("srtf", [4.0, 1.0, 0.0]),
        ("las", [4.0, 1.0, 0.0]),
        ("fs", [2.0, 2.0, 1.0]),
    ],
)
def test_orders_and_fair_shares(name, held):
    assert first_answer(name, [("a", 4, 40.0), ("b", 2, 20.0), ("a", 1, 50.0)], 5) == held


def test_fair_share_divides_what_satisfied_jobs_leave():
    assert first_answer("fs", [("a", 1, 9.0), ("a", 4, 9.0), ("a", 4, 9.0)], 6) == [1.0, 2.5, 2.5]


def test_las_prefers_new_jobs_and_keeps_the_order_of_ties():
    trace = Trace(
        job_id=[0, 1, 2], model=["a"] * 3, gang_gpus=[1] * 3, arrival_s=[0.0, 2.0, 2.0], size_s=[5.0, 1.0, 1.0]
    )
    result = simulate_fluid(trace, make_policy("las", "fluid"), cluster=1, speedups=CURVES, compiled=False)
    assert result.end_s.tolist() == [7.0, 3.0, 4.0]


@pytest.mark.parametrize("name", ["afs", "afs-l"])
def test_afs_weighs_gains(name):
    # Jobs of one size: the linear one gains more from each further GPU.
    assert first_answer(name, [("a", 4, 40.0), ("b", 3, 40.0)], 4) == [3.0, 1.0]
    # The gain of the short job is 2 - 1; the loss of the long one is 1 - 1/1.5.
    assert first_answer(name, [("a", 4, 40.0), ("b", 3, 80.0)], 3) == [2.0, 1.0]
    # More jobs than GPUs: the shortest get one each.
    assert first_answer(name, [("a", 4, 30.0), ("a", 4, 20.0), ("b", 3, 10.0)], 2) == [0.0, 1.0, 1.0]


def test_themis_takes_the_worst_ratio_first():
    # Ratios at arrival: (S/d) / (S / min(M/c, d)) = min(M/c, d)/d, with counters of 3, 2 + ... events.
    assert first_answer("themis", [("a", 1, 10.0), ("a", 4, 10.0), ("a", 1, 99.0)], 4) == [1.0, 2.0, 1.0]


def test_themis_decides_anew_after_its_lease():
    trace = Trace(job_id=[0, 1], model=["a"] * 2, gang_gpus=[1] * 2, arrival_s=[0.0, 0.0], size_s=[10.0, 10.0])
    for lease_s, switches in ((2.0, 2), (100.0, 0)):
        policy = make_policy("themis", "fluid", lease_s=lease_s)
        result = simulate_fluid(trace, policy, cluster=1, speedups=CURVES, compiled=False)
        assert (result.preemptions.sum() > 0) == (switches > 0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("themis", {"lease_s": 0.0}, "lease_s = 0.0: must be greater than 0"),
        ("wfq", {"config": 3}, "config = 'int': must be a WfqConfig or the path of its file"),
        ("wfq", {"config": "/none.json"}, "path = '/none.json': No such file"),
        (
            "wfq",
            {"config": WfqConfig(thresholds=[math.inf], weights=dict.fromkeys(("v100", "k80"), (Fraction(1),)))},
            "config = 'v100, k80': has weights of several GPU types, and the fluid engine has one",
        ),
        ("wfq", {"integral": 1}, "integral = 1: must be True or False"),
        ("wfq", {"quantum_s": 0.0}, "quantum_s = 0.0: must be greater than 0"),
    ],
)
def test_bad_options_are_refused(name, options, message):
    with pytest.raises(InvalidInput, match=message):
        make_policy(name, "fluid", **options)


def test_only_fifo_and_queues_guarantee_an_end():
    trace = Trace(job_id=[0], model=["a"], gang_gpus=[1], arrival_s=[0.0], size_s=[5.0])
    for name in ("fifo", "srsf", "srtf", "las", "fs", "afs", "afs-l", "themis", "wfq"):
        for compiled in (False, True):
            result = simulate_fluid(
                trace, make_policy(name, "fluid"), cluster=1, speedups=CURVES, rules=FluidRules(predict=True),
                compiled=compiled,
            )  # fmt: skip
            assert math.isnan(result.bound_s[0]) == (name not in ("fifo", "wfq")), name
            assert result.predicted_end_s[0] == 5.0
