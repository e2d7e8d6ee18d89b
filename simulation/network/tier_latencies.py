"""Time of an iteration of a job at each network tier, by measurements, the all-reduce model and static penalties."""

from __future__ import annotations

from collections.abc import Mapping

from ...formulations.checks import as_integer
from ..cluster import Cluster
from ..placement.occupancy import Occupancy
from ..placement.speeds import Running
from .all_reduce_speeds import AllReduceSpeeds
from .communication_table import MEASURED_GPUS, TIERS
from .interconnect import cluster_sizes
from .penalty_speeds import PenaltySpeeds
from .ratio_speeds import RatioSpeeds
from .table_speeds import TableSpeeds


def tier_latencies(
    model: str,
    *,
    gpus: int = MEASURED_GPUS,
    cluster: Cluster | int,
    table: TableSpeeds | None = None,
    all_reduce: AllReduceSpeeds | None = None,
    penalties: PenaltySpeeds | None = None,
) -> Mapping[str, tuple[float | None, ...]]:
    """Return the seconds of an iteration at the tiers machine, rack and network, by the name of the speeds.

    All three have the computation that the all-reduce model is calibrated to, and the placements of `placement_at`.

    Parameters
    ----------
    model : str
    gpus : int
        GPUs of the job.
    cluster : Cluster or int
    table, all_reduce, penalties : TableSpeeds, AllReduceSpeeds and PenaltySpeeds, optional
        Speeds to compare; by default the built-in ones.

    Returns
    -------
    mapping of str to tuple of (float or None)
        Under "table", "all-reduce" and "penalties" the three times; None at a tier that the job cannot have.

    Raises
    ------
    InvalidInput
        If the model is not in a table, or the job does not fit the cluster.

    Examples
    --------
    >>> from equipoise.simulation import Cluster
    >>> paper = Cluster(gpus_by_type={"gpu": 128}, gpus_per_machine=8, racks=2)
    >>> times = tier_latencies("BERT-large", cluster=paper)
    >>> [round(time / times["table"][0], 2) for time in times["table"]]
    [1.0, 1.14, 7.55]
    >>> [round(time / times["penalties"][0], 2) for time in times["penalties"]]
    [1.0, 1.12, 4.75]
    """
    modelled = all_reduce or AllReduceSpeeds(cluster=cluster)
    compared: dict[str, RatioSpeeds] = {
        "table": table or TableSpeeds(cluster=cluster),
        "all-reduce": modelled,
        "penalties": penalties or PenaltySpeeds(cluster=cluster),
    }
    placements = [placement_at(tier, model, gpus, cluster) for tier in range(len(TIERS))]
    modelled.table.row(model)
    compute_s = modelled.models[model].compute_s
    return {
        name: tuple(None if run is None else compute_s * (1.0 + speeds.ratio(run)) for run in placements)
        for name, speeds in compared.items()
    }


def placement_at(tier: int, model: str, gpus: int, cluster: Cluster | int) -> Running | None:
    """Return a job on the fewest racks and machines with which a placement has this tier; None if there is none.

    The tiers are 0 machine, 1 rack, of at least two machines, and 2 network, of at least two racks. InvalidInput if the
    job does not fit the cluster.
    """
    tier = as_integer("tier", tier, minimum=0, maximum=len(TIERS) - 1)
    found = Cluster.of(cluster)
    gpus = as_integer("gpus", gpus, minimum=1, maximum=found.gpus)
    empty = Occupancy(found)
    fewest, racks = empty.fewest_machines(gpus), max(empty.fewest_racks(gpus), 2 if tier == 2 else 1)
    machines = max(fewest, (1, 2, racks)[tier])
    _, machines_of_rack, all_racks = cluster_sizes(found)
    possible = empty.least_tier(gpus) <= tier and machines <= min(gpus, machines_of_rack * racks) and racks <= all_racks
    return Running(0, model, gpus, gpus, machines, fewest, tier, 1, 1, racks) if possible else None
