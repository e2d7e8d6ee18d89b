"""WindowPlan: the schedule of a window."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..files import written
from ..program.certificate import SolveCertificate
from .grants import GrantedRounds
from .page import render

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
        return written(render(self, certificate), path)
