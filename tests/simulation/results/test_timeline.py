"""Levels and stretches: those of the rounds engine are its rounds and runs, and the log keeps what it is given."""

import numpy as np
import pytest

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.simulation import (
    Cluster,
    Profiles,
    RoundResult,
    SimulationInterrupted,
    generate_trace,
    simulate,
    simulate_rounds,
)
from equipoise.simulation.results.timeline import StretchLog

TRACE = generate_trace(np.random.default_rng(8), num_jobs=25, mean_interarrival_s=200.0)
TYPES = {"old": 8, "new": 8}


def run(policy, **options):
    profiles = dict.fromkeys(TYPES, Profiles.builtin())
    return simulate_rounds(TRACE, make_policy(policy), gpus=TYPES, profiles=profiles, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["las", "gavel"])
def test_levels_are_the_rounds_and_stretches_the_runs(policy):
    result = run(policy)
    rounds, runs = result.rounds, result.runs
    for level, name in zip(
        result.levels.to_frame(), ("start_s", "end_s", "gpus_busy", "jobs_running", "jobs_waiting"), strict=True
    ):
        assert np.array_equal(result.levels.to_frame()[level], rounds[name])
    # Each run of a job in a round lies in exactly one stretch of the job, on the same GPUs.
    stretches = result.stretches
    ids = stretches.ids()
    held = {}
    for row in range(len(stretches)):
        inside = rounds[(rounds["start_s"] >= stretches.start_s[row]) & (rounds["end_s"] <= stretches.end_s[row])]
        for number in inside["round"]:
            key = number, TRACE.job_id[stretches.trace_index[row]]
            assert key not in held
            held[key] = tuple(ids[row].tolist()), stretches.gpu_type[row]
    offset = {"old": 0, "new": 8}
    expected = {
        (number, job): (tuple(gpu + offset[kind] for gpu in gpus), list(TYPES).index(kind))
        for number, job, kind, gpus in runs[["round", "job_id", "gpu_type", "gpu_ids"]].itertuples(index=False)
    }
    assert held == expected
    # A stretch begins wherever a lease was not extended, and nowhere else.
    assert len(stretches) == (~runs["lease_extended"]).sum()
    assert result.metrics["lease_extensions"] == runs["lease_extended"].sum()
    assert result.metrics["lease_opportunities"] == (~runs["first"]).sum()


@pytest.mark.parametrize("at", [3, 40])
def test_an_interrupted_run_keeps_whole_rounds_alone(at):
    class Interrupting:
        name = "interrupting"

        def __init__(self):
            self.policy = make_policy("las")
            self.due, self.calls = self.policy.due, 0

        def decide(self, state):
            self.calls += 1
            if self.calls > at:
                raise KeyboardInterrupt
            return self.policy.decide(state)

    with pytest.raises(SimulationInterrupted) as caught:
        simulate_rounds(TRACE, Interrupting(), gpus=8, profiles=Profiles.builtin())
    assert len(caught.value.rounds) == at


@pytest.mark.thorough
def test_a_run_that_is_not_recorded_has_the_same_figures():
    whole, bare = run("las"), run("las", record=False)
    timed = {"solve_s", "slowest_solve_s"}
    assert {k: v for k, v in bare.metrics.items() if k not in timed} == {
        k: v for k, v in whole.metrics.items() if k not in timed
    }
    assert bare.jobs.equals(whole.jobs)
    assert bare.rounds.equals(whole.rounds)
    assert bare.stretches is None
    for name in ("runs", "schedule"):
        with pytest.raises(eq.InvalidInput, match="record = False: the runs were not recorded"):
            getattr(bare, name)
    with pytest.raises(eq.InvalidInput, match="record"):
        run("las", record="no")


@pytest.mark.thorough
def test_simulate_is_simulate_rounds_for_a_policy_of_rounds():
    cluster = Cluster(gpus_by_type={"gpu": 16}, machines=4)
    steps = []
    found = simulate(
        TRACE, make_policy("fifo"), cluster=cluster, speeds=Profiles.builtin(), on_step=lambda *args: steps.append(args)
    )
    own = simulate_rounds(TRACE, make_policy("fifo"), gpus=16, profiles=Profiles.builtin())
    assert isinstance(found, RoundResult)
    assert (found.engine, found.cluster) == ("rounds", cluster)
    assert found.jobs.equals(own.jobs)
    assert steps[-1] == (len(own.rounds) - 1, own.end_s.max(), 25, 25)
    assert {cluster.tier(ids) for ids in found.stretches.ids()} <= {0, 1}


def test_figures_of_some_jobs_are_those_of_their_rows():
    result = run("gavel")
    everyone = result.of(np.ones(len(TRACE), dtype=bool))
    for name in ("makespan_s", "avg_jct_s", "worst_ftf", "unfair_pct", "utilisation"):
        assert everyone[name] == result.metrics[name]
    wide = TRACE.gang_gpus > 1
    jobs = result.jobs[wide]
    some = result.of(wide)
    assert some["median_jct_s"] == np.median(jobs["jct_s"])
    assert some["avg_queue_s"] == pytest.approx((jobs["start_s"] - jobs["arrival_s"]).mean())
    assert some["worst_ftf"] == jobs["ftf"].max()
    with pytest.raises(eq.InvalidInput, match="which = 'all False'"):
        result.of(np.zeros(len(TRACE), dtype=bool))


def test_the_log_ends_what_is_open_and_leaves_out_what_starts_too_late():
    log = StretchLog()
    log.start(3, 0.0, 1.5)
    log.start(1, 2.0, 0.5, gpu_type=1)
    log.stop(3, 4.0)
    log.stop(3, 5.0)  # it holds nothing any more
    log.start(3, 6.0, 1.0)
    log.start(0, 9.0, 1.0)
    found = log.stretches(9.0)
    assert found.trace_index.tolist() == [3, 1, 3]
    assert found.start_s.tolist() == [0.0, 2.0, 6.0]
    assert found.end_s.tolist() == [4.0, 9.0, 9.0]
    assert found.gpus.tolist() == [1.5, 0.5, 1.0]
    assert found.gpu_type.tolist() == [0, 1, 0]
    assert found.gpu_ids is None
    assert len(StretchLog().stretches(1.0)) == 0
