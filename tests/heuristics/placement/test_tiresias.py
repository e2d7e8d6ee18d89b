"""Tiresias rule by rule, on small cases computed by hand."""

import math

import pytest

from equipoise import EquipoiseError, InvalidInput
from equipoise.heuristics.placement.service_distribution import ServiceDistribution
from equipoise.heuristics.placement.tiresias import TiresiasGittinsPolicy, TiresiasPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import DurationSpeeds, PlacementRules, simulate_placement


def play(jobs, policy, *, gpus=1, machines=1, racks=None, models=None, **rules):
    """Simulate jobs (gang, arrival, duration) and return the result."""
    gangs, arrivals, durations = zip(*jobs, strict=True)
    trace = Trace(
        job_id=list(range(len(jobs))), model=models or ["m"] * len(jobs), gang_gpus=gangs, arrival_s=arrivals,
        duration_s=durations, batch_size=[8] * len(jobs),
    )  # fmt: skip
    cluster = Cluster(gpus_by_type={"gpu": gpus}, machines=machines, racks=racks)
    return simulate_placement(trace, policy, cluster=cluster, speeds=DurationSpeeds(), rules=PlacementRules(**rules))


def rows(result):
    """Return the stretches as (job, start, end), by start."""
    found = result.stretches
    listed = zip(found.start_s.tolist(), found.trace_index.tolist(), found.end_s.tolist(), strict=True)
    return [(job, start, end) for start, job, end in sorted(listed)]


def tiresias(*thresholds, promote=None, **options):
    return TiresiasPolicy(thresholds=thresholds or (10,), promote=promote, **options)


# -- Queues ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gang", "thresholds", "changes"),
    [
        (1, (10,), [10]),
        (2, (10,), [5]),
        (4, (10,), [2.5]),
        (2, (10, 30), [5, 15]),
        (2, (10, 10.5), [5, 5.25]),
    ],
)
def test_a_job_is_demoted_when_its_gpu_seconds_reach_a_threshold(gang, thresholds, changes):
    """The calls are the arrival, each demotion, and the end."""
    found = play([(gang, 0, 20)], tiresias(*thresholds), gpus=4)
    assert [call.time_s for call in found.solve_rows] == [0, *changes, 20]
    assert rows(found) == [(0, 0, 20)]


def test_a_demoted_job_yields_to_a_job_in_a_higher_queue_at_that_instant():
    found = play([(1, 0, 20), (1, 4, 3)], tiresias(10))
    assert rows(found) == [(0, 0, 10), (1, 10, 13), (0, 13, 23)]
    assert found.preemptions.tolist() == [1, 0]


def test_a_job_that_arrives_preempts_one_of_a_lower_queue_and_none_of_its_own():
    found = play([(1, 0, 20), (1, 12, 3), (1, 13, 1)], tiresias(10))
    assert rows(found) == [(0, 0, 12), (1, 12, 15), (2, 15, 16), (0, 16, 24)]


def test_a_restart_counts_as_no_service_and_delays_the_demotion():
    found = play([(1, 0, 20), (1, 1, 14)], tiresias(6, 10), restart_s=3)
    # From 12 on job 0 is first in the second queue: 3 s of restart, and 4 s until it has 10 GPU-s; then job 1 alike.
    assert rows(found) == [(0, 0, 6), (1, 6, 12), (0, 12, 19), (1, 19, 26), (0, 26, 39), (1, 39, 46)]
    assert [call.time_s for call in found.solve_rows] == [0, 1, 6, 12, 19, 26, 39, 46]


# -- Order inside a queue ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "starts"),
    [
        # All in the first queue: by arrival, then by index.
        ([(1, 0, 3), (1, 2, 3), (1, 1, 3)], [0, 6, 3]),
        ([(1, 1, 3), (1, 0, 3), (1, 1, 3)], [3, 0, 6]),
    ],
)
def test_jobs_that_never_ran_are_taken_by_arrival(jobs, starts):
    assert play(jobs, tiresias(100)).start_s.tolist() == starts


def test_jobs_of_a_queue_are_taken_by_first_start_and_not_by_demotion():
    """Job 1 starts later and is demoted earlier, at 6; job 0 at 10. Job 2 leaves GPUs for one of them."""
    found = play([(1, 0, 30), (2, 1, 20), (1, 12, 5)], tiresias(10), gpus=3)
    assert rows(found) == [(0, 0, 30), (1, 1, 12), (2, 12, 17), (1, 17, 26)]


def test_a_started_job_precedes_one_that_never_ran():
    """The wide job 1 arrives before job 2 starts; it waits until job 2 too is demoted."""
    found = play([(1, 0, 30), (2, 1, 3), (1, 2, 30)], tiresias(10), gpus=2)
    assert rows(found) == [(0, 0, 12), (2, 2, 12), (1, 12, 15), (0, 15, 33), (2, 15, 35)]


