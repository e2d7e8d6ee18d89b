"""Schedules of gangs by construction: packed into rounds with preemption, or listed without."""

from __future__ import annotations

import numpy as np

from ...arrays import Indices
from .schedule import GangSchedule

# Numbers of rounds tried one by one beyond the bound; after that in steps that double.
ONE_BY_ONE = 8


def packed(rounds: Indices, gangs: Indices, gpus: int, at_least: int) -> GangSchedule:
    """Return a round-preemptive schedule, of `at_least` rounds if one is found, else of few more.

    For each number of rounds in turn: jobs from the widest, and of these from the longest, into their least loaded
    rounds; failing that, the rounds one by one, jobs without a round to spare first, then the widest or the longest
    that fits.
    """
    low, target, step, plan = at_least - 1, at_least, 1, None
    while (plan := _within(rounds, gangs, gpus, target)) is None:
        low = target
        step = step if target - at_least < ONE_BY_ONE else 2 * step
        target += step
    while plan.makespan - low > 1:  # what the doubling has passed over
        middle = (low + plan.makespan) // 2
        found = _within(rounds, gangs, gpus, middle)
        if found is None:
            low = middle
        else:
            plan = found
    return plan


def _within(rounds: Indices, gangs: Indices, gpus: int, limit: int) -> GangSchedule | None:
    """Return a schedule within `limit` rounds, None if these rules find none."""
    from .kernels import dealt, filled

    widest = np.lexsort((-rounds, -gangs))
    at = dealt(widest, rounds, gangs, gpus, limit)
    total = int(rounds.sum())
    if len(at) == total:
        return GangSchedule.of_rounds(gangs, gpus, np.repeat(widest, rounds[widest]), at)
    for order in (widest, np.lexsort((-gangs, -rounds))):
        job, at = filled(order, rounds, gangs, gpus, limit)
        if len(at) == total:
            return GangSchedule.of_rounds(gangs, gpus, job, at)
    return None


def listed(rounds: Indices, gangs: Indices, gpus: int) -> GangSchedule:
    """Return the best of three lists without preemption: from the longest, the widest, the most GPU rounds."""
    from .kernels import started

    orders = [np.lexsort((-gangs, -rounds)), np.lexsort((-rounds, -gangs)), np.lexsort((-gangs, -rounds * gangs))]
    plans = [from_starts(rounds, gangs, gpus, started(order, rounds, gangs, gpus)) for order in orders]
    return min(plans, key=lambda plan: plan.makespan)


def from_starts(rounds: Indices, gangs: Indices, gpus: int, starts: Indices) -> GangSchedule:
    """Return the schedule in which every job begins in the round of `starts`, shape (N,), and runs through."""
    job = np.flatnonzero(rounds > 0)
    return GangSchedule(gangs=gangs, gpus=gpus, job=job, start=starts[job], end=starts[job] + rounds[job])
