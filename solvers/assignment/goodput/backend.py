"""Goodput backend: an exact table for one type of GPU; prices and a restricted integer program for several types."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.assignment.goodput import GoodputAllocation, GoodputPlan
from ...backend import Answer, Claim, OwnMethod, Progress, Task
from ...deadline import Deadline
from ...external.highs import solved_by_highs
from ...options import Options
from ...result import CLOSED_GAP, Limit

# Largest table (jobs x GPUs) that is filled; a larger problem of one type is solved by prices.
MOST_CELLS = 50_000_000
# Cells of the table between two checks of the clock: a few hundredths of a second.
WORK = 20_000_000
# Cells per second that no machine exceeds: a table that would take too long even so is not begun.
FASTEST = 4e9
# Share of the requested gap that the integer program may leave.
GAP_SHARE = 0.5
MOST_CUTS = 200
# Relative tolerance of the bound: the search ends once cuts can lower it by no more than this.
PRECISION = 1e-9
HALVINGS = 50


class Goodput(OwnMethod):
    """Dynamic programming over jobs and GPUs for one type of GPU (exact); prices and a small program for several.

    A problem of one type is also solved by prices if the table is too large for the size limit or the time limit.
    The best prices prove a bound; a plan follows from them after the free GPUs are filled. Configurations that no
    better plan can use, by the bound, are dropped. If the gap is still open, HiGHS chooses among the others.
    """

    name = "goodput"
    formulations = frozenset({"GoodputAllocation"})
    supported_options = frozenset({"threads", "seed", "log"})
    delegates_to = frozenset({"highs"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the problem; the seed has no effect, and threads apply to the integer program."""
        self.backend_options(options)
        deadline = Deadline.of(options)
        problem: GoodputAllocation = task.problem
        plan = None
        if len(problem.gpus) == 1 and len(problem.goodputs) * (int(problem.gpus[0]) + 1) <= MOST_CELLS:
            plan = _exact(problem, deadline.at)
        if plan is not None:
            if options.log:
                sys.stdout.write(f"exact table: objective {problem.evaluate(plan)[0]:.10g}\n")
            note = "bound: the exact table over jobs and GPUs"
            return Answer(claim=Claim.SOLVED, plan=plan, bound=problem.evaluate(plan)[0], notes=(note,))
        prices, bound = best_prices(problem, deadline.at)
        plan = filled(problem, prices, deadline.at)
        objective = problem.evaluate(plan)[0]
        on_progress(objective, bound, plan)
        if options.log:
            sys.stdout.write(f"prices: objective {objective:.10g}  bound {bound:.10g}\n")
        notes = ["bound: Lagrangian, by prices of the GPU types"]
        gap = max(options.abs_gap, max(options.rel_gap, CLOSED_GAP) * problem.gap_scale(objective))
        if bound - objective <= gap:
            return Answer(claim=Claim.SOLVED, plan=plan, bound=bound, notes=tuple(notes))
        if deadline.passed:
            bound = min(bound, problem.bound_at(np.zeros(len(prices))))  # the first prices may be far too high
            return Answer(claim=Claim.STOPPED, limit=Limit.TIME, plan=plan, bound=bound, notes=tuple(notes))
        return _decided(problem, plan, objective, bound, prices, deadline.options(), notes)


def _exact(problem: GoodputAllocation, deadline: float) -> GoodputPlan | None:
    """Return a best plan for one type of GPU; None as soon as the table cannot be finished by the deadline."""
    from .kernels import add_configurations, counts_of

    length = int(problem.gpus[0]) + 1
    ranks = np.arange(problem.goodputs.shape[2])
    least_s = float(problem.allowed.sum(axis=(0, 1)) @ np.maximum(length - ranks, 0)) / FASTEST
    if time.perf_counter() + least_s >= deadline:
        return None
    job, _, rank = np.nonzero(problem.allowed & (problem.utilities > problem.idle_utility))
    gains = problem.utilities[job, 0, rank] - problem.idle_utility
    cells = np.append(0, np.cumsum(length - rank))
    best, new, taken = np.zeros(length), np.zeros(length), np.zeros((len(problem.goodputs), length), np.int32)
    began, done = time.perf_counter(), 0
    while done < len(gains):
        now = time.perf_counter()
        if now >= deadline or (done and (now - began) * (cells[-1] / cells[done] - 1.0) > deadline - now):
            return None
        done = add_configurations(gains, job, rank, done, WORK, best, new, taken)
    counts = counts_of(taken)
    return GoodputPlan(problem, np.zeros(len(counts), np.int64), counts)