# -- Promotion ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promote", "back_s"), [(None, 40), (8.0, 40), (3.5, 40), (2.0, 30), (1.0, 20), (0.75, 17.5), (0.01, 10.1)]
)
def test_a_job_is_promoted_when_it_has_waited_long_enough(promote, back_s):
    """Job 0 runs 10 s, and waits while jobs of 5 s fill the first queue until 40; promoted, it started before them."""
    found = play([(1, 0, 14), *[(1, 5 + 5 * number, 5) for number in range(6)]], tiresias(10, promote=promote))
    assert [start for job, start, _ in rows(found) if job == 0] == [0, back_s]


def test_the_service_of_a_promoted_job_counts_anew():
    found = play([(1, 0, 30), (1, 1, 30)], tiresias(10, promote=1.5))
    # Both are demoted once. Job 0 goes on at 20; job 1 is promoted at 35, demoted at 45, and job 0 has waited 10 s.
    assert rows(found) == [(0, 0, 10), (1, 10, 20), (0, 20, 35), (1, 35, 45), (0, 45, 50), (1, 50, 60)]


def test_waiting_is_summed_over_all_waits_since_the_promotion():
    """Job 0 waits 4 s before it has run 14 s, half of which is 7 s: it is promoted 3 s after it is preempted again."""
    found = play([(1, 0, 20), (1, 1, 4), (1, 18, 4), (1, 19, 4)], tiresias(10, promote=0.5))
    assert rows(found) == [(0, 0, 10), (1, 10, 14), (0, 14, 18), (2, 18, 21), (0, 21, 27), (2, 27, 28), (3, 28, 32)]


def test_a_job_that_waited_long_enough_before_is_promoted_when_it_is_preempted():
    """Job 1 has run 10 s and waited 10 s, in the first queue, when it is demoted at 30 and preempted for job 0."""
    found = play([(1, 0, 30), (1, 1, 30), (1, 31, 1)], tiresias(10, promote=0.5))
    assert rows(found) == [
        (0, 0, 10), (1, 10, 15), (0, 15, 25), (1, 25, 30), (0, 30, 40), (1, 40, 50), (2, 50, 51), (1, 51, 61),
    ]  # fmt: skip
    # No call between 31 and 40 promotes job 1.
    assert [call.time_s for call in found.solve_rows if 30 <= call.time_s <= 40] == [30, 31, 40]


# -- Fit, ties and placement -------------------------------------------------------------------------------------------


def test_a_narrow_job_runs_while_a_wide_one_before_it_does_not_fit():
    found = play([(2, 0, 5), (3, 1, 2), (1, 2, 1)], tiresias(100), gpus=3)
    assert rows(found) == [(0, 0, 5), (2, 2, 3), (1, 5, 7)]


def test_a_running_job_that_no_longer_fits_is_preempted_and_a_later_narrow_one_goes_on():
    """Job 2 of three GPUs comes: the first in the second queue does not fit beside it, the second does."""
    found = play([(2, 0, 20), (1, 1, 20), (3, 12, 2)], tiresias(10), gpus=4)
    # At 12 jobs 0 (24 GPU-s) and 1 (11 GPU-s) are in the second queue; 0 does not fit into one GPU, 1 does.
    assert rows(found) == [(0, 0, 12), (1, 1, 21), (2, 12, 14), (0, 14, 22)]


def test_ties_go_to_the_lower_index_and_running_jobs_keep_their_gpus():
    """Jobs 0 and 1 start at once; when job 2 takes one GPU of the two, the second of them is preempted."""
    found = play([(1, 0, 20), (1, 0, 20), (1, 12, 2)], tiresias(10), gpus=2)
    assert rows(found) == [(0, 0, 20), (1, 0, 12), (2, 12, 14), (1, 14, 22)]
    assert [tuple(gpu_ids) for gpu_ids in found.stretches.ids()] == [(0,), (1,), (1,), (1,)]
    assert found.preemptions.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("skew", "threshold", "start_s"),
    [
        ({"wide": 0.6}, 0.5, 8),  # waits for a machine
        ({"wide": 0.5}, 0.5, 3),  # not above the threshold
        ({"wide": 0.6}, 0.7, 3),
        ({"other": 0.9}, 0.5, 3),
        ({}, 0.5, 3),
        (None, 0.5, 3),
    ],
)
def test_models_of_high_skew_wait_for_few_machines(skew, threshold, start_s):
    """Of two machines of two GPUs, one GPU each is free at 3."""
    jobs = [(1, 0, 8), (1, 0, 3), (1, 0, 3), (1, 0, 9), (2, 1, 4)]
    policy = tiresias(1000, skew=skew, skew_threshold=threshold)
    found = play(jobs, policy, gpus=4, machines=2, models=["m"] * 4 + ["wide"])
    assert found.start_s[4] == start_s
    assert found.machines[4] == (1 if start_s == 8 else 2)


