"""What the Shockwave experiments share: workloads, runs of policies on them with progress, and what an outcome is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ....formulations.checks import as_integer
from ....heuristics.registry import make_policy
from ....simulation import Profiles, RoundRules, SimulationResult, SizeClass, Trace, generate_trace, simulate_rounds
from ....simulation.rounds.policy import RoundPolicy
from .plots import Plot

# Called with how many jobs have completed in all runs of the experiment, and how many there are.
OnStep = Callable[[int, int], None]

# The paper's workload: 120 jobs on 32 GPUs, one job every 40 s. Other sizes keep jobs and arrivals per GPU.
PAPER_JOBS, PAPER_GPUS, PAPER_INTERARRIVAL_S = 120, 32, 40.0
# Sizes like those of the paper's released 120-job trace: 0.2 to 5 GPU-hours, 1.4 on average. The classes of its text go
# up to 72 GPU-hours and more; at this scale the makespan would be the longest job's, whatever the policy.
SIZES = (
    SizeClass(name="small", probability=0.72, min_gpu_hours=0.2, max_gpu_hours=1.5),
    SizeClass(name="medium", probability=0.2, min_gpu_hours=1.5, max_gpu_hours=3.0),
    SizeClass(name="large", probability=0.05, min_gpu_hours=3.0, max_gpu_hours=4.5),
    SizeClass(name="extra large", probability=0.03, min_gpu_hours=4.5, max_gpu_hours=5.0),
)
# A job is unfairly treated that ends later than its fair time by more than this (the paper's 5%).
UNFAIR = 1.05
# What a policy is measured by, and how that reads in a table.
METRICS = {
    "makespan_s": "makespan s",
    "avg_jct_s": "mean jct s",
    "worst_ftf": "worst ftf",
    "unfair_pct": "unfair %",
    "utilisation": "utilisation",
}
# The policies the paper compares, Shockwave first, each with its options.
RIVALS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "shockwave": ("shockwave", {}),
    "ossp": ("ossp", {}),
    "themis": ("themis", {}),
    "gavel": ("gavel", {}),
    "allox": ("allox", {}),
    "mst": ("mst", {}),
    "gandiva-fair": ("gandiva-fair", {}),
}


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What the user asks of an experiment.

    Parameters
    ----------
    jobs : int
        Jobs of a generated workload, at least 4.
    gpus : int, optional
        GPUs; by default as many per job as in the paper, at least 8.
    seed : int
        Of the first workload.
    repeats : int
        Workloads, of seeds `seed`, `seed + 1`, ...; figures are means over them.
    data : Path, optional
        Folder of the shared data sets, for the experiments that need one.
    on_step : callable, optional
        Told how far it is.
    """

    jobs: int = 120
    gpus: int | None = None
    seed: int = 0
    repeats: int = 3
    data: Path | None = None
    on_step: OnStep | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        as_integer("jobs", self.jobs, minimum=4)
        as_integer("seed", self.seed, minimum=0)
        as_integer("repeats", self.repeats, minimum=1)
        if self.gpus is not None:
            as_integer("gpus", self.gpus, minimum=8)

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster."""
        return max(8, round(self.jobs * PAPER_GPUS / PAPER_JOBS)) if self.gpus is None else self.gpus

    @property
    def seeds(self) -> range:
        """Seeds of the workloads."""
        return range(self.seed, self.seed + self.repeats)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something the paper shows, and whether it shows here.

    Attributes
    ----------
    says : str
        In our words.
    holds : bool
    numbers : str
        What was measured.
    """

    says: str
    holds: bool
    numbers: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Rows, claims and plots of one experiment.

    Attributes
    ----------
    rows : sequence of mapping
        One table.
    claims : tuple of Claim
        Empty if the experiment was skipped.
    plots : tuple of Plot
    skipped : str
        Why it could not run; empty if it ran.
    """

    rows: Sequence[Mapping[str, Any]]
    claims: tuple[Claim, ...] = ()
    plots: tuple[Plot, ...] = ()
    skipped: str = ""

    @property
    def in_shape(self) -> bool | None:
        """Whether all claims hold; None if it was skipped."""
        return None if self.skipped else all(claim.holds for claim in self.claims)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: a workload, a cluster and a policy, made when the run starts since a policy may remember."""

    trace: Trace
    gpus: int
    policy: Callable[[], RoundPolicy]
    profiles: Profiles | None = None


def named(name: str, /, **options: Any) -> Callable[[], RoundPolicy]:
    """Return what makes a policy of this name."""
    return lambda: make_policy(name, **options)


def workload(
    jobs: int, seed: int, *, gpus: int, dynamic: float | None = None, load: float = 1.0, gns_only: bool = False
) -> Trace:
    """Return a generated trace with the sizes of the paper's trace, its widths, and its arrivals per GPU.

    Parameters
    ----------
    jobs, seed, gpus : int
    dynamic : float, optional
        Share of jobs whose batch size adapts, Accordion and GNS evenly; two thirds by default, as in the paper.
    load : float
        How many times faster jobs arrive.
    gns_only : bool
        Let all dynamic jobs be GNS's.
    """
    share = 2 / 3 if dynamic is None else dynamic
    accordion = 0.0 if gns_only else share / 2
    return generate_trace(
        np.random.default_rng(seed),
        num_jobs=jobs,
        mean_interarrival_s=PAPER_INTERARRIVAL_S * PAPER_GPUS / gpus / load,
        size_classes=SIZES,
        mode_probabilities={"static": 1.0 - share, "accordion": accordion, "gns": share - accordion},
    )


def run_cases(cases: Mapping[Any, Case], on_step: OnStep | None) -> dict[Any, SimulationResult]:
    """Run every case and return its result under the same key, telling how many jobs have completed in all."""
    total = sum(len(case.trace) for case in cases.values())
    before = 0
    results = {}
    for key, case in cases.items():
        done_before = before

        def on_round(_round: int, _time_s: float, completed: int, _jobs: int, start: int = done_before) -> None:
            if on_step is not None:
                on_step(start + completed, total)

        results[key] = simulate_rounds(
            case.trace,
            case.policy(),
            gpus=case.gpus,
            profiles=Profiles.builtin() if case.profiles is None else case.profiles,
            rules=RoundRules(),
            on_round=on_round,
        )
        before += len(case.trace)
    if on_step is not None:
        on_step(total, total)
    return results


def metric_row(results: Sequence[SimulationResult]) -> dict[str, float]:
    """Return the means of the metrics over several results, under the words of `METRICS`; times in whole seconds."""
    means = {name: float(np.mean([float(result.metrics[name]) for result in results])) for name in METRICS}
    return {words: round(means[name]) if name.endswith("_s") else means[name] for name, words in METRICS.items()}


def compared(
    makers: Mapping[str, Callable[[], RoundPolicy]],
    traces: Sequence[Trace],
    gpus: int,
    on_step: OnStep | None,
    profiles: Profiles | None = None,
) -> tuple[list[dict[str, Any]], dict[tuple[str, int], SimulationResult]]:
    """Run every policy on every trace: a row of mean metrics for each policy, and all results by (policy, trace)."""
    cases = {
        (name, place): Case(trace=trace, gpus=gpus, policy=maker, profiles=profiles)
        for name, maker in makers.items()
        for place, trace in enumerate(traces)
    }
    results = run_cases(cases, on_step)
    rows = [{"policy": name} | metric_row([results[name, place] for place in range(len(traces))]) for name in makers]
    return rows, results
