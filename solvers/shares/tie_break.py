"""The tie-break: the shares nearest to the isolated ones among all optimal shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats
from .decomposition import JobGroups
from .restricted_master import REDUCED_COST_TOLERANCE
from .tie_break_kernels import faces, lift, nearest, settle

# Reduced costs, and prices, below this share of the largest count as 0: real differences are larger than rounding.
TIED = 1e-9
# Relative resolution of a sum over groups: a smaller part of one group is lost in rounding.
UNRESOLVED = 1e-12
MOST_STEPS = 200
# Tolerance of GPUs in use, as a share of a type's GPUs.
CLOSE = 1e-12
# Tolerance at which the nearest optimum is accepted; otherwise the original optimum is kept.
MATCHED = 1e-9


def nearest_shares(
    job_groups: JobGroups,
    runs: NDArray[np.bool_],
    prices: Floats,
    reward: float,
    least: Floats,
    targets: Floats,
    budget: tuple[Floats, float] | None = None,
) -> tuple[Floats, float]:
    """Return the optimal shares nearest to `targets`, and their largest deviation from the wanted usage of a type.

    Minimises ``sum_i counts_i |x_i - targets_i|^2 / 2`` over the optimal face at optimal prices: every job stays on its
    own face (`faces`), every priced resource (GPUs of a type, the budget) is in full use, and the other resources stay
    within capacity. The dual of this is a concave function of one weight for each, piecewise quadratic, which Newton's
    method with a line search maximises.

    Parameters
    ----------
    runs : ndarray of bool, shape (G, K)
    prices : ndarray of float, shape (K,), or (K + 1,) with a budget
        Optimal prices; the budget's is last.
    reward : float
        Weight of the sum of worth: 1 where it is maximised, 0 where only rates have to be reached.
    least : ndarray of float, shape (G,)
        Least rates.
    targets : ndarray of float, shape (G, K)
    budget : tuple of ndarray of float, shape (K,), and float, optional
        Cost of a GPU of each type, and the limit of the total cost.

    Returns
    -------
    shares : ndarray of float, shape (G, K)
    fault : float
        Deviation as a share of a type's GPUs: 0 up to rounding if the prices are optimal.
    """
    groups, kinds = job_groups.worth.shape
    # Scarce resources, by the usage of a GPU of each type: the GPUs themselves, and the budget in the same unit.
    takes, limits = np.eye(kinds), job_groups.gpus
    if budget is not None:
        unit = float(job_groups.gpus.sum()) / budget[1]
        takes, limits = np.vstack([takes, budget[0] * unit]), np.append(limits, budget[1] * unit)
        prices = np.append(prices[:-1], prices[-1] / unit)
    open_, tight = np.zeros((groups, kinds), dtype=np.bool_), np.zeros(groups, dtype=np.int64)
    paid = prices * limits
    prices = np.where(paid > REDUCED_COST_TOLERANCE * paid.max(), prices, 0.0)
    total = reward * max(float((job_groups.worth.max(axis=1) * job_groups.counts).sum()), 1e-300)
    floors = UNRESOLVED * total / job_groups.counts
    faces(job_groups.worth, runs, job_groups.gang_gpus, prices @ takes, reward, least, TIED, floors, open_, tight)
    shares = np.zeros((groups, kinds))
    free = np.flatnonzero(settle(job_groups.worth, open_, tight, least, shares))
    left = limits - takes @ ((job_groups.gang_gpus * job_groups.counts) @ shares)
    priced = paid > max(TIED * float(paid.max()), 10.0 * UNRESOLVED * total)
    weights, size = np.zeros(len(limits)), max(float((job_groups.gang_gpus**2 * job_groups.counts)[free].sum()), 1e-300)

    def at(weights: Floats) -> tuple[float, Floats, Floats]:
        usage, curvature = np.zeros(kinds), np.zeros((kinds, kinds))
        jobs = (free, job_groups.worth, open_, tight, least, job_groups.gang_gpus, job_groups.counts, targets)
        value = nearest(*jobs, weights @ takes, shares, usage, curvature)
        return value - float(weights @ left), takes @ usage - left, takes @ curvature @ takes.T

    def off(weights: Floats, excess: Floats) -> float:
        wrong = np.where(priced | (weights > 0), np.abs(excess), np.maximum(excess, 0.0))
        return float((wrong / limits).max())

    if not len(free):
        excess = -left
    else:
        value, excess, curvature = at(weights)
        for _ in range(MOST_STEPS):
            moving = priced | (weights > 0) | (excess > 0)
            if off(weights, excess) <= CLOSE:
                break
            step = np.zeros(len(limits))
            square = curvature[np.ix_(moving, moving)]
            # Jobs at corners have no curvature; damping keeps such a step within the relevant range.
            damping, furthest = 1e-12 * size, 10.0 * max(1.0, float(np.abs(weights).max()))
            while True:
                step[moving] = np.linalg.solve(square + damping * np.eye(len(square)), excess[moving])
                if not np.abs(step).max() > furthest:
                    break
                damping *= 10.0
            length = 1.0
            while True:
                trial = weights + length * step
                trial = np.where(priced, trial, np.maximum(trial, 0.0))
                risen, next_excess, next_curvature = at(trial)
                rounding = 1e-13 * (abs(value) + abs(risen))
                enough = risen >= value + 1e-4 * float(excess @ (trial - weights)) - rounding
                # Near the end rounding of the value hides its rise.
                level = risen >= value - 1e3 * rounding and off(trial, next_excess) < 0.5 * off(weights, excess)
                if enough or level or length < 1e-15:
                    break
                length *= 0.5
            if length < 1e-15:
                value, excess, curvature = at(weights)
                break
            weights, value, excess, curvature = trial, risen, next_excess, next_curvature
    lift(job_groups.worth, open_, least, shares)
    miss = np.where(priced, np.abs(excess), np.maximum(excess, 0.0)) / limits
    return shares, float(miss.max())
