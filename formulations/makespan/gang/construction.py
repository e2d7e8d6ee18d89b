"""Constructed schedules of gangs: packed into rounds with preemption, or list schedules without."""

from __future__ import annotations

import numpy as np

from ...arrays import Indices
from .schedule import GangSchedule

# Numbers of rounds beyond the bound that are tried one by one; larger ones are tried in doubling steps.
ONE_BY_ONE = 8


def packed(rounds: Indices, gang_gpus: Indices, gpus: int, at_least: int) -> GangSchedule:
    """Return a round-preemptive schedule of `at_least` rounds if the heuristic finds one, else of a few more.

    For each number of rounds, the heuristic first packs the jobs into their least loaded rounds, widest jobs first and
    then longest. If that fails, it fills the rounds one by one: jobs without slack first, then the widest or the
    longest that fits.
    """
    low, target, step, plan = at_least - 1, at_least, 1, None
    while (plan := _within(rounds, gang_gpus, gpus, target)) is None:
        low = target
        step = step if target - at_least < ONE_BY_ONE else 2 * step
        target += step
    while plan.makespan - low > 1:  # bisect the last doubling step
        middle = (low + plan.makespan) // 2
        found = _within(rounds, gang_gpus, gpus, middle)
        if found is None:
            low = middle
        else:
            plan = found
    return plan


def _within(rounds: Indices, gang_gpus: Indices, gpus: int, limit: int) -> GangSchedule | None:
    """Return a schedule within `limit` rounds; None if the heuristic finds none."""
    from .kernels import dealt, filled

    widest = np.lexsort((-rounds, -gang_gpus))
    at = dealt(widest, rounds, gang_gpus, gpus, limit)
    total = int(rounds.sum())
    if len(at) == total:
        return GangSchedule.of_rounds(gang_gpus, gpus, np.repeat(widest, rounds[widest]), at)
    for order in (widest, np.lexsort((-gang_gpus, -rounds))):
        job, at = filled(order, rounds, gang_gpus, gpus, limit)
        if len(at) == total:
            return GangSchedule.of_rounds(gang_gpus, gpus, job, at)
    return None


def listed(rounds: Indices, gang_gpus: Indices, gpus: int) -> GangSchedule:
    """Return the best of three nonpreemptive list schedules: longest, widest or largest job (GPU rounds) first."""
    from .kernels import started

    orders = [
        np.lexsort((-gang_gpus, -rounds)),
        np.lexsort((-rounds, -gang_gpus)),
        np.lexsort((-gang_gpus, -rounds * gang_gpus)),
    ]
    plans = [from_starts(rounds, gang_gpus, gpus, started(order, rounds, gang_gpus, gpus)) for order in orders]
    return min(plans, key=lambda plan: plan.makespan)


def from_starts(rounds: Indices, gang_gpus: Indices, gpus: int, starts: Indices) -> GangSchedule:
    """Return the schedule in which every job begins in the round of `starts`, shape (N,), and runs without a pause."""
    job = np.flatnonzero(rounds > 0)
    return GangSchedule(gang_gpus=gang_gpus, gpus=gpus, job=job, start=starts[job], end=starts[job] + rounds[job])
