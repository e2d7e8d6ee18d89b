"""Compiled loop of the matching of jobs to slots: one shortest augmenting path for each job."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.compiled import compiled


@compiled()
def add_jobs(
    times: Any, jobs: Any, types: Any, ranks: Any, sizes: Any, slot_of: Any, members: Any, counts: Any, worth: Any,
    discount: Any,
) -> None:  # fmt: skip
    """Add `jobs` to the matching, each at the least growth of its cost, and keep the dual prices optimal.

    Slot s is k-th from last (``ranks[s]``) on any of ``sizes[s]`` workers of one type; job j costs ``ranks[s] *
    times[j, types[s]]`` there. ``members[s, :counts[s]]`` are its jobs. No pair costs less than ``worth[j] +
    discount[s]``, matched pairs cost just that, and discounts are 0 in slots with free places.
    """
    slots = len(types)
    distance, reached_by, done = np.empty(slots), np.empty(slots, np.int64), np.empty(slots, np.bool_)
    scan = np.empty(members.shape[1], np.int64)
    for i in range(len(jobs)):
        job = jobs[i]
        distance[:] = np.inf
        done[:] = False
        scan[0], scanned, here, end = job, 1, 0.0, -1
        while end < 0:
            for n in range(scanned):
                row = scan[n]
                base = here - worth[row]
                for s in range(slots):
                    if not done[s]:
                        away = base + ranks[s] * times[row, types[s]] - discount[s]
                        if away < distance[s]:
                            distance[s], reached_by[s] = away, row
            nearest, best = -1, np.inf
            for s in range(slots):
                if not done[s] and distance[s] < best:
                    nearest, best = s, distance[s]
            if nearest < 0:
                return  # no free slot: the queues are too short
            here = best
            if counts[nearest] < sizes[nearest]:
                end = nearest
            else:
                done[nearest] = True
                scanned = counts[nearest]
                for n in range(scanned):
                    scan[n] = members[nearest, n]
        worth[job] += here
        for s in range(slots):
            if done[s]:
                rise = here - distance[s]
                discount[s] -= rise
                for n in range(counts[s]):
                    worth[members[s, n]] += rise
        s = end
        while True:
            row = reached_by[s]
            left = slot_of[row]
            slot_of[row] = s
            if left < 0:
                members[s, counts[s]] = row
                counts[s] += 1
                break
            for n in range(counts[left]):
                if members[left, n] == row:
                    counts[left] -= 1
                    members[left, n] = members[left, counts[left]]
                    break
            members[s, counts[s]] = row
            counts[s] += 1
            s = left
