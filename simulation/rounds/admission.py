"""Jobs at the door of the rounds engine: checked against the cluster, and in order of arrival."""

from __future__ import annotations

from ...formulations.errors import InvalidInput
from ..traces.trace import Trace
from .adaptation import Adaptation
from .cluster import RoundCluster
from .job import RoundProgress


def enter_jobs(trace: Trace, cluster: RoundCluster) -> list[RoundProgress]:
    """Return the jobs of a trace at their start, by arrival, ties by id (numbers before text).

    So the order of the trace's rows changes nothing.

    Raises
    ------
    InvalidInput
        If a gang is wider than every type, or a job can come to a batch size that no type can run; the message names
        the job's position in the trace.
    """
    for place, gang in enumerate(trace.num_gpus.tolist()):
        if gang > max(cluster.counts):
            have = f"the cluster has {max(cluster.counts)}" + (" of one type" if len(cluster.types) > 1 else "")
            raise InvalidInput("num_gpus", gang, f"job {trace.job_id[place]!r} is wider than {have}", index=place)
    rank = sorted(
        range(len(trace)), key=lambda i: (trace.arrival_s[i], isinstance(trace.job_id[i], str), trace.job_id[i])
    )
    return [_job(trace, place, order, cluster) for order, place in enumerate(rank)]


def _job(trace: Trace, place: int, order: int, cluster: RoundCluster) -> RoundProgress:
    model, batch_size, gang = trace.model[place], int(trace.batch_size[place]), int(trace.num_gpus[place])
    profiles = cluster.profiles[0]
    try:
        if trace.total_epochs is None:
            epochs = profiles.total_epochs(model, batch_size, int(trace.total_steps[place]))
        else:
            epochs = int(trace.total_epochs[place])
        adaptation = Adaptation(profiles, model, batch_size, gang, trace.mode[place], epochs)
        for size in adaptation.reachable(epochs):
            if not cluster.rates(model, size, gang).any():
                # The profiles say best what they know instead.
                for each, count in zip(cluster.profiles, cluster.counts, strict=True):
                    if gang <= count:
                        each.steps_per_s(model, size, gang)
    except InvalidInput as error:
        raise InvalidInput(error.field, error.value, error.why, index=place) from None
    return RoundProgress(
        cluster,
        adaptation,
        id=trace.job_id[place],
        place=place,
        order=order,
        gang=gang,
        model=model,
        mode=trace.mode[place],
        weight=float(trace.weight[place]),
        arrival_s=float(trace.arrival_s[place]),
        batch_size=batch_size,
        total_steps=int(trace.total_steps[place]),
    )
