"""Themis's filter: who is kept, how GPUs are filled, and what the auction leaves to whom."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics.rounds.themis_filter import ThemisFilterPolicy, fill, fullest
from equipoise.simulation import JobState
from equipoise.simulation.rounds.policy import RoundJob, RoundState


def job(name, gpus=1, *, waited_s=0.0, attained_s=0.0, rates=(1.0,), place=0, weight=1.0):
    known = JobState(
        id=name,
        gpus=gpus,
        mode="static",
        total_epochs=10,
        finished_epochs=0,
        batch_sizes=(32,),
        regime_epochs=(0.0,),
        epoch_s={32: 100.0},
        future=((32, 10.0),),
        attained_s=attained_s,
        waiting_s=waited_s,
    )
    return RoundJob(
        id=name,
        trace_index=place,
        gpus=gpus,
        model="m",
        mode="static",
        weight=weight,
        arrival_s=0.0,
        batch_size=32,
        initial_batch_size=32,
        steps_run=0,
        total_steps=100,
        steps_per_epoch=10,
        rates=np.array(rates),
        attained_s=attained_s,
        running=False,
        make_state=lambda: known,
    )


def state(*jobs, gpus=(4,)):
    return RoundState(
        round=0,
        time_s=0.0,
        round_s=120.0,
        gpu_types=tuple(f"type {k}" for k in range(len(gpus))),
        gpus=np.array(gpus),
        jobs=jobs,
        arrived=len(jobs),
        completed=0,
        rescaled=0,
        since_call_s=float("inf"),
    )


def running(policy, now):
    (placed,) = policy.decide(now).rounds
    return placed


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=8), st.integers(0, 20))
def test_the_fullest_set_is_the_best_of_all_sets(jobs, gpus):
    gang_gpus, going = [gang for gang, _ in jobs], [goes for _, goes in jobs]

    def worth(places):
        return sum(gang_gpus[place] for place in places), sum(gang_gpus[place] * going[place] for place in places)

    sets = [places for size in range(len(gang_gpus) + 1) for places in combinations(range(len(gang_gpus)), size)]
    within = [places for places in sets if sum(gang_gpus[place] for place in places) <= gpus]
    most = max(worth(places) for places in within)
    assert tuple(fullest(gang_gpus, gpus, going)) == min(places for places in within if worth(places) == most)


def test_a_job_that_holds_gpus_keeps_them_within_the_filter_and_not_beyond_it():
    fair = replace(job("fair", waited_s=0.0), running=True)
    now = state(fair, job("waited", waited_s=900.0), gpus=(1,))
    assert running(ThemisFilterPolicy(fraction=1.0), now) == {"fair": 0}
    assert running(ThemisFilterPolicy(fraction=0.5), now) == {"waited": 0}


def test_the_filter_keeps_the_least_fair_and_serves_them_first():
    jobs = [job("fair", 2), job("waited", 2, waited_s=900.0), job("waits", 2, waited_s=300.0)]
    now = state(*jobs, gpus=(2,))
    assert running(ThemisFilterPolicy(fraction=1 / 3), now) == {"waited": 0}
    # With all jobs kept the GPUs go to a fuller set, here the single job of four GPUs.
    wide = state(job("waited", 3, waited_s=900.0), job("fair", 4))
    assert running(ThemisFilterPolicy(fraction=0.5), wide) == {"waited": 0}
    assert running(ThemisFilterPolicy(fraction=1.0), wide) == {"fair": 0}


def test_equal_jobs_are_taken_in_the_order_of_the_trace():
    now = state(job("a"), job("b"), job("c"), gpus=(2,))
    assert list(running(ThemisFilterPolicy(fraction=1.0), now)) == ["a", "b"]


def test_gpus_left_by_the_filter_go_to_the_others():
    now = state(job("kept", 1, waited_s=900.0), job("b", 2), job("c", 3), gpus=(4,))
    assert running(ThemisFilterPolicy(fraction=0.3), now) == {"kept": 0, "c": 0}


def test_types_are_filled_fastest_first_and_never_where_a_job_cannot_run():
    jobs = [job("v100", rates=(1.0, 3.0)), job("k80", rates=(2.0, 1.0)), job("only", rates=(0.0, 1.0))]
    placed: dict[str | int, int] = {}
    free = np.array([1, 1])
    fill(jobs, free, placed)
    assert placed == {"v100": 1, "k80": 0}
    assert free.tolist() == [0, 0]
    placed.clear()
    fill(jobs, np.array([3, 2]), placed)
    assert placed == {"v100": 1, "k80": 0, "only": 1}


@pytest.mark.parametrize("mechanism", ["efficiency", "auction"])
@given(seed=st.integers(0, 1000))
def test_a_round_fits_and_idles_nothing_that_a_job_fits(mechanism, seed):
    rng = np.random.default_rng(seed)
    types = int(rng.integers(1, 3))
    gpus = rng.integers(4, 9, size=types)
    jobs = [
        job(
            name,
            int(rng.integers(1, 5)),
            waited_s=float(rng.integers(0, 2000)),
            rates=tuple(rng.integers(1, 4, size=types).astype(float)),
        )
        for name in range(int(rng.integers(1, 9)))
    ]
    policy = ThemisFilterPolicy(fraction=float(rng.uniform(0.1, 1.0)), mechanism=mechanism)
    now = state(*jobs, gpus=tuple(gpus.tolist()))
    for _ in range(3):
        placed = running(policy, now)
        used = np.zeros(types, dtype=int)
        for each in jobs:
            if each.id in placed:
                used[placed[each.id]] += each.gpus
        assert (used <= gpus).all()
        for each in jobs:
            assert each.id in placed or (each.gpus > gpus - used).all()


def test_the_auction_serves_everybody_in_time_and_says_what_it_rests_on():
    jobs = [job(name) for name in "abcdef"]
    policy = ThemisFilterPolicy(fraction=1.0, mechanism="auction")
    now = state(*jobs, gpus=(2,))
    served = dict.fromkeys("abcdef", 0)
    for _ in range(60):
        decision = policy.decide(now)
        for name in decision.rounds[0]:
            served[name] += 1
    # 120 GPU-rounds: each wins 1/e of its sixth, or a little more, and the rest is filled in order of the trace.
    assert sum(served.values()) == 120
    assert min(served.values()) >= 60 * 2 / 6 * 0.4 - 1
    assert decision.evidence.reason == "auction"
    assert 0 <= decision.evidence.gap <= 1e-6
    assert decision.evidence.bound >= decision.evidence.objective


def test_weight_wins_more_of_the_auction():
    policy = ThemisFilterPolicy(fraction=1.0, mechanism="auction")
    now = state(job("light"), job("heavy", weight=3.0), job("idle"), gpus=(1,))
    first = [next(iter(running(policy, now))) for _ in range(40)]
    assert first.count("heavy") > first.count("idle")


@pytest.mark.parametrize(
    "options",
    [
        {"fraction": 0.0},
        {"fraction": 1.5},
        {"fraction": float("nan")},
        {"mechanism": "lottery"},
        {"predictor": "prophet"},
        {"rel_gap": 0.0},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        ThemisFilterPolicy(**options)
