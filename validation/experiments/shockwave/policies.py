"""Shockwave beside its rivals: Figures 7 to 10 and 16, and 17 on Pollux's trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....simulation import RoundResult, RoundRules, Trace
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars, Curves, Plot, Schedule
from .paper import cluster_gpus
from .pollux import pollux_workloads
from .run import METRICS, RIVALS, UNFAIR, SimulationCase, compared, metric_row, named, on_workloads, run_cases, workload

# Relative to Shockwave: makespan, mean completion, worst fairness, unfair share.
SHOWN = ("makespan s", "mean jct s", "worst ftf", "unfair %")
Cases = dict[float, tuple[list[Trace], int]]  # value on the axis: workloads and GPUs
FAIR_RIVALS = ("themis", "gavel", "allox", "gandiva-fair")
MAKERS = {name: named(name) for name in RIVALS}


def relative(rows: Sequence[Mapping[str, Any]], shown: Sequence[str] = SHOWN) -> dict[str, dict[str, float]]:
    """Return every figure over Shockwave's, by policy; not a number where Shockwave's is 0."""
    own = next(row for row in rows if row["policy"] == "shockwave")
    return {
        row["policy"]: {name: row[name] / own[name] if own[name] else float("nan") for name in shown} for row in rows
    }


def bars_of(rows: Sequence[Mapping[str, Any]], title: str, shown: Sequence[str] = SHOWN) -> Bars:
    """Return the bars relative to Shockwave, one group for each of the columns `shown`."""
    series = {name: [values[measure] for measure in shown] for name, values in relative(rows, shown).items()}
    return Bars(title=title, y_axis="over Shockwave's", groups=shown, series=series, reference=1.0)


def comparison_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Return the claims of Figure 7 with the measured numbers."""
    by_name = {row["policy"]: row for row in rows}
    own = by_name["shockwave"]
    rivals = [name for name in FAIR_RIVALS if name in by_name]
    makespans = {name: by_name[name]["makespan s"] / own["makespan s"] for name in rivals}
    best_unfair = min(by_name[name]["unfair %"] for name in rivals)
    best_worst = min(by_name[name]["worst ftf"] for name in rivals)
    claims = [
        PaperClaim(
            statement="Shockwave's makespan is shorter than that of every fair rival",
            holds=min(makespans.values()) > 1.0,
            numbers=", ".join(f"{name} {ratio:.2f}x" for name, ratio in makespans.items()),
        ),
        PaperClaim(
            statement="fewer jobs are treated unfairly than under every fair rival",
            holds=own["unfair %"] <= best_unfair,
            numbers=f"{own['unfair %']:.1f}% against {best_unfair:.1f}% at best",
        ),
        PaperClaim(
            statement="the worst finish-time fairness is the best",
            holds=own["worst ftf"] <= best_worst,
            numbers=f"{own['worst ftf']:.2f} against {best_worst:.2f} at best",
        ),
    ]
    if "ossp" in by_name:
        ossp = by_name["ossp"]
        claims.append(
            PaperClaim(
                statement="the makespan is no more than 5% behind OSSP's, which completes jobs later and less fairly",
                holds=own["makespan s"] <= 1.05 * ossp["makespan s"]
                and ossp["mean jct s"] > own["mean jct s"]
                and ossp["worst ftf"] > own["worst ftf"],
                numbers=f"OSSP: makespan {ossp['makespan s'] / own['makespan s']:.2f}x, mean jct "
                f"{ossp['mean jct s'] / own['mean jct s']:.2f}x, worst ftf {ossp['worst ftf']:.2f}",
            )
        )
    return tuple(claims)


def figure_7(settings: ExperimentSettings) -> ExperimentOutcome:
    """Bars of all policies relative to Shockwave on one cluster."""
    rows, _ = on_workloads(settings, MAKERS)
    title = f"{settings.jobs} jobs on {cluster_gpus(settings)} GPUs"
    return ExperimentOutcome(rows=rows, claims=comparison_claims(rows), plots=(bars_of(rows, title),))


