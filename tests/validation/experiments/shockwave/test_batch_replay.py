"""Recorded and replayed batch sizes: the record adds up, and a job alone takes the same time in both engines."""

from itertools import pairwise

import numpy as np
import pytest
from examples import fewer
from hypothesis import given
from hypothesis import strategies as st

from equipoise.heuristics.placement.elastic import PolluxPolicy, divided_batch
from equipoise.simulation import Cluster, RoundRules, Schedule, Trace, exclusive_s, simulate_rounds
from equipoise.simulation.placement import (
    ModelSpeeds,
    ModelTable,
    Move,
    PlacementRules,
    Start,
    Wake,
    simulate_placement,
)
from equipoise.validation.experiments.shockwave.batch_replay import (
    EPOCHS,
    BatchRecorder,
    BatchStretch,
    replayed,
    run_pollux,
)

TABLE = ModelTable.builtin()
SPEEDS = ModelSpeeds(TABLE, 4)


def trace_of(*jobs):
    """Jobs of (model, GPUs, arrival, duration) at the least batch size per GPU."""
    models, gang_gpus, arrival_s, duration_s = zip(*jobs, strict=True)
    sizes = [TABLE.row(model).min_gpu_batch for model in models]
    return Trace(
        job_id=[f"job {index}" for index in range(len(jobs))], model=models, gang_gpus=gang_gpus, batch_size=sizes,
        arrival_s=arrival_s, duration_s=duration_s,
    )  # fmt: skip


class Follow:
    """Runs one job on its gang, and changes its batch size at the times at which each stretch is done."""

    name, knows = "follow", frozenset({"speeds", "durations"})

    def __init__(self, stretches):
        self.coming = list(stretches)

    def decide(self, state):
        for job in state.jobs.values():
            now = self.coming.pop(0)
            size, sub_batch = divided_batch(TABLE.row(job.model), now.total_batch, job.gang_gpus)
            ids = tuple(range(job.gang_gpus))
            yield (Move if job.run else Start)(job.trace_index, ids, size, sub_batch)
            if self.coming:
                work = job.total_s * SPEEDS.rate(state.run_on(job, ids, job.batch_size, job.batch_size))
                share = self.coming[0].progress - now.progress
                yield Wake(state.time_s + share * work / SPEEDS.rate(job.run))


@st.composite
def recorded(draw):
    """Draw one job and stretches of a whole number of the replay's epochs."""
    model = draw(st.sampled_from(TABLE.models))
    row = TABLE.row(model)
    starts = draw(st.lists(st.integers(1, EPOCHS - 1), max_size=5, unique=True).map(sorted))
    totals = st.integers(row.first_batch, row.max_batch)
    stretches = [BatchStretch(start / EPOCHS, draw(totals), 1) for start in [0, *starts]]
    return trace_of((model, draw(st.integers(1, 12)), 0.0, draw(st.floats(2000.0, 20_000.0)))), stretches


