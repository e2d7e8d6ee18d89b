"""Rules of the placement engine on small cases computed by hand, and what it refuses."""

import math
import re

import numpy as np
import pytest

from equipoise import EquipoiseError, InvalidInput
from equipoise.heuristics.placement.queue import FifoPolicy, SjfPolicy, SrtfPolicy
from equipoise.heuristics.registry import make_policy
from equipoise.simulation import Cluster, Profiles, RoundRules, Trace, simulate_rounds
from equipoise.simulation.placement import (
    TICK_S,
    ConstantInterference,
    DurationSpeeds,
    Move,
    PairTable,
    PlacementRules,
    ProfileSpeeds,
    Start,
    Stop,
    Wake,
    simulate_placement,
)


def trace_of(*jobs):
    """Return a trace of jobs (gang, arrival, duration)."""
    gangs, arrivals, durations = zip(*jobs, strict=True)
    names = [f"job-{index}" for index in range(len(jobs))]
    return Trace(
        job_id=names, model=["m"] * len(jobs), gang_gpus=gangs, arrival_s=arrivals, duration_s=durations,
        batch_size=[8] * len(jobs),
    )  # fmt: skip


class Script:
    """Yields the actions that are listed for a time, in seconds; is called at each of these times."""

    name, knows = "script", frozenset()

    def __init__(self, actions):
        self.actions, self.calls = actions, []

    def decide(self, state):
        if not self.calls:
            yield from (Wake(time_s) for time_s in self.actions if time_s > state.time_s)
        self.calls.append(state.time_s)
        yield from self.actions.get(state.time_s, ())


def play(jobs, actions, *, cluster=4, speeds=None, interference=None, **rules):
    return simulate_placement(
        trace_of(*jobs), Script(actions), cluster=cluster, speeds=speeds or DurationSpeeds(),
        interference=interference, rules=PlacementRules(**rules),
    )  # fmt: skip


def rows(result):
    """Return the stretches as (job, start, end, GPUs)."""
    found = result.stretches
    columns = (column.tolist() for column in (found.trace_index, found.start_s, found.end_s))
    return list(zip(*columns, map(tuple, found.ids()), strict=True))


# -- Costs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checkpoint_s", "restart_s", "again_s", "end_s"),
    [
        (0, 0, 6, 12),
        (0, 2, 6, 14),
        (1, 2, 6, 14),  # saved before it starts again
        (5, 0, 6, 15),  # saved at 9
        (5, 2, 6, 17),
        (5, 2, 9, 17),
        (5, 2, 10, 18),
        (5, 2, 4, 17),  # stopped and started in one call
    ],
)
def test_a_restart_follows_the_checkpoint(checkpoint_s, restart_s, again_s, end_s):
    """A job of 10 s is stopped at 4 s, and starts again on another GPU."""
    actions = {0: [Start(0, (0,))], 4: [Stop(0)]}
    actions[again_s] = [*actions.get(again_s, []), Start(0, (1,))]
    found = play([(1, 0, 10)], actions, checkpoint_s=checkpoint_s, restart_s=restart_s)
    assert found.end_s.tolist() == [end_s]
    assert (found.run_s[0], found.gpu_s[0]) == (10, 10)
    assert (found.preemptions[0], found.restarts[0], found.moves[0]) == (1, 1, 0)
    assert found.waited_s.tolist() == [again_s - 4]
    assert rows(found) == [(0, 0, 4, (0,)), (0, again_s, end_s, (1,))]


@pytest.mark.parametrize(("gpu", "end_s"), [(0, 10), (1, 5)])
def test_a_job_waits_on_its_gpus_until_another_saved_its_state(gpu, end_s):
    """Its first start costs no restart."""
    actions = {0: [Start(0, (0,))], 4: [Stop(0), Start(1, (gpu,))], 20: [Start(0, (0,))]}
    found = play([(1, 0, 10), (1, 0, 1)], actions, checkpoint_s=5, restart_s=3)
    assert found.end_s.tolist() == [29, end_s]
    assert found.run_s.tolist() == [10, 1]
    assert found.held_s.tolist() == [4 + 9, end_s - 4]


