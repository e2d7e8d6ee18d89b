"""Selection of the jobs of a round from shares of time, by Gavel's priorities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...formulations.arrays import Floats, Indices
from .job import RoundProgress
from .rules import RoundRules


class TimeSharing:
    """Shares of time granted to each job and the time received since, by GPU type.

    Notes
    -----
    Let r be the seconds that a job has run on a type since the shares x were set, and R the seconds of all jobs there;
    every job starts at r = D/2. Its priority on the type is x/(r/R), and 0 where x is 0. Pairs of job and type are
    ranked by (priority, deficit, x), all descending; ties go by type, then by arrival, then by id. In that order each
    job takes its gang if the type has enough GPUs left. Jobs of priority 0 are included, so that no GPU idles that
    such a job could use. Jobs that arrived after the shares were set are excluded unless `RoundRules.backfill_new` is
    set. The deficit is the sum over earlier shares of the time granted less the time received.
    """

    def __init__(self, jobs: int, gpu_types: int, rules: RoundRules) -> None:
        self._first_s = rules.round_s / 2.0
        self._backfill_new = rules.backfill_new
        self._shares = np.zeros((jobs, gpu_types))
        self._received_s = np.full((jobs, gpu_types), self._first_s)
        self._deficit_s = np.zeros((jobs, gpu_types))
        self._has_shares = np.zeros(jobs, dtype=bool)
        self._total_s = np.zeros(gpu_types)
        self._since_s = 0.0

    def reset(self, orders: Indices, shares: Floats, time_s: float) -> None:
        """Set new shares, shape (m, K), of the jobs with these numbers."""
        granted_s = self._shares[orders] * (time_s - self._since_s)
        self._deficit_s[orders] += granted_s - (self._received_s[orders] - self._first_s)
        self._received_s[orders] = self._first_s
        self._total_s[:] = self._first_s * len(orders)
        self._shares[orders] = shares
        self._has_shares[:] = False
        self._has_shares[orders] = True
        self._since_s = time_s

    def record(self, order: int, gpu_type: int, run_s: float) -> None:
        """Add a run to the time received."""
        self._received_s[order, gpu_type] += run_s
        self._total_s[gpu_type] += run_s

    def choose(self, jobs: Sequence[RoundProgress], free: list[int]) -> list[tuple[RoundProgress, int]]:
        """Return (job, GPU type) of the jobs that run, in order of selection, with `free` GPUs of each type."""
        if not self._backfill_new:
            jobs = [job for job in jobs if self._has_shares[job.order]]
        orders = np.array([job.order for job in jobs], dtype=np.int64)
        shares = self._shares[orders].T.ravel()
        received = (self._received_s[orders] / np.where(self._total_s > 0.0, self._total_s, 1.0)).T.ravel()
        priority = np.where(shares > 0.0, shares / received, 0.0)
        rank = np.lexsort((-shares, -self._deficit_s[orders].T.ravel(), -priority))
        chosen: list[tuple[RoundProgress, int]] = []
        taken: set[int] = set()
        left = sum(free)
        free = list(free)
        for gpu_type, index in zip(*(part.tolist() for part in np.divmod(rank, max(1, len(jobs)))), strict=True):
            job = jobs[index]
            if job.gang_gpus > free[gpu_type] or job.order in taken or job.rates[gpu_type] <= 0.0:
                continue
            chosen.append((job, gpu_type))
            taken.add(job.order)
            free[gpu_type] -= job.gang_gpus
            left -= job.gang_gpus
            if not left:
                break
        return chosen
