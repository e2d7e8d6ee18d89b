"""Figures 9a and 9b: seconds of a simulation, and of a search, by jobs and GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.search.wfq_config import WfqConfig
from ..claims import at_most
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars, Curves
from .paper import FIGURE_9_GPUS, FIGURE_9_JOBS, FIGURE_9B_S, PAPER_EVALUATIONS
from .run import Steps, progress_of, rows_of, searched, simulated, spread_columns, tuning_of
from .workloads import Case, generated_case

# Parts of a search at which its hypervolume is shown.
_PARTS = (0.1, 0.25, 0.5, 1.0)


def figure_9a(settings: ExperimentSettings) -> ExperimentOutcome:
    """Time a simulation with a prediction for each job, under AFS and under weighted fair queues."""
    steps = Steps(settings.on_step, len(FIGURE_9_JOBS) * len(FIGURE_9_GPUS) * settings.repeats)
    rows: list[dict[str, Any]] = []
    # The loops are compiled before anything is timed.
    simulated(_case(settings, 8, 8, settings.seed), "fifo")
    for jobs in FIGURE_9_JOBS:
        for gpus in FIGURE_9_GPUS:
            seconds: dict[str, list[float]] = {"wfq": [], "afs": []}
            for seed in settings.seeds:
                case = _case(settings, jobs, gpus, seed)
                sizes_s: Floats = np.asarray(case.trace.size_s)
                config = WfqConfig.from_parameters(sizes_s, variation=1.0, decay=1.0, zeta=0.5)
                for name, policy in (("wfq", config), ("afs", "afs")):
                    started_s = perf_counter()
                    simulated(case, policy)
                    seconds[name].append(perf_counter() - started_s)
                steps.add()
            row: dict[str, Any] = {"jobs": jobs, "gpus": gpus}
            for name, each in seconds.items():
                row |= spread_columns(f"{name} s", each)
            rows.append(row)
    groups = [f"{row['jobs']} / {row['gpus']}" for row in rows]
    series = {name: [row[f"{name} s"] for row in rows] for name in ("wfq", "afs")}
    plot = Bars(title="Figure 9a: jobs / GPUs", y_axis="seconds of a simulation", groups=groups, series=series)
    return ExperimentOutcome(rows=rows_of(case, rows), claims=simulation_claims(rows), plots=(plot,))


def simulation_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Check that a simulation of each size takes less than the least that the paper prints."""
    seconds = {f"{row['jobs']} jobs, {row['gpus']} GPUs": float(row["wfq s"]) for row in rows}
    return (at_most("a simulation takes at most a minute", seconds, 60.0, unit=" s", printed="1 to 4 minutes"),)


def figure_9b(settings: ExperimentSettings) -> ExperimentOutcome:
    """Time searches, and take the hypervolume that they reach after parts of their time."""
    steps = Steps(settings.on_step, len(FIGURE_9_JOBS) * len(FIGURE_9_GPUS))
    rows: list[dict[str, Any]] = []
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for jobs in FIGURE_9_JOBS:
        for place, gpus in enumerate(FIGURE_9_GPUS):
            case = _case(settings, jobs, gpus, settings.seed)
            problem = tuning_of(case)
            started_s = perf_counter()
            found = searched(problem, settings, seed=settings.seed)
            seconds = perf_counter() - started_s
            steps.add()
            history = progress_of(found)
            scored = history[-1][1]
            row: dict[str, Any] = {"jobs": jobs, "gpus": gpus, "evaluations": scored, "seconds": seconds}
            row |= {f"seconds of {PAPER_EVALUATIONS}": seconds * PAPER_EVALUATIONS / scored}
            row |= {"printed s": FIGURE_9B_S[jobs][place], "hypervolume": found.objective}
            for part in _PARTS[:-1]:
                early = [volume for _, done, volume in history if done <= part * scored]
                row[f"after {part:.0%}"] = early[-1] if early else None
            rows.append(row)
            curves[f"{jobs} jobs, {gpus} GPUs"] = (
                [time for time, _, _ in history],
                [volume for _, _, volume in history],
            )
    plot = Curves(title="Figure 9b", x_axis="seconds", y_axis="hypervolume of the front", curves=curves, steps=True)
    return ExperimentOutcome(rows=rows_of(case, rows), claims=search_claims(rows), plots=(plot,))


def search_claims(rows: Sequence[Mapping[str, Any]]) -> tuple[PaperClaim, ...]:
    """Check that as many evaluations as the paper's take less time than printed."""
    column = f"seconds of {PAPER_EVALUATIONS}"
    share = {f"{row['jobs']} jobs, {row['gpus']} GPUs": float(row[column]) / float(row["printed s"]) for row in rows}
    return (
        at_most(
            f"{PAPER_EVALUATIONS} evaluations take less time than the paper's search of that size",
            share,
            1.0,
            unit=" of it",
            printed="16 to 65 minutes",
        ),
    )


def _case(settings: ExperimentSettings, jobs: int, gpus: int, seed: int) -> Case:
    """Return AutoML jobs at the load of the paper."""
    return generated_case(settings, "automl", gpus=gpus, seed=seed, jobs=jobs)
