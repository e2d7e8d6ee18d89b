"""The rounds engine by hand: priorities, restarts, arrivals, planning ahead, GPU types, and what it refuses."""

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

from equipoise import EquipoiseError, InvalidInput
from equipoise.simulation import (
    CriticalEpochs,
    Evidence,
    Profiles,
    ReplayedSchedule,
    RoundRules,
    Schedule,
    Shares,
    SimulationInterrupted,
    Trace,
    due_on_events,
    generate_trace,
    simulate_rounds,
    write_shockwave,
)
from equipoise.simulation.rounds.job import RoundProgress


def profiles(rate=1.0, gang_gpus=(1, 2, 4), sizes=(10, 20, 40), **other) -> Profiles:
    """One model, 100 samples an epoch, the same rate in steps at every size."""
    rates = {("m", size, gang): rate for size in sizes for gang in gang_gpus}
    return Profiles(name="flat", rates=rates, dataset_sizes={"m": 100}, max_batch_sizes={"m": 40}, **other)


def trace(steps, arrivals=None, gang_gpus=None, modes=None, ids=None) -> Trace:
    count = len(steps)
    return Trace(
        job_id=ids or list("abcdefgh"[:count]),
        model=["m"] * count,
        batch_size=np.full(count, 10),
        gang_gpus=np.array(gang_gpus or [1] * count),
        mode=modes or ["static"] * count,
        total_steps=np.array(steps),
        arrival_s=np.array(arrivals or [0.0] * count),
    )


class Fixed:
    """A policy from two functions; it keeps the states that it was given."""

    name = "fixed"

    def __init__(self, decide, due=lambda state: False):
        self._decide, self._due = decide, due
        self.states = []

    def due(self, state):
        return self._due(state)

    def decide(self, state):
        # The jobs' states are made now: a job tells of the moment when it is asked.
        self.states.append((state, [job.state for job in state.jobs]))
        return self._decide(state)


def even(state):
    return Shares(np.full(state.rates.shape, 0.5))


def on_any_event(state):
    return bool(state.arrived or state.completed or state.rescaled)


def everybody(state):
    return Schedule([{job.id: 0 for job in state.jobs}])


def test_two_jobs_take_turns_and_pay_for_restarts():
    run = simulate_rounds(trace([300, 300]), Fixed(even), gpus=1, profiles=profiles())
    # Received after each round, from 60 on: a 180; b 160; b 280; a 280; then a tie, which a wins by its id.
    assert run.schedule == (("a",), ("b",), ("b",), ("a",), ("a",), ("b",))
    assert run.runs["steps"].tolist() == [120, 100, 120, 100, 80, 80]
    assert run.runs["restart_s"].tolist() == [0, 20, 0, 20, 0, 0]
    assert run.end_s.tolist() == [560, 640]
    assert run.run_s.tolist() == [300, 300]
    assert run.restarts.tolist() == [1, 1]
    assert run.rounds["end_s"].tolist() == [120, 240, 360, 480, 560, 640]
    figures = run.metrics
    assert (figures["makespan_s"], figures["avg_jct_s"], figures["utilisation"]) == (640, 600, 600 / 640)
    # Two jobs, one GPU: contention 2. a waited two of five rounds, b three of six.
    assert run.ftf.tolist() == [560 / 600, 640 / 600]
    assert figures["unfair_pct"] == 50.0
    assert figures["envy_mean"] == pytest.approx(3 / 5 - 3 / 6)
    # b goes on in round 2 and a in round 4; a's runs but the first are two, b's too.
    assert (figures["lease_extensions"], figures["lease_opportunities"]) == (2, 4)


def test_rules_of_restart_and_round_length_are_taken():
    rules = RoundRules(round_s=60.0, restart_s=7.0, restart_free_s=50.0)
    run = simulate_rounds(trace([90, 30]), Fixed(even), gpus=1, profiles=profiles(), rules=rules)
    assert run.schedule == (("a",), ("b",), ("a",))
    # b's run of 30 s is too short to pay.
    assert run.runs["restart_s"].tolist() == [0, 0, 0]
    rules = RoundRules(round_s=60.0, restart_s=7.0, restart_free_s=20.0)
    run = simulate_rounds(trace([90, 30]), Fixed(even), gpus=1, profiles=profiles(), rules=rules)
    assert run.runs["restart_s"].tolist() == [0, 7, 0, 7, 0]
    assert run.runs["steps"].tolist() == [60, 23, 7, 23, 7]


