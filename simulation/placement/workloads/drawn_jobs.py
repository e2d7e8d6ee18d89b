"""Jobs drawn by formula: a small testbed's, and those of a busy cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_generator, as_integer, as_integers, as_real, as_reals, same_length
from ....formulations.errors import InvalidInput
from ...traces.trace import Trace
from ..model_table import ModelTable
from .drawn_models import draw_models, gpu_batches

# GPUs of the testbed's small and large jobs, and the range of their iterations.
_SMALL_GPUS, _LARGE_GPUS, _ITERATIONS = (1, 2, 4, 8), (12, 16), (100, 5000)


def draw_testbed_jobs(
    rng: np.random.Generator,
    *,
    small_jobs: int = 20,
    large_jobs: int = 10,
    mean_interarrival_s: float = 0.0,
    table: ModelTable | None = None,
) -> Trace:
    """Draw the jobs of a testbed of 16 GPUs: small ones of 1, 2, 4 or 8 GPUs, large ones of 12 or 16, in random order.

    Numbers of GPUs and models are drawn evenly, iterations evenly from 100 to 5000, batch sizes per GPU evenly from
    `gpu_batches`. The same generator state and arguments give the same jobs to the last bit.

    Parameters
    ----------
    rng : numpy.random.Generator
    small_jobs, large_jobs : int
        Numbers of jobs, at least 0 and together at least 1.
    mean_interarrival_s : float
        Mean of the exponential gaps between arrivals, in seconds, at least 0 (0: all arrive at once). The first job
        arrives at 0.
    table : ModelTable, optional
        Built-in by default.

    Returns
    -------
    Trace
        With `total_steps` (one for each GPU and iteration), and without durations: they follow from the models.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    After the physical experiment of Y. Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise
    Resource Sharing", IWQoS 2024. How GPUs, models, iterations and arrivals are drawn is ours.
    """
    as_generator(rng)
    small, large = as_integer("small_jobs", small_jobs, minimum=0), as_integer("large_jobs", large_jobs, minimum=0)
    if not small + large:
        raise InvalidInput("small_jobs", small, "there must be a job, small or large")
    gap_s = as_real("mean_interarrival_s", mean_interarrival_s, minimum=0.0)
    rows = tuple((ModelTable.builtin() if table is None else table).rows)
    drawn = np.concatenate((rng.choice(_SMALL_GPUS, size=small), rng.choice(_LARGE_GPUS, size=large)))
    gang_gpus = rng.permutation(drawn)
    count = len(gang_gpus)
    chosen = [rows[place] for place in rng.integers(len(rows), size=count).tolist()]
    iterations = rng.integers(_ITERATIONS[0], _ITERATIONS[1], size=count, endpoint=True)
    batches = [gpu_batches(row, gpus) for row, gpus in zip(chosen, gang_gpus.tolist(), strict=True)]
    which = rng.random(count).tolist()
    return Trace(
        job_id=range(count),
        model=[row.model for row in chosen],
        batch_size=np.array([sizes[int(at * len(sizes))] for sizes, at in zip(batches, which, strict=True)]),
        gang_gpus=gang_gpus,
        total_steps=gang_gpus * iterations,
        arrival_s=_arrivals(rng, count, gap_s),
    )


def draw_cluster_jobs(
    rng: np.random.Generator,
    *,
    num_jobs: int,
    mean_interarrival_s: float = 90.0,
    mean_duration_s: float = 2484.0,
    sigma: float = 1.2,
    gpu_counts: Sequence[int] = (1, 2, 4, 8, 16),
    gpu_probabilities: Sequence[float] = (0.36, 0.22, 0.3, 0.04, 0.08),
    table: ModelTable | None = None,
) -> Trace:
    """Draw the jobs of a busy cluster: durations lognormal, gangs by their probabilities, models by GPU-hours.

    The same generator state and arguments give the same jobs to the last bit.

    Parameters
    ----------
    rng : numpy.random.Generator
    num_jobs : int
        Number of jobs, at least 1.
    mean_interarrival_s : float
        Mean of the exponential gaps between arrivals, in seconds, at least 0. The first job arrives at 0.
    mean_duration_s, sigma : float
        Mean of the durations, and standard deviation of their logarithms, positive.
    gpu_counts, gpu_probabilities : sequences of int and float
        Gang sizes and their probabilities, which add up to 1.
    table : ModelTable, optional
        Built-in by default; models and batch sizes are drawn by `draw_models`.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    The defaults have the proportions of the simulations of Y. Luo et al. (see `draw_testbed_jobs`), as far as their
    tables imply them: JCT without queueing is 0.69 h under FIFO, SJF and Tiresias, and 12% of the jobs have more than 4
    GPUs. The gap, sigma and the probabilities of the single gangs are ours: 240 such jobs on 64 GPUs queue under FIFO
    as long as theirs.
    """
    as_generator(rng)
    count = as_integer("num_jobs", num_jobs, minimum=1)
    gap_s = as_real("mean_interarrival_s", mean_interarrival_s, minimum=0.0)
    mean_s, spread = as_real("mean_duration_s", mean_duration_s, above=0.0), as_real("sigma", sigma, above=0.0)
    gangs = as_integers("gpu_counts", gpu_counts, minimum=1)
    shares = as_reals("gpu_probabilities", gpu_probabilities, minimum=0.0)
    same_length(gpu_probabilities=shares, gpu_counts=gangs)
    if abs(float(shares.sum()) - 1.0) > 1e-9:
        raise InvalidInput("gpu_probabilities", float(shares.sum()), "probabilities must add up to 1")
    arrival_s = _arrivals(rng, count, gap_s)
    gang_gpus = gangs[rng.choice(len(shares), size=count, p=shares / shares.sum())]
    duration_s = mean_s * np.exp(spread * rng.standard_normal(count) - 0.5 * spread**2)
    drawn = Trace(
        job_id=range(count),
        model=["unknown"] * count,
        gang_gpus=gang_gpus,
        arrival_s=arrival_s,
        duration_s=np.maximum(1.0, duration_s),
    )
    return draw_models(rng, drawn, table)


def _arrivals(rng: np.random.Generator, count: int, mean_gap_s: float) -> Floats:
    """Return arrivals with exponential gaps, the first at 0."""
    return np.concatenate(([0.0], np.cumsum(rng.standard_exponential(count - 1)) * mean_gap_s))
