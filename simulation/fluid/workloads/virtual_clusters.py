"""Jobs of one virtual cluster, out of a trace of durations that names the virtual cluster of each job."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ....formulations.errors import InvalidInput
from ....formulations.text import nearest_hint
from ...traces.durations import is_duration_trace, virtual_clusters
from ...traces.readers import read_trace
from ...traces.trace import Trace
from ..speedups import Speedups
from .drawn_models import REALISTIC, draw_models

# A message lists so many virtual clusters at most.
_LISTED = 20


def virtual_cluster_jobs(trace: Trace, path: str | Path, cluster: str) -> Trace:
    """Return the jobs of a trace whose virtual cluster has this name.

    The virtual cluster is the column `model` of a CSV of durations, or the column `vc` of a Helios trace.

    Parameters
    ----------
    trace : Trace
        All jobs of the file, in its order.
    path : path
        The file that the trace was read from.
    cluster : str

    Raises
    ------
    InvalidInput
        If the file is no trace of durations, or has no such virtual cluster.
    """
    path = Path(path)
    if not is_duration_trace(path):
        raise InvalidInput("cluster", cluster, f"{path.name} is no CSV of durations, which name virtual clusters")
    clusters = virtual_clusters(path)
    jobs = [index for index, name in enumerate(clusters) if name == cluster]
    if not jobs:
        names = list(dict.fromkeys(clusters))
        known = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise InvalidInput("cluster", cluster, f"{nearest_hint(cluster, names)}{path.name} has {known}")
    return trace.select(jobs)


def read_virtual_cluster(
    path: str | Path, cluster: str, *, rng: np.random.Generator, speedups: Speedups, group: str = REALISTIC
) -> Trace:
    """Read the jobs of one virtual cluster out of a trace of durations, and draw their models.

    Parameters
    ----------
    path : path
        A file as `read_durations` reads, which names the virtual cluster of each job, such as Philly's.
    cluster : str
        Name of the virtual cluster.
    rng, speedups, group
        As for `draw_models`.

    Returns
    -------
    Trace
        Jobs with `duration_s` and `size_s`; ids and arrivals are those of the file.

    Raises
    ------
    InvalidInput
        If the file is malformed or has no such virtual cluster, or models cannot be drawn.
    """
    return draw_models(rng, virtual_cluster_jobs(read_trace(path), path, cluster), speedups, group)
