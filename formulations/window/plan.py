"""WindowPlan: the schedule of a window, and the packing of rounds per job into a work-conserving one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Indices
from ..files import written
from ..program.certificate import SolveCertificate
from .data import WindowData
from .grants import GrantedRounds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class WindowPlan(GrantedRounds):
    """A schedule of N jobs over T rounds; all other quantities are derived from the window's data.

    Attributes
    ----------
    window : ScheduleWindow
    grants : ndarray of bool, shape (N, T)
        Whether the job holds all its GPUs in the round.
    regime_of, rounds_granted, gpus_in_use : ndarray of int, shape (N, T), (N,) and (T,)
        Regime that runs, by index within the job, -1 where idle; rounds of each job (n_j); GPUs held in each round.
    utilities, remaining_s : ndarray of float, shape (N,)
        Share of its epochs that each job has done after the window (UTIL_j); isolated run time left then, in seconds.
    makespan_bound_s, objective : float
        Lower bound on the makespan of the remaining work (H, Eq. 10), in seconds; the window's objective.
    restarts : int
        Number of pairs of job and round in which the job runs and did not run in the round before.
    """

    def __repr__(self) -> str:
        jobs, rounds = self.grants.shape
        return (
            f"<WindowPlan: {int((self.rounds_granted > 0).sum())} of {jobs} jobs run in {rounds} rounds, "
            f"{self.gpus_in_use.mean() / self.window.gpus:.1%} of GPUs in use>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job: gang, rounds granted, utility, remaining seconds, and the regime of each round."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "gpus": self.window.gang_gpus,
                "rounds_granted": self.rounds_granted,
                "utility": self.utilities,
                "remaining_s": self.remaining_s,
            },
            index=pd.Index(self.window.ids, name="job"),
        )
        rounds = pd.DataFrame(
            self.regime_of, index=frame.index, columns=[f"round_{t}" for t in range(self.window.rounds)]
        )
        return pd.concat([frame, rounds], axis=1)

    def to_html(self, path: str | os.PathLike[str] | None = None, certificate: SolveCertificate | None = None) -> str:
        """Return the plan as one self-contained HTML page, and write it to `path` if given.

        Parameters
        ----------
        path : path-like, optional
        certificate : SolveCertificate, optional
            Certificate shown in the page's head: `Result.certificate` of the solve.
        """
        from .page import render

        return written(render(self, certificate), path)


def scheduled(window: WindowData, counts: Indices) -> WindowPlan:
    """Pack counts[j] rounds for each job into the window, then make the schedule work-conserving.

    Jobs with larger gangs come first, and then longer jobs; each gets its least loaded rounds. With a restart penalty,
    the result is the better of this schedule and one with a single block of rounds per job. A job may get fewer than
    counts[j] rounds if they cannot be packed, and more if GPUs would idle.
    """
    from . import kernels as window_kernels

    counts = np.minimum(counts, np.minimum(window.tables.needs, window.rounds))
    order = np.lexsort((-counts, -window.gang_gpus))
    plan = settled(window, window_kernels.pack(order, counts, window.gang_gpus, window.gpus, window.rounds))
    if not window.restart_penalty:
        return plan
    grants = window_kernels.pack_blocks(order, counts, window.gang_gpus, window.gpus, window.rounds, window.is_running)
    return max(settled(window, grants), plan, key=lambda plan: plan.objective)


def settled(window: WindowData, grants: NDArray[np.bool_]) -> WindowPlan:
    """Return the schedule with idle GPUs filled, and granted rounds moved earlier, until work is conserved.

    Jobs with the largest gain per GPU come first. Without a restart penalty no job gets fewer rounds, so the objective
    does not fall.
    """
    from . import kernels as window_kernels

    tables = window.tables
    grants = np.array(grants, dtype=np.bool_, order="C")
    counts = grants.sum(axis=1)
    rows = np.arange(len(counts))
    after = np.minimum(counts + 1, window.rounds)
    gain = tables.value[rows, after] - tables.value[rows, counts]
    gain += (
        tables.makespan_price * tables.branch_weights * (tables.remaining[rows, counts] - tables.remaining[rows, after])
    )
    order = np.argsort(-gain / window.gang_gpus, kind="stable")
    window_kernels.settle(grants, order, tables.needs, window.gang_gpus, window.gpus, window.is_running)
    return WindowPlan(window, grants)
