"""The record of a backend's progress reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from ..answers import as_number
from ..backend import Task
from ..options import Options
from ..result import HistoryPoint
from .checked_solution import CheckedSolution, better_solution, check_solution


class ProgressRecorder:
    """Records progress reports of a backend, and keeps the best incumbent that passes the check.

    The caller's `on_progress` is called from here; its exception is kept for `raise_callers_error`, as solvers suppress
    exceptions inside their callbacks.

    Attributes
    ----------
    best : CheckedSolution or None
        The best feasible incumbent.
    bound : float or None
        The last finite bound reported.
    """

    def __init__(
        self, task: Task, options: Options, started: float, on_progress: Callable[[HistoryPoint], None] | None
    ) -> None:
        self.task, self.options = task, options
        self.history: list[HistoryPoint] = []
        self.best: CheckedSolution | None = None
        self.bound: float | None = None
        self._started, self._on_progress = started, on_progress
        self._error: BaseException | None = None

    def __call__(self, objective: float | None, bound: float, incumbent: Any = None) -> None:
        """Process one report of a backend; see `Progress`."""
        objective, known = as_number(objective), as_number(bound)
        bound = self.task.problem.sign * math.inf if known is None or math.isnan(known) else known
        point = HistoryPoint(self.elapsed(), objective, bound)
        self.history.append(point)
        if math.isfinite(bound):
            self.bound = bound
        if incumbent is not None:
            found = check_solution(self.task, incumbent, self.options)
            if found.feasible:
                self.best = found if self.best is None else better_solution(self.task.problem, found, self.best)
        if self._on_progress is not None and self._error is None:
            try:
                self._on_progress(point)
            except BaseException as error:
                self._error = error
                raise

    def elapsed(self) -> float:
        """Return seconds since the solve began."""
        return time.perf_counter() - self._started

    def raise_callers_error(self) -> None:
        """Raise the exception of the caller's callback, if there is one."""
        if self._error is not None:
            raise self._error
