"""What a level of finish-time fairness asks of each job, what it costs at prices, and the level that prices prove."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Floats, Indices

# Newton's method on a convex function needs far fewer; it ends when a step no longer moves the level.
MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Levels:
    """Jobs and GPUs, seen from a level rho of fairness.

    Attributes
    ----------
    rates : ndarray of float, shape (N, K)
    gangs : ndarray of int, shape (N,)
    gpus : ndarray of int, shape (K,)
    steps, elapsed_s, isolated_s : ndarray of float, shape (N,)
    """

    rates: Floats
    gangs: Indices
    gpus: Indices
    steps: Floats
    elapsed_s: Floats
    isolated_s: Floats

    @cached_property
    def fastest(self) -> Floats:
        """The most steps per second of each job, shape (N,); 1 where it can run nowhere and needs not."""
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
        # Rounding may ask a job for more than it can do where the level is just what it reaches at its best.
        return np.where((speed >= 0) & (speed <= self.fastest), speed, np.where(self.steps > 0, self.fastest, 0.0))

    def cheapest(self, level: float, prices: Floats) -> tuple[Floats, Floats, Floats]:
        """Return each job's least cost of the level at `prices`, its growth per step/s, and the shares that cost it.

        Two types at most are mixed, or one and no GPU at all: the cost is the lower convex hull of the points (rate,
        cost) of no GPU (0, 0) and of each type (tau_jk, g_j p_k), shapes (N,), (N,) and (N, K).
        """
        speed = self.demands(level)
        busy = self.steps > 0
        shares = np.zeros(self.rates.shape)
        if self.rates.shape[1] == 1:
            unit = self.gangs * prices[0] / self.fastest
            shares[:, 0] = speed / self.fastest
            return unit * speed, np.where(busy, unit, 0.0), shares
        from .kernels import cheapest_mixes

        costs, growth = np.zeros(len(speed)), np.zeros(len(speed))
        cheapest_mixes(speed, self.rates, self.gangs, prices, costs, growth, shares)
        shares[~busy] = 0.0
        return np.where(busy, costs, 0.0), np.where(busy, growth, 0.0), shares

    def proved(self, prices: Floats) -> float:
        """Return the highest level, short of rounding, that `prices` prove to be too low for any shares in P.

        The cost of a level falls with it and is convex, so Newton's method nears the level from below.
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
            # The step is taken if the new level is too low as well, or too high by no more than rounding.
            if not step > 4e-16 * level or not self._costs_more(level + step, prices, 1.0 - 1e-14):
                break
            level += step
        return level

    def _costs_more(self, level: float, prices: Floats, than: float) -> bool:
        return float(self.cheapest(level, prices)[0].sum()) >= than

    @cached_property
    def bracket(self) -> tuple[float, float]:
        """Two levels with the best one between them: what even prices prove, and what plain shares reach."""
        low = self.proved(self.even_prices)
        _, _, shares = self.cheapest(low, self.even_prices)
        used = float((self.gangs @ shares / self.gpus).max())
        speed = np.einsum("jk,jk->j", self.rates, shares) / max(1.0, used)
        busy = self.steps > 0
        reached = (self.elapsed_s[busy] + self.steps[busy] / speed[busy]) / self.isolated_s[busy]
        return low, max(low, float(reached.max(initial=low)))

    def tangents(self, low: float, high: float, count: int) -> tuple[Indices, Floats, Floats]:
        """Return lines below what each job with steps to go needs, by its fastest speed, between two levels.

        Of the jobs, shape (B,), of their slopes over the level and of their values at level 0, shape (B, count): the
        job's speed by its fastest is at least ``start + slope * level``.
        """
        busy, least = np.flatnonzero(self.steps > 0), self.steps / self.fastest
        relative = least[busy, None]
        ends = [np.maximum(level * self.isolated_s - self.elapsed_s, least)[busy] for level in (low, high)]
        late = np.geomspace(ends[0], ends[1], count, axis=1)
        slope = -relative * self.isolated_s[busy, None] / late**2
        start = 2 * relative / late + relative * self.elapsed_s[busy, None] / late**2
        return busy, slope, np.asarray(start)