def test_a_job_that_shares_goes_on_while_another_saves_its_state():
    actions = {0: [Start(0, (0,)), Start(1, (0,))], 4: [Stop(0)], 30: [Start(0, (0,))]}
    found = play(
        [(1, 0, 10), (1, 0, 10)], actions, jobs_per_gpu=2, checkpoint_s=5, interference=ConstantInterference(2.0)
    )
    # Half speed until 4, then 8 s of work are left.
    assert found.end_s.tolist() == [38, 12]


def test_a_move_costs_a_checkpoint_and_a_restart_and_is_no_preemption():
    actions = {0: [Start(0, (0,))], 4: [Move(0, (1,)), Start(1, (0,))]}
    found = play([(1, 0, 10), (1, 0, 1)], actions, checkpoint_s=5, restart_s=2)
    assert found.end_s.tolist() == [4 + 5 + 2 + 6, 4 + 5 + 1]
    assert [int(getattr(found, name)[0]) for name in ("moves", "preemptions", "restarts")] == [1, 0, 0]
    assert found.waited_s[0] == 0
    assert rows(found) == [(0, 0, 4, (0,)), (0, 4, 17, (1,)), (1, 4, 10, (0,))]


def test_a_move_may_keep_some_of_the_gpus():
    found = play([(2, 0, 10)], {0: [Start(0, (0, 1))], 4: [Move(0, (2, 1))]}, checkpoint_s=1, restart_s=2)
    assert found.end_s.tolist() == [13]
    assert rows(found)[1] == (0, 4, 13, (1, 2))


# -- Leases ------------------------------------------------------------------------------------------------------------


def test_a_lease_that_is_not_renewed_ends_in_a_preemption():
    found = play([(1, 0, 10)], {0: [Start(0, (0,), lease_s=3)], 5: [Start(0, (1,))]}, checkpoint_s=1, restart_s=1)
    assert rows(found) == [(0, 0, 3, (0,)), (0, 5, 13, (1,))]
    assert (found.preemptions[0], found.restarts[0]) == (1, 1)


@pytest.mark.parametrize("gpu_ids", [(0, 1), (1, 0), [0, 1], np.array([1, 0])])
def test_a_renewed_lease_costs_nothing(gpu_ids):
    actions = {0: [Start(0, (0, 1), lease_s=3)], 3: [Start(0, gpu_ids, lease_s=4)], 7: [Start(0, gpu_ids)]}
    found = play([(2, 0, 10)], actions, checkpoint_s=1, restart_s=1)
    assert rows(found) == [(0, 0, 10, (0, 1))]
    assert found.end_s.tolist() == [10]
    assert found.preemptions[0] == found.restarts[0] == found.moves[0] == 0


def test_all_leases_of_one_time_are_renewed_in_a_loop():
    class Renewer(Script):
        def decide(self, state):
            self.calls.append([job.trace_index for job in state.expired])
            for job in state.expired:
                yield Start(job.trace_index, job.gpu_ids, lease_s=4)
            for job in state.arrived:
                yield Start(job.trace_index, (job.trace_index,), lease_s=4)

    policy = Renewer({})
    found = simulate_placement(trace_of(*[(1, 0, 10)] * 4), policy, cluster=4, speeds=DurationSpeeds())
    assert found.end_s.tolist() == [10] * 4
    assert not found.preemptions.any()
    assert policy.calls == [[], [0, 1, 2, 3], [0, 1, 2, 3], []]


def test_a_lease_begins_at_the_start_and_a_move_begins_another():
    actions = {
        0: [Start(0, (0,), lease_s=5)],
        2: [Move(0, (1,), lease_s=6)],  # no progress until 5
        8: [Start(0, (1,), lease_s=1)],
        9: [Stop(0), Start(0, (0,), lease_s=50)],  # no preemption after this call
    }
    found = play([(1, 0, 10)], actions, restart_s=3)
    assert rows(found) == [(0, 0, 2, (0,)), (0, 2, 9, (1,)), (0, 9, 16, (0,))]
    assert found.preemptions[0] == 1
    assert found.end_s.tolist() == [9 + 3 + 4]