@pytest.mark.thorough
@fewer(4)
@given(recorded())
def test_a_job_alone_takes_the_same_time_in_both_engines(job):
    trace, stretches = job
    gpus = 4 * -(-int(trace.gang_gpus[0]) // 4)
    cluster = Cluster(gpus_by_type={"gpu": gpus}, machines=gpus // 4)
    placed = simulate_placement(trace, Follow(stretches), cluster=cluster, speeds=SPEEDS)
    replay, profiles = replayed(trace, SPEEDS, {0: stretches})
    assert exclusive_s(replay, profiles) == pytest.approx(placed.end_s, rel=1e-9)

    class Always:
        name = "always"

        def due(self, state):
            return False

        def decide(self, state):
            return Schedule([{job.id: 0 for job in state.jobs}])

    rules = RoundRules(round_s=1.0, restart_s=0.0, restart_free_s=0.0, overrun=None, follow_schedules=True)
    rounds = simulate_rounds(replay, Always(), gpus=gpus, profiles=profiles, rules=rules)
    # A change comes up to two rounds late, at up to how many times the speed, and rounds up to a whole epoch.
    seconds = [profiles.epoch_s(replay.model[0], size, int(trace.gang_gpus[0])) for size, _ in replay.schedule[0]]
    slack = 1.0 + len(seconds) * (2.0 * max(seconds) / min(seconds) + max(seconds))
    assert rounds.run_s[0] == pytest.approx(placed.end_s[0], abs=slack)


def test_the_record_holds_all_progress_of_every_job_and_changes_nothing():
    jobs = [("cifar10", 2, 0.0, 1500.0), ("bert", 2, 100.0, 900.0), ("yolov3", 4, 130.0, 3000.0)]
    trace = trace_of(*jobs, ("deepspeech2", 1, 700.0, 1200.0), ("ncf", 1, 705.0, 33.0))
    cluster, speeds, rules = Cluster.of(8), ModelSpeeds(TABLE), PlacementRules(restart_s=30.0)
    recorder = BatchRecorder(PolluxPolicy())
    result = simulate_placement(trace, recorder, cluster=cluster, speeds=speeds, rules=rules)
    plain = simulate_placement(trace, PolluxPolicy(), cluster=cluster, speeds=speeds, rules=rules)
    assert result.end_s.tolist() == plain.end_s.tolist()
    assert result.solves["gap"].equals(plain.solves["gap"])
    work = speeds.work(trace)
    for index, stretches in recorder.stretches.items():
        assert len(stretches) == 1 + result.restarts[index] + result.moves[index]
        seconds, gpu_s = 0.0, 0.0
        for now, after in pairwise([*stretches, BatchStretch(1.0, 0, 0)]):
            size, sub_batch = divided_batch(TABLE.row(trace.model[index]), now.total_batch, now.gpus)
            assert size * now.gpus == now.total_batch
            rate = speeds.goodput(trace.model[index], now.gpus, size, sub_batch=sub_batch)
            seconds += (after.progress - now.progress) * work[index] / rate
            gpu_s += now.gpus * (after.progress - now.progress) * work[index] / rate
        assert stretches[0].progress == 0.0
        assert seconds == pytest.approx(result.run_s[index], rel=1e-9)
        assert gpu_s == pytest.approx(result.gpu_s[index], rel=1e-9)
    assert max(map(len, recorder.stretches.values())) > 2


def test_a_replayed_job_keeps_its_gang_and_the_total_batch_within_its_models_range():
    trace = trace_of(("cifar10", 6, 0.0, 2000.0), ("bert", 16, 5.0, 2000.0))
    stretches = {
        0: [BatchStretch(0.0, 360, 1), BatchStretch(0.0, 128, 2), BatchStretch(0.25, 4096, 8)],
        1: [BatchStretch(0.0, 12, 1), BatchStretch(0.5004, 384, 16), BatchStretch(0.5004, 24, 2)],
    }
    replay, profiles = replayed(trace, SPEEDS, stretches)
    assert replay.gang_gpus.tolist() == [6, 16]
    assert replay.arrival_s.tolist() == [0.0, 5.0]
    # The least per GPU are 32 and 4; 4096 samples are 682.7 for each of 6 GPUs, and 682 are the most within 4096.
    assert replay.schedule == (((32, 250), (682, 750)), ((4, 1000),))
    assert profiles.rates.keys() >= {(replay.model[0], 32, 6), (replay.model[0], 682, 6), (replay.model[1], 4, 16)}
    # Half the work at 682 per GPU takes as long as its goodput says, with the efficiency of the larger batch in it.
    goodput = SPEEDS.goodput("cifar10", 6, 682, machines=2)
    assert profiles.epoch_s(replay.model[0], 682, 6) == pytest.approx(SPEEDS.work(trace)[0] / EPOCHS / goodput)


def test_pollux_runs_on_machines_of_four_gpus_with_its_restarts():
    trace = trace_of(("cifar10", 2, 0.0, 1500.0), ("bert", 2, 100.0, 900.0))
    seen = []
    result, stretches = run_pollux(trace, SPEEDS, 8, lambda *step: seen.append(step[2:]))
    assert result.cluster.machines == 2
    assert result.rules.restart_s == 30.0
    assert set(stretches) == {0, 1}
    assert seen[-1] == (2, 2)
    assert set(result.solves["reason"]) <= {"OPTIMAL", "rule"}
    assert np.all(result.end_s > 0)
