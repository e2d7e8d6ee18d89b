"""WfqTuning: the search for weighted fair queues that suit a workload."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ...formulations.search.front import ParetoFront
from ...formulations.search.objective import Objective, Variable, as_objectives
from ...formulations.search.problem import EvaluateMany, SearchProblem
from ...formulations.search.wfq_config import WfqConfig
from ...formulations.search.wfq_space import WfqSpace
from ...simulation.cluster import Cluster
from ...simulation.fluid.rules import FluidRules
from ...simulation.fluid.speedups import Speedups
from ...simulation.profiles.table import Profiles
from ...simulation.rounds.rules import RoundRules
from ...simulation.traces.trace import Trace
from .fluid_scores import FluidScores
from .round_scores import RoundScores

if TYPE_CHECKING:
    from collections.abc import Callable

#: Metrics of the objectives.
METRICS = ("jct", "pred_error", "unfairness")
#: Fewest jobs of a history from which samples are drawn.
LEAST_HISTORY = 10
# The reference lies beyond the worst corner by this factor.
_BEYOND = 1.1


@dataclass(frozen=True, kw_only=True, eq=False)
class WfqTuning(SearchProblem):
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

    train: tuple[Trace, ...]
    gpus: Cluster | int | Mapping[str, int]
    test: tuple[Trace, ...] = ()
    objectives: tuple[Objective, ...] = ("jct:avg", "pred_error:avg")  # type: ignore[assignment]  # checked below
    speedups: Speedups | None = None
    profiles: Profiles | Mapping[str, Profiles] | None = None
    rules: FluidRules | RoundRules | None = None
    space: str = "parameters"
    reference: Any = None
    variables: tuple[Variable, ...] = field(init=False)
    evaluate_many: EvaluateMany = field(init=False, repr=False)
    ideal: Floats = field(init=False)
    decode_vector: Callable[[Floats], WfqConfig] = field(init=False, repr=False)
    starts: Mapping[str, Floats] = field(init=False)
    _trained: FluidScores | RoundScores = field(init=False, repr=False)
    _tested: FluidScores | RoundScores = field(init=False, repr=False)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "objectives", as_objectives("objectives", self.objectives, METRICS))
        if len(self.objectives) > 4:
            raise InvalidInput("objectives", f"{len(self.objectives)} objectives", "must be at most four")
        for name in ("train", "test"):
            store(self, name, _traces(name, getattr(self, name)))
        if not self.train:
            raise InvalidInput("train", "()", "must have at least one trace")
        store(self, "gpus", Cluster.of(self.gpus))
        for name, traces in (("_trained", self.train), ("_tested", self.test)):
            store(self, name, self._scores(traces))
        store(self, "variables", self._space.variables)
        store(self, "decode_vector", self._space.decode)
        store(self, "evaluate_many", self._evaluate)
        store(self, "starts", dict(self._space.corners))
        store(self, "ideal", self._trained.ideal)
        if self.reference is None:
            store(self, "reference", self._reference())
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

    def _evaluate(self, vectors: Floats) -> Floats:
        """Return the scores of vectors of shape (B, n), shape (B, m); nan where one is infeasible."""
        found = np.full((len(vectors), len(self.objectives)), np.nan)
        for row, vector in enumerate(vectors):
            try:
                config = self._space.decode(vector)
            except InvalidInput:
                continue
            found[row] = self._trained.of(config)
        return found

    def _reference(self) -> Floats:
        """Return the worst scores of the corners, and a tenth more."""
        scores = self._evaluate(np.array(list(self.starts.values())))
        worst = np.nanmax(np.where(np.isfinite(scores), scores, np.nan), axis=0)
        # Where all are perfect any positive number will do.
        return np.where(worst > 0.0, _BEYOND * worst, 1.0)

    def scores_of(self, configurations: Sequence[WfqConfig], *, held_out: bool = False) -> Floats:
        """Return the scores of any configurations on the training samples, or on the held-out ones, shape (P, m).

        Raises
        ------
        InvalidInput
            If held-out scores are asked for and there are no test samples.
        """
        if held_out and not self.test:
            raise InvalidInput("test", "()", "there are no samples for held-out scores")
        scores = self._tested if held_out else self._trained
        return np.array([scores.of(each) for each in configurations]).reshape(-1, len(self.objectives))

    def held_out_scores(self, front: ParetoFront) -> Floats:
        """Return the scores of a front's configurations on the test samples, shape (P, m)."""
        return self.scores_of(front.configurations, held_out=True)

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
        if not isinstance(trace, Trace):
            raise InvalidInput("trace", type(trace).__name__, "must be a Trace")
        if len(trace) < LEAST_HISTORY:
            raise InvalidInput("trace", f"{len(trace)} jobs", f"a history must have at least {LEAST_HISTORY}")
        samples, held_out = as_integer("samples", samples, minimum=1), as_integer("held_out", held_out, minimum=0)
        jobs, seed = as_integer("jobs", jobs, minimum=1), as_integer("seed", seed, minimum=0)
        mean_gap_s = float(np.ptp(trace.arrival_s)) / (len(trace) - 1)
        if load is not None:
            cluster = Cluster.of(gpus)
            engine = {name: options.get(name) for name in ("speedups", "profiles", "rules")}
            sizes_s = engine_scores((trace,), cluster, (), **engine).sizes_s
            mean_gap_s = float(sizes_s.mean()) / (as_real("load", load, above=0.0) * cluster.gpus)
        elif mean_gap_s == 0.0:
            raise InvalidInput("trace", "one time of arrival", "a history needs a rate of arrivals, or else load")
        drawn = [
            sample_jobs(np.random.default_rng(each), trace, jobs=jobs, mean_gap_s=mean_gap_s)
            for each in np.random.SeedSequence(seed).spawn(samples + held_out)
        ]
        return cls(train=tuple(drawn[:samples]), test=tuple(drawn[samples:]), gpus=gpus, **options)

    def __reduce__(self) -> tuple[object, ...]:
        # What follows from the fields is not pickled; and a process that receives the same fields again, as workers do
        # with each task, keeps what it has derived from them.
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return _restored, (pickle.dumps(values),)


@lru_cache(maxsize=4)
def _restored(values: bytes) -> WfqTuning:
    return WfqTuning(**pickle.loads(values))


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


def sample_jobs(rng: np.random.Generator, trace: Trace, *, jobs: int, mean_gap_s: float) -> Trace:
    """Return a trace of jobs that are rows of another one, drawn with replacement, with exponential gaps."""
    rows = rng.integers(0, len(trace), jobs)
    gaps_s = rng.exponential(mean_gap_s, jobs - 1)
    columns: dict[str, Any] = {}
    for each in fields(trace):
        column = getattr(trace, each.name)
        if column is not None and each.name not in ("job_id", "arrival_s", "source"):
            columns[each.name] = column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
    return Trace(job_id=range(jobs), arrival_s=np.append(0.0, np.cumsum(gaps_s)), **columns)


def _traces(name: str, given: Any) -> tuple[Trace, ...]:
    if isinstance(given, Trace) or not isinstance(given, Sequence):
        raise InvalidInput(name, type(given).__name__, "must be a tuple of traces")
    for index, trace in enumerate(given):
        if not isinstance(trace, Trace):
            raise InvalidInput(name, type(trace).__name__, "must be a Trace", index=index)
    return tuple(given)
