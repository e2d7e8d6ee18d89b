"""Parameters of the placement engine."""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.checks import as_integer, as_real, store_checked


@dataclass(frozen=True, kw_only=True)
class PlacementRules:
    """Parameters of sharing, preemption and termination.

    Parameters
    ----------
    jobs_per_gpu : int
        Most jobs on one GPU (C), at least 1.
    checkpoint_s : float
        Seconds that a stopped job needs to save its state. A job that starts on its GPUs meanwhile makes no progress
        until then, nor does the stopped job elsewhere.
    checkpoint_s_per_gpu : float
        Further seconds of this for each GPU that the job held.
    restart_s : float
        Seconds without progress at each start of a job but its first, and at each move.
    most_steps : int
        Number of calls of the policy after which the simulation stops with an error.

    Raises
    ------
    InvalidInput
        If a rule is out of range.
    """

    jobs_per_gpu: int = 1
    checkpoint_s: float = 0.0
    checkpoint_s_per_gpu: float = 0.0
    restart_s: float = 0.0
    most_steps: int = 100_000_000

    def __post_init__(self) -> None:
        store_checked(self, as_integer, "jobs_per_gpu", "most_steps", minimum=1)
        store_checked(self, as_real, "checkpoint_s", "checkpoint_s_per_gpu", "restart_s", minimum=0.0)
