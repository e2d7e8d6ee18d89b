"""Weighted fair queues: shares of queues, caps, turns of fractions, and the identities with other policies."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fluid_cases import random_case, random_config, random_speedups, random_trace
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise import WfqConfig
from equipoise.heuristics import make_policy
from equipoise.heuristics.fluid.rotation import Rotation
from equipoise.heuristics.fluid.wfq import NONE_GPUS, queue_gpus
from equipoise.simulation import Trace
from equipoise.simulation.fluid import FluidRules, Speedups, simulate_fluid


def run(trace, policy, gpus, speedups, compiled=False, **rules):
    return simulate_fluid(trace, policy, cluster=gpus, speedups=speedups, rules=FluidRules(**rules), compiled=compiled)


# -- Shares of queues --------------------------------------------------------------------------------------------------


def test_queue_shares_by_hand():
    weights = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    assert queue_gpus(10, weights, [9, 9, 9]) == [5, 3, 2]
    # The first leaves 4, divided 3 : 2 between the others.
    assert queue_gpus(10, weights, [1, 9, 9]) == [1, Fraction(27, 5), Fraction(18, 5)]
    assert queue_gpus(10, weights, [0, 2, 9]) == [0, 2, 8]
    assert queue_gpus(10, weights, [1, 2, 3]) == [1, 2, 3]
    assert queue_gpus(10, weights, [0, 0, 0]) == [0, 0, 0]


@given(
    gpus=st.integers(1, 64),
    queues=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 40)), min_size=1, max_size=5),
)
def test_queue_shares_are_weighted_max_min(gpus, queues):
    total = sum(weight for weight, _ in queues)
    weights = [Fraction(weight, total) for weight, _ in queues]
    demands = [demand for _, demand in queues]
    given_gpus = queue_gpus(gpus, weights, demands)
    slack = Fraction(1, 500)
    assert sum(given_gpus) <= gpus
    assert sum(given_gpus) >= min(gpus, sum(demands)) - slack
    for amount, weight, demand in zip(given_gpus, weights, demands, strict=True):
        assert amount <= demand
        # A queue never gets less than its weight of the GPUs, or its demand.
        if weight * gpus > NONE_GPUS:
            assert amount >= min(weight * gpus, demand) - slack
    # No queue that demands more has a lower level than another.
    levels = [amount / weight for amount, weight in zip(given_gpus, weights, strict=True)]
    open_levels = [
        level for level, amount, demand in zip(levels, given_gpus, demands, strict=True) if amount < demand - slack
    ]
    if open_levels:
        assert max(levels) - min(open_levels) <= slack * total


@given(seed=st.integers(0, 2**32 - 1))
def test_no_gpu_idles_while_a_job_is_below_its_maximum(seed):
    case = random_case("wfq", seed)
    trace = replace(case.trace, min_gpus=None)  # with them GPUs too few for any job idle
    result = simulate_fluid(
        trace, case.policy, cluster=case.gpus, speedups=case.speedups, rules=case.rules, compiled=False
    )
    levels, stretches = result.levels, result.stretches
    for start_s, end_s, busy in zip(levels.start_s, levels.end_s, levels.gpus_busy, strict=True):
        present = (result.trace.arrival_s <= start_s + 1e-6) & (result.end_s >= end_s - 1e-6)
        wanted = min(case.gpus, result.max_gpus[present].sum())
        assert busy >= wanted - 0.01
    assert (stretches.gpus > 0.0).all()


# -- Caps --------------------------------------------------------------------------------------------------------------


def test_caps_are_relaxed_until_the_queue_has_given_all():
    # Per GPU: 1, 0.8, 0.7, 0.6.
    speedups = Speedups(tables={"m": [1.0, 1.6, 2.1, 2.4]})
    trace = Trace(job_id=[0, 1], model=["m"] * 2, gang_gpus=[4, 4], arrival_s=[0.0, 0.0], size_s=[100.0, 100.0])
    for zeta, delta, held in ((0.9, 0.15, [2, 2]), (0.9, 0.5, [4, 1]), (0.0, 0.1, [4, 1]), (0.65, 0.1, [3, 2])):
        config = WfqConfig(thresholds=[math.inf], weights=[1], zeta=zeta, delta=delta)
        gpus = 4 if held == [2, 2] else 5
        result = run(trace, make_policy("wfq", "fluid", config=config), gpus, speedups)
        first = result.stretches.start_s == 0.0
        assert result.stretches.gpus[first].tolist() == held


# -- Weights by GPU type -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integral", [False, True])
def test_weights_of_one_type_are_those_of_the_cluster(integral):
    rng = np.random.default_rng(7)
    trace, speedups = random_trace(rng), random_speedups(rng)
    fields = {"thresholds": [60.0, 200.0, math.inf], "zeta": 0.3}
    weights = ["1/2", "3/10", "1/5"]
    for compiled in (False, True):
        plain, typed = (
            run(
                trace, make_policy("wfq", "fluid", config=WfqConfig(**fields, weights=given), integral=integral), 5,
                speedups, compiled, predict=True,
            )
            for given in (weights, {"v100": weights})
        )  # fmt: skip
        for field in ("start_s", "end_s", "predicted_end_s", "bound_s"):
            np.testing.assert_array_equal(getattr(plain, field), getattr(typed, field))
        assert np.isfinite(typed.bound_s).all() != integral


# -- Identities --------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
def test_one_queue_without_a_cap_is_fifo_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    trace, speedups, gpus = random_trace(rng), random_speedups(rng), int(rng.integers(1, 14))
    rules = {"predict": True, "microseconds": bool(rng.integers(2)), "preemption_s": float(rng.choice([0.0, 5.0]))}
    for compiled in (False, True):
        queues, fifo = (
            run(trace, make_policy(name, "fluid"), gpus, speedups, compiled, **rules) for name in ("wfq", "fifo")
        )
        for field in ("start_s", "end_s", "contention", "predicted_end_s", "bound_s"):
            np.testing.assert_array_equal(getattr(queues, field), getattr(fifo, field))


@given(seed=st.integers(0, 2**32 - 1))
def test_a_queue_for_each_job_is_fair_share(seed):
    """Up to the amounts of 0.001 GPUs that count as none, each of which moves an end in proportion."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 8))
    sizes = np.cumsum(rng.integers(10, 200, count)).astype(float)
    trace = Trace(
        job_id=range(count), model=["m"] * count, gang_gpus=rng.integers(1, 5, count),
        arrival_s=rng.integers(0, 60, count).astype(float), size_s=rng.permutation(sizes),
    )  # fmt: skip
    config = WfqConfig(thresholds=[*(np.sort(sizes)[:-1] + 0.5), math.inf], weights=[Fraction(1, count)] * count)
    gpus = int(rng.integers(1, 9))
    queues = run(trace, make_policy("wfq", "fluid", config=config), gpus, Speedups.linear(4))
    fair = run(trace, make_policy("fs", "fluid"), gpus, Speedups.linear(4))
    np.testing.assert_allclose(queues.end_s, fair.end_s, rtol=0.02)


