"""Gandiva rule by rule, on small cases computed by hand, with the numbers of rules of docs/placement-policies.md."""

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.heuristics.placement.gandiva import GandivaPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import DurationSpeeds, PlacementRules, simulate_placement


class LinearSpeeds(DurationSpeeds):
    """Speeds in proportion to the GPUs, up to a number of GPUs of each model."""

    def __init__(self, most=None):
        super().__init__()
        self.most = most or {}

    def rate(self, run):
        return min(run.gpus, self.most.get(run.model, run.gpus)) / run.gang_gpus


class Ratios:
    """Interference ratios by the name of the model."""

    def __init__(self, **ratios):
        self.ratios = ratios

    def ratio(self, mine, others):
        return self.ratios[mine.model]


def play(jobs, *, machines=1, size=4, racks=None, models=None, speeds=None, interference=None, rules=None, **options):
    """Simulate jobs (gang, arrival, duration) on machines of `size` GPUs."""
    gangs, arrivals, durations = zip(*jobs, strict=True)
    trace = Trace(
        job_id=list(range(len(jobs))), model=models or ["m"] * len(jobs), gang_gpus=gangs, arrival_s=arrivals,
        duration_s=durations, batch_size=[8] * len(jobs),
    )  # fmt: skip
    cluster = Cluster(gpus_by_type={"gpu": machines * size}, machines=machines, racks=racks)
    return simulate_placement(
        trace, GandivaPolicy(**options), cluster=cluster, speeds=speeds or DurationSpeeds(),
        interference=interference, rules=PlacementRules(**(rules or {})),
    )  # fmt: skip


def rows(result, job=None):
    """Return the stretches as (job, start, end, GPUs), by start; or those of one job without its index."""
    found = result.stretches
    listed = sorted(
        zip(
            found.start_s.tolist(),
            found.trace_index.tolist(),
            found.end_s.tolist(),
            (tuple(ids.tolist()) for ids in found.ids()),
            strict=True,
        )
    )
    every = [(index, start, end, ids) for start, index, end, ids in listed]
    return every if job is None else [row[1:] for row in every if row[0] == job]


def ids_of(result):
    """Return the first GPUs of each job."""
    return [rows(result, job)[0][2] for job in range(len(result.trace))]


# -- 1. Placement ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gangs", "machines", "wanted"),
    [
        # 1.2: each gang takes a machine of its own; 1.1: equal gangs join it, on the least loaded of several.
        ([1, 2], 2, [(0,), (4, 5)]),
        ([1, 2, 1, 2], 2, [(0,), (4, 5), (1,), (6, 7)]),
        ([3, 1, 3, 1, 1], 3, [(0, 1, 2), (4,), (8, 9, 10), (5,), (6,)]),
        ([2, 2, 2, 2], 2, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        # 1.3: no machine is left for a third gang, which takes the one with the fewest free GPUs that suffice.
        ([3, 2, 1], 2, [(0, 1, 2), (4, 5), (3,)]),
        ([1, 3, 2], 2, [(0,), (4, 5, 6), (1, 2)]),
        # 1.1 comes before 1.3: the machine of affinity 1 has more free GPUs.
        ([1, 3, 1], 2, [(0,), (4, 5, 6), (1,)]),
        # 1.4: a gang that fits no single machine takes all of the emptier one, and the rest where few are left.
        ([1, 2, 4], 2, [(0,), (4, 5), (1, 2, 3, 6)]),
        ([6], 2, [(0, 1, 2, 3, 4, 5)]),
        ([1, 9], 3, [(0,), (1, 4, 5, 6, 7, 8, 9, 10, 11)]),
        # The machine with the fewest free GPUs that hold the rest, 1 of machine 0 and not of machine 1.
        ([3, 2, 5], 3, [(0, 1, 2), (4, 5), (3, 8, 9, 10, 11)]),
    ],
)
def test_jobs_are_placed_by_affinity_and_then_where_gpus_are_free(gangs, machines, wanted):
    assert ids_of(play([(gang, 0, 10) for gang in gangs], machines=machines)) == wanted