def test_a_share_of_nothing_gets_only_idle_gpus():
    greedy = Fixed(lambda state: Shares(np.array([[1.0], [0.0]])))
    run = simulate_rounds(trace([120, 120]), greedy, gpus=1, profiles=profiles())
    assert run.schedule[0] == ("a",)
    greedy = Fixed(lambda state: Shares(np.array([[1.0], [0.0]])))
    run = simulate_rounds(trace([120, 120]), greedy, gpus=2, profiles=profiles())
    assert run.schedule == (("a", "b"),)


def test_wide_job_that_does_not_fit_is_passed_over():
    shares = Fixed(lambda state: Shares(np.array([[0.5], [0.9], [0.4]])))
    run = simulate_rounds(trace([120] * 3, gang_gpus=[2, 2, 1]), shares, gpus=3, profiles=profiles())
    assert run.schedule[0] == ("b", "c")


@pytest.mark.parametrize("backfill", [False, True])
def test_arrivals_wait_for_the_next_call_unless_told_otherwise(backfill):
    policy = Fixed(
        lambda state: Shares(np.ones((len(state.jobs), 1))), lambda state: state.arrived > 0 and state.time_s > 300
    )
    run = simulate_rounds(
        trace([600, 120], arrivals=[0.0, 100.0]),
        policy,
        gpus=2,
        profiles=profiles(),
        rules=RoundRules(backfill_new=backfill),
    )
    assert run.start_s.tolist() == [0.0, 120.0 if backfill else 360.0]


def test_a_call_at_time_0_does_not_hold_up_the_next():
    policy = Fixed(even, lambda state: due_on_events(state, 1000.0))
    simulate_rounds(trace([2000] * 3, arrivals=[0.0, 10.0, 130.0]), policy, gpus=1, profiles=profiles())
    times = [state.time_s for state, _ in policy.states]
    # At 120 again, then not before 1,000 s have passed.
    assert times[:3] == [0.0, 120.0, 1200.0]


def test_an_empty_cluster_waits_for_the_next_arrival():
    run = simulate_rounds(trace([50, 50], arrivals=[30.0, 777.5]), Fixed(everybody), gpus=1, profiles=profiles())
    assert run.rounds["start_s"].tolist() == [30.0, 777.5]
    assert run.end_s.tolist() == [80.0, 827.5]
    assert run.metrics["makespan_s"] == 797.5


def test_a_schedule_is_followed_and_renewed_when_used_up():
    def decide(state):
        ids = [job.id for job in state.jobs]
        return Schedule([{ids[0]: 0}, {ids[-1]: 0}, {}], Evidence(reason="OPTIMAL", gap=1e-5, backend="me"))

    run = simulate_rounds(trace([300, 200]), Fixed(decide), gpus=1, profiles=profiles())
    assert run.schedule == (("a",), ("b",), (), ("a",), ("b",), (), ("a",), (), (), ("a",))[: len(run.schedule)]
    # An idle round lasts as long as a round can.
    assert run.rounds["end_s"].tolist()[:3] == [120, 240, 360]
    assert run.solves["round"].tolist()[:2] == [0, 3]
    assert run.solves["reason"].unique().tolist() == ["OPTIMAL"]
    assert run.solves["backend"].unique().tolist() == ["me"]
    assert (run.solves["wall_s"] >= 0).all()
    assert run.metrics["calls"] == len(run.solves)


def test_planning_ahead_sees_the_middle_of_the_round_before():
    policy = Fixed(lambda state: Shares(np.ones((len(state.jobs), 1))), on_any_event)
    run = simulate_rounds(
        trace([400, 100, 100], arrivals=[0.0, 50.0, 70.0]),
        policy,
        gpus=3,
        profiles=profiles(),
        rules=RoundRules(plan_ahead=True),
    )
    (first, _), (second, told), *_ = policy.states
    assert (first.round, first.time_s, len(first.jobs)) == (0, 0.0, 1)
    assert (second.round, second.time_s, second.since_call_s) == (1, 60.0, 60.0)
    assert [job.id for job in second.jobs] == ["a", "b"]
    assert (second.jobs[0].steps_run, second.jobs[0].attained_s, second.jobs[0].running) == (60, 60.0, True)
    assert (told[0].finished_epochs, told[1].waiting_s) == (6.0, 10.0)
    # b was known in the middle of round 0, c only in the middle of round 1.
    assert run.start_s.tolist() == [0.0, 120.0, 240.0]
    assert run.solves["round"].tolist()[:3] == [0, 1, 2]