def _decided(
    problem: GoodputAllocation,
    plan: GoodputPlan,
    objective: float,
    bound: float,
    prices: Floats,
    options: Options,
    notes: list[str],
) -> Answer:
    """Let HiGHS choose among the configurations that a plan better than this one may use.

    A job in another configuration than its best at the prices lowers the bound by the difference. If that puts the
    bound below the incumbent, no better plan contains the configuration.
    """
    jobs = len(problem.goodputs)
    at = problem.utilities - prices[:, None] * np.arange(problem.goodputs.shape[2])
    best = np.maximum(problem.idle_utility, at.reshape(jobs, -1).max(axis=1))
    keep = (at - best[:, None, None]) / jobs + bound >= objective - 1e-12 * abs(objective)
    program = problem.program(keep=keep)

    # HiGHS may leave GAP_SHARE of the gap; the rest is a margin for rounding.
    asked = replace(options, rel_gap=GAP_SHARE * options.rel_gap, abs_gap=GAP_SHARE * options.abs_gap)
    answer = solved_by_highs(problem, "configurations", program, asked)
    what = f"HiGHS on {program.num_columns} of {int(problem.allowed.sum())} configurations"
    if answer.values is not None and program.residuals_at(answer.values).worst <= options.feasibility_tol:
        found = problem.decode(np.rint(answer.values), keep=keep)
        reached, residuals = problem.evaluate(found)
        if residuals.worst == 0 and reached > objective:
            plan, objective = found, reached
            notes.append(f"plan: {what}")
    proved = bound
    if answer.claim is Claim.INFEASIBLE:  # impossible: the empty allocation is a plan
        return Answer(claim=Claim.FAILED, plan=plan, bound=bound, message=f"{what} claims that there is no plan")
    if answer.bound is not None and max(answer.bound, objective) < bound:
        # A plan without the dropped configurations is within HiGHS's bound; a plan with one is no better than the
        # incumbent.
        proved = max(answer.bound, objective)
        notes.append(f"bound: {what}")
    return Answer.ended(answer.limit, plan=plan, bound=proved, notes=tuple(notes))


def best_prices(problem: GoodputAllocation, deadline: float = math.inf) -> tuple[Floats, float]:
    """Return prices, shape (K,), whose bound (`GoodputAllocation.bound_at`) is least, and the bound.

    The bound is convex in the prices, and each evaluation gives a line below it (the GPUs that the jobs would use); a
    linear program over these lines gives the next prices (Kelley's cutting planes). The first prices are evaluated
    whatever the deadline, a reading of `time.perf_counter`; every bound holds.
    """
    from scipy.optimize import linprog

    from .kernels import choices

    jobs, types = len(problem.goodputs), len(problem.gpus)
    ranks = np.arange(problem.goodputs.shape[2])
    with np.errstate(invalid="ignore"):
        gains = np.where(problem.allowed, problem.utilities - problem.idle_utility, 0.0) / np.maximum(ranks, 1)
    highest = np.maximum(gains.max(axis=(0, 2)), 0.0)  # at these prices no job takes a GPU
    prices, rows, sides = highest / 2, [], []
    best, least = prices, np.inf
    for _ in range(MOST_CUTS):
        type_of, count_of, worth = choices(problem.utilities, problem.idle_utility, prices)
        bound = math.fsum([*worth.tolist(), *(prices * problem.gpus).tolist()]) / jobs
        if bound < least:
            best, least = prices, bound
        if time.perf_counter() >= deadline:
            break
        used = np.bincount(type_of, weights=count_of, minlength=types)
        slope = (problem.gpus - used) / jobs
        rows.append(np.append(slope, -1.0))
        sides.append(float(slope @ prices) - bound)
        found: Any = linprog(
            np.append(np.zeros(types), 1.0),
            A_ub=np.array(rows),
            b_ub=np.array(sides),
            bounds=[*((0.0, float(top)) for top in highest), (None, None)],
            method="highs-ds",
        )
        if found.x is None or least - found.fun <= PRECISION * max(abs(least), 1e-9):
            break
        prices = np.clip(found.x[:-1], 0.0, highest)
    return best, least


def filled(problem: GoodputAllocation, prices: Floats, deadline: float = math.inf) -> GoodputPlan:
    """Return a plan: the jobs' choices at the lowest multiple of the prices that fits the GPUs, then filled up.

    GPUs left over go, one change of a configuration at a time, to the job that gains most; ties go to the first.
    After the deadline, a reading of `time.perf_counter`, the plan is the first one that fits.
    """
    from .kernels import best_change, choices

    utilities, idle, types = problem.utilities, problem.idle_utility, len(prices)

    def fits(factor: float) -> bool:
        kind, count, _ = choices(utilities, idle, factor * prices)
        return bool((np.bincount(kind, weights=count, minlength=types) <= problem.gpus).all())

    low, high = 0.0, 1.0
    while not fits(high) and high < 2.0**HALVINGS:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        if time.perf_counter() >= deadline:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    jobs = len(problem.goodputs)
    type_of, count_of, _ = choices(utilities, idle, high * prices)
    free = problem.gpus - np.bincount(type_of, weights=count_of, minlength=types).astype(np.int64)
    if (free < 0).any():
        (type_of, count_of), free = np.zeros((2, jobs), np.int64), problem.gpus.copy()
    while time.perf_counter() < deadline:
        now = np.where(count_of > 0, utilities[np.arange(jobs), type_of, count_of], idle)
        (job, kind, count), gain = best_change(utilities, now, type_of, count_of, free)
        if not gain > 0:
            break
        free[type_of[job]] += count_of[job]
        free[kind] -= count
        type_of[job], count_of[job] = kind, count
    return GoodputPlan(problem, type_of, count_of)


BACKEND = Goodput()
