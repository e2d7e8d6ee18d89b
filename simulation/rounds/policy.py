"""What a policy of the rounds engine is told at the start of a round, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ..decision import Evidence
from ..job_state import JobState

__all__ = ["Evidence", "RoundJob", "RoundPolicy", "RoundState", "Schedule", "Shares", "due_on_events"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundJob:
    """An unfinished job at the start of a round: what a scheduler can know of it.

    Attributes
    ----------
    id : str or int
    place : int
        Its position in the trace.
    gpus : int
        GPUs it needs, all at once (its gang).
    model, mode : str
    weight, arrival_s : float
    batch_size, initial_batch_size : int
        Now, and when it started.
    steps_run, total_steps : int
        Both at the present batch size.
    steps_per_epoch : int
        At the present batch size.
    rates : ndarray of float, shape (K,)
        Steps per second on each GPU type, on all its GPUs, at the present batch size; 0 where it cannot run.
    attained_s : float
        Seconds that it has run.
    running : bool
        Whether it ran in the round before.
    know : callable
        Makes the `JobState` that predictors read; see `state`.
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
        """Steps to go at the present batch size."""
        return max(0, self.total_steps - self.steps_run)

    @property
    def state(self) -> JobState:
        """Regimes so far, service, waiting and contention: what predictors and the window program read."""
        return self.make_state()


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundState:
    """The cluster at the start of a round.

    Attributes
    ----------
    round : int
        From 0.
    time_s : float
        When the round starts; with `RoundRules.plan_ahead` the middle of the round before, and all else as of then.
    round_s : float
        Seconds a round lasts at most (D).
    gpu_types : tuple of str, length K
    gpus : ndarray of int, shape (K,)
        GPUs of each type (M_k).
    jobs : tuple of RoundJob, length m
        Arrived and unfinished, by arrival and then id, whatever the order of the trace.
    arrived, completed, rescaled : int
        Jobs that arrived, completed, or had their batch size changed since the policy was last called.
    since_call_s : float
        Since the policy was last called; infinite if it never was.
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
    def gangs(self) -> Indices:
        """GPUs each job needs, shape (m,)."""
        return np.array([job.gpus for job in self.jobs], dtype=np.int64)

    @property
    def rates(self) -> Floats:
        """Steps per second of each job on each GPU type, shape (m, K)."""
        return np.array([job.rates for job in self.jobs]).reshape(len(self.jobs), len(self.gpus))


@dataclass(frozen=True, eq=False)
class Shares:
    """The share of time that each job should run on each GPU type; the engine turns them into rounds by priority.

    Parameters
    ----------
    values : ndarray of float, shape (m, K)
        In the order of `RoundState.jobs`, at least 0.
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
    """Who runs in the next rounds, and on which GPU type; the policy is called again when they are used up.

    Parameters
    ----------
    rounds : sequence of mapping
        For each round job id to index of the GPU type. A job that has completed by then is passed over.
    evidence : Evidence
    """

    rounds: Sequence[Mapping[str | int, int]]
    evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        if not len(self.rounds):
            raise InvalidInput("rounds", "[]", "must hold at least one round")


class RoundPolicy(Protocol):
    """A scheduling policy of the rounds engine.

    A policy may keep what it learns from call to call; an engine starts with a policy that was never called.
    """

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    def due(self, state: RoundState) -> bool:
        """Whether to be called now; the engine also calls when there is no decision yet or a schedule is used up."""
        ...

    def decide(self, state: RoundState) -> Shares | Schedule:
        """Return shares of time, or who runs in the next rounds. There is at least one job."""
        ...


def due_on_events(state: RoundState, interval_s: float) -> bool:
    """Whether anything happened since the last call, and that is at least so long ago (Gavel's rule).

    A call at time 0 counts as none, as in the released code, whose clock of calls starts at 0.
    """
    happened: Any = state.arrived or state.completed or state.rescaled
    return bool(happened) and (state.since_call_s >= interval_s or state.since_call_s >= state.time_s)
