"""Policies of the rounds engine on drawn states: shares in P, queues in order, memory, options, and clear errors."""

import math
from dataclasses import replace

import numpy as np
import pytest
from examples import fewer
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.heuristics import POLICIES, make_policy, policies_of
from equipoise.simulation import Profiles, SizeClass, generate_trace, simulate_rounds
from equipoise.simulation.rounds.policy import RoundJob, RoundState, Schedule, Shares

RIVALS = (
    "ossp", "themis", "gavel", "wfq", "mst", "allox", "gandiva-fair", "isolated", "proportional", "fifo", "las",
)  # fmt: skip
SOLVED = ("ossp", "themis", "gavel", "wfq", "mst", "allox")
WITHIN_P = ("ossp", "themis", "gavel", "wfq", "mst", "isolated")


def no_state():
    raise AssertionError("rivals read no JobState")


def job(place, **given):
    fields = {
        "id": place, "trace_index": place, "gpus": 1, "model": "m", "mode": "static", "weight": 1.0,
        "arrival_s": 10.0 * place, "batch_size": 32, "initial_batch_size": 32, "steps_run": 0, "total_steps": 1000,
        "steps_per_epoch": 100, "rates": np.array([2.0]), "attained_s": 0.0, "running": False, "make_state": no_state,
    }  # fmt: skip
    return RoundJob(**fields | given)


def state(jobs, gpus=(4,), **given):
    fields = {
        "round": 10, "time_s": 1200.0, "round_s": 120.0, "gpu_types": tuple(f"type{k}" for k in range(len(gpus))),
        "gpus": np.array(gpus), "jobs": tuple(jobs), "arrived": 1, "completed": 0, "rescaled": 0,
        "since_call_s": math.inf,
    }  # fmt: skip
    return RoundState(**fields | given)


@st.composite
def states(draw, types=None):
    """Jobs that all fit somewhere, on one to three GPU types, some of which some jobs cannot use."""
    kinds = draw(st.integers(1, 3)) if types is None else types
    gpus = draw(st.lists(st.integers(1, 8), min_size=kinds, max_size=kinds))
    jobs = []
    for place in range(draw(st.integers(1, 12))):
        rates = np.array(draw(st.lists(st.integers(0, 9), min_size=kinds, max_size=kinds)), dtype=float)
        largest = int(np.argmax(gpus))
        rates[largest] = max(rates[largest], 1.0)
        total = draw(st.integers(1, 100_000))
        jobs.append(
            job(
                place,
                gpus=draw(st.integers(1, max(gpus))),
                rates=rates,
                total_steps=total,
                steps_run=draw(st.integers(0, total)),
                arrival_s=float(draw(st.integers(0, 1200))),
                attained_s=float(draw(st.integers(0, 900))),
                running=draw(st.booleans()),
                weight=float(draw(st.integers(1, 3))),
            )
        )
    return state(jobs, gpus)


def test_the_registry_lists_the_policies_of_the_issue():
    assert list(policies_of("rounds")) == [
        "shockwave", "shockwave-artifact", "ossp", "themis", "themis-filter", "gavel", "wfq", "mst", "allox",
        "gandiva-fair", "isolated", "proportional", "fifo", "las",
    ]  # fmt: skip
    assert all(entry.name == name and entry.description for name, entry in POLICIES.items())


@pytest.mark.parametrize("name", RIVALS)
def test_a_policy_knows_its_name_and_lists_its_options(name):
    assert make_policy(name).name == name
    assert make_policy(name, **POLICIES[name].options).name == name


