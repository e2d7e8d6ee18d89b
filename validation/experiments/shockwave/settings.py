"""The study behind the Shockwave planner's default settings: generated workloads, one setting changed at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from types import MappingProxyType
from typing import Any

import numpy as np

from ....formulations.checks import as_integer
from ....formulations.errors import InvalidInput
from ....heuristics.shockwave.policy import ShockwavePolicy
from ....simulation.profiles.table import Profiles
from ....simulation.rounds.engine import simulate_rounds
from ....simulation.traces.generator import SizeClass, generate_trace
from ....simulation.traces.trace import Trace
from ....simulation.traces.trajectory import exclusive_s

# A quarter of the paper's GPU-hours, so that a run takes seconds; the mix is the paper's.
QUARTER_SIZES = (
    SizeClass(name="small", probability=0.72, min_gpu_hours=0.2, max_gpu_hours=2.0),
    SizeClass(name="medium", probability=0.2, min_gpu_hours=2.0, max_gpu_hours=4.0),
    SizeClass(name="large", probability=0.05, min_gpu_hours=4.0, max_gpu_hours=8.0),
    SizeClass(name="extra large", probability=0.03, min_gpu_hours=8.0, max_gpu_hours=16.0),
)


@dataclass(frozen=True, kw_only=True)
class Load:
    """One kind of workload: how many jobs, on how many GPUs, and how fast they come."""

    name: str
    jobs: int
    gpus: int
    mean_interarrival_s: float

    def draw(self, seed: int) -> Trace:
        """Return a trace of this kind, with gangs of 1, 2 and 4."""
        return generate_trace(
            np.random.default_rng(seed),
            num_jobs=self.jobs,
            mean_interarrival_s=self.mean_interarrival_s,
            size_classes=QUARTER_SIZES,
            gpu_counts=(1, 2, 4),
            gpu_probabilities=(0.7, 0.22, 0.08),
        )


#: Two to eight jobs for each GPU.
LOADS = (
    Load(name="light", jobs=60, gpus=32, mean_interarrival_s=10.0),
    Load(name="medium", jobs=60, gpus=16, mean_interarrival_s=60.0),
    Load(name="heavy", jobs=120, gpus=16, mean_interarrival_s=40.0),
)

#: The paper's window and power of unfairness.
PAPER: Mapping[str, Any] = MappingProxyType({"rounds": 20, "ftf_power": 5.0})

#: What is compared: the defaults, the paper's window, and one change at a time.
SETTINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "default": {},
        "T = 20, packed (the paper's)": {**PAPER, "order": "packed"},
        "T = 20 (the paper's), lambda = 0.1": {**PAPER, "makespan_weight": 0.1},
        "T = 20 (the paper's), shortest first": {**PAPER, "order": "shortest"},
        "T = 20 (the paper's)": PAPER,
        "T = 20": {"rounds": 20},
        "T = 60": {"rounds": 60},
        "T = 120": {"rounds": 120},
        "T = 300": {"rounds": 300},
        "T = 120, lambda = 0.1": {"rounds": 120, "makespan_weight": 0.1},
        "k = 0": {"ftf_power": 0.0},
        "k = 2": {"ftf_power": 2.0},
        "k = 5 (the paper's)": {"ftf_power": 5.0},
        "k = 10": {"ftf_power": 10.0},
        "packed": {"order": "packed"},
        "shortest first": {"order": "shortest"},
        "end margin 0": {"end_margin": 0.0},
        "end margin 0.1": {"end_margin": 0.1},
        "end margin 0.2": {"end_margin": 0.2},
        "stay 1": {"stay": 1.0},
        "stay 0.5": {"stay": 0.5},
        "N_avg: demand": {"contention": "demand"},
        "N_avg: jobs present": {"contention": "jobs_present"},
        "speeds as told": {"measured_speeds": False},
        "lazy": {"reactive": False},
        "plan every round": {"replan_rounds": 1},
        "follow whole plans": {"replan_rounds": 10_000},
        "greedy": {"predictor": "greedy"},
        "Bayes": {"predictor": "bayes"},
        "oracle": {"predictor": "oracle"},
    }
)


# The measures of a setting, and how each is summarised over the traces.
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "score": fmean, "makespan_ratio": geometric_mean, "jct_ratio": geometric_mean, "worst_ftf": max,
    "unfair_pct": fmean, "restarts_per_round": fmean, "worst_gap": max,
}  # fmt: skip


def settings_rows(
    *,
    settings: Mapping[str, Mapping[str, Any]] = SETTINGS,
    loads: Sequence[Load] = LOADS,
    seeds: Sequence[int] = (1,),
    time_limit: float = 2.0,
) -> Iterator[dict[str, Any]]:
    """Run each setting on each workload of the package's own profiles; one row per setting, as it is done.

    `settings` has names and options of `ShockwavePolicy`. There is one trace per load and seed; `time_limit` is in
    seconds per window.

    Yields
    ------
    dict
        setting; geometric means over the traces of makespan over its lower bound and of average JCT over the average
        exclusive time; worst FTF, the greatest of all; mean share of unfair jobs in per cent; restarts per round; the
        worst gap of a window; and CPU seconds. score: the mean over the traces of log(makespan/bound) +
        log(JCT/exclusive) + log max(1, worst FTF) + log(1 + unfair share); less is better.

    Notes
    -----
    The four measures are those of the paper's Figure 7, each a factor of what a cluster's users lose, equally weighted.
    """
    if not loads or not settings or not seeds:
        raise InvalidInput("loads, settings, seeds", "[]", "must each hold at least one")
    profiles = Profiles.builtin()
    drawn = [(load, load.draw(as_integer("seeds", seed, minimum=0))) for load in loads for seed in seeds]
    for name, options in settings.items():
        began = time.process_time()
        runs = [_run(trace, load.gpus, profiles, {"time_limit": time_limit, **options}) for load, trace in drawn]
        over = {field: summary([run[field] for run in runs]) for field, summary in SUMMARIES.items()}
        yield {"setting": name, **over, "cpu_s": time.process_time() - began}


def makespan_bound_of(trace: Trace, gpus: int, profiles: Profiles) -> float:
    """Return the time before which no schedule ends: all work over all GPUs, or the last job's arrival and run."""
    seconds = exclusive_s(trace, profiles)
    return max(float(trace.gang_gpus @ seconds) / gpus, float((trace.arrival_s + seconds).max()))


def _run(trace: Trace, gpus: int, profiles: Profiles, options: Mapping[str, Any]) -> dict[str, float]:
    result = simulate_rounds(trace, ShockwavePolicy(**options), gpus=gpus, profiles=profiles)
    metrics = result.metrics
    makespan = metrics["makespan_s"] / makespan_bound_of(trace, gpus, profiles)
    jct = metrics["avg_jct_s"] / float(exclusive_s(trace, profiles).mean())
    worst, unfair = metrics["worst_ftf"], metrics["unfair_pct"]
    score = math.log(makespan) + math.log(jct) + math.log(max(1.0, worst)) + math.log1p(unfair / 100.0)
    return {
        "score": score,
        "makespan_ratio": makespan,
        "jct_ratio": jct,
        "worst_ftf": worst,
        "unfair_pct": unfair,
        "restarts_per_round": float(result.restarts.sum()) / len(result.round_rows),
        "worst_gap": float(result.solves["gap"].max()),
    }
