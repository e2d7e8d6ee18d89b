"""Workloads of the PCS experiments: published distributions and traces where the data is given, else generated jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ....formulations.arrays import Floats
from ....simulation.fluid import (
    WORKLOADS,
    Cdf,
    Speedups,
    draw_models,
    generate_jobs,
    virtual_cluster_jobs,
)
from ....simulation.traces.readers import read_pcs, read_trace
from ....simulation.traces.trace import Trace
from ..experiment import ExperimentSettings
from .paper import FIGURE_7, LOAD, PAPER_GPUS

#: Clusters whose traces are published, and those of which Philly's file has the jobs.
PUBLISHED_CLUSTERS = ("0e4a51", "2869ce")
PHILLY_CLUSTERS = tuple(name for name in FIGURE_7 if name not in PUBLISHED_CLUSTERS)
# Files of the published distributions of sizes and demands, by workload.
_PUBLISHED = {
    "automl": ("cdf-app-service-times-themis1.csv", "cdf-num-jobs-per-app-themis1.csv"),
    "continuous": ("cdf-app-service-times-gavel-contmultiple.csv", "cdf-max-gpus-per-job-gavel.csv"),
}
# Samples for tests have seeds that no other workload has.
_HELD_OUT_SEED = 10_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """Jobs on GPUs of one type, with the speedups of their models, and where they are from."""

    trace: Trace
    gpus: int
    speedups: Speedups
    source: str = "generated"


def published_speedups(settings: ExperimentSettings) -> Speedups:
    """Return PCS's speedups where the data is given, else the built-in ones."""
    file = _data_file(settings, "pcs", "speedups.json")
    return Speedups.builtin() if file is None else Speedups.read(file)


def generated_case(
    settings: ExperimentSettings, name: str, *, gpus: int, seed: int, jobs: int | None = None, load: float | None = None
) -> Case:
    """Return jobs of a workload by name, drawn by seed; from the published distributions where there are any.

    A given `load` replaces the rate of the workload.
    """
    files = [_data_file(settings, "pcs", "workload_cdfs", file) for file in _PUBLISHED.get(name, ())]
    workload, source = WORKLOADS[name], "generated"
    if files and all(file is not None for file in files):
        sizes, demands = (Cdf.read(file) for file in files if file is not None)
        workload, source = replace(workload, sizes=sizes, demands=demands), "published distributions"
    if load is not None:
        workload = replace(workload, load=load, jobs_per_hour=None)
    speedups = published_speedups(settings)
    count = settings.jobs if jobs is None else jobs
    trace = generate_jobs(np.random.default_rng(seed), workload, num_jobs=count, gpus=gpus, speedups=speedups)
    return Case(trace=trace, gpus=gpus, speedups=speedups, source=source)


def held_out_case(
    settings: ExperimentSettings, name: str, *, gpus: int, seed: int, jobs: int | None = None, load: float | None = None
) -> Case:
    """Return other jobs of the same workload, for a test of what was tuned on those of the seed."""
    return generated_case(settings, name, gpus=gpus, seed=_HELD_OUT_SEED + seed, jobs=jobs, load=load)


def published_case(settings: ExperimentSettings, cluster: str, gpus: int) -> Case | None:
    """Return a published trace as it is; None without the data."""
    file = _data_file(settings, "pcs", "traces", f"trace_{cluster}.csv")
    if file is None:
        return None
    return Case(trace=read_pcs(file), gpus=gpus, speedups=published_speedups(settings), source="published trace")


def cluster_cases(settings: ExperimentSettings) -> Iterator[tuple[str, int, Case]]:
    """Yield (cluster, seed, jobs) of Figure 7: consecutive jobs of each cluster, on GPUs such that the load is 0.8.

    The seed draws which jobs these are, and the models of Philly's. Without data a cluster has generated jobs.
    """
    philly = _data_file(settings, "philly", "philly_82k.csv.gz")
    whole = None if philly is None else read_trace(philly)
    speedups = published_speedups(settings)
    for place, name in enumerate(FIGURE_7):
        published = published_case(settings, name, 1) if name in PUBLISHED_CLUSTERS else None
        recorded = None
        if name in PHILLY_CLUSTERS and whole is not None and philly is not None:
            recorded = virtual_cluster_jobs(whole, philly, name)
        for seed in settings.seeds:
            rng = np.random.default_rng([seed, place])
            if published is not None:
                trace, source = _consecutive(rng, published.trace, settings.jobs), published.source
            elif recorded is not None:
                trace, source = draw_models(rng, _consecutive(rng, recorded, settings.jobs), speedups), "Philly"
            else:
                trace = generate_jobs(rng, "training", num_jobs=settings.jobs, gpus=PAPER_GPUS, speedups=speedups)
                source = "generated"
            gpus = gpus_at_load(trace) if settings.gpus is None else settings.gpus
            yield name, seed, Case(trace=trace, gpus=gpus, speedups=speedups, source=source)


def gpus_at_load(trace: Trace, load: float = LOAD) -> int:
    """Return the GPUs on which run time on one GPU arrives at this load; at least 1."""
    sizes_s: Floats = np.asarray(trace.size_s)
    span_s = float(trace.arrival_s.max() - trace.arrival_s.min())
    return max(1, round(float(sizes_s.sum()) / (load * span_s)))


def _consecutive(rng: np.random.Generator, trace: Trace, count: int) -> Trace:
    """Return so many jobs that arrive one after another, from a place that is drawn."""
    if len(trace) <= count:
        return trace
    order = np.argsort(trace.arrival_s, kind="stable")
    start = int(rng.integers(len(trace) - count + 1))
    return trace.select(order[start : start + count])


def _data_file(settings: ExperimentSettings, *parts: str) -> Path | None:
    """Return a file of the shared data; None if it is not there."""
    file = None if settings.data is None else settings.data.joinpath(*parts)
    return file if file is not None and file.is_file() else None
