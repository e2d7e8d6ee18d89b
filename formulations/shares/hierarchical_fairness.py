"""HierarchicalFairness: weighted fair shares of GPU time for queues, first come first served inside each queue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..arrays import Floats, Indices
from ..checks import as_integers, as_reals, refuse, same_length, store_checked
from ..errors import InvalidInput
from .levels import LevelShares
from .polytope import Groups

# Relative rounding of the cost of a job that divides its time.
ROUNDED = 1e-15


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalFairness(LevelShares):
    """Maximise the lexicographic order of the levels ``sum_{i <= j, q_i = q_j} sum_k worth_ik x_ik`` over P.

    The level of job j is that of its queue, counted up to and with j: jobs stand in the order of their arrival. All
    queues rise at one rate, and in each only the first job that can still gain does.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of that type (tau), at least 0; every job runs somewhere.
    gang_gpus : array_like of int, shape (N,)
        GPUs that a job holds while it runs (g).
    gpus : array_like of int, shape (K,)
        GPUs of each type (M).
    queue : array_like of int, shape (N,)
        Queue of each job, from 0 to Q - 1; within a queue the earlier job comes first. A queue may be empty.
    weights : array_like of float, shape (Q,) or (Q, K), optional
        Weight of each queue, or of each queue on each type, greater than 0; 1 by default. If the weights of each type
        add up to 1, a queue at level 1 has the throughput of its weighted share of all GPUs.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    ``worth_jk = g_j tau_jk / sum_k' tau_jk' w_qk' M_k'``: the rate of the job relative to its throughput on all GPUs
    that are its queue's weighted share, counted by its GPUs. On one type the level of a queue is the number of GPUs in
    use by its jobs, divided by w_q M.

    The objective is the least level, that of the first job of some queue; the gap covers all levels (see
    `LevelShares.shortfall`). No single linear program states the problem. If every job has a queue of its own, it is
    `MaxMinFairness` with water filling.

    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI
    2020, Section 4.3: its hierarchical policy with FIFO inside the entities. A. Bin Faisal et al., "When will my ML Job
    finish? Toward providing Completion Time Estimates through Predictability-Centric Scheduling" (PCS), OSDI 2024,
    Section 6, uses it for weighted fair queues on several types of GPU.

    Examples
    --------
    >>> import equipoise as eq
    >>> jobs = {"rates": [[1.0]] * 4, "gang_gpus": [2, 2, 1, 4], "gpus": [6], "queue": [0, 0, 1, 0]}
    >>> problem = eq.HierarchicalFairness(**jobs, weights=[0.5, 0.5])
    >>> plan = eq.solve(problem).require_optimal()
    >>> plan.shares.round(4).ravel().tolist(), problem.queue_levels(plan.shares).round(4).tolist()
    ([1.0, 1.0, 1.0, 0.25], [1.6667, 0.3333])
    """

    rates: Floats
    gang_gpus: Indices
    gpus: Indices
    queue: Indices
    weights: Floats = None  # type: ignore[assignment]  # ones, for the queues up to the last one that has a job

    sense = "max"
    reference: ClassVar[str] = "Gavel, OSDI 2020, Section 4.3; PCS, OSDI 2024, Section 6"
    forms = ()
    water_filling = True

    def __post_init__(self) -> None:
        self._check_polytope(runs=True)
        store_checked(self, as_integers, "queue", minimum=0)
        same_length(queue=self.queue, rates=self.rates)
        given = np.ones(int(self.queue.max()) + 1) if self.weights is None else self.weights
        weights = as_reals("weights", given, above=0.0, ndim=2 if np.ndim(given) == 2 else 1)
        if weights.ndim == 2 and weights.shape[1] != self.num_types:
            why = f"must be one weight for each queue, or have {self.num_types} columns, as rates has"
            raise InvalidInput("weights", f"{weights.shape[1]} columns", why)
        object.__setattr__(self, "weights", weights)
        refuse("queue", self.queue >= len(weights), self.queue, f"weights has {len(weights)} queues")
        bad = ~((self.highest > 1e-300) & (self.highest < 1e300))
        refuse("weights", bad, weights.reshape(len(weights), -1).max(axis=1)[self.queue], "its level is out of range")

    @property
    def num_queues(self) -> int:
        """Q."""
        return len(self.weights)

    @cached_property
    def worth(self) -> Floats:
        """``g_j tau_jk / sum_k' tau_jk' w_qk' M_k'``, shape (N, K)."""
        relative = self.rates / self.rates.max(axis=1, keepdims=True)
        weights = np.broadcast_to(self.weights.reshape(self.num_queues, -1), (self.num_queues, self.num_types))
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            whole = (relative * weights[self.queue] * self.gpus).sum(axis=1)
            return np.asarray(relative * (self.gang_gpus / whole)[:, None])

    @cached_property
    def groups(self) -> Groups:
        """Every job by itself: equal jobs differ in their order."""
        everyone = np.arange(self.num_jobs)
        return Groups(first=everyone, counts=np.ones(self.num_jobs), of_job=everyone)

    def starts(self, rates: Floats) -> Floats:
        """Return the level at which each job begins to rise: the rates of the earlier jobs of its queue, shape (N,)."""
        from .kernels import sums_before

        return np.asarray(sums_before(self.queue, rates, self.num_queues))

    def queue_levels(self, shares: Floats) -> Floats:
        """Return the level that each queue reaches, shape (Q,): 0 for an empty one."""
        levels = np.bincount(self.queue, weights=self.rates_at(shares), minlength=self.num_queues)
        return np.asarray(levels, dtype=np.float64)

    def _unspent(self, shares: Floats, prices: Floats, floors: Floats, level: float) -> float:
        """Return the money that the cheapest shares of the rates `floors` leave, rounding included.

        It is the sum of the prices of idle GPUs and of the costs of the shares above those of the cheapest ones. Both
        are 0, without rounding, where types are full and jobs run on one type for the whole time. The difference of the
        two totals would hide gains of one job at a price far below those of other types.
        """
        from .kernels import overpaid

        wanted = self.gang_gpus[:, None] * shares
        idle = [math.fsum([*-wanted[:, k], float(self.gpus[k])]) for k in range(self.num_types)]
        above = overpaid(self.worth, self.gang_gpus, prices, shares, floors)
        rounded = (wanted @ prices)[((shares > 0) & (shares < 1)).any(axis=1)].sum()
        return float(np.abs(idle) @ prices + np.abs(above).sum() + ROUNDED * rounded)
