"""Samples of a workload: traces of jobs drawn from a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ...simulation.traces.trace import Trace

#: Fewest jobs of a history from which samples are drawn.
LEAST_HISTORY = 10


@dataclass(frozen=True, kw_only=True)
class HistorySamples:
    """Samples drawn from a history of jobs.

    Parameters
    ----------
    trace : Trace
        History, at least 10 jobs.
    samples, held_out : int
        Numbers of training and of test samples; no two have the same draws.
    jobs : int
        Jobs of each sample: rows of the history, drawn with replacement, so that size, demand and model of a job stay
        together. They arrive with exponential gaps.
    load : float, optional
        Work on one GPU that arrives per second, over all GPUs; by default the mean gap is that of the history.
    seed : int
    batches : bool
        Whether jobs that all arrive at once are a history without `load`; the samples are then such batches, too.

    Raises
    ------
    InvalidInput
        If the history is too small, an argument is out of range, or all jobs arrive at once where that is no history.
    """

    trace: Trace
    samples: int = 1
    held_out: int = 1
    jobs: int = 1000
    load: float | None = None
    seed: int = 0
    batches: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.trace, Trace):
            raise InvalidInput("trace", type(self.trace).__name__, "must be a Trace")
        if len(self.trace) < LEAST_HISTORY:
            raise InvalidInput("trace", f"{len(self.trace)} jobs", f"a history must have at least {LEAST_HISTORY}")
        for name, least in (("samples", 1), ("held_out", 0), ("jobs", 1), ("seed", 0)):
            object.__setattr__(self, name, as_integer(name, getattr(self, name), minimum=least))

    def drawn(self, gpus: int, sizes_s: Callable[[], Floats]) -> tuple[tuple[Trace, ...], tuple[Trace, ...]]:
        """Return the training and the test samples.

        Parameters
        ----------
        gpus : int
            GPUs of the cluster.
        sizes_s : callable
            Work of the jobs of the history in GPU-seconds; called only where there is a load.
        """
        mean_gap_s = float(np.ptp(self.trace.arrival_s)) / (len(self.trace) - 1)
        if self.load is not None:
            mean_gap_s = float(sizes_s().mean()) / (as_real("load", self.load, above=0.0) * gpus)
        elif mean_gap_s == 0.0 and not self.batches:
            raise InvalidInput("trace", "one time of arrival", "a history needs a rate of arrivals, or else load")
        found = tuple(
            sample_jobs(np.random.default_rng(each), self.trace, jobs=self.jobs, mean_gap_s=mean_gap_s)
            for each in np.random.SeedSequence(self.seed).spawn(self.samples + self.held_out)
        )
        return found[: self.samples], found[self.samples :]


def sample_jobs(rng: np.random.Generator, trace: Trace, *, jobs: int, mean_gap_s: float) -> Trace:
    """Return a trace of jobs that are rows of another one, drawn with replacement, with exponential gaps."""
    rows = rng.integers(0, len(trace), jobs)
    gaps_s = rng.exponential(mean_gap_s, jobs - 1)
    columns: dict[str, Any] = {}
    for each in fields(trace):
        column = getattr(trace, each.name)
        if column is not None and each.name not in ("job_id", "arrival_s", "source"):
            columns[each.name] = column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
    return Trace(job_id=range(jobs), arrival_s=np.append(0.0, np.cumsum(gaps_s)), **columns)
