"""Policies with shares of time from a linear program: max-min fairness, total throughput, total duration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_flag, as_real, as_reals, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.shares.max_min_fairness import MaxMinFairness
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.min_total_duration import MinTotalDuration
from ...formulations.shares.polytope import GpuShares
from ...simulation.rounds.policy import Evidence, RoundState, Shares
from ...solvers.registry import find_backend
from ...solvers.result import Reason
from ...solvers.solve import solve
from .equal_share import CalledOnEvents, isolated_shares, usable_rates

#: Violation of P up to which isolated shares may replace the shares of a stopped solve.
FEASIBILITY = 1e-9


def steps_to_go(state: RoundState) -> Floats:
    """Return the remaining steps of each job at its current batch size, shape (m,), at least 1.

    Rounding after a change of the batch size may leave no step, but the job still needs a round to end.
    """
    return np.array([max(1, job.steps_left) for job in state.jobs], dtype=np.float64)


@dataclass(kw_only=True, eq=False)
class SolvedShares(CalledOnEvents, ABC):
    """Abstract policy that solves a formulation for shares of time.

    Parameters
    ----------
    interval_s : float
        Least time between two calls, in seconds.
    backend : str
        Backend of `solve`.
    rel_gap : float
        Gap of `solve`.
    time_limit : float, optional
        Time limit of `solve`, in seconds. If it stops a solve before the optimum, isolated shares are used if they
        are better than the incumbent, and the evidence records this.
    """

    backend: str = "auto"
    rel_gap: float = 1e-6
    time_limit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        store_checked(self, as_real, "rel_gap", minimum=0.0)
        if self.time_limit is not None:
            store_checked(self, as_real, "time_limit", minimum=0.0)
        if self.backend != "auto":
            find_backend(self.backend)

    @abstractmethod
    def problem(self, state: RoundState) -> Any:
        """Return the formulation to solve; its plan has `shares`, shape (m, K)."""

    def decide(self, state: RoundState) -> Shares:
        """Return the optimal shares; after a stopped solve, the better of its incumbent and the isolated shares."""
        problem = self.problem(state)
        result = solve(problem, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
        if result.termination.reason is Reason.OPTIMAL:
            return Shares(result.require_plan().shares, Evidence.of(result))
        isolated = GpuShares(isolated_shares(state))
        objective, residuals = problem.evaluate(isolated)
        if result.plan is not None and result.objective is not None:
            gain = problem.sign * (objective - result.objective)
            if gain <= 0 or residuals.worst > FEASIBILITY:
                return Shares(result.plan.shares, Evidence.of(result))
        by = f"{result.backend}, then isolated shares"
        return Shares(isolated.shares, replace(Evidence.of(result.with_plan(problem, isolated)), backend=by))


@dataclass(kw_only=True, eq=False)
class MaxMinFairnessPolicy(SolvedShares):
    """Gavel: maximise the least normalised throughput; see `MaxMinFairness`, and docs/shares.md for ties.

    Parameters
    ----------
    agnostic : bool
        Whether all GPU types count as equal, as in Gavel's baseline.
    water_filling : bool
        Whether to maximise further levels among the jobs that can still gain.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.
    """

    agnostic: bool = False
    water_filling: bool = False
    name: str = field(default="gavel", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        store_checked(self, as_flag, "agnostic", "water_filling")

    def problem(self, state: RoundState) -> MaxMinFairness:
        """Return the program over the jobs present."""
        return MaxMinFairness(
            rates=usable_rates(state),
            gang_gpus=state.gang_gpus,
            gpus=state.gpus,
            weights=np.array([job.weight for job in state.jobs]),
            agnostic=self.agnostic,
            water_filling=self.water_filling,
        )


@dataclass(kw_only=True, eq=False)
class MaxSumThroughputPolicy(SolvedShares):
    """MST: maximise the sum of steps per second of all jobs; see `MaxSumThroughput`, and docs/shares.md for ties.

    Parameters
    ----------
    costs_per_s : mapping of str to float, optional
        Cost per second of one GPU of each type; requires `budget_per_s`.
    budget_per_s : float, optional
        Limit of the total cost per second.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.
    """

    costs_per_s: Mapping[str, float] | None = None
    budget_per_s: float | None = None
    name: str = field(default="mst", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.costs_per_s is None) != (self.budget_per_s is None):
            given = "costs_per_s" if self.budget_per_s is None else "budget_per_s"
            raise InvalidInput(given, getattr(self, given), "costs_per_s and budget_per_s go together")
        if self.budget_per_s is not None:
            store_checked(self, as_real, "budget_per_s", minimum=0.0)

    def problem(self, state: RoundState) -> MaxSumThroughput:
        """Return the program over the jobs present."""
        costs = None
        if self.costs_per_s is not None:
            for gpu_type in state.gpu_types:
                if gpu_type not in self.costs_per_s:
                    raise InvalidInput("costs_per_s", self.costs_per_s, f"has no cost of GPU type {gpu_type!r}")
            costs = as_reals("costs_per_s", [self.costs_per_s[gpu_type] for gpu_type in state.gpu_types], minimum=0.0)
        return MaxSumThroughput(
            rates=usable_rates(state),
            gang_gpus=state.gang_gpus,
            gpus=state.gpus,
            costs_per_s=costs,
            budget_per_s=self.budget_per_s,
        )


@dataclass(kw_only=True, eq=False)
class MinTotalDurationPolicy(SolvedShares):
    """OSSP: minimise the time until the last of the jobs present ends; options are those of `SolvedShares`.

    See `MinTotalDuration`, and docs/shares.md for ties.
    """

    name: str = field(default="ossp", init=False)

    def problem(self, state: RoundState) -> MinTotalDuration:
        """Return the program over the jobs present and their remaining steps at the current batch sizes."""
        return MinTotalDuration(
            rates=usable_rates(state), steps=steps_to_go(state), gang_gpus=state.gang_gpus, gpus=state.gpus
        )
