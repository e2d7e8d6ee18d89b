"""Delay scheduling step by step (Algorithm 1), the order of offers, leases, and offers every so many seconds."""

import math
from itertools import pairwise

import numpy as np
import pytest
from dally_cases import CLUSTER, ENDLESS, TierSpeeds, play, rows

from equipoise import InvalidInput
from equipoise.heuristics.dally.delay_scheduling import network_sensitivity
from equipoise.heuristics.dally.policy import (
    DallyConsolidatedPolicy,
    DallyManualPolicy,
    DallyNoWaitPolicy,
    DallyPolicy,
)
from equipoise.simulation import Cluster
from equipoise.simulation.placement import TICK_S


def manual(machine_s, rack_s, *, lease_s=ENDLESS, **options):
    return DallyManualPolicy(machine_s=machine_s, rack_s=rack_s, lease_s=lease_s, **options)


# -- Algorithm 1 -------------------------------------------------------------------------------------------------------

ARRIVAL_S = 1000.0


def offered(free, demand, policy, cluster=CLUSTER, *, compiled=False):
    """Return when and where a job of this demand starts, in seconds from its arrival; GPUs become free as listed.

    A job on each GPU ends when that GPU becomes free: `free` maps GPUs to seconds from the arrival. Others stay in use.
    """
    ends = [ARRIVAL_S + free.get(gpu, 1e8) for gpu in range(cluster.gpus)]
    jobs = [(1, 0.0, end_s) for end_s in ends] + [(demand, ARRIVAL_S, 50.0)]
    result = play(jobs, policy, cluster=cluster, compiled=compiled)
    assert rows(result)[: cluster.gpus] == [(gpu, 0.0, end_s, (gpu,)) for gpu, end_s in enumerate(ends)]
    ((_, start_s, _, gpu_ids),) = rows(result, cluster.gpus)
    return start_s - ARRIVAL_S, gpu_ids


def at(time_s, *gpus):
    return dict.fromkeys(gpus, time_s)


