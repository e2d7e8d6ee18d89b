"""DelaySpace: the variables of a search for delay timers, and the timers that they state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Floats
from ..errors import InvalidInput
from .delay_timers import DelayTimers, TimerPair
from .objective import Variable

#: Names of spaces.
SPACES = ("by_demand", "shared")
_HOUR_S = 3600.0
# The timer in the middle of the scale, and the one beyond which a job never accepts a wider placement.
_MIDDLE_S, _LONGEST_S = 12 * _HOUR_S, 100 * 24 * _HOUR_S


def timer_of(place: float) -> float:
    """Return the timer at a place of the scale from 0 to 1, in whole seconds: ``12 h (x / (1 - x))^2``.

    The scale is that of square roots, bent so that it ends: 1 h is at .22, 12 h at .5, 24 h at .59 and 7 days at .79. A
    timer of more than 100 days, from .93 on, is infinite.
    """
    timer_s = math.inf if place >= 1.0 else _MIDDLE_S * (place / (1.0 - place)) ** 2
    return float(round(timer_s)) if timer_s <= _LONGEST_S else math.inf


def place_of(timer_s: float) -> float:
    """Return the place of a timer on the scale; the inverse of `timer_of`, to the second."""
    root = math.sqrt(timer_s / _MIDDLE_S)
    return root / (1.0 + root) if timer_s <= _LONGEST_S else 1.0


#: Policies of Dally as timers: the ends of the scale, and the timers that the paper sets by hand.
STARTS: Mapping[str, TimerPair] = {
    "nowait": TimerPair(0.0, 0.0),
    "manual": TimerPair(DelayTimers.manual().machine_s, DelayTimers.manual().rack_s),
    "consolidated": TimerPair(math.inf, math.inf),
}


@dataclass(frozen=True, kw_only=True)
class DelaySpace:
    """Variables from 0 to 1 on the scale of `timer_of`, one for each timer that can change a decision.

    Parameters
    ----------
    demands : sequence of int
        Numbers of GPUs for which jobs ask.
    machine_gpus, rack_gpus : int
        GPUs of a machine and of a rack. Timers of a machine are for demands from 2 up to the former, those of a rack up
        to the latter; 0: no other placement exists that a timer could delay.
    name : {"by_demand", "shared"}
        Whether each demand has timers of its own.

    Raises
    ------
    InvalidInput
        If there is no such space, or no timer can change a decision.
    """

    demands: Sequence[int]
    machine_gpus: int
    rack_gpus: int
    name: str = "by_demand"

    def __post_init__(self) -> None:
        if self.name not in SPACES:
            raise InvalidInput("space", self.name, f"must be one of {', '.join(SPACES)}")
        if not self.variables:
            why = "no timer can change a decision: no job asks for several GPUs that one machine or one rack could hold"
            raise InvalidInput("train", f"demands {', '.join(map(str, self._demands))}", why)

    @property
    def _demands(self) -> list[int]:
        return sorted(set(self.demands))

    @cached_property
    def timers(self) -> tuple[tuple[str, int | None], ...]:
        """Tier ("machine" or "rack") of each variable, and its demand; None: all demands."""
        most = {"machine": self.machine_gpus, "rack": self.rack_gpus}
        found: list[tuple[str, int | None]] = []
        for tier, gpus in most.items():
            able = [demand for demand in self._demands if 2 <= demand <= gpus]
            found += [(tier, demand) for demand in able] if self.name == "by_demand" else [(tier, None)][: len(able)]
        return tuple(found)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, such as rack[8]."""
        names = (tier if demand is None else f"{tier}[{demand}]" for tier, demand in self.timers)
        return tuple(Variable(name, 0.0, 1.0) for name in names)

    def decode(self, vector: Floats) -> DelayTimers:
        """Return the timers of a vector, shape (n,).

        Where each demand has its own timers, a demand that has none takes the middle one of each tier (of an even
        number the shorter). A tier without a variable has timers of 0.
        """
        found: dict[str, dict[int | None, float]] = {"machine": {}, "rack": {}}
        for (tier, demand), place in zip(self.timers, vector.tolist(), strict=True):
            found[tier][demand] = timer_of(place)
        demands = sorted({demand for _, demand in self.timers if demand is not None})
        return DelayTimers(
            machine_s=_middle(found["machine"].values()),
            rack_s=_middle(found["rack"].values()),
            by_demand={
                demand: TimerPair(found["machine"].get(demand, 0.0), found["rack"].get(demand, 0.0))
                for demand in demands
            },
        )

    def encode(self, timers: DelayTimers) -> Floats:
        """Return the vector of timers, shape (n,); shared variables take the shared pair."""
        found = []
        for tier, demand in self.timers:
            pair = TimerPair(timers.machine_s, timers.rack_s) if demand is None else timers.of(demand)
            found.append(place_of(pair.machine_s if tier == "machine" else pair.rack_s))
        return np.array(found)

    @property
    def corners(self) -> dict[str, Floats]:
        """The vectors of `STARTS`."""
        return {
            name: self.encode(DelayTimers(machine_s=pair.machine_s, rack_s=pair.rack_s))
            for name, pair in STARTS.items()
        }


def _middle(timers_s: Iterable[float]) -> float:
    ordered = sorted(timers_s)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0.0
