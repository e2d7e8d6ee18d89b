"""The level_programs backend: levels of water filling one after the other, by linear programs that HiGHS solves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.shares.levels import ROUNDING as LEVEL_ROUNDING
from ...formulations.shares.levels import LevelShares, level_bound, risen
from ..backend import Answer, Claim, OwnMethod, Progress, Task
from ..deadline import Deadline
from ..external.highs import solved_by_highs
from ..options import Options
from ..result import Limit
from .backend import solved_shares
from .decomposition import ConvexCombination, JobGroups, afforded

# A level is attained if no more than this share of the way to it is left. The way starts at the rates of the last level
# less the share BACK, because rounding could make those rates infeasible.
ATTAINED, BACK = 1e-9, 1e-6
# Prices of a type's GPUs below this share of the prices of all GPUs count as 0.
NO_PRICE = 1e-12


class LevelPrograms(OwnMethod):
    """A few linear programs for each level, each one with all jobs; then the optimum nearest to isolated shares.

    It is slower than share_prices, and verifies it: apart from the tie-break and the arithmetic of prices, they have no
    step in common.
    """

    name = "level_programs"
    formulations = frozenset({"MaxMinFairness:water_filling", "HierarchicalFairness"})
    supported_options = frozenset({"seed", "threads"})
    requires = ("numba", "highspy")
    delegates_to = frozenset({"highs"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the problem to rounding, whatever the requested gap, so that the tie-break starts from an optimum."""
        self.backend_options(options)
        deadline, search = Deadline.of(options), _ProgramSearch(task.problem, options)
        plan, notes, finished = solved_shares(task.problem, deadline, search, "linear programs by HiGHS")
        if search.failure:
            return Answer(claim=Claim.FAILED, message=search.failure)
        limit = None if finished else Limit.TIME if deadline.passed else Limit.METHOD
        return Answer.ended(limit, plan=plan, notes=tuple(notes))


@dataclass(frozen=True, kw_only=True)
class _ProgramSolution(ConvexCombination):
    """Shares that a linear program found, in place of a combination."""

    solved: Floats

    def shares(self, job_groups: JobGroups, reward: float, least: Floats) -> Floats:
        """Return the shares of the program, shape (G, K)."""
        return self.solved


class _ProgramSearch:
    """The search for one level after the other: from the rates of the last level as far as the GPUs suffice.

    Prices bound the level, and a linear program finds which part of the way to the bound is attainable. Its duals are
    the next prices, and their bound is lower, until the whole way is attainable.
    """

    def __init__(self, problem: LevelShares, options: Options) -> None:
        self.problem, self.options, self.failure = problem, replace(options, rel_gap=0.0, abs_gap=0.0), ""
        self.floors, self.level = np.zeros(len(problem.groups.first)), 0.0

    def __call__(
        self, job_groups: JobGroups, caps: Floats, starts: Floats, deadline: Deadline, rounding: float
    ) -> tuple[float, ConvexCombination]:
        """Return the largest level at which the rates that have `risen` are attainable, and prices that prove it."""
        problem, of_job = self.problem, self.problem.groups.of_job
        jobs = job_groups.worth, job_groups.gang_gpus, job_groups.counts, job_groups.gpus
        prices, shares = np.zeros(len(job_groups.gpus)), np.zeros_like(job_groups.worth)
        level, rounds, attained = float((starts + caps).max()), 0, False
        while not (attained or deadline.passed):
            targets = risen(level, caps, starts)
            program = problem.step_program(self.floors[of_job], targets[of_job])
            answer = solved_by_highs(problem, "shares", program, self.options.with_time(deadline.left()))
            rounds += 1
            if answer.values is None or answer.duals is None:
                if answer.claim is not Claim.STOPPED:
                    self.failure = f"HiGHS found no part of the way to level {level:.6g}: {answer.message}"
                break
            plan = problem.plan_of(answer.values[1:], answer.duals)
            np.add.at(shares := np.zeros_like(shares), of_job, plan.shares)
            shares /= job_groups.counts[:, None]
            attained = answer.values[0] >= 1.0 - ATTAINED
            if attained:
                break
            paid = problem.prices_of(plan) * job_groups.gpus
            if not paid.any():
                break
            next_prices = np.where(paid > NO_PRICE * paid.sum(), paid, 0.0) / (paid.sum() * job_groups.gpus)
            lower = max(self.level, level_bound(*jobs, next_prices, caps, starts, LEVEL_ROUNDING))
            if not lower < level:
                attained = answer.values[0] >= 1.0 - 1e3 * ATTAINED
                break
            level, prices = lower, next_prices
        if attained:
            level = max(self.level, afforded(job_groups, level, caps, starts, prices))
            self.level, self.floors = level, (1.0 - BACK) * risen(level, caps, starts)
        return level, _ProgramSolution(prices=prices, parts=[], rounds=rounds, finished=attained, solved=shares)


BACKEND = LevelPrograms()
