"""Batch sizes that Pollux chose on elastic gangs, recorded and replayed by fixed ones in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....heuristics.placement.elastic import ElasticPolicy, PolluxPolicy, divided_batch
from ....simulation import Cluster, Evidence, Profiles, Trace
from ....simulation.placement import (
    TICK_S,
    Action,
    ModelSpeeds,
    Move,
    PlacementResult,
    PlacementRules,
    PlacementState,
    Start,
    simulate_placement,
)
from ....simulation.profiles.rules import extend_runs
from ....simulation.results.interrupt import OnStep

# GPUs of a machine of Pollux's testbed.
MACHINE_GPUS = 4
# An epoch of a replayed job is this part of its work. Its samples are so many that whole steps round nothing.
EPOCHS, EPOCH_SAMPLES = 1_000, 10**9


class BatchStretch(NamedTuple):
    """Training at one total batch size on so many GPUs, from a share of the job's work on up to its next stretch."""

    progress: float
    total_batch: int
    gpus: int


class BatchRecorder:
    """Policy that decides as an elastic one does, and records each job's batch sizes.

    Parameters
    ----------
    policy : ElasticPolicy

    Attributes
    ----------
    stretches : dict of int to list of BatchStretch
        Stretches of each job so far, by trace index. A job that is started again before it makes progress has two
        stretches from the same progress on.
    """

    def __init__(self, policy: ElasticPolicy) -> None:
        self.policy = policy
        self.name = policy.name
        self.knows: frozenset[str] = policy.knows | {"durations"}
        self.stretches: dict[int, list[BatchStretch]] = {}

    @property
    def evidence(self) -> Evidence:
        """Evidence of the elastic policy's latest call."""
        return self.policy.evidence

    def decide(self, state: PlacementState) -> Iterator[Action]:
        """Yield the elastic policy's actions; record the batch of each start and move once it has taken effect."""
        for action in self.policy.decide(state):
            yield action
            if isinstance(action, Start | Move):
                job = state.running[action.trace_index]
                run = job.run
                assert run is not None, "the job has started"
                stretch = BatchStretch(1.0 - job.remaining_s / job.total_s, run.gpus * run.batch_size, run.gpus)
                self.stretches.setdefault(job.trace_index, []).append(stretch)


def run_pollux(
    trace: Trace, speeds: ModelSpeeds, gpus: int, on_event: OnStep | None = None, *, restart_s: float = 30.0
) -> tuple[PlacementResult, Mapping[int, Sequence[BatchStretch]]]:
    """Run `pollux` on machines of 4 GPUs; return the result, and the stretches of each job by trace index."""
    recorder = BatchRecorder(PolluxPolicy(restart_s=max(restart_s, TICK_S)))  # the policy needs a positive value
    cluster = Cluster(gpus_by_type={"gpu": gpus}, machines=gpus // MACHINE_GPUS)
    rules = PlacementRules(restart_s=restart_s)
    result = simulate_placement(trace, recorder, cluster=cluster, speeds=speeds, rules=rules, on_event=on_event)
    return result, recorder.stretches


def replayed(
    trace: Trace, speeds: ModelSpeeds, stretches: Mapping[int, Sequence[BatchStretch]]
) -> tuple[Trace, Profiles]:
    """Return the jobs with recorded batch sizes as their schedules on the gangs they ask for, and their profiles.

    Parameters
    ----------
    trace : Trace
    speeds : ModelSpeeds
        Speeds with which the stretches were recorded.
    stretches : mapping of int to sequence of BatchStretch
        Stretches of every job, by trace index.

    Returns
    -------
    Trace
        For the rule `follow_schedules` of the rounds engine.
    Profiles
        One model for each job.

    Notes
    -----
    An epoch is 1/1000 of a job's work, and takes the time that the job needs for this progress: the rates are
    goodputs, throughput times statistical efficiency, on as few machines as possible. So a job alone on its gang takes
    the same time as in the placement engine. Rounded are the ends of stretches, to whole epochs, and the total batch
    size, to whole samples per GPU within the model's range (`divided_batch`).
    """
    work = speeds.work(trace)
    models, schedules, rates = [], [], {}
    for index, model in enumerate(trace.model):
        row, gpus = speeds.table.row(model), int(trace.gang_gpus[index])
        machines = 1 if speeds.gpus_per_machine is None else -(-gpus // speeds.gpus_per_machine)
        name, runs, finished = f"{model} of job {trace.job_id[index]}", list[tuple[int, int]](), 0
        mine = stretches[index]
        for stretch, end in zip(mine, [*(round(EPOCHS * after.progress) for after in mine[1:]), EPOCHS], strict=True):
            size, sub_batch = divided_batch(row, stretch.total_batch, gpus)
            goodput = speeds.goodput(model, gpus, size, sub_batch=sub_batch, machines=machines)
            rates[name, size, gpus] = EPOCH_SAMPLES / size * goodput * EPOCHS / work[index]
            extend_runs(runs, size, end - finished)
            finished = end
        models.append(name)
        schedules.append(tuple(runs))
    profiles = Profiles(
        name="replay", rates=rates, dataset_sizes=dict.fromkeys(models, EPOCH_SAMPLES), max_batch_sizes={}
    )
    first = [runs[0][0] for runs in schedules]
    replay = Trace(
        job_id=trace.job_id,
        model=models,
        batch_size=np.array(first),
        gang_gpus=trace.gang_gpus,
        arrival_s=trace.arrival_s,
        total_steps=np.array([EPOCHS * profiles.steps_per_epoch(*each) for each in zip(models, first, strict=True)]),
        schedule=schedules,
    )
    return replay, profiles
