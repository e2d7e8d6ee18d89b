"""WfqOperator: weighted fair queues that are searched for while the jobs arrive."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...formulations.checks import as_integer, as_real, as_reals, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.search.front import NAMED_PICKS, ParetoFront
from ...formulations.search.front_point import FrontPoint
from ...formulations.search.objective import as_objectives
from ...formulations.search.wfq_config import WfqConfig
from ...simulation.fluid.job import FluidJob
from ...simulation.fluid.policy import FluidRule
from ...simulation.fluid.rules import FluidRules
from ...simulation.fluid.speedups import Speedups
from ...simulation.fluid.state import FluidState
from ...simulation.traces.trace import Trace
from ...solvers.solve import solve
from ..fluid.wfq import WfqPolicy
from .history_samples import LEAST_HISTORY
from .wfq_tuning import METRICS, WfqTuning
from .workload_drift import DriftReport, ObservedJob, drift_report

#: Names of the picks of a front of its metrics.
PICKS = tuple(name for name, metric in NAMED_PICKS.items() if metric in ("", *METRICS))
#: What happens when the workload has drifted.
ON_DRIFT = ("search", "report")


class OperatorEvent(NamedTuple):
    """Event of the life cycle: "front", "config" or "drift", and the number of jobs that had arrived."""

    jobs: int
    event: str


@dataclass(kw_only=True, eq=False)
class WfqOperator:
    """Weighted fair queues for an operator (PCS, OSDI 2024, Section 3.2): FIFO until a search has found better ones.

    It collects the jobs that arrive. When there are enough it searches for the Pareto front of its preference, picks a
    point and sets its configuration; when the workload has drifted from the jobs of the search, it searches anew. A
    policy of the fluid engine, which runs it by the plain reference, since its rule changes; or an object of any
    scheduler, which calls `observe` for each job and reads `config`.

    Parameters
    ----------
    preference : collection of str
        Objectives; see `WfqTuning`. `set_preference` changes them.
    least_jobs : int
        Jobs that are collected before the first search, at least 10.
    pick : {"jct", "pred", "balanced"} or callable
        Name of the point of the front, or a function from the `ParetoFront` to a `FrontPoint`.
    window : int
        Jobs of one look for a drift, at least 10.
    alarm_rate : float
        Bound on the probability that a workload that does not drift is ever reported; see `drift_report`.
    on_drift : {"search", "report"}
        "search" collects the window as the new history, and searches; "report" changes nothing.
    gpus : int, optional
        GPUs of the cluster; the engine's own in a simulation.
    backend : str
        Backend of the search.
    evaluations : int
        Configurations that it scores.
    samples, sample_jobs : int
        Number of samples that are drawn from the history, and their size.
    seed, threads : int
        As in `solve`; the samples are drawn with the same seed.

    Attributes
    ----------
    config : WfqConfig
        Present configuration.
    front : ParetoFront or None
        Front of the last search.
    events : list of OperatorEvent
        What happened so far.

    Raises
    ------
    InvalidInput
        If an option is out of range.

    Notes
    -----
    A search stops after a number of evaluations, not of seconds, so that equal jobs give equal configurations. With a
    new configuration the jobs present move to the queues of their sizes. A guarantee holds for an unchanged
    configuration only, so that this policy gives none; a prediction plays the configuration of its time out.

    Examples
    --------
    >>> operator = WfqOperator(least_jobs=100, gpus=4)
    >>> operator.set_preference(("jct", "avg"), ("unfairness", "p99"))
    >>> operator.observe(ObservedJob(arrival_s=0.0, size_s=3600.0, speedups=[0.0, 1.0, 1.9]))
    >>> operator.jobs_seen, operator.config.queues, operator.drift()
    (1, 1, None)
    """

    preference: Collection[str] = ("jct:avg", "pred_error:avg")
    least_jobs: int = 500
    pick: str | Callable[[ParetoFront], FrontPoint] = "balanced"
    window: int = 250
    alarm_rate: float = 0.01
    on_drift: str = "search"
    gpus: int | None = None
    backend: str = "random"
    evaluations: int = 200
    samples: int = 1
    sample_jobs: int = 500
    seed: int = 0
    threads: int = 1
    name: ClassVar[str] = "wfq-operator"
    engine: ClassVar[str] = "fluid"
    # The rule changes in a run: the reference calls the methods.
    rule: ClassVar[None] = None
    front: ParetoFront | None = field(default=None, init=False, repr=False)
    events: list[OperatorEvent] = field(default_factory=list, init=False, repr=False)
    _policy: WfqPolicy = field(default_factory=WfqPolicy, init=False, repr=False)
    _rules: FluidRules = field(default_factory=FluidRules, init=False, repr=False)
    # Jobs since the start or the last drift; of these the ones before the last search; reports of looks since then.
    _history: list[ObservedJob] = field(default_factory=list, init=False, repr=False)
    _searched: int = field(default=0, init=False, repr=False)
    _looks: int = field(default=0, init=False, repr=False)
    _report: DriftReport | None = field(default=None, init=False, repr=False)
    jobs_seen: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.set_preference(*self.preference)
        for name in ("least_jobs", "window"):
            store_checked(self, as_integer, name, minimum=LEAST_HISTORY)
        store_checked(self, as_integer, "evaluations", "samples", "sample_jobs", "threads", minimum=1)
        store_checked(self, as_integer, "seed", minimum=0)
        if self.gpus is not None:
            store_checked(self, as_integer, "gpus", minimum=1)
        self.alarm_rate = as_real("alarm_rate", self.alarm_rate, above=0.0, maximum=1.0)
        if self.on_drift not in ON_DRIFT:
            raise InvalidInput("on_drift", self.on_drift, f"must be one of {', '.join(ON_DRIFT)}")
        if not callable(self.pick) and self.pick not in PICKS:
            raise InvalidInput("pick", self.pick, f"must be a function, or one of {', '.join(PICKS)}")
        if not isinstance(self.backend, str):
            raise InvalidInput("backend", self.backend, "must be the name of a backend")

    # -- The operator's interface --------------------------------------------------------------------------------------

    @property
    def config(self) -> WfqConfig:
        """Present configuration."""
        assert isinstance(self._policy.config, WfqConfig)
        return self._policy.config

    def set_preference(self, *objectives: Any) -> None:
        """Set the objectives, such as ("jct", "avg") and "pred_error:p99"; the next search, now due, is for them."""
        self.preference = tuple(map(str, as_objectives("preference", objectives, METRICS)))
        self.front = None

    def set_wfq_config(self, config: WfqConfig) -> None:
        """Set the configuration; jobs present move to the queues of their sizes."""
        self._policy = WfqPolicy(config=config)
        self._note("config")

    def update_pareto_front(self) -> ParetoFront:
        """Search for the front of the preference on the jobs collected, and return it; the configuration stays.

        Raises
        ------
        InvalidInput
            If too few jobs are collected, the number of GPUs is unknown, or a table of speedups falls.
        """
        gpus = self._known_gpus()
        if len(self._history) < LEAST_HISTORY:
            why = f"must be at least {LEAST_HISTORY} for a search"
            raise InvalidInput("jobs_seen", len(self._history), why)
        trace, speedups = observed_trace(self._history)
        tuning = WfqTuning.from_history(
            trace,
            gpus=gpus,
            objectives=tuple(self.preference),
            speedups=speedups,
            rules=self._rules,
            samples=self.samples,
            held_out=0,
            jobs=self.sample_jobs,
            seed=self.seed,
        )
        result = solve(
            tuning,
            self.backend,
            threads=self.threads,
            seed=self.seed,
            backend_options={self.backend: {"evaluations": self.evaluations}},
        )
        self.front = result.require_plan()
        self._searched, self._looks, self._report = len(self._history), 0, None
        self._note("front")
        return self.front

    def drift(self) -> DriftReport | None:
        """Return the report of the last look for a drift from the jobs of the front; None before the first look.

        There is a look at each full window of jobs after the search. A report of a drift stays until the next search.
        """
        return self._report

    def observe(self, job: FluidJob | ObservedJob) -> None:
        """Take note of a job that arrives; search, look for a drift and set the configuration where that is due.

        Raises
        ------
        InvalidInput
            If a value is out of range, the job arrives before the last one, or the number of GPUs is unknown.
        """
        self._known_gpus()
        self._history.append(_checked(job, self._history))
        self.jobs_seen += 1
        if self.front is None:
            if len(self._history) >= self.least_jobs:
                self._search()
        elif (len(self._history) - self._searched) % self.window == 0:
            self._look()

    @property
    def present_rule(self) -> FluidRule:
        """Rule of the present configuration, by which `predict_completion` plays it out."""
        return self._policy.rule

    # -- Policy of the fluid engine ------------------------------------------------------------------------------------

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Return the GPUs of each job by the present configuration, after noting a job that has just arrived."""
        if self.gpus is None:
            self.gpus = state.gpus
        if self.gpus != state.gpus:
            raise InvalidInput("gpus", self.gpus, f"the cluster has {state.gpus} GPUs")
        if state.event == "arrival":
            self._rules = FluidRules(preemption_s=state.preemption_s)
            self.observe(state.jobs[-1])
        return self._policy.allocate(state)

    def timer_s(self, state: FluidState) -> float:
        """Return infinity: there is no timer."""
        return math.inf

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return nan: the configuration may change before the job ends."""
        return math.nan

    def __deepcopy__(self, memo: dict[int, Any]) -> WfqOperator:
        # A prediction copies the policy at each arrival: jobs, fronts and configurations never change.
        copied = copy.copy(self)
        copied._history, copied.events = self._history.copy(), self.events.copy()
        return copied

    def _known_gpus(self) -> int:
        if self.gpus is None:
            raise InvalidInput("gpus", None, "must be given where no engine has stated it")
        return self.gpus

    def _search(self) -> None:
        front = self.update_pareto_front()
        point = self.pick(front) if callable(self.pick) else front.pick(self.pick)
        self.set_wfq_config(point.configuration)

    def _look(self) -> None:
        """Look for a drift in the last window."""
        self._looks += 1
        earlier, recent = self._history[: self._searched], self._history[-self.window :]
        report = drift_report(earlier, recent, look=self._looks, alarm_rate=self.alarm_rate)
        if self._report is None or not self._report.drifted:
            self._report = report
        if report.drifted:
            self._note("drift")
            if self.on_drift == "search":
                self._history = recent
                self._search()

    def _note(self, event: str) -> None:
        self.events.append(OperatorEvent(self.jobs_seen, event))


def observed_trace(jobs: Sequence[ObservedJob]) -> tuple[Trace, Speedups]:
    """Return jobs as a trace, and speedups in which each distinct curve is a model."""
    names: dict[tuple[float, ...], str] = {}
    models = [names.setdefault(tuple(job.speedups), f"curve {len(names)}") for job in jobs]
    trace = Trace(
        job_id=range(len(jobs)),
        model=models,
        gang_gpus=np.array([len(job.speedups) - 1 for job in jobs]),
        min_gpus=np.array([job.min_gpus for job in jobs]),
        arrival_s=np.array([job.arrival_s - jobs[0].arrival_s for job in jobs]),
        size_s=np.array([job.size_s for job in jobs]),
    )
    return trace, Speedups(tables={name: np.array(curve[1:]) for curve, name in names.items()})


def _checked(job: FluidJob | ObservedJob, before: Sequence[ObservedJob]) -> ObservedJob:
    speedups = as_reals("speedups", job.speedups, minimum=0.0)
    if len(speedups) < 2 or speedups[:2].tolist() != [0.0, 1.0]:
        raise InvalidInput("speedups", speedups[:2].tolist(), "must begin with s(0) = 0 and s(1) = 1")
    found = ObservedJob(
        arrival_s=as_real("arrival_s", job.arrival_s),
        size_s=as_real("size_s", job.size_s, above=0.0),
        speedups=tuple(speedups.tolist()),
        min_gpus=as_integer("min_gpus", job.min_gpus, minimum=1, maximum=len(speedups) - 1),
    )
    if before and found.arrival_s < before[-1].arrival_s:
        raise InvalidInput("arrival_s", found.arrival_s, f"the job before arrived at {before[-1].arrival_s:g}")
    return found
