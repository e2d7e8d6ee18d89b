"""AlloX: matching of jobs to single GPUs with the least average completion time, without preemption."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...formulations.arrays import Indices
from ...formulations.assignment.allox import AlloxMatching
from ...formulations.checks import as_flag, as_real, store_checked
from ...simulation.rounds.policy import Evidence, RoundJob, RoundState, Shares
from ...solvers.solve import solve
from .equal_share import usable_rates
from .solved_shares import SolvedShares, steps_to_go


@dataclass(kw_only=True, eq=False)
class AlloxPolicy(SolvedShares):
    """AlloX: a matching of jobs to (GPU, k-th from last) assigns the free GPUs.

    A job keeps its GPU until it ends. At each call the m jobs without a GPU are ordered by arrival; the earliest
    ``max(int(alpha m), free GPUs)`` of them are matched to the free GPUs, and the first job on each GPU gets it. The
    other jobs wait for the next call, which solves a new matching.

    Parameters
    ----------
    alpha : float
        Share of the waiting jobs that are matched, in [0, 1]. Small values keep the order of arrival, which prevents
        starvation; 1 minimises the average completion time of all jobs.
    keep_wide : bool
        Whether a job of several GPUs keeps its assignment like a job of one GPU; see Notes.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    Notes
    -----
    T. N. Le et al., "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020, Section 4; the default alpha is that
    of the Shockwave artifact. AlloX has no gangs. The rule for wide jobs is the artifact's: a job of g GPUs is matched
    as if it needed one, with its speed on all g, and gets the share 1/g of the time, which equals one GPU's time. It
    is matched again at each call, which may assign its GPU to another job although it keeps its share; `keep_wide`
    prevents this.
    """

    alpha: float = 0.2
    keep_wide: bool = False
    name: str = field(default="allox", init=False)
    # GPU type of every job that holds a GPU.
    _given: dict[str | int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        store_checked(self, as_real, "alpha", minimum=0.0, maximum=1.0)
        store_checked(self, as_flag, "keep_wide")

    def decide(self, state: RoundState) -> Shares:
        """Return the share 1 / g for every job with a GPU, on that GPU's type, and 0 for waiting jobs."""
        # A job releases its GPU when it ends, or changes to a batch size that the type cannot run.
        can_run = dict(zip((job.id for job in state.jobs), usable_rates(state) > 0, strict=True))
        self._given = {
            name: gpu_type for name, gpu_type in self._given.items() if name in can_run and can_run[name][gpu_type]
        }
        evidence, matched = Evidence(), self.matched(state)
        if matched:
            result = solve(self.problem(state), self.backend, rel_gap=self.rel_gap, time_limit=self.time_limit)
            evidence = Evidence.of(result)
            if result.plan is not None:
                for at in np.flatnonzero(result.plan.first):
                    self._given[state.jobs[matched[at]].id] = int(result.plan.type_of[at])
        shares = np.zeros((len(state.jobs), len(state.gpus)))
        for index, job in enumerate(state.jobs):
            if job.id in self._given:
                shares[index, self._given[job.id]] = 1.0 / job.gpus
        return Shares(shares, evidence)

    def problem(self, state: RoundState) -> AlloxMatching:
        """Return the matching of the selected waiting jobs to the free GPUs."""
        matched = self.matched(state)
        return AlloxMatching(
            steps=steps_to_go(state)[matched],
            rates=usable_rates(state)[matched],
            waited_s=np.array([state.time_s - state.jobs[index].arrival_s for index in matched]),
            workers_of_type=self._free(state),
        )

    def matched(self, state: RoundState) -> list[int]:
        """Return the indices in `state.jobs` of the jobs to match, in order of arrival."""
        free = self._free(state)
        able = np.any((usable_rates(state) > 0) & (free > 0), axis=1).tolist()
        waiting = [index for index, job in enumerate(state.jobs) if not self._keeps(job)]
        waiting.sort(key=lambda index: (state.jobs[index].arrival_s, state.jobs[index].trace_index))
        count = max(int(self.alpha * len(waiting)), int(free.sum()))
        return [index for index in waiting if able[index]][:count]

    def _keeps(self, job: RoundJob) -> bool:
        return job.id in self._given and (self.keep_wide or job.gpus == 1)

    def _free(self, state: RoundState) -> Indices:
        kept = [self._given[job.id] for job in state.jobs if self._keeps(job)]
        return state.gpus - np.bincount(np.array(kept, dtype=np.int64), minlength=len(state.gpus))