def test_a_skewed_model_uses_the_table_of_models_by_default():
    policy = tiresias(1000, skew_threshold=0.4)
    jobs = [(1, 0, 8), (1, 0, 3), (1, 0, 3), (1, 0, 9), (2, 1, 4)]
    assert play(jobs, policy, gpus=4, machines=2, models=["bert"] * 4 + ["ncf"]).start_s[4] == 8
    assert play(jobs, policy, gpus=4, machines=2, models=["ncf"] * 4 + ["bert"]).start_s[4] == 3


def test_the_gpus_of_a_skewed_job_that_waits_are_left_free_for_it():
    jobs = [(1, 0, 8), (1, 0, 3), (1, 0, 3), (1, 0, 9), (2, 1, 4), (1, 2, 1)]
    policy = tiresias(1000, skew={"wide": 0.9})
    found = play(jobs, policy, gpus=4, machines=2, models=["m"] * 4 + ["wide", "m"])
    assert found.start_s[4:].tolist() == [8, 8]
    assert found.preemptions.sum() == 0


def test_a_skewed_gang_larger_than_a_machine_needs_the_fewest_machines():
    """Three GPUs on machines of two: two machines, never three."""
    jobs = [(1, 0, 6), (1, 0, 2), (1, 0, 7), (1, 0, 2), (1, 0, 9), (1, 0, 2), (3, 1, 1)]
    found = play(jobs, tiresias(1000, skew={"wide": 0.9}), gpus=6, machines=3, models=["m"] * 6 + ["wide"])
    assert (found.start_s[6], found.machines[6]) == (6, 2)


@pytest.mark.parametrize(("consolidate", "start_s"), [("machines", 6), ("tier", 2)])
def test_a_skewed_gang_may_take_any_machines_of_its_rack_if_tiers_count(consolidate, start_s):
    """At 2 one GPU of each of three machines of a rack is free."""
    jobs = [(1, 0, 6), (1, 0, 2), (1, 0, 7), (1, 0, 2), (1, 0, 9), (1, 0, 2), (3, 1, 1)]
    policy = tiresias(1000, skew={"wide": 0.9}, consolidate=consolidate)
    found = play(jobs, policy, gpus=6, machines=3, models=["m"] * 6 + ["wide"])
    assert found.start_s[6] == start_s


# Two racks of two machines of two GPUs: at 3 a machine of each rack is free, and at 8 all of the first rack.
RACKS = {"gpus": 8, "machines": 4, "racks": 2}
FULL = [(2, 0, 8), (2, 0, 3), (2, 0, 3), (2, 0, 9)]


@pytest.mark.parametrize(
    ("consolidate", "model", "start_s", "tier"),
    [("machines", "wide", 3, 2), ("tier", "wide", 8, 1), ("tier", "m", 3, 2)],
)
def test_a_skewed_gang_waits_for_its_lowest_tier_if_tiers_count(consolidate, model, start_s, tier):
    policy = tiresias(1000, skew={"wide": 0.9}, consolidate=consolidate)
    found = play([*FULL, (3, 1, 10)], policy, models=["m"] * 4 + [model], **RACKS)
    assert (found.start_s[4], found.tier[4]) == (start_s, tier)


def test_a_skewed_gang_wider_than_a_rack_takes_any_gpus():
    """At 3 five GPUs are free on three machines, as many as the gang needs on the empty cluster."""
    jobs = [(2, 0, 9), (1, 0, 9), (1, 0, 3), (2, 0, 3), (2, 0, 3), (5, 1, 1)]
    policy = tiresias(1000, skew={"wide": 0.9}, consolidate="tier")
    assert play(jobs, policy, models=["m"] * 5 + ["wide"], **RACKS).start_s[5] == 3


@pytest.mark.parametrize(
    ("migrate", "wanted"),
    [
        (False, [(3, 14, (2, 3, 4)), (15, 26, (0, 1, 2))]),
        (True, [(3, 8, (2, 3, 4)), (8, 15, (0, 1, 2)), (16, 28, (0, 1, 2))]),
    ],
)
def test_running_jobs_move_to_a_lower_tier_that_their_own_gpus_complete(migrate, wanted):
    """At 8 the first rack has two free GPUs beside the two of the job.

    The move costs 2 s of restart, so that the job is demoted at 15 and not at 13, and yields then to one of all GPUs.
    """
    found = play([*FULL, (3, 1, 20), (8, 14, 1)], tiresias(30, migrate=migrate), restart_s=2, **RACKS)
    assert [row[1:] for row in timed_ids(found) if row[0] == 4] == wanted


