"""The tie-break of finish-time fairness: the shares nearest to the isolated ones among all that reach a level."""

from __future__ import annotations

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.shares.finish_time.problem import FinishTimeFairness
from ....formulations.shares.polytope import GpuShares

HALVINGS = 60


def nearest_to_isolated(problem: FinishTimeFairness, plan: GpuShares) -> GpuShares:
    """Return the shares nearest to the isolated ones at the plan's level, up to rounding.

    The difference is ``sum_j (g_j / c_j) |x_j - s_j|^2``, c_j the sum of a job's isolated shares: in GPU time, relative
    to the job's own. So where GPUs are short all jobs lose the same part of their isolated shares; without weights wide
    jobs, whose shares are small, would lose most. At prices of the types (duals of the capacities) each job's nearest
    shares are a projection of their own; the prices are then found by bisection (one type) or a quasi-Newton method on
    the concave dual.
    """
    target = np.where(problem.rates > 0, problem.isolated_shares, 0.0)
    least = problem.levels.demands(float(problem.fairness_at(plan.shares).max())) / problem.levels.fastest
    relative = problem.rates / problem.levels.fastest[:, None]
    least = np.minimum(least, relative.max(axis=1))
    own = problem.isolated_shares.sum(axis=1, keepdims=True)
    prices = _clearing(problem, target, relative, least, own)
    shares = _nearest(target - own * prices, relative, least)
    # The fastest type makes up for the speed that the projection lacks by rounding or by its tolerance.
    short = np.maximum(0.0, least - (relative * shares).sum(axis=1))
    rows = np.arange(len(shares))
    shares[rows, relative.argmax(axis=1)] += short
    return GpuShares(problem.sound(shares), plan.prices)


def _clearing(problem: FinishTimeFairness, target: Floats, relative: Floats, least: Floats, own: Floats) -> Floats:
    """Return the prices at which no type is oversubscribed by the jobs' nearest shares, shape (K,)."""

    def excess(prices: Floats) -> Floats:
        return np.asarray(problem.gangs @ _nearest(target - own * prices, relative, least) - problem.gpus)

    none = np.zeros(len(problem.gpus))
    if (excess(none) <= 1e-9 * np.maximum(problem.gpus, 1)).all():
        return none
    if len(none) == 1:
        low, high = none, none + 2.0  # at 2 every job has its least share
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle)[0] > 0 else (low, middle)
        return high
    from scipy.optimize import minimize

    def dual(prices: Floats) -> tuple[float, Floats]:
        shares = _nearest(target - own * prices, relative, least)
        used = problem.gangs @ shares - problem.gpus
        far = float(problem.gangs @ ((shares - target) ** 2 / own).sum(axis=1)) / 2
        return -(far + float(prices @ used)), -np.asarray(used, dtype=np.float64)

    found = minimize(
        dual, none, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(none), options={"ftol": 1e-15, "gtol": 1e-9}
    )
    return np.asarray(found.x)


def _nearest(points: Floats, relative: Floats, least: Floats) -> Floats:
    """Project each row of `points` on {x >= 0, sum x <= 1, relative . x >= least}, 0 where `relative` is 0."""
    if points.shape[1] == 1:
        return np.where(relative > 0, np.clip(points, least[:, None], 1.0), 0.0)
    from .kernels import nearest_rows

    shares = np.zeros(points.shape)
    nearest_rows(points, relative, least, shares)
    return shares