@pytest.mark.parametrize(
    ("name", "options", "field", "message"),
    [
        ("gavell", {}, "name", "did you mean 'gavel'"),
        ("xyz", {}, "name", "the policies are shockwave, "),
        (None, {}, "name", "the policies are shockwave, "),
        ("gavel", {"interval": 5.0}, "interval", "did you mean 'interval_s'"),
        ("fifo", {"alpha": 5.0}, "alpha", "the options are backfill"),
        ("gavel", {"interval_s": -1.0}, "interval_s", "at least 0"),
        ("gavel", {"water_filling": 1}, "water_filling", "True or False"),
        ("allox", {"alpha": 1.5}, "alpha", "at most 1"),
        ("gandiva-fair", {"tickets": "gpu"}, "tickets", "'job' or 'width'"),
        ("mst", {"budget_per_s": 1.0}, "budget_per_s", "go together"),
        ("ossp", {"rel_gap": math.nan}, "rel_gap", "finite"),
    ],
)
def test_bad_names_and_options_are_refused_with_the_nearest(name, options, field, message):
    with pytest.raises(eq.InvalidInput, match=message) as error:
        make_policy(name, **options)
    assert error.value.field == field


def test_an_unknown_backend_is_refused_before_anything_runs():
    with pytest.raises(eq.BackendNotFound, match="highs"):
        make_policy("gavel", backend="high")


@pytest.mark.parametrize("name", RIVALS)
@fewer(3)
@given(now=states())
def test_decisions_fit_the_cluster_and_are_the_same_every_time(name, now):
    decided, again = make_policy(name).decide(now), make_policy(name).decide(now)
    if isinstance(decided, Schedule):
        assert list(decided.rounds) == list(again.rounds)
        fits(now, decided)
        return
    assert decided.values.tobytes() == again.values.tobytes()
    assert decided.values.shape == now.rates.shape
    assert (decided.values.sum(axis=1) <= 1 + 1e-9).all()
    assert (decided.values[(now.rates == 0) | (now.gang_gpus[:, None] > now.gpus)] == 0).all()
    if name in WITHIN_P:
        assert (now.gang_gpus @ decided.values <= now.gpus + 1e-6).all()
    if name in SOLVED and name != "allox":
        assert decided.evidence.reason == "OPTIMAL"
        assert decided.evidence.gap <= 1e-6
        assert decided.evidence.backend


def fits(now, schedule):
    by_id = {each.id: each for each in now.jobs}
    for runs in schedule.rounds:
        used = np.zeros(len(now.gpus), dtype=int)
        for who, kind in runs.items():
            assert by_id[who].rates[kind] > 0
            used[kind] += by_id[who].gpus
        assert (used <= now.gpus).all()
        idle = now.gpus - used
        for each in now.jobs:  # nobody waits beside GPUs that it could use
            assert each.id in runs or not ((each.rates > 0) & (idle >= each.gpus)).any()


@pytest.mark.parametrize("name", [*SOLVED, "isolated", "proportional", "gandiva-fair"])
def test_shares_are_decided_on_events_and_not_more_often_than_asked(name):
    policy = make_policy(name, interval_s=500.0)
    quiet = state([job(0)], arrived=0)
    assert not policy.due(quiet)
    for event in ("arrived", "completed", "rescaled"):
        happened = replace(quiet, **{event: 1})
        assert policy.due(happened)
        assert policy.due(replace(happened, since_call_s=500.0))
        assert not policy.due(replace(happened, since_call_s=499.0))


def test_isolated_shares_stand_in_for_a_solve_that_was_stopped():
    now = state([job(0), job(1, gpus=4)])
    decided = make_policy("gavel", backend="highs", time_limit=0.0).decide(now)
    assert decided.evidence.reason != "OPTIMAL"
    assert decided.values.tolist() == [[1.0], [0.5]]
    assert decided.evidence.backend == "highs, then isolated shares"
    assert decided.evidence.objective == 1.0
    assert decided.evidence.gap == abs(decided.evidence.bound - 1.0)


