"""What a simulation returns: tables of jobs, rounds, runs and policy calls, the schedule, and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ..rounds.decisions import SOLVE_COLUMNS
from ..rounds.rules import RoundRules
from ..traces.trace import Trace
from .metrics import UNFAIR_FTF, envy, finish_time_fairness, unfair_pct

if TYPE_CHECKING:
    import pandas as pd

ROUND_COLUMNS = (
    "round",
    "start_s",
    "end_s",
    "gpus_busy",
    "jobs_running",
    "jobs_waiting",
    "arrived",
    "ended",
    "rescaled",
    "calls",
)
RUN_COLUMNS = (
    "round",
    "place",
    "gpu_type",
    "gpu_ids",
    "first",
    "lease_extended",
    "restart_s",
    "batch_size",
    "steps",
    "run_s",
    "steps_run",
    "total_steps",
    "next_batch_size",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulationResult:
    """One run of the rounds engine.

    Attributes
    ----------
    policy : str
        Its name.
    trace : Trace
    gpus_by_type : mapping of str to int
        GPUs of each type.
    rules : RoundRules
    start_s, end_s : ndarray of float, shape (N,)
        First run and end of each job, in the order of the trace.
    run_s : ndarray of float, shape (N,)
        Seconds that it ran, restarts not counted.
    exclusive_s : ndarray of float, shape (N,)
        Seconds it would run alone along its true trajectory, on the fastest GPU type for each batch size.
    rounds_run, rounds_waited, restarts : ndarray of int, shape (N,)
        Rounds in which it ran, and in which it was there and did not; starts after a pause.
    ended_by : ndarray of str, shape (N,)
        "completed", "overrun" or "stalled".
    round_rows, run_rows, solve_rows : tuple of tuple
        What `rounds`, `runs` and `solves` show.
    """

    policy: str
    trace: Trace = field(repr=False)
    gpus_by_type: Mapping[str, int]
    rules: RoundRules
    start_s: Floats
    end_s: Floats
    run_s: Floats
    exclusive_s: Floats
    rounds_run: Indices
    rounds_waited: Indices
    restarts: Indices
    ended_by: NDArray[Any]
    round_rows: tuple[tuple[Any, ...], ...]
    run_rows: tuple[tuple[Any, ...], ...]
    solve_rows: tuple[tuple[Any, ...], ...]

    @property
    def gpus(self) -> int:
        """GPUs of all types (M)."""
        return sum(self.gpus_by_type.values())

    @property
    def jct_s(self) -> Floats:
        """Seconds from arrival to end, shape (N,)."""
        return np.asarray(self.end_s - self.trace.arrival_s)

    @cached_property
    def ftf(self) -> Floats:
        """Finish-time fairness of each job as the released code reports it, shape (N,)."""
        return finish_time_fairness(self.jct_s, self.exclusive_s, jobs=len(self.trace), gpus=self.gpus)

    @cached_property
    def contended_ftf(self) -> Floats:
        """JCT over exclusive time stretched by max(1, mean jobs/M over the rounds of the job's life), shape (N,).

        The released code prints it beside the other as Themis's finish-time fairness; Eq. 9 of the paper has the
        same contention in it.
        """
        there = np.array([row[4] + row[5] for row in self.round_rows], dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(there)])
        end = np.zeros(len(self.trace), dtype=np.int64)
        for row in self.run_rows:
            end[row[1]] = row[0] + 1  # rows are in the order of rounds
        # Of an interrupted run, jobs may not have run at all; what this says of them is not used.
        rounds = np.clip(self.rounds_run + self.rounds_waited, 1, np.maximum(end, 1))
        mean_jobs = (before[end] - before[np.maximum(end - rounds, 0)]) / rounds
        return np.asarray(self.jct_s / (self.exclusive_s * np.maximum(1.0, mean_jobs / self.gpus)))

    @property
    def round_shares(self) -> Floats:
        """Rounds run over rounds run or waited, shape (N,)."""
        return np.asarray(self.rounds_run / (self.rounds_run + self.rounds_waited))

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the order of the trace."""
        import pandas as pd

        return pd.DataFrame(
            {
                "job_id": list(self.trace.job_id),
                "model": list(self.trace.model),
                "mode": list(self.trace.mode),
                "gpus": self.trace.num_gpus,
                "arrival_s": self.trace.arrival_s,
                "start_s": self.start_s,
                "end_s": self.end_s,
                "jct_s": self.jct_s,
                "run_s": self.run_s,
                "exclusive_s": self.exclusive_s,
                "ftf": self.ftf,
                "contended_ftf": self.contended_ftf,
                "rounds": self.rounds_run,
                "rounds_waited": self.rounds_waited,
                "restarts": self.restarts,
                "ended_by": self.ended_by,
            }
        )

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per round: start, end, GPUs held, jobs running and waiting, arrivals, ends, rescalings, calls."""
        import pandas as pd

        return pd.DataFrame(list(self.round_rows), columns=list(ROUND_COLUMNS))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per job and round in which it ran.

        `gpu_type` and `gpu_ids` say where; `first` marks a job's first run; `lease_extended` that it kept its GPUs;
        `restart_s` what a restart took. `steps` and `run_s` are what it did at `batch_size`; `steps_run`,
        `total_steps` and `next_batch_size` hold after the round, steps at the next size.
        """
        import pandas as pd

        table = pd.DataFrame(list(self.run_rows), columns=list(RUN_COLUMNS))
        types = list(self.gpus_by_type)
        table["gpu_type"] = [types[kind] for kind in table["gpu_type"]]
        table.insert(1, "job_id", [self.trace.job_id[place] for place in table.pop("place")])
        return table

    @cached_property
    def solves(self) -> pd.DataFrame:
        """One row per call of the policy: the round it was for, when, how long it took, and its evidence."""
        import pandas as pd

        return pd.DataFrame(list(self.solve_rows), columns=list(SOLVE_COLUMNS))

    @cached_property
    def schedule(self) -> tuple[tuple[str | int, ...], ...]:
        """Ids of the jobs that ran, by round, in the order in which they were taken."""
        rounds: list[list[str | int]] = [[] for _ in self.round_rows]
        for row in self.run_rows:
            rounds[row[0]].append(self.trace.job_id[row[1]])
        return tuple(tuple(ids) for ids in rounds)

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """The figures of the run.

        makespan_s (first arrival to last end), avg_jct_s; worst_ftf, avg_ftf, worst_contended_ftf; unfair_pct (share
        of jobs with an ftf beyond 1.05, in percent), unfair_1_00_pct, unfair_1_10_pct; utilisation (GPU-seconds run
        over GPUs times makespan); envy_mean, envy_max; lease_extensions, lease_opportunities (runs but each job's
        first) and their ratio lease_extension_pct; restarts; rounds; calls, solve_s and slowest_solve_s of the
        policy; overrun and stalled (jobs that ended so).
        """
        jct_s = self.jct_s
        makespan_s = float(self.end_s.max() - self.trace.arrival_s.min())
        unfair = {threshold: unfair_pct(self.ftf, threshold) for threshold in UNFAIR_FTF}
        envy_mean, envy_max = envy(self.round_shares)
        opportunities = sum(not row[4] for row in self.run_rows)
        extensions = sum(row[5] for row in self.run_rows)
        walls_s = [row[SOLVE_COLUMNS.index("wall_s")] for row in self.solve_rows]
        return {
            "makespan_s": makespan_s,
            "avg_jct_s": float(jct_s.mean()),
            "worst_ftf": float(self.ftf.max()),
            "avg_ftf": float(self.ftf.mean()),
            "worst_contended_ftf": float(self.contended_ftf.max()),
            "unfair_pct": unfair[1.05],
            "unfair_1_00_pct": unfair[1.0],
            "unfair_1_10_pct": unfair[1.1],
            "utilisation": float((self.run_s * self.trace.num_gpus).sum() / (self.gpus * makespan_s)),
            "envy_mean": envy_mean,
            "envy_max": envy_max,
            "lease_extensions": extensions,
            "lease_opportunities": opportunities,
            "lease_extension_pct": 100.0 * extensions / opportunities if opportunities else 0.0,
            "restarts": int(self.restarts.sum()),
            "rounds": len(self.round_rows),
            "calls": len(walls_s),
            "solve_s": float(sum(walls_s)),
            "slowest_solve_s": float(max(walls_s)),
            "overrun": int((self.ended_by == "overrun").sum()),
            "stalled": int((self.ended_by == "stalled").sum()),
        }

    def __repr__(self) -> str:
        figures = self.metrics
        return (
            f"<SimulationResult: {self.policy}, {len(self.trace)} jobs on {self.gpus} GPUs, "
            f"makespan {figures['makespan_s']:.0f} s, average JCT {figures['avg_jct_s']:.0f} s, "
            f"worst FTF {figures['worst_ftf']:.2f}, unfair {figures['unfair_pct']:.1f}%>"
        )
