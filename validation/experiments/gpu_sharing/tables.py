"""Tables II to IV: makespan, JCT and queueing of the policies, on generated and on given workloads."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....simulation import Trace, read_durations
from ....simulation.placement import draw_models, draw_testbed_jobs, sample_busiest
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars
from .paper import PAPER_GPUS, PAPER_JOBS, TABLE_2, TABLE_3, TABLE_4, Printed, cluster_gpus
from .run import POLICIES, cluster_workload, compared, model_speeds, reduction, source_of_ratios, table_rows

# Mean gap of the testbed's arrivals, by which FIFO's JCT is as large a part of its makespan as the printed one.
_TESTBED_GAP_S = 600.0
_TESTBED_GPUS = 16
# The testbed's workloads are small: so many times the repeats of the settings are drawn.
_TESTBED_TIMES = 10
# Busiest period of the Philly trace: 480 of its jobs load 64 GPUs twice over.
_PHILLY_PERIOD_S = 2 * 3600.0


def table_2(settings: ExperimentSettings) -> ExperimentOutcome:
    """Makespan and JCT of 30 jobs on 4 machines, relative to FIFO's."""
    many = replace(settings, repeats=_TESTBED_TIMES * settings.repeats)
    traces = [draw_testbed_jobs(np.random.default_rng(seed), mean_interarrival_s=_TESTBED_GAP_S) for seed in many.seeds]
    results = compared(many, traces, tuple(TABLE_2), _TESTBED_GPUS, settings.on_step)
    rows: list[dict[str, Any]] = []
    for name, (makespan_s, jct_s) in TABLE_2.items():
        mine = [results[name, place] for place in range(len(traces))]
        figures = {
            "makespan s": float(np.mean([result.metrics["makespan_s"] for result in mine])),
            "jct s": float(np.mean([result.metrics["avg_jct_s"] for result in mine])),
        }
        rows.append({"policy": name} | figures | {"printed makespan s": makespan_s, "printed jct s": jct_s})
    for row in rows:
        row |= {f"{key} / fifo": row[key] / rows[0][key] for key in ("makespan s", "jct s")}
        row |= {f"{key} / fifo": row[key] / rows[0][key] for key in ("printed makespan s", "printed jct s")}
    claims = (
        *_below(rows, ("tiresias", "sjf-ffs"), "jct s", "printed jct s"),
        PaperClaim(
            statement="SJF-BSBF has the shortest makespan",
            holds=min(rows, key=lambda row: float(row["makespan s"]))["policy"] == "sjf-bsbf",
            numbers=", ".join(f"{row['policy']} {row['makespan s'] / rows[0]['makespan s']:.2f}" for row in rows)
            + " of FIFO's; printed "
            + ", ".join(f"{each[0] / TABLE_2['fifo'][0]:.2f}" for each in TABLE_2.values()),
        ),
    )
    return ExperimentOutcome(rows=rows, claims=claims)


def table_3(settings: ExperimentSettings) -> ExperimentOutcome:
    """JCT and queueing of generated jobs, as many as in Table III."""
    return _generated(settings, settings.jobs, TABLE_3, least=0.0)


def table_4(settings: ExperimentSettings) -> ExperimentOutcome:
    """JCT and queueing of twice as many generated jobs."""
    return _generated(settings, 2 * settings.jobs, TABLE_4, least=0.25)


def table_3_given(settings: ExperimentSettings) -> ExperimentOutcome:
    """JCT and queueing of Pollux's workload of 240 jobs, which is given; only the ratios are drawn."""
    file = None if settings.data is None else settings.data / "pollux" / "pollux_240_w6.csv"
    if file is None or not file.is_file():
        return _skipped("pollux/pollux_240_w6.csv")
    with warnings.catch_warnings():
        # Totals that the GPUs of a job do not divide are rounded; docs/sjf-bsbf.md counts them.
        warnings.filterwarnings("ignore", ".*have a batch size that their GPUs do not divide", UserWarning)
        trace, _ = read_durations(file, models=model_speeds())
    gpus = PAPER_GPUS if settings.jobs >= PAPER_JOBS else cluster_gpus(settings)
    if gpus < PAPER_GPUS:
        trace = trace.select(np.flatnonzero(trace.gang_gpus <= gpus)[: settings.jobs])
    return _outcome(settings, [trace] * settings.repeats, gpus, TABLE_3, "Pollux's 240 jobs", least=0.0)


