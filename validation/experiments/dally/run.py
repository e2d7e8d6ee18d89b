"""Simulations of the Dally experiments: workloads, clusters and policies, run once each, and their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.errors import InvalidInput
from ....heuristics.registry import make_policy
from ....simulation import Cluster, Trace
from ....simulation.network import AllReduceSpeeds, CommunicationTable, PenaltySpeeds, RatioSpeeds, TableSpeeds
from ....simulation.network.workloads import draw_dally_jobs
from ....simulation.placement import PlacementResult, PlacementRules, TimerLog, simulate_placement
from ..experiment import ExperimentSettings
from .paper import MACHINE_GPUS, POISSON_SHARE, POLICIES, RACK_MACHINES, racks_of

DAY_S = 86400.0
#: Kinds of arrivals.
ARRIVALS = ("batch", "poisson")
#: Length of a lease, deviation of the logarithms of durations, and load of Poisson arrivals: the paper states none
#: (docs/experiments.md).
LEASE_S, SIGMA, LOAD = DAY_S, 1.0, 3.0
_SPEEDS: Mapping[str, Callable[..., RatioSpeeds]] = MappingProxyType(
    {"table": TableSpeeds, "all-reduce": AllReduceSpeeds, "penalties": PenaltySpeeds}
)
# A job saves its state for 1 s for each of its GPUs.
_RULES = PlacementRules(checkpoint_s_per_gpu=1.0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One simulation of the published mix of jobs on racks of machines.

    `options` are those of the policy in addition to `policy_options`. The durations are lognormal with this median and
    deviation of the logarithm, and Poisson arrivals offer this load.
    """

    arrivals: str
    racks: int
    seed: int
    policy: str
    jobs: int
    options: tuple[tuple[str, Any], ...] = ()
    median_s: float = DAY_S
    sigma: float = SIGMA
    load: float = LOAD
    speeds: str = "table"

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        gpus = self.racks * RACK_MACHINES * MACHINE_GPUS
        return Cluster(gpus_by_type={"gpu": gpus}, gpus_per_machine=MACHINE_GPUS, racks=self.racks)

    @property
    def trace(self) -> Trace:
        """The jobs, the same for every policy."""
        at_once = self.arrivals == "batch"
        return draw_dally_jobs(
            np.random.default_rng(self.seed),
            jobs=self.jobs if at_once else max(1, round(POISSON_SHARE * self.jobs)),
            arrivals=self.arrivals,
            load=None if at_once else self.load,
            gpus=self.cluster.gpus,
            median_s=self.median_s,
            sigma=self.sigma,
        )

    def run(self, *, record: bool = False) -> PlacementResult:
        """Simulate it."""
        options = {**policy_options(self.policy), **dict(self.options)}
        cluster = self.cluster
        return simulate_placement(
            self.trace, make_policy(self.policy, "placement", **options), cluster=cluster,
            speeds=_SPEEDS[self.speeds](cluster=cluster), rules=_RULES, record=record,
        )  # fmt: skip


def policy_options(policy: str) -> Mapping[str, Any]:
    """Return the options of a policy in all experiments.

    Tiresias's queues end at a day and ten days of one GPU, in proportion to durations of days; its skewed models are
    those of the measured table, strictly on their lowest tier. Turns of Gandiva last an hour.
    """
    if policy == "tiresias":
        thresholds = (DAY_S, 10.0 * DAY_S)
        skew = CommunicationTable.builtin().skews
        return {"thresholds": thresholds, "promote": None, "skew": skew, "consolidate": "tier"}
    if policy == "gandiva":
        return {"quantum_s": 3600.0}
    return {"lease_s": LEASE_S}


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseFigures:
    """Times of the jobs of one simulation in seconds, shape (N,), the GPUs in use over time, and the tuned timers.

    `busy_gpus` are in use from `busy_from_s` on, shape (L,), until the next of these times.
    """

    gpus: int
    gang_gpus: Floats
    arrival_s: Floats
    end_s: Floats
    waited_s: Floats
    exposed_s: Floats
    busy_from_s: Floats
    busy_gpus: Floats
    timers: TimerLog | None = None

    @classmethod
    def of(cls, result: PlacementResult) -> CaseFigures:
        """Return the figures of a result."""
        return cls(
            gpus=result.cluster.gpus,
            gang_gpus=np.asarray(result.trace.gang_gpus, dtype=np.float64),
            arrival_s=np.asarray(result.trace.arrival_s),
            end_s=result.end_s,
            waited_s=result.waited_s,
            exposed_s=result.exposed_s,
            busy_from_s=result.levels.start_s,
            busy_gpus=np.asarray(result.levels.gpus_busy, dtype=np.float64),
            timers=result.timers,
        )

    @property
    def jct_s(self) -> Floats:
        """Completion times of the jobs."""
        return np.asarray(self.end_s - self.arrival_s)

    @property
    def makespan_s(self) -> float:
        """Time from the first arrival to the last end."""
        return float(self.end_s.max() - self.arrival_s.min())

    def jobs_left(self, time_s: Floats) -> Floats:
        """Return the number of jobs that have not ended at these times, arrived or not."""
        return np.asarray(len(self.end_s) - np.searchsorted(np.sort(self.end_s), time_s, side="right"), dtype=float)

    def mean_busy_gpus(self, from_s: float, to_s: float) -> float:
        """Return the GPUs in use on average between two times."""
        ends = np.append(self.busy_from_s[1:], self.end_s.max())
        lengths = np.clip(np.minimum(ends, to_s) - np.maximum(self.busy_from_s, from_s), 0.0, None)
        return float(self.busy_gpus @ lengths) / (to_s - from_s)