def test_an_end_precedes_the_end_of_a_lease_and_both_precede_an_arrival():
    seen = []

    class Watcher(Script):
        def decide(self, state):
            seen.append(
                (
                    state.time_s,
                    *([job.trace_index for job in jobs] for jobs in (state.ended, state.expired, state.arrived)),
                )
            )
            yield from super().decide(state)

    actions = {0: [Start(0, (0,), lease_s=5), Start(1, (1,), lease_s=5)], 5: [Start(1, (1,)), Start(2, (0,))]}
    trace = trace_of((1, 0, 5), (1, 0, 9), (1, 5, 1))
    found = simulate_placement(trace, Watcher(actions), cluster=2, speeds=DurationSpeeds())
    assert seen[:2] == [(0, [], [], [0, 1]), (5, [0], [1], [2])]
    assert found.end_s.tolist() == [5, 9, 6]
    assert len(found.solve_rows) == 4


# -- Sharing -----------------------------------------------------------------------------------------------------------


def test_rates_change_when_a_job_comes_and_goes():
    """Ratio 2: 4 s alone, 12 s at half speed beside the second job until that ends, the rest alone."""
    actions = {0: [Start(0, (0,))], 4: [Start(1, (0,))]}
    found = play([(1, 0, 12), (1, 4, 6)], actions, jobs_per_gpu=2, interference=ConstantInterference(2.0))
    assert found.end_s.tolist() == [18, 16]
    assert found.run_s.tolist() == [18, 12]
    assert found.shared_gpu_s.tolist() == [12, 12]
    assert found.of([True, True])["shared_pct"] == pytest.approx(100 * 24 / 30)


def test_jobs_on_any_gpu_count_once_each():
    """Jobs 1 and 2 share GPUs 0 and 1, and 1 and 3, with job 0; job 2 also sits beside no other."""
    beside = []

    class Counted:
        def ratio(self, mine, others):
            beside.append((mine.trace_index, [other.trace_index for other in others]))
            return 1.0 + len(others)

    actions = {0: [Start(0, (0, 1, 2)), Start(1, (0, 1)), Start(2, (3, 2))]}
    found = play([(3, 0, 1), (2, 0, 5), (2, 0, 5)], actions, jobs_per_gpu=2, interference=Counted())
    assert (0, [1, 2]) in beside
    assert (1, [0]) in beside
    # Job 0 at a third, the others at a half until it ends at 3.
    assert found.end_s.tolist() == [3, 6.5, 6.5]
    assert found.shared_gpu_s.tolist() == [9, 6, 3]
    assert found.gpu_s.tolist() == [9, 13, 13]


def test_a_job_that_makes_no_progress_still_slows_the_others():
    actions = {0: [Start(0, (0,)), Start(1, (1,))], 2: [Move(0, (1,))]}
    found = play([(1, 0, 9), (1, 0, 6)], actions, jobs_per_gpu=2, restart_s=8, interference=ConstantInterference(2.0))
    # Job 1: 2 s alone, 8 s at half speed. Job 0 goes on at 10.
    assert found.end_s.tolist() == [17, 10]
    assert found.shared_gpu_s.tolist() == [0, 8]


def test_speeds_depend_on_machines_tier_and_batch():
    class Told:
        def __init__(self):
            self.asked = []

        def work(self, trace):
            return np.full(len(trace), 12.0)

        def rate(self, run):
            self.asked.append(run[3:])
            return float(run.gpus * run.batch_size) / (1 + run.tier)

        def exposed(self, run):
            return 0.25 * run.tier

    cluster = Cluster(gpus_by_type={"gpu": 8}, gpus_per_machine=2, racks=2)
    speeds = Told()
    actions = {
        0: [Start(0, (0, 1), batch_size=2, sub_batch=1)],
        1: [Move(0, (1, 2), batch_size=2)],
        2: [Move(0, (5, 0, 3), batch_size=1)],
    }
    found = play([(2, 0, 1)], actions, cluster=cluster, speeds=speeds)
    # Rates 4, 2 and 1; alone on its gang, at its own batch of 8, 16.
    assert speeds.asked == [(2, 1, 1, 0, 8, 8, 1), (2, 1, 1, 0, 2, 1, 1), (2, 2, 1, 1, 2, 2, 1), (3, 3, 2, 2, 1, 1, 2)]
    assert found.end_s.tolist() == [8]
    assert (found.machines[0], found.tier[0], found.moves[0]) == (3, 2, 2)
    assert found.gpu_s.tolist() == [2 + 2 + 18]
    assert found.exposed_s.tolist() == [0.25 + 6 * 0.5]
    assert found.exclusive_s.tolist() == [12 / 16]
    assert set(found.jobs) >= {"waited_s", "exposed_s", "shared_gpu_s", "machines", "tier", "preemptions", "moves"}


