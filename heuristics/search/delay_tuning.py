"""DelayTuning: the search for delay timers that suit a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.search.delay_space import DelaySpace
from ...formulations.search.objective import Objective
from ...simulation.cluster import Cluster
from ...simulation.network import TableSpeeds
from ...simulation.placement.policy import PlacementPolicy
from ...simulation.placement.rules import PlacementRules
from ...simulation.placement.speeds import Speeds
from ...simulation.traces.trace import Trace
from .delay_scores import VALUES, DelayScores
from .history_samples import HistorySamples
from .sampled_search import SampledSearch

#: Rules of the experiments of Dally: a checkpoint takes a second for each GPU.
RULES = PlacementRules(checkpoint_s_per_gpu=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayTuning(SampledSearch):
    """Find delay timers of Dally whose scores on samples of a workload no other ones dominate.

    Parameters
    ----------
    train : tuple of Trace
        Samples on which timers are scored, each by a simulation under `DallyManualPolicy`; a score is the mean over
        them.
    test : tuple of Trace
        Samples for `held_out_scores` alone.
    cluster : Cluster, int or mapping of str to int
        Cluster with machines and racks.
    objectives : sequence of one to four objectives
        Metrics "jct" (from arrival to end), "waited" (time without GPUs) and "communication" (exposed), each by "avg"
        or a percentile such as "p99", and "makespan"; all in seconds.
    speeds : Speeds, optional
        By default the measured table of six models.
    rules : PlacementRules
        By default a checkpoint takes a second for each GPU.
    lease_s, offer_s, keep
        Options of the policies; see `DelayPolicy`.
    space : {"by_demand", "shared"}
        Whether each number of GPUs has timers of its own; see `DelaySpace`.
    reference : array_like of float, shape (m,), optional
        Scores from which on timers are of no interest; by default 1.1 times the worst scores of the starts ("nowait",
        "manual" and "consolidated", the policies of these names), computed on construction.

    Raises
    ------
    InvalidInput
        If a field is out of range, a job cannot run on the cluster, or no timer can change a decision.
    """

    metrics: ClassVar[tuple[str, ...]] = tuple(VALUES)
    single_metrics: ClassVar[tuple[str, ...]] = ("makespan",)

    cluster: Cluster | int | Mapping[str, int]
    objectives: tuple[Objective, ...] = ("jct:avg", "makespan")  # type: ignore[assignment]  # checked on construction
    speeds: Speeds | None = None
    rules: PlacementRules = RULES
    lease_s: float = 3600.0
    offer_s: float | None = None
    keep: bool = True
    space: str = "by_demand"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cluster", Cluster.of(self.cluster))
        if self.speeds is None:
            object.__setattr__(self, "speeds", TableSpeeds(cluster=Cluster.of(self.cluster)))
        super().__post_init__()

    def _scores(self, traces: tuple[Trace, ...]) -> DelayScores:
        names = ("cluster", "speeds", "rules", "lease_s", "offer_s", "keep", "objectives")
        return DelayScores(traces=traces, **{name: getattr(self, name) for name in names})

    @cached_property
    def _space(self) -> DelaySpace:
        cluster = Cluster.of(self.cluster)
        machines, racks = cluster.machines or 1, cluster.racks or 1
        return DelaySpace(
            demands=np.concatenate([trace.gang_gpus for trace in self.train]).tolist(),
            # Where a rack has one machine, a placement within a rack is one within a machine.
            machine_gpus=cluster.gpus // machines if machines > racks else 0,
            rack_gpus=cluster.gpus // racks if racks > 1 else 0,
            name=self.space,
        )

    def scores_of_policy(self, policy: PlacementPolicy, *, held_out: bool = False) -> Floats:
        """Return the scores of any policy of the placement engine on the training or the test samples, shape (m,)."""
        found: Floats = self._scores_on(held_out).of_policy(policy)
        return found

    @classmethod
    def from_history(
        cls,
        trace: Trace,
        *,
        cluster: Cluster | int | Mapping[str, int],
        samples: int = 1,
        held_out: int = 1,
        jobs: int = 400,
        load: float | None = None,
        seed: int = 0,
        **options: Any,
    ) -> DelayTuning:
        """Return the search on samples drawn from a history of jobs.

        Parameters
        ----------
        trace : Trace
            History, at least 10 jobs.
        cluster : Cluster, int or mapping of str to int
        samples, held_out : int
            Numbers of training and of test samples; no two have the same draws.
        jobs : int
            Jobs of each sample: rows of the history, drawn with replacement. They arrive with exponential gaps, or all
            at once if those of the history do and there is no `load`.
        load : float, optional
            GPU-seconds that arrive per second, over all GPUs, where a job alone at its fastest takes its run time on
            each of its GPUs; by default the mean gap is that of the history.
        seed : int
        **options
            `objectives`, `speeds`, `rules`, `lease_s`, `offer_s`, `keep`, `space` and `reference`, as above.

        Raises
        ------
        InvalidInput
            If the history is too small, or an argument is out of range.

        Examples
        --------
        >>> from equipoise.simulation import Cluster, Trace
        >>> history = Trace(
        ...     job_id=range(12), model=["VGG11", "ResNet50"] * 6, arrival_s=[600.0 * job for job in range(12)],
        ...     gang_gpus=[1, 2, 4, 8] * 3, duration_s=[3600.0] * 12,
        ... )  # fmt: skip
        >>> cluster = Cluster(gpus_by_type={"gpu": 16}, machines=4, racks=2)
        >>> tuning = DelayTuning.from_history(history, cluster=cluster, jobs=20)
        >>> [variable.name for variable in tuning.variables]
        ['machine[2]', 'machine[4]', 'rack[2]', 'rack[4]', 'rack[8]']
        >>> tuning.configuration(tuning.starts["manual"]).of(4)
        TimerPair(machine_s=43200.0, rack_s=86400.0)
        """
        history = HistorySamples(
            trace=trace, samples=samples, held_out=held_out, jobs=jobs, load=load, seed=seed, batches=True
        )
        found = Cluster.of(cluster)
        speeds = options.pop("speeds", None) or TableSpeeds(cluster=found)

        def gpu_s() -> Floats:
            return DelayScores(
                traces=(trace,), cluster=found, speeds=speeds, rules=RULES, lease_s=3600.0, offer_s=None, keep=True,
                objectives=(),
            ).gpu_s  # fmt: skip

        train, test = history.drawn(found.gpus, gpu_s)
        return cls(train=train, test=test, cluster=found, speeds=speeds, **options)
