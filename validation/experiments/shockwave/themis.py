"""Themis's filter: the printed example of Table 1 and Figures 1 and 15, and a sweep of fractions on a workload."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves, Schedule
from .filter_model import FRACTIONS as PRINTED_FRACTIONS
from .filter_model import filter_rows, filter_runs
from .paper import cluster_gpus
from .run import SimulationCase, metric_row, named, run_cases, workload

# Of the sweep.
FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def table_1(settings: ExperimentSettings) -> ExperimentOutcome:
    """The three jobs of Table 1 and Figures 1 and 15, under each fixed fraction and fractions that change."""
    rows, runs = filter_rows(), filter_runs()
    fixed = [runs[str(fraction)] for fraction in PRINTED_FRACTIONS]
    adaptive, varied = runs["adaptive"], runs["best sequence"]
    claims = (
        PaperClaim(
            statement="rounds, finishes, fairness, mean completion and makespan as printed, to their digits",
            holds=all(row["equal"] for row in rows if row["paper"]),
            numbers=", ".join(
                f"f = {row['filter']}: {'equal' if row['equal'] else 'not equal'}" for row in rows if row["paper"]
            ),
        ),
        PaperClaim(
            statement="no fixed fraction is as fair or as fast on average as changing it",
            holds=min(run.worst for run in fixed) > max(adaptive.worst, varied.worst)
            and min(run.mean_completion for run in fixed) > max(adaptive.mean_completion, varied.mean_completion),
            numbers=f"worst ftf {float(min(run.worst for run in fixed)):.2f} at best; {float(varied.worst):.2f} by the "
            f"best sequence of fractions under the same rule, {float(adaptive.worst):.2f} by the fairest of all "
            "schedules, the one printed as adaptive",
        ),
    )
    plots = tuple(
        Schedule(title=f"f = {name}: GPUs by round", rounds=run.rounds, jobs=list(run.finishes))
        for name, run in runs.items()
    )
    if settings.on_step is not None:
        settings.on_step(1, 1)
    return ExperimentOutcome(rows=rows, claims=claims, plots=plots)


def sweep_fraction(settings: ExperimentSettings) -> ExperimentOutcome:
    """Fixed fractions on generated workloads, by both mechanisms of Themis, and Shockwave beside them."""
    gpus = cluster_gpus(settings)
    seeds = settings.seeds
    makers = {
        f"{mechanism} {fraction:g}": named("themis-filter", fraction=fraction, mechanism=mechanism)
        for mechanism in ("efficiency", "auction")
        for fraction in FRACTIONS
    } | {"shockwave": named("shockwave")}
    cases = {
        (name, seed): SimulationCase(trace=workload(settings.jobs, seed, gpus=gpus), gpus=gpus, policy=maker)
        for seed in seeds
        for name, maker in makers.items()
    }
    results = run_cases(cases, settings.on_step)
    rows: list[dict[str, Any]] = [
        {"policy": name, "seed": seed} | metric_row([results[name, seed]]) for name in makers for seed in seeds
    ]
    found = {(row["policy"], row["seed"]): row for row in rows}
    best = {
        seed: {
            words: min(FRACTIONS, key=lambda fraction: found[f"efficiency {fraction:g}", seed][words])
            for words in ("worst ftf", "mean jct s", "makespan s")
        }
        for seed in seeds
    }
    fairest = {seed: found[f"efficiency {best[seed]['worst ftf']:g}", seed] for seed in seeds}
    fixed = {
        seed: {
            words: [row[words] for row in rows if row["seed"] == seed and row["policy"] != "shockwave"]
            for words in ("makespan s", "unfair %")
        }
        for seed in seeds
    }
    claims = (
        PaperClaim(
            statement="no fixed fraction is best for fairness and for efficiency at once, on every workload",
            holds=len({tuple(each.values()) for each in best.values()}) > 1
            or any(len(set(each.values())) > 1 for each in best.values()),
            numbers="; ".join(
                f"seed {seed}: worst ftf at {each['worst ftf']:g}, mean jct at {each['mean jct s']:g}, makespan at "
                f"{each['makespan s']:g}"
                for seed, each in best.items()
            ),
        ),
        PaperClaim(
            statement="Shockwave's worst fairness is no worse than that of the best fixed fraction, "
            "chosen with hindsight",
            holds=all(found["shockwave", seed]["worst ftf"] <= row["worst ftf"] for seed, row in fairest.items()),
            numbers=", ".join(
                f"seed {seed}: {found['shockwave', seed]['worst ftf']:.2f} against {row['worst ftf']:.2f}"
                for seed, row in fairest.items()
            ),
        ),
        PaperClaim(
            statement="its makespan is shorter and fewer jobs end unfair than under any fixed fraction "
            "of either mechanism",
            holds=all(
                found["shockwave", seed][words] < min(least[words])
                for seed, least in fixed.items()
                for words in ("makespan s", "unfair %")
            ),
            numbers=", ".join(
                f"seed {seed}: {found['shockwave', seed]['makespan s']} s, {found['shockwave', seed]['unfair %']:.1f}% "
                f"against {min(least['makespan s'])} s, {min(least['unfair %']):.1f}% at best"
                for seed, least in fixed.items()
            ),
        ),
    )

    def mean(mechanism: str, fraction: float, words: str) -> float:
        return float(np.mean([found[f"{mechanism} {fraction:g}", seed][words] for seed in seeds]))

    plots = []
    for words in ("worst ftf", "mean jct s", "makespan s"):
        curves = {
            mechanism: (FRACTIONS, [mean(mechanism, fraction, words) for fraction in FRACTIONS])
            for mechanism in ("efficiency", "auction")
        }
        title = f"Themis's filter: {words}"
        plots.append(Curves(title=title, x_axis="fraction kept", y_axis=words, curves=curves))
    return ExperimentOutcome(rows=rows, claims=claims, plots=tuple(plots))