@given(now=states(types=1))
def test_rules_on_one_type_are_the_papers(now):
    count, total, gang_gpus = len(now.jobs), now.total_gpus, now.gang_gpus
    isolated = make_policy("isolated").decide(now).values[:, 0]
    assert isolated == pytest.approx(np.minimum(1.0, total / (count * gang_gpus)), rel=1e-12)
    tickets = make_policy("gandiva-fair").decide(now).values[:, 0]
    assert tickets == pytest.approx(np.full(count, min(1.0, total / count)), rel=1e-12)
    assert make_policy("proportional").decide(now).values.tolist() == [[1.0]] * count


def test_rules_on_two_types_by_hand():
    now = state([job(0, rates=np.array([2.0, 1.0])), job(1, gpus=3, rates=np.array([2.0, 1.0]))], gpus=(1, 3))
    # The wide job does not fit the single GPU, so its slice is half of the three.
    assert make_policy("isolated").decide(now).values.tolist() == [[0.25, 0.75], [0.0, 0.5]]
    assert make_policy("gandiva-fair").decide(now).values.tolist() == [[0.25, 0.75], [0.0, 1.0]]
    assert make_policy("proportional").decide(now).values.tolist() == [[0.25, 0.75], [0.0, 1.0]]


@given(now=states(types=1))
def test_solved_shares_reach_the_closed_forms(now):
    total, gang_gpus, tau = now.total_gpus, now.gang_gpus, now.rates[:, 0]
    weights = np.array([each.weight for each in now.jobs])
    level = min((gang_gpus / weights).min(), total / weights.sum())
    assert make_policy("gavel").decide(now).evidence.objective == pytest.approx(level, rel=1e-6)
    steps = np.maximum(1, [each.steps_left for each in now.jobs])
    duration = max((steps / tau).max(), float(gang_gpus @ (steps / tau)) / total)
    assert make_policy("ossp").decide(now).evidence.objective == pytest.approx(duration, rel=1e-6)
    left, best = float(total), 0.0
    for index in np.argsort(-tau / gang_gpus, kind="stable"):
        part = min(1.0, left / gang_gpus[index])
        best, left = best + part * tau[index], left - part * gang_gpus[index]
    assert make_policy("mst").decide(now).evidence.objective == pytest.approx(best, rel=1e-6)


def test_the_weight_of_a_job_reaches_gavel():
    now = state([job(0), job(1, weight=3.0)], gpus=(1,))
    assert make_policy("gavel").decide(now).values.ravel() == pytest.approx([0.25, 0.75])


def test_water_filling_and_agnostic_reach_gavel():
    now = state([job(0, gpus=2), job(1), job(2)], gpus=(4,))
    assert make_policy("gavel", water_filling=True).decide(now).values.ravel().tolist() == [1.0, 1.0, 1.0]
    uneven = state([job(0, rates=np.array([9.0, 1.0])), job(1, rates=np.array([1.0, 3.0]))], gpus=(1, 1))
    # On its better type job 1 makes 1.5 times what it does half the time on each; alike, both types are worth the same.
    assert make_policy("gavel").decide(uneven).evidence.objective == pytest.approx(1.5)
    assert make_policy("gavel", agnostic=True).decide(uneven).evidence.objective == pytest.approx(1.0)


def test_costs_by_type_limit_the_sum_of_throughputs():
    now = state([job(0, rates=np.array([4.0, 3.0]))], gpus=(1, 1))
    free = make_policy("mst").decide(now)
    assert free.values.tolist() == [[1.0, 0.0]]
    costs = {"type0": 2.0, "type1": 1.0}
    paid = make_policy("mst", costs_per_s=costs, budget_per_s=1.0).decide(now)
    assert paid.evidence.objective == pytest.approx(3.0)
    with pytest.raises(eq.InvalidInput, match="no cost of GPU type 'type1'"):
        make_policy("mst", costs_per_s={"type0": 2.0}, budget_per_s=1.0).decide(now)


