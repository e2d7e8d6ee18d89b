"""Jobs of the mix of GPUs and models that Dally published, with run times and arrivals by formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ....formulations.arrays import Indices
from ....formulations.checks import LARGEST_INTEGER, as_generator, as_integer, as_real
from ....formulations.errors import InvalidInput
from ...traces.trace import Trace

#: Jobs by number of GPUs, of the 500 that arrive at once.
DALLY_DEMANDS: Mapping[int, int] = MappingProxyType({1: 270, 2: 13, 4: 52, 8: 109, 16: 42, 32: 11, 40: 1, 48: 1, 56: 1})
#: Jobs by model, of the 500 that arrive at once.
DALLY_MODELS: Mapping[str, int] = MappingProxyType(
    {"MobileNetV3": 125, "BERT-large": 125, "ResNet50": 125, "AlexNet": 53, "ResNet18": 38, "VGG11": 34}
)
#: Arrivals of `draw_dally_jobs`.
ARRIVALS = ("batch", "poisson")
# The load of Poisson arrivals where none is given.
_LOAD = 2.0


def draw_dally_jobs(
    rng: np.random.Generator,
    *,
    jobs: int = 500,
    arrivals: str = "batch",
    load: float | None = None,
    gpus: int | None = None,
    median_s: float = 86400.0,
    sigma: float = 1.5,
    demands: Mapping[int, int] = DALLY_DEMANDS,
    models: Mapping[str, int] = DALLY_MODELS,
) -> Trace:
    """Draw jobs of Dally's mix: demands and models as published, durations lognormal, arrivals at once or Poisson.

    Demands, and independently models, are dealt like shuffled cards of which the mix states the numbers: 500 jobs have
    exactly the published counts, fewer are a sample of them without replacement. The same generator state and arguments
    give the same jobs to the last bit, and the same jobs for both kinds of arrivals.

    Parameters
    ----------
    rng : numpy.random.Generator
    jobs : int
        Number of jobs, at least 1. Published: 500 at once, about 400 by Poisson arrivals.
    arrivals : str
        "batch" (all jobs at 0) or "poisson" (exponential gaps, the first job at 0).
    load : float, optional
        GPU-seconds that arrive per second and GPU, positive; 2 by default. With Poisson arrivals only.
    gpus : int, optional
        GPUs of the cluster. Demands that do not fit are left out of the mix; Poisson arrivals need it.
    median_s, sigma : float
        Median of the durations in seconds, and standard deviation of their logarithms, positive. A duration is at least
        1 s.
    demands : mapping of int to int
        Number of jobs of the mix for each number of GPUs, at least 1.
    models : mapping of str to int
        Number of jobs of the mix for each model, at least 1.

    Returns
    -------
    Trace
        With `duration_s` and batch size 1, in order of arrival, with ids 0 to jobs - 1.

    Raises
    ------
    InvalidInput
        If an argument is out of range, no demand fits, or a load is given for jobs that arrive at once.

    Notes
    -----
    Demands, models and numbers of jobs are those of Dally's evaluation. It publishes neither durations nor rates, nor
    which models have which demands: median, sigma, load and independence are ours. The mean gap follows from the load
    and the GPU-seconds of the jobs drawn, as in the generator of the fluid engine.
    """
    as_generator(rng)
    count = as_integer("jobs", jobs, minimum=1)
    if arrivals not in ARRIVALS:
        raise InvalidInput("arrivals", arrivals, f"must be one of {', '.join(ARRIVALS)}")
    at_once = arrivals == "batch"
    if at_once and load is not None:
        raise InvalidInput("load", load, "belongs to Poisson arrivals: jobs that arrive at once have no load")
    offered = as_real("load", _LOAD if load is None else load, above=0.0)
    middle_s, spread = as_real("median_s", median_s, above=0.0), as_real("sigma", sigma, above=0.0)
    if gpus is None and not at_once:
        raise InvalidInput("gpus", None, "must be given for Poisson arrivals: the load counts the GPUs of the cluster")
    most = LARGEST_INTEGER if gpus is None else as_integer("gpus", gpus, minimum=1)
    fitting = {demand: demands[demand] for demand in demands if as_integer("demands", demand, minimum=1) <= most}
    if demands and not fitting:
        raise InvalidInput("demands", dict(demands), f"none fits the cluster of {most} GPUs")
    gang_gpus = np.array(list(fitting))[_dealt(rng, "demands", fitting, count)]
    names = _model_names(rng, models, count)
    duration_s = np.maximum(1.0, middle_s * np.exp(spread * rng.standard_normal(count)))
    arrival_s = np.zeros(count)
    if not at_once:
        mean_gap_s = float((duration_s * gang_gpus).mean()) / (offered * most)
        arrival_s[1:] = np.cumsum(rng.standard_exponential(count - 1)) * mean_gap_s
    return Trace(job_id=range(count), model=names, gang_gpus=gang_gpus, arrival_s=arrival_s, duration_s=duration_s)


def assign_models(rng: np.random.Generator, trace: Trace, models: Mapping[str, int] = DALLY_MODELS) -> Trace:
    """Return the trace with a model of the mix for each job, dealt as in `draw_dally_jobs`; all else stays as it is.

    For traces that name no models, such as Helios. InvalidInput if an argument is out of range.
    """
    return replace(trace, model=_model_names(as_generator(rng), models, len(trace)))


def _model_names(rng: np.random.Generator, models: Mapping[str, int], count: int) -> list[str]:
    names = list(models)
    return [names[index] for index in _dealt(rng, "models", models, count).tolist()]


def _dealt(rng: np.random.Generator, field: str, mix: Mapping[Any, int], count: int) -> Indices:
    """Return so many indices of a mix, dealt from shuffled packs of its cards."""
    if not mix:
        raise InvalidInput(field, "{}", "must not be empty")
    numbers = [as_integer(f"{field}[{key!r}]", number, minimum=1) for key, number in mix.items()]
    pack = np.repeat(np.arange(len(numbers)), numbers)
    packs = [rng.permutation(pack) for _ in range(-(-count // len(pack)))]
    return np.asarray(np.concatenate(packs)[:count])
