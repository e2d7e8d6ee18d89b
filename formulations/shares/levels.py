"""LevelShares: problems that maximise a common level over shares of GPU time, and the bound that prices prove."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import replace
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
# Relative error of compensated sums: of each cost, and of the cost of one more unit of a level.
CANCELLED = 1e-14
# A job's level counts as settled if its bound is within this share of it; the shares are tried in order.
SETTLED = (1e-9, 1e-7, 1e-5, 1e-3)


class LevelShares(SharePolytope, ABC):
    """Problems over P whose objective rises with the least level of a job.

    Attributes
    ----------
    water_filling : bool
        Whether the next higher levels are maximised after the least one, in order.

    Notes
    -----
    Prices p >= 0 bound the level t: a job that reaches the rate t_j pays at least cost_j(t_j; p), the cost of the
    cheapest shares with that rate, and all jobs together pay at most p.M. So t is at most the largest one with
    sum_j cost_j(t; p) <= p.M, whatever the scale of the prices. cost_j is the lower hull of (0, 0) and the points
    (worth_jk, g_j p_k). The maximum over the scale s of the usual dual, s p.M + max_t (t - s sum_j cost_j(t; p)), is
    the same number.
    """

    _declared_class = ProblemClass.LP
    water_filling: bool = False

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

    def rates_at(self, shares: Floats) -> Floats:
        """Return the rate of each job in units of its level, ``sum_k worth_jk x_jk``, shape (N,)."""
        return np.asarray(np.einsum("jk,jk->j", self.worth, shares))

    def starts(self, rates: Floats) -> Floats:
        """Return the level at which each job begins to rise if the jobs rise to `rates`, shape (N,); by default 0."""
        return np.zeros(len(rates))

    def levels(self, shares: Floats) -> Floats:
        """Return the level that each job reaches, shape (N,): where it starts, and its rate."""
        rates = self.rates_at(shares)
        return self.starts(rates) + rates

    def level_bound(self, prices: Floats, caps: Floats | None = None) -> float:
        """Return the largest t such that prices, shape (K,), allow every job to reach t, or its cap if that is lower.

        Prices are at least 0, in any unit. Caps, shape (N,), are at most `highest`; by default the jobs that start at 0
        have the least `highest` among them, and other jobs 0. The result is the largest cap if the prices do not bound
        the level.
        """
        groups = self.groups
        first = groups.first
        if caps is None:
            leads = self.starts(self.highest) == 0
            caps = np.where(leads, self.highest[leads].min(), 0.0)
        jobs = self.worth[first], self.gang_gpus[first], groups.counts
        return level_bound(*jobs, self.gpus, prices, caps[first], np.zeros(len(first)))

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the bound on the least level that the plan's prices prove.

        With water filling the bound includes the largest `shortfall` of any level, so that the gap covers all levels.
        """
        bound = self.level_bound(self.prices_of(plan))
        if not self.water_filling:
            return bound
        short = self.shortfall(plan)
        return max(bound, float(self.levels(plan.shares).min()) / (1.0 - short)) if short < 1 else math.inf

    def proved_levels(self, plan: GpuShares, settled: float = SETTLED[0]) -> Floats:
        """Return bounds on the level of each job while no other job falls, shape (N,), that `level_prices` prove.

        No other job falls: each keeps the rate that it has in the plan at the job's own level (`risen`). The
        plan is the optimum of water filling if and only if no job can rise under this condition. Any prices prove a
        bound at any level t of the plan: all jobs together pay at most p.M, and the rates at t cost S. So a job that
        reaches t can rise by at most (p.M - S) / (its cost of one more unit). The rows of prices are taken in turn; t
        is the least level of the jobs whose bound is still more than a share `settled` above their level. This choice
        makes the bounds tight; they are valid for any t.
        """
        return self.starts(self.rates_at(plan.shares)) + self._proved_rates(plan, settled)[0]

    def shortfall(self, plan: GpuShares) -> float:
        """Return the largest amount by which a job can rise (see `proved_levels`), as a share of what it then has.

        What it has is its level, or its highest rate where that is less. At 0 the plan is the optimum of water filling.
        Without `level_prices` the bounds are the jobs' highest rates.
        """
        self.check_plan(plan)
        rates, least = self.rates_at(plan.shares), math.inf
        for settled in SETTLED:
            proved, idle = self._proved_rates(plan, settled)
            least = min(least, float((1.0 - (rates + idle) / (proved + idle)).max()))
            if least <= settled:
                break
        return least

    def _proved_rates(self, plan: GpuShares, settled: float) -> tuple[Floats, Floats]:
        """Return the bounds of `proved_levels` on rates, and the part of a job's measure that is not its own rate."""
        from .kernels import within_reach

        groups, all_rates = self.groups, self.rates_at(plan.shares)
        worth, gang_gpus, highest = self.worth[groups.first], self.gang_gpus[groups.first], self.highest[groups.first]
        starts = self.starts(all_rates)[groups.first]
        rates = np.full(len(highest), math.inf)
        np.minimum.at(rates, groups.of_job, all_rates)
        levels, bounds = starts + rates, highest.copy()
        for row in () if plan.level_prices is None else plan.level_prices:
            prices = self.prices_of(replace(plan, prices=row))
            idle = np.minimum(highest, starts + bounds) - bounds
            rising = bounds + idle > (rates + idle) * (1.0 + settled)
            money = math.fsum(prices * self.gpus)
            if not (rising.any() and money > 0):
                continue
            level = float(levels[rising].min())
            floors = risen(level, np.minimum(rates, highest), starts)
            spare = self._unspent(plan.shares, prices, floors, level)
            reach = within_reach(worth, gang_gpus, prices, floors, spare)
            bounds = np.where(levels >= level, np.minimum(bounds, reach), bounds)
        idle = np.minimum(highest, starts + bounds) - bounds
        return bounds[groups.of_job], idle[groups.of_job]

    def _unspent(self, shares: Floats, prices: Floats, floors: Floats, level: float) -> float:
        """Return the money that the cheapest shares of the rates `floors`, shape (G,), leave, rounding included."""
        from .kernels import cheapest

        first, usage, everyone = self.groups.first, np.zeros(len(prices)), np.ones(len(floors), dtype=np.bool_)
        jobs, money = (self.worth[first], self.gang_gpus[first], self.groups.counts), math.fsum(prices * self.gpus)
        paid, slope, _ = cheapest(*jobs, prices, 0.0, floors, everyone, usage)
        return float(abs(money - paid) + CANCELLED * (money + level * slope))

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

    def step_program(self, floors: Floats, targets: Floats) -> Program:
        """Return the linear program that maximises the part of the way from some rates to others, shapes (N,).

        Its first column is that part, at most 1, and the shares of runnable pairs follow; its first rows are the
        capacities.
        """
        build = ProgramBuilder(sense="max")
        part = build.add_columns("part", (1,), upper=1.0)
        share = self._add_shares(build)
        job, kind = self._pairs()
        way = (np.arange(self.num_jobs), part[0], (floors - targets) / self.highest)
        terms: list[Any] = [(job, share, self.worth[job, kind] / self.highest[job]), way]
        build.add_rows("rate", (self.num_jobs,), terms=terms, lower=floors / self.highest)
        build.set_objective([(part, np.ones(1))])
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "shares") -> GpuShares:
        """Turn column values of the program into shares, the prices the duals of the capacities."""
        self.check_form(form)
        return self.plan_of(values[: len(self._pairs()[0])], duals)

    def plan_of(self, columns: Floats, duals: Floats | None) -> GpuShares:
        """Turn the columns of runnable pairs and the duals of a program whose first rows are capacities into shares."""
        shares = self._shares_of(columns)
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


