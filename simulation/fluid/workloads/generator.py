"""Workload generator: elastic jobs drawn from distributions of sizes and demands, at a load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ....formulations.checks import as_generator, as_integer, as_real
from ....formulations.errors import InvalidInput
from ....formulations.text import nearest_hint
from ...traces.trace import Trace
from ..speedups import Speedups
from .cdf import COUNTS, TIMES, Cdf
from .drawn_models import REALISTIC, longest_demands, pick_models


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Distributions of the jobs of one kind, and their rate.

    Parameters
    ----------
    sizes : Cdf
        Run time of a job on one GPU.
    demands : Cdf
        Most GPUs of a job. Of AutoML, where a job is an application, these are its trials of one GPU each.
    group : str
        Group of the speedups from which models are drawn.
    load : float, optional
        Run time on one GPU that arrives per second, over all GPUs (rho), positive.
    jobs_per_hour : float, optional
        Mean rate of arrivals, positive. Exactly one of it and `load` must be given.

    Raises
    ------
    InvalidInput
        If sizes are no times, demands no counts, or the rate is missing, given twice, or not positive.
    """

    sizes: Cdf
    demands: Cdf
    group: str = REALISTIC
    load: float | None = None
    jobs_per_hour: float | None = None

    def __post_init__(self) -> None:
        for name, times in (("sizes", True), ("demands", False)):
            cdf = getattr(self, name)
            if not isinstance(cdf, Cdf):
                raise InvalidInput(name, type(cdf).__name__, "must be a Cdf")
            if cdf.is_time != times:
                units = ", ".join(TIMES if times else COUNTS)
                raise InvalidInput(f"{name}.unit", cdf.unit, f"must be one of {units}")
        if (self.load is None) == (self.jobs_per_hour is None):
            raise InvalidInput(
                "load", self.load, f"or else jobs_per_hour ({self.jobs_per_hour}) must be given, not both"
            )
        for name in ("load", "jobs_per_hour"):
            if getattr(self, name) is not None:
                as_real(name, getattr(self, name), above=0.0)


def _table(unit: str, *rows: tuple[float, float]) -> Cdf:
    values, cdf = zip(*rows, strict=True)
    return Cdf(values=np.array(values), cdf=np.array(cdf), unit=unit)


# 1, 2, 4 and 8 GPUs: steps, so that nothing lies between.
_GANGS = _table("gpus-per-job", (1, 0.0), (1, 0.65), (2, 0.65), (2, 0.8), (4, 0.8), (4, 0.95), (8, 0.95), (8, 1.0))

#: Workloads by name: those of PCS's evaluation in our own round figures, which are no measurements. "training" has jobs
#: of one DNN each with a heavy tail of sizes, "automl" applications of 1 to 20 trials whose sizes are the sums of the
#: trials' run times, and "continuous" the jobs of 1 to 8 GPUs at 4 per hour of Gavel's trace of that name.
WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        "training": Workload(
            sizes=_table("secs", (60, 0.0), (600, 0.2), (3600, 0.5), (36_000, 0.8), (360_000, 0.97), (3_600_000, 1.0)),
            demands=_GANGS,
            load=0.8,
        ),
        "automl": Workload(
            sizes=_table("hours", (1, 0.0), (20, 0.25), (100, 0.5), (400, 0.9), (800, 1.0)),
            demands=_table("jobs", (1, 0.0), (21, 1.0)),
            group="linear",
            load=0.8,
        ),
        "continuous": Workload(
            sizes=_table("minutes", (30, 0.0), (100, 0.2), (1000, 0.7), (10_000, 0.98), (50_000, 1.0)),
            demands=_GANGS,
            jobs_per_hour=4.0,
        ),
    }
)


def find_workload(name: str) -> Workload:
    """Return the workload of this name; InvalidInput, which names the nearest, if there is none."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    why = f"{nearest_hint(name, WORKLOADS)}the workloads are {', '.join(WORKLOADS)}"
    raise InvalidInput("workload", name, why)


def generate_jobs(
    rng: np.random.Generator,
    workload: Workload | str = "training",
    *,
    num_jobs: int,
    gpus: int,
    speedups: Speedups | None = None,
) -> Trace:
    """Draw elastic jobs: the same generator state and arguments give the same jobs to the last bit.

    Parameters
    ----------
    rng : numpy.random.Generator
    workload : Workload or str
        Distributions and rate, or a name in `WORKLOADS`.
    num_jobs : int
        Number of jobs, at least 1.
    gpus : int
        GPUs of the cluster (M): the load counts them, and no demand is larger.
    speedups : Speedups, optional
        Tables of the models; built-in by default.

    Returns
    -------
    Trace
        Jobs with `size_s`, in order of arrival, with ids 0 to num_jobs - 1. Gaps are exponential, and the first job
        arrives at 0.

    Raises
    ------
    InvalidInput
        If an argument is out of range, there is no such workload, or the speedups have no such group of models.

    Notes
    -----
    Size, demand and model are drawn independently; then the demand is cut to the model's table and the cluster. The
    mean gap is mean(size)/(rho M) over the drawn sizes, or an hour over `jobs_per_hour`. Source: the generator of PCS
    (A. Bin Faisal et al., OSDI 2024).
    """
    chosen = workload if isinstance(workload, Workload) else find_workload(workload)
    count = as_integer("num_jobs", num_jobs, minimum=1)
    most = as_integer("gpus", gpus, minimum=1)
    speedups = Speedups.builtin() if speedups is None else speedups

    # Every job uses the same draws in the same order for all arguments, so that changing one argument changes little.
    gaps = as_generator(rng).standard_exponential(count)[1:]
    size_s = chosen.sizes.draw(rng, count)
    demand = chosen.demands.draw(rng, count)
    model = pick_models(speedups, chosen.group, rng.random(count))

    if chosen.load is not None:
        mean_gap_s = float(size_s.mean()) / (chosen.load * most)
    else:
        mean_gap_s = 3600.0 / as_real("jobs_per_hour", chosen.jobs_per_hour)
    return Trace(
        job_id=range(count),
        model=model,
        gang_gpus=np.minimum(demand, np.minimum(longest_demands(speedups, model), most)).astype(np.int64),
        arrival_s=np.append(0.0, np.cumsum(gaps * mean_gap_s)),
        size_s=size_s,
    )
