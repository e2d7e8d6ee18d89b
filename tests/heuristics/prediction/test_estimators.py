"""The three finish-time fairnesses, contention and the makespan bound against hand-made examples and each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics import artifact_ftf, average_contention, egalitarian_ftf, makespan_bound_s, planned_ftf
from equipoise.simulation import Profiles, Trace, snapshot

seconds = st.integers(0, 10_000)


def test_the_three_fairnesses_by_hand():
    # 600 s alone, done after 1500 s, with 4 jobs about.
    assert egalitarian_ftf(1500.0, 600.0, 4) == 1500 / 2400
    assert artifact_ftf(1500.0, 600.0, 4, gpus=2) == 1500 / 1200
    assert artifact_ftf(1500.0, 600.0, 4, gpus=8) == 1500 / 600
    # 200 s served, 300 s waited, 400 s left, at contention 2: 200 + 300 + 800 over 1200.
    assert planned_ftf(200.0, 300.0, 400.0, 2.0) == 1300 / 1200


def test_the_worked_table_of_the_paper():
    # Table 1: three jobs whose egalitarian times (serial time x N/M) are 9, 6 and 4.5 end at 7, 5 and 5 at f = 2/3.
    worst = [egalitarian_ftf(done, fair / 3, 3) for done, fair in ((7, 9.0), (5, 6.0), (5, 4.5))]
    assert worst == pytest.approx([0.78, 0.83, 1.11], abs=0.005)


@given(seconds, seconds, st.integers(1, 10_000), st.integers(0, 50))
def test_planned_fairness_below_contention_one_is_that_of_an_idle_cluster(attained, waiting, remaining, tenths):
    idle = planned_ftf(attained, waiting, remaining, 1.0)
    assert planned_ftf(attained, waiting, remaining, min(tenths / 10, 1.0)) == idle
    assert idle == pytest.approx(1 + waiting / (attained + remaining))
    assert planned_ftf(attained, waiting, remaining, 1 + tenths / 10) <= idle


@given(seconds, seconds, st.integers(1, 10_000), st.integers(1, 20))
def test_fairness_has_no_unit(attained, waiting, remaining, factor):
    plain = planned_ftf(attained, waiting, remaining, 2.5)
    assert planned_ftf(factor * attained, factor * waiting, factor * remaining, 2.5) == pytest.approx(plain)
    jct, alone = attained + waiting, remaining
    assert egalitarian_ftf(factor * jct, factor * alone, 3) == pytest.approx(egalitarian_ftf(jct, alone, 3))
    assert artifact_ftf(factor * jct, factor * alone, 3, gpus=2) == pytest.approx(artifact_ftf(jct, alone, 3, gpus=2))


@given(seconds, st.integers(1, 10_000), st.integers(1, 100))
def test_on_one_gpu_the_artifact_and_the_paper_agree(jct, alone, jobs):
    assert artifact_ftf(jct, alone, jobs, gpus=1) == egalitarian_ftf(jct, alone, jobs)


def test_waiting_hurts_and_an_unstarted_job_is_fair_so_far():
    assert planned_ftf(0.0, 0.0, 500.0, 3.0) == 1.0
    assert planned_ftf(0.0, 100.0, 500.0, 3.0) > 1.0


def test_contention_weighs_spans_by_their_length_and_is_at_least_one():
    assert average_contention([4, 16], [30.0, 10.0], gpus=4) == 7 / 4
    assert average_contention([1, 2], [30.0, 10.0], gpus=4) == 1.0
    # No job runs faster than alone: plenty does not make up for want.
    assert average_contention([0, 8], [10.0, 10.0], gpus=4) == 1.5


def test_contention_is_the_one_a_snapshot_reports():
    profiles = Profiles.builtin()
    trace = Trace(
        job_id=["a", "b"],
        model=["LM", "LM"],
        batch_size=[80, 80],
        gang_gpus=[1, 2],
        mode=["static", "static"],
        total_steps=[10**7, 10**7],
        arrival_s=[0.0, 100.0],
        total_epochs=[1000, 1000],
    )
    first, second = snapshot(trace, at_s=400.0, gpus=2, profiles=profiles)
    assert first.contention == pytest.approx(average_contention([1, 3], [100.0, 300.0], gpus=2))
    assert second.contention == pytest.approx(average_contention([3], [300.0], gpus=2))


def test_the_makespan_bound_by_hand():
    # Two jobs of 10 s that need all four GPUs, and one of 12 s on one GPU: 92 GPU-seconds on 4 GPUs.
    remaining, gang_gpus = [10.0, 10.0, 12.0], [4, 4, 1]
    assert makespan_bound_s(remaining, 4, gang_gpus=gang_gpus) == 23.0
    assert makespan_bound_s(remaining, 4, gang_gpus=gang_gpus, gang_weighted=False) == 12.0
    assert makespan_bound_s(remaining, 1) == 32.0
    assert makespan_bound_s([], 4) == 0.0


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 8)), min_size=1, max_size=8),
    st.integers(1, 16),
    st.randoms(),
)
def test_relations_of_the_makespan_bound(jobs, gpus, random):
    remaining, gang_gpus = (np.array(column) for column in zip(*jobs, strict=True))
    bound = makespan_bound_s(remaining, gpus, gang_gpus=gang_gpus)
    assert bound == max((remaining * gang_gpus).sum() / gpus, remaining.max())
    literal = makespan_bound_s(remaining, gpus, gang_gpus=gang_gpus, gang_weighted=False)
    assert literal == makespan_bound_s(remaining, gpus) <= bound
    assert makespan_bound_s(remaining, 2 * gpus, gang_gpus=2 * gang_gpus) == pytest.approx(bound)
    assert makespan_bound_s(3 * remaining, gpus, gang_gpus=gang_gpus) == pytest.approx(3 * bound)
    order = list(range(len(jobs)))
    random.shuffle(order)
    assert makespan_bound_s(remaining[order], gpus, gang_gpus=gang_gpus[order]) == pytest.approx(bound)
    # A schedule one after another meets every bound from above when all jobs fit.
    if gang_gpus.max() <= gpus:
        assert bound <= remaining.sum()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: egalitarian_ftf(-1.0, 1.0, 1), "jct_s = -1.0: at least 0"),
        (lambda: egalitarian_ftf(1.0, 0.0, 1), "exclusive_s = 0.0: must be greater than 0"),
        (lambda: egalitarian_ftf(1.0, 1.0, 0), "jobs = 0: at least 1"),
        (lambda: artifact_ftf(1.0, 1.0, 1, gpus=0), "gpus = 0: at least 1"),
        (lambda: artifact_ftf(1.0, float("inf"), 1, gpus=1), "exclusive_s = inf: must be finite"),
        (lambda: planned_ftf(-1.0, 0.0, 1.0, 1.0), "attained_s = -1.0: at least 0"),
        (lambda: planned_ftf(0.0, float("nan"), 1.0, 1.0), "waiting_s = nan: must be finite"),
        (
            lambda: planned_ftf(0.0, 0.0, 0.0, 1.0),
            r"remaining_s = 0.0: attained_s \+ remaining_s must",
        ),
        (lambda: planned_ftf(0.0, 0.0, 1.0, -1.0), "contention = -1.0: at least 0"),
        (lambda: average_contention([1.0], [0.0], gpus=1), "spans_s = 0.0: must sum to more than 0"),
        (
            lambda: average_contention([1.0, 2.0], [1.0], gpus=1),
            r"demand = .*array .*must have shape \(1,\)",
        ),
        (lambda: makespan_bound_s([1.0, -2.0], 1), r"remaining_s\[1\] = -2.0: at least 0"),
        (lambda: makespan_bound_s([1.0], 0), "gpus = 0: at least 1"),
        (lambda: makespan_bound_s([1.0], 1, gang_gpus=[0]), r"gang_gpus\[0\] = 0: at least 1"),
        (lambda: makespan_bound_s([1.0], 1, gang_gpus=[1, 1]), r"gang_gpus = .*array .*must have shape \(1,\)"),
        (lambda: makespan_bound_s([1.0], 1, gang_weighted=1), "gang_weighted = 1: must be True or False"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
