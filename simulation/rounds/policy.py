"""Interface between the rounds engine and its policies: the state of a round, and decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ...formulations.former_names import FormerName
from ..decision import Evidence
from ..job_state import JobState

__all__ = ["Evidence", "RoundJob", "RoundPolicy", "RoundState", "Schedule", "Shares", "due_on_events"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundJob:
    """Unfinished job at the start of a round, as a scheduler observes it.

    Attributes
    ----------
    id : str or int
    trace_index : int
        Index of the job in the trace.
    gpus : int
        GPUs that the job needs simultaneously (its gang).
    model, mode : str
    weight, arrival_s : float
    batch_size, initial_batch_size : int
        Current and initial batch size.
    steps_run, total_steps, steps_per_epoch : int
        Counts of steps at the current batch size.
    rates : ndarray of float, shape (K,)
        Steps per second of the whole gang on each GPU type at the current batch size; 0 where it cannot run.
    attained_s : float
        Seconds that the job has run.
    running : bool
        Whether the job ran in the preceding round.
    make_state : callable
        Function that builds the `JobState` for predictors; see `state`.
    """

    id: str | int
    trace_index: int
    gpus: int
    model: str
    mode: str
    weight: float
    arrival_s: float
    batch_size: int
    initial_batch_size: int
    steps_run: int
    total_steps: int
    steps_per_epoch: int
    rates: Floats
    attained_s: float
    running: bool
    make_state: Callable[[], JobState] = field(repr=False)

    @property
    def steps_left(self) -> int:
        """Remaining steps at the current batch size."""
        return max(0, self.total_steps - self.steps_run)

    @property
    def state(self) -> JobState:
        """State for predictors and the window program: past regimes, service, waiting and contention."""
        return self.make_state()

    place = FormerName("trace_index")
    know = FormerName("make_state")


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundState:
    """State of the cluster at the start of a round.

    Attributes
    ----------
    round : int
        Number of the round, from 0.
    time_s : float
        Start of the round in seconds; with `RoundRules.plan_ahead`, the middle of the preceding round, and all other
        fields hold at that time.
    round_s : float
        Longest duration of a round (D), in seconds.
    gpu_types : tuple of str, length K
    gpus : ndarray of int, shape (K,)
        GPUs of each type (M_k).
    jobs : tuple of RoundJob, length m
        Arrived and unfinished jobs, by arrival and then id, independent of the order of the trace.
    arrived, completed, rescaled : int
        Numbers of jobs that arrived, completed, or changed their batch size since the policy was last called.
    since_call_s : float
        Seconds since the policy was last called; infinite before the first call.
    """

    round: int
    time_s: float
    round_s: float
    gpu_types: tuple[str, ...]
    gpus: Indices
    jobs: tuple[RoundJob, ...]
    arrived: int
    completed: int
    rescaled: int
    since_call_s: float

    @property
    def total_gpus(self) -> int:
        """GPUs of all types (M)."""
        return int(self.gpus.sum())

    @property
    def gang_gpus(self) -> Indices:
        """GPUs that each job needs (its gang), shape (m,)."""
        return np.array([job.gpus for job in self.jobs], dtype=np.int64)

    gangs = FormerName("gang_gpus")

    @property
    def rates(self) -> Floats:
        """Steps per second of each job on each GPU type, shape (m, K)."""
        return np.array([job.rates for job in self.jobs]).reshape(len(self.jobs), len(self.gpus))


@dataclass(frozen=True, eq=False)
class Shares:
    """Share of time that each job should run on each GPU type; the engine selects jobs by priority.

    Parameters
    ----------
    values : ndarray of float, shape (m, K)
        Shares in the order of `RoundState.jobs`, at least 0.
    evidence : Evidence
    """

    values: Floats
    evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != 2 or not (np.isfinite(values).all() and (values >= 0).all()):
            raise InvalidInput("values", values, "must be finite shares of at least 0, a row for each job")
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Jobs and GPU types of the next rounds; the policy is called again when they are used up.

    Parameters
    ----------
    rounds : sequence of mapping
        For each round a mapping of job id to index of the GPU type. Completed jobs are skipped.
    evidence : Evidence
    """

    rounds: Sequence[Mapping[str | int, int]]
    evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        if not len(self.rounds):
            raise InvalidInput("rounds", "[]", "must hold at least one round")


class RoundPolicy(Protocol):
    """Scheduling policy of the rounds engine.

    A policy may keep state between calls; a simulation starts with a policy that has not been called.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    def due(self, state: RoundState) -> bool:
        """Return whether to call the policy now; the engine also calls it without a decision or after a schedule."""
        ...

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Return shares of time, or a schedule of the next rounds. The state has at least one job."""
        ...


def due_on_events(state: RoundState, interval_s: float) -> bool:
    """Return whether an event occurred since the last call and at least `interval_s` has passed (Gavel's rule).

    A call at time 0 does not count as a call, as in the released code, whose clock of calls starts at 0.
    """
    happened: Any = state.arrived or state.completed or state.rescaled
    return bool(happened) and (state.since_call_s >= interval_s or state.since_call_s >= state.time_s)
