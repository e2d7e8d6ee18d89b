"""Scores of weighted fair queues on several GPU types, by the rounds engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ...formulations.search.objective import Objective
from ...formulations.search.wfq_config import WfqConfig
from ...simulation.cluster import Cluster
from ...simulation.profiles.table import Profiles
from ...simulation.rounds.admission import admit_jobs
from ...simulation.rounds.cluster import RoundCluster
from ...simulation.rounds.engine import simulate_rounds
from ...simulation.rounds.result import RoundResult
from ...simulation.rounds.rules import RoundRules
from ...simulation.traces.trace import Trace
from ..rounds.wfq import WfqPolicy


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundScores:
    """Scores of configurations on traces: means over the traces of measures over their jobs.

    Parameters
    ----------
    traces : tuple of Trace
    cluster : Cluster
    profiles : Profiles or mapping of str to Profiles
        Rates, one for all GPU types or one for each.
    rules : RoundRules
    objectives : tuple of Objective
        Of the metrics "jct" and "unfairness".

    Raises
    ------
    InvalidInput
        If a metric is "pred_error", or a trace does not fit the cluster or the profiles.
    """

    traces: tuple[Trace, ...]
    cluster: Cluster
    profiles: Profiles | Mapping[str, Profiles]
    rules: RoundRules
    objectives: tuple[Objective, ...]

    def __post_init__(self) -> None:
        for index, each in enumerate(self.objectives):
            if each.metric == "pred_error":
                why = "several GPU types are simulated by the rounds engine, which predicts no ends"
                raise InvalidInput("objectives", str(each), why, index=index)
        for trace in self.traces:
            self._sizes_of(trace)

    def _sizes_of(self, trace: Trace) -> Floats:
        """Return the sizes by which the policy divides jobs into queues, shape (N,); see `size_gpu_s` there."""
        try:
            jobs = admit_jobs(
                trace, RoundCluster(self.cluster, self.profiles), follow_schedules=self.rules.follow_schedules
            )
        except InvalidInput as error:
            raise trace.locate(error) from None
        return np.array([job.total_steps / job.rates.max() * job.gang_gpus for job in jobs])

    @property
    def sizes_s(self) -> Floats:
        """Sizes of the jobs of all traces, in GPU-seconds on the fastest type."""
        return np.concatenate([self._sizes_of(trace) for trace in self.traces])

    @property
    def ideal(self) -> Floats:
        """Zeros, shape (m,): this engine may end a job early, so that no other bound is proved."""
        return np.zeros(len(self.objectives))

    def of(self, config: WfqConfig) -> Floats:
        """Return the scores of a configuration, shape (m,)."""
        rows = []
        for trace in self.traces:
            result = simulate_rounds(
                trace,
                WfqPolicy(config=config),
                gpus=self.cluster,
                profiles=self.profiles,
                rules=self.rules,
                record=False,
            )
            values = {"jct": result.jct_s, "unfairness": unfairness(result)}
            rows.append([each.of(values[each.metric]) for each in self.objectives])
        return np.asarray(np.mean(rows, axis=0))


def unfairness(result: RoundResult) -> Floats:
    """Return the share by which each job's time exceeds its fair finish time, shape (N,).

    The fair finish time is that of the fluid engine for a job that runs on its whole gang of g GPUs or not at all:
    ``exclusive time x max(1, g c / M)``, with the mean number c of jobs present over the rounds from arrival to end.
    The exclusive time is that on the fastest GPU type, while M counts all types: where some are slower, a fair
    share of time may count as unfair.
    """
    contention = np.maximum(1.0, result.mean_jobs)
    fair_s = result.exclusive_s * np.maximum(1.0, result.trace.gang_gpus * contention / result.gpus)
    return np.asarray(np.maximum(0.0, result.jct_s / fair_s - 1.0))