def test_themis_counts_isolated_time_from_call_to_call():
    policy = make_policy("themis")
    first = state([job(0, total_steps=2000), job(1, total_steps=2000, gpus=4)])
    assert policy.isolated_elapsed_s(first).tolist() == [0.0, 0.0]
    policy.decide(first)
    # Job 0 alone on half of 4 GPUs runs all the time at 2 steps/s; job 1 needs all 4 and runs half the time, at 1.
    later = state([job(0, total_steps=2000, steps_run=600), job(1, total_steps=2000, gpus=4, steps_run=300), job(2)])
    assert policy.isolated_elapsed_s(later).tolist() == [300.0, 300.0, 0.0]
    policy.decide(later)
    last = state([job(0, total_steps=2000, steps_run=700), job(2)])
    assert policy.isolated_elapsed_s(last).tolist() == [350.0, 0.0]


@pytest.mark.parametrize(("count_rescales", "elapsed_s"), [(True, 550.0), (False, 100.0)])
def test_a_larger_batch_counts_as_progress_only_as_the_artifact_has_it(count_rescales, elapsed_s):
    policy = make_policy("themis", count_rescales=count_rescales)
    policy.decide(state([job(0, total_steps=2000)]))
    grown = job(0, total_steps=1000, steps_run=100, batch_size=64)  # 200 of the small steps, in 100 s
    # The artifact: 2000 - 900 steps at 2 per second. In samples: 2000 - 1800 steps.
    assert policy.isolated_elapsed_s(state([grown])).tolist() == [elapsed_s]


def test_allox_takes_the_short_jobs_first_and_keeps_them():
    short, long = job(0, total_steps=100), job(1, total_steps=5000)
    one = state([long, replace(short, trace_index=2, id=2)], gpus=(1,))
    policy = make_policy("allox", alpha=1.0)
    assert policy.decide(one).values.tolist() == [[0.0], [1.0]]
    # A shorter one comes, and waits: what is given is kept.
    shorter = job(3, total_steps=10)
    assert policy.decide(state([long, replace(short, trace_index=2, id=2), shorter], gpus=(1,))).values.tolist() == [
        [0.0], [1.0], [0.0],
    ]  # fmt: skip
    assert policy.decide(state([long, shorter], gpus=(1,))).values.tolist() == [[0.0], [1.0]]


def test_a_job_that_its_gpu_can_no_longer_run_gives_it_back():
    policy = make_policy("allox")
    fast_first = job(0, rates=np.array([2.0, 1.0]))
    assert policy.decide(state([fast_first], gpus=(1, 1))).values.tolist() == [[1.0, 0.0]]
    too_large = replace(fast_first, rates=np.array([0.0, 1.0]))
    assert policy.decide(state([too_large], gpus=(1, 1))).values.tolist() == [[0.0, 1.0]]


def test_a_small_alpha_makes_allox_keep_the_order_of_arrival():
    jobs = [job(place, total_steps=1000 - 10 * place) for place in range(5)]
    assert make_policy("allox", alpha=0.2).decide(state(jobs, gpus=(1,))).values.ravel().tolist() == [1, 0, 0, 0, 0]
    assert make_policy("allox", alpha=1.0).decide(state(jobs, gpus=(1,))).values.ravel().tolist() == [0, 0, 0, 0, 1]


def test_allox_gives_a_wide_job_the_worth_of_one_gpu():
    wide, narrow = job(0, gpus=4), job(1)
    assert make_policy("allox").decide(state([wide, narrow])).values.ravel().tolist() == [0.25, 1.0]


def test_allox_matches_the_faster_type_to_whom_it_helps_most():
    jobs = [job(0, rates=np.array([2.0, 1.9])), job(1, rates=np.array([10.0, 1.0]))]
    assert make_policy("allox").decide(state(jobs, gpus=(1, 1))).values.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_fifo_and_its_backfill():
    jobs = [job(0, gpus=3), job(1, gpus=2), job(2), job(3)]
    assert make_policy("fifo").decide(state(jobs)).rounds == [{0: 0, 2: 0}]
    assert make_policy("fifo", backfill=False).decide(state(jobs)).rounds == [{0: 0}]


