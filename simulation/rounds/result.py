"""Result of the rounds engine: rounds, runs, schedule, envy and leases in addition to the common fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ..results.metrics import UNFAIR_FTF, envy, unfair_pct
from ..results.result import SimulationResult
from .rules import RoundRules

if TYPE_CHECKING:
    import pandas as pd


class RoundRecord(NamedTuple):
    """Record of one round; times in seconds, counts of GPUs and jobs."""

    round: int
    start_s: float
    end_s: float
    gpus_busy: int
    jobs_running: int
    jobs_waiting: int
    arrived: int
    ended: int
    rescaled: int
    calls: int


class RunRecord(NamedTuple):
    """Record of one job's run in a round, on these GPUs (by number within their type).

    `first` and `lease_extended` are whether this was the job's first run, and whether it kept its GPUs; `restart_s` is
    the time lost to a restart. `steps_run`, `total_steps` and `next_batch_size` hold after the round, with steps at the
    next batch size.
    """

    round: int
    trace_index: int
    gpu_type: int
    gpu_ids: tuple[int, ...]
    first: bool
    lease_extended: bool
    restart_s: float
    batch_size: int
    steps: int
    run_s: float
    steps_run: int
    total_steps: int
    next_batch_size: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RoundResult(SimulationResult):
    """Result of one simulation by the rounds engine.

    Attributes
    ----------
    rules : RoundRules
    rounds_run, rounds_waited : ndarray of int, shape (N,)
        Rounds in which each job ran, and in which it was present and did not run.
    last_round : ndarray of int, shape (N,)
        Last round in which each job ran; -1 if it did not run.
    lease_extensions : int
        Number of runs on the same GPUs as in the preceding round.
    round_rows : tuple of RoundRecord
        Rows of the table `rounds`.
    run_values : tuple of tuple or None
        Fields of `run_rows`; None if runs were not recorded.
    """

    step_name: ClassVar[str] = "round"

    rules: RoundRules
    rounds_run: Indices
    rounds_waited: Indices
    last_round: Indices
    lease_extensions: int
    round_rows: tuple[RoundRecord, ...]
    run_values: tuple[tuple[Any, ...], ...] | None

    @cached_property
    def contended_ftf(self) -> Floats:
        """JCT over exclusive time x max(1, mean jobs/M over the rounds from arrival to end), shape (N,).

        The released code also prints this ratio, as Themis's finish-time fairness; Eq. 9 of the paper uses the same
        contention.
        """
        return np.asarray(self.jct_s / (self.exclusive_s * np.maximum(1.0, self.mean_jobs / self.gpus)))

    @cached_property
    def mean_jobs(self) -> Floats:
        """Mean number of jobs present over the rounds from each job's arrival to its end, shape (N,)."""
        present = np.array([row.jobs_running + row.jobs_waiting for row in self.round_rows], dtype=np.float64)
        before = np.concatenate([[0.0], np.cumsum(present)])
        # After an interrupt, a job may not have run, or only in a round that did not end; its value is not used.
        end = np.minimum(self.last_round + 1, len(self.round_rows))
        rounds = np.clip(self.rounds_run + self.rounds_waited, 1, np.maximum(end, 1))
        return np.asarray((before[end] - before[np.maximum(end - rounds, 0)]) / rounds)

    @property
    def round_shares(self) -> Floats:
        """Rounds run over rounds run or waited, shape (N,)."""
        return np.asarray(self.rounds_run / (self.rounds_run + self.rounds_waited))

    def _own_columns(self) -> Mapping[str, ArrayLike]:
        return {"contended_ftf": self.contended_ftf, "rounds": self.rounds_run, "rounds_waited": self.rounds_waited}

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per round: start, end, GPUs held, jobs running and waiting, arrivals, ends, rescalings, calls."""
        import pandas as pd

        return pd.DataFrame(list(self.round_rows), columns=list(RoundRecord._fields))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per job and round in which it ran.

        `gpu_type` and `gpu_ids` are the GPUs held; `first` marks a job's first run, `lease_extended` a run on the GPUs
        of the preceding round; `restart_s` is the time lost to a restart. `steps` and `run_s` count the run at
        `batch_size`; `steps_run`, `total_steps` and `next_batch_size` hold after the round, with steps at the next
        size.
        """
        import pandas as pd

        table = pd.DataFrame(list(self.run_rows), columns=list(RunRecord._fields))
        types = self.cluster.types
        table["gpu_type"] = [types[index] for index in table["gpu_type"]]
        table.insert(1, "job_id", [self.trace.job_id[trace_index] for trace_index in table.pop("trace_index")])
        return table

    @cached_property
    def schedule(self) -> tuple[tuple[str | int, ...], ...]:
        """Ids of the jobs that ran in each round, in order of selection."""
        rounds: list[list[str | int]] = [[] for _ in self.round_rows]
        for run in self.run_rows:
            rounds[run.round].append(self.trace.job_id[run.trace_index])
        return tuple(tuple(ids) for ids in rounds)

    @cached_property
    def run_rows(self) -> tuple[RunRecord, ...]:
        """Records of the runs of jobs in rounds, the rows of the table `runs`."""
        if self.run_values is None:
            raise InvalidInput("record", False, "the runs were not recorded; simulate with record=True")
        return tuple(map(RunRecord._make, self.run_values))

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a folder of results, by name."""
        return {"jobs": self.jobs, "rounds": self.rounds, "solves": self.solves}

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of the simulation.

        makespan_s (first arrival to last end), avg_jct_s; worst_ftf, avg_ftf, worst_contended_ftf; unfair_pct (share
        of jobs with an ftf beyond 1.05, in percent), unfair_1_00_pct, unfair_1_10_pct; utilisation (GPU-seconds run
        over GPUs times makespan); envy_mean, envy_max; lease_extensions, lease_opportunities (runs but each job's
        first) and their ratio lease_extension_pct; restarts; rounds; calls, solve_s and slowest_solve_s of the
        policy; overrun and stalled (numbers of jobs that ended for these reasons).
        """
        common = self.common_metrics
        unfair = {threshold: unfair_pct(self.ftf, threshold) for threshold in UNFAIR_FTF}
        envy_mean, envy_max = envy(self.round_shares)
        extensions, opportunities = self.lease_extensions, int((self.rounds_run - 1).sum())
        return {
            **{name: common[name] for name in ("makespan_s", "avg_jct_s", "worst_ftf")},
            "avg_ftf": float(self.ftf.mean()),
            "worst_contended_ftf": float(self.contended_ftf.max()),
            "unfair_pct": unfair[1.05],
            "unfair_1_00_pct": unfair[1.0],
            "unfair_1_10_pct": unfair[1.1],
            "utilisation": common["utilisation"],
            "envy_mean": envy_mean,
            "envy_max": envy_max,
            "lease_extensions": extensions,
            "lease_opportunities": opportunities,
            "lease_extension_pct": 100.0 * extensions / opportunities if opportunities else 0.0,
            "restarts": int(self.restarts.sum()),
            "rounds": len(self.round_rows),
            **{name: common[name] for name in ("calls", "solve_s", "slowest_solve_s")},
            "overrun": int((self.ended_by == "overrun").sum()),
            "stalled": int((self.ended_by == "stalled").sum()),
        }
