"""Workloads of the Shockwave experiments, and runs of policies on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....heuristics.registry import make_policy
from ....simulation import Profiles, RoundResult, RoundRules, SizeClass, Trace, generate_trace, simulate_rounds
from ....simulation.rounds.policy import RoundPolicy
from ..experiment import ExperimentSettings, OnStep
from .paper import PAPER_GPUS, PAPER_INTERARRIVAL_S, cluster_gpus

# Sizes like those of the paper's released 120-job trace: 0.2 to 5 GPU-hours, 1.4 on average. The classes of its text go
# up to 72 GPU-hours and more; at this scale the makespan would be the longest job's, whatever the policy.
SIZES = (
    SizeClass(name="small", probability=0.72, min_gpu_hours=0.2, max_gpu_hours=1.5),
    SizeClass(name="medium", probability=0.2, min_gpu_hours=1.5, max_gpu_hours=3.0),
    SizeClass(name="large", probability=0.05, min_gpu_hours=3.0, max_gpu_hours=4.5),
    SizeClass(name="extra large", probability=0.03, min_gpu_hours=4.5, max_gpu_hours=5.0),
)
# A job is treated unfairly if its finish-time fairness exceeds this (the paper's 5%).
UNFAIR = 1.05
# The metrics of a policy, and their headings in a table.
METRICS = {
    "makespan_s": "makespan s",
    "avg_jct_s": "mean jct s",
    "worst_ftf": "worst ftf",
    "unfair_pct": "unfair %",
    "utilisation": "utilisation",
}
# The policies the paper compares, Shockwave first.
RIVALS = ("shockwave", "ossp", "themis", "gavel", "allox", "mst", "gandiva-fair")


@dataclass(frozen=True, kw_only=True)
class SimulationCase:
    """One simulation: a workload, a cluster, the function that makes a fresh policy for the run, and the rules."""

    trace: Trace
    gpus: int
    policy: Callable[[], RoundPolicy]
    profiles: Profiles | None = None
    rules: RoundRules = field(default_factory=RoundRules)


def named(name: str, /, **options: Any) -> Callable[[], RoundPolicy]:
    """Return a function that makes a policy of this name."""
    return lambda: make_policy(name, **options)


def workload(jobs: int, seed: int, *, gpus: int, dynamic: float | None = None, load: float = 1.0) -> Trace:
    """Return a generated trace with the sizes of the paper's trace, its widths, and its arrivals per GPU.

    The share of jobs whose batch size adapts, Accordion and GNS evenly, is `dynamic`; two thirds by default, as in the
    paper. Jobs arrive `load` times faster.
    """
    share = 2 / 3 if dynamic is None else dynamic
    return generate_trace(
        np.random.default_rng(seed),
        num_jobs=jobs,
        mean_interarrival_s=PAPER_INTERARRIVAL_S * PAPER_GPUS / gpus / load,
        size_classes=SIZES,
        mode_probabilities={"static": 1.0 - share, "accordion": share / 2, "gns": share / 2},
    )


def run_cases(cases: Mapping[Any, SimulationCase], on_step: OnStep | None) -> dict[Any, RoundResult]:
    """Run every case and return its result under the same key; `on_step` gets the jobs completed in all cases."""
    total = sum(len(case.trace) for case in cases.values())
    before = 0
    results = {}
    for key, case in cases.items():

        def on_round(_round: int, _time_s: float, completed: int, _jobs: int, start: int = before) -> None:
            if on_step is not None:
                on_step(start + completed, total)

        profiles = Profiles.builtin() if case.profiles is None else case.profiles
        results[key] = simulate_rounds(
            case.trace, case.policy(), gpus=case.gpus, profiles=profiles, rules=case.rules, on_round=on_round
        )
        before += len(case.trace)
    if on_step is not None:
        on_step(total, total)
    return results


def metric_row(results: Sequence[RoundResult]) -> dict[str, float]:
    """Return the means of the metrics over several results, under the headings of `METRICS`; times in whole seconds."""
    means = {name: float(np.mean([float(result.metrics[name]) for result in results])) for name in METRICS}
    return {heading: round(means[name]) if name.endswith("_s") else means[name] for name, heading in METRICS.items()}


def compared(
    makers: Mapping[str, Callable[[], RoundPolicy]], traces: Sequence[Trace], gpus: int, on_step: OnStep | None
) -> tuple[list[dict[str, Any]], dict[tuple[str, int], RoundResult]]:
    """Run every policy on every trace: a row of mean metrics for each policy, and all results by (policy, trace)."""
    cases = {
        (name, place): SimulationCase(trace=trace, gpus=gpus, policy=maker)
        for name, maker in makers.items()
        for place, trace in enumerate(traces)
    }
    results = run_cases(cases, on_step)
    rows = [{"policy": name} | metric_row([results[name, place] for place in range(len(traces))]) for name in makers]
    return rows, results


def on_workloads(
    settings: ExperimentSettings, makers: Mapping[str, Callable[[], RoundPolicy]]
) -> tuple[list[dict[str, Any]], dict[tuple[str, int], RoundResult]]:
    """Run every policy on the workloads of the settings, as `compared` does."""
    gpus = cluster_gpus(settings)
    traces = [workload(settings.jobs, seed, gpus=gpus) for seed in settings.seeds]
    return compared(makers, traces, gpus, settings.on_step)