def test_las_in_one_and_two_dimensions():
    jobs = [job(0, gpus=4, attained_s=100.0), job(1, attained_s=200.0)]
    assert make_policy("las").decide(state(jobs)).rounds == [{1: 0}]
    assert make_policy("las", two_dimensional=False).decide(state(jobs)).rounds == [{0: 0}]
    level = [job(0), job(1, running=True)]
    assert make_policy("las").decide(state(level, gpus=(1,))).rounds == [{1: 0}]


def test_a_stride_by_width_gives_equal_time_and_a_newcomer_no_arrears():
    policy = make_policy("gandiva-fair", tickets="width")
    attained, rounds = {0: 0.0, 1: 0.0, 2: 0.0}, 60
    gang_gpus = {0: 4, 1: 2, 2: 2}
    for number in range(rounds):
        jobs = [job(place, gpus=gang_gpus[place], attained_s=attained[place]) for place in attained]
        assert policy.due(state(jobs, arrived=0))
        for who in policy.decide(state(jobs, round=number)).rounds[0]:
            attained[who] += 120.0
    # 8 GPUs wanted, 4 there: each runs half the time.
    assert list(attained.values()) == [rounds / 2 * 120.0] * 3
    newcomer = [job(place, gpus=gang_gpus[place], attained_s=attained[place]) for place in attained] + [job(9, gpus=4)]
    ran = []
    for _ in range(6):
        jobs = [replace(each, attained_s=each.attained_s + 120.0 * sum(each.id in r for r in ran)) for each in newcomer]
        ran.append(policy.decide(state(jobs)).rounds[0])
    assert sum(9 in runs for runs in ran) == 2  # a third of the time, not all until it has caught up


def test_a_stride_by_width_is_for_one_type():
    two = state([job(0, rates=np.array([1.0, 1.0]))], gpus=(1, 1))
    with pytest.raises(eq.InvalidInput, match="one GPU type, and there are 2"):
        make_policy("gandiva-fair", tickets="width").decide(two)


def test_a_queue_takes_the_fastest_type_with_room():
    jobs = [job(place, rates=np.array([1.0, 5.0])) for place in range(3)]
    assert make_policy("fifo").decide(state(jobs, gpus=(2, 1))).rounds == [{0: 1, 1: 0, 2: 0}]


def test_shares_refuse_what_is_no_share():
    with pytest.raises(eq.InvalidInput, match="values"):
        Shares(np.array([[math.nan]]))


def short_jobs(profiles):
    small = SizeClass(name="small", probability=1.0, min_gpu_hours=0.1, max_gpu_hours=1.0)
    return generate_trace(
        np.random.default_rng(3), num_jobs=25, mean_interarrival_s=60.0, size_classes=[small], profiles=profiles,
        gpu_counts=(1, 2, 4), gpu_probabilities=(0.6, 0.3, 0.1),
    )  # fmt: skip


@pytest.mark.parametrize("gpus", [{"fast": 3, "slow": 5}, 6])
@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_runs_a_trace_to_its_end_the_same_way_twice(name, gpus):
    fast = Profiles.builtin()
    slow = replace(fast, name="slow", rates={key: rate / (2 + key[1] % 3) for key, rate in fast.rates.items()})
    profiles = fast if gpus == 6 else {"fast": fast, "slow": slow}
    trace = short_jobs(fast)
    first, again = (simulate_rounds(trace, make_policy(name), gpus=gpus, profiles=profiles) for _ in range(2))
    assert first.schedule == again.schedule
    assert first.jobs.end_s.tolist() == again.jobs.end_s.tolist()
    assert first.metrics["makespan_s"] > 0
    assert np.isfinite(first.jobs.jct_s).all()
    assert (first.jobs.rounds > 0).all()
    if name in SOLVED:
        assert "OPTIMAL" in set(first.solves.reason) <= {"OPTIMAL", "rule"}
