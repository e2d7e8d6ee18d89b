"""MaxMinFairness: shares of GPU time that maximise the least level of a job, by Gavel's measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Indices
from ..checks import as_flag, as_reals, refuse, same_length, store_checked
from ..former_names import former_parameters
from ..program.data import ProblemClass
from .levels import LevelShares


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, eq=False, repr=False)
class MaxMinFairness(LevelShares):
    """Maximise ``min_j (g_j / (w_j prop_j)) sum_k tau_jk x_jk`` over the shares of GPU time in P.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of that type (tau), at least 0; every job runs somewhere.
    gang_gpus : array_like of int, shape (N,)
        GPUs that a job holds while it runs (g).
    gpus : array_like of int, shape (K,)
        GPUs of each type (M).
    weights : array_like of float, shape (N,), optional
        Weight of each job, greater than 0; 1 by default. A job of twice the weight needs twice the throughput for the
        same level.
    agnostic : bool
        Whether all types on which a job can run count as equally fast (tau = 1, in prop_j as well): Gavel's policy
        without performance.
    water_filling : bool
        Whether to maximise the next higher levels after the least one, in order: the lexicographic optimum. The
        objective is still the least level. No single linear program states it.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    ``prop_j = sum_k tau_jk M_k / sum_k M_k`` is the job's throughput if its time is split over the types in proportion
    to their GPUs (Gavel's proportional policy). It makes levels of jobs of different speeds comparable. On one type it
    is tau_j, the level is g_j x_j / w_j, and with equal weights the optimum is min(min g, M / N).

    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI
    2020, Sections 4.1 and 4.3; the factor g_j is that of its released code.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.MaxMinFairness(rates=[[1.0], [1.0], [1.0]], gang_gpus=[1, 1, 2], gpus=[2])
    >>> eq.solve(problem).require_optimal().shares.round(4).tolist()
    [[0.6667], [0.6667], [0.3333]]
    """

    rates: Floats
    gang_gpus: Indices
    gpus: Indices
    weights: Floats = None  # type: ignore[assignment]  # ones, of the jobs' number
    agnostic: bool = False
    water_filling: bool = False

    sense = "max"
    reference: ClassVar[str] = "Gavel, OSDI 2020, Section 4.1"

    def __post_init__(self) -> None:
        self._check_polytope(runs=True)
        given: ArrayLike = np.ones(self.num_jobs) if self.weights is None else self.weights
        weights = as_reals("weights", given, above=0.0)
        same_length(weights=weights, rates=self.rates)
        object.__setattr__(self, "weights", weights)
        store_checked(self, as_flag, "agnostic", "water_filling")
        bad = ~((self.highest > 0) & np.isfinite(self.highest))
        refuse("weights", bad, weights, "its quotient is out of the range of numbers")

    @property
    def kind(self) -> str:
        """The name by which backends list it."""
        return "MaxMinFairness:water_filling" if self.water_filling else "MaxMinFairness"

    def class_of(self, form: str | None = None) -> ProblemClass | None:
        """Return LP; None with water filling, which no single program states."""
        return None if self.water_filling else super().class_of(form)

    @cached_property
    def worth(self) -> Floats:
        """``g_j tau_jk / (w_j prop_j)``, shape (N, K)."""
        relative = self.rates / self.rates.max(axis=1, keepdims=True)
        speed = self.runnable.astype(np.float64) if self.agnostic else relative
        proportional = speed @ (self.gpus / self.gpus.sum())
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(speed * (self.gang_gpus / (self.weights * proportional))[:, None])
