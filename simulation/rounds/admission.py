"""Admission of a trace's jobs to the rounds engine: checks against the cluster, and order of arrival."""

from __future__ import annotations

from ...formulations.errors import InvalidInput
from ..profiles.rules import Runs
from ..traces.trace import Trace
from ..traces.trajectory import total_epochs
from .adaptation import Adaptation
from .cluster import RoundCluster
from .job import RoundProgress


def admit_jobs(trace: Trace, cluster: RoundCluster, *, follow_schedules: bool = False) -> list[RoundProgress]:
    """Return the jobs of a trace in their initial state, in order of arrival.

    With `follow_schedules` they change their batch sizes as the trace's `schedule` states.

    Raises
    ------
    InvalidInput
        If the trace has no schedule to follow, a gang exceeds every type, or a job can reach a batch size that no type
        can run; where a job is at fault, the error holds its trace index.
    """
    for trace_index, gang_gpus in enumerate(trace.gang_gpus.tolist()):
        if gang_gpus > max(cluster.counts):
            have = f"the cluster has {max(cluster.counts)}" + (" of one type" if len(cluster.types) > 1 else "")
            why = f"job {trace.job_id[trace_index]!r} is wider than {have}"
            raise InvalidInput("gang_gpus", gang_gpus, why, index=trace_index)
    if follow_schedules and trace.schedule is None:
        raise InvalidInput("schedule", None, "the rule follow_schedules needs a trace with a schedule")
    schedules = trace.schedule if follow_schedules else None
    rank = sorted(range(len(trace)), key=trace.arrival_rank)
    return [
        _job(trace, trace_index, order, cluster, None if schedules is None else schedules[trace_index])
        for order, trace_index in enumerate(rank)
    ]


def _job(trace: Trace, trace_index: int, order: int, cluster: RoundCluster, schedule: Runs | None) -> RoundProgress:
    model, mode, profiles = trace.model[trace_index], trace.mode[trace_index], cluster.profiles[0]
    batch_size, gang_gpus = int(trace.batch_size[trace_index]), int(trace.gang_gpus[trace_index])
    try:
        epochs = total_epochs(trace, trace_index, profiles)
        adaptation = Adaptation(profiles, model, batch_size, gang_gpus, mode, epochs, schedule)
        for size in adaptation.reachable(epochs):
            if not cluster.rates(model, size, gang_gpus).any():
                # Raises InvalidInput with the configurations that have a rate.
                for each, count in zip(cluster.profiles, cluster.counts, strict=True):
                    if gang_gpus <= count:
                        each.steps_per_s(model, size, gang_gpus)
    except InvalidInput as error:
        raise InvalidInput(error.field, error.value, error.why, index=trace_index) from None
    return RoundProgress(
        cluster=cluster,
        adaptation=adaptation,
        id=trace.job_id[trace_index],
        trace_index=trace_index,
        order=order,
        gang_gpus=gang_gpus,
        model=model,
        mode=mode,
        weight=float(trace.weight[trace_index]),
        arrival_s=float(trace.arrival_s[trace_index]),
        batch_size=batch_size,
        total_steps=int(trace.total_steps[trace_index]),
    )