# Machines are GPUs 0-1, 2-3, 4-5, 6-7, racks 0-3 and 4-7. Timers are 100 s and 200 s unless the case says otherwise.
STEPS = {
    "1: fewer GPUs are free than it needs": (at(-1, 0) | at(500, 1), 2, {}, 500, (0, 1)),
    "1: no GPU is free": (at(500, 3), 1, {}, 500, (3,)),
    "1: nor do timers that have run out help": (at(-1, 0, 2) | at(500, 4), 3, {}, 500, (0, 2, 4)),
    "2: a machine has enough": (at(-1, 0, 1), 2, {}, 0, (0, 1)),
    "2: the one with the fewest free GPUs": (at(-1, 0, 1, 2), 1, {}, 0, (2,)),
    "2: of equal ones the first": (at(-1, 4, 5, 6, 7), 2, {}, 0, (4, 5)),
    "2: infinite timers are not consulted": (at(-1, 0, 1), 2, {"machine_s": math.inf}, 0, (0, 1)),
    "2: also after timers have run out": (at(-1, 0) | at(150, 6, 7), 2, {}, 150, (6, 7)),
    "4: a rack when the machine's timer has run out": (at(-1, 0, 2), 2, {}, 100, (0, 2)),
    "4: at once with a timer of 0": (at(-1, 0, 2), 2, {"machine_s": 0.0}, 0, (0, 2)),
    "4: a machine that becomes free before it": (at(-1, 0, 2) | at(99, 4, 5), 2, {}, 99, (4, 5)),
    "4: a machine that becomes free with it": (at(-1, 0, 2) | at(100, 4, 5), 2, {}, 100, (4, 5)),
    "4: a rack that becomes free after it": (at(-1, 0) | at(130, 2), 2, {}, 130, (0, 2)),
    "4: a rack that becomes free between the timers": (at(-1, 0, 4) | at(150, 6), 2, {}, 150, (4, 6)),
    "5: any GPUs when both timers have run out": (at(-1, 0, 4), 2, {}, 200, (0, 4)),
    "5: any GPUs that become free after them": (at(-1, 0) | at(250, 6), 2, {}, 250, (0, 6)),
    "5: the timers begin at once, not one by one": (at(-1, 0, 4), 2, {"machine_s": 190.0}, 200, (0, 4)),
    "5: the longer timer counts": (at(-1, 0, 4) | at(250, 6), 2, {"machine_s": 300.0}, 300, (4, 6)),
    "5: also where it is the machine's": (at(-1, 0, 4) | at(250, 5), 2, {"machine_s": 300.0}, 250, (4, 5)),
    "6: a rack's timer alone is not enough": (
        at(-1, 0) | at(250, 4) | at(320, 5),
        2,
        {"machine_s": 400.0},
        320,
        (4, 5),
    ),
    "5: at once with timers of 0": (at(-1, 0, 4), 2, {"machine_s": 0.0, "rack_s": 0.0}, 0, (0, 4)),
    "6: a rack is not accepted": (at(-1, 0, 2) | at(7e5, 3), 2, {"machine_s": math.inf}, 7e5, (2, 3)),
    "6: other racks are not accepted": (at(-1, 0, 4) | at(7e5, 6), 2, {"rack_s": math.inf}, 7e5, (4, 6)),
    # Wider than a machine: its timer is 0.
    "wide 4: a rack at once": (at(-1, 4, 5, 6), 3, {"machine_s": math.inf}, 0, (4, 5, 6)),
    "wide 4: the whole rack": (at(-1, 4, 5, 6, 7), 4, {"machine_s": math.inf}, 0, (4, 5, 6, 7)),
    "wide 4: a rack before the rack's timer": (at(-1, 0, 1, 4) | at(150, 2), 3, {}, 150, (0, 1, 2)),
    "wide 4: the rack with the fewest free GPUs": (at(-1, *range(7)), 3, {}, 0, (4, 5, 6)),
    "wide 5: any GPUs after the rack's timer": (at(-1, 0, 1, 4), 3, {}, 200, (0, 1, 4)),
    "wide 5: few machines": (at(-1, 0, 1, 4, 6, 7), 4, {"rack_s": 0.0}, 0, (0, 4, 6, 7)),
    "wide 6: the rack's timer is not 0": (at(-1, 0, 1, 4) | at(7e5, 2), 3, {"rack_s": math.inf}, 7e5, (0, 1, 2)),
    # Wider than a rack: both timers are 0.
    "wider than a rack": (at(-1, 0, 1, 2, 4, 6), 5, {"machine_s": math.inf, "rack_s": math.inf}, 0, (0, 1, 2, 4, 6)),
    "as wide as the cluster": (at(-1, *range(7)) | at(400, 7), 8, {"rack_s": math.inf}, 400, tuple(range(8))),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["reference", "compiled"])
@pytest.mark.parametrize(("free", "demand", "timers", "start_s", "gpu_ids"), STEPS.values(), ids=STEPS)
def test_each_step_of_the_algorithm(free, demand, timers, start_s, gpu_ids, compiled):
    policy = manual(**{"machine_s": 100.0, "rack_s": 200.0, **timers})
    assert offered(free, demand, policy, compiled=compiled) == (start_s, gpu_ids)


class Noting(DallyManualPolicy):
    """Keeps the waits that the auto-tuner would record."""

    def note_wait(self, tier, demand, now_s, wait_s):
        self.__dict__.setdefault("noted", []).append((tier, demand, now_s, wait_s))


@pytest.mark.parametrize(("free", "demand", "timers", "start_s", "gpu_ids"), STEPS.values(), ids=STEPS)
def test_the_wait_is_recorded_for_the_tier_unless_it_is_the_network(free, demand, timers, start_s, gpu_ids):
    policy = Noting(**{"machine_s": 100.0, "rack_s": 200.0, **timers}, lease_s=ENDLESS)
    offered(free, demand, policy)
    tier = CLUSTER.tier(gpu_ids)
    assert policy.noted == [(0, 1, 0.0, 0.0)] * 8 + [(tier, demand, ARRIVAL_S + start_s, start_s)] * (tier < 2)


