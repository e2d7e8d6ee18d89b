"""The moment at which the time limit of a solve ends."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from .options import Options


@dataclass(frozen=True)
class Deadline:
    """The end of a time limit, for a backend that checks the clock or passes the remaining time to another.

    Attributes
    ----------
    given : Options
        The options that hold the time limit.
    at : float
        End of the time limit on the clock of `time.perf_counter`; infinite without a limit.
    """

    given: Options
    at: float

    @classmethod
    def of(cls, options: Options) -> Deadline:
        """Return the deadline of a time limit that begins now."""
        return cls(options, math.inf if options.time_limit is None else time.perf_counter() + options.time_limit)

    @property
    def passed(self) -> bool:
        """Whether the time limit has passed."""
        return time.perf_counter() >= self.at

    def left(self) -> float | None:
        """Return the seconds left, at least 0; None without a limit."""
        return None if self.given.time_limit is None else max(0.0, self.at - time.perf_counter())

    def options(self) -> Options:
        """Return the options with the time left as their limit."""
        return self.given.with_time(self.left())