def figure_8(settings: ExperimentSettings) -> ExperimentOutcome:
    """Schedules of at most 50 jobs side by side, and the distributions of completion times and fairness."""
    fewer = replace(settings, jobs=min(50, settings.jobs))
    gpus = cluster_gpus(fewer)
    trace = workload(fewer.jobs, settings.seed, gpus=gpus)
    rows, results = compared(MAKERS, [trace], gpus, settings.on_step)
    by_name = {name: results[name, 0] for name in MAKERS}
    curves = {
        column: {name: _distribution(result, column) for name, result in by_name.items()} for column in ("jct_s", "ftf")
    }
    for row in rows:
        fairness = by_name[row["policy"]].jobs["ftf"].to_numpy(dtype=float)
        row |= {"ftf <= 1 %": float(100 * np.mean(fairness <= 1.0)), "median ftf": float(np.median(fairness))}
    own = next(row for row in rows if row["policy"] == "shockwave")
    rivals = [row for row in rows if row["policy"] in FAIR_RIVALS]
    waits = {name: _busy_tail(result, gpus) for name, result in by_name.items()}
    claims = (
        PaperClaim(
            statement="the cluster stays busy to the end: in the last quarter more GPUs work than under fair rivals",
            holds=waits["shockwave"] > max(waits[name] for name in FAIR_RIVALS),
            numbers=", ".join(f"{name} {waits[name]:.2f}" for name in ("shockwave", *FAIR_RIVALS)),
        ),
        PaperClaim(
            statement="more jobs end within 1.05 of their fair time than under fair rivals",
            holds=own["unfair %"] <= min(row["unfair %"] for row in rivals),
            numbers="later: " + ", ".join(f"{row['policy']} {row['unfair %']:.0f}%" for row in [own, *rivals]),
        ),
    )
    plots: tuple[Plot, ...] = (
        *(
            Schedule(title=f"{name}: {len(result.schedule)} rounds", rounds=_held(trace, result), jobs=trace.job_id)
            for name, result in by_name.items()
        ),
        Curves(title="Completion times", x_axis="s", y_axis="share of jobs", curves=curves["jct_s"], steps=True),
        Curves(title="Fairness", x_axis="JCT over fair time", y_axis="share of jobs", curves=curves["ftf"], steps=True),
    )
    return ExperimentOutcome(rows=rows, claims=claims, plots=plots)


def _distribution(result: RoundResult, column: str) -> tuple[list[float], list[float]]:
    values = np.sort(result.jobs[column].to_numpy(dtype=float))
    return values.tolist(), ((np.arange(len(values)) + 1) / len(values)).tolist()


def _held(trace: Trace, result: RoundResult) -> list[dict[str | int, int]]:
    gang_gpus = dict(zip(trace.job_id, trace.gang_gpus.tolist(), strict=True))
    return [{job: gang_gpus[job] for job in running} for running in result.schedule]


