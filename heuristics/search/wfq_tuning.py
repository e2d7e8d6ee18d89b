"""WfqTuning: the search for weighted fair queues that suit a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ...formulations.errors import InvalidInput
from ...formulations.search.objective import Objective
from ...formulations.search.wfq_space import WfqSpace
from ...simulation.cluster import Cluster
from ...simulation.fluid.rules import FluidRules
from ...simulation.fluid.speedups import Speedups
from ...simulation.profiles.table import Profiles
from ...simulation.rounds.rules import RoundRules
from ...simulation.traces.trace import Trace
from .fluid_scores import FluidScores
from .history_samples import HistorySamples
from .round_scores import RoundScores
from .sampled_search import SampledSearch

#: Metrics of the objectives.
METRICS = ("jct", "pred_error", "unfairness")


@dataclass(frozen=True, kw_only=True, eq=False)
class WfqTuning(SampledSearch):
    """Find weighted fair queues whose scores on samples of a workload no other ones dominate.

    Parameters
    ----------
    train : tuple of Trace
        Samples on which configurations are scored, each by a simulation; a score is the mean over them.
    test : tuple of Trace
        Samples for `held_out_scores` alone.
    gpus : int, Cluster or mapping of str to int
        GPUs of the cluster, or of each type. With several types the weight decay is one variable for each, there is no
        cap on demands, and no objective may be of "pred_error".
    objectives : sequence of one to four objectives
        Metrics "jct" (seconds), "pred_error" (percent) and "unfairness" (share), each by "avg" or a percentile such as
        "p99"; several may be of one metric.
    speedups : Speedups, optional
        Built in by default; for one GPU type, which the fluid engine simulates.
    profiles : Profiles or mapping of str to Profiles, optional
        Built in by default; for several GPU types, which the rounds engine simulates.
    rules : FluidRules or RoundRules, optional
        Rules of the engine. Ends are predicted if an objective needs that, whatever the rules say.
    space : {"parameters", "direct"}
        Space of `WfqSpace` on the sizes of all training samples.
    reference : array_like of float, shape (m,), optional
        Scores from which on a configuration is of no interest; by default 1.1 times the worst scores of the corners of
        the space, computed on construction.

    Raises
    ------
    InvalidInput
        If a field is out of range, or a job cannot run on the cluster.
    """

    metrics: ClassVar[tuple[str, ...]] = METRICS

    gpus: Cluster | int | Mapping[str, int]
    objectives: tuple[Objective, ...] = ("jct:avg", "pred_error:avg")  # type: ignore[assignment]  # checked below
    speedups: Speedups | None = None
    profiles: Profiles | Mapping[str, Profiles] | None = None
    rules: FluidRules | RoundRules | None = None
    space: str = "parameters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gpus", Cluster.of(self.gpus))
        super().__post_init__()

    def _scores(self, traces: tuple[Trace, ...]) -> FluidScores | RoundScores:
        engine = {name: getattr(self, name) for name in ("speedups", "profiles", "rules")}
        return engine_scores(traces, Cluster.of(self.gpus), self.objectives, **engine)

    @cached_property
    def _space(self) -> WfqSpace:
        types = Cluster.of(self.gpus).types
        several = len(types) > 1
        gpu_types = types if several else ()
        return WfqSpace(sizes_s=self._trained.sizes_s, name=self.space, gpu_types=gpu_types, caps=not several)

    @classmethod
    def from_history(
        cls,
        trace: Trace,
        *,
        gpus: Cluster | int | Mapping[str, int],
        samples: int = 1,
        held_out: int = 1,
        jobs: int = 1000,
        load: float | None = None,
        seed: int = 0,
        **options: Any,
    ) -> WfqTuning:
        """Return the search on samples drawn from a history of jobs.

        Parameters
        ----------
        trace : Trace
            History, at least 10 jobs.
        gpus : int, Cluster or mapping of str to int
        samples, held_out : int
            Numbers of training and of test samples; no two have the same draws.
        jobs : int
            Jobs of each sample: rows of the history, drawn with replacement, so that size, demand and model of a job
            stay together. They arrive with exponential gaps.
        load : float, optional
            Work on one GPU that arrives per second, over all GPUs; by default the mean gap is that of the history.
        seed : int
        **options
            `objectives`, `speedups`, `profiles`, `rules`, `space` and `reference`, as above.

        Raises
        ------
        InvalidInput
            If the history is too small or all its jobs arrive at once, or an argument is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> from equipoise.simulation.fluid import generate_jobs
        >>> history = generate_jobs(np.random.default_rng(0), num_jobs=200, gpus=16)
        >>> tuning = WfqTuning.from_history(history, gpus=16, jobs=100, objectives=["jct:avg", "pred_error:p99"])
        >>> [variable.name for variable in tuning.variables], list(tuning.starts)
        (['T', 'W', 'zeta', 'delta'], ['fifo', 'near_sjf', 'near_max_min'])
        """
        history = HistorySamples(trace=trace, samples=samples, held_out=held_out, jobs=jobs, load=load, seed=seed)
        cluster = Cluster.of(gpus)
        engine = {name: options.get(name) for name in ("speedups", "profiles", "rules")}
        train, test = history.drawn(cluster.gpus, lambda: engine_scores((trace,), cluster, (), **engine).sizes_s)
        return cls(train=train, test=test, gpus=gpus, **options)


def engine_scores(
    traces: tuple[Trace, ...],
    cluster: Cluster,
    objectives: tuple[Objective, ...],
    *,
    speedups: Speedups | None = None,
    profiles: Profiles | Mapping[str, Profiles] | None = None,
    rules: FluidRules | RoundRules | None = None,
) -> FluidScores | RoundScores:
    """Return the scores by the engine of the cluster: fluid for one GPU type, rounds for several."""
    if len(cluster.types) > 1:
        if speedups is not None:
            raise InvalidInput("speedups", type(speedups).__name__, "are of one GPU type; several take profiles")
        if not isinstance(rules := rules or RoundRules(), RoundRules):
            raise InvalidInput("rules", type(rules).__name__, "must be RoundRules for several GPU types")
        profiles = profiles or Profiles.builtin()
        return RoundScores(traces=traces, cluster=cluster, profiles=profiles, rules=rules, objectives=objectives)
    if profiles is not None:
        raise InvalidInput("profiles", type(profiles).__name__, "are for several GPU types; one takes speedups")
    if not isinstance(rules := rules or FluidRules(), FluidRules):
        raise InvalidInput("rules", type(rules).__name__, "must be FluidRules for one GPU type")
    speedups = speedups or Speedups.builtin()
    return FluidScores(traces=traces, cluster=cluster, speedups=speedups, rules=rules, objectives=objectives)
