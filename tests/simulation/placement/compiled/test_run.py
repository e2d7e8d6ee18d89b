"""Runs of the compiled placement loops: the choice of the form, batches, interrupts, refused input, and kept setups."""

import math
import pickle

import numpy as np
import pytest
from delay_cases import POLICIES, SpreadSpeeds, assert_equal

from equipoise import EquipoiseError, InvalidInput
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, SimulationInterrupted, Trace
from equipoise.simulation.placement import TICK_S, DurationSpeeds, PlacementRules, Start, simulate_placement
from equipoise.simulation.placement.compiled.rule import DelayRule
from equipoise.simulation.placement.compiled.run import CompiledRun
from equipoise.simulation.placement.compiled.setup import PlacementSetup
from equipoise.simulation.results.interrupt import play

CLUSTER = Cluster(gpus_by_type={"gpu": 16}, gpus_per_machine=4, racks=2)


def trace_of(count, *, gang=3, gap_s=100.0, duration_s=500.0):
    return Trace(
        job_id=[f"job {index}" for index in range(count)],
        model=["m"] * count,
        gang_gpus=[gang] * count,
        arrival_s=np.arange(count) * gap_s,
        duration_s=[duration_s] * count,
    )


def simulated(trace, name="dally-manual", *, compiled=None, options=None, speeds=None, cluster=CLUSTER, **more):
    policy = make_policy(name, "placement", **(options or {}))
    return simulate_placement(
        trace, policy, cluster=cluster, speeds=speeds or SpreadSpeeds(), compiled=compiled, **more
    )  # fmt: skip


class First:
    """A policy without a rule of compiled loops."""

    name, knows = "first", frozenset()

    def decide(self, state):
        for job in list(state.waiting.values()):
            gpu_ids = state.gpus.find(job.gang_gpus)
            if gpu_ids is not None:
                yield Start(job.trace_index, gpu_ids)


@pytest.mark.parametrize("name", POLICIES)
def test_the_loops_run_by_default_and_record_no_calls(name):
    by_default, reference = (simulated(trace_of(9), name, compiled=compiled) for compiled in (None, False))
    assert by_default.solve_rows == ()
    assert len(reference.solve_rows) > 9
    assert_equal(by_default, reference)
    for metric, value in reference.metrics.items():
        if metric not in ("calls", "solve_s", "slowest_solve_s"):
            assert by_default.metrics[metric] == value, metric


@pytest.mark.parametrize("rule", [None, "tight"])
def test_a_policy_without_a_rule_runs_on_the_reference_alone(rule):
    policy = First()
    policy.rule = rule
    result = simulate_placement(trace_of(3), policy, cluster=CLUSTER, speeds=DurationSpeeds())
    assert result.end_s.tolist() == [500.0, 600.0, 700.0]
    assert result.metrics["calls"] == 6
    with pytest.raises(InvalidInput, match="compiled = True: policy first has no rule"):
        simulate_placement(trace_of(3), policy, cluster=CLUSTER, speeds=DurationSpeeds(), compiled=True)
    with pytest.raises(InvalidInput, match="compiled = 'yes'"):
        simulate_placement(trace_of(3), policy, cluster=CLUSTER, speeds=DurationSpeeds(), compiled="yes")


def test_stretches_are_recorded_on_request():
    assert simulated(trace_of(3), record=False).stretches is None
    assert len(simulated(trace_of(3), record=True).stretches) == 3


@pytest.mark.parametrize("compiled", [False, True])
def test_a_simulation_stops_at_the_most_calls(compiled):
    with pytest.raises(EquipoiseError, match="7 calls passed, and 7 jobs have not ended"):
        simulated(trace_of(9), compiled=compiled, rules=PlacementRules(most_steps=7))


def test_the_loops_report_after_each_batch():
    calls = []
    count = 6000
    result = simulated(trace_of(count), on_event=lambda *call: calls.append(call))
    assert len(calls) > 1
    assert calls[-1][1:] == (result.end_s.max(), count, count)
    assert [call[0] for call in calls] == sorted({call[0] for call in calls})


@pytest.mark.parametrize("compiled", [False, True])
def test_an_interrupt_carries_the_jobs_that_had_ended(compiled):
    def stop(event, time_s, ended, jobs):
        if ended > 100:
            raise KeyboardInterrupt

    trace = trace_of(6000)
    with pytest.raises(SimulationInterrupted) as caught:
        simulated(trace, on_event=stop, compiled=compiled)
    jobs, whole = caught.value.jobs, simulated(trace).jobs
    assert 100 < len(jobs) < 6000
    assert caught.value.total == 6000
    for name in ("start_s", "end_s", "waited_s", "exposed_s", "machines"):
        assert jobs[name].tolist() == whole.set_index("job_id")[name][jobs["job_id"]].tolist(), name


def test_an_interrupt_while_the_speeds_are_asked_leaves_a_result():
    class Interrupted(SpreadSpeeds):
        def exposed(self, run):
            if run.trace_index == 5:
                raise KeyboardInterrupt
            return super().exposed(run)

    trace = trace_of(9)
    with pytest.raises(SimulationInterrupted) as caught:
        simulated(trace, speeds=Interrupted())
    assert caught.value.total == 9