@pytest.mark.parametrize(
    ("jobs", "start_s"),
    [
        # 1.5: the machine of affinity 2 is oversubscribed, and the job runs in the second slice.
        ([(2, 0, 100), (2, 0, 100), (4, 0, 100), (2, 5, 10)], 15),
        # The least loaded of two machines of this affinity: the third job of the second, and the fourth of the first.
        ([(2, 0, 100), (2, 0, 100), (2, 0, 100), (2, 0, 100), (2, 5, 10), (2, 5, 10)], 15),
        # 1.6: no machine has affinity 1, and the job waits for an end.
        ([(4, 0, 100), (4, 0, 90), (1, 5, 10)], 90),
        # A gang larger than a machine takes no turns.
        ([(6, 0, 100), (2, 0, 90), (6, 5, 10)], 100),
    ],
)
def test_a_job_without_free_gpus_takes_turns_with_jobs_of_its_gang_or_is_queued(jobs, start_s):
    assert play(jobs, machines=2, quantum_s=10).start_s[-1] == start_s


def test_queued_jobs_start_in_order_of_arrival_and_a_narrow_one_passes_a_wide_one():
    """Jobs 1 to 3 are queued behind a full machine; at 10 one of 3 GPUs ends, and job 1 needs all 4."""
    found = play([(3, 0, 10), (1, 0, 50), (4, 1, 5), (2, 2, 5), (2, 3, 5), (1, 4, 5)])
    assert found.start_s.tolist() == [0, 0, 50, 10, 15, 10]


# -- 4. Turns ----------------------------------------------------------------------------------------------------------


def test_jobs_take_turns_by_slices():
    """The rings are 0 1 2, from 10 on 2 0 1, and from 20 on 1 2 0, of which the first two run; job 2 ends at 25."""
    found = play([(1, 0, 25), (1, 0, 25), (1, 0, 15)], size=2, quantum_s=10)
    assert rows(found) == [(0, 0, 20, (0,)), (1, 0, 10, (1,)), (2, 10, 25, (1,)), (1, 20, 35, (0,)), (0, 25, 30, (1,))]


def test_a_spread_job_takes_no_turns():
    """Job 2 holds GPUs 1 to 3, and job 3 takes turns with job 0 alone."""
    found = play([(1, 0, 100), (1, 0, 5), (3, 0, 30), (1, 6, 10)], machines=2, size=2, quantum_s=10)
    assert rows(found, 2) == [(5, 35, (1, 2, 3))]
    assert rows(found, 0) == [(0, 16, (0,)), (26, 110, (0,))]
    assert rows(found, 3) == [(16, 26, (0,))]


def test_a_slice_begins_when_a_machine_becomes_oversubscribed():
    found = play([(1, 0, 50), (1, 7, 5)], size=1, quantum_s=10)
    assert rows(found) == [(0, 0, 17, (0,)), (1, 17, 22, (0,)), (0, 22, 55, (0,))]
    assert [call.time_s for call in found.solve_rows] == [0, 7, 17, 22, 27, 55]


def test_a_suspended_job_starts_when_one_of_its_machine_ends_in_mid_slice():
    found = play([(1, 0, 13), (1, 1, 30)], size=1, quantum_s=10)
    assert rows(found) == [(0, 0, 11, (0,)), (1, 11, 21, (0,)), (0, 21, 23, (0,)), (1, 23, 43, (0,))]


def test_suspension_costs_what_the_rules_state():
    found = play([(1, 0, 20), (1, 0, 20)], size=1, quantum_s=10, rules={"checkpoint_s": 1, "restart_s": 2})
    # Job 1 waits 1 s for the save at 10; job 0 waits for that of job 1 at 20, and restarts until 23.
    assert rows(found)[:3] == [(0, 0, 10, (0,)), (1, 10, 20, (0,)), (0, 20, 30, (0,))]
    assert found.run_s.tolist() == [20, 20]


# -- 2. Migration ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "job", "wanted"),
    [
        # 2.1: job 3 is suspended on machine 0, and starts on machine 1 when the job there ends.
        ([(1, 0, 100), (1, 0, 100), (2, 0, 12), (1, 5, 10)], 3, [(12, 22, (2,))]),
        # It is the running job that stays: job 0 has lost its turn at 15 and goes on elsewhere at 21.
        ([(1, 0, 100), (1, 0, 100), (2, 0, 21), (1, 5, 30)], 1, [(0, 15, (1,)), (21, 106, (2,))]),
    ],
)
def test_suspended_jobs_move_to_gpus_that_become_free(jobs, job, wanted):
    assert rows(play(jobs, machines=2, size=2, quantum_s=10, defragment=1), job) == wanted