def test_timers_run_out_to_the_last_bit():
    """A job starts at arrival plus timer, although by rounding the wait at that time may be less than the timer."""
    rng = np.random.default_rng(3)
    short = 0
    for arrival_s, timer_s in zip(rng.uniform(1.0, 1e7, 100), rng.uniform(1.0, 1e6, 100), strict=True):
        jobs = [(1, 0, 1.0 if gpu in (0, 2) else 1e8) for gpu in range(8)] + [(2, arrival_s, 1.0)]
        ((_, start_s, _, _),) = rows(play(jobs, manual(timer_s, math.inf)), 8)
        assert start_s == arrival_s + timer_s
        short += start_s - arrival_s < timer_s
    assert short > 10


def test_a_timer_that_runs_out_within_a_tick_of_a_call_is_not_refused():
    """GPUs become free when, by rounding, the wait is too short, but the timer runs out no more than a tick later."""
    rng = np.random.default_rng(5)
    found = 0
    for since_s, timer_s in zip(rng.uniform(1e7, 3e7, 2000), rng.uniform(1e3, 1e6, 2000), strict=True):
        now_s = since_s + timer_s - TICK_S
        if now_s - since_s + TICK_S >= timer_s or since_s + timer_s > now_s + TICK_S:
            continue
        found += 1
        jobs = [(1, 0, now_s if gpu in (0, 2) else 1e8) for gpu in range(8)] + [(2, since_s, 1.0)]
        ((_, start_s, _, _),) = rows(play(jobs, manual(timer_s, math.inf)), 8)
        assert 0.0 <= start_s - now_s <= 3 * TICK_S
        if found == 10:
            break
    assert found == 10


def test_a_cluster_without_machines_is_one_machine_and_one_without_racks_one_rack():
    one = Cluster(gpus_by_type={"gpu": 4})
    assert offered(at(-1, 0, 3), 2, manual(math.inf, math.inf), one) == (0.0, (0, 3))
    flat = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=2)
    assert offered(at(-1, 0, 3), 2, manual(100.0, math.inf), flat) == (100.0, (0, 3))
    assert offered(at(-1, 0, 2, 3), 3, manual(math.inf, math.inf), flat) == (0.0, (0, 2, 3))


def test_a_job_wider_than_the_cluster_is_refused():
    with pytest.raises(InvalidInput, match=r"gang_gpus\[1\] = 9: job 1 is wider than the cluster of 8 GPUs"):
        play([(1, 0.0, 5.0), (9, 0.0, 5.0)], DallyPolicy())


def test_a_job_that_needs_more_gpus_than_are_left_does_not_hold_back_the_jobs_behind_it():
    found = play([(6, 0, 100), (4, 1, 10), (2, 2, 10)], DallyNoWaitPolicy(lease_s=ENDLESS))
    assert rows(found) == [(0, 0, 100, tuple(range(6))), (2, 2, 12, (6, 7)), (1, 100, 110, (0, 1, 2, 3))]


# -- The wait begins anew when GPUs are got or lost --------------------------------------------------------------------


def test_a_preempted_job_waits_for_each_timer_from_its_latest_loss():
    # At 50 jobs 2 and 4 leave one GPU in each of two machines. Job 5 arrives at 350: by 400 it has not waited for long
    # enough to take these, and takes the machine that job 0 returns. Job 0 waits for 100 s from then.
    jobs = [(2, 0, 1000), (1, 0, 5000), (1, 0, 50), (1, 0, 5000), (1, 0, 50), (2, 350, 5000)]
    cluster = Cluster(gpus_by_type={"gpu": 6}, gpus_per_machine=2)
    found = play(jobs, manual(100.0, 200.0, lease_s=400.0), cluster=cluster)
    assert rows(found, 0, 5) == [(0, 0, 400, (0, 1)), (5, 400, 5400, (0, 1)), (0, 500, 1100, (3, 5))]


# -- Order of offers ---------------------------------------------------------------------------------------------------

ONE = Cluster(gpus_by_type={"gpu": 1})