def test_ever_steeper_weights_tend_to_the_smallest_size_first():
    rng = np.random.default_rng(4)
    count = 60
    trace = Trace(
        job_id=range(count), model=["m"] * count, gang_gpus=[4] * count,
        arrival_s=np.cumsum(rng.exponential(20.0, count)), size_s=rng.choice([10.0, 100.0, 1000.0], count),
    )  # fmt: skip

    class SmallestSize(type(make_policy("fifo", "fluid"))):
        rule = None

        def key(self, job):
            return job.size_s, job.rank

    limit = run(trace, SmallestSize(), 4, Speedups.linear(4)).metrics["avg_jct_s"]
    distances = []
    for base in (2, 10, 100, 400):
        raw = [Fraction(1, base**queue) for queue in range(3)]
        config = WfqConfig(thresholds=[10.0, 100.0, math.inf], weights=[each / sum(raw) for each in raw])
        found = run(trace, make_policy("wfq", "fluid", config=config), 4, Speedups.linear(4)).metrics["avg_jct_s"]
        distances.append(abs(found / limit - 1.0))
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.01 < 0.02 < distances[0]


# -- Turns of fractions ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 19), min_size=2, max_size=8))
def test_each_job_holds_a_gpu_for_its_fraction_of_the_time(twentieths):
    spare = -sum(twentieths) % 20
    assume(spare != 0 or sum(twentieths) % 20 == 0)
    parts = [*twentieths, spare] if spare else twentieths
    shares = {index: part / 20 for index, part in enumerate(parts)}
    whole_gpus = sum(parts) // 20
    turns = Rotation()
    turns.begin(shares, list(shares))
    held, passed = dict.fromkeys(shares, 0.0), 0.0
    while passed < whole_gpus - 1e-6:
        now = turns.gpus()
        assert sum(now.values()) == whole_gpus
        assert max(now.values()) <= 1.0
        for index, gpus in now.items():
            held[index] += gpus * turns.turn
        passed += turns.turn
        turns.next_turn()
    # In a round each fraction passes every GPU once.
    for index, share in shares.items():
        assert held[index] == pytest.approx(share * whole_gpus, abs=1e-6)


def test_turns_of_one_gpu_begin_with_the_second_fraction():
    turns = Rotation()
    turns.begin({0: 2.5, 1: 0.25, 2: 3.0, 3: 0.25}, [0, 1, 2, 3])
    seen = []
    for _ in range(4):
        seen.append((turns.gpus(), turns.turn))
        turns.next_turn()
    base = {0: 2.0, 1: 0.0, 2: 3.0, 3: 0.0}
    assert seen == [
        ({**base, 1: 1.0}, 0.25),
        ({**base, 3: 1.0}, 0.25),
        ({**base, 0: 3.0}, 0.5),
        ({**base, 1: 1.0}, 0.25),
    ]


@given(seed=st.integers(0, 2**32 - 1))
def test_the_integral_form_holds_whole_gpus(seed):
    rng = np.random.default_rng(seed)
    policy = make_policy("wfq", "fluid", config=random_config(rng), integral=True, quantum_s=100.0)
    gpus = int(rng.integers(1, 9))
    result = run(random_trace(rng, 12, whole=True), policy, gpus, random_speedups(rng))
    assert (result.stretches.gpus == np.rint(result.stretches.gpus)).all()
    assert result.levels.gpus_busy.max() <= gpus
