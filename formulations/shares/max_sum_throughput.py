"""MaxSumThroughput: shares of GPU time of the greatest total throughput, with an optional budget and deadlines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..arrays import Floats, Indices
from ..checks import as_real, as_reals, same_length, store_checked
from ..errors import InvalidInput
from ..former_names import former_parameters
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass, Residuals
from ..program.model import Program
from .polytope import GpuShares, Groups, SharePolytope


@former_parameters(gangs="gang_gpus")
@dataclass(frozen=True, eq=False, repr=False)
class MaxSumThroughput(SharePolytope):
    """Maximise ``sum_jk tau_jk x_jk`` over the shares of GPU time in P.

    Parameters
    ----------
    rates : array_like of float, shape (N, K)
        Steps per second on all the job's GPUs of that type (tau), at least 0.
    gang_gpus : array_like of int, shape (N,)
        GPUs that a job holds while it runs (g).
    gpus : array_like of int, shape (K,)
        GPUs of each type (M).
    costs_per_s : array_like of float, shape (K,), optional
        Dollars per second of one GPU of each type, at least 0; with `budget_per_s` only.
    budget_per_s : float, optional
        Limit of the row ``sum_jk costs_k g_j x_jk <= budget``, greater than 0; with `costs_per_s` only.
    least_rates : array_like of float, shape (N,), optional
        Limits of the rows ``sum_k tau_jk x_jk >= least_j`` (steps left divided by the seconds to the deadline), at
        least 0. If they cannot all be met, the problem is infeasible.

    Raises
    ------
    InvalidInput
        Naming field, index and value.

    Notes
    -----
    Prices p of the types and q of the budget, at least 0, prove that no plan is better than
    ``p.M + q budget - sum_j min (g_j (p + q costs) - tau_j).x``, each minimum over x >= 0 with sum x <= 1 and
    tau_j.x >= least_j. Without the optional rows that is ``p.M + sum_j max(0, max_k(tau_jk - g_j p_k))``. On one type
    it is a fractional knapsack: jobs by tau_j / g_j until the GPUs are used up.

    D. Narayanan et al. (Gavel), OSDI 2020, Section 4.2: maximum throughput, with cost and SLOs as its rows. Gavel's own
    cost policy maximises throughput by cost; here the cost is a budget, which keeps the program linear.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.MaxSumThroughput(rates=[[3.0], [4.0]], gang_gpus=[1, 2], gpus=[2])
    >>> eq.solve(problem).require_optimal().shares.round(4).tolist()
    [[1.0], [0.5]]
    """

    rates: Floats
    gang_gpus: Indices
    gpus: Indices
    costs_per_s: Floats | None = None
    budget_per_s: float | None = None
    least_rates: Floats | None = None

    sense = "max"
    _declared_class = ProblemClass.LP
    reference: ClassVar[str] = "Gavel, OSDI 2020, Section 4.2"

    def __post_init__(self) -> None:
        self._check_polytope(runs=False)
        with np.errstate(over="ignore"):
            total = float(self.rates.max(axis=1).sum())
        if not math.isfinite(total):
            raise InvalidInput("rates", float(self.rates.max()), "their sum must be finite")
        if (self.costs_per_s is None) != (self.budget_per_s is None):
            field = "budget_per_s" if self.budget_per_s is None else "costs_per_s"
            raise InvalidInput(field, None, "give both costs_per_s and budget_per_s, or neither")
        if self.costs_per_s is not None:
            costs = as_reals("costs_per_s", self.costs_per_s, minimum=0.0)
            if len(costs) != self.num_types:
                raise InvalidInput("costs_per_s", f"{len(costs)} values", f"there are {self.num_types} types of GPU")
            object.__setattr__(self, "costs_per_s", costs)
            store_checked(self, as_real, "budget_per_s", above=0.0)
        if self.least_rates is not None:
            store_checked(self, as_reals, "least_rates", minimum=0.0)
            same_length(least_rates=self.least, rates=self.rates)

    @property
    def kind(self) -> str:
        """The name by which backends list it."""
        plain = self.budget_per_s is None and self.least_rates is None
        return "MaxSumThroughput" if plain else "MaxSumThroughput:rows"

    @cached_property
    def least(self) -> Floats:
        """Least rate of every job, 0 without `least_rates`, shape (N,)."""
        return np.zeros(self.num_jobs) if self.least_rates is None else self.least_rates

    @cached_property
    def groups(self) -> Groups:
        """Jobs with the same rates, gang and least rate."""
        columns = [*self.rates.T, self.gang_gpus.astype(np.float64)]
        return self.grouped(*columns, *([] if self.least_rates is None else [self.least]))

    def evaluate(self, plan: GpuShares) -> tuple[float, Residuals]:
        """Return the steps per second and the worst violations, recomputed; those of optional rows are relative."""
        self.check_plan(plan)
        reached = np.einsum("jk,jk->j", self.rates, plan.shares)
        found = self.residuals(plan.shares)
        row = found.row
        if self.least_rates is not None:
            wanted = self.least > 0
            short = (self.least[wanted] - reached[wanted]) / self.least[wanted]
            row = max(row, float(short.max(initial=0.0)))
        if self.costs_per_s is not None and self.budget_per_s is not None:
            row = max(row, self.spending(plan.shares) / self.budget_per_s - 1.0)
        return float(reached.sum()), Residuals(bound=found.bound, row=row)

    def spending(self, shares: Floats) -> float:
        """Return dollars per second; 0 without `costs_per_s`."""
        return 0.0 if self.costs_per_s is None else math.fsum(self.used(shares) * self.costs_per_s)

    def proved_bound(self, plan: GpuShares) -> float:
        """Return the bound on the steps per second that the plan's prices prove; see the class."""
        given = plan.budget_price
        return self.bound_at(self.prices_of(plan), given if math.isfinite(given) and given > 0 else 0.0)

    def bound_at(self, prices: Floats, budget_price: float = 0.0) -> float:
        """Return the bound that prices, shape (K,), at least 0, prove; -inf where no plan meets the least rates."""
        from .kernels import cheapest, most_gained

        first, counts, usage = self.groups.first, self.groups.counts, np.zeros(self.num_types)
        effective, spent = prices, 0.0
        if self.costs_per_s is not None and self.budget_per_s is not None:
            effective = prices + budget_price * self.costs_per_s
            spent = budget_price * self.budget_per_s
        if self.least_rates is None:
            gained = most_gained(self.rates[first], self.gang_gpus[first], counts, effective, usage)[0]
        else:
            jobs, least = (self.rates[first], self.gang_gpus[first], counts), self.least[first]
            gained = -cheapest(*jobs, effective, 1.0, least, least > 0, usage)[0]
        return math.fsum([*(prices * self.gpus), spent, gained])

    def program(self, form: str = "shares") -> Program:
        """Return the linear program, a column for each pair that runs; rows by job are divided by its fastest rate."""
        self.check_form(form)
        build = ProgramBuilder(sense="max")
        share = self._add_rows(build)
        build.set_objective([(share, self.rates[self._pairs()])])
        return build.program()

    def reach_program(self) -> Program:
        """Return the linear program that maximises the common fraction of all least rates, at most 1."""
        build = ProgramBuilder(sense="max")
        reach = build.add_columns("reach", (1,), upper=1.0)
        self._add_rows(build, reach)
        build.set_objective([(reach, np.ones(1))])
        return build.program()

    def _add_rows(self, build: ProgramBuilder, reach: Indices | None = None) -> Indices:
        """Add shares and all rows to a program; the column `reach`, if given, multiplies the least rates."""
        share = self._add_shares(build)
        job, kind = self._pairs()
        if self.costs_per_s is not None and self.budget_per_s is not None:
            dollars = self.costs_per_s[kind] * self.gang_gpus[job] / self.budget_per_s
            build.add_rows("budget", (1,), terms=[(0, share, dollars)], upper=1.0)
        if self.least_rates is not None:
            fastest = self.rates.max(axis=1)
            unit = np.where(fastest > 0, fastest, 1.0)
            terms: list[Any] = [(job, share, self.rates[job, kind] / unit[job])]
            if reach is not None:
                terms.append((np.arange(self.num_jobs), np.broadcast_to(reach, self.num_jobs), -self.least / unit))
            lower = self.least / unit if reach is None else 0.0
            build.add_rows("least_rate", (self.num_jobs,), terms=terms, lower=lower)
        return share

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "shares") -> GpuShares:
        """Turn column values of the program into shares, the prices the duals of capacities and budget."""
        self.check_form(form)
        shares = self._shares_of(values)
        if duals is None:
            return GpuShares(shares)
        price = 0.0
        if self.budget_per_s is not None:
            price = max(0.0, float(duals[self.num_types + self.num_jobs])) / self.budget_per_s
        return GpuShares(shares, np.maximum(duals[: self.num_types], 0.0), price)

    def encode(self, plan: GpuShares, form: str = "shares") -> Floats:
        """Turn shares into column values of the program, for a warm start."""
        self.check_form(form)
        self.check_plan(plan)
        return np.asarray(plan.shares[self._pairs()])