@pytest.mark.parametrize(("gpu_ids", "end_s"), [((0, 1), 10), ((1, 2), 15)])
def test_the_slowdown_is_of_jobs_on_more_machines_than_they_need(gpu_ids, end_s):
    cluster = Cluster(gpus_by_type={"gpu": 4}, machines=2)
    found = play([(2, 0, 10)], {0: [Start(0, gpu_ids)]}, cluster=cluster, speeds=DurationSpeeds(1.5))
    assert found.end_s.tolist() == [end_s]
    assert found.exclusive_s.tolist() == [10]


def test_waiting_counts_before_the_first_start_and_between_runs():
    actions = {7: [Start(0, (0,))], 9: [Stop(0)], 12: [Start(0, (0,))]}
    found = play([(1, 5, 3)], actions)
    assert found.waited_s.tolist() == [2 + 3]
    assert found.queue_s.tolist() == [2]
    assert found.metrics["avg_waited_s"] == 5


# -- Time --------------------------------------------------------------------------------------------------------------


def test_a_policy_is_called_at_each_event_and_wake():
    found = play([(1, 0, 10)], {0: [Start(0, (0,)), Wake(3), Wake(3), Wake(4.5), Wake(99)]})
    assert [call.time_s for call in found.solve_rows] == [0, 3, 4.5, 10]


def test_events_within_a_tick_are_one_event_at_the_time_of_the_last():
    policy = Script({})
    later = [2 + 0.6 * TICK_S, 2 + 1.2 * TICK_S]

    def decide(state):
        policy.calls.append((state.time_s, [job.trace_index for job in state.arrived]))
        yield from (Start(job.trace_index, (job.trace_index,)) for job in state.arrived)

    policy.decide = decide
    found = simulate_placement(
        trace_of((1, later[1], 5), (1, later[0], 5), (1, 2, 5)), policy, cluster=3, speeds=DurationSpeeds()
    )
    # Jobs of one event are in the order of the trace.
    assert policy.calls[:2] == [(later[0], [1, 2]), (later[1], [0])]
    assert found.start_s.tolist() == [later[1], later[0], later[0]]


def test_jobs_within_a_tick_end_at_their_own_times():
    ended = []

    class Watcher(Script):
        def decide(self, state):
            ended.append([job.trace_index for job in state.ended])
            yield from super().decide(state)

    policy = Watcher({0: [Start(index, (index,)) for index in range(3)]})
    trace = trace_of((1, 0, 5 + 0.5 * TICK_S), (1, 0, 5), (1, 0, 8))
    found = simulate_placement(trace, policy, cluster=3, speeds=DurationSpeeds())
    assert found.end_s.tolist() == [5 + 0.5 * TICK_S, 5, 8]
    assert found.run_s.tolist() == found.end_s.tolist()
    assert [row[2] for row in rows(found)] == found.end_s.tolist()
    assert ended == [[], [0, 1], [2]]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        (FifoPolicy(), [1, 0, 2, 3]),
        (FifoPolicy(backfill=True), [1, 0, 3, 2]),
        (SjfPolicy(), [1, 0, 3, 2]),
        (SrtfPolicy(), [1, 0, 3, 2]),
    ],
)
def test_equal_keys_follow_the_trace(policy, order):
    """Job 1 holds one GPU of two until 5; job 2 needs both; 0 and 3 are equal, and one fits beside job 1."""
    trace = trace_of((1, 1, 3), (1, 0, 5), (2, 1, 6), (1, 1, 3))
    found = simulate_placement(trace, policy, cluster=2, speeds=DurationSpeeds())
    starts = found.stretches.trace_index.tolist()
    assert [job for place, job in enumerate(starts) if job not in starts[:place]] == order