def table_4_philly(settings: ExperimentSettings) -> ExperimentOutcome:
    """JCT and queueing of a sample of the busiest two hours of the Philly trace, with drawn models."""
    file = None if settings.data is None else settings.data / "philly" / "philly_82k.csv.gz"
    if file is None or not file.is_file():
        return _skipped("philly/philly_82k.csv.gz")
    gpus = cluster_gpus(settings)
    whole = Trace.read(file)
    fitting = whole.select(whole.gang_gpus <= gpus)
    traces = []
    for seed in settings.seeds:
        rng = np.random.default_rng(seed)
        sample = sample_busiest(rng, fitting, num_jobs=2 * settings.jobs, window_s=_PHILLY_PERIOD_S)
        traces.append(draw_models(rng, sample))
    return _outcome(settings, traces, gpus, TABLE_4, f"{2 * settings.jobs} jobs of the Philly trace", least=0.0)


def _generated(
    settings: ExperimentSettings, jobs: int, printed: Mapping[str, Printed], least: float
) -> ExperimentOutcome:
    traces = [cluster_workload(settings, jobs, seed) for seed in settings.seeds]
    return _outcome(settings, traces, cluster_gpus(settings), printed, f"{jobs} generated jobs", least=least)


def _outcome(
    settings: ExperimentSettings,
    traces: Sequence[Trace],
    gpus: int,
    printed: Mapping[str, Printed],
    title: str,
    *,
    least: float,
) -> ExperimentOutcome:
    """Compare all policies; SJF-BSBF is to be below Tiresias by at least `least`."""
    rows = table_rows(compared(settings, traces, POLICIES, gpus, settings.on_step), printed)
    queues = {row["policy"]: float(row["queue h"]) for row in rows}
    claims = (
        *_below(rows, ("tiresias", "sjf-ffs", "sjf", "pollux"), "jct h", "printed jct", least=least),
        PaperClaim(
            statement="jobs queue less under SJF-FFS and SJF-BSBF than under FIFO, SJF and Tiresias",
            holds=max(queues["sjf-ffs"], queues["sjf-bsbf"]) < min(queues[name] for name in POLICIES[:3]),
            numbers=", ".join(f"{name} {hours:.2f} h" for name, hours in queues.items())
            + f"; ratios of {source_of_ratios(settings)}",
        ),
    )
    groups = ("jct h", "large h", "small h", "queue h")
    series = {row["policy"]: [row[column] for column in groups] for row in rows}
    plot = Bars(title=f"{title} on {gpus} GPUs", y_axis="hours", groups=groups, series=series)
    return ExperimentOutcome(rows=rows, claims=claims, plots=(plot,))


def _below(
    rows: Sequence[Mapping[str, Any]], rivals: Sequence[str], column: str, printed: str, *, least: float = 0.0
) -> tuple[PaperClaim, ...]:
    """Return the claims that SJF-BSBF's JCT is below that of rivals, and below the first by at least a part."""
    claims = []
    for place, rival in enumerate(rivals):
        ours, theirs = reduction(rows, rival, column), reduction(rows, rival, printed)
        part = 0.0 if place else least
        claims.append(
            PaperClaim(
                statement=f"SJF-BSBF's mean JCT is{f' at least {part:.0%}' if part else ''} below that of {rival}",
                holds=ours >= part if part else ours > 0.0,
                numbers=f"{-ours:+.0%}; printed {-theirs:+.0%}",
            )
        )
    return tuple(claims)


def _skipped(file: str) -> ExperimentOutcome:
    return ExperimentOutcome(rows=[], skipped=f"needs {file} of the shared data: give its folder by --data")
