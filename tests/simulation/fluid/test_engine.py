"""Rules of the fluid engine on small cases computed by hand, its invariants, and what it refuses."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from examples import fewer
from fluid_cases import random_case, random_speedups, random_trace, with_least_gpus
from hypothesis import given
from hypothesis import strategies as st

from equipoise import EquipoiseError, InvalidInput
from equipoise.heuristics import make_policy, policies_of
from equipoise.simulation import Cluster, Trace, simulate
from equipoise.simulation.fluid import Clock, FluidRules, Speedups, fair_s, simulate_fluid
from equipoise.simulation.placement import DurationSpeeds, simulate_placement

LINEAR = Speedups.linear(8)


def trace_of(*jobs):
    """Return a trace of jobs (maximum demand, arrival, size)."""
    gangs, arrivals, sizes = zip(*jobs, strict=True)
    return Trace(job_id=range(len(jobs)), model=["m"] * len(jobs), gang_gpus=gangs, arrival_s=arrivals, size_s=sizes)


class Script:
    """Answers with the GPUs listed for the time, and sets a timer for the next time of the list."""

    name, rule = "script", None

    def __init__(self, answers):
        self.answers, self.events = answers, []

    def allocate(self, state):
        self.events.append((state.time_s, state.event))
        time_s = max(time_s for time_s in self.answers if time_s <= state.time_s)
        present = {job.trace_index for job in state.jobs}
        return {index: gpus for index, gpus in self.answers[time_s].items() if index in present}

    def timer_s(self, state):
        return min((time_s for time_s in self.answers if time_s > state.time_s), default=math.inf) - state.time_s

    def guaranteed_s(self, state, job):
        return math.nan


def play(jobs, answers, *, gpus=4, speedups=LINEAR, record=True, **rules):
    script = Script(answers)
    result = simulate_fluid(
        trace_of(*jobs), script, cluster=gpus, speedups=speedups, rules=FluidRules(**rules), record=record
    )
    return result, script.events


def test_work_is_done_along_the_curve():
    curve = Speedups(tables={"m": [1.0, 1.5, 2.5]})
    # 5 s at s(1.5) = 1.25, then the rest of 20 at s(2.5) = 2: 6.25 + 13.75.
    result, events = play([(3, 1.0, 20.0)], {0.0: {0: 1.5}, 6.0: {0: 2.5}}, speedups=curve)
    assert result.end_s.tolist() == [6.0 + 13.75 / 2.0]
    assert events == [(1.0, "arrival"), (6.0, "timer"), (12.875, "end")]
    assert result.gpu_s.tolist() == [5.0 * 1.5 + 6.875 * 2.5]
    assert result.exclusive_s.tolist() == [8.0]
    assert [tuple(row) for row in zip(result.stretches.start_s, result.stretches.end_s, strict=True)] == [
        (1.0, 6.0),
        (6.0, 12.875),
    ]
    assert result.stretches.gpus.tolist() == [1.5, 2.5]


def test_contention_counts_events_and_time():
    # Events of job 0: its arrival (1 job), that of job 1 (1), the end of job 1 (2), its own end (1).
    result, _ = play([(1, 0.0, 10.0), (1, 2.0, 4.0)], {0.0: {0: 1.0, 1: 1.0}})
    assert result.end_s.tolist() == [10.0, 6.0]
    assert result.contention.tolist() == [5 / 4, (2 + 2) / 2]
    assert result.mean_contention.tolist() == [1.4, 2.0]
    assert result.fair_s.tolist() == [10.0, 4.0]
    assert result.unfairness.tolist() == [0.0, 0.0]


def test_at_one_time_ends_come_before_timers_and_these_before_arrivals():
    _, events = play([(1, 0.0, 5.0), (1, 5.0, 1.0)], {0.0: {0: 1.0, 1: 1.0}, 5.0: {1: 1.0}})
    # After the end the timer is set anew, and not for the present time.
    assert events == [(0.0, "arrival"), (5.0, "end"), (5.0, "arrival"), (6.0, "end")]


def test_jobs_that_end_at_one_time_follow_the_order_of_the_answer():
    jobs = [(1, 0.0, 5.0), (1, 0.0, 5.0)]
    result, _ = play(jobs, {0.0: {0: 1.0, 1: 1.0}})
    other, _ = play(jobs, {0.0: {1: 1.0, 0: 1.0}})
    # The second to end sees one event more.
    assert result.contention.tolist() == [(1 + 1 + 2) / 3, (2 + 2 + 1) / 3]
    assert other.contention.tolist() == [(1 + 1 + 2 + 1) / 4, (2 + 2) / 2]


def test_a_preempted_job_pauses_when_it_starts_again():
    answers = {0.0: {0: 2.0}, 3.0: {}, 5.0: {0: 2.0}, 6.0: {0: 1.0}}
    result, _ = play([(2, 0.0, 12.0)], answers, preemption_s=4.0)
    # 6 by 3 s; the pause from 5 to 9 s outlasts the cut at 6 s; then 6 on one GPU.
    assert result.end_s.tolist() == [15.0]
    assert (result.preemptions[0], result.restarts[0], result.cuts[0]) == (1, 1, 1)
    assert (result.run_s[0], result.gpu_s[0]) == (9.0, 12.0)


def test_a_second_preemption_begins_the_pause_anew():
    result, _ = play([(1, 0.0, 3.0)], {0.0: {0: 1.0}, 1.0: {}, 2.0: {0: 1.0}, 4.0: {}, 5.0: {0: 1.0}}, preemption_s=3.0)
    assert result.end_s.tolist() == [10.0]
    assert result.preemptions.tolist() == [2]


def test_a_job_that_is_done_ends_without_gpus():
    # Both jobs are done at 0.3 s, but for rounding; the answer after the first end takes the GPU of the second.
    class Rude(Script):
        def allocate(self, state):
            return {job.trace_index: 1.0 for job in state.jobs} if state.event == "arrival" else {}

    trace = trace_of((1, 0.0, 0.3), (1, 0.1, 0.1 + 0.1))
    result = simulate_fluid(trace, Rude({0.0: {}}), cluster=2, speedups=LINEAR)
    assert result.end_s == pytest.approx([0.3, 0.3], rel=1e-12)


@given(seconds=st.floats(0.0, 1e9) | st.integers(0, 10**9).map(lambda halves: halves * 0.0000005))
def test_the_clock_rounds_as_the_standard_library(seconds):
    assert Clock(microseconds=True).ticks(seconds) == timedelta(seconds=seconds) / timedelta(microseconds=1)
    assert Clock(microseconds=False).ticks(seconds) == seconds
    assert Clock(microseconds=True).ticks(math.inf) == math.inf


def test_times_are_rounded_to_microseconds():
    result, _ = play([(3, 0.1234567, 10.0)], {0.0: {0: 3.0}}, microseconds=True)
    assert result.start_s.tolist() == [0.123457]
    assert result.end_s.tolist() == [3.45679]


def test_sizes_are_estimated_with_errors_and_true_for_progress():
    trace = trace_of(*[(1, 0.0, 100.0)] * 50)
    rules = FluidRules(size_error_pct=50.0, seed=3, predict=True)
    seen = {}

    class Watching(Script):
        def allocate(self, state):
            seen.update({job.trace_index: job.size_s for job in state.jobs})
            return {job.trace_index: 1.0 for job in state.jobs}

    result = simulate_fluid(trace, Watching({0.0: {}}), cluster=50, speedups=LINEAR, rules=rules)
    assert result.end_s == pytest.approx([100.0] * 50)
    estimates = np.array([seen[index] for index in range(50)])
    assert 50.0 <= estimates.min() < 60.0 < 140.0 < estimates.max() <= 150.0
    assert result.predicted_end_s == pytest.approx(estimates)
    assert result.signed_error_pct == pytest.approx(100.0 * (100.0 / estimates - 1.0))
    assert np.isnan(result.bound_s).all()


@pytest.mark.parametrize("name", policies_of("fluid"))
@fewer(3)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_policy_does_all_work_within_the_cluster(name, seed):
    case = random_case(name, seed)
    result = simulate_fluid(
        case.trace, case.policy, cluster=case.gpus, speedups=case.speedups, rules=case.rules, compiled=False
    )
    assert (result.ended_by == "completed").all()
    assert result.levels.gpus_busy.max() <= case.gpus + 1e-9
    assert (result.start_s >= result.trace.arrival_s - 1e-6).all()
    stretches = result.stretches
    for index in range(len(case.trace)):
        mine = stretches.trace_index == index
        curve = case.speedups.curve_of(case.trace, index)
        assert stretches.gpus[mine].max() <= len(curve) - 1
        if case.rules.preemption_s == 0.0:
            speed = np.interp(stretches.gpus[mine], np.arange(len(curve)), curve)
            done_s = (speed * (stretches.end_s[mine] - stretches.start_s[mine])).sum()
            assert done_s == pytest.approx(result.size_s[index], rel=1e-6, abs=1e-4)


@given(seed=st.integers(0, 2**32 - 1))
def test_jobs_of_one_gpu_end_under_fifo_as_on_the_placement_engine(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 30))
    trace = Trace(
        job_id=range(count), model=["m"] * count, gang_gpus=[1] * count,
        arrival_s=rng.integers(0, 50, count).astype(float), duration_s=rng.integers(1, 40, count).astype(float),
    )  # fmt: skip
    mine = simulate_fluid(trace, make_policy("fifo", "fluid"), cluster=4, speedups=Speedups.linear(1))
    other = simulate_placement(trace, make_policy("fifo", "placement"), cluster=4, speeds=DurationSpeeds())
    np.testing.assert_allclose(mine.end_s, other.end_s, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(mine.start_s, other.start_s, rtol=0.0, atol=1e-9)


def test_the_engine_runs_by_name_and_has_the_metrics_of_all():
    trace = trace_of((2, 0.0, 10.0), (4, 1.0, 6.0))
    result = simulate(trace, make_policy("fifo", "fluid"), cluster=4, speeds=LINEAR, rules=FluidRules(predict=True))
    assert (result.engine, result.end_s.tolist()) == ("fluid", [5.0, 4.0])
    figures = result.of([True, False])
    assert figures["avg_jct_s"] == 5.0
    assert (figures["avg_error_pct"], figures["preemptions"], figures["cuts"]) == (0.0, 0, 0)
    assert result.jobs["predicted_end_s"].tolist() == [5.0, 4.0]
    assert list(result.tables()) == ["jobs", "levels", "solves"]
    assert "unfair" in repr(result)


def test_sizes_follow_from_durations_and_the_speedup_at_the_demand():
    table = Speedups(tables={"m": [1.0, 1.6]})
    trace = Trace(job_id=[0, 1], model=["m"] * 2, gang_gpus=[2, 3], arrival_s=[0, 0], duration_s=[10.0, 10.0])
    result = simulate_fluid(trace, make_policy("fifo", "fluid"), cluster=4, speedups=table)
    assert result.size_s.tolist() == [16.0, 16.0]
    assert result.max_gpus.tolist() == [2, 2]
    assert result.end_s.tolist() == [10.0, 10.0]


def test_fair_finish_times_by_hand():
    assert fair_s([12.0, 12.0], [2.0, 8.0], [4, 4], gpus=4).tolist() == [6.0, 24.0]


# -- Least GPUs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        # Job 1 needs 3 GPUs and is offered 2, which job 2 gets: 4 and 2 GPUs, then 4 for job 1 and what it leaves.
        ("fifo", [10.0, 20.0, 20.0]),
        # Shares of 2 are too few for job 1 alone: its GPUs go to the first job that can use them.
        ("fs", [10.0, 20.0, 20.0]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_gpus_too_few_for_a_job_go_to_the_next_that_can_use_them(policy, ends, compiled):
    trace = replace(trace_of((4, 0.0, 40.0), (4, 0.0, 40.0), (2, 0.0, 40.0)), min_gpus=[1, 3, 1])
    made = make_policy(policy, "fluid")
    result = simulate_fluid(trace, made, cluster=6, speedups=LINEAR, compiled=compiled)
    assert result.end_s.tolist() == ends


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(policies_of("fluid")))
def test_a_job_holds_its_least_gpus_or_none(seed, name):
    rng = np.random.default_rng(seed)
    speedups, gpus = random_speedups(rng), int(rng.integers(1, 9))
    trace = with_least_gpus(rng, random_trace(rng), speedups, gpus)
    result = simulate_fluid(trace, make_policy(name, "fluid"), cluster=gpus, speedups=speedups, compiled=False)
    held = result.stretches
    least = np.where(trace.min_gpus > 1, trace.min_gpus, 0)[held.trace_index]
    assert (held.gpus >= least - 1e-9).all()
    assert np.isfinite(result.end_s).all()
    assert (result.levels.gpus_busy <= gpus + 1e-6).all()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({0: 5.0}, "allocation of policy script to job 0 = 5.0: more than its maximum of 4 GPUs"),
        ({0: 4.0, 1: 4.0}, "allocation of policy script = 8.0: the cluster has 7 GPUs"),
        ({7: 1.0}, "allocation of policy script = 7: no such job has arrived and not ended"),
        ({0: -1.0}, "allocation of policy script to job 0 = -1.0: at least 0"),
        ({0: math.nan}, "allocation of policy script to job 0 = nan: must be finite"),
        ([1.0], "allocation of policy script = 'list': must be a mapping of trace index to GPUs"),
    ],
)
def test_an_infeasible_answer_is_refused(answer, message):
    class Bad(Script):
        def allocate(self, state):
            return answer if len(state.jobs) == 2 else {}

    with pytest.raises(InvalidInput) as caught:
        simulate_fluid(trace_of((4, 0.0, 1.0), (4, 0.0, 1.0)), Bad({}), cluster=7, speedups=LINEAR)
    assert str(caught.value) == message


def test_a_policy_that_starves_jobs_is_refused():
    with pytest.raises(EquipoiseError, match="script leaves 1 jobs without GPUs, and no event is to come"):
        play([(1, 0.0, 1.0)], {0.0: {}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trace": 3}, "trace = 'int': must be a Trace"),
        ({"policy": 3}, "policy = 'int': must have a name and the methods"),
        ({"cluster": Cluster(gpus_by_type={"a": 1, "b": 1})}, "cluster = 'a, b': the fluid engine takes GPUs of one"),
        ({"speedups": 3}, "speedups = 'int': must be Speedups"),
        ({"rules": 3}, "rules = 'int': must be FluidRules"),
        (
            {"speedups": Speedups(tables={"n": np.ones(1)})},
            r"model\[0\] = 'm': (did you mean 'n'\? )?it has no speedups",
        ),
        ({"record": 1}, "record = 1: must be True or False"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    arguments = {
        "trace": trace_of((1, 0.0, 1.0)), "policy": make_policy("fs", "fluid"), "cluster": 2, "speedups": LINEAR,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=message):
        simulate_fluid(**{**arguments, **change})


def test_bad_traces_are_refused():
    columns = {"job_id": [0], "model": ["m"], "gang_gpus": [2], "arrival_s": [0.0]}
    fifo = make_policy("fifo", "fluid")
    with pytest.raises(InvalidInput, match="the trace must have size_s or duration_s"):
        simulate_fluid(Trace(**columns, total_steps=[1]), fifo, cluster=2, speedups=LINEAR)
    needy = Trace(**columns, size_s=[1.0], min_gpus=[2])
    with pytest.raises(InvalidInput, match=r"min_gpus\[0\] = 2: the cluster has 1 GPUs"):
        simulate_fluid(needy, fifo, cluster=1, speedups=LINEAR)
    with pytest.raises(InvalidInput, match=r"min_gpus\[0\] = 2: model m has speedups of up to 1 GPUs"):
        simulate_fluid(needy, fifo, cluster=4, speedups=Speedups.linear(1))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("preemption_s", -1.0),
        ("size_error_pct", 100.0),
        ("seed", -1),
        ("predict", 1),
        ("microseconds", 1),
        ("most_steps", 0),
    ],
)
def test_bad_rules_are_refused(field, value):
    with pytest.raises(InvalidInput, match=field):
        FluidRules(**{field: value})