@pytest.mark.parametrize(
    ("jobs", "job", "wanted"),
    [
        # 2.3: job 2 has a GPU on each machine until machine 0 is free.
        ([(3, 0, 20), (3, 0, 100), (2, 0, 50)], 2, [(0, 20, (3, 7)), (20, 50, (0, 1))]),
        # From three machines to two.
        (
            [(3, 0, 20), (3, 0, 99), (3, 0, 99), (3, 0, 50)],
            3,
            [(0, 20, (3, 7, 11)), (20, 50, (0, 1, 2))],
        ),
        # Two machines are the fewest for 5 GPUs.
        ([(3, 0, 20), (5, 0, 50)], 1, [(0, 50, (3, 4, 5, 6, 7))]),
    ],
)
def test_spread_jobs_migrate_to_fewer_machines_when_a_job_ends(jobs, job, wanted):
    found = play(jobs, machines=3 if len(jobs) == 4 else 2)
    assert rows(found, job) == wanted
    assert found.moves.tolist() == [len(wanted) - 1 if each == job else 0 for each in range(len(jobs))]


@pytest.mark.parametrize(
    ("consolidate", "wanted"),
    [("machines", [(3, 13, (2, 3, 4))]), ("tier", [(3, 8, (2, 3, 4)), (8, 13, (0, 1, 2))])],
)
def test_spread_jobs_migrate_to_fewer_racks_if_tiers_count(consolidate, wanted):
    """Of two racks of two machines, one machine each is free at 3, and all of the first rack at 8."""
    jobs = [(2, 0, 8), (2, 0, 3), (2, 0, 3), (2, 0, 50), (3, 1, 10)]
    assert rows(play(jobs, machines=4, size=2, racks=2, consolidate=consolidate), 4) == wanted


@pytest.mark.parametrize(
    ("consolidate", "wanted"),
    [("machines", [(3, 13, (0, 1, 6, 7))]), ("tier", [(3, 8, (0, 1, 6, 7)), (8, 13, (0, 1, 2, 4))])],
)
def test_spread_jobs_migrate_to_more_machines_of_one_rack_if_tiers_count(consolidate, wanted):
    """The job has a machine of each rack; at 8 one GPU each of the two other machines of the first rack is free."""
    jobs = [(2, 0, 3), (1, 0, 8), (1, 0, 99), (1, 0, 8), (1, 0, 99), (2, 0, 3), (2, 0, 99), (2, 0, 99), (4, 1, 10)]
    assert rows(play(jobs, machines=6, size=2, racks=2, consolidate=consolidate), 8) == wanted


def test_tiers_make_no_difference_on_one_rack():
    rng = np.random.default_rng(0)
    jobs = list(zip(rng.choice([1, 2, 3, 6, 9], 80), rng.uniform(0, 400, 80), rng.lognormal(3, 1, 80), strict=True))
    found = [play(jobs, machines=6, consolidate=each, quantum_s=10) for each in ("machines", "tier")]
    assert rows(found[0]) == rows(found[1])
    assert found[0].moves.sum() > 5


def test_jobs_migrate_more_often_if_tiers_count():
    rng = np.random.default_rng(1)
    jobs = list(zip(rng.choice([1, 2, 6, 9], 60), rng.uniform(0, 400, 60), rng.lognormal(3, 1, 60), strict=True))
    spread = {each: play(jobs, machines=6, racks=3, consolidate=each).moves.sum() for each in ("machines", "tier")}
    assert spread["tier"] > spread["machines"]


