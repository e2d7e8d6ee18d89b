"""DelayTimers: how long jobs wait for a machine or a rack of their own before they accept a wider placement."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..checks import as_integer, as_real
from ..errors import InvalidInput
from ..files import written
from .configuration_text import file_text, json_object

_FORMAT = "equipoise.delays/1"
_HOUR_S = 3600.0


class TimerPair(NamedTuple):
    """Seconds of waiting after which a job accepts GPUs of one rack, and any GPUs; infinity: never."""

    machine_s: float
    rack_s: float


@dataclass(frozen=True, kw_only=True)
class DelayTimers:
    """Delay timers of Dally by the number of GPUs that a job asks for.

    Parameters
    ----------
    machine_s : float
        Seconds for which a job waits for GPUs of one machine before it accepts GPUs of one rack (T_mc), at least 0;
        infinity: it never accepts them.
    rack_s : float
        Seconds, from the same beginning, for which it waits for GPUs of one rack before it accepts any (T_rk).
    by_demand : mapping of int to (float, float)
        Timers (machine_s, rack_s) of the jobs that ask for so many GPUs, where they differ from these two.

    Raises
    ------
    InvalidInput
        If a timer is negative or no number, or a demand is below 1.

    Examples
    --------
    >>> timers = DelayTimers(machine_s=3600.0, rack_s=7200.0, by_demand={8: (0.0, 600.0)})
    >>> timers.of(4), timers.of(8).rack_s
    (TimerPair(machine_s=3600.0, rack_s=7200.0), 600.0)
    >>> DelayTimers.from_json(timers.to_json()) == timers
    True
    """

    machine_s: float
    rack_s: float
    by_demand: Mapping[int, TimerPair] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("machine_s", "rack_s"):
            object.__setattr__(self, name, as_timer(name, getattr(self, name)))
        if not isinstance(self.by_demand, Mapping):
            raise InvalidInput("by_demand", type(self.by_demand).__name__, "must map demands to pairs of timers")
        found = {}
        for demand, pair in self.by_demand.items():
            name = f"by_demand[{demand}]"
            found[as_integer("by_demand", demand, minimum=1)] = as_timer_pair(name, pair)
        object.__setattr__(self, "by_demand", dict(sorted(found.items())))

    @classmethod
    def manual(cls) -> DelayTimers:
        """Return the timers that the paper sets by hand: 12 h and 24 h."""
        return cls(machine_s=12 * _HOUR_S, rack_s=24 * _HOUR_S)

    def of(self, demand: int) -> TimerPair:
        """Return the timers of jobs that ask for so many GPUs."""
        return self.by_demand.get(demand, TimerPair(self.machine_s, self.rack_s))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the timers as JSON, in which infinity is "inf", and write it to `path` if one is given."""
        content = {
            "format": _FORMAT,
            **_written(TimerPair(self.machine_s, self.rack_s)),
            "by_demand": {str(demand): _written(pair) for demand, pair in self.by_demand.items()},
        }
        return written(json.dumps(content, indent=1) + "\n", path)

    @classmethod
    def from_json(cls, text: str) -> DelayTimers:
        """Read what `to_json` writes; InvalidInput if the text is nothing of the kind."""
        content = json_object(text)
        if content.get("format") != _FORMAT:
            raise InvalidInput("format", content.get("format"), f"must be {_FORMAT!r}")
        by_demand = content.get("by_demand", {})
        if not isinstance(by_demand, Mapping):
            raise InvalidInput("by_demand", type(by_demand).__name__, "must be an object of JSON")
        pairs = {}
        for demand, pair in by_demand.items():
            if not re.fullmatch("[1-9][0-9]{0,9}", demand):
                raise InvalidInput("by_demand", demand, "must be a number of GPUs")
            pairs[int(demand)] = _read(f"by_demand[{demand}].", pair)
        return cls(**_read("", content)._asdict(), by_demand=pairs)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> DelayTimers:
        """Read a file of the form of `to_json`."""
        return cls.from_json(file_text(path))


def as_timer(name: str, value: Any) -> float:
    """Return seconds of waiting, at least 0 and possibly infinite; InvalidInput otherwise."""
    if isinstance(value, float) and value == math.inf:
        return value
    return as_real(name, value, minimum=0.0)


def as_timer_pair(name: str, value: Any) -> TimerPair:
    """Return a pair of timers (machine_s, rack_s); InvalidInput otherwise."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(name, value, "must be a pair of timers (machine_s, rack_s)")
    machine_s, rack_s = value
    return TimerPair(as_timer(f"{name}.machine_s", machine_s), as_timer(f"{name}.rack_s", rack_s))


def as_delay_timers(name: str, value: Any) -> DelayTimers:
    """Return timers, or those in the file at this path; InvalidInput for a bad type or file."""
    if isinstance(value, str | os.PathLike):
        return DelayTimers.read(value)
    if not isinstance(value, DelayTimers):
        raise InvalidInput(name, type(value).__name__, "must be DelayTimers or the path of their file")
    return value


def _written(pair: TimerPair) -> dict[str, float | str]:
    return {name: "inf" if math.isinf(each) else each for name, each in pair._asdict().items()}


def _read(place: str, content: Any) -> TimerPair:
    if not isinstance(content, Mapping):
        raise InvalidInput(place.rstrip("."), content, "must be an object of JSON")
    for name in TimerPair._fields:
        if name not in content:
            raise InvalidInput(f"{place}{name}", None, "missing from the timers")
    values = (math.inf if content[name] == "inf" else content[name] for name in TimerPair._fields)
    return TimerPair(
        *(as_timer(f"{place}{name}", value) for name, value in zip(TimerPair._fields, values, strict=True))
    )
