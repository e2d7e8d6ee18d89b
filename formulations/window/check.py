"""Check of a schedule of a window against the problem's data; each fault names its job and round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Indices
from .data import WindowData


@dataclass(frozen=True)
class Fault:
    """One fault of a schedule, with the job and the round concerned, if any.

    Its kind is the rule that the schedule violates, and its size the violation: "shape" (1), "capacity" (GPUs over it),
    "completed" (rounds after completion), "regime order" (regimes out of place), "work conservation" (GPUs left idle).
    """

    kind: str
    size: float
    job: int | None = None
    round: int | None = None

    def __str__(self) -> str:
        place = [f"{what} {i}" for what, i in (("job", self.job), ("round", self.round)) if i is not None]
        return f"{self.kind}: {self.size:g}" + (f" at {', '.join(place)}" if place else "")


def regimes_of(window: WindowData, grants: NDArray[np.bool_]) -> Indices:
    """Return the regime of each granted round, by index within its job, -1 where idle; shape (N, T).

    A regime runs once its predecessors are complete, so the number of earlier rounds of the job determines it. Rounds
    granted after the job's completion count as the regime after its last.
    """
    from .kernels import regimes_run

    regimes: Indices = regimes_run(grants, window.regime_starts, window.tables.regime_needs)
    return regimes


def schedule_faults(window: WindowData, grants: NDArray[np.bool_], regime_of: Indices) -> tuple[Fault, ...]:
    """Return the worst fault of each kind; an empty tuple for a valid schedule.

    The rules are capacity in every round, no round after completion, regimes in order (each after all rounds of its
    predecessors), and work conservation: no unscheduled, unfinished job fits the idle GPUs of a round.
    """
    shape = (len(window.gang_gpus), window.rounds)
    if grants.shape != shape or regime_of.shape != shape or grants.dtype != np.bool_:
        return (Fault("shape", 1.0),)
    faults = []
    used = window.gang_gpus @ grants
    t = int(used.argmax())
    if used[t] > window.gpus:
        faults.append(Fault("capacity", float(used[t] - window.gpus), round=t))
    counts = grants.sum(axis=1)
    over = counts - window.tables.needs
    j = int(over.argmax())
    if over[j] > 0:
        faults.append(Fault("completed", float(over[j]), job=j))
    wrong = np.abs(regime_of - regimes_of(window, grants))
    if wrong.any():
        j, t = (int(i) for i in np.unravel_index(wrong.argmax(), shape))
        faults.append(Fault("regime order", float(wrong[j, t]), job=j, round=t))
    # Work conservation: the largest job that could have used idle GPUs of a round.
    had: Indices = np.cumsum(grants, axis=1) - grants
    could = ~grants & (had < window.tables.needs[:, None])
    fits = could & (window.gang_gpus[:, None] <= (window.gpus - used)[None, :])
    if fits.any():
        waste = np.where(fits, window.gang_gpus[:, None], 0)
        j, t = (int(i) for i in np.unravel_index(waste.argmax(), shape))
        faults.append(Fault("work conservation", float(waste[j, t]), job=j, round=t))
    return tuple(faults)
