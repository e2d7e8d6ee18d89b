"""The window program by enumeration: a slow oracle for its tables and programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInput
from ...formulations.window.problem import ScheduleWindow

#: Schedules are held in memory all at once.
MOST_SCHEDULES = 1_000_000


@dataclass(frozen=True)
class Course:
    """What one job has after n = 0, 1, ..., T rounds, in exact fractions.

    The utility is the share of all its epochs done, `remaining_s` the isolated seconds left. It needs as many rounds as
    it takes until it ends.
    """

    utility: tuple[Fraction, ...]
    remaining_s: tuple[Fraction, ...]
    needs: int


def course(window: ScheduleWindow, job: int) -> Course:
    """Run one job round by round, as long as it takes; a regime that ends in a round leaves its rest unused."""
    first, last = window.regime_starts[job : job + 2]
    left = [Fraction(float(epochs)) for epochs in window.regime_epochs[first:last]]
    speed = [Fraction(float(seconds)) for seconds in window.regime_epoch_s[first:last]]
    total = Fraction(float(window.finished_epochs[job])) + sum(left)
    utility, remaining, n, needs = [], [], 0, 0
    while n <= window.rounds or any(left):
        if n <= window.rounds:
            utility.append(1 - sum(left) / total)
            remaining.append(sum((epochs * seconds for epochs, seconds in zip(left, speed, strict=True)), Fraction(0)))
        n += 1
        for k, epochs in enumerate(left):
            if epochs:
                left[k], needs = max(Fraction(0), epochs - Fraction(window.round_s) / speed[k]), n
                break
    return Course(tuple(utility), tuple(remaining), needs)


@dataclass(frozen=True, eq=False)
class Schedules:
    """Every schedule of a window that keeps capacity and runs no job after its end.

    The grants have shape (S, N, T), the others (S,). A schedule `conserves_work` if no GPUs idle in any round while an
    unscheduled, unfinished job fits them.
    """

    grants: NDArray[np.bool_]
    objective: NDArray[np.float64]
    conserves_work: NDArray[np.bool_]

    @property
    def best(self) -> float:
        """The best objective of a schedule that conserves work."""
        return float(self.objective[self.conserves_work].max())


def schedules(window: ScheduleWindow) -> Schedules:
    """Enumerate a small window; InvalidInput if there are more than :data:`MOST_SCHEDULES` schedules."""
    count, rounds, gang_gpus = len(window.gang_gpus), window.rounds, window.gang_gpus
    sets = np.array(
        [mask for mask in product([False, True], repeat=count) if gang_gpus @ np.array(mask) <= window.gpus]
    )
    if len(sets) ** rounds > MOST_SCHEDULES:
        raise InvalidInput("window", f"{len(sets)}^{rounds} schedules", f"at most {MOST_SCHEDULES} can be enumerated")
    picks = np.array(list(product(range(len(sets)), repeat=rounds)))
    grants = sets[picks].transpose(0, 2, 1)
    courses = [course(window, j) for j in range(count)]
    needs = np.array([each.needs for each in courses])
    grants = grants[(grants.sum(axis=2) <= needs).all(axis=1)]

    counts = grants.sum(axis=2)
    rows = np.arange(count)
    floor = Fraction(window.utility_floor)
    log_utility = np.array([[math.log(max(share, floor)) for share in each.utility] for each in courses])
    weights = window.weight * window.ftf**window.ftf_power / (count * window.gpus)
    left_s = np.array([[float(seconds) for seconds in each.remaining_s] for each in courses])[rows, counts]
    share = (gang_gpus if window.gang_weighted else np.ones(count)) / window.gpus
    horizon_s = np.maximum(left_s @ share, left_s.max(axis=1))
    before = np.concatenate([np.broadcast_to(window.is_running[:, None], (len(grants), count, 1)), grants], axis=2)
    restarts = (grants & ~before[:, :, :-1]).sum(axis=(1, 2))
    objective = (
        (weights * log_utility[rows, counts]).sum(axis=1)
        - window.makespan_weight * horizon_s / window.makespan_scale
        - window.restart_penalty * restarts
    )
    idle = window.gpus - np.einsum("j,sjt->st", gang_gpus, grants)
    had = np.cumsum(grants, axis=2) - grants
    could = ~grants & (had < needs[:, None]) & (gang_gpus[:, None] <= idle[:, None, :])
    return Schedules(grants, objective, ~could.any(axis=(1, 2)))
