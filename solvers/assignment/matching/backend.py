"""Matching of jobs to workers by shortest augmenting paths over slots of like workers; slot prices prove optimality."""

from __future__ import annotations

import numpy as np

from ....formulations.arrays import Floats, Indices
from ....formulations.assignment.allox import AlloxMatching, AlloxPlan
from ...backend import Answer, Claim, OwnMethod, Progress, Task
from ...deadline import Deadline
from ...options import Options
from ...result import Limit

# Jobs added between two checks of the clock.
BATCH = 64


class Matching(OwnMethod):
    """The Hungarian method on a transport problem: workers of one type are alike, so their slots are one.

    Jobs enter one by one, longest first, each by the shortest path of moves of earlier jobs between slots. The prices
    that guide the paths are the dual optimum. Queues start about as long as an even split needs, and are made longer
    while a slot beyond their end could save anything at price 0. One type of worker needs no search: the longest jobs
    go last, and the prices follow.
    """

    name = "matching"
    formulations = frozenset({"AlloxMatching"})
    supported_options = frozenset({"seed"})

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the problem; the method draws nothing, so the seed has no effect."""
        self.backend_options(options)
        problem: AlloxMatching = task.problem
        if len(problem.workers_of_type) == 1:
            return Answer(claim=Claim.SOLVED, plan=_one_type(problem))
        deadline = Deadline.of(options)
        limits = problem.depths
        depths = np.minimum(limits, 2 + (3 * len(problem.steps)) // (2 * int(problem.workers_of_type.sum())))
        while True:
            plan, worth = _matched(problem, depths, deadline)
            # A slot beyond a queue's end is free but for its time: queues grow where a job would prefer such a slot.
            # An unmatched job has no value yet; its queue grows if any queue can.
            rather = ((depths + 1) * problem.times_s < (1.0 - 1e-12) * worth[:, None]).any(axis=0)
            late = deadline.passed
            longer = (rather | bool((worth < 0).any())) & (depths < limits)
            if late or not longer.any():
                return Answer.ended(Limit.TIME if late else None, plan=plan)
            depths = np.where(longer, np.minimum(limits, 2 * depths), depths)


def _one_type(problem: AlloxMatching) -> AlloxPlan:
    """Return the plan of one type of worker: the price of a slot falls by the shortest job in the slot."""
    workers = int(problem.workers_of_type[0])
    longest = -np.sort(-problem.times_s[:, 0])
    shortest_in_slot = longest[workers - 1 :: workers][: int(problem.depths[0]) - 1]
    prices = np.append(np.cumsum(shortest_in_slot[::-1])[::-1], 0.0)
    return AlloxPlan(problem, np.zeros(len(longest), np.int64), prices[None, :])


def _matched(problem: AlloxMatching, depths: Indices, deadline: Deadline) -> tuple[AlloxPlan, Floats]:
    """Return the best plan with queues of at most `depths`, and the value of each job: -1 for an unmatched one."""
    from .kernels import add_jobs

    types = np.repeat(np.arange(len(depths)), depths)
    ranks = np.concatenate([np.arange(1, depth + 1) for depth in depths]).astype(np.float64)
    sizes = problem.workers_of_type[types]
    jobs = len(problem.steps)
    order = np.argsort(-problem.times_s.min(axis=1), kind="stable")
    slot_of = np.full(jobs, -1, np.int64)
    members = np.zeros((len(types), int(sizes.max())), np.int64)
    counts = np.zeros(len(types), np.int64)
    worth, discount = np.zeros(jobs), np.zeros(len(types))
    for start in range(0, jobs, BATCH):
        if deadline.passed:
            break
        batch = order[start : start + BATCH]
        add_jobs(problem.times_s, batch, types, ranks, sizes, slot_of, members, counts, worth, discount)
    prices = np.zeros((len(depths), int(depths.max())))
    prices[np.arange(prices.shape[1]) < depths[:, None]] = -discount
    matched = slot_of >= 0
    type_of = np.where(matched, types[slot_of], problem.times_s.argmin(axis=1))
    return AlloxPlan(problem, type_of, prices), np.where(matched, worth, -1.0)


BACKEND = Matching()
