"""Constructed schedules of an open shop: the preemptive optimum, greedy lists, and semi-active schedules."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Floats
from .schedule import ShopSchedule

# Bits of the longest load in the units of the decomposition: whole numbers of so many bits are exact.
GRID_BITS = 50
LIST_RULES = 3


def longest_load(times: Floats) -> float:
    """Return the largest total time of one job or one machine: no schedule is shorter."""
    return max(math.fsum(each) for part in (times.tolist(), times.T.tolist()) for each in part)


def preemptive_schedule(times: Floats) -> ShopSchedule:
    """Return a preemptive schedule whose length is the largest total time of one job or one machine.

    The times are rounded to a grid of 2**-50 of that length: starts and ends are exact if the times are whole numbers
    below 2**50, and their error is at most a unit in the 15th decimal otherwise.
    """
    from .kernels import decomposed

    jobs, machines = times.shape
    longest = longest_load(times)
    exponent = math.frexp(longest)[1] - GRID_BITS
    work = np.rint(np.ldexp(times, -exponent)).astype(np.int64)
    count, job, machine, start, end = decomposed(work)
    return ShopSchedule(
        num_jobs=jobs,
        num_machines=machines,
        job=job[:count],
        machine=machine[:count],
        start=np.ldexp(start[:count].astype(np.float64), exponent),
        end=np.ldexp(end[:count].astype(np.float64), exponent),
    )


def list_schedule(times: Floats) -> ShopSchedule:
    """Return the best of a few greedy list schedules; in each, no machine idles that could work (a dense schedule)."""
    from .kernels import listed

    plans = [from_starts(times, listed(times, rule)) for rule in range(LIST_RULES)]
    return min(plans, key=lambda plan: plan.makespan)


def from_starts(times: Floats, starts: Floats) -> ShopSchedule:
    """Return the nonpreemptive schedule with the operations in the order of `starts`, each as early as possible.

    Operations of zero time are left out. Only the order of `starts`, shape (jobs, machines), counts, so that a solver's
    tolerances do not matter.
    """
    jobs, machines = times.shape
    job_free, machine_free = [0.0] * jobs, [0.0] * machines
    lengths = times.ravel().tolist()
    begin, pieces = [], []
    for at in np.lexsort((np.arange(times.size), times.ravel() + starts.ravel(), starts.ravel())).tolist():
        if lengths[at] > 0:
            i, k = divmod(at, machines)
            start = max(job_free[i], machine_free[k])
            job_free[i] = machine_free[k] = start + lengths[at]
            begin.append(start)
            pieces.append(at)
    operation = np.array(pieces, dtype=np.int64)
    start_of = np.array(begin, dtype=np.float64)
    return ShopSchedule(
        num_jobs=jobs,
        num_machines=machines,
        job=operation // machines,
        machine=operation % machines,
        start=start_of,
        end=start_of + times.ravel()[operation],
    )