def turns(jobs, shares, *, lease_s=10.0, **options):
    """Return who holds the only GPU from when; the communication of job i takes `shares[i]` of its time."""
    speeds = TierSpeeds(**{f"m{i}": [share] for i, share in enumerate(shares)})
    models = [f"m{i}" for i in range(len(jobs))]
    found = play(jobs, DallyNoWaitPolicy(lease_s=lease_s, **options), cluster=ONE, speeds=speeds, models=models)
    return [(job, start) for job, start, _, _ in rows(found)]


def test_offers_go_by_network_sensitivity_and_first_to_jobs_that_never_ran():
    # Job 1 never ran and is first at 10; after that it is the one that computes for less of its time.
    assert turns([(1, 0, 30), (1, 1, 4)], [0.25, 0.75]) == [(0, 0), (1, 10), (0, 26)]
    # Job 0 is the one that computes for less: it takes its GPU back when the lease of job 1 ends.
    assert turns([(1, 0, 4), (1, 1, 30)], [0.75, 0.25]) == [(0, 0), (1, 10), (0, 20), (1, 26)]


def test_the_sensitivity_is_that_of_the_whole_run_time_so_far():
    """The job computes for 1/4 of its time on two machines, from 1 to 11, and for 3/4 on one machine afterwards."""
    seen = {}

    class Watched(DallyNoWaitPolicy):
        def decide(self, state):
            if 4 in state.jobs:
                seen[state.time_s] = network_sensitivity(state.jobs[4])
            yield from super().decide(state)

    jobs = [(1, 0, 1), (1, 0, 5000), (1, 0, 1), (1, 0, 9), (2, 0.5, 50)]
    cluster = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=2)
    speeds = TierSpeeds(wide=[0.25, 0.75], narrow=[0.0])
    play(jobs, Watched(lease_s=10.0), cluster=cluster, speeds=speeds, models=["narrow"] * 4 + ["wide"])
    assert [seen[time_s] for time_s in (0.5, 1, 9, 11, 21, 31)] == [0, 0, 0.25, 0.25, 0.5, pytest.approx(17.5 / 30)]


@pytest.mark.parametrize("keep", [True, False])
def test_of_equal_sensitivities_the_job_without_gpus_is_first(keep):
    assert turns([(1, 0, 25), (1, 1, 25)], [0.5, 0.5], keep=keep) == [
        (0, 0), (1, 10), (0, 20), (1, 30), (0, 40), (1, 50), (0, 60), (1, 70), (0, 80), (1, 90),
    ]  # fmt: skip


def test_of_equal_sensitivities_the_job_with_fewer_gpus_is_first():
    """Both leases end at 10; the job of one GPU is offered all GPUs first and takes the first of them."""
    cluster = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=2)
    found = play([(2, 0, 15), (1, 0, 15)], DallyNoWaitPolicy(lease_s=10.0, keep=False), cluster=cluster)
    assert rows(found) == [(0, 0, 10, (0, 1)), (1, 0, 10, (2,)), (0, 10, 15, (2, 3)), (1, 10, 15, (0,))]


def test_of_equal_jobs_the_one_that_got_or_lost_gpus_longer_ago_is_first():
    # At 10 both others wait since their arrivals, at 30 job 0 since 10 and job 2 since 20.
    jobs = [(1, 0, 15), (1, 2, 15), (1, 1, 15)]
    assert turns(jobs, [0, 0, 0]) == [(0, 0), (2, 10), (1, 20), (0, 30), (2, 35), (1, 40)]


def test_a_renewed_lease_is_no_change_of_gpus():
    """At 20 job 2 has held its GPU since 0, in two leases, and job 0 since 10: job 2 takes the first GPU."""
    cluster = Cluster(gpus_by_type={"gpu": 2})
    found = play([(1, 10, 15), (1, 0, 10), (1, 0, 25)], DallyNoWaitPolicy(lease_s=10.0, keep=False), cluster=cluster)
    assert rows(found, 0) == [(0, 10, 20, (0,)), (0, 20, 25, (1,))]
    assert rows(found, 2) == [(2, 0, 20, (1,)), (2, 20, 25, (0,))]


