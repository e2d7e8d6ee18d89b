"""The policies of Dally: delay scheduling with tuned, fixed, zero and infinite timers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from typing import Any, ClassVar

from ...formulations.errors import InvalidInput
from ...formulations.search.delay_timers import DelayTimers, TimerPair, as_delay_timers, as_timer
from ...simulation.placement.compiled.rule import DelayRule, TunerRule
from ...simulation.placement.policy import PlacementState
from .auto_tuner import AutoTuner, TunerSettings
from .delay_scheduling import DelayPolicy


@dataclass(kw_only=True, eq=False)
class DallyPolicy(DelayPolicy):
    """Dally: delay scheduling with timers that the auto-tuner derives from the waits of placed jobs.

    Parameters
    ----------
    preset : {"paper", "released", "patient"}
        Settings of the auto-tuner; see `TunerSettings.preset`.
    ddof, floor_s, cap_s, least_wait_s, history_s, empty_s : optional
        Settings in place of the preset's; see `TunerSettings`.

    Other parameters are those of `DelayPolicy`.
    """

    preset: str = "paper"
    ddof: int | None = None
    floor_s: Sequence[float] | None = None
    cap_s: Sequence[float] | None = None
    least_wait_s: float | None = None
    history_s: float | None = None
    empty_s: Sequence[float] | None = None
    name: ClassVar[str] = "dally"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings = TunerSettings.preset(
            self.preset,
            lease_s=self.lease_s,
            **{each.name: getattr(self, each.name) for each in fields(TunerSettings)},
        )
        self._tuner = AutoTuner(self.settings)

    def clear(self, state: PlacementState) -> None:
        """Forget the jobs of an earlier run."""
        super().clear(state)
        self._tuner = AutoTuner(self.settings)

    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return the timer of the auto-tuner."""
        return self._tuner.timer_s(tier, demand, now_s)

    def note_wait(self, tier: int, demand: int, now_s: float, wait_s: float) -> None:
        """Record the wait."""
        self._tuner.record(tier, demand, now_s, wait_s)

    @property
    def timer_log(self) -> list[tuple[float, int, int, float]]:
        """Changes of timers in the latest run: time, tier, demand and timer, times in seconds."""
        return self._tuner.log

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        return replace(super().rule, tuner=TunerRule(**asdict(self.settings)))


@dataclass(kw_only=True, eq=False)
class DallyManualPolicy(DelayPolicy):
    """Delay scheduling with fixed timers.

    Parameters
    ----------
    timers : DelayTimers, path or str, optional
        Timers, or the file that holds them; see `DelayTimers.read`. By default 12 h and 24 h for all demands.
    machine_s, rack_s : float, optional
        In place of these, timers of all demands; infinity is allowed.

    Other parameters are those of `DelayPolicy`.
    """

    timers: DelayTimers | str | PathLike[str] | None = None
    machine_s: float | None = None
    rack_s: float | None = None
    name: ClassVar[str] = "dally-manual"

    def __post_init__(self) -> None:
        super().__post_init__()
        names = (name for name in TimerPair._fields if getattr(self, name) is not None)
        given: dict[str, Any] = {name: as_timer(name, getattr(self, name)) for name in names}
        if given and self.timers is not None:
            name, value = next(iter(given.items()))
            raise InvalidInput(name, value, "leave it out with timers")
        chosen = DelayTimers.manual() if self.timers is None else as_delay_timers("timers", self.timers)
        self._timers = replace(chosen, **given)

    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return the fixed timer."""
        return self._timers.of(demand)[tier]

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        fixed = {each.name: getattr(self._timers, each.name) for each in fields(DelayTimers)}
        return replace(super().rule, **fixed)


@dataclass(kw_only=True, eq=False)
class DallyNoWaitPolicy(DelayPolicy):
    """Delay scheduling with timers of 0: each job accepts the first GPUs that suffice. Parameters: `DelayPolicy`."""

    name: ClassVar[str] = "dally-nowait"

    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return 0."""
        return 0.0


@dataclass(kw_only=True, eq=False)
class DallyConsolidatedPolicy(DelayPolicy):
    """Delay scheduling with infinite timers: each job waits for its tightest placement. Parameters: `DelayPolicy`."""

    name: ClassVar[str] = "dally-consolidated"

    def timer_s(self, tier: int, demand: int, now_s: float) -> float:
        """Return infinity."""
        return math.inf

    @property
    def rule(self) -> DelayRule:
        """Rule that the compiled loops follow."""
        return replace(super().rule, machine_s=math.inf, rack_s=math.inf)
