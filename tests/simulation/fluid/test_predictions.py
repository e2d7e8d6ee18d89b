"""Predictions and guarantees: the example of PCS's Fig. 1, exact predictions of FIFO, and bounds that hold."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fluid_cases import COMPILED, PCS, random_case, random_config, random_speedups, random_trace, with_least_gpus
from hypothesis import given
from hypothesis import strategies as st

from equipoise import InvalidInput, WfqConfig
from equipoise.heuristics import make_policy
from equipoise.simulation import Trace
from equipoise.simulation.fluid import FluidRules, Speedups, predict_completion, simulate_fluid
from equipoise.simulation.fluid.prediction import play_out

# Jobs of PCS's Fig. 1 on one GPU: arrival and size.
TOY = ((0.0, 10.0), (0.0, 8.0), (1.0, 1.0), (10.0, 8.0))
# Guarantees and ends are sums in different orders.
SLACK = 1e-9


def trace_of(*jobs, gpus=1):
    arrivals, sizes = zip(*jobs, strict=True)
    count = len(jobs)
    return Trace(job_id=range(count), model=["m"] * count, gang_gpus=[gpus] * count, arrival_s=arrivals, size_s=sizes)


def run(trace, policy, gpus, speedups, **rules):
    rules = FluidRules(**{"predict": True, **rules})
    return simulate_fluid(trace, policy, cluster=gpus, speedups=speedups, rules=rules, compiled=False)


# -- The example of Fig. 1 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "jct_s", "error_pct"),
    [
        ("srsf", {}, 11.25, (170.0 + 12.5) / 4),
        ("themis", {"lease_s": 1.0}, 13.5, (90.0 + 100.0 / 15.0) / 4),
        ("themis", {}, 14.0, 100.0 / 18.0 / 4),
        ("fifo", {}, 15.75, 0.0),
    ],
)
def test_the_example_of_the_paper(name, options, jct_s, error_pct):
    result = run(trace_of(*TOY), make_policy(name, "fluid", **options), 1, Speedups.linear(1))
    assert result.metrics["avg_jct_s"] == jct_s
    assert result.metrics["avg_error_pct"] == pytest.approx(error_pct, rel=1e-12)


def test_the_example_is_that_of_the_paper():
    path = PCS / "paper" / "toy.json"
    if not path.exists():
        pytest.skip("the paper's example is not there")
    toy = json.loads(path.read_text(encoding="utf-8"))
    assert [(job["arrival"], job["size"]) for job in toy["jobs"]] == list(TOY)
    assert toy["mean_jct"] == {"tiresias": 11.25, "themis": 13.5, "fifo": 15.75}
    errors = {"tiresias": 45.625, "themis": 24.1667, "fifo": 0.0}
    assert toy["mean_pred_error_pct"] == {name: round(error) for name, error in errors.items()}


def test_themis_is_not_free_of_unfairness_in_the_example():
    """The paper prints 0; job 4 exceeds its fair time with contention by event and by time."""
    result = run(trace_of(*TOY), make_policy("themis", "fluid", lease_s=1.0), 1, Speedups.linear(1))
    assert result.unfairness == pytest.approx([0.0, 0.0, 0.0, 0.092857142857], rel=1e-9)
    assert result.mean_unfairness == pytest.approx([0.0, 0.0, 0.0, 0.12890625], rel=1e-9)


# -- Predictions -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
def test_elastic_fifo_predicts_exactly(seed):
    rng = np.random.default_rng(seed)
    result = run(random_trace(rng), make_policy("fifo", "fluid"), int(rng.integers(1, 9)), random_speedups(rng))
    np.testing.assert_allclose(result.predicted_end_s, result.end_s, rtol=1e-12, atol=1e-9)


def test_las_forgets_attained_service_in_a_prediction():
    # Job 1 arrives when job 0 has 1 s left of 6: with attained service job 1 would come first.
    result = run(trace_of((0.0, 6.0), (5.0, 2.0)), make_policy("las", "fluid"), 1, Speedups.linear(1))
    assert result.end_s.tolist() == [8.0, 7.0]
    assert result.predicted_end_s[0] == 6.0
    # Both start from none. The present answer, job 1, stays until the next event: it ends.
    assert result.predicted_end_s[1] == 7.0


def test_a_prediction_changes_neither_state_nor_policy():
    trace = trace_of((0.0, 60.0), (0.0, 60.0), (5.0, 30.0), gpus=2)
    config = WfqConfig(thresholds=[math.inf], weights=[1])
    for policy in (
        make_policy("wfq", "fluid", config=config, integral=True, quantum_s=7.0),
        make_policy("themis", "fluid", lease_s=3.0),
    ):
        plain, predicting = (run(trace, policy, 3, Speedups.linear(2), predict=predict) for predict in (False, True))
        np.testing.assert_array_equal(plain.end_s, predicting.end_s)
        np.testing.assert_array_equal(plain.contention, predicting.contention)


class Recording:
    """Another policy, which also predicts the ends of all present jobs at each arrival."""

    rule = None

    def __init__(self, policy):
        self.policy, self.name, self.found = policy, policy.name, []
        self.timer_s = policy.timer_s

    def allocate(self, state):
        return self.policy.allocate(state)

    def guaranteed_s(self, state, job):
        if state.event == "arrival" and job is state.jobs[-1]:
            present = [each.trace_index for each in state.jobs]
            self.found.append([predict_completion(state, self.policy, index) for index in present])
        return self.policy.guaranteed_s(state, job)


def test_every_present_job_can_be_predicted():
    policy = Recording(make_policy("fifo", "fluid"))
    run(trace_of((0.0, 6.0), (1.0, 4.0)), policy, 1, Speedups.linear(1))
    assert [[end_s for end_s, _ in row] for row in policy.found] == [[6.0], [6.0, 10.0]]


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMPILED)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_compiled_prediction_is_the_plain_one(name, seed):
    """At each arrival, for one of the jobs present, in whatever order the policy has put them."""
    case = random_case(name, seed)
    within = {"rel": 1e-12, "abs": 2e-5 if case.rules.microseconds else 1e-6}

    class Both(Recording):
        def guaranteed_s(self, state, job):
            if state.event == "arrival" and job.rank == max(each.rank for each in state.jobs):
                each = state.jobs[seed % len(state.jobs)]
                predicted = predict_completion(state, self.policy, each.trace_index)
                plain = play_out(state, self.policy, each)
                assert predicted.end_s == pytest.approx(plain.end_s, **within)
                assert predicted.bound_s == pytest.approx(plain.bound_s, nan_ok=True)
                self.found.append(predicted)
            return math.nan

    policy, trace = Both(case.policy), case.trace.select(range(min(12, len(case.trace))))
    rules = replace(case.rules, predict=True)
    simulate_fluid(trace, policy, cluster=case.gpus, speedups=case.speedups, rules=rules)
    assert policy.found


def test_a_prediction_changes_nothing():
    case = random_case("integral", 7)
    held = []

    class Asking(Recording):
        def guaranteed_s(self, state, job):
            before = [vars(each).copy() for each in state.jobs]
            turns = self.policy.rule.turns
            predict_completion(state, self.policy, job.trace_index)
            assert [vars(each) for each in state.jobs] == before
            assert self.policy.rule.turns == turns
            held.append(len(before))
            return math.nan

    rules = FluidRules(predict=True)
    simulate_fluid(case.trace, Asking(case.policy), cluster=case.gpus, speedups=case.speedups, rules=rules)
    assert max(held) > 1


def test_a_job_that_is_not_there_is_refused():
    class Asking(Recording):
        def guaranteed_s(self, state, job):
            return predict_completion(state, self.policy, 5).end_s

    with pytest.raises(InvalidInput, match="job = 5: no such job has arrived and not ended"):
        run(trace_of((0.0, 6.0)), Asking(make_policy("fifo", "fluid")), 1, Speedups.linear(1))


# -- Guarantees --------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1))
def test_no_job_ends_after_its_guarantee(seed):
    """Random queues and speedups, which may fall, and arrivals that come one by one or all at once."""
    rng = np.random.default_rng(seed)
    policy = make_policy("wfq", "fluid", config=random_config(rng))
    trace = random_trace(rng, 40)
    result = run(trace, policy, int(rng.integers(1, 14)), random_speedups(rng))
    assert np.isfinite(result.bound_s).all()
    assert (result.end_s <= result.bound_s * (1.0 + SLACK)).all()
    assert (result.predicted_end_s <= result.bound_s * (1.0 + SLACK)).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_no_job_with_least_gpus_ends_after_its_guarantee(seed):
    """A share below the least GPUs of a job ahead gives no finite guarantee."""
    rng = np.random.default_rng(seed)
    config, speedups, gpus = random_config(rng), random_speedups(rng), int(rng.integers(1, 14))
    trace = with_least_gpus(rng, random_trace(rng, 40), speedups, gpus)
    result = run(trace, make_policy("wfq", "fluid", config=config), gpus, speedups)
    assert not np.isnan(result.bound_s).any()
    assert (result.end_s <= result.bound_s * (1.0 + SLACK)).all()
    queues = np.searchsorted(config.thresholds, trace.size_s)
    shares = np.array([float(weight * gpus) for weight in config.weights])
    # The guarantee of the first job to arrive counts it alone.
    first = int(np.lexsort((trace.job_id, trace.arrival_s))[0])
    lacks = trace.min_gpus[first] > 1 and shares[queues[first]] < trace.min_gpus[first]
    assert np.isinf(result.bound_s[first]) == lacks


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32 - 1), when=st.floats(0.0, 1.0))
def test_a_flood_of_arrivals_moves_no_job_beyond_its_guarantee(seed, when):
    """Guarantees given before a flood, in all queues, are those without it, and hold."""
    rng = np.random.default_rng(seed)
    config, speedups, gpus = random_config(rng), random_speedups(rng), int(rng.integers(1, 9))
    trace = random_trace(rng, 15)
    alone = run(trace, make_policy("wfq", "fluid", config=config), gpus, speedups)
    flood_s = when * float(alone.end_s.max())
    early = np.flatnonzero(trace.arrival_s < flood_s)
    count = 60
    flooded = Trace(
        job_id=[*trace.job_id, *range(len(trace), len(trace) + count)],
        model=[*trace.model, *rng.choice(["a", "b", "c"], count).tolist()],
        gang_gpus=[*trace.gang_gpus, *rng.integers(1, 8, count)],
        arrival_s=[*trace.arrival_s, *np.full(count, flood_s)],
        size_s=[*trace.size_s, *rng.uniform(1.0, 500.0, count)],
    )
    result = run(flooded, make_policy("wfq", "fluid", config=config), gpus, speedups)
    np.testing.assert_allclose(result.bound_s[early], alone.bound_s[early], rtol=1e-9)
    assert (result.end_s <= result.bound_s * (1.0 + SLACK)).all()


@pytest.mark.parametrize(("busy", "end_s"), [(True, 10.0), (False, 100.0 / 2.8 + 10.0 / 2.8)])
def test_playing_out_the_share_of_a_queue_is_no_guarantee(busy, end_s):
    """More GPUs starve the second job: with the other queue busy it ends at 10 s, with it idle at 39.3 s."""
    speedups = Speedups(tables={"m": [1.0, 1.4, 2.1, 2.8]})
    config = WfqConfig(thresholds=[500.0, math.inf], weights=["1/2", "1/2"], zeta=0.8, delta=0.01)
    jobs = [(0.0, 100.0), (0.0, 10.0), *([(0.0, 1e6)] if busy else [])]
    result = run(trace_of(*jobs, gpus=4), make_policy("wfq", "fluid", config=config), 4, speedups)
    assert result.end_s[1] == pytest.approx(end_s, rel=1e-12)
    assert result.bound_s[1] == pytest.approx(110.0, rel=1e-12)


def test_a_later_job_of_the_same_queue_may_delay_an_earlier_one():
    """So predictions with a cap are not exact, even in one queue: the cap is relaxed later."""
    speedups = Speedups(tables={"m": [1.0, 1.4]})
    config = WfqConfig(thresholds=[math.inf], weights=[1], zeta=0.8, delta=0.1)
    result = run(trace_of((0.0, 14.0), (5.0, 50.0), gpus=2), make_policy("wfq", "fluid", config=config), 2, speedups)
    assert result.predicted_end_s[0] == pytest.approx(10.0)
    assert result.end_s[0] == pytest.approx(12.0)
    assert result.end_s[0] <= result.bound_s[0] == pytest.approx(14.0)


@pytest.mark.parametrize(
    ("options", "rules"),
    [({"integral": True}, {}), ({}, {"preemption_s": 1.0}), ({}, {"size_error_pct": 10.0})],
)
def test_without_its_conditions_there_is_no_guarantee(options, rules):
    policy = make_policy("wfq", "fluid", **options)
    result = run(trace_of((0.0, 5.0), (1.0, 5.0)), policy, 1, Speedups.linear(1), **rules)
    assert np.isnan(result.bound_s).all()


def test_a_share_that_counts_as_no_gpu_guarantees_nothing():
    config = WfqConfig(thresholds=[10.0, math.inf], weights=[Fraction(1999, 2000), Fraction(1, 2000)])
    result = run(trace_of((0.0, 5.0), (0.0, 50.0)), make_policy("wfq", "fluid", config=config), 1, Speedups.linear(1))
    assert result.bound_s.tolist()[0] == pytest.approx(5.0 * 2000 / 1999)
    assert result.bound_s[1] == math.inf
    assert result.end_s == pytest.approx([5.0 * 2000 / 1999, 50.0 + 5.0 * 2000 / 1999])
