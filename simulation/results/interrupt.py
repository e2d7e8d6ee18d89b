"""Step-by-step execution of engines; Ctrl-C raises an exception with the partial result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from .result import SimulationResult

if TYPE_CHECKING:
    import pandas as pd

_Result = TypeVar("_Result", bound=SimulationResult, covariant=True)

#: on_step(step, time_s, jobs ended, jobs in all)
OnStep = Callable[[int, float, int, int], None]


class SimulationInterrupted(KeyboardInterrupt):
    """Ctrl-C during a simulation: a KeyboardInterrupt with the results so far.

    Attributes
    ----------
    tables : mapping of str to pandas.DataFrame
        Tables of the result so far; `jobs` holds only the jobs that had ended. Their fairness counts all jobs of the
        trace.
    total : int
        Number of jobs of the trace.
    """

    def __init__(self, so_far: SimulationResult) -> None:
        # The interrupt may have come within a step: jobs that ended in it do not count.
        end_s = so_far.levels.end_s.max(initial=-np.inf)
        ended = (so_far.ended_by != "") & (so_far.end_s <= end_s)
        arrival_s = so_far.trace.arrival_s
        whole = replace(
            so_far, start_s=np.where(ended, so_far.start_s, arrival_s), end_s=np.where(ended, so_far.end_s, arrival_s)
        )
        self.tables: Mapping[str, pd.DataFrame] = {**whole.tables(), "jobs": whole.jobs[ended].reset_index(drop=True)}
        self.total = len(ended)
        steps = len(so_far.levels)
        super().__init__(f"{ended.sum()} of {self.total} jobs had ended after {steps} {so_far.step_name}s")

    @property
    def jobs(self) -> pd.DataFrame:
        """Jobs that had ended."""
        return self.tables["jobs"]

    @property
    def solves(self) -> pd.DataFrame:
        """Calls of the policy so far."""
        return self.tables["solves"]

    @property
    def rounds(self) -> pd.DataFrame:
        """Rounds that had ended, for an engine with rounds."""
        return self.tables["rounds"]


class EngineRun(Protocol[_Result]):
    """Simulation in progress, with the numbers of steps simulated and of jobs that have ended."""

    steps: int
    ended: int

    @property
    def time_s(self) -> float:
        """Current simulated time."""
        ...

    def step(self) -> bool:
        """Simulate one step; return False if all jobs had ended before it."""
        ...

    def result(self) -> _Result:
        """Return the result so far."""
        ...


def play(run: EngineRun[_Result], jobs: int, on_step: OnStep | None = None) -> _Result:
    """Run a simulation of so many jobs to its end; SimulationInterrupted on Ctrl-C.

    `on_step` is called at the end of each step with (step, time_s, jobs ended, jobs in all).
    """
    try:
        while run.step():
            if on_step is not None:
                on_step(run.steps - 1, run.time_s, run.ended, jobs)
    except KeyboardInterrupt:
        raise SimulationInterrupted(run.result()) from None
    return run.result()
