"""The MILP of GpuSharing: steps from waiting to running to done, and the GPUs that each pair of jobs shares."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..arrays import Floats, Indices
from ..errors import InvalidInput
from ..program.builder import ProgramBuilder
from ..program.model import Program
from .slot_jobs import UNITS, SlotJobs
from .slot_schedule import SlotSchedule

# Limit of the columns of a program: no solver would end on a larger one.
MOST_COLUMNS = 1_000_000


@dataclass(frozen=True, eq=False)
class SharingLevels:
    """Numbers of GPUs that a pair shares, in levels: a pair on level 0 shares `gpus[0]`, on level 1 `gpus[1]` more.

    Attributes
    ----------
    first, second, gpus : ndarray of int, shape (L,)
        The pair of each level, and the GPUs that the level adds.
    opens : ndarray of bool, shape (L,)
        Whether it is the first level of its pair.
    forced : ndarray of bool, shape (L,)
        Whether the pair must share so many GPUs if it runs at the same time: together it has more than the cluster.
    """

    first: Indices
    second: Indices
    gpus: Indices
    opens: np.ndarray
    forced: np.ndarray

    @classmethod
    def of(cls, jobs: SlotJobs) -> SharingLevels:
        """Return the levels of all pairs."""
        rows = []
        gang = jobs.gang_gpus.tolist()
        for j, k in combinations(range(len(gang)), 2):
            excess = gang[j] + gang[k] - jobs.gpus
            least, most = max(1, excess), min(gang[j], gang[k])
            rows.append((j, k, least, 1, excess > 0))
            rows += [(j, k, 1, 0, 0)] * (most - least)
        table = np.array(rows if jobs.jobs_per_gpu == 2 else [], dtype=np.int64).reshape(-1, 5).T
        return cls(table[0], table[1], table[2], table[3] > 0, table[4] > 0)


class SlotProgram:
    """The columns of the program of some jobs, within time windows; see GpuSharing for the model.

    Parameters
    ----------
    jobs : SlotJobs
    latest : ndarray of int, shape (N,)
        Each job ends no later than this slot.
    """

    def __init__(self, jobs: SlotJobs, latest: Indices) -> None:
        self.jobs, self.latest, self.slots = jobs, latest, int(latest.max())
        self.levels = SharingLevels.of(jobs)
        self.steps = (len(latest), self.slots)
        self.beside = (len(self.levels.gpus), self.slots)
        columns = 3 * len(latest) * self.slots + len(self.levels.gpus) * (self.slots + 1)
        if columns > MOST_COLUMNS:
            raise InvalidInput("work_slots", f"{self.slots} slots", f"the program would have {columns} columns")

    def program(self) -> Program:
        """Return the program."""
        jobs, levels, (count, slots) = self.jobs, self.levels, self.steps
        least, arrivals, gang = jobs.least_slots[:, None], jobs.arrivals[:, None], jobs.gang_gpus.astype(float)
        t, job, latest = np.arange(slots), np.arange(count), self.latest[:, None]
        build = ProgramBuilder(sense="min")
        started = build.add_columns("started", self.steps, lower=t >= latest - least, upper=t >= arrivals, integer=True)
        done = build.add_columns("done", self.steps, lower=t >= latest, upper=t >= arrivals + least, integer=True)
        share = build.add_columns("share", levels.gpus.shape, lower=levels.forced, upper=1.0, integer=True)
        together = build.add_columns("together", self.beside, upper=1.0)
        slowed = build.add_columns("slowed", self.steps, upper=1.0)

        def running(rows: Any, who: Any, factor: Any) -> list[tuple[Any, Any, Any]]:
            return [(rows, started[who], factor), (rows, done[who], -np.asarray(factor))]

        later = np.arange(count * (slots - 1)).reshape(count, slots - 1)
        for name, step in (("starts_once", started), ("ends_once", done)):
            build.add_rows(name, later.shape, terms=[(later, step[:, 1:], 1.0), (later, step[:, :-1], -1.0)], lower=0)
        at = np.nonzero(t >= least)
        build.add_rows(
            "long_enough",
            at[0].shape,
            terms=[
                (np.arange(len(at[0])), done[at], 1.0),
                (np.arange(len(at[0])), started[at[0], at[1] - least[at[0], 0]], -1.0),
            ],
            upper=0,
        )
        cell, pair = np.arange(count * slots).reshape(self.steps), np.arange(together.size).reshape(self.beside)
        one, other = levels.first, levels.second
        for name, who in (("first_runs", one), ("second_runs", other)):
            build.add_rows(name, self.beside, terms=[(pair, together, 1.0), *running(pair, who, -1.0)], upper=0)
        build.add_rows("shares", self.beside, terms=[(pair, together, 1.0), (pair, share[:, None], -1.0)], upper=0)
        both = [*running(pair, one, -1.0), *running(pair, other, -1.0), (pair, share[:, None], -1.0)]
        build.add_rows("both_run", self.beside, terms=[(pair, together, 1.0), *both], lower=-2)
        more = np.flatnonzero(~levels.opens)
        row = np.arange(len(more))
        build.add_rows("levels", row.shape, terms=[(row, share[more], 1.0), (row, share[more - 1], -1.0)], upper=0)
        opens = np.flatnonzero(levels.opens)
        pair = np.arange(len(opens) * slots).reshape(-1, slots)
        for name, slow, by in (("first_slowed", one[opens], other[opens]), ("second_slowed", other[opens], one[opens])):
            lost = 1 - jobs.rate_units[slow, by][:, None] / UNITS
            build.add_rows(name, pair.shape, terms=[(pair, together[opens], lost), (pair, slowed[slow], -1.0)], upper=0)
        gpus = levels.gpus[:, None].astype(float)
        build.add_rows("gpus", t.shape, terms=[*running(t, job, gang[:, None]), (t, together, -gpus)], upper=jobs.gpus)
        own = [(who[:, None] * slots + t, together, gpus) for who in (one, other)]
        build.add_rows("gang", self.steps, terms=[*own, *running(cell, job, -gang[:, None])], upper=0)
        # Half a unit less than the work: progress is in whole units, and solvers have tolerances.
        need = (jobs.work_units - 0.5) / UNITS
        build.add_rows(
            "work", job.shape, terms=[*running(job[:, None], job, 1.0), (job[:, None], slowed, -1.0)], lower=need
        )
        build.set_objective(
            [(done, -jobs.job_weights[:, None])], offset=float(jobs.job_weights @ (slots - jobs.arrivals))
        )
        return build.program()

    def decode(self, values: Floats) -> SlotSchedule:
        """Turn column values into a schedule: the jobs take their GPUs in the order of their starts.

        A GPU that a job shares with a running one is any of those that only the latter holds; the rest are free ones.
        """
        jobs, (count, slots) = self.jobs, self.steps
        size = count * slots
        whole = np.rint(values[: 2 * size + len(self.levels.gpus)]).astype(np.int64)
        start = slots - whole[:size].reshape(self.steps).sum(axis=1)
        end = slots - whole[size : 2 * size].reshape(self.steps).sum(axis=1)
        shared = np.zeros((count, count), dtype=np.int64)
        np.add.at(shared, (self.levels.first, self.levels.second), self.levels.gpus * whole[2 * size :])
        shared += shared.T
        gpu_ids: list[tuple[int, ...]] = [()] * count
        placed: list[int] = []
        for job in np.argsort(start, kind="stable").tolist():
            running = [k for k in placed if end[k] > start[job]]
            held = [gpu for k in running for gpu in gpu_ids[k]]
            taken: list[int] = []
            for k in running:
                alone = [gpu for gpu in gpu_ids[k] if held.count(gpu) == 1]
                taken += alone[: shared[job, k]]
            free = [gpu for gpu in range(jobs.gpus) if gpu not in held]
            gpu_ids[job] = tuple((taken + free)[: jobs.gang_gpus[job]])
            placed.append(job)
        return SlotSchedule.of_starts(jobs, start, gpu_ids)

    def encode(self, plan: SlotSchedule) -> Floats:
        """Turn a schedule into column values; nan if it ends later than the windows allow."""
        jobs, levels, t = self.jobs, self.levels, np.arange(self.slots)
        if (plan.end > self.latest).any():
            return np.full(3 * self.steps[0] * self.slots + len(levels.gpus) * (self.slots + 1), np.nan)
        held = [set(ids) for ids in plan.gpu_ids]
        pairs = zip(levels.first.tolist(), levels.second.tolist(), strict=True)
        common = np.array([len(held[j] & held[k]) for j, k in pairs], dtype=np.int64)
        started, done = t >= plan.start[:, None], t >= plan.end[:, None]
        runs = started & ~done
        # GPUs of the earlier levels of the pair, then those of this level.
        before = np.cumsum(levels.gpus) - levels.gpus
        before -= np.repeat(before[levels.opens], np.diff(np.append(np.flatnonzero(levels.opens), len(before))))
        meet = runs[levels.first] & runs[levels.second]
        share = (common >= before + levels.gpus) & meet.any(axis=1) | levels.forced
        together = meet & share[:, None]
        slowed = np.zeros(self.steps)
        for i in np.flatnonzero(levels.opens).tolist():
            j, k = int(levels.first[i]), int(levels.second[i])
            for slow, by in ((j, k), (k, j)):
                lost = 1 - jobs.rate_units[slow, by] / UNITS
                slowed[slow] = np.maximum(slowed[slow], lost * together[i])
        parts = (started, done, share, together, slowed)
        return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])