def _busy_tail(result: RoundResult, gpus: int) -> float:
    """Return the mean share of GPUs in use over the last quarter of the rounds."""
    busy = result.rounds["gpus_busy"].to_numpy(dtype=float)
    return float(busy[-max(1, len(busy) // 4) :].mean() / gpus)


def figure_9(settings: ExperimentSettings) -> ExperimentOutcome:
    """The same comparison at growing scale: once, twice, four and seven and a half times the jobs asked for."""
    sizes = [round(settings.jobs * times) for times in (1, 2, 4, 7.5)]
    clusters = {size: round(cluster_gpus(settings) * size / settings.jobs) for size in sizes}
    cases: Cases = {size: (_workloads(settings, size, clusters[size]), clusters[size]) for size in sizes}
    return _sweep(settings, "jobs", cases, "Shockwave's makespan is shorter than every fair rival's at every scale")


def figure_10(settings: ExperimentSettings) -> ExperimentOutcome:
    """From static jobs only to dynamic jobs only."""
    gpus = cluster_gpus(settings)
    shares = (0.0, 1 / 3, 2 / 3, 1.0)
    cases: Cases = {share: (_workloads(settings, settings.jobs, gpus, dynamic=share), gpus) for share in shares}
    return _sweep(
        settings, "dynamic share", cases, "Shockwave's makespan is shorter than every fair rival's in every mix"
    )


def figure_16(settings: ExperimentSettings) -> ExperimentOutcome:
    """From little to much contention: arrivals at a quarter, half, the same, twice and four times the rate."""
    gpus = cluster_gpus(settings)
    loads = (0.25, 0.5, 1.0, 2.0, 4.0)
    cases: Cases = {load: (_workloads(settings, settings.jobs, gpus, load=load), gpus) for load in loads}
    return _sweep(settings, "load", cases, "Shockwave's makespan is shorter than every fair rival's at every load")


def _workloads(
    settings: ExperimentSettings, jobs: int, gpus: int, dynamic: float | None = None, load: float = 1.0
) -> list[Trace]:
    return [workload(jobs, seed, gpus=gpus, dynamic=dynamic, load=load) for seed in settings.seeds]


def _sweep(settings: ExperimentSettings, axis: str, cases: Cases, statement: str) -> ExperimentOutcome:
    """Compare Shockwave with its fair rivals on several kinds of workload."""
    names = ("shockwave", *FAIR_RIVALS)
    runs = {
        (value, name, place): SimulationCase(trace=trace, gpus=gpus, policy=MAKERS[name])
        for value, (traces, gpus) in cases.items()
        for name in names
        for place, trace in enumerate(traces)
    }
    results = run_cases(runs, settings.on_step)
    rows: list[dict[str, Any]] = [
        {axis: value, "gpus": gpus, "policy": name}
        | metric_row([results[value, name, place] for place in range(len(traces))])
        for value, (traces, gpus) in cases.items()
        for name in names
    ]
    found = {(row[axis], row["policy"]): row for row in rows}

    def lead(words: str) -> str:
        ranges = []
        for value in cases:
            own = found[value, "shockwave"][words]
            rivals = [found[value, name][words] for name in FAIR_RIVALS]
            digits = 1 if words.endswith("%") else 0
            ranges.append(f"{value:.3g}: {own:.{digits}f} against {min(rivals):.{digits}f} to {max(rivals):.{digits}f}")
        return ", ".join(ranges)

    def ahead(words: str) -> bool:
        return all(
            found[value, "shockwave"][words] <= min(found[value, name][words] for name in FAIR_RIVALS)
            for value in cases
        )

    claims = (
        PaperClaim(statement=statement, holds=ahead("makespan s"), numbers=lead("makespan s")),
        PaperClaim(
            statement="fewer jobs are treated unfairly than under every fair rival throughout",
            holds=ahead("unfair %"),
            numbers=lead("unfair %"),
        ),
    )
    plots = []
    for words in (METRICS["makespan_s"], METRICS["worst_ftf"], METRICS["unfair_pct"]):
        curves = {name: (list(cases), [found[value, name][words] for value in cases]) for name in names}
        plots.append(Curves(title=f"By {axis}", x_axis=axis, y_axis=words, curves=curves))
    return ExperimentOutcome(rows=rows, claims=claims, plots=tuple(plots))


def figure_17(settings: ExperimentSettings) -> ExperimentOutcome:
    """The comparison on traces of Pollux's; Pollux itself resizes jobs, which the rounds engine does not.

    Fairness is of the jobs that last a round or more: two in five take 33 s, and under any policy they wait for longer
    than that until a round begins.
    """
    found = pollux_workloads(settings)
    if isinstance(found, str):
        return ExperimentOutcome(rows=[], skipped=found)
    traces, gpus = found
    cases = {
        (trace_name, name): SimulationCase(trace=trace, gpus=gpus, policy=maker, profiles=profiles)
        for trace_name, (trace, profiles) in traces.items()
        for name, maker in MAKERS.items()
    }
    rows = [
        {"trace": trace_name, "policy": name} | _of_long_jobs(result)
        for (trace_name, name), result in run_cases(cases, settings.on_step).items()
    ]
    means: list[dict[str, Any]] = []
    for name in MAKERS:
        mine = [row for row in rows if row["policy"] == name]
        columns = {column: float(np.mean([row[column] for row in mine])) for column in list(mine[0])[2:]}
        times = {column: round(value) for column, value in columns.items() if column.endswith(" s")}
        means.append({"trace": "mean", "policy": name} | columns | times)
    title = f"Pollux's traces on {gpus} GPUs, means"
    return ExperimentOutcome(rows=[*means, *rows], claims=comparison_claims(means), plots=(bars_of(means, title),))


def _of_long_jobs(result: RoundResult) -> dict[str, float]:
    """Return the metrics, with fairness of the jobs that last a round, and of all jobs beside it."""
    row = metric_row([result])
    long = result.jobs["exclusive_s"] >= RoundRules().round_s
    fairness = result.jobs.loc[long, "ftf"].to_numpy(dtype=float)
    mine = {"worst ftf": float(fairness.max()), "unfair %": float(100 * np.mean(fairness > UNFAIR))}
    return row | mine | {f"all {words}": row[words] for words in mine}