@pytest.mark.parametrize(
    ("others", "defragment", "wanted"),
    [
        # 2.4: at 10 one of 4 GPUs of machine 0 is in use; its job migrates to the fuller machine 1.
        ([(2, 0, 99)], 0.75, [(0, 10, (0,)), (10, 50, (6,))]),
        ([(2, 0, 99)], 0.5, [(0, 10, (0,)), (10, 50, (6,))]),
        # Three free GPUs of four are less than all of them.
        ([(2, 0, 99)], 1, [(0, 50, (0,))]),
        # Machine 1 has no room.
        ([(4, 0, 99)], 0.75, [(0, 50, (0,))]),
        # The machine with the fewest free GPUs that suffice is the third.
        ([(2, 0, 99), (3, 0, 99)], 0.75, [(0, 10, (0,)), (10, 50, (11,))]),
    ],
)
def test_jobs_leave_machines_with_many_free_gpus_when_a_job_ends(others, defragment, wanted):
    jobs = [(1, 0, 50), (1, 0, 10), *others]
    assert rows(play(jobs, machines=len(others) + 1, defragment=defragment), 0) == wanted


def test_of_two_machines_with_equally_many_free_gpus_the_first_is_emptied():
    found = play([(1, 0, 50), (1, 0, 10), (1, 0, 10), (1, 0, 10), (1, 0, 40)], machines=2)
    assert rows(found, 0) == [(0, 10, (0,)), (10, 50, (5,))]
    assert rows(found, 4) == [(0, 40, (4,))]


# -- 3. Packing --------------------------------------------------------------------------------------------------------

SHARED = {"rules": {"jobs_per_gpu": 2}, "quantum_s": 10}


@pytest.mark.parametrize(
    ("ratios", "packed"),
    [((1.5, 1.5), True), ((1, 5), True), ((2, 1.75), True), ((2, 2), False), ((3, 1.5), False), ((5, 1.25), False)],
)
def test_two_jobs_are_packed_if_together_they_make_more_progress_than_in_turns(ratios, packed):
    """Both have made progress at 20; then job 0 joins job 1, each with 90 s to go."""
    one, two = ratios
    found = play([(1, 0, 100), (1, 0, 100)], size=1, models=["a", "b"], interference=Ratios(a=one, b=two), **SHARED)
    if not packed:
        assert not found.shared_gpu_s.any()
        return
    assert rows(found, 0)[:2] == [(0, 10, (0,)), (20, found.end_s[0], (0,))]
    first = min(90 * one, 90 * two)
    assert found.shared_gpu_s.tolist() == [first, first]
    assert found.end_s.min() == 20 + first


@pytest.mark.parametrize(
    ("utilization", "joining", "joined"),
    [
        ({}, 0, 1),
        ({"b": 0.5}, 1, 0),
        ({"c": 0.5}, 2, 0),
        ({"b": 0.5, "c": 0.4}, 2, 1),
        ({"a": 0.9, "b": 0.5, "c": 0.4}, 2, 1),
        ({"a": 0.5, "b": 0.9, "c": 0.4}, 2, 0),
    ],
)
def test_the_job_with_the_least_utilisation_joins_the_next_one(utilization, joining, joined):
    """At 10 jobs 0 to 2 have made progress, and one of them makes room for job 3; the third of them ends at 100."""
    found = play(
        [(1, 0, 100)] * 4, size=3, models=["a", "b", "c", "a"], interference=Ratios(a=1.5, b=1.5, c=1.5),
        utilization=utilization, **SHARED,
    )  # fmt: skip
    assert rows(found, joining)[:2] == [(0, 10, (joining,)), (10, 100, (joined,))]
    assert rows(found, joined)[0] == (0, found.end_s[joined], (joined,))
    assert rows(found, 3) == [(10, 110, (joining,))]


def test_packing_needs_equal_gangs_and_room_for_two_jobs():
    ratios = Ratios(m=1.0)
    narrow = [(1, 0, 50), (1, 0, 50), (1, 0, 50)]
    assert not play(narrow, size=2, interference=ratios, quantum_s=10).shared_gpu_s.any()
    assert play(narrow, size=2, interference=ratios, **SHARED).shared_gpu_s.any()


def test_a_pair_is_separated_when_gpus_become_free():
    """At 10 job 0 joins job 1 on the second GPU; job 2 has the first one until 40. Then job 0 migrates there."""
    found = play([(1, 0, 100), (1, 0, 100), (1, 0, 30)], machines=2, size=1, interference=Ratios(m=1.5), **SHARED)
    assert rows(found, 0)[:3] == [(0, 10, (0,)), (10, 40, (1,)), (40, found.end_s[0], (0,))]
    assert found.shared_gpu_s.tolist() == [30, 30, 0]
    assert found.moves.tolist() == [1, 0, 0]


