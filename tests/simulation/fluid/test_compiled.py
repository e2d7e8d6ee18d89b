"""The compiled loops agree with the plain reference on random cases of each policy."""

import numpy as np
import pytest
from fluid_cases import COMPILED, random_case
from hypothesis import example, given
from hypothesis import strategies as st

from equipoise import EquipoiseError, InvalidInput
from equipoise.heuristics import make_policy
from equipoise.simulation import SimulationInterrupted, Trace
from equipoise.simulation.fluid import FluidRules, Speedups, simulate_fluid

SECONDS = ("start_s", "end_s", "run_s", "gpu_s", "predicted_end_s", "bound_s", "contention", "mean_contention")
COUNTS = ("preemptions", "cuts", "restarts")
LEVELS = ("start_s", "end_s", "gpus_busy", "running", "waiting")
STRETCHES = ("trace_index", "start_s", "end_s", "gpus", "gpu_type")


def both(case):
    """Return the results of the reference and of the compiled loops."""
    return [
        simulate_fluid(
            case.trace, case.policy, cluster=case.gpus, speedups=case.speedups, rules=case.rules, compiled=compiled
        )
        for compiled in (False, True)
    ]


@pytest.mark.parametrize("name", COMPILED)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=812)  # under wfq a queue loses its last job to an arrival, and the next one keeps its jobs
def test_both_forms_agree(name, seed):
    case = random_case(name, seed)
    reference, compiled = both(case)
    # Where events are rounded to microseconds, one that rounds the other way moves those after it.
    within = {"rtol": 1e-12, "atol": 2e-5 if case.rules.microseconds else 1e-6}
    for field in SECONDS:
        np.testing.assert_allclose(getattr(compiled, field), getattr(reference, field), err_msg=field, **within)
    for field in COUNTS:
        np.testing.assert_array_equal(getattr(compiled, field), getattr(reference, field), err_msg=field)
    for part, fields in (("levels", LEVELS), ("stretches", STRETCHES)):
        for field in fields:
            mine, other = (getattr(getattr(result, part), field) for result in (compiled, reference))
            np.testing.assert_allclose(mine, other, err_msg=f"{part}.{field}", **within)


def test_both_forms_agree_on_the_metrics():
    reference, compiled = both(random_case("wfq", 11))
    own = {"calls", "solve_s", "slowest_solve_s"}
    for name in reference.metrics.keys() - own:
        assert compiled.metrics[name] == pytest.approx(reference.metrics[name], rel=1e-9), name


class Two:
    """A policy without a rule of compiled loops."""

    name = "two"

    def allocate(self, state):
        return {job.trace_index: 1.0 for job in state.jobs[:2]}

    def timer_s(self, state):
        return float("inf")

    def guaranteed_s(self, state, job):
        return float("nan")


def trace_of(count):
    return Trace(
        job_id=range(count),
        model=["m"] * count,
        gang_gpus=[1] * count,
        arrival_s=np.arange(count),
        size_s=[5.0] * count,
    )


def test_a_policy_without_a_rule_runs_on_the_reference_alone():
    result = simulate_fluid(trace_of(4), Two(), cluster=2, speedups=Speedups.linear(1))
    assert result.end_s.tolist() == [5.0, 6.0, 10.0, 11.0]
    assert result.metrics["calls"] == 8
    with pytest.raises(InvalidInput, match="compiled = True: policy two has no rule"):
        simulate_fluid(trace_of(4), Two(), cluster=2, speedups=Speedups.linear(1), compiled=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_simulation_stops_at_the_most_events(compiled):
    rules = FluidRules(most_steps=5)
    with pytest.raises(EquipoiseError, match=r"5 events passed, and \d jobs have not ended"):
        simulate_fluid(
            trace_of(4), make_policy("fifo", "fluid"), cluster=2, speedups=Speedups.linear(1), rules=rules,
            compiled=compiled,
        )  # fmt: skip


def test_the_loops_report_after_each_batch():
    calls = []
    count = 3000
    simulate_fluid(
        trace_of(count), make_policy("fs", "fluid"), cluster=64, speedups=Speedups.linear(1),
        on_event=lambda *call: calls.append(call),
    )  # fmt: skip
    assert len(calls) > 1
    assert calls[-1][0] == 2 * count - 1
    assert calls[-1][2:] == (count, count)
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_interrupt_carries_the_jobs_that_had_ended(compiled):
    def stop(event, time_s, ended, jobs):
        if ended > 100:
            raise KeyboardInterrupt

    with pytest.raises(SimulationInterrupted) as caught:
        simulate_fluid(
            trace_of(3000), make_policy("las", "fluid"), cluster=64, speedups=Speedups.linear(1),
            rules=FluidRules(predict=True), on_event=stop, compiled=compiled,
        )  # fmt: skip
    jobs = caught.value.jobs
    assert 100 < len(jobs) < 3000
    assert caught.value.total == 3000
    assert (jobs["end_s"] == jobs["arrival_s"] + 5.0).all()
    assert (jobs["predicted_end_s"] == jobs["end_s"]).all()
