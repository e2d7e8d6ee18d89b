"""The rules of the rounds engine that a user may change, with the released simulator's values as defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...formulations.checks import as_flag, as_integer, as_real
from ...formulations.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class RoundRules:
    """How rounds, restarts and completion work.

    Parameters
    ----------
    round_s : float
        Longest time a job runs in one round (D), positive.
    restart_s : float
        What starting costs a job that did not run in the round before, at least 0.
    restart_free_s : float
        Only a run longer than this pays it; at least `restart_s`. A run that starts in round 0 never pays.
    overrun : float or None
        A job also ends once its run time exceeds int(overrun * int(exclusive time)); None: never.
    stalled_rounds : int
        A job also ends with the run that is the so-many-th in a row without a step, at least 1.
    plan_ahead : bool
        Call the policy in the middle of the round before, on what is known then, so that its time is hidden.
    backfill_new : bool
        Give idle GPUs also to jobs that arrived since the policy last gave shares. The released simulator leaves
        them waiting until the next call.
    most_rounds : int
        The run is given up with an error after so many rounds: a policy that never runs some job would go on for
        ever.

    Raises
    ------
    InvalidInput
        If a rule is out of range.
    """

    round_s: float = 120.0
    restart_s: float = 20.0
    restart_free_s: float = 115.0
    overrun: float | None = 1.5
    stalled_rounds: int = 5
    plan_ahead: bool = False
    backfill_new: bool = False
    most_rounds: int = 200_000

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("round_s", as_real("round_s", self.round_s, above=0.0))
        put("restart_s", as_real("restart_s", self.restart_s, minimum=0.0))
        put("restart_free_s", as_real("restart_free_s", self.restart_free_s, minimum=0.0))
        if self.restart_free_s < self.restart_s:
            why = f"must be at least restart_s, {self.restart_s:g}: a run cannot lose more than it lasts"
            raise InvalidInput("restart_free_s", self.restart_free_s, why)
        if self.overrun is not None:
            put("overrun", as_real("overrun", self.overrun, above=0.0))
        put("stalled_rounds", as_integer("stalled_rounds", self.stalled_rounds, minimum=1))
        put("plan_ahead", as_flag("plan_ahead", self.plan_ahead))
        put("backfill_new", as_flag("backfill_new", self.backfill_new))
        put("most_rounds", as_integer("most_rounds", self.most_rounds, minimum=1))
