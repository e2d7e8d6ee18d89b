"""Every offer of the four policies beside the rules, on drawn clusters, jobs and options; invariants of the runs."""

from itertools import pairwise

import numpy as np
import pytest
from dally_cases import policies, setups
from delay_reference import CheckedDelays
from hypothesis import given, settings

from equipoise.simulation.placement import simulate_placement

pytestmark = pytest.mark.thorough


@settings(max_examples=3 * settings().max_examples)
@given(setup=setups(), drawn=policies())
def test_every_offer_follows_the_rules(setup, drawn):
    checked = CheckedDelays(*drawn)
    found = simulate_placement(policy=checked, **setup)
    trace, stretches = setup["trace"], found.stretches
    assert (found.end_s > found.start_s).all()
    assert (found.start_s >= trace.arrival_s - 1e-6).all()
    # Every job computes for its duration, on as many GPUs as it asks for.
    assert np.allclose(found.gpu_s, found.run_s * trace.gang_gpus, rtol=1e-9)
    assert np.allclose(found.run_s - found.exposed_s, trace.duration_s, rtol=1e-9)
    # No GPU has two jobs, and no job more or fewer than it asks for.
    assert (stretches.gpus == trace.gang_gpus[stretches.trace_index]).all()
    taken = sorted(
        (gpu, start_s, end_s)
        for ids, start_s, end_s in zip(stretches.ids(), stretches.start_s, stretches.end_s, strict=True)
        for gpu in ids
    )
    for (gpu, _, end_s), (other, start_s, _) in pairwise(taken):
        assert gpu != other or start_s >= end_s


@given(setup=setups(), drawn=policies())
def test_a_run_is_the_same_to_the_last_bit(setup, drawn):
    policy, _ = drawn
    one, two = (simulate_placement(policy=policy, compiled=False, **setup) for _ in range(2))
    for name in ("start_s", "end_s", "run_s", "exposed_s", "held_s", "tier", "preemptions"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    for name in ("trace_index", "start_s", "end_s", "gpu_ids"):
        assert getattr(one.stretches, name).tobytes() == getattr(two.stretches, name).tobytes()
