"""Settings of a window: its cluster, its rounds and the terms of its objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..checks import as_flag, as_ids, as_integer, as_real, store_checked
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
        store_checked(self, as_integer, "gpus", minimum=1)
        store_checked(self, as_integer, "rounds", minimum=1, maximum=MOST_ROUNDS)
        store_checked(self, as_real, "round_s", "utility_floor", above=0.0)
        store_checked(self, as_real, "ftf_power", "makespan_weight", "restart_penalty", minimum=0.0)
        store_checked(self, as_flag, "gang_weighted", "skip_wide")
        store_checked(self, as_ids, "running")
        if self.makespan_scale is not None:
            store_checked(self, as_real, "makespan_scale", above=0.0)
        if self.utility_floor >= 1:
            raise InvalidInput("utility_floor", self.utility_floor, "must be less than 1")
