"""The share_prices backend: shares of GPU time from prices per type, with a unique choice among optima."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import NoSolution, UnsupportedProblem
from ...formulations.program.bounds import proved_bound
from ...formulations.shares.kernels import cheapest, within_reach
from ...formulations.shares.levels import ROUNDING, LevelShares, risen
from ...formulations.shares.max_sum_throughput import MaxSumThroughput
from ...formulations.shares.polytope import GpuShares
from ..backend import Answer, Claim, OwnMethod, Progress, Task
from ..deadline import Deadline
from ..external.highs import solved_by_highs
from ..options import Options
from ..result import Limit
from ..selection import checked_problem
from .decomposition import ConvexCombination, JobGroups, LevelSearch, afforded, best_level, best_sum
from .tie_break import MATCHED, nearest_shares

WITH_ROWS = "MaxSumThroughput:rows"
KINDS = (
    "MaxMinFairness", "MaxMinFairness:water_filling", "HierarchicalFairness", "MaxSumThroughput", WITH_ROWS,
    "MinTotalDuration",
)  # fmt: skip
# A job is fixed at a level if rounding lets it rise by no more than this share of it, or than HARDER times the least
# such rise of all jobs; the others stay open for another search, in which fixed jobs no longer count.
HELD, HARDER = 1e-7, 10.0
# Relative rounding of one number: with jobs in order, larger tolerances of a level would add up in the later levels.
EPSILON = 2.0**-52
# Relative loss of the objective that a nearer optimum may have by rounding.
LOST = 1e-9


class SharePrices(OwnMethod):
    """Closed forms on one type of GPU, decomposition by prices on several; then the optimum nearest to isolated shares.

    Identical jobs are merged. Nothing is drawn, and only one thread is used. With a budget or least rates the prices
    are those of HiGHS.
    """

    name = "share_prices"
    formulations = frozenset(KINDS)
    supported_options = frozenset({"seed"})
    delegates_to = frozenset({"highs"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the problem to rounding, whatever the requested gap, so that the tie-break starts from an optimum.

        When the time is up, the plan is a feasible convex combination, without the tie-break.
        """
        self.backend_options(options)
        if task.problem.kind == WITH_ROWS:
            return solve_with_rows(task.problem, options)
        deadline = Deadline.of(options)
        plan, notes, finished = solved_shares(task.problem, deadline)
        limit = None if finished else Limit.TIME if deadline.passed else Limit.METHOD
        return Answer.ended(limit, plan=plan, notes=tuple(notes))


def nearest_optimum(problem: LevelShares | MaxSumThroughput) -> GpuShares:
    """Return the optimal shares nearest to the isolated ones, with the prices that prove them optimal.

    The sum over jobs and types of (x_jk - isolated_jk)^2 is least at these shares among all optima. They are unique:
    they depend on the problem alone, not on a backend. The share_prices backend returns them; call this function to
    break ties in the same way when another backend found the objective.

    Raises
    ------
    UnsupportedProblem
        If the problem is not of this kind.
    NoSolution
        If least rates cannot be reached; its `result` is the backend's Answer.
    """
    kind = checked_problem(problem).kind
    if kind not in KINDS:
        raise UnsupportedProblem(f"no tie-break for a {kind}: it is for {', '.join(KINDS)}")
    if isinstance(problem, MaxSumThroughput) and kind == WITH_ROWS:
        answer = solve_with_rows(problem, Options())
        if answer.claim is not Claim.SOLVED:
            raise NoSolution(f"no plan: {answer.claim.name}: {answer.message}", answer)
        plan: GpuShares = answer.plan
        return plan
    return solved_shares(problem, Deadline.of(Options()))[0]