def test_planning_ahead_counts_what_a_restart_takes():
    policy = Fixed(lambda state: Schedule([{"ab"[state.round % 2]: 0}]))
    simulate_rounds(trace([400, 400]), policy, gpus=1, profiles=profiles(), rules=RoundRules(plan_ahead=True))
    steps = [{job.id: job.steps_run for job in state.jobs} for state, _ in policy.states]
    # b starts in round 1 and has lost 20 of its first 60 s.
    assert steps[:4] == [{"a": 0, "b": 0}, {"a": 60, "b": 0}, {"a": 120, "b": 40}, {"a": 160, "b": 100}]


def test_a_result_survives_pickling():
    run = simulate_rounds(trace([300, 300]), Fixed(even), gpus=1, profiles=profiles())
    again = pickle.loads(pickle.dumps(run))
    assert again.metrics == run.metrics
    assert again.schedule == run.schedule
    assert again.runs.equals(run.runs)


def test_each_gpu_type_has_its_own_priorities():
    values = np.array([[0.6, 0.4], [0.4, 0.6]])
    both = {"v": profiles(), "k": profiles(rate=0.5)}
    run = simulate_rounds(trace([240, 240]), Fixed(lambda state: Shares(values)), gpus={"v": 1, "k": 1}, profiles=both)
    types = run.runs.set_index(["round", "job_id"])["gpu_type"]
    # 0.6 of a type comes before 0.4; then either has had more of its type, and they swap.
    assert [types[0, "a"], types[0, "b"]] == ["v", "k"]
    assert [types[1, "b"], types[1, "a"]] == ["v", "k"]
    assert run.runs["steps"].tolist()[:4] == [120, 60, 120, 60]
    # Exclusive time counts on the fastest type.
    assert run.exclusive_s.tolist() == [240.0, 240.0]
    assert run.gpus == 2


