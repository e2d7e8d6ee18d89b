"""Result of the placement engine: machines, preemptions, moves, sharing and communication of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats, Indices
from ..results.result import SimulationResult
from .rules import PlacementRules

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class TimerLog:
    """Changes of the delay timers that a policy tuned during a run, in order of time, each of shape (L,).

    `timer_s` is the value that the timer of a tier (0 machine, 1 rack) and a demand in GPUs has from `time_s` on, in
    seconds, which may be infinite.
    """

    time_s: Floats
    tier: Indices
    demand: Indices
    timer_s: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, int, int, float]]) -> TimerLog:
        """Return the log of (time, tier, demand, timer), one row for each change."""
        time_s, tier, demand, timer_s = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(
            time_s=np.array(time_s, dtype=np.float64),
            tier=np.array(tier, dtype=np.int64),
            demand=np.array(demand, dtype=np.int64),
            timer_s=np.array(timer_s, dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.time_s)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table, one row per change."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PlacementResult(SimulationResult):
    """Result of one simulation by the placement engine.

    Attributes
    ----------
    rules : PlacementRules
    held_s : ndarray of float, shape (N,)
        Seconds that each job held GPUs, with restarts.
    exposed_s : ndarray of float, shape (N,)
        Seconds of communication that computation did not hide; 0 where the speeds do not know it.
    shared_gpu_s : ndarray of float, shape (N,)
        GPU-seconds that each job ran on GPUs that it shared.
    machines, tier : ndarray of int, shape (N,)
        Most machines that a job was on at a time, and the highest network tier (0 machine, 1 rack, 2 network).
    preemptions, moves : ndarray of int, shape (N,)
        Stops before the end, and moves to other GPUs.
    timers : TimerLog or None
        Changes of the delay timers; None if the policy tunes none.
    """

    rules: PlacementRules
    held_s: Floats
    exposed_s: Floats
    shared_gpu_s: Floats
    machines: Indices
    tier: Indices
    preemptions: Indices
    moves: Indices
    timers: TimerLog | None = None

    @property
    def waited_s(self) -> Floats:
        """Seconds from arrival to end in which a job held no GPUs (queueing time), shape (N,)."""
        return np.asarray(np.maximum(0.0, self.jct_s - self.held_s))

    def _own_columns(self) -> Mapping[str, ArrayLike]:
        return {
            "waited_s": self.waited_s,
            "exposed_s": self.exposed_s,
            "shared_gpu_s": self.shared_gpu_s,
            "machines": self.machines,
            "tier": self.tier,
            "preemptions": self.preemptions,
            "moves": self.moves,
        }

    def of(self, which: ArrayLike) -> Mapping[str, float]:
        """Return the metrics of a subset of the jobs: those of `SimulationResult.of`, and further ones.

        avg_waited_s, median_waited_s, p95_waited_s and p99_waited_s (time without GPUs between arrival and end, that
        is, queueing time); avg_exposed_s, median_exposed_s, p95_exposed_s and p99_exposed_s (communication that
        computation did not hide); billed_gpu_h (all GPUs of the cluster times makespan, in GPU-hours); preemptions,
        moves and restarts (sums), and shared_pct (GPU-seconds on shared GPUs as a share of those run, in percent).
        """
        common = super().of(which)
        mask = np.asarray(which)
        ran = float(self.gpu_s[mask].sum())
        return {
            **common,
            **_spread("waited_s", self.waited_s[mask]),
            **_spread("exposed_s", self.exposed_s[mask]),
            "billed_gpu_h": self.gpus * common["makespan_s"] / 3600.0,
            "preemptions": int(self.preemptions[mask].sum()),
            "moves": int(self.moves[mask].sum()),
            "restarts": int(self.restarts[mask].sum()),
            "shared_pct": 100.0 * float(self.shared_gpu_s[mask].sum()) / ran if ran else 0.0,
        }

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a folder of results, by name; `timers` if the policy tuned any."""
        return {**super().tables(), **({} if self.timers is None else {"timers": self.timers.to_frame()})}


def _spread(name: str, values: Floats) -> dict[str, float]:
    """Return the mean and percentiles of a quantity of jobs, as metrics."""
    median, p95, p99 = np.percentile(values, (50.0, 95.0, 99.0)).tolist()
    return {f"avg_{name}": float(values.mean()), f"median_{name}": median, f"p95_{name}": p95, f"p99_{name}": p99}
