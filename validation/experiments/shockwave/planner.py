"""Shockwave's planner: foresight (Figure 4), sweeps of its weights and window (k, lambda, T), solver time (12)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....simulation import Profiles, Trace
from ....simulation.rounds.policy import RoundPolicy
from ....solvers.solve import solve
from ...benchmarks.window import PAPER_GAPS
from ...instances.window import random_window
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars, Curves
from .paper import cluster_gpus
from .run import SimulationCase, metric_row, named, on_workloads, run_cases, workload
from .settings import PAPER

POWERS = (1.0, 2.0, 5.0, 10.0)
WEIGHTS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
WINDOWS = (20, 30, 100, 300)
PAPER_WINDOW = PAPER["rounds"]
EXAMPLES = 60

# How much of the course a planner foresees, and whether it plans anew when a batch size changes.
FORESIGHT = {
    "agnostic": {"predictor": "greedy", "reactive": False},
    "reactive": {"predictor": "greedy", "reactive": True},
    "proactive": {"predictor": "restatement", "reactive": True},
    "oracle": {"predictor": "oracle", "reactive": True},
}


def figure_4(settings: ExperimentSettings) -> ExperimentOutcome:
    """Blind to changes, reactive, and proactive, all with the same planner: small examples, and the workload."""
    own = {name: named("shockwave", **options) for name, options in FORESIGHT.items()}
    paper = {f"T={PAPER_WINDOW} {name}": named("shockwave", **PAPER, **options) for name, options in FORESIGHT.items()}
    small = list(examples(np.random.default_rng(settings.seed), EXAMPLES))
    gpus = cluster_gpus(settings)
    traces = [workload(settings.jobs, seed, gpus=gpus) for seed in settings.seeds]
    cases = {
        ("examples", name, place): SimulationCase(trace=trace, gpus=2, policy=maker, profiles=profiles)
        for name, maker in own.items()
        for place, (trace, profiles) in enumerate(small)
    } | {
        ("workload", name, place): SimulationCase(trace=trace, gpus=gpus, policy=maker)
        for name, maker in (own | paper).items()
        for place, trace in enumerate(traces)
    }
    results = run_cases(cases, settings.on_step)
    rows: list[dict[str, Any]] = [
        {"of": of, "policy": name} | metric_row([results[of, name, place] for place in range(count)])
        for of, names, count in (("examples", own, EXAMPLES), ("workload", own | paper, len(traces)))
        for name in names
    ]
    spans = {row["policy"]: row["makespan s"] for row in rows[: len(own)]}
    numbers = ", ".join(f"{name} {span:.0f} s" for name, span in spans.items())
    claims = (
        PaperClaim(
            statement="the more is foreseen, the shorter is the makespan",
            holds=spans["oracle"] < spans["proactive"] < spans["reactive"] < spans["agnostic"],
            numbers=numbers,
        ),
        PaperClaim(
            statement="proactive is nearer to what could be had with true foresight than to agnostic",
            holds=spans["proactive"] - spans["oracle"] < spans["agnostic"] - spans["proactive"],
            numbers=", ".join(f"{name} {span / spans['oracle']:.3f}x" for name, span in spans.items()),
        ),
    )
    plots = (
        _bars(rows[: len(own)], f"{EXAMPLES} examples of four jobs", "proactive"),
        _bars(rows[len(own) : 2 * len(own)], "The workload", "proactive"),
    )
    return ExperimentOutcome(rows=rows, claims=claims, plots=plots)


def examples(rng: np.random.Generator, count: int) -> Iterator[tuple[Trace, Profiles]]:
    """Draw examples like the paper's: four jobs on two GPUs that seem to last 8 to 24 rounds each.

    Two in three double their batch size once, somewhere in the first half of their epochs, and then are five times as
    fast. Whoever takes today's speed for ever starts those that seem the longest first, and what are the longest last.
    """
    for _ in range(count):
        rounds = rng.integers(8, 25, size=4)
        grows = rng.random(4) < 2 / 3
        change = np.maximum(1, np.rint(rounds * rng.uniform(0.1, 0.5, size=4))).astype(int).tolist()
        names = [f"job {j}" for j in range(4)]
        profiles = Profiles(
            name="speeding up",
            rates={(name, size, 1): rate for name in names for size, rate in ((32, 10.0), (64, 25.0))},
            dataset_sizes=dict.fromkeys(names, 38_400),  # an epoch takes a round of 120 s at first
            max_batch_sizes=dict.fromkeys(names, 64),
            gns={(name, 32, 1): ((0, 32), (epoch, 64)) for name, epoch in zip(names, change, strict=True)},
        )
        trace = Trace(
            job_id=names, model=names, batch_size=np.full(4, 32), gang_gpus=np.ones(4, dtype=np.int64),
            mode=["gns" if each else "static" for each in grows], total_steps=1_200 * rounds, arrival_s=np.zeros(4),
        )  # fmt: skip
        yield trace, profiles


def sweep_power(settings: ExperimentSettings) -> ExperimentOutcome:
    """The power k of unfairness in the objective, in the paper's window; the ends also in the default one."""
    rows, rest = _setting(settings, "ftf_power", POWERS)
    claims = (
        PaperClaim(
            statement="a larger k is fairer: the worst case and the unfair jobs at 10 are below those at 1",
            holds=rows[-1]["worst ftf"] < rows[0]["worst ftf"] and rows[-1]["unfair %"] < rows[0]["unfair %"],
            numbers="worst ftf " + _each(rows, "worst ftf") + "; unfair " + _each(rows, "unfair %", "%"),
        ),
        PaperClaim(
            statement="and costs makespan: that at 10 is longer than that at 1, by at most 10%",
            holds=rows[0]["makespan s"] < rows[-1]["makespan s"] <= 1.1 * rows[0]["makespan s"],
            numbers="makespan " + _each(rows, "makespan s", " s"),
        ),
    )
    return ExperimentOutcome(rows=[*rows, *rest], claims=claims, plots=lines(rows, POWERS, "k"))