def risen(level: float, caps: Floats, starts: Floats) -> Floats:
    """Return the rates at a level: a job rises with it from where it starts up to its cap."""
    return np.minimum(caps, np.where(starts + caps <= level, caps, np.maximum(level - starts, 0.0)))


def level_bound(
    worth: Floats,
    gang_gpus: Any,
    counts: Floats,
    gpus: Any,
    prices: Floats,
    caps: Floats,
    starts: Floats,
    rounding: float = ROUNDING,
) -> float:
    """Return the largest t with sum_i counts_i cost_i(rate_i(t); prices) <= prices.gpus; see `LevelShares`.

    The rates rise with t as in `risen`. Between two knots, where jobs start or reach their caps, the sum is convex and
    piecewise linear, and Newton's method from the right stays right of the root: each of its steps is a bound.
    Bisection finds the interval between knots, because the sum never falls. A job starts at 0 or where another ends.
    """
    from .kernels import cheapest

    ends = starts + caps
    top = float(ends.max())
    money = math.fsum(prices * gpus)
    if not money > 0:
        return top
    money *= 1.0 + rounding

    def paid(level: float) -> tuple[float, float]:
        usage, rising = np.zeros(len(prices)), (starts < level) & (level <= ends)
        rates = risen(level, caps, starts)
        total, slope, _ = cheapest(worth, gang_gpus, counts, prices, 0.0, rates, rising, usage)
        return total, slope

    total, slope = paid(top)
    if total <= money:
        return top
    knots = np.unique(ends)
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
