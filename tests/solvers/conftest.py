"""Small random windows, and their optimum by exhaustive search that shares no code with the library's tables."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import equipoise as eq


@dataclass
class Exhausted:
    """Everything there is to know of a small window.

    `values` maps each reachable tuple of rounds per job to the best objective of a work-conserving schedule with these
    rounds; `packable` lists all tuples that any schedule within capacity has, shape (tuples, N).
    """

    best: float
    values: dict[tuple[int, ...], float]
    packable: np.ndarray


def rounds_needed(window: eq.ScheduleWindow, j: int) -> int:
    total = 0
    for r in range(window.regime_starts[j], window.regime_starts[j + 1]):
        seconds = float(window.regime_epochs[r] * window.regime_epoch_s[r])
        total += max(1, math.ceil(seconds / window.round_s - 1e-9))
    return total


def after_rounds(window: eq.ScheduleWindow, j: int, rounds: int) -> tuple[float, float]:
    """Return share of epochs done and isolated rounds left of job j, granted that many rounds, one by one."""
    done, left = float(window.finished_epochs[j]), 0.0
    for r in range(window.regime_starts[j], window.regime_starts[j + 1]):
        seconds = float(window.regime_epochs[r] * window.regime_epoch_s[r])
        need = max(1, math.ceil(seconds / window.round_s - 1e-9))
        used = min(rounds, need)
        rounds -= used
        ran = seconds if used == need else used * window.round_s
        done += ran / float(window.regime_epoch_s[r])
        left += (seconds - ran) / window.round_s
    return min(1.0, done / float(window.total_epochs[j])), left


def counted_objective(window: eq.ScheduleWindow, counts: tuple[int, ...]) -> float:
    """Return the objective of these rounds per job, restarts aside, from the definitions (Eqs 7, 10, 11)."""
    N, M = len(window.gang_gpus), window.gpus
    welfare, total, longest = 0.0, 0.0, 0.0
    for j in range(N):
        utility, left = after_rounds(window, j, counts[j])
        power = float(window.weight[j]) * float(window.ftf[j]) ** window.ftf_power
        welfare += power * math.log(max(utility, window.utility_floor))
        total += (int(window.gang_gpus[j]) if window.gang_weighted else 1) * left
        longest = max(longest, left)
    horizon_s = max(total / M, longest) * window.round_s
    return welfare / (N * M) - window.makespan_weight / window.makespan_scale * horizon_s


def exhaust(window: eq.ScheduleWindow) -> Exhausted:
    N, T, M = len(window.gang_gpus), window.rounds, window.gpus
    needs = [rounds_needed(window, j) for j in range(N)]
    gang_gpus = [int(g) for g in window.gang_gpus]
    fits = [
        s for s in itertools.product((0, 1), repeat=N) if sum(g * x for g, x in zip(gang_gpus, s, strict=True)) <= M
    ]
    idle = {s: M - sum(g * x for g, x in zip(gang_gpus, s, strict=True)) for s in fits}
    packable = {(0,) * N}
    before = tuple(int(x) for x in window.is_running)
    states = {((0,) * N, before): 0}  # rounds had, who ran last -> fewest restarts
    for _ in range(T):
        packable |= {
            tuple(a + b for a, b in zip(had, s, strict=True))
            for had in packable
            for s in fits
            if all(a + b <= n for a, b, n in zip(had, s, needs, strict=True))
        }
        following: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        for (had, last), restarts in states.items():
            for s in fits:
                if any(x and h >= n for x, h, n in zip(s, had, needs, strict=True)):
                    continue
                if any(not x and h < n and g <= idle[s] for x, h, n, g in zip(s, had, needs, gang_gpus, strict=True)):
                    continue
                more = restarts + sum(x > y for x, y in zip(s, last, strict=True))
                key = (tuple(h + x for h, x in zip(had, s, strict=True)), s if window.restart_penalty else before)
                following[key] = min(more, following.get(key, 10**9))
        states = following
    values: dict[tuple[int, ...], float] = {}
    for (had, _), restarts in states.items():
        value = counted_objective(window, had) - window.restart_penalty * (restarts if window.restart_penalty else 0)
        values[had] = max(value, values.get(had, -math.inf))
    return Exhausted(max(values.values()), values, np.array(sorted(packable)))


def small_window(rng: np.random.Generator, *, restarts: bool = False) -> eq.ScheduleWindow:
    """Draw up to 4 jobs, 4 rounds and 3 regimes each: any progress, finished jobs too, later regimes also faster."""
    N, T, M = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, 9))
    gang_gpus = rng.integers(1, M + 1, size=N)
    lengths = rng.integers(1, 4, size=N)
    finished = np.where(rng.random(N) < 0.2, 0.0, rng.integers(1, 10, size=N).astype(float))
    complete = (rng.random(N) < 0.1) & (finished > 0)
    lengths[complete] = 0
    epochs = rng.integers(1, 6, size=lengths.sum()).astype(float)
    owner = np.repeat(np.arange(N), lengths)
    total = finished + np.bincount(owner, weights=epochs, minlength=N)
    whole = rng.random() < 0.3  # regimes of a whole number of rounds
    return eq.ScheduleWindow.from_columns(
        gang_gpus=gang_gpus,
        finished_epochs=finished,
        total_epochs=total,
        regime_starts=np.concatenate(([0], np.cumsum(lengths))),
        regime_epochs=epochs,
        regime_epoch_s=rng.integers(1, 3, size=len(epochs)) * 60.0
        if whole
        else rng.uniform(5.0, 90.0, size=len(epochs)),
        ftf=rng.uniform(0.5, 2.0, size=N),
        weight=rng.choice([0.5, 1.0, 3.0], size=N),
        gpus=M,
        rounds=T,
        round_s=60.0,
        ftf_power=float(rng.choice([0.0, 1.0, 5.0])),
        makespan_weight=float(rng.choice([0.0, 1e-3, 1.0, 10.0])),
        makespan_scale=None if rng.random() < 0.5 else float(rng.uniform(100.0, 2000.0)),
        gang_weighted=bool(rng.random() < 0.7),
        restart_penalty=float(rng.choice([1e-4, 1e-2, 0.2])) if restarts else 0.0,
        running=np.flatnonzero(rng.random(N) < 0.5).tolist() if restarts else (),
    )


@pytest.fixture(scope="session")
def exhausted() -> Callable[[eq.ScheduleWindow], Exhausted]:
    return exhaust


@pytest.fixture(scope="session")
def draw_small() -> Callable[..., eq.ScheduleWindow]:
    return small_window
