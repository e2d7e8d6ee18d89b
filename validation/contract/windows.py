"""Cases of the contract for backends that read a formulation directly: generated windows against enumeration."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...formulations.window.plan import WindowPlan
from ...formulations.window.problem import ScheduleWindow
from ...solvers.result import Limit, Reason, Result
from ..oracles.window import schedules
from .check import Check, Failure, noted, same_numbers

ROUND_S = 60.0
GAPS = (0.0, 1e-2, 0.5)


def window(rng: np.random.Generator, most_jobs: int = 4, most_rounds: int = 3) -> ScheduleWindow:
    """Draw a window, by default small enough to enumerate: any progress, ended jobs too, later regimes also faster."""
    gpus, jobs = int(rng.integers(1, 9)), int(rng.integers(1, most_jobs + 1))
    lengths = rng.integers(0, 4, jobs)
    finished = rng.integers(1, 6, jobs).astype(np.float64)
    epochs = rng.integers(1, 5, lengths.sum()).astype(np.float64)
    owner = np.repeat(np.arange(jobs), lengths)
    return ScheduleWindow.from_columns(
        gang_gpus=rng.integers(1, gpus + 1, jobs),
        finished_epochs=finished,
        total_epochs=finished + np.bincount(owner, weights=epochs, minlength=jobs),
        regime_starts=np.concatenate(([0], np.cumsum(lengths))),
        regime_epochs=epochs,
        regime_epoch_s=rng.choice([15.0, 30.0, 45.0, 60.0, 75.0], len(epochs)),
        ftf=rng.choice([0.5, 1.0, 1.5], jobs),
        gpus=gpus,
        rounds=int(rng.integers(1, most_rounds + 1)),
        round_s=ROUND_S,
        ftf_power=float(rng.choice([0.0, 1.0, 5.0])),
        makespan_weight=float(rng.choice([0.0, 1e-3, 1.0])),
        restart_penalty=float(rng.choice([0.0, 1e-2])),
        running=np.flatnonzero(rng.random(jobs) < 0.5).tolist(),
    )


def optimal(check: Check, kind: str) -> None:
    """A plan claimed to be optimal is as good as the best of all schedules."""
    for rng in check.draws(10, 40):
        drawn = window(rng)
        _hold(check.solve(drawn), drawn, 1e-6)


def bounds(check: Check, kind: str) -> None:
    """The bound is never on the wrong side of the best schedule, whatever the gap asked for."""
    for rng in check.draws(5, 20):
        drawn = window(rng)
        for rel_gap in GAPS:
            _hold(check.solve(drawn, rel_gap=rel_gap), drawn, rel_gap)


def no_time_at_all(check: Check, kind: str) -> None:
    """time_limit=0: no plan, or one with a true bound."""
    for rng in check.draws(3, 10):
        drawn = window(rng)
        result = check.solve(drawn, time_limit=0.0)
        if result.plan is not None:
            _hold(result, drawn, 1e-6, limits=(Limit.TIME, Limit.METHOD))
        elif (result.termination.reason, result.termination.limit) != (Reason.NO_SOLUTION_FOUND, Limit.TIME):
            raise Failure(f"{result.termination} at time_limit=0, of a window that has a schedule")
        _bound_holds(result, drawn)


def warm_start(check: Check, kind: str) -> None:
    """A start that is the optimum, or breaks the capacity: the answer is as good, with a warm start note."""
    check.needs_warm_start()
    for rng in check.draws(3, 10):
        drawn = window(rng)
        cold = check.solve(drawn)
        everyone = WindowPlan(drawn, np.ones((len(drawn.gang_gpus), drawn.rounds), dtype=bool))
        for start in (cold.require_plan(), everyone):
            result = check.solve(drawn, warm_start=start)
            _hold(result, drawn, 1e-6)
            noted(result)


def same_seed(check: Check, kind: str) -> None:
    """The same call gives the same plan, objective and bound, bit by bit."""
    for rng in check.draws(3, 10):
        drawn = window(rng)
        first, second = (check.solve(drawn) for _ in range(2))
        if first.require_plan().grants.tobytes() != second.require_plan().grants.tobytes():
            raise Failure(f"two plans of one call differ for {drawn!r}")
        same_numbers(first, second)


def _hold(
    result: Result[Any], window: ScheduleWindow, rel_gap: float, limits: tuple[Limit, ...] = (Limit.METHOD,)
) -> None:
    best, unit = _best(window), window.gap_scale(0.0)
    if result.objective is None:
        raise Failure(f"{result.termination} of a window that has a schedule")
    if result.objective > best + 1e-9 * unit:
        raise Failure(f"objective {result.objective:.12g} is better than the best of all schedules, {best:.12g}")
    _bound_holds(result, window)
    if result.termination.reason is Reason.OPTIMAL:
        if result.objective < best - (rel_gap + 1e-6) * unit:
            raise Failure(f"objective {result.objective:.12g} is called OPTIMAL; the best is {best:.12g}")
    elif result.termination.limit not in limits:
        raise Failure(f"{result.termination} of {window!r}, which ends at once")


def _bound_holds(result: Result[Any], window: ScheduleWindow) -> None:
    best, unit = _best(window), window.gap_scale(0.0)
    if result.bound < best - 1e-6 * unit:
        raise Failure(f"bound {result.bound:.12g} is on the wrong side of the best of all schedules, {best:.12g}")


@lru_cache(maxsize=64)
def _best(window: ScheduleWindow) -> float:
    return schedules(window).best
