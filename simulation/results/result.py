"""Result of a simulation by any engine: jobs, levels over time, calls of the policy, and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from ..decision import CallRecord
from ..traces.trace import Trace
from .metrics import finish_time_fairness, unfair_pct
from .timeline import Levels, Stretches

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulationResult:
    """Result of one simulation. Engines with further quantities return a subclass.

    Attributes
    ----------
    engine, policy : str
        Names of the engine and the policy.
    trace : Trace
    cluster : Cluster
    rules : object
        Rules of the engine.
    start_s, end_s : ndarray of float, shape (N,)
        Start of the first run, and end, of each job, in the order of the trace.
    run_s : ndarray of float, shape (N,)
        Seconds that each job ran, without restarts.
    gpu_s : ndarray of float, shape (N,)
        GPU-seconds that each job ran, without restarts.
    exclusive_s : ndarray of float, shape (N,)
        Run time of each job alone on its whole gang; with several GPU types, on the fastest.
    restarts : ndarray of int, shape (N,)
        Numbers of starts after a pause.
    ended_by : ndarray of str, shape (N,)
        "completed", or another reason why the job ended; empty for an unfinished job.
    levels : Levels
        GPUs in use and numbers of jobs at each step of the engine.
    stretches : Stretches or None
        Intervals in which jobs held GPUs; None if not recorded.
    solve_rows : tuple of CallRecord
        Calls of the policy.
    """

    #: Name of a step of the engine.
    step_name: ClassVar[str] = "step"

    engine: str
    policy: str
    trace: Trace = field(repr=False)
    cluster: Cluster
    rules: Any
    start_s: Floats
    end_s: Floats
    run_s: Floats
    gpu_s: Floats
    exclusive_s: Floats
    restarts: Indices
    ended_by: NDArray[Any]
    levels: Levels
    stretches: Stretches | None
    solve_rows: tuple[CallRecord, ...]

    @property
    def gpus_by_type(self) -> Mapping[str, int]:
        """GPUs of each type."""
        return self.cluster.gpus_by_type

    @property
    def gpus(self) -> int:
        """GPUs of all types (M)."""
        return self.cluster.gpus

    @property
    def jct_s(self) -> Floats:
        """Seconds from arrival to end, shape (N,)."""
        return np.asarray(self.end_s - self.trace.arrival_s)

    @property
    def queue_s(self) -> Floats:
        """Seconds from arrival to the first run, shape (N,)."""
        return np.asarray(self.start_s - self.trace.arrival_s)

    @cached_property
    def ftf(self) -> Floats:
        """Finish-time fairness of each job as Shockwave's released code reports it, shape (N,)."""
        return finish_time_fairness(self.jct_s, self.exclusive_s, jobs=len(self.trace), gpus=self.gpus)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the order of the trace."""
        import pandas as pd

        return pd.DataFrame(
            {
                "job_id": list(self.trace.job_id),
                "model": list(self.trace.model),
                "mode": list(self.trace.mode),
                "gpus": self.trace.gang_gpus,
                "arrival_s": self.trace.arrival_s,
                "start_s": self.start_s,
                "end_s": self.end_s,
                "jct_s": self.jct_s,
                "run_s": self.run_s,
                "exclusive_s": self.exclusive_s,
                "ftf": self.ftf,
                **self._own_columns(),
                "restarts": self.restarts,
                "ended_by": self.ended_by,
            }
        )

    def _own_columns(self) -> Mapping[str, ArrayLike]:
        """Return additional columns of `jobs` of the engine."""
        return {}

    @cached_property
    def solves(self) -> pd.DataFrame:
        """One row per call of the policy: step, time, duration and evidence."""
        import pandas as pd

        table = pd.DataFrame(list(self.solve_rows), columns=list(CallRecord._fields))
        return table.rename(columns={"step": self.step_name})

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a folder of results, by name."""
        return {"jobs": self.jobs, "levels": self.levels.to_frame(), "solves": self.solves}

    def of(self, which: ArrayLike) -> Mapping[str, float]:
        """Return the metrics of a subset of the jobs.

        Parameters
        ----------
        which : array_like of bool, shape (N,)
            Mask of the jobs, such as `result.trace.gang_gpus > 4`.

        Returns
        -------
        mapping of str to float
            jobs (their number), makespan_s (first arrival to last end), avg_jct_s, median_jct_s, p95_jct_s,
            p99_jct_s, avg_queue_s (arrival to first run), worst_ftf, unfair_pct (share of jobs with an ftf beyond
            1.05, in percent), utilisation (GPU-seconds run over all GPUs times makespan).

        Raises
        ------
        InvalidInput
            If the mask has another shape or selects no job.
        """
        mask = np.asarray(which)
        if mask.dtype != np.bool_ or mask.shape != (len(self.trace),):
            raise InvalidInput("which", f"{mask.dtype} of shape {mask.shape}", f"must be {len(self.trace)} booleans")
        if not mask.any():
            raise InvalidInput("which", "all False", "must select at least one job")
        jct_s, ftf = self.jct_s[mask], self.ftf[mask]
        makespan_s = float(self.end_s[mask].max() - self.trace.arrival_s[mask].min())
        median, p95, p99 = (float(each) for each in np.percentile(jct_s, (50.0, 95.0, 99.0)))
        return {
            "jobs": len(jct_s),
            "makespan_s": makespan_s,
            "avg_jct_s": float(jct_s.mean()),
            "median_jct_s": median,
            "p95_jct_s": p95,
            "p99_jct_s": p99,
            "avg_queue_s": float(self.queue_s[mask].mean()),
            "worst_ftf": float(ftf.max()),
            "unfair_pct": unfair_pct(ftf),
            "utilisation": float(self.gpu_s[mask].sum() / (self.gpus * makespan_s)),
        }

    @cached_property
    def common_metrics(self) -> Mapping[str, float]:
        """Metrics common to all engines: those of all jobs by `of`, calls, solve_s and slowest_solve_s."""
        walls_s = [call.wall_s for call in self.solve_rows]
        return {
            **self.of(np.ones(len(self.trace), dtype=bool)),
            "calls": len(walls_s),
            "solve_s": float(sum(walls_s)),
            "slowest_solve_s": float(max(walls_s, default=0.0)),
        }

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of the simulation."""
        return self.common_metrics

    def __repr__(self) -> str:
        figures = self.metrics
        return (
            f"<{type(self).__name__}: {self.policy}, {len(self.trace)} jobs on {self.gpus} GPUs, "
            f"makespan {figures['makespan_s']:.0f} s, average JCT {figures['avg_jct_s']:.0f} s, "
            f"worst FTF {figures['worst_ftf']:.2f}, unfair {figures['unfair_pct']:.1f}%>"
        )
