"""The compiled loops give the results of the plain Python reference to the last bit, on random cases of each policy."""

from dataclasses import replace

import numpy as np
import pytest
from delay_cases import POLICIES, assert_equal, outcome, random_case
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster
from equipoise.simulation.placement import DurationSpeeds
from equipoise.simulation.placement.compiled import (
    gpu_kernels,
    job_kernels,
    loop_kernels,
    offer_kernels,
    order_kernels,
    run,
    setup,
    tuner_kernels,
)

KERNELS = (gpu_kernels, job_kernels, loop_kernels, offer_kernels, order_kernels, tuner_kernels)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=max(25, settings().max_examples))
@given(seed=SEEDS)
def test_both_forms_agree(name, seed):
    case = random_case(name, seed)
    assert_equal(outcome(case, compiled=False), outcome(case, compiled=True))


def as_records(value):
    """Return arrays whose elements have their fields as attributes, as in compiled code."""
    if isinstance(value, tuple):
        return type(value)(*map(as_records, value))
    return value.view(np.recarray) if isinstance(value, np.ndarray) and value.dtype.names else value


@pytest.fixture
def plain(monkeypatch):
    """Let the kernels run as plain Python."""
    loop = loop_kernels.run_events.py_func
    for module in KERNELS:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    monkeypatch.setattr(run, "run_events", lambda *arguments: loop(*map(as_records, arguments)))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", [3, 8, 21])
def test_the_kernels_agree_as_plain_python(name, seed, plain):
    case = random_case(name, seed)
    case.arguments["rules"] = case.arguments["rules"].__class__(restart_s=3.0, checkpoint_s=2.0, most_steps=300)
    assert_equal(outcome(case, compiled=False), outcome(case, compiled=True))


@pytest.mark.parametrize("name", POLICIES)
def test_full_logs_and_events_that_are_dropped_change_nothing(name, monkeypatch):
    dropped = []

    class Run(run.CompiledRun):
        def _enlarge(self):
            before = int(self.arrays.state["events"][0])
            super()._enlarge()
            dropped.append(before - int(self.arrays.state["events"][0]))

    for seed in range(6):
        case = random_case(name, seed)
        expected = outcome(case, compiled=True)
        with monkeypatch.context() as changed:
            changed.setattr(setup, "_LOG_ROWS", 0)
            changed.setattr(run, "_BATCH", 7)
            changed.setattr(run, "CompiledRun", Run)
            assert_equal(expected, outcome(case, compiled=True))
    assert len(dropped) > 10
    assert max(dropped) > 0


def test_timers_follow_from_more_waits_than_there_was_space_for_at_first(monkeypatch):
    lengths = set()

    class Run(run.CompiledRun):
        def _enlarge(self):
            super()._enlarge()
            lengths.add(self.arrays.tuner.waits.shape[1])

    monkeypatch.setattr(run, "CompiledRun", Run)
    case = random_case("dally", 0)
    # Two jobs at most run at a time, so that the space is small.
    case.trace = replace(case.trace, gang_gpus=[2] * len(case.trace))
    case.arguments["cluster"] = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=1)
    case.arguments["speeds"] = DurationSpeeds()
    case.policy = make_policy("dally", "placement", lease_s=1200.0, keep=False, empty_s=(0.0, 0.0))
    assert_equal(outcome(case, compiled=False), outcome(case, compiled=True))
    assert len(lengths) > 2