def test_the_lower_trace_index_is_last_of_all_ties():
    jobs = [(1, 0, 5), (1, 1, 5), (1, 1, 5)]
    assert turns(jobs, [0, 0, 0]) == [(0, 0), (1, 5), (2, 10)]


def test_sensitivities_within_half_a_tick_are_equal():
    share = 2.0**-23  # lies within the rounding to 2^-20: job 0 counts as one that only computes
    jobs = [(1, 0, 25), (1, 1, 25)]
    assert turns(jobs, [share, 0.0])[:4] == [(0, 0), (1, 10), (0, 20), (1, 30)]
    assert turns(jobs, [2.0**-19, 0.0])[:4] == [(0, 0), (1, 10), (0, 20), (1, pytest.approx(35, abs=1e-3))]


# -- Leases ------------------------------------------------------------------------------------------------------------


def test_a_lease_is_renewed_without_cost_where_no_other_job_takes_the_gpus():
    found = play([(2, 0, 35)], DallyConsolidatedPolicy(lease_s=10.0), checkpoint_s_per_gpu=1.0, restart_s=5.0)
    assert rows(found) == [(0, 0, 35, (0, 1))]
    assert [call.time_s for call in found.solve_rows] == [0, 10, 20, 30, 35]


def test_a_preempted_job_saves_its_state_for_so_long_on_each_of_its_gpus():
    """Job 0 saves its state until 12.5: the GPUs compute for job 1 from then on, and job 0 goes on when it ends."""
    cluster = Cluster(gpus_by_type={"gpu": 2})
    found = play(
        [(2, 0, 20), (2, 1, 4)], DallyNoWaitPolicy(lease_s=10.0), cluster=cluster, checkpoint_s=0.5,
        checkpoint_s_per_gpu=1.0,
    )  # fmt: skip
    assert rows(found) == [(0, 0, 10, (0, 1)), (1, 10, 16.5, (0, 1)), (0, 16.5, 26.5, (0, 1))]
    assert found.run_s.tolist() == [20, 4]


@pytest.mark.parametrize("keep", [True, False])
def test_keep_lets_a_job_stay_on_gpus_that_it_would_not_accept_anew(keep):
    # The job accepts GPUs of two racks after 200 s. Without `keep` it loses them when its lease ends, and waits as long
    # again.
    others = [(1, 0, 1.0 if gpu in (0, 4) else 9000.0) for gpu in range(8)]
    policy = manual(100.0, 200.0, lease_s=1000.0, keep=keep)
    found = rows(play([*others, (2, 1, 1500)], policy), 8)
    kept, lost = [(8, 201, 1701, (0, 4))], [(8, 201, 1201, (0, 4)), (8, 1401, 1901, (0, 4))]
    assert found == (kept if keep else lost)


def test_keep_is_lost_with_one_gpu_that_a_job_before_takes():
    """Job 3 never ran and takes GPU 0; job 0 has no two GPUs of a machine left. At 20 it comes before all others."""
    cluster = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=2)
    jobs = [(2, 0, 15), (1, 0, 100), (1, 0, 100), (1, 1, 100)]
    found = play(jobs, manual(30.0, 30.0, lease_s=10.0), cluster=cluster)
    assert rows(found, 0, 3) == [(0, 0, 10, (0, 1)), (3, 10, 20, (0,)), (0, 20, 25, (0, 1)), (3, 25, 115, (0,))]
    assert rows(found, 1, 2) == [(1, 0, 100, (2,)), (2, 0, 100, (3,))]


def test_a_job_whose_lease_ends_takes_a_tighter_placement():
    # It starts on two machines at 1; the machine of GPUs 2 and 3 has become free when its lease ends at 11.
    cluster = Cluster(gpus_by_type={"gpu": 4}, gpus_per_machine=2)
    jobs = [(1, 0, 1), (1, 0, 5000), (1, 0, 1), (1, 0, 9), (2, 0.5, 15)]
    found = play(jobs, manual(0.0, 0.0, lease_s=10.0), cluster=cluster, checkpoint_s_per_gpu=1.0)
    assert rows(found, 4) == [(4, 1, 11, (0, 2)), (4, 11, 18, (2, 3))]
    assert found.preemptions.tolist()[4] == 1


