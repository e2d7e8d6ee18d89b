"""Themis as Gavel codes it: the worst finish-time fairness as small as possible, over the shares of time."""

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
    """A job at the last call."""

    steps_left: int
    batch_size: int
    isolated_s: float  # C_j
    isolated_rate: float


@dataclass(kw_only=True, eq=False)
class FinishTimeFairnessPolicy(SolvedShares):
    """Themis as Gavel codes it: min max over jobs of the finish time by these shares over that of 1/m of the cluster.

    The policy remembers, for each job, how long its steps so far would have taken in isolation, each at the isolated
    rate of the call before them (C_j); jobs come and go, and with them the size of 1/m of the cluster.

    Parameters
    ----------
    count_rescales : bool
        True, as the Shockwave artifact runs: the steps that a larger batch size takes off the rest of a job count as
        run (and those that a smaller one adds, as lost), so C_j grows by more than was run. False: steps to go are
        compared by their samples.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    Notes
    -----
    Narayanan et al., OSDI 2020, Section 4.2, after K. Mahajan et al., "Themis: Fair and Efficient GPU Cluster
    Scheduling", NSDI 2020; see `FinishTimeFairness` for the program. Themis's own filter and auction is the policy
    `themis-filter`.
    """

    count_rescales: bool = True
    name: str = field(default="themis", init=False)
    _last_calls: dict[str | int, _LastCall] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.count_rescales = as_flag("count_rescales", self.count_rescales)

    def isolated_elapsed_s(self, state: RoundState) -> Floats:
        """Return C_j of every job, shape (m,): 0 for those that come new."""
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
        """Return the program over the jobs present, by what the calls so far have seen."""
        return FinishTimeFairness(
            rates=usable_rates(state),
            gangs=state.gangs,
            gpus=state.gpus,
            steps=steps_to_go(state),
            elapsed_s=np.array([state.time_s - job.arrival_s for job in state.jobs]),
            # A rescale to a smaller batch size may take off more than there was.
            isolated_elapsed_s=np.maximum(0.0, self.isolated_elapsed_s(state)),
            isolated_rates=isolated_rates(state),
        )

    def decide(self, state: RoundState) -> Shares:
        """Return the shares whose worst finish-time fairness is least, and remember the progress of every job."""
        shares = super().decide(state)
        known = zip(state.jobs, self.isolated_elapsed_s(state), isolated_rates(state), strict=True)
        self._last_calls = {
            job.id: _LastCall(job.steps_left, job.batch_size, float(elapsed), float(rate))
            for job, elapsed, rate in known
        }
        return shares


def isolated_rates(state: RoundState) -> Floats:
    """Return the steps per second of each job on 1/m of the cluster, shape (m,)."""
    return np.asarray((usable_rates(state) * isolated_shares(state)).sum(axis=1))
