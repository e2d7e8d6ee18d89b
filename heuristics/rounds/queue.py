"""Queue policies, which start the jobs that fit in order: FIFO and LAS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...formulations.checks import as_flag, store_checked
from ...simulation.rounds.policy import RoundJob, RoundState, Schedule


def fit_in_order(state: RoundState, order: Iterable[RoundJob], backfill: bool = True) -> dict[str | int, int]:
    """Return the jobs of the next round with their GPU types: each job in order whose gang fits the GPUs left.

    Each job takes the fastest GPU type with enough free GPUs, the earlier of equal ones. Without backfill the first
    job that does not fit ends the selection.
    """
    free, runs = state.gpus.copy(), {}
    for job in order:
        if not free.any():
            break
        rates = np.where(free >= job.gpus, job.rates, 0.0)
        fastest = int(rates.argmax())
        if rates[fastest] > 0:
            runs[job.id] = fastest
            free[fastest] -= job.gpus
        elif not backfill:
            break
    return runs


class CalledEveryRound:
    """Base of policies that decide every round."""

    def due(self, state: RoundState) -> bool:
        """Return True."""
        return True


@dataclass(kw_only=True, eq=False)
class FifoPolicy(CalledEveryRound):
    """First come, first served: every round the jobs run in the order in which they arrived.

    Parameters
    ----------
    backfill : bool
        Whether later jobs may run while an earlier one does not fit. They are preempted as soon as it fits, so a job
        waits only for GPUs of earlier jobs. False is the strict queue, which leaves GPUs idle behind a wide job.

    Notes
    -----
    No program is solved. Jobs that arrive at the same time follow the order of the trace.
    """

    backfill: bool = True
    name: str = field(default="fifo", init=False)

    def __post_init__(self) -> None:
        store_checked(self, as_flag, "backfill")

    def decide(self, state: RoundState) -> Schedule:
        """Return a schedule of the next round."""
        order = sorted(state.jobs, key=lambda job: (job.arrival_s, job.trace_index))
        return Schedule([fit_in_order(state, order, self.backfill)])


@dataclass(kw_only=True, eq=False)
class LasPolicy(CalledEveryRound):
    """Least attained service first, decided every round.

    Parameters
    ----------
    two_dimensional : bool
        Whether service is counted in GPU-seconds, as in Tiresias's two dimensions, or in seconds, regardless of the
        gang.

    Notes
    -----
    J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, Section 3.2, without its
    queues: service is compared directly, so long jobs alternate and incur restarts. Ties go to the running job, then by
    arrival and the order of the trace. Smaller jobs use the GPUs that a wide one leaves.
    """

    two_dimensional: bool = True
    name: str = field(default="las", init=False)

    def __post_init__(self) -> None:
        store_checked(self, as_flag, "two_dimensional")

    def decide(self, state: RoundState) -> Schedule:
        """Return a schedule of the next round."""

        def rank(job: RoundJob) -> tuple[float, bool, float, int]:
            service = job.attained_s * (job.gpus if self.two_dimensional else 1)
            return service, not job.running, job.arrival_s, job.trace_index

        return Schedule([fit_in_order(state, sorted(state.jobs, key=rank))])
