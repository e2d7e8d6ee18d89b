"""List schedules in slots: jobs in an order start as soon as they can, alone or beside jobs that a rule chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from ..arrays import Indices
from .pair_rule import pair_ends, shares_at_once
from .slot_jobs import UNITS, SlotJobs
from .slot_schedule import SlotSchedule


class SlotRun:
    """The cluster at the start of slot `now`, from slot to slot.

    Attributes
    ----------
    holders : list of list of int, shape (gpus, up to 2)
        Jobs on each GPU.
    left : list of int
        Units that each job still needs.
    gpu_ids : dict of tuple of int
        GPUs of each job that has started.
    """

    def __init__(self, jobs: SlotJobs) -> None:
        self.jobs, self.now = jobs, 0
        self.holders: list[list[int]] = [[] for _ in range(jobs.gpus)]
        self.left: list[int] = jobs.work_units.tolist()
        self.gpu_ids: dict[int, tuple[int, ...]] = {}
        self.start = np.zeros(len(self.left), dtype=np.int64)
        self._rates: list[list[int]] = jobs.rate_units.tolist()

    def lone_jobs(self) -> list[int]:
        """Return the running jobs that share no GPU, by their first GPUs."""
        found = dict.fromkeys(on[0] for on in self.holders if on)
        return [j for j in found if all(len(self.holders[gpu]) == 1 for gpu in self.gpu_ids[j])]

    def begin(self, job: int, gpu_ids: Sequence[int]) -> None:
        """Start a job on GPUs in this slot."""
        self.gpu_ids[job] = tuple(gpu_ids)
        self.start[job] = self.now
        for gpu in gpu_ids:
            self.holders[gpu].append(job)

    def advance(self) -> None:
        """Run the slot; jobs whose progress reaches their work leave their GPUs."""
        running = {job for on in self.holders for job in on}
        done = {
            j: min((self._rates[j][k] for gpu in self.gpu_ids[j] for k in self.holders[gpu]), default=UNITS)
            for j in running
        }
        for job, units in done.items():
            self.left[job] -= units
            if self.left[job] <= 0:
                for gpu in self.gpu_ids[job]:
                    self.holders[gpu].remove(job)
        self.now += 1


# Jobs up to which exchanges improve the list schedules.
MOST_EXCHANGED = 12

#: Chooses, for a job that finds too few free GPUs, the jobs that run alone whose GPUs it may take, in order.
Partners = Callable[[SlotRun, int], Sequence[int]]


def no_partners(run: SlotRun, job: int) -> Sequence[int]:
    """Share no GPU."""
    return ()


def first_partners(run: SlotRun, job: int) -> Sequence[int]:
    """Share the GPUs of the jobs that run alone, by their first GPUs: the rule of SJF-FFS."""
    return run.lone_jobs()


def gaining_partners(run: SlotRun, job: int) -> Sequence[int]:
    """Share where the pair gains, by the least sum of its ends: the rule of SJF-BSBF, without sub-batches.

    Times are the remaining slots of the running job and the slots of the new one, as if there were no slots.
    """
    ratios, b = run.jobs.ratios, float(run.jobs.work_slots[job])
    found = []
    for other in run.lone_jobs():
        pair = run.left[other] / UNITS, b, float(ratios[other, job]), float(ratios[job, other])
        if shares_at_once(*pair):
            found.append((sum(pair_ends(*pair, 0.0)), other))
    return [other for _, other in sorted(found)]


def list_schedule(jobs: SlotJobs, order: Sequence[int], partners: Partners) -> SlotSchedule:
    """Return the schedule in which, at each slot, the waiting jobs in `order` start if they can.

    A job takes free GPUs if there are enough. Otherwise it takes the GPUs of the partners in their order until it has
    enough, and free ones complete them; if they do not suffice, it waits, and later jobs may start before it.
    """
    run, waiting = SlotRun(jobs), list(order)
    arrivals, gangs = jobs.arrivals.tolist(), jobs.gang_gpus.tolist()
    while waiting:
        for job in list(waiting):
            if arrivals[job] > run.now:
                continue
            free = [gpu for gpu, on in enumerate(run.holders) if not on]
            taken: list[int] = []
            if len(free) < gangs[job] and jobs.jobs_per_gpu == 2:
                for other in partners(run, job):
                    taken += run.gpu_ids[other][: gangs[job] - len(taken)]
            chosen = (taken + free)[: gangs[job]]
            if len(chosen) == gangs[job]:
                run.begin(job, chosen)
                waiting.remove(job)
        run.advance()
    return SlotSchedule.of_starts(jobs, run.start, [run.gpu_ids[job] for job in range(len(arrivals))])


def shortest_first(jobs: SlotJobs) -> list[int]:
    """Return the jobs by work; ties by index."""
    order: Indices = np.argsort(jobs.work_units, kind="stable")
    return [int(job) for job in order]


def best_list(jobs: SlotJobs) -> SlotSchedule:
    """Return the best list schedule found from the shortest job first by exchanges of two jobs, for each rule."""
    found: list[tuple[float, SlotSchedule]] = []
    for partners in (no_partners, first_partners, gaining_partners):
        order = shortest_first(jobs)
        plan = list_schedule(jobs, order, partners)
        least, better = jobs.total_time(plan.end), len(order) <= MOST_EXCHANGED
        while better:
            better = False
            for i, k in combinations(range(len(order)), 2):
                order[i], order[k] = order[k], order[i]
                tried = list_schedule(jobs, order, partners)
                value = jobs.total_time(tried.end)
                if value < least:
                    least, plan, better = value, tried, True
                else:
                    order[i], order[k] = order[k], order[i]
        found.append((least, plan))
    return min(found, key=lambda each: each[0])[1]
