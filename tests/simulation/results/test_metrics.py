"""The measures of a simulation against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import InvalidInput
from equipoise.simulation import envy, finish_time_fairness, unfair_pct


@given(st.lists(st.integers(0, 20), min_size=2, max_size=30))
def test_envy_is_the_mean_and_the_largest_pairwise_difference(levels):
    shares = np.array(levels) / 20.0
    pairs = [abs(a - b) for i, a in enumerate(shares) for b in shares[i + 1 :]]
    mean, most = envy(shares)
    assert mean == pytest.approx(np.mean(pairs), abs=1e-12)
    assert most == pytest.approx(max(pairs), abs=1e-12)


def test_one_job_envies_nobody():
    assert envy([0.3]) == (0.0, 0.0)


def test_finish_time_fairness_stretches_only_in_a_crowd():
    assert finish_time_fairness([10.0, 30.0], [10.0, 10.0], jobs=6, gpus=3).tolist() == [0.5, 1.5]
    assert finish_time_fairness([10.0, 30.0], [10.0, 10.0], jobs=2, gpus=3).tolist() == [1.0, 3.0]


def test_unfair_means_beyond_the_threshold():
    ratios = [1.0, 1.05, 1.06, 2.0]
    assert unfair_pct(ratios) == 50.0
    assert unfair_pct(ratios, 1.0) == 75.0
    assert unfair_pct(ratios, 2.0) == 0.0


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: envy([0.2, 1.2]), "shares"),
        (lambda: envy([]), "shares"),
        (lambda: unfair_pct([1.0, np.nan]), "ftf"),
        (lambda: finish_time_fairness([1.0], [0.0], jobs=1, gpus=1), "exclusive_s"),
        (lambda: finish_time_fairness([1.0, 2.0], [1.0], jobs=1, gpus=1), "exclusive_s"),
        (lambda: finish_time_fairness([1.0], [1.0], jobs=0, gpus=1), "jobs"),
    ],
)
def test_bad_measures_are_refused(call, field):
    with pytest.raises(InvalidInput, match=field):
        call()