def test_a_type_that_cannot_run_a_job_is_never_given():
    both = {"v": profiles(), "k": profiles(gang_gpus=(2,))}
    told = []

    def shares(state):
        told.append(state.rates.tolist())
        return Shares(np.ones(state.rates.shape))

    run = simulate_rounds(
        trace([240, 240, 240], gang_gpus=[1, 1, 2]), Fixed(shares), gpus={"v": 1, "k": 2}, profiles=both
    )
    assert told[0] == [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    types = run.runs.groupby("job_id")["gpu_type"].unique()
    assert {job: list(kinds) for job, kinds in types.items()} == {"a": ["v"], "b": ["v"], "c": ["k"]}


def test_jobs_past_their_time_or_without_progress_are_ended():
    rules = RoundRules(overrun=0.5)
    run = simulate_rounds(trace([1000]), Fixed(everybody), gpus=1, profiles=profiles(), rules=rules)
    # Over int(0.5 x 1000) after the fifth round.
    assert (run.ended_by.tolist(), run.end_s.tolist()) == (["overrun"], [600.0])
    assert run.metrics["overrun"] == 1
    slow = profiles(rate=1 / 200)
    for most in (5, 2):
        rules = RoundRules(stalled_rounds=most)
        run = simulate_rounds(trace([3]), Fixed(everybody), gpus=1, profiles=slow, rules=rules)
        assert (run.ended_by.tolist(), len(run.schedule)) == (["stalled"], most)
    rules = RoundRules(overrun=None)
    run = simulate_rounds(trace([1000]), Fixed(everybody), gpus=1, profiles=profiles(), rules=rules)
    assert run.ended_by.tolist() == ["completed"]


def test_a_job_is_not_ended_for_having_been_given_slow_gpus():
    both = {"v": profiles(), "k": profiles(rate=0.1)}
    on_slow = Fixed(lambda state: Schedule([{"a": 1}]))
    run = simulate_rounds(trace([100]), on_slow, gpus={"v": 1, "k": 1}, profiles=both)
    assert run.exclusive_s.tolist() == [100.0]
    assert (run.ended_by.tolist(), run.run_s.tolist()) == (["completed"], [1000.0])


def test_batch_sizes_change_one_run_late():
    gns = profiles(gns={("m", 10, 1): ((0, 10), (5, 20), (40, 40))})
    rules = RoundRules(round_s=10.0)
    policy = Fixed(everybody)
    run = simulate_rounds(trace([200], modes=["gns"]), policy, gpus=1, profiles=gns, rules=rules)
    rows = run.runs[["batch_size", "steps_run", "total_steps", "next_batch_size"]].to_numpy().tolist()
    # One epoch a round. With e = 4 begun the rule for epoch 5 says 20; the change follows the next run.
    assert rows[3] == [10, 40, 200, 10]
    # 50 steps are 5 epochs of 10; at 20 an epoch has 5 steps: 25 of 100.
    assert rows[4] == [10, 25, 100, 20]
    assert rows[5] == [20, 35, 100, 20]
    # Epochs at 20 are 5 steps; at 40 they are 3, of which 20 epochs need 60, not 50.
    assert run.rounds["rescaled"].sum() == sum(state.rescaled for state, _ in policy.states)
    seen = [jobs[0].batch_sizes for _, jobs in policy.states]
    assert seen[4] == (10,)
    assert seen[5] == (10, 20)
    assert policy.states[5][1][0].regime_epochs == (5.0, 0.0)
    assert policy.states[5][0].rescaled == 1


def test_accordion_returns_in_critical_epochs_and_the_oracle_knows():
    rules = {("m", None, "runtime"): (CriticalEpochs(0, 3), CriticalEpochs(10, 12))}
    accordion = profiles(accordion=rules)
    policy = Fixed(everybody)
    run = simulate_rounds(
        trace([200], modes=["accordion"]), policy, gpus=1, profiles=accordion, rules=RoundRules(round_s=10.0)
    )
    sizes = [size for size, _ in itertools.groupby(run.runs["batch_size"])]
    assert sizes == [10, 40, 10, 40]
    first = policy.states[0][1][0]
    assert first.future == ((10, 3.0), (40, 6.0), (10, 3.0), (40, 8.0))
    assert first.epoch_s == {10: 10.0, 40: 3.0}


def scheduled(runs, mode="static") -> Trace:
    """One job with a schedule of its own."""
    return Trace(
        job_id=["a"],
        model=["m"],
        batch_size=[10],
        gang_gpus=[1],
        mode=[mode],
        total_steps=[10 * sum(epochs for _, epochs in runs)],
        arrival_s=[0.0],
        schedule=[runs],
    )


@pytest.mark.parametrize("mode", ["static", "gns", "accordion"])
def test_jobs_follow_the_schedule_of_the_trace_where_the_rule_says_so(mode):
    runs = ((10, 5), (40, 9), (20, 16))  # sizes that rise and fall, which no rule of a mode gives
    policy = Fixed(everybody)
    rules = RoundRules(round_s=10.0, follow_schedules=True)
    run = simulate_rounds(scheduled(runs, mode), policy, gpus=1, profiles=profiles(), rules=rules)
    assert [size for size, _ in itertools.groupby(run.runs["batch_size"])] == [10, 40, 20]
    # One epoch a round at first. The sixth round, in epoch 5, requests 40, and the seventh is the last at 10.
    assert run.runs["batch_size"].tolist()[:8] == [10] * 7 + [40]
    # Epochs take 10, 3 and 5 s: as the oracle sees it, without the delay.
    first = policy.states[0][1][0]
    assert first.future == ((10, 5.0), (40, 9.0), (20, 16.0))
    assert [first.epoch_s[size] for size, _ in runs] == [10.0, 3.0, 5.0]


def test_a_schedule_states_the_exclusive_time_alone_by_default():
    runs = ((10, 5), (40, 15))
    run = simulate_rounds(scheduled(runs), Fixed(everybody), gpus=1, profiles=profiles())
    assert set(run.runs["batch_size"]) == {10}
    rules = RoundRules(follow_schedules=True)
    with pytest.raises(InvalidInput, match="follow_schedules"):
        simulate_rounds(trace([1]), Never(), gpus=1, profiles=profiles(), rules=rules)
    with pytest.raises(InvalidInput, match="no throughput"):
        simulate_rounds(scheduled(((10, 5), (30, 15))), Never(), gpus=1, profiles=profiles(), rules=rules)


def test_oracle_and_engine_agree_but_for_the_delay():
    builtin = Profiles.builtin()
    for seed in range(3):
        drawn = generate_trace(
            np.random.default_rng(seed), num_jobs=6, profiles=builtin, mode_probabilities={"gns": 0.5, "accordion": 0.5}
        )
        for place in range(len(drawn)):
            policy = Fixed(everybody)
            alone = drawn.select([place])
            run = simulate_rounds(alone, policy, gpus=8, profiles=builtin)
            first, last = policy.states[0][1][0], policy.states[-1][1][0]
            left = sum(epochs * first.epoch_s[size] for size, epochs in first.future)
            changes = len(last.batch_sizes) - 1
            if changes + 1 == len(first.future):
                assert last.batch_sizes == tuple(size for size, _ in first.future)
            # Each change comes up to two rounds late, and rounds work up to whole epochs.
            slack = sum(2 * 120.0 + first.epoch_s[size] for size, _ in first.future)
            assert run.run_s[0] == pytest.approx(left, abs=slack)


def test_contention_is_the_mean_over_the_life_of_a_job():
    policy = Fixed(even, on_any_event)
    simulate_rounds(trace([240, 240], arrivals=[0.0, 60.0]), policy, gpus=1, profiles=profiles())
    (state, told) = policy.states[1]
    # b counts from the start of the round after its arrival on.
    assert state.time_s == 120.0
    assert [job.contention for job in told] == [1.0, 1.0]
    (state, told) = policy.states[2]
    assert told[0].contention == pytest.approx(
        (120.0 + 2.0 * (state.time_s - 120.0)) / state.time_s
        if told[0].id == "a"
        else (60.0 + 2.0 * (state.time_s - 120.0)) / (state.time_s - 60.0)
    )


def test_a_replay_repeats_a_run_and_then_runs_whoever_fits():
    first = simulate_rounds(trace([300, 300, 90]), Fixed(even), gpus=1, profiles=profiles())
    again = simulate_rounds(trace([300, 300, 90]), ReplayedSchedule(first.schedule), gpus=1, profiles=profiles())
    assert again.schedule == first.schedule
    assert again.end_s.tolist() == first.end_s.tolist()
    short = simulate_rounds(trace([300, 300, 90]), ReplayedSchedule([["c"]]), gpus=1, profiles=profiles())
    assert short.schedule == (("c",), ("a",), ("a",), ("a",), ("b",), ("b",), ("b",))
    with pytest.raises(InvalidInput, match="schedule"):
        ReplayedSchedule([])


def test_progress_is_told():
    told = []
    simulate_rounds(
        trace([300, 90]), Fixed(even), gpus=2, profiles=profiles(), on_round=lambda *args: told.append(args)
    )
    assert told == [(0, 120.0, 1, 2), (1, 240.0, 1, 2), (2, 300.0, 2, 2)]


@pytest.mark.parametrize("where", ["between rounds", "in a call", "in a round"])
def test_an_interrupt_carries_what_had_ended(where, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    def decide(state):
        return stop() if where == "in a call" and state.round == 3 else everybody(state)

    def play(job, number, *args):
        return stop() if where == "in a round" and number == 3 and job.id == "c" else run_of(job, number, *args)

    run_of = RoundProgress.run
    monkeypatch.setattr(RoundProgress, "run", play)
    with pytest.raises(SimulationInterrupted, match="2 of 5 jobs had ended after 3 rounds") as caught:
        simulate_rounds(
            trace([300, 90, 600, 370, 50], arrivals=[0.0, 0.0, 0.0, 0.0, 9999.0]),
            Fixed(decide),
            gpus=4,
            profiles=profiles(),
            on_round=lambda *args: stop() if where == "between rounds" and args[0] == 2 else None,
        )
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.jobs["job_id"].tolist() == ["a", "b"]
    assert caught.value.jobs["jct_s"].tolist() == [300.0, 90.0]
    assert len(caught.value.rounds) == 3


def test_a_policy_that_never_ends_is_given_up():
    idle = Fixed(lambda state: Schedule([{}]))
    with pytest.raises(EquipoiseError, match=r"50 rounds passed, and 1 jobs have not ended: 'a'"):
        simulate_rounds(trace([1]), idle, gpus=1, profiles=profiles(), rules=RoundRules(most_rounds=50))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("round_s", 0.0),
        ("round_s", math.inf),
        ("restart_s", -1.0),
        ("restart_free_s", 19.0),
        ("overrun", 0.0),
        ("overrun", math.nan),
        ("stalled_rounds", 0),
        ("stalled_rounds", 2.5),
        ("plan_ahead", 1),
        ("backfill_new", "no"),
        ("follow_schedules", 1),
        ("most_rounds", 0),
    ],
)
def test_bad_rules_are_refused(field, value):
    with pytest.raises(InvalidInput, match=field):
        RoundRules(**{field: value})


