"""Figures 4 and 5: distributions of JCT, and queueing by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....simulation.placement import PlacementResult
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Bars, Curves, Plot
from .paper import cluster_gpus
from .run import POLICIES, cluster_workload, compared

_PERCENT = (25, 50, 75, 95)


def figures_4_and_5(settings: ExperimentSettings) -> ExperimentOutcome:
    """Distributions of JCT and mean queueing by model of as many jobs as in Tables III and IV, all workloads pooled."""
    gpus = cluster_gpus(settings)
    sizes = (settings.jobs, 2 * settings.jobs)
    rows: list[dict[str, Any]] = []
    claims: list[PaperClaim] = []
    plots: list[Plot] = []
    for place, jobs in enumerate(sizes):

        def on_step(done: int, total: int, before: int = place) -> None:
            if settings.on_step is not None:
                settings.on_step(before * total + done, len(sizes) * total)

        traces = [cluster_workload(settings, jobs, seed) for seed in settings.seeds]
        results = compared(settings, traces, POLICIES, gpus, on_step)
        jct_h = {name: _pooled(results, name, "jct_s") for name in POLICIES}
        models = np.concatenate([trace.model for trace in traces])
        named = sorted(set(models.tolist()))
        queue_h = {
            name: [float(_pooled(results, name, "waited_s")[models == model].mean()) for model in named]
            for name in POLICIES
        }
        for name in POLICIES:
            quantiles = np.percentile(jct_h[name], _PERCENT).tolist()
            row = {"jobs": jobs, "policy": name}
            row |= {f"{percent}% h": value for percent, value in zip(_PERCENT, quantiles, strict=True)}
            rows.append(row | {f"{model} queue h": each for model, each in zip(named, queue_h[name], strict=True)})
        claims += _claims(jobs, jct_h, named, queue_h)
        curves = {name: _distribution(values) for name, values in jct_h.items()}
        title = f"{jobs} jobs on {gpus} GPUs"
        plots += [
            Curves(title=title, x_axis="JCT in hours", y_axis="share of jobs", curves=curves, log_x=True, steps=True),
            Bars(title=title, y_axis="mean queueing in hours", groups=named, series=queue_h),
        ]
    return ExperimentOutcome(rows=rows, claims=tuple(claims), plots=tuple(plots))


def _claims(
    jobs: int, jct_h: Mapping[str, Floats], models: Sequence[str], queue_h: Mapping[str, Sequence[float]]
) -> tuple[PaperClaim, ...]:
    quantiles = {name: np.percentile(values, _PERCENT) for name, values in jct_h.items()}

    def lower(rival: str) -> PaperClaim:
        below = quantiles["sjf-bsbf"] < quantiles[rival]
        cells = zip(_PERCENT, quantiles["sjf-bsbf"], quantiles[rival], strict=True)
        return PaperClaim(
            statement=f"every quantile of the JCT of {jobs} jobs is lower under SJF-BSBF than under {rival}",
            holds=bool(below.all()),
            numbers=", ".join(f"{percent}%: {own:.2f} against {other:.2f} h" for percent, own, other in cells),
        )

    queueing = ("fifo", "sjf", "tiresias")
    less = [
        model
        for place, model in enumerate(models)
        if queue_h["sjf-bsbf"][place] < min(queue_h[name][place] for name in queueing)
    ]
    return (
        lower("tiresias"),
        lower("sjf-ffs"),
        PaperClaim(
            statement=f"jobs of every model queue less under SJF-BSBF than under FIFO, SJF and Tiresias ({jobs} jobs)",
            holds=len(less) == len(models),
            numbers=f"{', '.join(less) or 'none'} of {', '.join(models)}",
        ),
    )


def _pooled(results: Mapping[tuple[str, int], PlacementResult], policy: str, column: str) -> Floats:
    """Return a column of the jobs of all workloads under a policy, in hours."""
    return np.concatenate([getattr(result, column) for (name, _), result in results.items() if name == policy]) / 3600.0


def _distribution(values: Floats) -> tuple[list[float], list[float]]:
    """Return the quantiles at every half per cent, and the shares of jobs below them."""
    shares = np.linspace(0.0, 1.0, 201)
    return np.quantile(values, shares).tolist(), shares.tolist()
