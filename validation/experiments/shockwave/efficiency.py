"""Statistical efficiency of the batch sizes that Pollux chooses: Figures 3 and 14, in shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....formulations.arrays import Floats
from ....heuristics.placement.elastic import best_configuration, divided_batch
from ....simulation.placement import ModelRow, ModelSpeeds, ModelTable
from ..experiment import ExperimentOutcome, ExperimentSettings, PaperClaim
from ..plots import Curves
from .batch_replay import MACHINE_GPUS, BatchStretch, run_pollux
from .pollux import pollux_workloads

# The paper's example: 100 epochs of CIFAR-10 on 2 GPUs from a batch size of 32, and Pollux's sizes by first epoch.
MODEL, GPUS, EPOCHS, FIRST_BATCH = "cifar10", 2, 100, 32
PAPER_SIZES = ((0, 32), (1, 64), (2, 314), (30, 690), (70, 1682))
# With them the paper's training is so many times shorter, and inaccurate because of the sizes before epoch 30.
PAPER_SPEEDUP, EARLY, LATE = 5.0, 30, 70
SHOWN_EPOCHS = (0, 1, 2, 10, 20, 29, 30, 50, 69, 70, 99)
# What is shown of the example: the paper's sizes, and Pollux's here by the noise of the moment and by its median.
DRAWN = ("paper", "pollux", "median noise")
# Shares of the work at which efficiencies are taken, and parts over which they are averaged.
GRID = (np.arange(100) + 0.5) / 100
PARTS = {"first 10%": slice(0, 10), "first 30%": slice(0, 30), "middle": slice(30, 70), "last 30%": slice(70, 100)}


def noise_scale(row: ModelRow, progress: ArrayLike) -> Floats:
    """Return the gradient noise scale at shares of the work: its logarithm is linear between the table's three values.

    The first one holds at the beginning, the median in the middle, and the last one at the end.
    """
    known = np.log([row.noise_first, row.noise_median, row.noise_last])
    return np.asarray(np.exp(np.interp(np.asarray(progress, dtype=np.float64), [0.0, 0.5, 1.0], known)))


def efficiency(row: ModelRow, total_batch: ArrayLike, noise: ArrayLike) -> Floats:
    """Return `ModelRow.efficiency` for arrays of batch sizes and noise scales."""
    scale = np.asarray(noise, dtype=np.float64)
    return np.asarray((scale + row.first_batch) / (scale + np.asarray(total_batch)))


def figure_3(settings: ExperimentSettings) -> ExperimentOutcome:
    """Return the batch sizes of the paper's example and of Pollux here, their efficiency, and the time that they save.

    The job starts at the paper's batch size; otherwise it is the CIFAR-10 of the table. An epoch of work is the
    progress of an epoch at the initial size.
    """
    table = ModelTable.builtin().row(MODEL)
    row = replace(
        table,
        first_batch=FIRST_BATCH,
        min_gpu_batch=FIRST_BATCH // GPUS,
        iterations=table.iterations * table.first_batch // FIRST_BATCH,
    )
    noises = noise_scale(row, (np.arange(EPOCHS) + 0.5) / EPOCHS)
    # Speeds at the noise of each epoch.
    speeds = [ModelSpeeds(ModelTable([replace(row, noise_median=noise)])) for noise in noises.tolist()]
    starts, printed = zip(*PAPER_SIZES, strict=True)
    sizes = {
        "paper": [printed[np.searchsorted(starts, epoch, side="right") - 1] for epoch in range(EPOCHS)],
        "pollux": [_chosen(each) for each in speeds],
        "median noise": [_chosen(ModelSpeeds(ModelTable([row])))] * EPOCHS,
        "initial": [FIRST_BATCH] * EPOCHS,
    }
    efficient = {name: efficiency(row, mine, noises) for name, mine in sizes.items()}
    # Time of an epoch of work, up to a common factor; and of an epoch of samples, each of which counts in full.
    work_s = {name: 1.0 / np.array(list(map(_goodput, speeds, mine))) for name, mine in sizes.items()}
    samples_s = {name: work_s[name] * efficient[name] for name in sizes}
    rows = []
    for epoch in SHOWN_EPOCHS:
        columns: dict[str, float] = {"epoch": epoch, "noise scale": round(float(noises[epoch]))}
        for name in DRAWN:
            columns |= {f"{name} batch": sizes[name][epoch], f"{name} efficiency": float(efficient[name][epoch])}
        rows.append(columns)
    curves = {name: (list(range(EPOCHS)), efficient[name].tolist()) for name in DRAWN}
    plot = Curves(title="CIFAR-10 on 2 GPUs", x_axis="epoch", y_axis="statistical efficiency", curves=curves)
    claims = (
        *_size_claims(sizes["pollux"], efficient["paper"]),
        _speedup_claim(_speedups(work_s), _speedups(samples_s), _largest_speedup(row)),
    )
    if settings.on_step is not None:
        settings.on_step(1, 1)
    return ExperimentOutcome(rows=rows, claims=claims, plots=(plot,))


def _size_claims(own: Sequence[int], theirs: Floats) -> tuple[PaperClaim, ...]:
    """Return the claims on Pollux's sizes here, and on the efficiency of the paper's."""
    printed = dict(PAPER_SIZES)
    worst, early, late = int(theirs.argmin()), float(theirs[:EARLY].mean()), float(theirs[LATE:].mean())
    return (
        PaperClaim(
            statement="Pollux raises the batch size throughout the training, to more than ten times the initial one",
            holds=list(own) == sorted(own) and own[-1] > 10 * FIRST_BATCH,
            numbers=", ".join(f"{own[epoch]} in epoch {epoch} (paper: {size})" for epoch, size in printed.items())
            + f", {own[-1]} in the last",
        ),
        PaperClaim(
            statement=f"the paper's batch sizes are inefficient before epoch {EARLY}: at worst more than half of a "
            f"sample is lost, and on average more than from epoch {LATE} on",
            holds=worst < EARLY and theirs[worst] < 0.5 and early < late,
            numbers=f"efficiency {theirs[worst]:.2f} in epoch {worst}, {early:.2f} before epoch {EARLY}, {late:.2f} "
            f"from epoch {LATE} on",
        ),
    )


def _speedup_claim(work: dict[str, float], samples: dict[str, float], largest: float) -> PaperClaim:
    return PaperClaim(
        statement="training is at least twice as fast as at the initial batch size, with efficiency counted",
        holds=min(work["paper"], work["pollux"]) >= 2.0,
        numbers=f"paper's sizes {work['paper']:.2f}x, Pollux's here {work['pollux']:.2f}x; with {EPOCHS} epochs of "
        f"samples at any size {samples['paper']:.2f}x and {samples['pollux']:.2f}x (paper: {PAPER_SPEEDUP:g}x; no size "
        f"could reach more than {largest:.2f}x)",
    )


def _speedups(seconds: dict[str, Floats]) -> dict[str, float]:
    """Return the time at the initial batch size over the time at each of the others."""
    return {name: float(seconds["initial"].sum() / each.sum()) for name, each in seconds.items()}


def _largest_speedup(row: ModelRow) -> float:
    """Return the speedup of samples over the initial batch size in the limit of large batches."""
    at_first_s = row.time.iteration(GPUS, FIRST_BATCH // GPUS).total_s / FIRST_BATCH
    return at_first_s / (row.time.compute_s_per_sample / GPUS)


def _chosen(speeds: ModelSpeeds) -> int:
    """Return the total batch size with the greatest goodput."""
    best = best_configuration(speeds, MODEL, GPUS, 1)
    assert best is not None, "the model runs on so many GPUs"
    return GPUS * best.batch_size


def _goodput(speeds: ModelSpeeds, total_batch: int) -> float:
    size, sub_batch = divided_batch(speeds.table.row(MODEL), total_batch, GPUS)
    return speeds.goodput(MODEL, GPUS, size, sub_batch=sub_batch)


def figure_14(settings: ExperimentSettings) -> ExperimentOutcome:
    """Return the efficiency of the batch sizes that Pollux chose on its traces, over the work of the jobs, by model."""
    speeds = ModelSpeeds(ModelTable.builtin(), gpus_per_machine=MACHINE_GPUS)
    found = pollux_workloads(settings, speeds)
    if isinstance(found, str):
        return ExperimentOutcome(rows=[], skipped=found)
    traces, gpus = found
    total, before = sum(len(trace) for trace, _ in traces.values()), 0
    # Batch sizes and efficiencies of each model's jobs at the shares of the work.
    by_model: dict[str, list[tuple[Floats, Floats]]] = {}
    for trace, _ in traces.values():

        def on_event(_call: int, _time_s: float, ended: int, _jobs: int, start: int = before) -> None:
            if settings.on_step is not None:
                settings.on_step(start + ended, total)

        _, stretches = run_pollux(trace, speeds, MACHINE_GPUS * -(-gpus // MACHINE_GPUS), on_event)
        before += len(trace)
        for index, model in enumerate(trace.model):
            row, sizes = speeds.table.row(model), sizes_over_work(stretches[index])
            by_model.setdefault(model, []).append((sizes, efficiency(row, sizes, noise_scale(row, GRID))))
    jobs = {model: by_model[model] for model in sorted(by_model)}
    means = {model: np.mean([each for _, each in mine], axis=0) for model, mine in jobs.items()}
    everyone = np.mean([each for mine in jobs.values() for _, each in mine], axis=0)
    rows = [_parts("all", sum(map(len, jobs.values())), everyone)]
    for model, mine in jobs.items():
        sizes = np.mean([size for size, _ in mine], axis=0)
        batches = {f"batch {part}": round(float(sizes[PARTS[part]].mean())) for part in ("first 30%", "last 30%")}
        rows.append(_parts(model, len(mine), means[model]) | batches)
    return ExperimentOutcome(rows=rows, claims=_claims(rows), plots=(_curves({"all": everyone} | means),))


def sizes_over_work(stretches: Sequence[BatchStretch]) -> Floats:
    """Return a job's total batch size at each share of `GRID`."""
    starts = [stretch.progress for stretch in stretches]
    sizes = np.array([float(stretch.total_batch) for stretch in stretches])
    return np.asarray(sizes[np.searchsorted(starts, GRID, side="right") - 1])


