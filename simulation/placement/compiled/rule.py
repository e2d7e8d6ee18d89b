"""Rules of delay scheduling as the compiled loops read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class TunerRule:
    """Auto-tuner of delay timers; fields are those of `heuristics.dally.auto_tuner.TunerSettings`."""

    ddof: int
    floor_s: tuple[float, float]
    cap_s: tuple[float, float]
    least_wait_s: float
    history_s: float
    empty_s: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class DelayRule:
    """Delay scheduling of one policy.

    Attributes
    ----------
    lease_s : float
        Length of a lease; infinity: jobs run to their end.
    offer_s : float
        Seconds between offers; infinity: GPUs are offered at events.
    keep : bool
        Whether a job whose lease ends keeps its GPUs if no job before it takes one.
    machine_s, rack_s : float
        Fixed timers.
    by_demand : mapping of int to (float, float)
        Fixed timers (machine_s, rack_s) of some demands.
    tuner : TunerRule or None
        Auto-tuner, which stands in the place of fixed timers.
    """

    lease_s: float
    offer_s: float = math.inf
    keep: bool = True
    machine_s: float = 0.0
    rack_s: float = 0.0
    by_demand: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    tuner: TunerRule | None = None
