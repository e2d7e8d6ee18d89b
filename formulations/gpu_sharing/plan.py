"""SharingPlan and PairPlan: the delay, the end of each job, and a picture of the schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..arrays import Floats

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd


class SharedJobs(Protocol):
    """The members of a problem that its plans use; see `DelayProblem`."""

    @property
    def longest_s(self) -> float:
        """The longest useful delay."""

    def exact_ends(self, delay: Fraction) -> Sequence[Fraction]:
        """Return the ends of the running jobs, then that of the waiting job."""

    def breakpoints(self) -> Sequence[Fraction]:
        """Return the delays between which the objective is linear."""


@dataclass(frozen=True, eq=False)
class SharingPlan:
    """The start of a waiting job beside running ones.

    Attributes
    ----------
    problem : GroupSharing or PairSharing
    delay_s : float
        Start of the waiting job, in seconds from now.
    """

    problem: SharedJobs
    delay_s: float

    @cached_property
    def ends_s(self) -> Floats:
        """Ends of the running jobs, then that of the waiting job, shape (m + 1,), in seconds from now."""
        ends = np.array([float(end) for end in self.problem.exact_ends(max(Fraction(0), Fraction(self.delay_s)))])
        ends.setflags(write=False)
        return ends

    @property
    def share(self) -> bool:
        """Whether the waiting job starts before the last running job would end alone."""
        return self.delay_s < self.problem.longest_s

    @property
    def running_ends_s(self) -> Floats:
        """Ends of the running jobs, shape (m,)."""
        return self.ends_s[:-1]

    @property
    def waiting_end_s(self) -> float:
        """End of the waiting job."""
        return float(self.ends_s[-1])

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each job: its start and its end; the waiting job is the last."""
        import pandas as pd

        names = [*(f"running {i}" for i in range(len(self.ends_s) - 1)), "waiting"]
        starts = np.append(np.zeros(len(self.ends_s) - 1), self.delay_s)
        return pd.DataFrame({"start_s": starts, "end_s": self.ends_s}, index=pd.Index(names, name="job"))

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schedule as a picture (SVG), a line for each job; write it to `path` if given."""
        lines = [*(f"running {i}" for i in range(len(self.ends_s) - 1)), "waiting"]
        return _picture(lines, [self], path)

    def _repr_svg_(self) -> str:
        return self.to_svg()  # notebooks display it

    def __repr__(self) -> str:
        shared = f"start after {self.delay_s:.6g} s" if self.share else "one after the other"
        return f"<{type(self).__name__}: {shared}, ends {', '.join(f'{end:.6g}' for end in self.ends_s)} s>"


@dataclass(frozen=True, eq=False, repr=False)
class PairPlan(SharingPlan):
    """The start of a waiting job W beside a running job R; its picture shows the three schedules of a pair."""

    @property
    def running_end_s(self) -> float:
        """End of the running job."""
        return float(self.ends_s[0])

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schedules without a delay, after a delay, and one after the other (SVG).

        The schedule in the middle has the plan's delay if this is neither 0 nor the running job's time; otherwise the
        delay at which both jobs end together, or half the running job's time if there is none.
        """
        last, meet = self.problem.longest_s, float(self.problem.breakpoints()[1])
        inside = next((each for each in (self.delay_s, meet) if 0 < each < last), last / 2)
        plans = [PairPlan(self.problem, each) for each in (0.0, inside, last)]
        lines = [f"{name}: {job}" for name in ("at once", "delayed", "in turn") for job in "RW"]
        return _picture(lines, plans, path)


def _picture(lines: list[str], plans: list[Any], path: str | PathLike[str] | None) -> str:
    """Return bars of the schedules of plans, cut where a job starts or ends, one under the other."""
    from ..files import written
    from ..plotting.gantt import gantt

    bars = []
    top = 0
    for plan in plans:
        ends = plan.ends_s.tolist()
        cuts = sorted({plan.delay_s, *ends})
        for job, end in enumerate(ends):
            start = plan.delay_s if job == len(ends) - 1 else 0.0
            edges = [start, *(cut for cut in cuts if start < cut < end), end]
            bars += [(job, top + job, *edge) for edge in pairwise(edges)]
        top += len(ends)
    owner, line, start_s, end_s = (np.array(column) for column in zip(*bars, strict=True))
    text = gantt(owner=owner, line=line, start=start_s, end=end_s, lines=lines, axis="seconds")
    return written(text, path)
