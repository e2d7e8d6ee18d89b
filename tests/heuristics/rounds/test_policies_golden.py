"""The rivals on the released 120-job trace against the released code's own runs, and its single policy calls."""

import json

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from shared_data import SHOCKWAVE

from equipoise.heuristics import make_policy
from equipoise.simulation import Profiles, Trace, simulate_rounds
from equipoise.simulation.rounds.policy import RoundJob, RoundState

pytestmark = pytest.mark.skipif(not SHOCKWAVE.is_dir(), reason="shared/data/shockwave is not here")

# Policy, its name in the golden file, and how near makespan and average JCT have to be (Gavel's optimum is unique while
# jobs outnumber GPUs; those of the others are not at all).
GOLDEN = (
    ("gavel", "max_min_fairness", 0.005),
    ("mst", "max_sum_throughput_perf", 0.03),
    ("ossp", "min_total_duration", 0.03),
    ("themis", "finish_time_fairness", 0.03),
    ("allox", "allox", 0.03),
)


def run(name, **options):
    trace, profiles = Trace.read(SHOCKWAVE / "trace_120.csv"), Profiles.read(SHOCKWAVE, "tacc")
    return simulate_rounds(trace, make_policy(name, **options), gpus=32, profiles=profiles)


def golden(name):
    runs = json.loads((SHOCKWAVE / "golden_120_32gpu.json").read_text(encoding="utf-8"))
    return runs[f"{name}|canonical|simulation"]


def test_gandiva_fair_is_the_released_run_job_by_job():
    result, wanted = run("gandiva-fair"), golden("gandiva_fair")
    jobs = result.jobs.sort_values("job_id")
    assert np.abs(jobs.jct_s.to_numpy() - wanted["jct_list"]).max() < 1e-6
    assert np.abs(jobs.ftf.to_numpy() - wanted["finish_time_fairness_list"]).max() < 1e-5
    assert result.metrics["makespan_s"] == pytest.approx(wanted["makespan_s"], abs=1e-6)
    schedules = json.loads((SHOCKWAVE / "golden_120_32gpu_schedules.json").read_text(encoding="utf-8"))
    assert [sorted(ids) for ids in result.schedule] == [
        sorted(ids) for ids in schedules["gandiva_fair|canonical|simulation"]
    ]


def test_isolated_is_the_released_code_run_here():
    metrics = run("isolated").metrics
    assert (round(metrics["makespan_s"]), round(metrics["avg_jct_s"])) == (33208, 11268)
    assert (round(metrics["worst_ftf"], 2), round(metrics["unfair_pct"], 1)) == (2.95, 25.0)


@pytest.mark.parametrize(("policy", "name", "near"), GOLDEN)
def test_the_rivals_land_where_the_released_code_does(policy, name, near):
    result, wanted = run(policy), golden(name)
    assert result.metrics["makespan_s"] == pytest.approx(wanted["makespan_s"], rel=near)
    assert result.metrics["avg_jct_s"] == pytest.approx(wanted["avg_jct_s"], rel=near)
    solved = result.solves[result.solves.reason != "rule"]
    assert len(solved) > 15
    assert (solved.reason == "OPTIMAL").all()
    assert (solved.gap <= 1e-6).all()


def calls(name):
    if not SHOCKWAVE.is_dir():
        return []
    return json.loads((SHOCKWAVE / "policy_call_fixtures.json").read_text(encoding="utf-8"))[name]


