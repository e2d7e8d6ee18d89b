"""Progress on standard error: a line on a long solve or search, or a bar of a count."""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ..formulations.search.objective import Objective
    from ..formulations.window.problem import ScheduleWindow
    from ..solvers.result import HistoryPoint

# Seconds before the display appears: most plans take milliseconds.
QUIET_S = 2.0


class LiveLine(ABC):
    """Context manager to pass to `solve` as `on_progress`; shows a line on a terminal once `quiet_s` have passed."""

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._quiet_s, self._start = quiet_s, 0.0
        self.latest: HistoryPoint | None = None
        self._live: Any = None
        self._done = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __call__(self, point: HistoryPoint) -> None:
        """Keep the latest report."""
        self.latest = point

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer = threading.Timer(self._quiet_s, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._done = True
            if self._live is not None:
                self._live.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.live import Live

        with self._lock:
            if self._done:
                return
            console = Console(stderr=True, highlight=False)
            self._live = Live(get_renderable=self.line, console=console, refresh_per_second=4, transient=True)
            self._live.start()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @abstractmethod
    def line(self) -> str:
        """Return the current line."""


class SolveProgress(LiveLine):
    """Incumbent, bound and gap of the solve of a window, which gives the scale of gaps."""

    def __init__(self, window: ScheduleWindow, quiet_s: float = QUIET_S) -> None:
        super().__init__(quiet_s)
        self._window = window

    def line(self) -> str:
        """Return the current line."""
        elapsed, point = f"solving  {self.elapsed_s:.1f} s", self.latest
        if point is None:
            return f"{elapsed}  no incumbent yet"
        if point.objective is None:
            return f"{elapsed}  no incumbent yet  bound {point.bound:.6g}"
        gap = abs(point.bound - point.objective) / self._window.gap_scale(point.objective)
        return f"{elapsed}  incumbent {point.objective:.6g}  bound {point.bound:.6g}  gap {gap:.2g}"


class SearchProgress(LiveLine):
    """Evaluations, hypervolume and the best score of each objective of a search, and its time beside the limit."""

    def __init__(
        self, objectives: Sequence[Objective], time_limit: float | None = None, quiet_s: float = QUIET_S
    ) -> None:
        super().__init__(quiet_s)
        self._objectives, self._time_limit = objectives, time_limit

    def line(self) -> str:
        """Return the current line."""
        limit = "" if self._time_limit is None else f" of {self._time_limit:g} s"
        elapsed, point = f"searching  {self.elapsed_s:.1f} s{limit}", self.latest
        if point is None:
            return elapsed
        evaluations = f"{elapsed}  {point.measures.get('evaluations', 0):,.0f} evaluations"
        if point.objective is None:
            return f"{evaluations}  nothing feasible yet"
        scores = [(each, point.measures[str(each)]) for each in self._objectives if str(each) in point.measures]
        best = ", ".join(f"{each} {each.text(score)}" for each, score in scores)
        return f"{evaluations}  hypervolume {point.objective:.4f}  best {best}"


class CountProgress:
    """Context manager whose calls (done, total) show as a bar on a terminal's standard error, `quiet_s` after entry.

    `what` names the things counted.
    """

    def __init__(self, what: str, quiet_s: float = 0.0) -> None:
        self._what, self._quiet_s, self._start = what, quiet_s, 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> CountProgress:
        self._start = time.perf_counter()
        self._show()
        return self

    def _show(self) -> None:
        due = time.perf_counter() - self._start >= self._quiet_s
        if self._bar is None and due and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
            self._task = self._bar.add_task(self._what, total=None)
            self._bar.start()

    def __call__(self, done: int, total: int) -> None:
        """Show how many are done."""
        self._show()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
