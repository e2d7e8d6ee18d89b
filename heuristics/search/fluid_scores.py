"""Scores of weighted fair queues by the fluid engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import refuse
from ...formulations.search.objective import Objective
from ...formulations.search.wfq_config import WfqConfig
from ...simulation.cluster import Cluster
from ...simulation.fluid.engine import checked_cluster
from ...simulation.fluid.job import fluid_jobs
from ...simulation.fluid.rules import FluidRules
from ...simulation.fluid.speedups import Speedups
from ...simulation.results.interrupt import play
from ...simulation.traces.trace import Trace
from ..fluid.wfq import WfqPolicy

if TYPE_CHECKING:
    from ...simulation.fluid.compiled import FluidSetup

#: Metrics, and the columns of a result that hold them by job.
COLUMNS = {"jct": "jct_s", "pred_error": "error_pct", "unfairness": "unfairness"}
# Ends and arrivals are rounded to microseconds at most, and a job ends when almost no work is left.
_CLOCK_S, _DONE = 2e-6, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class FluidScores:
    """Scores of configurations on traces: means over the traces of measures over their jobs.

    Parameters
    ----------
    traces : tuple of Trace
    cluster : Cluster
        GPUs of one type.
    speedups : Speedups
    rules : FluidRules
        Ends are predicted if an objective needs that, whatever the rules say.
    objectives : tuple of Objective
        Of the metrics of `COLUMNS`.

    Raises
    ------
    InvalidInput
        If a trace does not fit the cluster or the speedups, or a table falls up to the demand of a job: PCS divides
        GPUs as if more of them were never slower.
    """

    traces: tuple[Trace, ...]
    cluster: Cluster
    speedups: Speedups
    rules: FluidRules
    objectives: tuple[Objective, ...]

    def __post_init__(self) -> None:
        predict = any(each.metric == "pred_error" for each in self.objectives)
        object.__setattr__(self, "rules", replace(self.rules, predict=predict))
        for trace in self.traces:
            checked_cluster(trace, self.cluster, self.speedups)
            jobs = fluid_jobs(trace, self._on_cluster, self.rules)
            for speedups, job in {id(job.speedups): (job.speedups, job) for job in jobs}.values():
                falls = np.diff(speedups) < 0.0
                refuse(f"speedups[{trace.model[job.trace_index]}]", falls, np.array(speedups[1:]), "the table falls")

    @cached_property
    def _on_cluster(self) -> Speedups:
        return self.speedups.on(self.cluster)

    @cached_property
    def _setups(self) -> Sequence[FluidSetup]:
        # Loading numba takes a second.
        from ...simulation.fluid.compiled import FluidSetup

        return [FluidSetup(trace, self.cluster, self._on_cluster, self.rules) for trace in self.traces]

    @property
    def sizes_s(self) -> Floats:
        """Sizes of the jobs of all traces, in seconds on one GPU."""
        return np.concatenate([self._on_cluster.sizes_s(trace) for trace in self.traces])

    @property
    def ideal(self) -> Floats:
        """Scores that no configuration falls below, shape (m,).

        No job ends before it would alone, on the number of GPUs on which it is fastest; and measures over jobs do not
        fall when the time of a job rises. Errors and unfairness are at least 0.
        """
        least_s = [self._least_s(trace) for trace in self.traces]
        return np.array([
            np.mean([each.of(times_s) for times_s in least_s]) if each.metric == "jct" else 0.0
            for each in self.objectives
        ])  # fmt: skip

    def _least_s(self, trace: Trace) -> Floats:
        """Return the time of each job alone, shape (N,)."""
        jobs = fluid_jobs(trace, self._on_cluster, self.rules)
        found = np.empty(len(jobs))
        for job in jobs:
            found[job.trace_index] = job.true_size_s / max(job.speedups[: self.cluster.gpus + 1])
        return np.maximum(0.0, found * (1.0 - _DONE) - _CLOCK_S)

    def of(self, config: WfqConfig) -> Floats:
        """Return the scores of a configuration, shape (m,)."""
        from ...simulation.fluid.compiled import CompiledRun

        rows = []
        for setup in self._setups:
            policy: Any = WfqPolicy(config=config)  # its name is that of the class
            run = CompiledRun(setup, policy, policy.rule, record=False, bounds=False)
            result = play(run, len(setup.trace))
            rows.append([each.of(getattr(result, COLUMNS[each.metric])) for each in self.objectives])
        return np.asarray(np.mean(rows, axis=0))
