"""Settings of a window: its cluster, its rounds and the terms of its objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..checks import as_flag, as_ids, as_integer, as_real
from ..errors import InvalidInput

MOST_ROUNDS = 10_000


@dataclass(frozen=True, eq=False)
class WindowSettings:
    """Data of a window beside its jobs; :class:`~.problem.ScheduleWindow` describes each setting."""

    gpus: int
    rounds: int = 20
    round_s: float = 120.0
    ftf_power: float = 5.0
    makespan_weight: float = 1e-3
    makespan_scale: float = None  # type: ignore[assignment]  # the jobs' remaining run times
    gang_weighted: bool = True
    utility_floor: float = 1e-6
    restart_penalty: float = 0.0
    running: Sequence[str | int] = ()
    skip_wide: bool = False

    def _check_settings(self) -> None:
        """Check each setting, and store it with its type."""
        put = self.__dict__.__setitem__
        put("gpus", as_integer("gpus", self.gpus, minimum=1))
        put("rounds", as_integer("rounds", self.rounds, minimum=1, maximum=MOST_ROUNDS))
        put("round_s", as_real("round_s", self.round_s, above=0.0))
        put("ftf_power", as_real("ftf_power", self.ftf_power, minimum=0.0))
        put("makespan_weight", as_real("makespan_weight", self.makespan_weight, minimum=0.0))
        if self.makespan_scale is not None:
            put("makespan_scale", as_real("makespan_scale", self.makespan_scale, above=0.0))
        put("gang_weighted", as_flag("gang_weighted", self.gang_weighted))
        put("utility_floor", as_real("utility_floor", self.utility_floor, above=0.0))
        if self.utility_floor >= 1:
            raise InvalidInput("utility_floor", self.utility_floor, "must be less than 1")
        put("restart_penalty", as_real("restart_penalty", self.restart_penalty, minimum=0.0))
        put("running", as_ids("running", self.running))
        put("skip_wide", as_flag("skip_wide", self.skip_wide))
