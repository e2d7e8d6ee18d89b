"""WfqOperator: FIFO until it has searched, equal configurations for equal jobs, and a new search after a drift."""

import copy
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from equipoise import InvalidInput, WfqConfig
from equipoise.heuristics import make_policy
from equipoise.heuristics.search import ObservedJob, WfqOperator
from equipoise.heuristics.search.wfq_operator import observed_trace
from equipoise.simulation import Trace
from equipoise.simulation.fluid import (
    Clock,
    FluidRules,
    FluidState,
    Speedups,
    generate_jobs,
    predict_completion,
    simulate_fluid,
)
from equipoise.simulation.fluid.job import fluid_jobs
from equipoise.simulation.fluid.prediction import divide, next_event, play_out

SPEEDUPS = Speedups.builtin()
TRACE = generate_jobs(np.random.default_rng(0), "training", num_jobs=160, gpus=8)
QUICK = {"least_jobs": 60, "window": 40, "evaluations": 8, "sample_jobs": 60}
TWO = WfqConfig(thresholds=[3600.0, math.inf], weights=[Fraction(1, 2)] * 2)


def run(policy, trace=TRACE, **rules):
    return simulate_fluid(trace, policy, cluster=8, speedups=SPEEDUPS, rules=FluidRules(**rules))


def observed(trace):
    curves = [SPEEDUPS.curve_of(trace, index) for index in range(len(trace))]
    rows = zip(trace.arrival_s.tolist(), trace.size_s.tolist(), curves, strict=True)
    return [ObservedJob(*row) for row in rows]


def test_it_is_fifo_until_it_has_searched():
    few = TRACE.select(range(50))
    result = run(make_policy("wfq-operator", least_jobs=1000), few, predict=True)
    fifo = run(make_policy("fifo", "fluid"), few, predict=True)
    np.testing.assert_allclose(result.end_s, fifo.end_s, rtol=1e-9)
    np.testing.assert_allclose(result.predicted_end_s, fifo.predicted_end_s, rtol=1e-9)
    assert np.isnan(result.bound_s).all()


def test_the_life_cycle_in_the_engine():
    some = TRACE.select(range(110))
    operators = [make_policy("wfq-operator", "fluid", **QUICK) for _ in range(2)]
    first, second = (run(operator, some, predict=operator is operators[0]) for operator in operators)
    # Predictions play on copies: they change neither the run nor the operator.
    np.testing.assert_array_equal(first.end_s, second.end_s)
    operator = operators[0]
    assert operator.events == operators[1].events
    assert operator.events[:2] == [(60, "front"), (60, "config")]
    assert operator.jobs_seen == len(some)
    assert operator.config in operator.front.configurations
    assert operator.config == operator.front.pick("balanced").configuration
    # Until the 60th arrival it was FIFO.
    before = second.trace.arrival_s[59]
    fifo = run(make_policy("fifo", "fluid"), some)
    early = fifo.end_s < before
    np.testing.assert_allclose(second.end_s[early], fifo.end_s[early], rtol=1e-9)
    assert early.any()


def test_a_scheduler_needs_no_engine():
    operator = WfqOperator(gpus=8, **QUICK)
    inside = make_policy("wfq-operator", "fluid", **QUICK)
    run(inside)
    for job in observed(TRACE):
        operator.observe(job)
    assert operator.events == inside.events
    assert operator.config == inside.config
    np.testing.assert_array_equal(operator.front.scores, inside.front.scores)


@pytest.mark.thorough
def test_the_workers_do_not_change_the_front():
    fronts = []
    for threads in (1, 2):
        operator = WfqOperator(gpus=8, threads=threads, **{**QUICK, "least_jobs": 1000})
        for job in observed(TRACE)[:60]:
            operator.observe(job)
        fronts.append(operator.update_pareto_front())
        assert operator.config.queues == 1
    np.testing.assert_array_equal(fronts[0].vectors, fronts[1].vectors)


def test_a_configuration_set_by_hand_moves_the_jobs_present():
    class ByHand(WfqOperator):
        def observe(self, job):
            super().observe(job)
            if self.jobs_seen == 3:
                self.set_wfq_config(TWO)

    trace = Trace(
        job_id=range(3), model=["linear"] * 3, gang_gpus=[2] * 3, arrival_s=[0, 10, 20], size_s=[9e3, 100, 100]
    )
    result = simulate_fluid(
        trace, ByHand(least_jobs=1000), cluster=2, speedups=SPEEDUPS, rules=FluidRules(predict=True)
    )
    # One queue until 20 s. Then the second job, present since 10 s, has its queue's GPU, and the third one follows.
    assert result.end_s.tolist() == [220.0 + (9e3 - 40.0 - 200.0) / 2.0, 120.0, 220.0]
    # The prediction of the second job is FIFO's, that of the third one plays the new configuration out.
    assert result.predicted_end_s[1:].tolist() == [4500.0 + 50.0, 220.0]


def test_compiled_loops_predict_under_the_present_configuration():
    operator, state = WfqOperator(), FluidState(8, Clock(False))
    for place, job in enumerate(fluid_jobs(TRACE.select(range(40)), Speedups.builtin(), FluidRules())):
        if place == 20:
            operator.set_wfq_config(WfqConfig(thresholds=[3600.0, math.inf], weights=["2/3", "1/3"], zeta=0.7))
        next_event(state, operator, job)
        divide(state, operator, operator.allocate(state))
        for each in state.jobs:
            plain, compiled = play_out(state, operator, each), predict_completion(state, operator, each.trace_index)
            assert compiled.end_s == pytest.approx(plain.end_s, abs=1e-6)
            assert math.isnan(compiled.bound_s)