@pytest.mark.parametrize("policy", [SjfPolicy, SrtfPolicy])
@pytest.mark.parametrize(("ticks", "first"), [(0.4, 1), (1.2, 2)])
def test_durations_count_to_the_nearest_tick(policy, ticks, first):
    trace = trace_of((1, 0, 3), (1, 1, 5 + ticks * TICK_S), (1, 1, 5))
    found = simulate_placement(trace, policy(), cluster=1, speeds=DurationSpeeds())
    assert found.start_s[first] == 3
    assert found.start_s[3 - first] == found.end_s[first]


def test_srtf_preempts_for_a_shorter_job_and_not_for_an_equal_one():
    found = simulate_placement(
        trace_of((1, 0, 10), (1, 2, 3), (1, 2, 8)), SrtfPolicy(), cluster=1, speeds=DurationSpeeds(),
        rules=PlacementRules(restart_s=1),
    )  # fmt: skip
    assert found.end_s.tolist() == [14, 5, 22]
    assert found.preemptions.tolist() == [1, 0, 0]
    equal = simulate_placement(trace_of((1, 0, 10), (1, 2, 8)), SrtfPolicy(), cluster=1, speeds=DurationSpeeds())
    assert equal.preemptions.tolist() == [0, 0]


def test_a_policy_object_can_be_used_again():
    trace = trace_of((1, 0, 10), (1, 2, 3), (2, 2, 8))
    for policy in (FifoPolicy(), SjfPolicy(backfill=True), SrtfPolicy()):
        first = simulate_placement(trace, policy, cluster=2, speeds=DurationSpeeds())

        def stop(call, *_):
            if call == 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            simulate_placement(trace, policy, cluster=2, speeds=DurationSpeeds(), on_event=stop)
        second = simulate_placement(trace, policy, cluster=2, speeds=DurationSpeeds())
        assert second.end_s.tolist() == first.end_s.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_one_gpu_jobs_end_within_a_round_of_the_rounds_engine(seed):
    rng, count = np.random.default_rng(seed), 80
    profiles = Profiles(name="flat", rates={("m", 1, 1): 1.0}, dataset_sizes={"m": 1}, max_batch_sizes={})
    trace = Trace(
        job_id=list(range(count)), model=["m"] * count, gang_gpus=[1] * count,
        arrival_s=rng.integers(0, 400, count), duration_s=rng.integers(1, 60, count),
    )  # fmt: skip
    rules = RoundRules(round_s=1.0, restart_s=0.0, restart_free_s=0.0, overrun=None)
    rounds = simulate_rounds(trace, make_policy("fifo"), gpus=4, profiles=profiles, rules=rules)
    for speeds in (DurationSpeeds(), ProfileSpeeds(profiles)):
        placed = simulate_placement(trace, FifoPolicy(), cluster=4, speeds=speeds)
        assert np.abs(placed.end_s - rounds.end_s).max() <= 1.0
    assert placed.queue_s.max() > 100