def partial(trace, compiled, steps):
    """Return the result after so many calls of the policy."""
    found = []

    def stop(event, time_s, ended, jobs):
        if event + 1 >= steps:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equipoise.simulation.placement.compiled.run._BATCH", steps)
        patch.setattr(
            "equipoise.simulation.results.interrupt.SimulationInterrupted",
            lambda so_far: found.append(so_far) or KeyboardInterrupt(),
        )
        with pytest.raises(KeyboardInterrupt):
            simulated(trace, "dally", compiled=compiled, on_event=stop, options={"lease_s": 300.0})
    return found[0]


@pytest.mark.parametrize("steps", [2, 4, 9, 20])
def test_results_so_far_agree(steps):
    trace = trace_of(12)
    assert_equal(partial(trace, True, steps), partial(trace, False, steps))


class Refused(DurationSpeeds):
    """Speeds that refuse a job on more machines than it needs."""

    def __init__(self, rate=0.2, exposed=0.1):
        super().__init__()
        self.values = rate, exposed

    def rate(self, run):
        return self.values[0] if run.machines > run.fewest_machines else 1.0

    def exposed(self, run):
        return self.values[1] if run.machines > run.fewest_machines else 0.5


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((0.0, 0.1), "speeds of an action of policy dally-nowait = 0.0: job cannot run so: Running"),
        ((math.nan, 0.1), "speeds of an action of policy dally-nowait = nan"),
        ((1.0, 1.5), "exposed of speeds of an action of policy dally-nowait = 1.5"),
        ((1.0, -0.1), "exposed of speeds of an action of policy dally-nowait = -0.1"),
    ],
)
def test_speeds_are_refused_as_by_the_reference(values, why):
    messages = []
    for compiled in (False, True):
        with pytest.raises(InvalidInput, match=why) as caught:
            simulated(trace_of(8), "dally-nowait", speeds=Refused(*values), compiled=compiled)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_job_that_cannot_run_is_refused_before_anything_runs(compiled):
    with pytest.raises(InvalidInput, match="job 'job 0' is wider than the cluster of 16 GPUs"):
        simulated(trace_of(2, gang=17), compiled=compiled)
    calls = []
    with pytest.raises(InvalidInput, match="work of speeds"):
        simulated(
            trace_of(2), speeds=type("Idle", (SpreadSpeeds,), {"work": lambda self, trace: np.zeros(2)})(),
            compiled=compiled, on_event=lambda *call: calls.append(call),
        )  # fmt: skip
    assert not calls


@pytest.mark.parametrize(("lease_s", "field"), [(2 * TICK_S, "lease_s"), (3600.0, "wake")])
def test_times_that_floats_cannot_tell_apart_are_refused_as_by_the_reference(lease_s, field):
    trace = Trace(job_id=[0, 1], model=["m"] * 2, gang_gpus=[4, 4], arrival_s=[2.0**40] * 2, duration_s=[9.0] * 2)
    messages = []
    for compiled in (False, True):
        with pytest.raises(InvalidInput, match=field) as caught:
            simulated(trace, cluster=4, options={"lease_s": lease_s, "offer_s": 2 * TICK_S}, compiled=compiled)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_setup_serves_runs_under_several_rules_and_asks_for_a_rate_once():
    asked = []

    class Counted(SpreadSpeeds):
        def exposed(self, run):
            asked.append(run)
            return super().exposed(run)

    trace, rules = trace_of(30), PlacementRules(checkpoint_s_per_gpu=1.0)
    setup = PlacementSetup(trace, CLUSTER, Counted(), rules)
    for name in (*POLICIES, *POLICIES):
        policy = make_policy(name, "placement", lease_s=300.0)
        run = CompiledRun(setup, policy, policy.rule, record=True)
        expected = simulate_placement(
            trace, policy, cluster=CLUSTER, speeds=SpreadSpeeds(), rules=rules, compiled=False
        )  # fmt: skip
        assert_equal(play(run, len(trace)), expected)
    assert len(asked) == len(set(asked)) > len(trace)


def test_a_setup_can_be_pickled():
    trace, policy = trace_of(30), make_policy("dally", "placement", lease_s=300.0)
    setup = PlacementSetup(trace, CLUSTER, SpreadSpeeds(), PlacementRules())
    results = [
        play(CompiledRun(each, policy, policy.rule, record=True), len(trace))
        for each in (setup, pickle.loads(pickle.dumps(setup)))
    ]
    assert_equal(*results)


def test_jobs_that_would_never_end_are_an_error():
    class Endless(DurationSpeeds):
        def rate(self, run):
            return 1e-308

    policy, rule = make_policy("dally", "placement"), DelayRule(lease_s=math.inf)
    setup = PlacementSetup(trace_of(2), CLUSTER, Endless(), PlacementRules())
    with pytest.raises(EquipoiseError, match="dally leaves jobs waiting, and no event is to come: 'job 0', 'job 1'"):
        play(CompiledRun(setup, policy, rule, record=False), 2)