def sweep_weight(settings: ExperimentSettings) -> ExperimentOutcome:
    """The weight lambda of the makespan in the objective, in the paper's window; the ends also in the default one."""
    rows, rest = _setting(settings, "makespan_weight", WEIGHTS)
    claims = (
        PaperClaim(
            statement="a larger lambda buys makespan: at 10 it is shorter than at 1e-4",
            holds=rows[-1]["makespan s"] < rows[0]["makespan s"],
            numbers="makespan " + _each(rows, "makespan s", " s"),
        ),
        PaperClaim(
            statement="and costs fairness: more jobs are unfair at 10 than at 1e-4",
            holds=rows[-1]["unfair %"] > rows[0]["unfair %"],
            numbers="unfair " + _each(rows, "unfair %", "%"),
        ),
    )
    return ExperimentOutcome(rows=[*rows, *rest], claims=claims, plots=lines(rows, WEIGHTS, "lambda", log_x=True))


def _setting(
    settings: ExperimentSettings, option: str, values: Sequence[float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows for each value of an option in the paper's window, and for its least and largest by default."""
    makers: dict[tuple[int | str, float], Callable[[], RoundPolicy]] = {
        (PAPER_WINDOW, value): named("shockwave", **{**PAPER, option: value}) for value in values
    }
    makers |= {("default", value): named("shockwave", **{option: value}) for value in (values[0], values[-1])}
    found, _ = on_workloads(settings, {f"{rounds} {value:g}": maker for (rounds, value), maker in makers.items()})
    rows = [
        {"T": rounds, option: value} | {name: row[name] for name in row if name != "policy"}
        for (rounds, value), row in zip(makers, found, strict=True)
    ]
    return rows[: len(values)], rows[len(values) :]


def _each(rows: Sequence[Mapping[str, Any]], name: str, unit: str = "") -> str:
    return listed([list(row.values())[1] for row in rows], [row[name] for row in rows], unit)


def sweep_window(settings: ExperimentSettings) -> ExperimentOutcome:
    """The rounds T of a window: the paper's 20 and 30, and farther sight, up to this library's default."""
    makers = {f"{rounds}": named("shockwave", **{**PAPER, "rounds": rounds}) for rounds in WINDOWS}
    makers["default"] = named("shockwave")
    rows, _ = on_workloads(settings, makers)
    measures = ("makespan s", "mean jct s", "unfair %")
    by_window = {words: [row[words] for row in rows[:-1]] for words in measures}
    claims = (
        PaperClaim(
            statement="farther sight is better: makespan, mean completion and unfair jobs fall with T, or stay",
            holds=all(values == sorted(values, reverse=True) for values in by_window.values()),
            numbers="; ".join(f"{words} {listed(WINDOWS, values)}" for words, values in by_window.items()),
        ),
    )
    return ExperimentOutcome(rows=rows, claims=claims, plots=lines(rows[:-1], WINDOWS, "T"))


def figure_12(settings: ExperimentSettings) -> ExperimentOutcome:
    """Seconds and certified gap of one window of 20 rounds on 256 GPUs, beside the gaps that the paper prints."""
    rows: list[dict[str, Any]] = []
    solve(random_window(np.random.default_rng(0), jobs=20, gpus=16), rel_gap=1e-4)  # compiles the kernels
    for place, (jobs, paper_gap) in enumerate(PAPER_GAPS.items()):
        for repeat in range(max(3, settings.repeats)):
            window = random_window(np.random.default_rng(settings.seed + repeat), jobs=jobs, gpus=256)
            wall, cpu = time.perf_counter(), time.process_time()
            result = solve(window, rel_gap=1e-4, time_limit=15.0)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            row = {"jobs": jobs, "seed": settings.seed + repeat, "wall s": wall, "cpu s": cpu, "gap": result.gap}
            rows.append(row | {"backend": result.backend, "paper s": 15.0, "paper gap": paper_gap})
        if settings.on_step is not None:
            settings.on_step(place + 1, len(PAPER_GAPS))
    sizes = list(PAPER_GAPS)
    slowest = {jobs: max(row["wall s"] for row in rows if row["jobs"] == jobs) for jobs in sizes}
    gaps = {jobs: max(row["gap"] for row in rows if row["jobs"] == jobs) for jobs in sizes}
    medians = [statistics.median(row["wall s"] for row in rows if row["jobs"] == jobs) for jobs in sizes]
    claims = (
        PaperClaim(
            statement="the planner's time stays well within a round: under 1% of 120 s (the paper: 15 s)",
            holds=max(slowest.values()) < 1.2,
            numbers=", ".join(f"{jobs} jobs {seconds:.3f} s" for jobs, seconds in slowest.items()),
        ),
        PaperClaim(
            statement="the gap stays below the paper's at every size",
            holds=all(gaps[jobs] < paper for jobs, paper in PAPER_GAPS.items()),
            numbers=", ".join(f"{jobs} jobs {gaps[jobs]:.1e} against {PAPER_GAPS[jobs]:.1e}" for jobs in sizes),
        ),
    )
    curves = {"median": (sizes, medians), "slowest": (sizes, list(slowest.values()))}
    plot = Curves(title="One window on 256 GPUs; the paper's took 15 s", x_axis="jobs", y_axis="s", curves=curves)
    return ExperimentOutcome(rows=rows, claims=claims, plots=(plot,))


def listed(values: Sequence[float], measured: Sequence[float], unit: str = "") -> str:
    """Return values with what was measured at each."""
    return ", ".join(f"{value:g}: {_short(found)}{unit}" for value, found in zip(values, measured, strict=True))


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def lines(
    rows: Sequence[Mapping[str, Any]], values: Sequence[float], symbol: str, log_x: bool = False
) -> tuple[Curves, ...]:
    """Return each metric over its value at the first setting, and the share of unfair jobs."""
    relative = {
        words: (list(values), [row[words] / rows[0][words] for row in rows])
        for words in ("makespan s", "mean jct s", "worst ftf")
    }
    unfair = {"unfair %": (list(values), [row["unfair %"] for row in rows])}
    over = f"over that at {values[0]:g}"
    return (
        Curves(title=symbol, x_axis=symbol, y_axis=over, curves=relative, log_x=log_x, reference=1.0),
        Curves(title=symbol, x_axis=symbol, y_axis="%", curves=unfair, log_x=log_x),
    )


def _bars(rows: Sequence[Mapping[str, Any]], title: str, own: str) -> Bars:
    groups = ("makespan s", "mean jct s", "worst ftf")
    first = next(row for row in rows if row["policy"] == own)
    series = {row["policy"]: [row[words] / first[words] for words in groups] for row in rows}
    return Bars(title=title, y_axis=f"over {own}", groups=groups, series=series, reference=1.0)
