"""Workload generator: random traces with Shockwave's mix of job sizes, gangs and modes of adaptation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.checks import as_generator, as_integer, as_integers, as_real, as_reals, same_length
from ...formulations.errors import InvalidInput
from ..profiles.rules import MODES, Runs
from ..profiles.table import Profiles
from .trace import Trace


@dataclass(frozen=True, kw_only=True)
class SizeClass:
    """Jobs whose GPU-time lies within [min_gpu_hours, max_gpu_hours), drawn with this probability."""

    name: str
    probability: float
    min_gpu_hours: float
    max_gpu_hours: float

    def __post_init__(self) -> None:
        as_real("probability", self.probability, minimum=0.0, maximum=1.0)
        as_real("min_gpu_hours", self.min_gpu_hours, above=0.0)
        as_real("max_gpu_hours", self.max_gpu_hours, above=self.min_gpu_hours)


# The paper's classes (Shockwave, Section 8.1). The paper gives the largest no upper end; here it is twice the lower.
SIZE_CLASSES = (
    SizeClass(name="small", probability=0.72, min_gpu_hours=0.2, max_gpu_hours=8.0),
    SizeClass(name="medium", probability=0.2, min_gpu_hours=8.0, max_gpu_hours=16.0),
    SizeClass(name="large", probability=0.05, min_gpu_hours=16.0, max_gpu_hours=72.0),
    SizeClass(name="extra large", probability=0.03, min_gpu_hours=72.0, max_gpu_hours=144.0),
)


def generate_trace(
    rng: np.random.Generator,
    *,
    num_jobs: int,
    mean_interarrival_s: float = 40.0,
    size_classes: Sequence[SizeClass] = SIZE_CLASSES,
    gpu_counts: Sequence[int] = (1, 2, 4, 8),
    gpu_probabilities: Sequence[float] = (0.6, 0.3, 0.09, 0.01),
    mode_probabilities: Mapping[str, float] | None = None,
    profiles: Profiles | None = None,
) -> Trace:
    """Draw a trace: the same generator state and arguments give the same jobs to the last bit.

    Parameters
    ----------
    rng : numpy.random.Generator
    num_jobs : int
        Number of jobs, at least 1.
    mean_interarrival_s : float
        Mean of the exponential gaps between arrivals, in seconds, at least 0 (0: all arrive at once). The first job
        arrives at 0.
    size_classes : sequence of SizeClass
        Classes of GPU-time, which is drawn uniformly within the drawn class. Probabilities add up to 1.
    gpu_counts, gpu_probabilities : sequences of int and float
        Gang sizes and their probabilities; the default mix is that of the paper's released traces.
    mode_probabilities : mapping of str to float, optional
        Shares of "static", "accordion" and "gns"; a third each by default. A mode left out has share 0.
    profiles : Profiles, optional
        Source of the models, drawn evenly among the (model, batch size) pairs with a rate on the gang; built-in by
        default.

    Raises
    ------
    InvalidInput
        If an argument is out of range, probabilities do not add up to 1, or no model runs on one of the gangs.

    Notes
    -----
    The trace has total_epochs and the true schedule of each job, in order of arrival, with ids 0 to num_jobs - 1.
    GPU-time counts at the initial batch size, as in the released generator: total_steps = GPU-seconds / gang x rate,
    rounded, at least 1. A job that enlarges its batch needs less. Source: P. Zheng et al., "Shockwave", NSDI 2023,
    Section 8.1.
    """
    as_generator(rng)
    count = as_integer("num_jobs", num_jobs, minimum=1)
    mean = as_real("mean_interarrival_s", mean_interarrival_s, minimum=0.0)
    if not size_classes:
        raise InvalidInput("size_classes", "[]", "must not be empty")
    class_shares = _shares("size_classes", [each.probability for each in size_classes])
    gang_sizes = as_integers("gpu_counts", gpu_counts, minimum=1)
    gang_size_shares = _shares("gpu_probabilities", gpu_probabilities)
    same_length(gpu_probabilities=gang_size_shares, gpu_counts=gang_sizes)
    mode_shares = _mode_shares(mode_probabilities)
    profiles = Profiles.builtin() if profiles is None else profiles

    # Every job uses the same draws in the same order for all arguments, so that changing one argument changes little.
    arrival_s = np.concatenate([[0.0], np.cumsum(rng.standard_exponential(count))[:-1] * mean])
    drawn_class = rng.choice(len(size_classes), size=count, p=class_shares)
    within = rng.random(count)
    gang_gpus = gang_sizes[rng.choice(len(gang_sizes), size=count, p=gang_size_shares)]
    modes = rng.choice(len(MODES), size=count, p=mode_shares)
    which = rng.random(count)

    low = np.array([each.min_gpu_hours for each in size_classes])[drawn_class]
    high = np.array([each.max_gpu_hours for each in size_classes])[drawn_class]
    gpu_s = 3600.0 * (low + within * (high - low))
    model, batch_size, rate, samples = _configurations(profiles, gang_gpus, which)
    steps = np.maximum(1, np.rint(gpu_s / gang_gpus * rate)).astype(np.int64)
    per_epoch = -(-samples // batch_size)
    epochs = -(-steps // per_epoch)
    schedule: list[Runs] = [
        profiles.schedule(name, size, gpus, MODES[mode], total)
        for name, size, gpus, mode, total in zip(
            model, batch_size.tolist(), gang_gpus.tolist(), modes.tolist(), epochs.tolist(), strict=True
        )
    ]
    return Trace(
        job_id=range(count),
        model=model,
        batch_size=batch_size,
        gang_gpus=gang_gpus,
        mode=[MODES[mode] for mode in modes],
        total_steps=steps,
        arrival_s=arrival_s,
        total_epochs=epochs,
        schedule=schedule,
    )


def _configurations(
    profiles: Profiles, gang_gpus: NDArray[np.int64], which: NDArray[np.float64]
) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Pick a (model, batch size) for each job evenly among those that run on its gang."""
    model = np.empty(len(gang_gpus), dtype=object)
    size = np.empty(len(gang_gpus), dtype=np.int64)
    rate = np.empty(len(gang_gpus))
    samples = np.empty(len(gang_gpus), dtype=np.int64)
    for gpus in np.unique(gang_gpus).tolist():
        choices = profiles.configurations(gpus)
        if not choices:
            raise InvalidInput("gpu_counts", gpus, f"no model of profiles '{profiles.name}' has a rate on so many GPUs")
        jobs = np.flatnonzero(gang_gpus == gpus)
        pick = (which[jobs] * len(choices)).astype(np.int64)
        model[jobs] = np.array([name for name, _ in choices], dtype=object)[pick]
        size[jobs] = np.array([batch_size for _, batch_size in choices])[pick]
        rate[jobs] = np.array([profiles.steps_per_s(name, batch_size, gpus) for name, batch_size in choices])[pick]
        samples[jobs] = np.array([profiles.dataset_sizes[name] for name, _ in choices])[pick]
    return model.tolist(), size, rate, samples


def _shares(name: str, values: Sequence[float]) -> NDArray[np.float64]:
    shares = as_reals(name, values, minimum=0.0)
    total = float(shares.sum())
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(name, total, "probabilities must add up to 1")
    return shares / total


def _mode_shares(given: Mapping[str, Any] | None) -> NDArray[np.float64]:
    if given is None:
        return _shares("mode_probabilities", [1 / 3] * 3)
    for mode in given:
        if mode not in MODES:
            raise InvalidInput("mode_probabilities", mode, f"modes are {', '.join(MODES)}")
    return _shares("mode_probabilities", [given.get(mode, 0.0) for mode in MODES])
