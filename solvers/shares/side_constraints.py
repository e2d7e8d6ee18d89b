"""Throughput with a budget or least rates: prices by HiGHS, and the optimum nearest to isolated shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...formulations.program.bounds import proved_bound
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.polytope import GpuShares
from ..backend import Answer, Claim
from ..deadline import Deadline
from ..external.highs import solved_by_highs
from ..options import Options
from .decomposition import JobGroups
from .tie_break import MATCHED, nearest_shares

# Relative loss of the objective that a nearer optimum may have by rounding.
ROUNDING = 1e-9


def solve_with_rows(problem: MaxSumThroughput, options: Options) -> Answer:
    """Solve the linear program by HiGHS and break its ties; both need an optimum, whatever the requested gap.

    HiGHS's claims are proved first: a plan's prices prove their own bound; infeasibility is claimed only if prices
    prove that the least rates cannot all be reached at once.
    """
    deadline = Deadline.of(options)
    exact = replace(options, rel_gap=0.0, abs_gap=0.0)
    answer = solved_by_highs(problem, "shares", problem.program(), exact)
    if answer.values is None:
        return _no_plan(problem, answer, exact.with_time(deadline.left()))
    plan, note = problem.decode(answer.values, answer.duals), "ties among optima are not broken by distance"
    if answer.claim is Claim.SOLVED and answer.duals is not None:
        nearer = _nearer(problem, plan)
        if nearer is not None:
            plan, note = nearer, "the optimum nearest to isolated shares"
    notes = (f"{len(problem.groups.first)} groups of {problem.num_jobs} jobs, prices from HiGHS", note)
    return Answer(claim=answer.claim, limit=answer.limit, plan=plan, notes=notes)


def _no_plan(problem: MaxSumThroughput, answer: Answer, options: Options) -> Answer:
    """Return that there is no plan if that is proved; else HiGHS's outcome."""
    if answer.claim is not Claim.INFEASIBLE or problem.least_rates is None:
        return Answer(claim=answer.claim, limit=answer.limit, message=answer.message)
    program = problem.reach_program()
    duals = solved_by_highs(problem, "shares", program, options).duals
    reach = 1.0 if duals is None else proved_bound(program, duals)
    if reach < 1.0 - ROUNDING:
        message = f"no more than {reach:.6g} of all least rates can be reached at once, as prices prove"
        return Answer(claim=Claim.INFEASIBLE, message=message, notes=(message,))
    message = "HiGHS claims that there is no plan, and prices do not prove it"
    return Answer(claim=Claim.FAILED, message=message)


def _nearer(problem: MaxSumThroughput, plan: GpuShares) -> GpuShares | None:
    """Return the optimum nearest to isolated shares by the plan's prices; None if rounding leaves it unresolved."""
    first, prices, budget = problem.groups.first, problem.prices_of(plan), None
    if problem.costs_per_s is not None and problem.budget_per_s is not None:
        prices, budget = np.append(prices, plan.budget_price), (problem.costs_per_s, problem.budget_per_s)
    job_groups = JobGroups.in_groups(problem, problem.groups, problem.rates)
    targets = problem.isolated(problem.gangs[first])
    least = problem.least[first]
    shares, fault = nearest_shares(job_groups, problem.runnable[first], prices, 1.0, least, targets, budget)
    if not fault <= MATCHED:
        return None
    nearer = replace(plan, shares=problem.sound(shares[problem.groups.of_job]))
    reached, residuals = problem.evaluate(nearer)
    kept = reached >= (1.0 - ROUNDING) * problem.evaluate(plan)[0]
    return nearer if kept and residuals.worst <= ROUNDING else None
