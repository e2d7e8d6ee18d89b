"""Policies that solve a linear program for shares of time: Gavel's max-min, max-sum-throughput, least duration."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_flag, as_real, as_reals
from ...formulations.errors import InvalidInput
from ...formulations.shares.max_min_fairness import MaxMinFairness
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.min_total_duration import MinTotalDuration
from ...formulations.shares.polytope import GpuShares
from ...simulation.rounds.policy import Evidence, RoundState, Shares, due_on_events
from ...solvers.registry import find_backend
from ...solvers.result import Reason, Result
from ...solvers.solve import solve
from .equal_share import INTERVAL_S, isolated_shares, usable_rates

#: Violation of P up to which isolated shares may stand in for those of a solve that was stopped.
FEASIBILITY = 1e-9


def evidence_of(result: Result[Any]) -> Evidence:
    """Return what a decision that rests on this result rests on."""
    return Evidence(
        reason=result.termination.reason.name,
        objective=math.nan if result.objective is None else result.objective,
        bound=result.bound,
        gap=result.gap,
        backend=result.backend,
    )


def steps_to_go(state: RoundState) -> Floats:
    """Return the steps left of each job at its present batch size, shape (m,).

    At least one: rounding after a change of batch size may leave a job none, and it still needs a round to end.
    """
    return np.array([max(1, job.steps_left) for job in state.jobs], dtype=np.float64)


@dataclass(kw_only=True, eq=False)
class SolvedShares(ABC):
    """What policies that solve for shares have in common: when they are called, and who solves.

    Parameters
    ----------
    interval_s : float
        Least seconds between two calls.
    backend : str
        For `solve`.
    rel_gap : float
        For `solve`.
    time_limit : float, optional
        For `solve`, seconds. If it stops a call short of the optimum, isolated shares stand in where they are better
        than what was found, and the evidence says so.
    """

    interval_s: float = INTERVAL_S
    backend: str = "auto"
    rel_gap: float = 1e-6
    time_limit: float | None = None

    def __post_init__(self) -> None:
        self.interval_s = as_real("interval_s", self.interval_s, minimum=0.0)
        self.rel_gap = as_real("rel_gap", self.rel_gap, minimum=0.0)
        if self.time_limit is not None:
            self.time_limit = as_real("time_limit", self.time_limit, minimum=0.0)
        if self.backend != "auto":
            find_backend(self.backend)

    @abstractmethod
    def problem(self, state: RoundState) -> Any:
        """Return the formulation to solve now; its plan has `shares`, shape (m, K)."""

    def due(self, state: RoundState) -> bool:
        """Whether jobs arrived, ended or were rescaled, and the last call is `interval_s` ago."""
        return due_on_events(state, self.interval_s)

    def decide(self, state: RoundState) -> Shares:
        """Return the optimal shares; of a solve that was stopped, its best or the isolated ones if these are better."""
        problem = self.problem(state)
        result = solve(problem, self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
        if result.termination.reason is Reason.OPTIMAL:
            return Shares(result.require_plan().shares, evidence_of(result))
        spare = GpuShares(isolated_shares(state))
        worth, residuals = problem.evaluate(spare)
        if result.plan is not None and result.objective is not None:
            gain = problem.sign * (worth - result.objective)
            if gain <= 0 or residuals.worst > FEASIBILITY:
                return Shares(result.plan.shares, evidence_of(result))
        by = f"{result.backend}, then isolated shares"
        return Shares(spare.shares, replace(evidence_of(result.with_plan(problem, spare)), backend=by))


@dataclass(kw_only=True, eq=False)
class MaxMinFairnessPolicy(SolvedShares):
    """Gavel: the least normalised throughput as large as possible.

    Parameters
    ----------
    agnostic : bool
        Treat all GPU types alike, as Gavel's baseline does.
    water_filling : bool
        Go on level by level among jobs that can still gain.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    See Also
    --------
    MaxMinFairness : the linear program and its tie-break.
    """

    agnostic: bool = False
    water_filling: bool = False
    name: str = field(default="gavel", init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.agnostic = as_flag("agnostic", self.agnostic)
        self.water_filling = as_flag("water_filling", self.water_filling)

    def problem(self, state: RoundState) -> MaxMinFairness:
        """Return the program over the jobs present."""
        return MaxMinFairness(
            rates=usable_rates(state),
            gangs=state.gangs,
            gpus=state.gpus,
            weights=np.array([job.weight for job in state.jobs]),
            agnostic=self.agnostic,
            water_filling=self.water_filling,
        )


@dataclass(kw_only=True, eq=False)
class MaxSumThroughputPolicy(SolvedShares):
    """MST: the sum of steps per second as large as possible, whoever makes them.

    Parameters
    ----------
    costs_per_s : mapping of str to float, optional
        What a second of one GPU of each type costs; with `budget_per_s` a limit on what all cost together.
    budget_per_s : float, optional
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    See Also
    --------
    MaxSumThroughput : the linear program and its tie-break.
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
            self.budget_per_s = as_real("budget_per_s", self.budget_per_s, minimum=0.0)

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
            gangs=state.gangs,
            gpus=state.gpus,
            costs_per_s=costs,
            budget_per_s=self.budget_per_s,
        )


@dataclass(kw_only=True, eq=False)
class MinTotalDurationPolicy(SolvedShares):
    """OSSP: the time until the last job present ends as short as possible.

    See Also
    --------
    SolvedShares : the options.
    MinTotalDuration : the linear program and its tie-break.
    """

    name: str = field(default="ossp", init=False)

    def problem(self, state: RoundState) -> MinTotalDuration:
        """Return the program over the jobs present and the steps they have left at their present batch sizes."""
        return MinTotalDuration(
            rates=usable_rates(state),
            steps=steps_to_go(state),
            gangs=state.gangs,
            gpus=state.gpus,
        )
