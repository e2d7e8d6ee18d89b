"""Time model of one training iteration: computation, communication on two network levels, and their overlap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_integers, as_real, as_reals, refuse, same_length, store_checked
from ...formulations.errors import InvalidInput

# Largest overlap of a fit: the maximum of two times is close to their norm of this order (Pollux, Section 3.2).
LARGEST_OVERLAP = 10.0


class Iteration(NamedTuple):
    """Seconds of one iteration, and the part of them that is communication not hidden by computation."""

    total_s: float
    exposed_s: float


@dataclass(frozen=True, kw_only=True)
class TimeModel:
    """Constants of the time of one iteration of data-parallel training.

    Parameters
    ----------
    compute_s : float
        Fixed computation time of a sub-batch, in seconds, at least 0 (alpha_c).
    compute_s_per_sample : float
        Computation time per sample on one GPU, in seconds, positive (beta_c).
    within_s, within_s_per_gpu : float
        Communication time of two GPUs of one machine, and for each further GPU, in seconds, at least 0 (alpha_r,
        beta_r).
    across_s, across_s_per_gpu : float
        The same for GPUs of several machines (alpha_n, beta_n).
    overlap : float or mapping of int to float
        Overlap of computation and communication, at least 1: at 1 the times add up, above it they hide each other
        (gamma). A mapping states it by the samples that a GPU computes at once; other numbers of samples have the
        overlap of the nearest smaller one, or else of the least.

    Raises
    ------
    InvalidInput
        If a constant is out of range.

    Notes
    -----
    With s sub-batches, of which the last alone overlaps with the communication, an iteration takes
    ``(s - 1) t_comp + (t_comp^gamma + t_net^gamma)^(1 / gamma)`` seconds (Pollux, Section 3.2, with gradient
    accumulation).
    """

    compute_s: float
    compute_s_per_sample: float
    within_s: float
    within_s_per_gpu: float
    across_s: float
    across_s_per_gpu: float
    overlap: float | Mapping[int, float]

    def __post_init__(self) -> None:
        networks = ("within_s", "within_s_per_gpu", "across_s", "across_s_per_gpu")
        store_checked(self, as_real, "compute_s", *networks, minimum=0.0)
        store_checked(self, as_real, "compute_s_per_sample", above=0.0)
        if not isinstance(self.overlap, Mapping):
            store_checked(self, as_real, "overlap", minimum=1.0)
            return
        if not self.overlap:
            raise InvalidInput("overlap", "{}", "must not be empty: a mapping has the overlap of at least one batch")
        checked = {
            as_integer("overlap", size, minimum=1): as_real(f"overlap[{size}]", value, minimum=1.0)
            for size, value in self.overlap.items()
        }
        object.__setattr__(self, "overlap", checked)

    def compute(self, samples: float) -> float:
        """Return the seconds of computation on this many samples per GPU."""
        return self.compute_s + self.compute_s_per_sample * samples

    def network(self, gpus: int, machines: int = 1) -> float:
        """Return the seconds of communication between this many GPUs on so many machines; 0 for one GPU."""
        if gpus == 1:
            return 0.0
        if machines == 1:
            return self.within_s + self.within_s_per_gpu * (gpus - 2)
        return self.across_s + self.across_s_per_gpu * (gpus - 2)

    def overlap_at(self, samples: float) -> float:
        """Return the overlap where a GPU computes this many samples at once."""
        if not isinstance(self.overlap, Mapping):
            return self.overlap
        return self.overlap[max((size for size in self.overlap if size <= samples), default=min(self.overlap))]

    def iteration(self, gpus: int, batch_size: int, *, sub_batch: int | None = None, machines: int = 1) -> Iteration:
        """Return the time of one iteration.

        `batch_size` samples per GPU are computed in the fewest equal sub-batches of at most `sub_batch` samples (by
        default, in one).
        """
        steps = 1 if sub_batch is None else ceil(batch_size / sub_batch)
        compute = self.compute(batch_size / steps)
        network = self.network(gpus, machines)
        larger, smaller = (compute, network) if compute > network else (network, compute)
        overlap = self.overlap_at(batch_size / steps)
        last = larger * (1.0 + (smaller / larger) ** overlap) ** (1.0 / overlap)
        return Iteration((steps - 1) * compute + last, last - compute)


@dataclass(frozen=True, kw_only=True, eq=False)
class TimeModelFit:
    """A fitted time model, and how far it is from the measurements.

    Parameters
    ----------
    time : TimeModel
    log_residuals : array of float, shape (n,)
        Logarithm of predicted over measured throughput, in the order of the measurements.
    """

    time: TimeModel
    log_residuals: Floats

    @property
    def rms_log_error(self) -> float:
        """Root mean square of the residuals."""
        return float(np.sqrt(np.mean(self.log_residuals**2)))


def fit_time_model(
    gpus: ArrayLike, batch_size: ArrayLike, throughput: ArrayLike, *, machines: ArrayLike | None = None
) -> TimeModelFit:
    """Fit the constants of the time model to measured throughputs, by least squares of the logarithms.

    Parameters
    ----------
    gpus : array_like of int, shape (n,)
        GPUs of each measurement, at least 1.
    batch_size : array_like of int, shape (n,)
        Samples per GPU and iteration, at least 1, without gradient accumulation.
    throughput : array_like of float, shape (n,)
        Samples per second on all GPUs together, positive.
    machines : array_like of int, shape (n,), optional
        Machines that hold the GPUs, at least 1 and at most `gpus`; 1 by default.

    Returns
    -------
    TimeModelFit

    Raises
    ------
    InvalidInput
        If there is no measurement, or one is out of range.

    Notes
    -----
    What was not measured is set by rule: the fixed computation time is 0 if all batch sizes are equal; the time per
    further GPU is 0 on a level with a single number of GPUs, and a level without a measurement has the constants of
    the other one. The overlap is at most 10. Where communication is short, the throughput hardly depends on the
    overlap, and predictions are more exact than the constants.
    """
    counts, sizes = as_integers("gpus", gpus, minimum=1), as_integers("batch_size", batch_size, minimum=1)
    measured = as_reals("throughput", throughput, above=0.0)
    spread = np.ones_like(counts) if machines is None else as_integers("machines", machines, minimum=1)
    same_length(batch_size=sizes, throughput=measured, machines=spread, gpus=counts)
    if not len(counts):
        raise InvalidInput("gpus", "[]", "must not be empty: a fit needs measurements")
    refuse("machines", spread > counts, spread, "more machines than GPUs")
    return _Fit(counts, sizes, spread, np.log(counts * sizes / measured)).best()


class _Fit:
    """Least squares over the logarithms of those constants that the measurements determine."""

    def __init__(
        self, gpus: NDArray[np.int64], sizes: NDArray[np.int64], machines: NDArray[np.int64], log_s: Floats
    ) -> None:
        self.sizes, self.further, self.log_s = sizes, gpus - 2, log_s
        self.alone = gpus == 1
        self.levels = {"within": ~self.alone & (machines == 1), "across": machines > 1}
        self.free = ["compute_s"] if len(np.unique(sizes)) > 1 else []
        self.free.append("compute_s_per_sample")
        for level, mask in self.levels.items():
            self.free += [f"{level}_s"] if mask.any() else []
            self.free += [f"{level}_s_per_gpu"] if len(np.unique(gpus[mask])) > 1 else []
        self.free += [] if self.alone.all() else ["overlap"]

    def best(self) -> TimeModelFit:
        """Return the better of the local optima from a small and a large overlap."""
        from scipy.optimize import least_squares

        found = []
        for overlap in (1.5, 5.0) if "overlap" in self.free else (1.0,):
            start = self._start(overlap)
            lower = [0.0 if name == "overlap" else -40.0 for name in self.free]
            upper = [np.log(LARGEST_OVERLAP) if name == "overlap" else 40.0 for name in self.free]
            found.append(least_squares(self._errors, start, bounds=(lower, upper), xtol=1e-12, ftol=1e-12, gtol=1e-12))
        best = min(found, key=lambda result: float(result.cost))
        constants = self._constants(best.x)
        for level, other in (("within", "across"), ("across", "within")):
            if not self.levels[level].any():
                constants |= {f"{level}{end}": constants[f"{other}{end}"] for end in ("_s", "_s_per_gpu")}
        return TimeModelFit(time=TimeModel(**constants), log_residuals=-self._errors(best.x))

    def _start(self, overlap: float) -> Floats:
        """Return logarithms of plausible constants: half of the shortest time is fixed, the rest divided by samples."""
        seconds = np.exp(self.log_s)
        first = {
            "compute_s": seconds.min() / 2,
            "compute_s_per_sample": np.median(seconds / self.sizes) / 2,
            "overlap": overlap,
        }
        for level, mask in self.levels.items():
            if mask.any():
                first[f"{level}_s"] = np.median(seconds[mask]) / 2
                first[f"{level}_s_per_gpu"] = first[f"{level}_s"] / 100
        return np.log([first[name] for name in self.free])

    def _constants(self, logs: Floats) -> dict[str, Any]:
        none = {field.name: 0.0 for field in fields(TimeModel)}
        return none | {"overlap": 1.0} | dict(zip(self.free, np.exp(logs).tolist(), strict=True))

    def _errors(self, logs: Floats) -> Floats:
        """Return the logarithms of predicted over measured seconds, shape (n,)."""
        known = self._constants(logs)
        compute = known["compute_s"] + known["compute_s_per_sample"] * self.sizes
        network = np.zeros(len(self.sizes))
        for level, mask in self.levels.items():
            network[mask] = known[f"{level}_s"] + known[f"{level}_s_per_gpu"] * self.further[mask]
        larger, overlap = np.maximum(compute, network), known["overlap"]
        ratio = np.minimum(compute, network) / larger
        return np.asarray(np.log(larger) + np.log1p(ratio**overlap) / overlap - self.log_s)