def state_of(call):
    """Return the state of the cluster at a recorded call."""

    def no_state():
        raise AssertionError("rivals read no JobState")

    columns = (call["job_id"], call["scale_factor"], call["throughput"], call["steps_remaining"])
    jobs = tuple(
        RoundJob(
            id=name, trace_index=name, gpus=gang, model="m", mode="static", weight=1.0,
            arrival_s=call["time_s"] - since,
            batch_size=1, initial_batch_size=1, steps_run=0, total_steps=steps, steps_per_epoch=1,
            rates=np.array([rate]), attained_s=0.0, running=False, make_state=no_state,
        )
        for name, gang, rate, steps, since in zip(*columns, call["time_since_arrival_s"], strict=True)
    )  # fmt: skip
    return RoundState(
        round=1, time_s=call["time_s"], round_s=120.0, gpu_types=("gpu",), gpus=np.array([call["num_gpus"]]),
        jobs=jobs, arrived=1, completed=0, rescaled=0, since_call_s=1080.0,
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["gandiva-fair", "isolated"])
def test_rules_give_the_recorded_allocations(policy):
    for call in calls(policy.replace("-", "_")):
        assert make_policy(policy).decide(state_of(call)).values[:, 0] == pytest.approx(call["allocation"], abs=1e-6)


@pytest.mark.parametrize(
    ("policy", "name", "optimum"),
    [
        ("ossp", "min_total_duration", "T_closed_form_s"),
        ("gavel", "max_min_fairness", "objective_closed_form"),
        ("mst", "max_sum_throughput_perf", "objective_closed_form"),
    ],
)
def test_recorded_calls_reach_the_closed_form(policy, name, optimum):
    for call in calls(name):
        decided = make_policy(policy).decide(state_of(call))
        assert decided.evidence.objective == pytest.approx(call[optimum], rel=1e-6)
        shares, gang_gpus = decided.values[:, 0], np.array(call["scale_factor"])
        rates, steps = np.array(call["throughput"]), np.array(call["steps_remaining"])
        assert gang_gpus @ shares <= call["num_gpus"] * (1 + 1e-9)
        # What the shares are worth, from the record alone.
        if policy == "ossp":
            worth = (steps / (rates * shares)).max()
        else:
            worth = (gang_gpus * shares).min() if policy == "gavel" else rates @ shares
        assert worth == pytest.approx(call[optimum], rel=1e-6)


def test_recorded_calls_of_finish_time_fairness_reach_the_closed_form():
    for call in calls("finish_time_fairness"):
        now = state_of(call)
        policy = make_policy("themis")
        rates, steps = np.array(call["throughput"]), np.array(call["steps_remaining"])
        before = np.array(call["cumulative_isolated_time_s"])
        # A call before, at which each job had so many steps more to go that C_j comes out as recorded.
        isolated = rates * np.minimum(1.0, call["num_gpus"] / (len(steps) * np.array(call["scale_factor"])))
        assert isolated == pytest.approx(call["isolated_throughput"], rel=1e-6)
        past = dict(call, steps_remaining=(steps + before * isolated).tolist())
        policy.decide(state_of(past))
        assert policy.isolated_elapsed_s(now) == pytest.approx(before, rel=1e-9, abs=1e-6)
        decided = policy.decide(now)
        assert decided.evidence.objective == pytest.approx(call["rho_closed_form"], rel=1e-6)
        took = np.array(call["time_since_arrival_s"]) + steps / (rates * decided.values[:, 0])
        assert (took / (before + steps / isolated)).max() == pytest.approx(call["rho_closed_form"], rel=1e-6)


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_recorded_calls_of_allox_reach_the_cost_of_the_best_matching(alpha):
    for call in calls("allox"):
        now = state_of(call)
        policy = make_policy("allox", alpha=alpha)
        matched = policy.matched(now)
        gpus, count = call["num_gpus"], len(matched)
        assert count == min(len(now.jobs), max(int(alpha * len(now.jobs)), gpus))
        seconds = np.array([now.jobs[at].steps_left / now.jobs[at].rates[0] for at in matched])
        slots = np.repeat(np.arange(1, -(-count // gpus) + 1), gpus)
        costs = np.outer(seconds, slots)
        best = costs[linear_sum_assignment(costs)].sum() + sum(now.time_s - now.jobs[at].arrival_s for at in matched)
        decided = policy.decide(now)
        assert decided.evidence.objective == pytest.approx(best, rel=1e-9)
        if alpha == 0.2:  # nobody had anything to keep, and all that are matched run: what was recorded
            assert decided.values[:, 0].tolist() == call["allocation"]
