"""The answer of a matching of jobs to workers: who runs where, in which order, and who runs now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Indices
from ..checks import as_integers, same_length

if TYPE_CHECKING:
    import pandas as pd

    from .allox import AlloxMatching


@dataclass(frozen=True, eq=False)
class AlloxPlan:
    """Which type of worker runs each job, and in which order.

    Attributes
    ----------
    problem : AlloxMatching
    type_of : ndarray of int, shape (N,)
    prices : ndarray of float, shape (K, D), optional
        Of the slots: what one more worker's k-th slot from last would save, k = 1..D; they prove the bound.
    """

    problem: AlloxMatching
    type_of: Indices
    prices: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "type_of", as_integers("type_of", self.type_of))

    @cached_property
    def _order(self) -> tuple[Indices, Indices]:
        return self.problem.order(self.type_of)

    @property
    def depth(self) -> Indices:
        """Which from last each job is on its worker (k, from 1), shape (N,)."""
        return self._order[0]

    @property
    def worker(self) -> Indices:
        """Which worker of its type runs each job, from 0, shape (N,)."""
        return self._order[1]

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Whether the job is the first on its worker: it gets the worker now, shape (N,)."""
        queue = np.zeros(len(self.type_of), dtype=np.int64)
        for kind, workers in enumerate(self.problem.workers_of_type):
            mine = self.type_of == kind
            queue[mine] = np.bincount(self.worker[mine], minlength=max(1, int(workers)))[self.worker[mine]]
        return np.asarray(self.depth == queue)

    @cached_property
    def completion_s(self) -> Floats:
        """Seconds from now until each job ends, shape (N,)."""
        times = self.problem.times_s[np.arange(len(self.type_of)), self.type_of]
        at = np.zeros(len(times))
        order = np.lexsort((-self.depth, self.worker, self.type_of))
        clock, last = 0.0, (-1, -1)
        for job in order.tolist():
            here = (int(self.type_of[job]), int(self.worker[job]))
            clock = (clock if here == last else 0.0) + float(times[job])
            at[job], last = clock, here
        return at

    def shares(self, gangs: ArrayLike | None = None) -> Floats:
        """Return the share of time that each job gets now on each type, shape (N, K): 1 / g if it is first, else 0."""
        widths = np.ones(len(self.type_of), np.int64) if gangs is None else as_integers("gangs", gangs, minimum=1)
        same_length(gangs=widths, type_of=self.type_of)
        shares = np.zeros(self.problem.rates.shape)
        now = np.flatnonzero(self.first)
        shares[now, self.type_of[now]] = 1.0 / widths[now]
        return shares

    def to_frame(self) -> pd.DataFrame:
        """Return one row per job: type, worker, k-th from last, whether it runs now, and when it ends."""
        import pandas as pd

        return pd.DataFrame(
            {
                "type": self.type_of,
                "worker": self.worker,
                "from_last": self.depth,
                "runs_now": self.first,
                "ends_s": self.completion_s,
            },
            index=pd.Index(range(len(self.type_of)), name="job"),
        )

    def __repr__(self) -> str:
        return f"<AlloxPlan: {len(self.type_of)} jobs, {int(self.first.sum())} of them run now>"