def solved_shares(
    problem: Any, deadline: Deadline, search: LevelSearch = best_level, steps: str = "rounds of prices"
) -> tuple[GpuShares, list[str], bool]:
    """Return the optimum nearest to isolated shares, notes, and whether it is one; `search` finds each level."""
    first = problem.groups.first
    worth = problem.rates if isinstance(problem, MaxSumThroughput) else problem.worth
    job_groups = JobGroups.in_groups(problem, problem.groups, worth)
    if isinstance(problem, MaxSumThroughput):
        least, reward, level_prices = np.zeros(len(first)), 1.0, None
        mix = best_sum(job_groups, deadline)
        face = prices = mix.prices
        finished, stated = mix.finished, f"{mix.rounds} rounds of prices"
    else:
        least, stages = _levels(problem, job_groups, deadline, search)
        mix, finished, reward = stages[-1], all(stage.finished for stage in stages), 0.0
        level_prices = np.array([stage.prices for stage in stages]) if problem.water_filling else None
        face = np.sum([stage.prices for stage in stages], axis=0)
        prices = stages[0].prices
        # Scaled to units of the level: the rise of the level by one more GPU.
        leads = problem.starts(problem.highest)[first] == 0
        lowest = np.where(leads, least[leads].min(), 0.0) if problem.water_filling else least
        jobs, usage = (job_groups.worth, job_groups.gang_gpus, job_groups.counts), np.zeros(len(prices))
        _, slope, _ = cheapest(*jobs, prices, 0.0, lowest, leads, usage)
        prices = prices / slope if slope > 0 else prices
        stated = f"{sum(stage.rounds for stage in stages)} {steps}"
        if problem.water_filling:
            stated += f", {len(stages)} level(s) that prices bind or that end it"
    notes = [f"{len(first)} groups of {problem.num_jobs} jobs, {stated}"]
    shares, fault = np.zeros_like(job_groups.worth), math.inf
    if finished:
        targets = problem.isolated(problem.gang_gpus[first])
        shares, fault = nearest_shares(job_groups, problem.runnable[first], face, reward, least, targets)
    if not fault <= MATCHED:
        shares = mix.shares(job_groups, reward, least)
        notes.append("a convex combination of pricing solutions: ties among optima are not broken by distance")
    else:
        notes.append("the optimum nearest to isolated shares")
    # Rounding, or a convex combination, may exceed the capacity a little.
    shares = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
    used = (job_groups.gang_gpus * job_groups.counts) @ shares
    shares = shares * np.minimum(1.0, job_groups.gpus / np.maximum(used, job_groups.gpus))
    return GpuShares(shares[problem.groups.of_job], prices, 0.0, level_prices), notes, finished


def _levels(
    problem: LevelShares, job_groups: JobGroups, deadline: Deadline, search: LevelSearch
) -> tuple[Floats, list[ConvexCombination]]:
    """Return the rate that each group reaches in the optimum, and the solution of each level."""
    highest = problem.highest[problem.groups.first]
    caps = highest.copy() if problem.water_filling else np.full(len(highest), highest.min())
    stages: list[ConvexCombination] = []
    ordered = bool(problem.starts(highest).any())
    while True:
        rounding = 0.1 * ROUNDING * (1 if ordered else 1 + 10 * len(stages))
        starts = problem.starts(caps)
        level, mix = search(job_groups, caps, starts, deadline, rounding)
        if ordered:
            level, rounding = afforded(job_groups, level, caps, starts, mix.prices), EPSILON
        stages.append(mix)
        least = risen(level, caps, starts)
        if not problem.water_filling or not mix.prices.any() or not mix.finished:
            return least, stages
        reach = within_reach(job_groups.worth, job_groups.gang_gpus, mix.prices, least, rounding)
        open_ = caps > least
        if not open_.any():
            return least, stages
        unit = np.minimum(level, highest)
        rise = np.where(open_, (reach + (unit - least)) / unit - 1.0, np.inf)
        held = rise <= max(HELD, HARDER * rise.min())
        if ordered:  # the money is spent: no job will ever cost more, which caps those that wait as well
            most = within_reach(job_groups.worth, job_groups.gang_gpus, mix.prices, least, 0.0)
            certain = (starts > 0) & (reach - most <= HELD * unit)
            caps[certain] = np.minimum(caps, most)[certain]
        caps[held] = least[held]


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
    if reach < 1.0 - LOST:
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
    targets = problem.isolated(problem.gang_gpus[first])
    least = problem.least[first]
    shares, fault = nearest_shares(job_groups, problem.runnable[first], prices, 1.0, least, targets, budget)
    if not fault <= MATCHED:
        return None
    nearer = replace(plan, shares=problem.sound(shares[problem.groups.of_job]))
    reached, residuals = problem.evaluate(nearer)
    kept = reached >= (1.0 - LOST) * problem.evaluate(plan)[0]
    return nearer if kept and residuals.worst <= LOST else None


BACKEND = SharePrices()