def test_the_operator_chooses_by_a_function_and_by_a_preference():
    last = WfqOperator(gpus=8, pick=lambda front: front[len(front) - 1], **QUICK)
    last.set_preference(("jct", "avg"), "unfairness:p90")
    for job in observed(TRACE)[:60]:
        last.observe(job)
    assert [str(each) for each in last.front.objectives] == ["jct:avg", "unfairness:p90"]
    assert last.config == last.front[len(last.front) - 1].configuration
    last.set_preference("jct:p99")
    assert last.front is None
    last.observe(observed(TRACE)[60])
    assert [str(each) for each in last.front.objectives] == ["jct:p99"]


@pytest.mark.parametrize("on_drift", ["search", "report"])
def test_a_drift_is_reported_and_searched_for(on_drift):
    jobs = observed(TRACE)[:100]
    changed = [job._replace(arrival_s=job.arrival_s + jobs[-1].arrival_s, size_s=100.0 * job.size_s) for job in jobs]
    operator = WfqOperator(gpus=8, on_drift=on_drift, **QUICK)
    for job in jobs:
        operator.observe(job)
    assert operator.drift().look == 1
    assert not operator.drift().drifted
    before = operator.front
    for job in changed[:40]:
        operator.observe(job)
    after = [event for event in operator.events if event.jobs > 60]
    if on_drift == "report":
        assert after == [(140, "drift")]
        assert operator.front is before
        assert operator.drift().drifted
        assert operator.drift().quantity == "sizes"
    else:
        assert after == [(140, "drift"), (140, "front"), (140, "config")]
        assert operator.drift() is None
        # T counts the sizes of the new workload.
        assert operator.front is not before
        for job in changed[40:80]:
            operator.observe(job)
        assert not operator.drift().drifted


def test_observed_jobs_as_a_trace():
    trace = replace(TRACE, min_gpus=np.minimum(2, TRACE.gang_gpus))
    jobs = [job._replace(min_gpus=int(least)) for job, least in zip(observed(trace), trace.min_gpus, strict=True)]
    made, speedups = observed_trace(jobs)
    np.testing.assert_array_equal(speedups.sizes_s(made), trace.size_s)
    np.testing.assert_array_equal(made.min_gpus, trace.min_gpus)
    for index in range(len(trace)):
        np.testing.assert_array_equal(speedups.curve_of(made, index), SPEEDUPS.curve_of(trace, index))


def test_copies_are_apart():
    operator = WfqOperator(gpus=8, **QUICK)
    for copied in (copy.deepcopy(operator), pickle.loads(pickle.dumps(operator))):
        copied.set_wfq_config(TWO)
        copied.observe(observed(TRACE)[0])
        assert copied.config.weights == (Fraction(1, 2), Fraction(1, 2))
    assert (operator.config.queues, operator.jobs_seen, operator.events) == (1, 0, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"least_jobs": 9}, "least_jobs = 9"),
        ({"window": 5}, "window = 5"),
        ({"evaluations": 0}, "evaluations = 0"),
        ({"samples": 0}, "samples = 0"),
        ({"threads": 0}, "threads = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"gpus": 0}, "gpus = 0"),
        ({"alarm_rate": 0.0}, "alarm_rate = 0"),
        ({"on_drift": "panic"}, "on_drift = 'panic': must be one of search, report"),
        ({"pick": "best"}, "pick = 'best': must be a function, or one of jct, pred, balanced"),
        ({"preference": ["jct"]}, r"preference\[0\] = 'jct': needs a measure"),
        ({"preference": []}, "preference = "),
        ({"backend": 3}, "backend = 3"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(InvalidInput, match=message):
        WfqOperator(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size_s": 0.0}, "size_s = 0"),
        ({"arrival_s": -1.0}, "arrival_s = -1.0: the job before arrived at 0"),
        ({"speedups": [0.0]}, "speedups = .*: must begin with"),
        ({"speedups": [0.0, 2.0]}, "speedups = .*: must begin with"),
        ({"min_gpus": 3}, "min_gpus = 3"),
    ],
)
def test_bad_jobs_are_refused_by_name(change, message):
    operator, job = WfqOperator(gpus=8), ObservedJob(0.0, 10.0, [0.0, 1.0, 1.9])
    operator.observe(job)
    with pytest.raises(InvalidInput, match=message):
        operator.observe(job._replace(**change))
    assert operator.jobs_seen == 1


def test_a_search_needs_gpus_and_jobs():
    with pytest.raises(InvalidInput, match="gpus = None: must be given"):
        WfqOperator().update_pareto_front()
    with pytest.raises(InvalidInput, match="gpus = None: must be given"):
        WfqOperator().observe(ObservedJob(0.0, 10.0, [0.0, 1.0]))
    with pytest.raises(InvalidInput, match="jobs_seen = 0: must be at least 10"):
        WfqOperator(gpus=8).update_pareto_front()
    falling = WfqOperator(gpus=8)
    for place in range(10):
        falling.observe(ObservedJob(float(place), 10.0 + place, [0.0, 1.0, 0.9]))
    with pytest.raises(InvalidInput, match=r"speedups\[curve 0\]\[1\] = 0.9: the table falls"):
        falling.update_pareto_front()
    with pytest.raises(InvalidInput, match="gpus = 4: the cluster has 8 GPUs"):
        run(WfqOperator(gpus=4))
