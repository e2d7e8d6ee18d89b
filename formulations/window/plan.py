"""WindowPlan: the schedule of a window, and quantities derived from it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from ..files import write_text
from ..program.certificate import SolveCertificate
from .check import regimes_of
from .data import WindowData
from .page import render
from .tables import starts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class WindowPlan:
    """A schedule of N jobs over T rounds; all other quantities are derived from the window's data.

    Attributes
    ----------
    window : ScheduleWindow
    grants : ndarray of bool, shape (N, T)
        Whether the job holds all its GPUs in the round.
    """

    window: WindowData
    grants: NDArray[np.bool_]

    def __post_init__(self) -> None:
        grants = np.array(self.grants, dtype=np.bool_)
        grants.setflags(write=False)
        object.__setattr__(self, "grants", grants)

    @cached_property
    def regime_of(self) -> Indices:
        """Regime that runs, by index within the job, -1 where idle; shape (N, T)."""
        return regimes_of(self.window, self.grants)

    @cached_property
    def rounds_granted(self) -> Indices:
        """Number of rounds of each job (n_j), shape (N,)."""
        return np.asarray(self.grants.sum(axis=1))

    @cached_property
    def utilities(self) -> Floats:
        """Share of its epochs that each job has done after the window (UTIL_j), shape (N,)."""
        return self.window.tables.utility[np.arange(len(self.grants)), self.rounds_granted]

    @cached_property
    def remaining_s(self) -> Floats:
        """Isolated run time left after the window, in seconds, shape (N,)."""
        return self.window.tables.remaining[np.arange(len(self.grants)), self.rounds_granted] * self.window.round_s

    @cached_property
    def makespan_bound_s(self) -> float:
        """Lower bound on the makespan of the remaining work (H, Eq. 10), in seconds."""
        return self.window.tables.makespan(self.rounds_granted) * self.window.round_s

    @cached_property
    def restarts(self) -> int:
        """Number of pairs of job and round in which the job runs and did not run in the round before."""
        return int(starts(self.grants, self.window.is_running).sum())

    @cached_property
    def gpus_in_use(self) -> Indices:
        """GPUs held in each round, shape (T,)."""
        return np.asarray(self.window.gangs @ self.grants)

    @cached_property
    def objective(self) -> float:
        """The window's objective, recomputed."""
        return self.window.tables.objective(self.grants, self.window.is_running, self.window.restart_penalty)

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
                "gpus": self.window.gangs,
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
        page = render(self, certificate)
        if path is not None:
            write_text(path, page)
        return page
