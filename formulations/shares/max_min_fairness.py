"""MaxMinFairness: shares of GPU time that maximise the least level of a job, by Gavel's measure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Indices
from ..checks import as_flag, as_reals, refuse, same_length, store_checked
from ..former_names import former_parameters
from ..program.data import ProblemClass
from .levels import LevelShares
from .polytope import GpuShares

# Relative error of compensated sums: of each cost, and of the cost of one more unit of a level.
ROUNDING = 1e-14
# A job's level counts as settled if its bound is within this share of it; the shares are tried in order.
SETTLED = (1e-9, 1e-7, 1e-5, 1e-3)


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

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the bound on the least level that the plan's prices prove (see `LevelShares`).

        With water filling the bound includes the largest `shortfall` of any level, so that the gap covers all levels.
        """
        bound = self.level_bound(self.prices_of(plan))
        if not self.water_filling:
            return bound
        short = self.shortfall(plan)
        return max(bound, float(self.levels(plan.shares).min()) / (1.0 - short)) if short < 1 else math.inf

    def proved_levels(self, plan: GpuShares, settled: float = SETTLED[0]) -> Floats:
        """Return bounds on the level of each job while no other job falls, shape (N,), that `level_prices` prove.

        No other job falls: each keeps the lesser of its own level in the plan and that of the job. The plan is the
        lexicographic optimum if and only if no job can rise under this condition. Any prices prove a bound at any level
        t of the plan: all jobs together pay at most p.M, and the floors min(t, level) cost S. So a job that reaches t
        can rise by at most (p.M - S) / (its cost of one more unit). The rows of prices are taken in turn; t is the
        least level of the jobs whose bound is still more than a share `settled` above their level. This choice makes
        the bounds tight; they are valid for any t.
        """
        from .kernels import cheapest, within_reach

        groups = self.groups
        worth, gang_gpus, highest = self.worth[groups.first], self.gang_gpus[groups.first], self.highest[groups.first]
        bounds = highest.copy()
        levels = np.full(len(bounds), math.inf)
        np.minimum.at(levels, groups.of_job, self.levels(plan.shares))
        for row in () if plan.level_prices is None else plan.level_prices:
            prices = self.prices_of(replace(plan, prices=row))
            rising = bounds > levels * (1.0 + settled)
            money = math.fsum(prices * self.gpus)
            if not (rising.any() and money > 0):
                continue
            level = float(levels[rising].min())
            floors = np.minimum(level, np.minimum(levels, highest))
            usage = np.zeros(len(prices))
            paid, slope, _ = cheapest(worth, gang_gpus, groups.counts, prices, 0.0, floors, 0.0, usage)
            spare = abs(money - paid) + ROUNDING * (money + level * slope)
            reach = within_reach(worth, gang_gpus, prices, floors, spare)
            bounds = np.where(levels >= level, np.minimum(bounds, reach), bounds)
        return np.asarray(bounds[groups.of_job])

    def shortfall(self, plan: GpuShares) -> float:
        """Return the largest share by which a level of the plan misses its bound (see `proved_levels`).

        At 0 the plan is the lexicographic optimum. Without `level_prices` the bounds are the jobs' highest levels.
        """
        self.check_plan(plan)
        levels, least = self.levels(plan.shares), math.inf
        for settled in SETTLED:
            least = min(least, float((1.0 - levels / self.proved_levels(plan, settled)).max()))
            if least <= settled:
                break
        return least
