"""MinTotalDuration: shares of GPU time that finish all jobs by the earliest common time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..arrays import Floats, Indices
from ..checks import as_reals, refuse, same_length, store_checked
from ..former_names import former_parameters
from ..program.data import Residuals
from .levels import LevelShares
from .polytope import GpuShares


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, eq=False, repr=False)
class MinTotalDuration(LevelShares):
    """Minimise T with ``sum_k tau_jk x_jk >= n_j / T`` over the shares of GPU time in P.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of that type (tau), at least 0; every job runs somewhere.
    steps : array_like of float, shape (N,)
        Steps left of each job (n), greater than 0.
    gang_gpus : array_like of int, shape (N,)
        GPUs that a job holds while it runs (g).
    gpus : array_like of int, shape (K,)
        GPUs of each type (M).

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    The problem is one linear program in 1/T, the level of `LevelShares` with worth tau_jk / n_j; it needs no bisection.
    Its prices are in units of 1/T. On one type T = max(max_j n_j / tau_j, sum_j g_j n_j / (tau_j M)). The objective of
    the program, and of the progress reports of a general backend, is 1/T.

    D. Narayanan et al. (Gavel), OSDI 2020, Section 4.2, have the policy of this name; it is Shockwave's baseline
    "OSSP".

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.MinTotalDuration(rates=[[2.0], [1.0]], steps=[100.0, 100.0], gang_gpus=[1, 1], gpus=[1])
    >>> round(eq.solve(problem).objective, 6)
    150.0
    """

    rates: Floats
    steps: Floats
    gang_gpus: Indices
    gpus: Indices

    sense = "min"
    reference: ClassVar[str] = "Gavel, OSDI 2020, Section 4.2"

    def __post_init__(self) -> None:
        self._check_polytope(runs=True)
        store_checked(self, as_reals, "steps", above=0.0)
        same_length(steps=self.steps, rates=self.rates)
        bad = ~((self.highest > 1e-300) & (self.highest < 1e300))
        refuse("steps", bad, self.steps, "its run time is out of the range of numbers")

    @cached_property
    def worth(self) -> Floats:
        """``tau_jk / n_j``, per second, shape (N, K)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.rates / self.steps[:, None])

    def evaluate(self, plan: GpuShares) -> tuple[float, Residuals]:
        """Return T in seconds, infinite if a job does not run, and the worst violations of P, recomputed."""
        level, residuals = super().evaluate(plan)
        return (1.0 / level if level > 0 else math.inf), residuals

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the lower bound on T, in seconds, that the plan's prices prove (see `LevelShares`)."""
        return 1.0 / self.level_bound(self.prices_of(plan))
