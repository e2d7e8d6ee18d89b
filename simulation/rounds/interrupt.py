"""A simulation that Ctrl-C ended: what it had found by then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..results.result import SimulationResult


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation; a KeyboardInterrupt that carries what had come to its end.

    Attributes
    ----------
    jobs : pandas.DataFrame
        `SimulationResult.jobs`, of the jobs that had ended; their fairness counts all jobs of the trace.
    rounds, solves : pandas.DataFrame
        Of the rounds that had ended, and of the policy's calls so far.
    total : int
        Jobs of the trace.
    """

    def __init__(self, so_far: SimulationResult) -> None:
        # The interrupt may have come within a round: its runs do not count.
        end_s = max((row[2] for row in so_far.round_rows), default=-np.inf)
        ended = (so_far.ended_by != "") & (so_far.end_s <= end_s)
        arrival_s = so_far.trace.arrival_s
        whole = replace(
            so_far,
            start_s=np.where(ended, so_far.start_s, arrival_s),
            end_s=np.where(ended, so_far.end_s, arrival_s),
        )
        self.jobs = whole.jobs[ended].reset_index(drop=True)
        self.rounds, self.solves = whole.rounds, whole.solves
        self.total = len(ended)
        super().__init__(f"{len(self.jobs)} of {self.total} jobs had ended after {len(self.rounds)} rounds")
