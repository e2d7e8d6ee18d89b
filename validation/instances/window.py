"""Random windows of any size, for benchmarks and for tests at scale: the same generator draws the same window."""

from __future__ import annotations

import numpy as np

from ...formulations.window.problem import ScheduleWindow


def random_window(
    rng: np.random.Generator,
    *,
    jobs: int,
    gpus: int,
    rounds: int = 20,
    makespan_weight: float = 1e-3,
    restart_penalty: float = 0.0,
) -> ScheduleWindow:
    """Draw a window: gangs of 1, 2, 4, 8 (within the cluster), one to three regimes, any progress, mixed fairness.

    A regime's epoch time is redrawn, so that a later regime may be faster and tables are not concave.
    """
    widths = np.array([g for g in (1, 2, 4, 8) if g <= gpus])
    chances = np.array([0.6, 0.2, 0.1, 0.1])[: len(widths)]
    gang_gpus = rng.choice(widths, size=jobs, p=chances / chances.sum())
    lengths = rng.integers(1, 4, size=jobs)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    total = rng.integers(10, 200, size=jobs).astype(float)
    finished = np.floor(total * rng.uniform(0.0, 0.95, size=jobs))
    owner = np.repeat(np.arange(jobs), lengths)
    share = rng.dirichlet(np.ones(3), size=jobs)
    part = np.concatenate([row[:n] / row[:n].sum() for row, n in zip(share, lengths, strict=True)])
    epochs = np.maximum(part, 1e-3) * (total - finished)[owner]
    epochs *= ((total - finished) / np.bincount(owner, weights=epochs, minlength=jobs))[owner]
    epoch_s = np.exp(rng.normal(np.log(60.0), 0.7, size=jobs))[owner] * rng.uniform(0.4, 1.6, size=len(owner))
    predicted = np.bincount(owner, weights=epochs * epoch_s, minlength=jobs) * total / (total - finished)
    return ScheduleWindow.from_columns(
        gang_gpus=gang_gpus,
        finished_epochs=finished,
        total_epochs=total,
        regime_starts=starts,
        regime_epochs=epochs,
        regime_epoch_s=epoch_s,
        ftf=rng.uniform(0.6, 1.8, size=jobs),
        gpus=gpus,
        rounds=rounds,
        makespan_weight=makespan_weight,
        makespan_scale=float(predicted.sum()),
        restart_penalty=restart_penalty,
        running=np.flatnonzero(rng.random(jobs) < 0.5).tolist(),
    )
