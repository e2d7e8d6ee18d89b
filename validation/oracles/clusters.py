"""Enumeration of all schedules in slots of a few jobs that share GPUs, and their simulation GPU by GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ...formulations.gpu_sharing.cluster import GpuSharing

Placed = tuple[int, tuple[int, ...]]


def least_total_time(problem: GpuSharing) -> float:
    """Return the least weighted sum of completion times over all starts and all sets of GPUs.

    No start is later than in the schedule of all jobs one after the other; starts whose jobs could not be better than
    the best schedule even if each ran alone are left out.
    """
    arrivals, least = problem.arrivals.tolist(), problem.least_slots.tolist()
    weights, count = problem.job_weights.tolist(), len(arrivals)
    now, best = 0, 0.0
    for job in range(count):
        now = max(now, arrivals[job]) + least[job]
        best += weights[job] * (now - arrivals[job])
    soonest = [weight * slots for weight, slots in zip(weights, least, strict=True)]
    sets = [list(combinations(range(problem.gpus), gang)) for gang in problem.gang_gpus.tolist()]

    def extend(placed: tuple[Placed, ...], cost: float) -> Iterator[float]:
        nonlocal best
        job = len(placed)
        if job == count:
            found = slot_ends(problem, placed)
            if found is not None:
                yield sum(w * (end - a) for w, end, a in zip(weights, found, arrivals, strict=True))
            return
        rest = sum(soonest[job:])
        start = arrivals[job]
        while cost + rest + weights[job] * (start - arrivals[job]) < best:
            spent = cost + soonest[job] + weights[job] * (start - arrivals[job])
            for gpu_ids in sets[job]:
                for value in extend((*placed, (start, gpu_ids)), spent):
                    best = min(best, value)
                    yield value
            start += 1

    for _ in extend((), 0.0):
        pass
    return best


def slot_ends(problem: GpuSharing, placed: Sequence[Placed]) -> list[int] | None:
    """Return the ends of jobs with starts and GPUs; None if a GPU has more jobs than allowed.

    Each slot lists the jobs on every GPU, and takes from the work of each job the units of its slowest worker.
    """
    left: dict[int, int] = dict(enumerate(problem.work_units.tolist()))
    ends, now = [0] * len(left), 0
    while left:
        rates: dict[int, int] = {}
        for gpu in range(problem.gpus):
            here = [j for j in left if placed[j][0] <= now and gpu in placed[j][1]]
            if len(here) > problem.jobs_per_gpu:
                return None
            for job in here:
                worker = min(int(problem.rate_units[job, other]) for other in here)
                rates[job] = min(rates.get(job, worker), worker)
        now += 1
        for job, units in rates.items():
            left[job] -= units
            if left[job] <= 0:
                ends[job] = now
                del left[job]
    return ends