def _parts(model: str, jobs: int, efficient: Floats) -> dict[str, Any]:
    return {"model": model, "jobs": jobs} | {part: float(efficient[where].mean()) for part, where in PARTS.items()}


def _claims(rows: Sequence[dict[str, Any]]) -> tuple[PaperClaim, ...]:
    everyone = rows[0]
    rises = [row for row in rows if row["model"] in ("all", MODEL)]
    return (
        PaperClaim(
            statement="in the first tenth of the training more than half of a sample is lost, on average over the jobs",
            holds=everyone["first 10%"] < 0.5,
            numbers=", ".join(f"{row['model']} {row['first 10%']:.2f}" for row in rows),
        ),
        PaperClaim(
            statement=f"the first 30% are less efficient than the last 30%, over all jobs and those of {MODEL}",
            holds=all(row["first 30%"] < row["last 30%"] for row in rises),
            numbers=", ".join(f"{row['model']} {row['first 30%']:.2f} and {row['last 30%']:.2f}" for row in rows),
        ),
    )


def _curves(efficient: dict[str, Floats]) -> Curves:
    curves = {name: (GRID.tolist(), values.tolist()) for name, values in efficient.items()}
    title, y_axis = "Batch sizes that Pollux chose", "statistical efficiency"
    return Curves(title=title, x_axis="share of the work", y_axis=y_axis, curves=curves)