# -- Offers every so many seconds --------------------------------------------------------------------------------------


def test_gpus_are_offered_at_multiples_of_offer_s_alone():
    # Job 1 arrives at 3 and starts at 10; job 2 could have job 0's GPU at 14, and gets it at 20.
    cluster = Cluster(gpus_by_type={"gpu": 2})
    jobs = [(1, 0, 14), (1, 3, 30), (1, 5, 4)]
    found = play(jobs, DallyNoWaitPolicy(offer_s=10.0), cluster=cluster)
    assert rows(found) == [(0, 0, 14, (0,)), (1, 10, 40, (1,)), (2, 20, 24, (0,))]


def test_leases_end_at_the_first_offer_after_their_length():
    # A lease of 15 s ends after 20 s: at 20, 40 and 60.
    found = play([(1, 0, 50), (1, 3, 50)], DallyNoWaitPolicy(lease_s=15.0, offer_s=10.0), cluster=ONE)
    assert [(job, start) for job, start, _, _ in rows(found)] == [(0, 0), (1, 20), (0, 40), (1, 60), (0, 80), (1, 90)]


@pytest.mark.parametrize(("offer_s", "offers"), [(0.1, 3), (0.7, 1), (1 / 3, 7)])
def test_a_lease_of_several_offers_ends_with_the_last_of_them(offer_s, offers):
    policy = DallyNoWaitPolicy(lease_s=offers * offer_s, offer_s=offer_s)
    found = play([(1, 0, 500 * offer_s), (1, 0, 500 * offer_s)], policy, cluster=ONE)
    starts = [start for _, start, _, _ in rows(found)][:100]
    assert starts == pytest.approx([turn * offers * offer_s for turn in range(len(starts))])
    assert len(starts) == 100


def test_a_timer_that_runs_out_between_offers_waits_for_the_next_one():
    free = at(-1, 0, 2)
    assert offered(free, 2, manual(100.0, 200.0, offer_s=40.0)) == (120.0, (0, 2))
    assert offered(free, 2, manual(120.0, 200.0, offer_s=40.0)) == (120.0, (0, 2))


def test_an_arrival_at_an_offer_is_offered_gpus_at_once():
    found = play([(1, 0, 5), (1, 30, 5), (1, 60.25, 5)], DallyNoWaitPolicy(offer_s=10.0))
    assert [start for _, start, _, _ in rows(found)] == [0, 30, 70]


@pytest.mark.parametrize("offer_s", [1 / 3, 0.1, 777.7, 3600.0])
def test_offers_keep_to_their_times_for_years(offer_s):
    first = 1e9
    jobs = [(8, first, 2.6 * offer_s) for _ in range(3)]
    starts = [start for _, start, _, _ in rows(play(jobs, DallyNoWaitPolicy(lease_s=ENDLESS, offer_s=offer_s)))]
    offers = [start / offer_s for start in starts]
    assert offers == pytest.approx([round(each) for each in offers], abs=1e-6 / offer_s)
    assert 0.0 <= starts[0] - first <= offer_s
    assert [round(b) - round(a) for a, b in pairwise(offers)] == [3, 3]


def test_the_policy_serves_one_run_after_another():
    policy = DallyPolicy(lease_s=10.0)
    jobs = [(2, 0, 30), (3, 5, 30), (8, 7, 30), (2, 9, 30)]
    first = rows(play(jobs, policy))
    log = policy.timer_log
    assert rows(play(jobs, policy)) == first
    assert policy.timer_log == log


def test_jobs_do_not_share_gpus_where_they_may():
    found = play([(8, 0, 10), (8, 0, 10)], DallyNoWaitPolicy(lease_s=ENDLESS), jobs_per_gpu=2)
    assert found.end_s.tolist() == [10, 20]
