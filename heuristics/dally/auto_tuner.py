"""Auto-tuner of Dally: delay timers from the waits of the jobs that were placed."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from ...formulations.checks import as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.search.delay_timers import TimerPair, as_timer_pair

#: Tiers of which waits are recorded.
MACHINE, RACK = 0, 1
#: Names of settings.
PRESETS = ("paper", "released", "patient")
_HOUR_S = 3600.0
_DAY_S = 24 * _HOUR_S


@dataclass(frozen=True, kw_only=True)
class TunerSettings:
    """Settings of the auto-tuner; pairs are of (machine, rack).

    Parameters
    ----------
    ddof : int
        Divisor of the variance is the number of waits less `ddof`, 0 or 1; without a positive divisor the deviation is
        0.
    floor_s, cap_s : (float, float)
        Least and largest timers that follow from waits, in seconds; the cap may be infinite.
    least_wait_s : float
        Shorter waits are not recorded.
    history_s : float
        Waits recorded longer ago than this are dropped.
    empty_s : (float, float)
        Timers where no wait is left; infinity: no other placement is accepted.

    Raises
    ------
    InvalidInput
        If a setting is out of range, or a floor exceeds its cap.
    """

    ddof: int = 1
    floor_s: tuple[float, float] = (0.0, 0.0)
    cap_s: tuple[float, float] = (math.inf, math.inf)
    least_wait_s: float = 0.0
    history_s: float = 7 * _DAY_S
    empty_s: tuple[float, float] = (12 * _HOUR_S, 24 * _HOUR_S)

    def __post_init__(self) -> None:
        store_checked(self, as_integer, "ddof", minimum=0, maximum=1)
        store_checked(self, as_real, "least_wait_s", minimum=0.0)
        store_checked(self, as_real, "history_s", above=0.0)
        for name in ("floor_s", "cap_s", "empty_s"):
            object.__setattr__(self, name, tuple(as_timer_pair(name, getattr(self, name))))
        for floor_s, cap_s in zip(self.floor_s, self.cap_s, strict=True):
            if not floor_s <= cap_s:
                raise InvalidInput("floor_s", floor_s, f"must not exceed its cap, {cap_s:g}")

    @classmethod
    def preset(cls, name: str, *, lease_s: float = _HOUR_S, **changes: Any) -> TunerSettings:
        """Return the settings of this name, with changes; those that are None change nothing.

        Parameters
        ----------
        name : {"paper", "released", "patient"}
            "paper": sample deviation, neither floor nor cap. "released": those of the released code, which counts in
            leases: the variance divides by the number of waits, and timers lie from 6 leases to .8 of the history, and
            from 12 leases to the history, which is at least this long. "patient": those of the paper, but timers are
            at least 48 h and 96 h, and endless without waits (docs/delay-tuning.md has the evidence).
        lease_s : float
            Length of a lease, in seconds.
        **changes
            Fields of `TunerSettings`.
        """
        given = {key: value for key, value in changes.items() if value is not None}
        own: dict[str, Any] = {}
        if name == "released":
            lease_s = as_real("lease_s", lease_s, above=0.0)
            history_s = as_real("history_s", given.get("history_s", cls.history_s), minimum=12 * lease_s)
            own = {"ddof": 0, "floor_s": (6 * lease_s, 12 * lease_s), "cap_s": (0.8 * history_s, history_s)}
        elif name == "patient":
            own = {"floor_s": (48 * _HOUR_S, 96 * _HOUR_S), "empty_s": (math.inf, math.inf)}
        elif name != "paper":
            raise InvalidInput("preset", name, f"must be one of {', '.join(PRESETS)}")
        return cls(**{**own, **given})


class AutoTuner:
    """Timers by demand: the mean of the recorded waits and two standard deviations (Algorithm 2).

    There are two lists of waits for each demand, of jobs that were placed on one machine and on one rack.

    Parameters
    ----------
    settings : TunerSettings

    Attributes
    ----------
    log : list of (float, int, int, float)
        Changes of timers: time, tier, demand and timer, all times in seconds.
    """

    def __init__(self, settings: TunerSettings) -> None:
        self.settings = settings
        self.log: list[tuple[float, int, int, float]] = []
        # By tier and demand: recorded waits as (time, wait), oldest first; the timer that follows; the one logged last.
        self._waits: dict[tuple[int, int], deque[tuple[float, float]]] = {}
        self._timers: dict[tuple[int, int], float] = {}
        self._logged: dict[tuple[int, int], float] = {}

    def record(self, tier: int, demand: int, time_s: float, wait_s: float) -> None:
        """Record the wait of a job that was placed at this tier; times do not descend."""
        if wait_s >= self.settings.least_wait_s:
            self._kept(tier, demand, time_s).append((time_s, wait_s))
            self._timers.pop((tier, demand), None)

    def timers(self, demand: int, now_s: float) -> TimerPair:
        """Return the timers of a demand after dropping waits recorded longer ago than the history."""
        return TimerPair(self.timer_s(MACHINE, demand, now_s), self.timer_s(RACK, demand, now_s))

    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return one of these timers."""
        key, waits = (tier, demand), self._kept(tier, demand, now_s)
        if key not in self._timers:
            timer_s = self._timers[key] = timer_of([wait_s for _, wait_s in waits], tier, self.settings)
            if self._logged.get(key) != timer_s:
                self._logged[key] = timer_s
                self.log.append((now_s, tier, demand, timer_s))
        return self._timers[key]

    def _kept(self, tier: int, demand: int, now_s: float) -> deque[tuple[float, float]]:
        """Return the recorded waits after dropping those of longer ago than the history."""
        waits = self._waits.setdefault((tier, demand), deque())
        while waits and now_s - waits[0][0] > self.settings.history_s:
            waits.popleft()
            self._timers.pop((tier, demand), None)
        return waits


def timer_of(waits_s: list[float], tier: int, settings: TunerSettings) -> float:
    """Return the timer that follows from waits."""
    count = len(waits_s)
    if not count:
        return settings.empty_s[tier]
    mean = _sum(waits_s) / count
    divisor = count - settings.ddof
    variance = _sum([(wait_s - mean) * (wait_s - mean) for wait_s in waits_s]) / divisor if divisor > 0 else 0.0
    return min(max(mean + 2.0 * math.sqrt(variance), settings.floor_s[tier]), settings.cap_s[tier])


def _sum(values: list[float]) -> float:
    """Return the sum, added in order as the compiled loops do; that of Python is compensated from 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total
