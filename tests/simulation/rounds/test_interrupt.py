"""Ctrl-C during a simulation: what had ended by then is told, and is what the whole run says of it."""

import numpy as np
import pandas as pd
import pytest

from equipoise.heuristics.registry import make_policy
from equipoise.simulation import Profiles, SimulationInterrupted, generate_trace, simulate_rounds

TRACE = generate_trace(np.random.default_rng(3), num_jobs=20, mean_interarrival_s=300.0)


class InterruptedPolicy:
    """Least attained service, until its n-th call."""

    def __init__(self, calls):
        self._left = calls
        self._policy = make_policy("las")
        self.name = self._policy.name

    def due(self, state):
        return self._policy.due(state)

    def decide(self, state):
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._policy.decide(state)


def run(policy, **options):
    return simulate_rounds(TRACE, policy, gpus=8, profiles=Profiles.builtin(), **options)


@pytest.mark.parametrize("calls", [0, 1, 40, 150])
def test_an_interrupted_run_agrees_with_the_whole_one(calls):
    whole = run(make_policy("las"))
    with pytest.raises(SimulationInterrupted) as caught:
        run(InterruptedPolicy(calls))
    found = caught.value
    assert found.total == 20
    ended = whole.jobs["end_s"] <= (found.rounds["end_s"].max() if len(found.rounds) else -1.0)
    pd.testing.assert_frame_equal(found.jobs, whole.jobs[ended].reset_index(drop=True))
    pd.testing.assert_frame_equal(found.rounds, whole.rounds.head(len(found.rounds)), check_dtype=False)
    timed = ["wall_s"]
    pd.testing.assert_frame_equal(
        found.solves.drop(columns=timed), whole.solves.head(len(found.solves)).drop(columns=timed), check_dtype=False
    )
    assert str(found) == f"{ended.sum()} of 20 jobs had ended after {len(found.rounds)} rounds"
    if calls == 150:
        assert 0 < ended.sum() < 20


def test_an_interrupt_between_rounds_keeps_that_round():
    rounds = []

    def stop(number, time_s, completed, total):
        rounds.append((number, completed))
        if number == 60:
            raise KeyboardInterrupt

    with pytest.raises(SimulationInterrupted) as caught:
        run(make_policy("fifo"), on_round=stop)
    assert len(caught.value.rounds) == 61
    assert len(caught.value.jobs) == rounds[-1][1]
    assert isinstance(caught.value, KeyboardInterrupt)  # whoever catches those alone still does