# -- 5. Growth ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adaptive", "most", "wanted"),
    [
        ([], {}, [(0, 1000, (0,))]),
        (["m"], {}, [(0, 100, (0,)), (100, 325, (0, 1, 2, 3))]),
        (["m"], {"m": 2}, [(0, 100, (0,)), (100, 550, (0, 1))]),
        (["other"], {}, [(0, 1000, (0,))]),
    ],
)
def test_a_job_grows_to_its_machine_after_an_idle_time(adaptive, most, wanted):
    speeds = LinearSpeeds(most)
    found = play([(1, 0, 1000)], machines=2, speeds=speeds, adaptive=adaptive, grow_after_s=100)
    assert rows(found, 0) == wanted


def test_grown_jobs_shrink_when_a_job_is_put_on_their_machine():
    """Job 0 gains more by the last GPU than job 1, which grows 100 s after the end of job 0."""
    found = play([(1, 0, 2000), (2, 150, 2000)], speeds=LinearSpeeds(), adaptive={"m"}, grow_after_s=100)
    assert rows(found, 0) == [(0, 100, (0,)), (100, 150, (0, 1, 2, 3)), (150, 250, (0,)), (250, 1050, (0, 3))]
    assert rows(found, 1) == [(150, 1150, (1, 2)), (1150, 1650, (0, 1, 2, 3))]


def test_gpus_go_to_the_jobs_that_gain_most():
    """The factors of one more GPU are 2, 3/2 and 4/3 for job 0, and 3/2 for job 1 of 2 GPUs."""
    jobs, options = [(1, 0, 500), (2, 0, 500)], {"adaptive": ["m"], "grow_after_s": 100}
    found = play(jobs, size=5, speeds=LinearSpeeds(), **options)
    # The tie of 3/2 goes to job 0.
    assert rows(found, 0)[1][2] == (0, 3, 4)


def test_no_job_grows_while_a_machine_is_oversubscribed():
    """Jobs 1 and 2 take turns of 60 s until job 1 ends at 380."""
    jobs = [(3, 0, 1000), (4, 0, 200), (4, 0, 200)]
    found = play(jobs, machines=2, speeds=LinearSpeeds(), adaptive={"m"}, grow_after_s=100)
    assert rows(found, 0)[0] == (0, 380, (0, 1, 2))
    assert rows(found, 0)[1][2] == (0, 1, 2, 3)


def test_growth_needs_speeds_on_other_numbers_of_gpus():
    with pytest.raises(InvalidInput, match=r"gpu_ids.*alone"):
        play([(1, 0, 1000)], adaptive={"m"}, grow_after_s=100)


# -- Options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"quantum_s": 0}, "quantum_s"),
        ({"quantum_s": 1e-7}, "quantum_s"),
        ({"quantum_s": float("nan")}, "quantum_s"),
        ({"quantum_s": float("inf")}, "quantum_s"),
        ({"utilization": ["m"]}, "utilization"),
        ({"utilization": {"m": 1.5}}, "utilization of m"),
        ({"defragment": -0.1}, "defragment"),
        ({"defragment": 75}, "defragment"),
        ({"adaptive": "m"}, "adaptive"),
        ({"adaptive": 3}, "adaptive"),
        ({"adaptive": [3]}, "adaptive"),
        ({"grow_after_s": -1}, "grow_after_s"),
        ({"consolidate": "rack"}, "consolidate"),
        ({"consolidate": True}, "consolidate"),
    ],
)
def test_bad_options_are_refused_by_name(options, field):
    with pytest.raises(InvalidInput) as caught:
        GandivaPolicy(**options)
    assert caught.value.field == field


def test_a_policy_can_run_again():
    policy, trace = (
        GandivaPolicy(quantum_s=10),
        Trace(job_id=[0, 1], model=["m"] * 2, gang_gpus=[1, 1], arrival_s=[0, 0], duration_s=[30, 30]),
    )
    runs = [simulate_placement(trace, policy, cluster=1, speeds=DurationSpeeds()) for _ in range(2)]
    assert rows(runs[0]) == rows(runs[1])
