"""The moment at which the time limit of a solve ends."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from .options import Options


@dataclass(frozen=True)
class Deadline:
    """The end of a time limit, for a backend that looks at the clock or hands the rest of its time to another.

    Attributes
    ----------
    given : Options
        Those whose time limit it is.
    at : float
        On the clock of `time.perf_counter`; infinite without a limit.
    """

    given: Options
    at: float

    @classmethod
    def of(cls, options: Options) -> Deadline:
        """Return the deadline of a time limit that begins now."""
        return cls(options, math.inf if options.time_limit is None else time.perf_counter() + options.time_limit)

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.at

    def left(self) -> float | None:
        """Return the seconds left, at least 0; None without a limit."""
        return None if self.given.time_limit is None else max(0.0, self.at - time.perf_counter())

    def options(self) -> Options:
        """Return the options with the time left as their limit."""
        return self.given.with_time(self.left())