class Never(Fixed):
    """Fails the test if the engine gets as far as calling it."""

    def __init__(self):
        super().__init__(lambda state: pytest.fail("called"))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"gpus": 3}, r"gang_gpus\[1\] = 4: job 'b' is wider than the cluster has 3"),
        ({"gpus": {"v": 3, "k": 2}}, r"gang_gpus\[1\] = 4: .*the cluster has 3 of one type"),
        ({"gpus": 0}, "gpus = 0: at least 1"),
        ({"gpus": {"v": 8, "k": 0}}, r"gpus\[k\] = 0"),
        ({"gpus": {}}, "gpus"),
        ({"gpus": {3: 4}}, "gpus = 3: a GPU type must have a name"),
        ({"gpus": 2.5}, "gpus = 2.5: must be a whole number"),
        ({"profiles": profiles(gang_gpus=(1, 2))}, r"batch_size, gang_gpus\[1\]"),
        ({"profiles": {"gpu": profiles(), "tpu": profiles()}}, "profiles = 'tpu': no such GPU type"),
        ({"profiles": {}}, "profiles = 'gpu': no Profiles"),
        ({"profiles": None}, "profiles = 'NoneType'"),
        ({"rules": 3}, "rules = 'int'"),
        ({"trace": []}, "trace = 'list'"),
        ({"policy": "fifo"}, "policy = 'str': must have a method decide"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(change, match):
    given = {"trace": trace([10, 10], gang_gpus=[1, 4]), "policy": Never(), "gpus": 8, "profiles": profiles(), **change}
    with pytest.raises(InvalidInput, match=match):
        simulate_rounds(given.pop("trace"), given.pop("policy"), **given)


def test_unknown_model_and_unreachable_sizes():
    unknown = Profiles(name="other", rates={("x", 10, 1): 1.0}, dataset_sizes={"x": 10}, max_batch_sizes={})
    with pytest.raises(InvalidInput, match=r"model\[0\] = 'm'"):
        simulate_rounds(trace([10]), Never(), gpus=1, profiles=unknown)
    rules = {("m", None, "runtime"): (CriticalEpochs(0, 3),)}
    missing = profiles(sizes=(10, 20), accordion=rules, accordion_share=1.0)
    # The largest size has no rate: a job that ends before it would be used runs, a longer one is refused at once.
    simulate_rounds(trace([30], modes=["accordion"]), Fixed(everybody), gpus=1, profiles=missing)
    with pytest.raises(InvalidInput, match=r"\[0\] = \(40, 1\)"):
        simulate_rounds(trace([300], modes=["accordion"]), Never(), gpus=1, profiles=missing)
    other = {"v": profiles(), "k": profiles(accordion=rules)}
    with pytest.raises(InvalidInput, match="accordion differ from those of 'v'"):
        simulate_rounds(trace([30]), Never(), gpus={"v": 1, "k": 1}, profiles=other)


def test_a_trace_from_a_file_names_line_and_column(tmp_path):
    path = tmp_path / "jobs.csv"
    write_shockwave(trace([10, 10], gang_gpus=[1, 4]), path)
    with pytest.raises(InvalidInput, match=r"scale_factor.*jobs.csv, line 3"):
        simulate_rounds(Trace.read(path), Never(), gpus=2, profiles=profiles())


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (lambda state: Shares(np.ones((3, 1))), r"shares of policy fixed = \(3, 1\)"),
        (lambda state: Shares(np.ones((2, 2))), r"shares of policy fixed = \(2, 2\)"),
        (lambda state: {"a": 0}, "decision of policy fixed = 'dict'"),
        (lambda state: Schedule([{"a": 0, "b": 0}]), r"schedule of policy fixed = 3: round 0 .* more GPUs than the 2"),
        (lambda state: Schedule([{}, {"z": 0}]), "schedule of policy fixed = 'z': round 1"),
        (lambda state: Schedule([{"c": 0}]), "fixed = 'c': round 0 of the schedule: no such job has arrived"),
        (lambda state: Schedule([{"a": 1}]), "fixed = 1: round 0 .*, job 'a': must be the index of a GPU type"),
        (lambda state: Schedule([{"a": True}]), "fixed = True"),
        (lambda state: Shares(np.array([[-0.1], [1.0]])), "values"),
    ],
)
def test_impossible_answers_name_the_policy(answer, match):
    jobs = trace([10, 10, 10], gang_gpus=[1, 2, 1], arrivals=[0.0, 0.0, 500.0])
    with pytest.raises(InvalidInput, match=match):
        simulate_rounds(jobs, Fixed(answer), gpus=2, profiles=profiles())


def test_importing_the_engine_loads_no_table_library():
    code = "import sys, equipoise.simulation; print([m for m in ('pandas', 'scipy', 'numba') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
