"""LevelShares: problems that maximise a common level over shares of GPU time, and the bound that prices prove."""

from __future__ import annotations

import math
from abc import ABC
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Floats
from ..former_names import FormerName
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass, Residuals
from ..program.model import Program
from .polytope import GpuShares, Groups, SharePolytope

# Limit of Newton steps on a convex, piecewise linear function, which needs only a few; further steps are rounding.
MOST_STEPS = 100
# Relative tolerance of the comparison of costs with money, because costs are rounded sums.
ROUNDING = 1e-12


class LevelShares(SharePolytope, ABC):
    """Problems over P whose objective rises with the level min_j sum_k worth_jk x_jk.

    Notes
    -----
    Prices p >= 0 bound the level t: a job that reaches the rate t_j pays at least cost_j(t_j; p), the cost of the
    cheapest shares with that rate, and all jobs together pay at most p.M. So t is at most the largest one with
    sum_j cost_j(t; p) <= p.M, whatever the scale of the prices. cost_j is the lower hull of (0, 0) and the points
    (worth_jk, g_j p_k). The maximum over the scale s of the usual dual, s p.M + max_t (t - s sum_j cost_j(t; p)), is
    the same number.
    """

    _declared_class = ProblemClass.LP

    @cached_property
    def worth(self) -> Floats:
        """Level of the job if it runs on a type for the whole time, shape (N, K)."""
        raise NotImplementedError

    @cached_property
    def highest(self) -> Floats:
        """The highest level of each job alone, shape (N,)."""
        return np.asarray(self.worth.max(axis=1))

    @cached_property
    def groups(self) -> Groups:
        """Jobs with the same worth and the same gang."""
        return self.grouped(*self.worth.T, self.gang_gpus.astype(np.float64))

    def levels(self, shares: Floats) -> Floats:
        """Return the level that each job reaches, shape (N,)."""
        return np.asarray(np.einsum("jk,jk->j", self.worth, shares))

    def level_bound(self, prices: Floats, caps: Floats | None = None) -> float:
        """Return the largest t such that prices, shape (K,), allow every job to reach t, or its cap if that is lower.

        Prices are at least 0, in any unit. Caps, shape (N,), are at most `highest`; by default the least entry of
        `highest` for every job. The result is the largest cap if the prices do not bound the level.
        """
        groups = self.groups
        first = groups.first
        limits = np.full(len(first), self.highest.min()) if caps is None else caps[first]
        return level_bound(self.worth[first], self.gang_gpus[first], groups.counts, self.gpus, prices, limits)

    def program(self, form: str = "shares") -> Program:
        """Return the linear program: the level as a share of the least `highest`, and the shares of runnable pairs.

        The row of a job is divided by the job's highest level.
        """
        self.check_form(form)
        build = ProgramBuilder(sense="max")
        share = self._add_shares(build)
        unit = float(self.highest.min())
        level = build.add_columns("level", (1,), upper=1.0)
        job, kind = self._pairs()
        everyone = np.arange(self.num_jobs)
        relative = self.worth[job, kind] / self.highest[job]
        terms: list[Any] = [(job, share, relative), (everyone, level[0], -unit / self.highest)]
        build.add_rows("level", (self.num_jobs,), terms=terms, lower=0.0)
        build.set_objective([(level, unit)])
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "shares") -> GpuShares:
        """Turn column values of the program into shares, the prices the duals of the capacities."""
        self.check_form(form)
        shares = self._shares_of(values[: len(self._pairs()[0])])
        return GpuShares(shares, None if duals is None else np.maximum(duals[: self.num_types], 0.0))

    def encode(self, plan: GpuShares, form: str = "shares") -> Floats:
        """Turn shares into column values of the program, for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        level = float(self.levels(plan.shares).min()) / float(self.highest.min())
        return np.append(plan.shares[self._pairs()], min(1.0, max(0.0, level)))

    def evaluate(self, plan: GpuShares) -> tuple[float, Residuals]:
        """Return the least level and the worst violations of P, recomputed."""
        self.check_plan(plan)
        return float(self.levels(plan.shares).min()), self.residuals(plan.shares)

    level_and_residuals = FormerName("evaluate")


def level_bound(
    worth: Floats, gang_gpus: Any, counts: Floats, gpus: Any, prices: Floats, caps: Floats, rounding: float = ROUNDING
) -> float:
    """Return the largest t with sum_i counts_i cost_i(min(t, caps_i); prices) <= prices.gpus; see `LevelShares`.

    Between two caps the sum is convex and piecewise linear, and Newton's method from the right stays right of the
    root: each of its steps is a bound. Bisection finds the interval between caps, because the sum never falls.
    """
    from .kernels import cheapest

    top = float(caps.max())
    money = math.fsum(prices * gpus)
    if not money > 0:
        return top
    money *= 1.0 + rounding

    def paid(level: float) -> tuple[float, float]:  # the cost of a job with a lower cap does not rise with the level
        usage = np.zeros(len(prices))
        total, slope, _ = cheapest(worth, gang_gpus, counts, prices, 0.0, np.minimum(level, caps), level, usage)
        return total, slope

    total, slope = paid(top)
    if total <= money:
        return top
    knots = np.unique(caps)
    low, high = -1, len(knots) - 1  # the money suffices at knots[low] (or at 0), not at knots[high]
    while high - low > 1:
        middle = (low + high) // 2
        if paid(float(knots[middle]))[0] <= money:
            low = middle
        else:
            high = middle
    level, floor = float(knots[high]), float(knots[low]) if low >= 0 else 0.0
    for _ in range(MOST_STEPS):
        total, slope = paid(level)
        if total <= money or not slope > 0:
            break
        step = max(floor, level - (total - money) / slope)
        if not step < level:
            break
        level = step
    return level
