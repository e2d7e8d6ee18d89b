"""Parameters of the rounds engine; the defaults are the values of the released simulator."""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.checks import as_flag, as_integer, as_real, store_checked
from ...formulations.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class RoundRules:
    """Parameters of rounds, restarts and completion.

    Parameters
    ----------
    round_s : float
        Longest run of a job in one round (D), in seconds, positive.
    restart_s : float
        Seconds that a start costs a job that did not run in the preceding round, at least 0.
    restart_free_s : float
        Longest run, in seconds, that is exempt from `restart_s`; at least `restart_s`. Runs in round 0 are exempt.
    overrun : float or None
        Factor of the run-time limit: a job also ends once its run time exceeds int(overrun * int(exclusive time)).
        None: no limit.
    stalled_rounds : int
        Number of consecutive runs without a step after which a job also ends, at least 1.
    plan_ahead : bool
        Whether the policy is called in the middle of the preceding round, with the state at that time.
    backfill_new : bool
        Whether idle GPUs also go to jobs that arrived after the policy last set shares. In the released simulator
        these jobs wait for the next call.
    follow_schedules : bool
        Whether jobs change their batch sizes as the trace's `schedule` states, whatever their mode, which only
        predictors read then. By default the profiles' rules of their modes decide, and a schedule states the exclusive
        time alone.
    most_rounds : int
        Number of rounds after which the simulation stops with an error, since a policy may never run some job.

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
    follow_schedules: bool = False
    most_rounds: int = 200_000

    def __post_init__(self) -> None:
        store_checked(self, as_real, "round_s", above=0.0)
        store_checked(self, as_real, "restart_s", "restart_free_s", minimum=0.0)
        if self.restart_free_s < self.restart_s:
            why = f"must be at least restart_s, {self.restart_s:g}: a run cannot lose more than it lasts"
            raise InvalidInput("restart_free_s", self.restart_free_s, why)
        if self.overrun is not None:
            store_checked(self, as_real, "overrun", above=0.0)
        store_checked(self, as_integer, "stalled_rounds", "most_rounds", minimum=1)
        store_checked(self, as_flag, "plan_ahead", "backfill_new", "follow_schedules")
