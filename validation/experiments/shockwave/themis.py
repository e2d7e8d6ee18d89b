"""Themis's filter: Table 1 and Figure 1 in the exact model, and Figure 15's sweep of it on a workload."""

from __future__ import annotations

from typing import Any

import numpy as np

from .filter_model import PAPER, filter_rows, filter_runs
from .plots import Curves, Schedule
from .run import Case, Claim, Outcome, Setup, metric_row, named, run_cases, workload

FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def table_1(setup: Setup) -> Outcome:
    """The three jobs of Table 1 and Figure 1, under each fixed fraction and the best sequence of fractions."""
    rows, runs = filter_rows(), filter_runs()
    fixed = [run for name, run in runs.items() if name != "adaptive"]
    claims = (
        Claim(
            says="finishes, worst fairness, mean completion and makespan as printed, to their digits",
            holds=all(row["equal"] for row in rows) and len(rows) == len(PAPER),
            numbers=", ".join(f"f = {row['filter']}: {'equal' if row['equal'] else 'not equal'}" for row in rows),
        ),
        Claim(
            says="no fixed fraction is as fair or as fast on average as changing it",
            holds=min(run.worst for run in fixed) > runs["adaptive"].worst
            and min(run.mean_completion for run in fixed) > runs["adaptive"].mean_completion,
            numbers=f"worst ftf {float(runs['adaptive'].worst):.2f} against "
            f"{float(min(run.worst for run in fixed)):.2f} at best; adaptive is the best of all sequences of fractions",
        ),
    )
    plots = tuple(
        Schedule(title=f"f = {name}: GPUs by round", rounds=run.rounds, jobs=list(run.finishes))
        for name, run in runs.items()
    )
    if setup.on_step is not None:
        setup.on_step(1, 1)
    return Outcome(rows=rows, claims=claims, plots=plots)


def figure_15(setup: Setup) -> Outcome:
    """Fixed fractions on generated workloads, by both mechanisms of Themis, and Shockwave beside them."""
    gpus = setup.total_gpus
    seeds = setup.seeds
    makers = {
        f"{mechanism} {fraction:g}": named("themis-filter", fraction=fraction, mechanism=mechanism)
        for mechanism in ("efficiency", "auction")
        for fraction in FRACTIONS
    } | {"shockwave": named("shockwave")}
    cases = {
        (name, seed): Case(trace=workload(setup.jobs, seed, gpus=gpus), gpus=gpus, policy=maker)
        for seed in seeds
        for name, maker in makers.items()
    }
    results = run_cases(cases, setup.on_step)
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
        Claim(
            says="no fixed fraction is best for fairness and for efficiency at once, on every workload",
            holds=len({tuple(each.values()) for each in best.values()}) > 1
            or any(len(set(each.values())) > 1 for each in best.values()),
            numbers="; ".join(
                f"seed {seed}: worst ftf at {each['worst ftf']:g}, mean jct at {each['mean jct s']:g}, makespan at "
                f"{each['makespan s']:g}"
                for seed, each in best.items()
            ),
        ),
        Claim(
            says="Shockwave's worst fairness is no worse than that of the best fixed fraction, chosen with hindsight",
            holds=all(found["shockwave", seed]["worst ftf"] <= row["worst ftf"] for seed, row in fairest.items()),
            numbers=", ".join(
                f"seed {seed}: {found['shockwave', seed]['worst ftf']:.2f} against {row['worst ftf']:.2f}"
                for seed, row in fairest.items()
            ),
        ),
        Claim(
            says="its makespan is shorter and fewer jobs end unfair than under any fixed fraction of either mechanism",
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
    plots = tuple(
        Curves(
            title=f"Themis's filter: {words}",
            x_axis="fraction kept",
            y_axis=words,
            curves={
                mechanism: (
                    FRACTIONS,
                    [
                        float(np.mean([found[f"{mechanism} {fraction:g}", seed][words] for seed in seeds]))
                        for fraction in FRACTIONS
                    ],
                )
                for mechanism in ("efficiency", "auction")
            },
        )
        for words in ("worst ftf", "mean jct s", "makespan s")
    )
    return Outcome(rows=rows, claims=claims, plots=plots)
