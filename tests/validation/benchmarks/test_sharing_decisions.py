"""The rows of the benchmark of decisions."""

import pytest

import equipoise as eq
from equipoise.validation.benchmarks.sharing_decisions import decision_rows


def test_one_row_a_size_with_the_jobs_that_run_and_wait():
    sizes = ((16, 8, 10, 1), (64, 32, 30, 16))
    for row, (gpus, running, arriving, batch_size) in zip(decision_rows(sizes=sizes, repeat=2), sizes, strict=True):
        assert (row["gpus"], row["batch_size"]) == (gpus, batch_size)
        # Some of those that arrive share, and the others wait; one job has just ended.
        assert row["running"] + row["waiting"] == running + arriving - 1
        assert 0 < row["waiting"] < arriving
        assert 0.0 < row["end_ms"] <= row["worst_end_ms"]
        assert 0.0 < row["arrival_ms"] <= row["worst_arrival_ms"]


def test_options_are_those_of_the_policy():
    with pytest.raises(eq.InvalidInput, match="rule = 'none'"):
        next(decision_rows(sizes=((16, 8, 5, 1),), rule="none"))
