"""Runs of engines step by step, with Ctrl-C turned into what had been found by then."""

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
    """Ctrl-C during a simulation; a KeyboardInterrupt that carries what had come to its end.

    Attributes
    ----------
    tables : mapping of str to pandas.DataFrame
        Those of the result so far; `jobs` holds only the jobs that had ended, whose fairness counts all jobs of the
        trace.
    total : int
        Jobs of the trace.
    """

    def __init__(self, so_far: SimulationResult) -> None:
        # The interrupt may have come within a step: what ended in it does not count.
        end_s = so_far.levels.end_s.max(initial=-np.inf)
        ended = (so_far.ended_by != "") & (so_far.end_s <= end_s)
        arrival_s = so_far.trace.arrival_s
        whole = replace(
            so_far,
            start_s=np.where(ended, so_far.start_s, arrival_s),
            end_s=np.where(ended, so_far.end_s, arrival_s),
        )
        self.tables: Mapping[str, pd.DataFrame] = {**whole.tables(), "jobs": whole.jobs[ended].reset_index(drop=True)}
        self.total = len(ended)
        steps = len(so_far.levels)
        super().__init__(f"{ended.sum()} of {self.total} jobs had ended after {steps} {so_far.step_name}s")

    @property
    def jobs(self) -> pd.DataFrame:
        """The jobs that had ended."""
        return self.tables["jobs"]

    @property
    def solves(self) -> pd.DataFrame:
        """The calls of the policy so far."""
        return self.tables["solves"]

    @property
    def rounds(self) -> pd.DataFrame:
        """The rounds that had ended, of an engine that has rounds."""
        return self.tables["rounds"]


class EngineRun(Protocol[_Result]):
    """One simulation as it goes.

    Attributes
    ----------
    steps : int
        Steps played.
    ended : int
        Jobs that have ended.
    """

    steps: int
    ended: int

    @property
    def time_s(self) -> float:
        """The simulated time now."""
        ...

    def step(self) -> bool:
        """Play one step; return False if all jobs had ended before it."""
        ...

    def result(self) -> _Result:
        """Return what has happened so far."""
        ...


def play(run: EngineRun[_Result], jobs: int, on_step: OnStep | None = None) -> _Result:
    """Play a run to its end.

    Parameters
    ----------
    run : EngineRun
    jobs : int
        Jobs of the trace.
    on_step : callable, optional
        Called at the end of each step with (step, time_s, jobs ended, jobs in all).

    Raises
    ------
    SimulationInterrupted
        On Ctrl-C.
    """
    try:
        while run.step():
            if on_step is not None:
                on_step(run.steps - 1, run.time_s, run.ended, jobs)
    except KeyboardInterrupt:
        raise SimulationInterrupted(run.result()) from None
    return run.result()
