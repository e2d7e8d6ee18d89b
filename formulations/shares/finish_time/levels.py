"""Levels of finish-time fairness: the speed that a level requires of each job, its cost, and the level prices prove."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Floats, Indices

# Limit of Newton steps, far above the number needed: the method ends when a step no longer changes the level.
MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Levels:
    """Speeds and costs of jobs as functions of a level rho of fairness; see `FinishTimeFairness` for the data."""

    rates: Floats
    gang_gpus: Indices
    gpus: Indices
    steps: Floats
    elapsed_s: Floats
    isolated_s: Floats

    @cached_property
    def fastest(self) -> Floats:
        """Greatest steps per second of each job, shape (N,); 1 for a job that can run nowhere and has no steps left."""
        most = self.rates.max(axis=1)
        return np.where(most > 0, most, 1.0)

    @cached_property
    def at_best(self) -> Floats:
        """Each job's fairness if it had its fastest type all the time, shape (N,): no level is below the largest."""
        return np.asarray((self.elapsed_s + self.steps / self.fastest) / self.isolated_s)

    @cached_property
    def even_prices(self) -> Floats:
        """Prices at which the GPUs of each type together cost the same, shape (K,)."""
        return np.asarray(1.0 / self.gpus)

    def demands(self, level: float) -> Floats:
        """Return the steps per second that each job needs to reach a level of at least `at_best`, shape (N,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = self.steps / (level * self.isolated_s - self.elapsed_s)
        speed = np.where(self.steps > 0, speed, 0.0)
        # At a job's best level, rounding may require slightly more than its greatest speed.
        return np.where((speed >= 0) & (speed <= self.fastest), speed, np.where(self.steps > 0, self.fastest, 0.0))

    def cheapest(self, level: float, prices: Floats) -> tuple[Floats, Floats, Floats]:
        """Return each job's least cost of the level at `prices`, its growth per step/s, and the cheapest shares.

        The shares mix at most two types, or one type and no GPU: the cost is the lower convex hull of the points (rate,
        cost) of no GPU (0, 0) and of each type (tau_jk, g_j p_k). The shapes are (N,), (N,) and (N, K).
        """
        speed = self.demands(level)
        busy = self.steps > 0
        shares = np.zeros(self.rates.shape)
        if self.rates.shape[1] == 1:
            unit = self.gang_gpus * prices[0] / self.fastest
            shares[:, 0] = speed / self.fastest
            return unit * speed, np.where(busy, unit, 0.0), shares
        from ..kernels import cheapest_mixes

        costs, growth = np.zeros(len(speed)), np.zeros(len(speed))
        cheapest_mixes(speed, self.rates, self.gang_gpus, prices, costs, growth, shares)
        shares[~busy] = 0.0
        return np.where(busy, costs, 0.0), np.where(busy, growth, 0.0), shares

    def proved(self, prices: Floats) -> float:
        """Return the highest level, up to rounding, that `prices` prove infeasible for all shares in P.

        The cost falls with the level and is convex, so Newton's method approaches the level from below.
        """
        level = float(self.at_best.max())
        prices = np.where(np.isfinite(prices) & (prices > 0), prices, 0.0)
        worth = float(prices @ self.gpus)
        if not 0.0 < worth < np.inf:
            return level
        prices = prices / worth
        for _ in range(MOST_STEPS):
            cost, growth, _ = self.cheapest(level, prices)
            excess = float(cost.sum()) - 1.0
            if excess <= 0:
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                late = level * self.isolated_s - self.elapsed_s
                falls = np.where(self.steps > 0, growth * self.demands(level) * self.isolated_s / late, 0.0)
            fall = float(falls[np.isfinite(falls)].sum())
            step = excess / fall if fall > 0 else 0.0
            # Accept the step if the new level is infeasible too, or feasible by no more than rounding.
            if not step > 4e-16 * level or not self.cheapest(level + step, prices)[0].sum() >= 1.0 - 1e-14:
                break
            level += step
        return level

    @cached_property
    def bracket(self) -> tuple[float, float]:
        """Lower and upper bound on the best level: proved by even prices, and reached by simple shares."""
        low = self.proved(self.even_prices)
        _, _, shares = self.cheapest(low, self.even_prices)
        used = float((self.gang_gpus @ shares / self.gpus).max())
        speed = np.einsum("jk,jk->j", self.rates, shares) / max(1.0, used)
        busy = self.steps > 0
        reached = (self.elapsed_s[busy] + self.steps[busy] / speed[busy]) / self.isolated_s[busy]
        return low, max(low, float(reached.max(initial=low)))

    def tangents(self, low: float, high: float, count: int) -> tuple[Indices, Floats, Floats]:
        """Return lines below the speed that each job with steps left needs between two levels, relative to its fastest.

        Returns the jobs, shape (B,), the slopes over the level and the values at level 0, each of shape (B, count): the
        job's speed divided by its fastest is at least ``start + slope * level``.
        """
        busy, least = np.flatnonzero(self.steps > 0), self.steps / self.fastest
        relative = least[busy, None]
        ends = [np.maximum(level * self.isolated_s - self.elapsed_s, least)[busy] for level in (low, high)]
        late = np.geomspace(ends[0], ends[1], count, axis=1)
        slope = -relative * self.isolated_s[busy, None] / late**2
        start = 2 * relative / late + relative * self.elapsed_s[busy, None] / late**2
        return busy, slope, np.asarray(start)
