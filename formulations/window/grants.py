"""GrantedRounds: the rounds granted to the jobs of a window, and quantities derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Indices
from .check import regimes_of
from .data import WindowData
from .tables import starts


@dataclass(frozen=True, eq=False)
class GrantedRounds:
    """Data of a :class:`~.plan.WindowPlan`, which describes the fields; all else is derived from them."""

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
        return np.asarray(self.window.gang_gpus @ self.grants)

    @cached_property
    def objective(self) -> float:
        """The window's objective, recomputed."""
        return self.window.tables.objective(self.grants, self.window.is_running, self.window.restart_penalty)