# -- Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        (Start(9, (2,)), "trace_index", 9),
        (Start(-1, (2,)), "trace_index", -1),
        (Start("job-0", (2,)), "trace_index", "job-0"),
        (Start(3, (2,)), "trace_index", 3),  # arrives later
        (Start(0, (0,)), "trace_index", 0),  # runs, and its lease does not end
        (Stop(1), "trace_index", 1),
        (Move(1, (2,)), "trace_index", 1),
        (Start(1, ()), "gpu_ids", "()"),
        (Start(1, (4,)), "gpu_ids", 4),
        (Start(1, (-1,)), "gpu_ids", -1),
        (Start(1, (0,)), "gpu_ids", 0),  # full
        (Start(2, (3, 3)), "gpu_ids", 3),
        (Start(1, (2.5,)), "gpu_ids", (2.5,)),
        (Start(1, 2), "gpu_ids", 2),
        (Start(1, None), "gpu_ids", None),
        (Start(1, "2"), "gpu_ids", "2"),
        (Start(1, (2, 3)), "gpu_ids", "2 GPUs"),  # no gang of the speeds
        (Move(0, (1, 2)), "gpu_ids", "2 GPUs"),
        (Start(1, (2,), 0), "batch_size", 0),
        (Start(1, (2,), 2.5), "batch_size", 2.5),
        (Start(1, (2,), "8"), "batch_size", "8"),
        (Start(1, (2,), 4, 5), "sub_batch", 5),
        (Start(1, (2,), None, 9), "sub_batch", 9),
        (Start(1, (2,), None, 0), "sub_batch", 0),
        (Start(1, (2,), lease_s=0.0), "lease_s", 0.0),
        (Start(1, (2,), lease_s=-1), "lease_s", -1),
        (Start(1, (2,), lease_s=math.nan), "lease_s", math.nan),
        (Start(1, (2,), lease_s=None), "lease_s", None),
        (Wake(2.0), "wake", 2.0),
        (Wake(1), "wake", 1),
        (Wake(math.inf), "wake", math.inf),
        (Wake("5"), "wake", "5"),
        ((1, (2,)), "action", "tuple"),
        (None, "action", "NoneType"),
    ],
)
def test_an_infeasible_action_is_refused_by_policy_field_and_value(action, field, value):
    actions = {0: [Start(0, (0,))], 2: [action]}
    with pytest.raises(InvalidInput, match="policy script") as caught:
        play([(1, 0, 10), (1, 0, 10), (2, 0, 10), (1, 9, 10)], actions)
    assert caught.value.field.startswith(f"{field} of an action")
    assert caught.value.value is value or caught.value.value == value


@pytest.mark.parametrize(
    ("action", "field"),
    [
        (Start(0, (1,)), "gpu_ids"),
        (Start(0, (0, 1)), "gpu_ids"),
        (Start(0, (0,), batch_size=4), "batch_size"),
        (Start(0, (0,), sub_batch=4), "sub_batch"),
        (Start(0, (0,), lease_s=0), "lease_s"),
    ],
)
def test_a_lease_is_renewed_on_the_same_gpus_with_the_same_batch(action, field):
    with pytest.raises(InvalidInput, match="policy script") as caught:
        play([(1, 0, 10)], {0: [Start(0, (0,), lease_s=3)], 3: [action]})
    assert caught.value.field.startswith(f"{field} of an action")


@pytest.mark.parametrize(
    "again",
    [
        [Start(0, (0,)), Start(0, (0,))],
        [Stop(0), Start(0, (0,)), Start(0, (0,))],
        [Move(0, (1,)), Start(0, (1,))],
    ],
)
def test_a_lease_is_renewed_once(again):
    with pytest.raises(InvalidInput, match="runs already"):
        play([(1, 0, 10)], {0: [Start(0, (0,), lease_s=3)], 3: again})


def test_a_policy_that_yields_nothing_at_all_is_refused():
    policy = Script({})
    policy.decide = lambda state: None
    with pytest.raises(InvalidInput, match="script must yield"):
        simulate_placement(trace_of((1, 0, 1)), policy, cluster=1, speeds=DurationSpeeds())


def test_a_policy_that_leaves_jobs_waiting_is_an_error():
    with pytest.raises(EquipoiseError, match=r"script leaves jobs waiting.*'job-1'"):
        play([(1, 0, 1), (1, 0, 1)], {0: [Start(0, (0,))]})


def test_a_policy_that_wakes_for_ever_is_an_error():
    policy = Script({})
    policy.decide = lambda state: iter([Wake(state.time_s + 1)])
    with pytest.raises(EquipoiseError, match="7 calls"):
        simulate_placement(
            trace_of((1, 0, 1)), policy, cluster=1, speeds=DurationSpeeds(), rules=PlacementRules(most_steps=7)
        )


