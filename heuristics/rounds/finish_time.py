"""Themis as implemented in Gavel: shares of time with the least worst finish-time fairness."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_flag
from ...formulations.shares.finish_time.problem import FinishTimeFairness
from ...simulation.rounds.policy import RoundState, Shares
from .equal_share import isolated_shares, usable_rates
from .solved_shares import SolvedShares, steps_to_go


@dataclass(frozen=True)
class _LastCall:
    """State of a job at the policy's last call."""

    steps_left: int
    batch_size: int
    isolated_s: float  # C_j
    isolated_rate: float


@dataclass(kw_only=True, eq=False)
class FinishTimeFairnessPolicy(SolvedShares):
    """Themis as implemented in Gavel: min max over jobs of the finish time with these shares over that on 1/m.

    The policy accumulates, for each job, the time that its past steps would have taken on an isolated share, each at
    the isolated rate of the preceding call (C_j), since 1/m of the cluster changes as jobs arrive and end.

    Parameters
    ----------
    count_rescales : bool
        Whether a change of the batch size counts as progress, as in the Shockwave artifact: steps that a larger batch
        size removes count as run (and steps that a smaller one adds, as lost), so C_j grows by more than the job ran.
        False compares remaining steps by their samples.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    Notes
    -----
    Narayanan et al., OSDI 2020, Section 4.2, after K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster
    Scheduling", NSDI 2020; see `FinishTimeFairness` for the program. The policy `themis-filter` is
    Themis's own filter and auction.
    """

    count_rescales: bool = True
    name: str = field(default="themis", init=False)
    _last_calls: dict[str | int, _LastCall] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.count_rescales = as_flag("count_rescales", self.count_rescales)

    def isolated_elapsed_s(self, state: RoundState) -> Floats:
        """Return C_j of every job in seconds, shape (m,); 0 for new jobs."""
        elapsed = np.zeros(len(state.jobs))
        for index, job in enumerate(state.jobs):
            if job.id in self._last_calls:
                last = self._last_calls[job.id]
                left = float(job.steps_left)
                if not self.count_rescales:
                    left *= job.batch_size / last.batch_size
                elapsed[index] = last.isolated_s + (last.steps_left - left) / last.isolated_rate
        return elapsed

    def problem(self, state: RoundState) -> FinishTimeFairness:
        """Return the program over the jobs present, with C_j from the earlier calls."""
        return FinishTimeFairness(
            rates=usable_rates(state),
            gang_gpus=state.gang_gpus,
            gpus=state.gpus,
            steps=steps_to_go(state),
            elapsed_s=np.array([state.time_s - job.arrival_s for job in state.jobs]),
            # A change to a smaller batch size may subtract more than C_j.
            isolated_elapsed_s=np.maximum(0.0, self.isolated_elapsed_s(state)),
            isolated_rates=isolated_rates(state),
        )

    def decide(self, state: RoundState) -> Shares:
        """Return the shares with the least worst finish-time fairness, and store the progress of every job."""
        shares = super().decide(state)
        progress = zip(state.jobs, self.isolated_elapsed_s(state), isolated_rates(state), strict=True)
        self._last_calls = {
            job.id: _LastCall(job.steps_left, job.batch_size, float(elapsed), float(rate))
            for job, elapsed, rate in progress
        }
        return shares


def isolated_rates(state: RoundState) -> Floats:
    """Return the steps per second of each job on 1/m of the cluster, shape (m,)."""
    return np.asarray((usable_rates(state) * isolated_shares(state)).sum(axis=1))
