"""Parameters of the fluid engine."""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.checks import as_flag, as_integer, as_real, store_checked


@dataclass(frozen=True, kw_only=True)
class FluidRules:
    """Parameters of preemption, size estimates, predictions and the clock.

    Parameters
    ----------
    preemption_s : float
        Seconds without progress each time that a job gets GPUs after it was preempted. Other changes of its GPUs are
        free.
    size_error_pct : float
        Greatest error p of the sizes that policies and predictions see, in percent, below 100: each job's is its true
        size times ``1 + U(-p, p)/100``.
    seed : int
        Seed of these errors.
    predict : bool
        Whether each job's end is predicted at its arrival.
    microseconds : bool
        Whether arrivals, ends and timers are rounded to the nearest microsecond, ties to even, as in the released code
        of PCS.
    most_steps : int
        Number of events after which the simulation stops with an error.

    Raises
    ------
    InvalidInput
        If a rule is out of range.
    """

    preemption_s: float = 0.0
    size_error_pct: float = 0.0
    seed: int = 0
    predict: bool = False
    microseconds: bool = False
    most_steps: int = 100_000_000

    def __post_init__(self) -> None:
        store_checked(self, as_real, "preemption_s", minimum=0.0)
        store_checked(self, as_real, "size_error_pct", minimum=0.0, maximum=99.0)
        store_checked(self, as_integer, "seed", minimum=0)
        store_checked(self, as_integer, "most_steps", minimum=1)
        store_checked(self, as_flag, "predict", "microseconds")