def test_the_remainder_at_a_start_states_the_remaining_time_of_all_later_times():
    policy, noted, seen = Script({0: [Start(0, (0, 1, 2))], 4: [Stop(0)], 6: [Start(0, (0, 4, 5))], 13: []}), {}, []
    policy.knows, decide = frozenset({"durations"}), policy.decide

    def watching(state):
        if state.running:
            seen.append((noted[0], state.time_s, state.running[0].remaining_s))
        yield from decide(state)
        noted.update({index: job.remainder for index, job in state.running.items()})

    policy.decide = watching
    simulate_placement(
        trace_of((3, 0, 10)), policy, cluster=Cluster(gpus_by_type={"gpu": 8}, machines=2), speeds=DurationSpeeds(2.0),
        rules=PlacementRules(restart_s=3.0, checkpoint_s=1.0),
    )  # fmt: skip
    # 4 s of progress, a restart until 9, then half the speed.
    assert [(time_s, remaining_s) for _, time_s, remaining_s in seen] == [(4, 6), (13, 4)]
    for (work, from_s, rate, exclusive_rate), time_s, remaining_s in seen:
        assert (work - rate * (time_s - from_s)) / exclusive_rate == remaining_s


@pytest.mark.parametrize(
    ("what", "read"),
    [
        ("durations", lambda state: state.running[0].total_s),
        ("durations", lambda state: state.running[0].remaining_s),
        ("durations", lambda state: state.running[0].remainder),
        ("speeds", lambda state: state.speeds),
        ("interference", lambda state: state.interference),
    ],
)
def test_a_policy_reads_only_what_it_knows(what, read):
    policy, seen = Script({}), []

    def decide(state):
        yield from (Start(job.trace_index, (0,)) for job in state.arrived)
        if state.running:
            seen.append(read(state))

    policy.decide = decide
    arguments = {"cluster": 1, "speeds": DurationSpeeds()}
    with pytest.raises(EquipoiseError, match=what):
        simulate_placement(trace_of((1, 0, 4)), policy, **arguments)
    policy.knows = frozenset({what})
    simulate_placement(trace_of((1, 0, 4)), policy, **arguments)
    assert seen


class Wrong:
    """Speeds with one wrong answer."""

    def __init__(self, **answers):
        self.answers = {"work": [4.0], "rate": 1.0, "exposed": 0.0, **answers}

    def work(self, trace):
        return self.answers["work"]

    def rate(self, run):
        return self.answers["rate"]

    def exposed(self, run):
        return self.answers["exposed"]


class Silent:
    name, knows = "silent", frozenset()


class Nameless:
    knows = frozenset()

    def decide(self, state):
        return ()


@pytest.mark.parametrize(
    ("argument", "value", "pattern"),
    [
        ("trace", [1], "^trace = 'list'"),
        ("trace", trace_of((2, 0, 4)), r"^gang_gpus\[0\] = 2"),
        ("policy", "fifo", "^policy = 'str'"),
        ("policy", Silent(), "^policy = 'Silent'"),
        ("policy", Nameless(), "^policy = 'Nameless'"),
        ("cluster", 0, "= 0"),
        ("cluster", 1.5, r"= 1\.5"),
        ("cluster", {"a": 1, "b": 1}, "^cluster = 'a, b'"),
        ("speeds", None, "^speeds = 'NoneType'"),
        ("speeds", 1.0, "^speeds = 'float'"),
        ("speeds", Wrong(work=[0.0]), r"^work of speeds\[0\] = 0"),
        ("speeds", Wrong(work=[math.nan]), r"^work of speeds\[0\] = nan"),
        ("speeds", Wrong(work=[1.0, 1.0]), "^work of speeds"),
        ("speeds", Wrong(rate=0.0), r"^speeds\[0\] = 0"),
        ("speeds", Wrong(rate=math.inf), r"^speeds\[0\] = inf"),
        ("speeds", Wrong(exposed=1.5), r"^exposed of speeds of an action of policy script = 1\.5"),
        ("interference", 1.5, r"^interference = 1\.5"),
        ("rules", 1, "^rules = 'int'"),
        ("record", 1, "^record = 1"),
    ],
)
def test_arguments_are_refused_one_at_a_time(argument, value, pattern):
    arguments = {
        "trace": trace_of((1, 0, 4)), "policy": Script({0: [Start(0, (0,))]}), "cluster": 1, "speeds": DurationSpeeds()
    }  # fmt: skip
    assert simulate_placement(**arguments).end_s.tolist() == [4]
    arguments["policy"] = Script({0: [Start(0, (0,))]})
    with pytest.raises(InvalidInput, match=pattern):
        simulate_placement(**{**arguments, argument: value})


