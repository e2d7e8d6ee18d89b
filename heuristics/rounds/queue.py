"""Policies that keep a queue and start whoever fits, in order: FIFO and LAS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...formulations.checks import as_flag
from ...simulation.rounds.policy import RoundJob, RoundState, Schedule


def fit_in_order(state: RoundState, order: Iterable[RoundJob], backfill: bool = True) -> dict[str | int, int]:
    """Return who runs in the next round: each job in order, if its gang fits what is left.

    Each takes the GPU type on which it is fastest among those with room, the earlier of equals. Without backfill the
    first job that finds no room ends the round.
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


@dataclass(kw_only=True, eq=False)
class FifoPolicy:
    """First come, first served: every round the jobs run in the order in which they arrived.

    Parameters
    ----------
    backfill : bool
        Whether later jobs may run while an earlier one finds no room. They make way as soon as it does, so an early
        job waits for GPUs that earlier ones hold and for nothing else. False is the strict queue, which leaves GPUs
        idle behind a wide job.

    Notes
    -----
    Nothing is solved. Jobs that arrive together go by the order of the trace.
    """

    backfill: bool = True
    name: str = field(default="fifo", init=False)

    def __post_init__(self) -> None:
        self.backfill = as_flag("backfill", self.backfill)

    def due(self, state: RoundState) -> bool:
        """Return True: every round is decided anew."""
        return True

    def decide(self, state: RoundState) -> Schedule:
        """Return who runs in the next round."""
        order = sorted(state.jobs, key=lambda job: (job.arrival_s, job.trace_index))
        return Schedule([fit_in_order(state, order, self.backfill)])


@dataclass(kw_only=True, eq=False)
class LasPolicy:
    """Least attained service first, every round anew.

    Parameters
    ----------
    two_dimensional : bool
        Whether service is counted in GPU-seconds, time by GPUs held (Tiresias's two dimensions), or in seconds alone,
        in which a wide job is as cheap as a narrow one.

    Notes
    -----
    J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI 2019, Section 3.2, without its
    queues: service is compared as it is, so long jobs take turns and pay for restarts. Ties go to the job that is
    running, then by arrival and the order of the trace. Smaller jobs fill what a wide one leaves.
    """

    two_dimensional: bool = True
    name: str = field(default="las", init=False)

    def __post_init__(self) -> None:
        self.two_dimensional = as_flag("two_dimensional", self.two_dimensional)

    def due(self, state: RoundState) -> bool:
        """Return True: every round is decided anew."""
        return True

    def decide(self, state: RoundState) -> Schedule:
        """Return who runs in the next round."""

        def rank(job: RoundJob) -> tuple[float, bool, float, int]:
            service = job.attained_s * (job.gpus if self.two_dimensional else 1)
            return service, not job.running, job.arrival_s, job.trace_index

        return Schedule([fit_in_order(state, sorted(state.jobs, key=rank))])
