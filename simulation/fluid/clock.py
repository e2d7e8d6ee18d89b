"""Clock of the fluid engine: seconds, or whole microseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Events at one time come in this order.
END, TIMER, ARRIVAL = range(3)

# A timer that runs out so soon before an end, or so close to an arrival, counts as at the same time.
NEAR_S = 1e-7


@dataclass(frozen=True)
class Clock:
    """Ticks of the engine's clock: seconds, or whole microseconds, which floats hold exactly for 285 years.

    Differences of whole microseconds are exact, so that the clock, not the size of the time, determines their error.
    """

    microseconds: bool

    @property
    def per_s(self) -> float:
        """Ticks in a second."""
        return 1e6 if self.microseconds else 1.0

    def ticks(self, seconds: float) -> float:
        """Return seconds as ticks, rounded to the nearest microsecond, ties to even, if the clock counts them."""
        if not self.microseconds or math.isinf(seconds):
            return seconds
        whole = math.trunc(seconds)
        # The fraction is exact, and multiplied alone: its rounding does not depend on the whole seconds.
        return whole * 1e6 + round((seconds - whole) * 1e6)

    def seconds(self, ticks: float) -> float:
        """Return ticks as seconds."""
        return ticks / self.per_s
