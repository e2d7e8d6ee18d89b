"""MaxMinFairness: shares of GPU time that raise the job that is worst off, by Gavel's measure, as far as possible."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices
from ..checks import as_flag, as_reals, same_length
from ..program.data import ProblemClass, Residuals
from .levels import ROUNDING, LevelShares, level_bound
from .polytope import GpuShares

# A job pays for rising if that costs more than this share of what its dearest type does: less is rounding.
HELD = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class MaxMinFairness(LevelShares):
    """Maximise ``min_j (g_j / (w_j prop_j)) sum_k tau_jk x_jk`` over the shares of GPU time in P.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of that type (tau), at least 0; every job runs somewhere.
    gangs : array_like of int, shape (N,)
        GPUs that a job holds while it runs (g).
    gpus : array_like of int, shape (K,)
        GPUs of each type (M).
    weights : array_like of float, shape (N,), optional
        Greater than 0; 1 by default. Twice the weight is twice the level before a job counts as equal.
    agnostic : bool
        Every type counts as equally fast to a job that can run on it (tau = 1, in prop_j as well): Gavel's policy
        without performance.
    water_filling : bool
        After the least level, raise the next higher one as far as it goes, and so on: the lexicographic optimum. The
        objective is the least level all the same. No single linear program states it.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    ``prop_j = sum_k tau_jk M_k / sum_k M_k`` is what the job would do with its time spread over the types in proportion
    to their GPUs (Gavel's proportional policy): levels of jobs of different speeds can be compared. On one type it is
    tau_j, the level is g_j x_j / w_j, and with equal weights the optimum is min(min g, M / N).

    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI
    2020, Sections 4.1 and 4.3; the factor g_j is that of its released code.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.MaxMinFairness(rates=[[1.0], [1.0], [1.0]], gangs=[1, 1, 2], gpus=[2])
    >>> eq.solve(problem).require_optimal().shares.round(4).tolist()
    [[0.6667], [0.6667], [0.3333]]
    """

    rates: Floats
    gangs: Indices
    gpus: Indices
    weights: Floats = None  # type: ignore[assignment]  # ones, of the jobs' number
    agnostic: bool = False
    water_filling: bool = False

    sense = "max"
    reference: ClassVar[str] = "Gavel, OSDI 2020, Section 4.1"

    def __post_init__(self) -> None:
        self._set_polytope(self.rates, self.gangs, self.gpus, runs=True)
        given: ArrayLike = np.ones(self.num_jobs) if self.weights is None else self.weights
        weights = as_reals("weights", given, above=0.0)
        same_length(weights=weights, rates=self.rates)
        object.__setattr__(self, "weights", weights)
        for name in ("agnostic", "water_filling"):
            object.__setattr__(self, name, as_flag(name, getattr(self, name)))
        _check_worth(self.worth, "weights", self.weights)

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
            return np.asarray(speed * (self.gangs / (self.weights * proportional))[:, None])

    def evaluate(self, plan: GpuShares) -> tuple[float, Residuals]:
        """Return the least level and the worst violations of P, recomputed."""
        return self.level_and_residuals(plan)

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the bound on the least level that the plan's prices prove (see `LevelShares`).

        With water filling the largest `shortfall` of a level counts like one of the least: the gap is that of all
        levels.
        """
        bound = self.level_bound(self.prices_of(plan))
        if not self.water_filling:
            return bound
        short = self.shortfall(plan)
        return max(bound, float(self.levels(plan.shares).min()) / (1.0 - short)) if short < 1 else math.inf

    def proved_levels(self, level_prices: Floats) -> Floats:
        """Return bounds on the levels of the lexicographic optimum, shape (N,), that prices of each level prove.

        The prices, shape (L, K), are taken in turn. Each bounds the next level of all that may still rise; whoever
        would have to pay for rising is held there, the rest go on. What is left at the end can at most reach `highest`.
        The bounds of jobs held at one level hold if those before are reached.
        """
        groups = self.groups
        worth, gangs = self.worth[groups.first], self.gangs[groups.first]
        caps = self.highest[groups.first].copy()
        for number, prices in enumerate(level_prices):
            # Whoever was held at a level before may be held a rounding above it, and costs so much more.
            rounding = ROUNDING * (1 + 10 * number)
            level = level_bound(worth, gangs, groups.counts, self.gpus, prices, caps, rounding)
            caps[held_at(level, worth, gangs, prices, caps)] = level
        return np.asarray(caps[groups.of_job])

    def shortfall(self, plan: GpuShares) -> float:
        """Return the largest share by which a level of the plan misses its bound (see `proved_levels`).

        At 0 the plan is the lexicographic optimum. Without `level_prices` only the jobs' highest levels are bounds.
        """
        self.check_plan(plan)
        prices = np.zeros((0, self.num_types)) if plan.level_prices is None else plan.level_prices
        return float((1.0 - self.levels(plan.shares) / self.proved_levels(prices)).max())


def held_at(level: float, worth: Floats, gangs: Any, prices: Floats, caps: Floats) -> NDArray[np.bool_]:
    """Return which jobs that may still rise above a level would have to pay for it, shape of `caps`."""
    from .kernels import dearer

    rise = dearer(worth, gangs, prices, np.minimum(level, caps)) * worth.max(axis=1)
    above = caps > level
    held = above & (rise > HELD * gangs * prices.max())
    return np.asarray(held if held.any() else above & (rise > 0))


def _check_worth(worth: Floats, field: str, values: Floats) -> None:
    """Raise InvalidInput where the quotient left the range of doubles."""
    from ..errors import InvalidInput

    most = worth.max(axis=1)
    bad = ~((most > 0) & np.isfinite(most))
    if bad.any():
        at = int(np.argmax(bad))
        raise InvalidInput(field, float(values[at]), "its quotient is out of the range of numbers", index=at)
