"""FinishTimeFairness: shares of GPU time that minimise the worst finish-time fairness (Themis, as Gavel states it)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...arrays import Floats, Indices
from ...checks import as_reals, refuse, same_length, store_checked
from ...errors import InvalidInput
from ...former_names import former_parameters
from ...program.builder import ProgramBuilder
from ...program.data import ProblemClass, Residuals
from ...program.model import Program
from ..polytope import GpuShares, SharePolytope
from .levels import Levels

# Tangents per job of the program; they keep its error near 1e-5 if the level is known to a factor of two.
TANGENTS = 64


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, kw_only=True, eq=False)
class FinishTimeFairness(SharePolytope):
    """Minimise ``max_j [t_j + n_j / (tau_j . x_j)] / [C_j + n_j / iso_j]`` over shares x of time on each GPU type.

    The numerator is the finish time of job j since its arrival if it keeps its shares. The denominator is its finish
    time alone on its part of the cluster. Shares lie in P = {x >= 0, sum_k x_jk <= 1, sum_j g_j x_jk <= M_k}.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of each type (tau_jk), at least 0; 0 where it cannot run.
    gang_gpus : array_like of int, shape (N,)
        GPUs the job needs, all at once (g_j), at least 1.
    gpus : array_like of int, shape (K,)
        GPUs of each type (M_k), at least 1.
    steps : array_like of float, shape (N,)
        Steps left of each job (n_j), at least 0.
    elapsed_s : array_like of float, shape (N,)
        Seconds since the job arrived (t_j), at least 0.
    isolated_elapsed_s : array_like of float, shape (N,)
        Seconds that the steps done so far would have taken in isolation (C_j), at least 0.
    isolated_rates : array_like of float, shape (N,)
        Steps per second in isolation (iso_j), greater than 0: by Gavel ``tau_j . x`` at :attr:`isolated_shares`.

    Raises
    ------
    InvalidInput
        Naming field, index and value. A job with steps left needs a type that it can run on; a job without steps left
        needs a positive `isolated_elapsed_s`, because its fairness is undefined otherwise.

    Notes
    -----
    D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI
    2020, Section 4.2, after K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI 2020. A job
    reaches the level rho if ``tau_j . x_j >= n_j / (rho d_j - t_j)``, d_j the denominator: a convex set in (x, rho).
    No linear program states it. The form "tangents" is a linear relaxation with TANGENTS tangents for each job; its
    plan is evaluated with the exact objective. The backend "finish_time" solves the problem to full precision.

    The plan's prices prove the bound: see :meth:`proved_bound`. If several plans have the best level, the backend
    "finish_time" returns the one nearest to the isolated shares (see there); general backends return any of them.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.FinishTimeFairness(rates=[[2.0], [1.0]], gang_gpus=[1, 1], gpus=[1], steps=[100.0, 100.0],
    ...     elapsed_s=[0.0, 50.0], isolated_elapsed_s=[0.0, 0.0], isolated_rates=[1.0, 0.5])
    >>> result = eq.solve(problem, rel_gap=1e-9)
    >>> round(result.objective, 6), result.plan.shares.round(3).tolist()
    (1.140388, [[0.438], [0.562]])
    """

    rates: Floats
    gang_gpus: Indices
    gpus: Indices
    steps: Floats
    elapsed_s: Floats
    isolated_elapsed_s: Floats
    isolated_rates: Floats

    sense = "min"
    reference: ClassVar[str] = "Narayanan et al., Gavel, OSDI 2020, Section 4.2; Mahajan et al., Themis, NSDI 2020"
    forms = ("tangents",)
    _declared_class = ProblemClass.LP

    def __post_init__(self) -> None:
        self._check_polytope(runs=False)
        history = ("steps", "elapsed_s", "isolated_elapsed_s")
        store_checked(self, as_reals, *history, minimum=0.0)
        store_checked(self, as_reals, "isolated_rates", above=0.0)
        same_length(**{name: getattr(self, name) for name in (*history, "isolated_rates", "rates")})
        fastest = self.rates.max(axis=1)
        refuse("rates", (fastest == 0) & (self.steps > 0), fastest, "the job can run on no type of GPU")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            bad = ~((self.isolated_s > 0) & np.isfinite(self.isolated_s) & np.isfinite(self.levels.at_best))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            needs = "a job without steps left needs a positive isolated_elapsed_s"
            why = needs if self.isolated_s[at] == 0 else "its time is out of range"
            raise InvalidInput("steps", float(self.steps[at]), why, index=at)

    @cached_property
    def isolated_s(self) -> Floats:
        """Seconds from arrival to finish in isolation (the denominator), shape (N,)."""
        return np.asarray(self.isolated_elapsed_s + self.steps / self.isolated_rates)

    @cached_property
    def levels(self) -> Levels:
        """Speeds that a level of fairness requires of the jobs, and their costs at given prices."""
        return Levels(self.rates, self.gang_gpus, self.gpus, self.steps, self.elapsed_s, self.isolated_s)

    def fairness_at(self, shares: Floats) -> Floats:
        """Return each job's finish-time fairness at shares, shape (N, K): infinite for a job that never ends."""
        speed = np.einsum("jk,jk->j", self.rates, shares)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            left = np.where(self.steps > 0, self.steps / speed, 0.0)
        return np.asarray((self.elapsed_s + left) / self.isolated_s)

    def evaluate(self, plan: GpuShares) -> tuple[float, Residuals]:
        """Return the worst fairness at the plan's shares, and how far they are from P."""
        self.check_plan(plan)
        return float(self.fairness_at(plan.shares).max()), self.residuals(plan.shares)

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the level that the plan's prices prove: no shares in P have a lower one, whatever the prices are.

        At a level rho job j must reach a speed, which has a least cost at prices p (of a GPU of each type for the whole
        time). If the jobs' costs exceed the value of all GPUs, ``p . M``, the level is infeasible. If the plan has no
        prices, all types get the same total price.
        """
        self.check_plan(plan)
        return max(self.levels.bracket[0], self.levels.proved(self.prices_of(plan)))

    def program(self, form: str = "tangents") -> Program:
        """Return a linear relaxation: minimise the level, with job speeds above tangents of the required speeds."""
        self.check_form(form)
        job, kind = self._pairs()
        build = ProgramBuilder(sense="min")
        share = self._add_shares(build)
        low, high = self.levels.bracket
        level = build.add_columns("level", (1,), lower=low)
        count = min(TANGENTS, 2 + int(TANGENTS * (high / low - 1.0))) if low > 0 else TANGENTS
        busy, slope, start = self.levels.tangents(low, high, count)
        place = np.full(self.num_jobs, -1)
        place[busy] = np.arange(len(busy))
        mine = place[job] >= 0
        row = np.arange(slope.size).reshape(slope.shape)
        relative = self.rates[job, kind] / self.levels.fastest[job]
        build.add_rows(
            "speed",
            slope.shape,
            lower=start,
            terms=[(row[place[job[mine]]], share[mine][:, None], relative[mine][:, None]), (row, level[0], -slope)],
        )
        build.set_objective([(level, [1.0])])
        return build.program()

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "tangents") -> GpuShares:
        """Turn column values of the program into shares within P, priced by the duals of the capacities."""
        self.check_form(form)
        prices = None if duals is None else np.maximum(0.0, -duals[: self.num_types])
        return GpuShares(self._shares_of(values[:-1]), prices)

    def encode(self, plan: GpuShares, form: str = "tangents") -> Floats:
        """Turn shares into column values of the program, for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        level = max(self.levels.bracket[0], float(self.fairness_at(plan.shares).max()))
        return np.append(plan.shares[self._pairs()], level)
