"""Exact tables of utility and remaining time over the number of granted rounds, for each job of a window."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from .jobs import JobColumns, WindowSettings


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """Tables over n = 0..T rounds granted, shape (N, T + 1); constant past the job's need.

    Attributes
    ----------
    utility, value, remaining : ndarray of float
        Share of all epochs done, UTIL_j(n), without the floor; term of the objective, f_j(n) = w_j log max(UTIL_j(n),
        floor); isolated run time left, R_j(n), in rounds.
    needs, regime_needs : ndarray of int, shape (N,) and (R,)
        Number of rounds until the job ends (may exceed T), and of each regime's micro-job.
    weights, branch_weights : ndarray of float, shape (N,)
        Weight of each job, w_j = B_j rho_j^k / (N M), and coefficients a_j / M of the sum branch of H,
        ``branch_weights @ R``.
    makespan_price : float
        Price of one round of H, c = lambda D / Z0.
    """

    utility: Floats
    value: Floats
    remaining: Floats
    needs: Indices
    regime_needs: Indices
    weights: Floats
    branch_weights: Floats
    makespan_price: float

    @property
    def weight_sum(self) -> float:
        """Sum of the weights, the unit of the gap."""
        return float(self.weights.sum())

    def makespan(self, counts: Indices) -> float:
        """Return H in rounds (Eq. 10) when job j gets counts[j] rounds."""
        left = self.remaining[np.arange(len(counts)), counts]
        return max(float(self.branch_weights @ left), float(left.max()))

    def objective(self, grants: NDArray[np.bool_], is_running: NDArray[np.bool_], restart_penalty: float) -> float:
        """Return the objective of a schedule, shape (N, T)."""
        counts = grants.sum(axis=1)
        gained = math.fsum(self.value[np.arange(len(counts)), counts].tolist())
        penalty = restart_penalty * int(starts(grants, is_running).sum()) if restart_penalty else 0.0
        return gained - self.makespan_price * self.makespan(counts) - penalty


def starts(grants: NDArray[np.bool_], is_running: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where a job runs and did not in the round before, shape (N, T)."""
    before = np.column_stack([is_running, grants[:, :-1]])
    return grants & ~before


def tabulate(jobs: JobColumns, settings: WindowSettings) -> Tables:
    """Compute the tables of a window of these jobs; `makespan_scale` must be known."""
    from . import kernels as window_kernels

    count, rounds, round_s = len(jobs.gang_gpus), settings.rounds, settings.round_s
    seconds = jobs.regime_epochs * jobs.regime_epoch_s
    # Rounding errors must not add a round to a regime of a whole number of rounds.
    exact = seconds / round_s
    regime_needs = np.maximum(1, np.ceil(exact - 1e-9 - 1e-12 * exact)).astype(np.int64)
    first = jobs.regime_starts[:-1]
    lengths = np.diff(jobs.regime_starts)
    before = np.concatenate(([0], np.cumsum(regime_needs)))
    needs = before[jobs.regime_starts[1:]] - before[first]

    epochs, done_s = window_kernels.progress(
        jobs.regime_starts, jobs.regime_epochs, jobs.regime_epoch_s, regime_needs, round_s, rounds
    )
    complete = np.arange(rounds + 1) >= needs[:, None]
    utility = np.minimum((jobs.finished_epochs[:, None] + epochs) / jobs.total_epochs[:, None], 1.0)
    utility[complete] = 1.0
    total_s = np.bincount(np.repeat(np.arange(count), lengths), weights=seconds, minlength=count)
    remaining = np.maximum(total_s[:, None] - done_s, 0.0) / round_s
    remaining[complete] = 0.0
    weights = jobs.weight * jobs.ftf**settings.ftf_power / (count * settings.gpus)
    value = weights[:, None] * np.log(np.maximum(utility, settings.utility_floor))
    branch = (jobs.gang_gpus if settings.gang_weighted else np.ones(count)) / settings.gpus
    price = settings.makespan_weight * round_s / settings.makespan_scale
    return Tables(
        utility=utility,
        value=value,
        remaining=remaining,
        needs=needs,
        regime_needs=regime_needs,
        weights=weights,
        branch_weights=branch,
        makespan_price=price,
    )