def timed_ids(result):
    """Return the stretches as (job, start, end, GPUs), by start."""
    found = result.stretches
    columns = found.start_s.tolist(), found.trace_index.tolist(), found.end_s.tolist(), found.ids()
    return [(job, start, end, tuple(ids.tolist())) for start, job, end, ids in sorted(zip(*columns, strict=True))]


def test_a_policy_object_can_be_used_again():
    for policy in (tiresias(10), TiresiasGittinsPolicy(thresholds=(10,))):
        jobs = [(1, 0, 20), (1, 4, 3), (1, 5, 30)]
        assert rows(play(jobs, policy)) == rows(play(jobs, policy))


# -- Gittins index -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("service", "next_job"), [([8, 90], 0), ([5, 90], 1)])
def test_in_a_queue_the_largest_index_comes_first(service, next_job):
    """Job 0 has 7 GPU-s and job 1 has 3 when job 2 ends at 11, both in the second queue with a quantum of 20."""
    policy = TiresiasGittinsPolicy(thresholds=(3, 20), promote=None, service=ServiceDistribution(service))
    found = play([(1, 0, 50), (1, 1, 50), (1, 10, 1)], policy)
    assert rows(found)[:4] == [(0, 0, 3), (1, 3, 6), (0, 6, 10), (2, 10, 11)]
    assert rows(found)[4][:2] == (next_job, 11)


def test_the_last_queue_has_an_infinite_quantum():
    """Of two services, 12 and 50, a job of 15 GPU-s has at most 35 left; one of 10 has 21 on average."""
    policy = TiresiasGittinsPolicy(thresholds=(10,), promote=None, service=ServiceDistribution([12, 50]))
    found = play([(1, 0, 50), (1, 1, 50), (1, 25, 1)], policy)
    assert rows(found)[:4] == [(0, 0, 10), (1, 10, 20), (0, 20, 25), (2, 25, 26)]
    assert rows(found)[4][:2] == (1, 26)


def test_the_distribution_is_that_of_the_trace_by_default():
    jobs = [(2, 0, 2), (1, 0, 30), (1, 1, 3), (2, 3, 4), (1, 4, 9)]
    service = ServiceDistribution([gang * duration for gang, _, duration in jobs])
    found = play(jobs, TiresiasGittinsPolicy(thresholds=(5, 10)), gpus=2)
    assert rows(found) == rows(play(jobs, TiresiasGittinsPolicy(thresholds=(5, 10), service=service), gpus=2))


def test_only_the_distribution_is_known():
    assert TiresiasPolicy().knows == frozenset()
    assert TiresiasGittinsPolicy().knows == {"service"}
    assert TiresiasGittinsPolicy(service=ServiceDistribution([1])).knows == frozenset()

    class Curious(TiresiasPolicy):
        def decide(self, state):
            assert state.service_gpu_s is not None
            yield from super().decide(state)

    with pytest.raises(EquipoiseError, match="service"):
        play([(1, 0, 4)], Curious())


# -- Options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "pattern"),
    [
        ("thresholds", (), r"^thresholds = '\[\]'"),
        ("thresholds", (0,), r"^thresholds\[0\] = 0"),
        ("thresholds", (5, 5), r"^thresholds\[1\] = 5"),
        ("thresholds", (5, math.inf), r"^thresholds\[1\] = inf"),
        ("thresholds", 5, "^thresholds"),
        ("promote", 0, "^promote = 0"),
        ("promote", math.inf, "^promote = inf"),
        ("promote", "8", "^promote = '8'"),
        ("skew", [0.5], "^skew = 'list'"),
        ("skew", {"m": 1.5}, r"^skew of m = 1\.5"),
        ("skew", {"m": None}, "^skew of m = None"),
        ("skew_threshold", -0.1, r"^skew_threshold = -0\.1"),
        ("skew_threshold", 1.1, r"^skew_threshold = 1\.1"),
        ("consolidate", "racks", "^consolidate = 'racks'"),
        ("migrate", 1, "^migrate = 1"),
        ("service", [5.0, 0.0], r"^service\[1\] = 0\.0"),
        ("service", [], r"^service = '\[\]'"),
        ("service", 3.5, "^service = "),
        ("service", {5.0: 1}, "^service"),
    ],
)
def test_options_are_refused_one_at_a_time(option, value, pattern):
    for kind in (TiresiasPolicy, TiresiasGittinsPolicy):
        kind()
        if option != "service" or kind is TiresiasGittinsPolicy:
            with pytest.raises(InvalidInput, match=pattern):
                kind(**{option: value})