def _of_jobs(name: str, take: Callable[[Floats], Any]) -> Callable[[CaseFigures], float]:
    """Return a figure of the times of all jobs, in days."""
    return lambda each: float(take(getattr(each, f"{name}_s"))) / DAY_S


_PARTS: Mapping[str, Callable[[Floats], Any]] = MappingProxyType(
    {
        "avg": np.mean,
        "median": np.median,
        "p95": lambda values: np.percentile(values, 95.0),
        "p99": lambda values: np.percentile(values, 99.0),
    }
)
#: Figures of a simulation by the name of their column: times in days.
FIGURES: Mapping[str, Callable[[CaseFigures], float]] = MappingProxyType(
    {
        "makespan": lambda each: each.makespan_s / DAY_S,
        **{
            f"{part} {name}": _of_jobs(name, take)
            for name in ("jct", "waited", "exposed")
            for part, take in _PARTS.items()
        },
    }
)


def run_cases(cases: Iterable[Case], settings: ExperimentSettings) -> dict[Case, CaseFigures]:
    """Run every case that no earlier experiment with these `shared` results has run, on so many workers."""
    if settings.gpus is not None:
        raise InvalidInput("gpus", settings.gpus, "the clusters of these experiments are racks of 64 GPUs; use racks")
    wanted = list(dict.fromkeys(cases))
    missing = [case for case in wanted if case not in settings.shared]
    done = len(wanted) - len(missing)
    for case, figures in _run_on_workers(missing, settings.threads):
        settings.shared[case] = figures
        done += 1
        if settings.on_step is not None:
            settings.on_step(done, len(wanted))
    return {case: settings.shared[case] for case in wanted}


def _run_on_workers(cases: Sequence[Case], count: int) -> Iterable[tuple[Case, CaseFigures]]:
    if count == 1 or len(cases) < 2:
        return map(_figures, cases)
    if find_spec("joblib") is None:
        raise InvalidInput("threads", count, "several workers need joblib: pip install 'equipoise[distributed]'")
    from joblib import Parallel, delayed

    found: Iterable[tuple[Case, CaseFigures]] = Parallel(
        n_jobs=min(count, len(cases)), return_as="generator_unordered", batch_size=1
    )(delayed(_figures)(case) for case in cases)
    return found


def _figures(case: Case) -> tuple[Case, CaseFigures]:
    return case, CaseFigures.of(case.run())


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Figures of all policies on all clusters, by (arrivals, racks) and policy: one of each for every seed."""

    cases: Mapping[tuple[str, int], Mapping[str, Sequence[CaseFigures]]]

    def mean(self, figure: str, cluster: tuple[str, int], policy: str) -> float:
        """Return the mean over the seeds of a figure in `FIGURES`."""
        return float(np.mean([FIGURES[figure](each) for each in self.cases[cluster][policy]]))

    def each(self, figure: str, policy: str, *, where: Iterable[tuple[str, int]] | None = None) -> dict[str, float]:
        """Return the means of a figure under a policy, by cluster, or on some of the clusters."""
        chosen = self.cases if where is None else [cluster for cluster in where if cluster in self.cases]
        return {label(cluster): self.mean(figure, cluster, policy) for cluster in chosen}

    def pairs(
        self, figure: str, one: str, other: str, *, where: Iterable[tuple[str, int]] | None = None
    ) -> dict[str, tuple[float, float]]:
        """Return the means of a figure under two policies, by cluster."""
        ours, theirs = self.each(figure, one, where=where), self.each(figure, other, where=where)
        return {name: (ours[name], theirs[name]) for name in ours}

    def below_pct(self, figure: str, one: str, other: str) -> dict[str, float]:
        """Return by how many percent the mean of a figure is lower under one policy than under another."""
        return {name: 100.0 * (1.0 - ours / theirs) for name, (ours, theirs) in self.pairs(figure, one, other).items()}


def label(cluster: tuple[str, int]) -> str:
    """Return the label of arrivals and racks in tables and claims."""
    return f"{cluster[0]} {cluster[1]}"


def grid(settings: ExperimentSettings, policies: Sequence[str] = POLICIES, **changes: Any) -> Grid:
    """Run policies on all clusters with both kinds of arrivals and all seeds; the changes are fields of `Case`."""
    clusters = list(product(ARRIVALS, racks_of(settings)))

    def case(cluster: tuple[str, int], policy: str, seed: int) -> Case:
        return Case(
            arrivals=cluster[0], racks=cluster[1], policy=policy, seed=seed, **{"jobs": settings.jobs, **changes}
        )

    every = [case(*each) for each in product(clusters, policies, settings.seeds)]
    found = run_cases(every, settings)
    return Grid(
        cases={
            cluster: {policy: [found[case(cluster, policy, seed)] for seed in settings.seeds] for policy in policies}
            for cluster in clusters
        }
    )