@pytest.mark.parametrize("value", [0.5, 0.0, math.nan, math.inf, None, "2"])
def test_a_ratio_below_one_is_the_fault_of_the_interference(value):
    class Bad:
        def ratio(self, mine, others):
            return value

    with pytest.raises(InvalidInput) as caught:
        play([(1, 0, 4), (1, 0, 4)], {0: [Start(0, (0,)), Start(1, (0,))]}, jobs_per_gpu=2, interference=Bad())
    why = "Bad must return a number of at least 1 for job 'job-1' (m) beside job 'job-0' (m)"
    assert str(caught.value) == f"interference = {value!r}: {why}"


def test_a_pair_without_a_ratio_is_no_fault_of_the_action():
    table = PairTable(ratios={("m", "other"): 1.5})
    with pytest.raises(InvalidInput, match=r"^interference = 'm beside m': the table has no ratio of this pair"):
        play([(1, 0, 4), (1, 0, 4)], {0: [Start(0, (0,)), Start(1, (0,))]}, jobs_per_gpu=2, interference=table)


@pytest.mark.parametrize("kind", [Start, Move])
def test_a_job_on_fewer_gpus_than_its_least_is_refused(kind):
    class Equal(DurationSpeeds):
        def rate(self, run):
            return 1.0

    trace = Trace(
        job_id=["a"], model=["m"], gang_gpus=[4], min_gpus=[2], arrival_s=[0.0], duration_s=[10.0], batch_size=[8]
    )

    def ended(gpu_ids):
        actions = {0: [kind(0, gpu_ids)]} if kind is Start else {0: [Start(0, (0, 1, 2))], 1: [kind(0, gpu_ids)]}
        return simulate_placement(trace, Script(actions), cluster=4, speeds=Equal()).end_s.tolist()

    assert ended((0, 3)) == [10.0]
    with pytest.raises(
        InvalidInput, match="gpu_ids of an action of policy script = '1 GPUs': job 'a' has min_gpus = 2"
    ):
        ended((0,))


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: PlacementRules(jobs_per_gpu=0), "^jobs_per_gpu = 0"),
        (lambda: PlacementRules(jobs_per_gpu=1.5), r"^jobs_per_gpu = 1\.5"),
        (lambda: PlacementRules(checkpoint_s=-1), "^checkpoint_s = -1"),
        (lambda: PlacementRules(restart_s=math.inf), "^restart_s = inf"),
        (lambda: PlacementRules(most_steps=0), "^most_steps = 0"),
        (lambda: DurationSpeeds(0.9), r"^slowdown = 0\.9"),
        (lambda: ProfileSpeeds(3), "^profiles = 'int'"),
        (lambda: ConstantInterference(0.9), r"^interference = 0\.9"),
        (lambda: FifoPolicy(placement="best"), "^placement = 'best'"),
        (lambda: SjfPolicy(backfill="no"), "^backfill = 'no'"),
        (lambda: SrtfPolicy(placement=None), "^placement = None"),
        (lambda: Cluster(gpus_by_type={"gpu": 8}, machines=3), "^machines = 3"),
        (lambda: Cluster(gpus_by_type={"gpu": 8}, machines=4, racks=3), "^racks = 3"),
        (lambda: Cluster(gpus_by_type={"gpu": 8}, racks=2), "^racks = 2"),
        (lambda: Cluster(gpus_by_type={"gpu": 8}, machines=4, gpus_per_machine=4), "^gpus_per_machine = 4"),
    ],
)
def test_options_are_refused_by_name(call, pattern):
    with pytest.raises(InvalidInput, match=pattern):
        call()


def test_a_policy_that_knows_what_there_is_not_is_refused():
    policy = Script({})
    for knows in ({"future"}, "durations"):
        policy.knows = knows
        with pytest.raises(InvalidInput, match=re.escape("policy.knows")):
            simulate_placement(trace_of((1, 0, 4)), policy, cluster=1, speeds=DurationSpeeds())
