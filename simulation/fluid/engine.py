"""Fluid engine: GPUs are divisible, and the policy divides them anew at each arrival, end and timer."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ...formulations.checks import as_flag
from ...formulations.errors import EquipoiseError, InvalidInput
from ..cluster import Cluster
from ..decision import CallLog, Evidence
from ..results.interrupt import OnStep, play
from ..results.timeline import Levels, StretchLog
from ..traces.trace import Trace
from .clock import Clock
from .job import fluid_jobs
from .policy import FluidPolicy
from .prediction import divide, next_event, play_out
from .result import RECORDS, FluidResult, fluid_result, job_columns
from .rules import FluidRules
from .speedups import Speedups
from .state import FluidState

_METHODS = ("allocate", "timer_s", "guaranteed_s")


def simulate_fluid(
    trace: Trace,
    policy: FluidPolicy,
    *,
    cluster: Cluster | int,
    speedups: Speedups,
    rules: FluidRules | None = None,
    on_event: OnStep | None = None,
    record: bool = True,
    compiled: bool | None = None,
) -> FluidResult:
    """Run a trace to its end under a policy that divides GPUs.

    Parameters
    ----------
    trace : Trace
        Jobs in any order, with `size_s` or `duration_s`; `gang_gpus` is the maximum demand of a job, and `min_gpus` the
        least GPUs with which it runs.
    policy : FluidPolicy
        Policy that is called after each event; see `fluid.policy`.
    cluster : Cluster or int
        GPUs of one type.
    speedups : Speedups
        Speedups of the trace's models on the GPU type of the cluster; see `Speedups.on`.
    rules : FluidRules, optional
    on_event : callable, optional
        Callback after each event, or batch of events of the compiled loops, with (event, time_s, jobs ended, jobs in
        all).
    record : bool
        Whether to record how many GPUs each job held when (`stretches`).
    compiled : bool, optional
        Whether compiled loops follow the policy's `rule`, or the plain Python reference calls the policy. By default
        the loops run where there is a rule. They agree within a microsecond; the calls of a policy are recorded by the
        reference only.

    Raises
    ------
    InvalidInput
        Before the simulation: if an argument is out of range, or a job has no speedups or no size. During the
        simulation: if the policy's answer is infeasible.
    EquipoiseError
        If the policy leaves jobs without GPUs with no event to come, or exceeds `rules.most_steps`.
    SimulationInterrupted
        On Ctrl-C: a KeyboardInterrupt that carries the jobs that had ended.

    Notes
    -----
    The same arguments give the same result to the last bit, but for the policy's wall times.
    """
    found = checked_cluster(trace, cluster, speedups, rules)
    if not isinstance(getattr(policy, "name", None), str) or not all(
        callable(getattr(policy, method, None)) for method in _METHODS
    ):
        why = f"must have a name and the methods {', '.join(_METHODS)}; see FluidPolicy"
        raise InvalidInput("policy", type(policy).__name__, why)
    rules, record = rules or FluidRules(), as_flag("record", record)
    rule = getattr(policy, "rule", None) if compiled is None or as_flag("compiled", compiled) else None
    if compiled and rule is None:
        raise InvalidInput("compiled", compiled, f"policy {policy.name} has no rule that the compiled loops know")
    if rule is None:
        return play(_Run(trace, policy, found, speedups.on(found), rules, record), len(trace), on_event)
    # Loading numba takes a second, which the reference does not need.
    from .compiled import CompiledRun, FluidSetup

    setup = FluidSetup(trace, found, speedups.on(found), rules)
    return play(CompiledRun(setup, policy, rule, record=record), len(trace), on_event)


def checked_cluster(
    trace: Trace, cluster: Cluster | int, speedups: Speedups, rules: FluidRules | None = None
) -> Cluster:
    """Return the cluster; InvalidInput if one of these arguments of `simulate_fluid` is out of range."""
    if not isinstance(trace, Trace):
        raise InvalidInput("trace", type(trace).__name__, "must be a Trace")
    found = Cluster.of(cluster)
    if len(found.types) > 1:
        raise InvalidInput("cluster", ", ".join(found.types), "the fluid engine takes GPUs of one type")
    if not isinstance(speedups, Speedups):
        raise InvalidInput("speedups", type(speedups).__name__, "must be Speedups")
    if rules is not None and not isinstance(rules, FluidRules):
        raise InvalidInput("rules", type(rules).__name__, "must be FluidRules")
    wide = np.flatnonzero(trace.min_gpus > found.gpus)
    if len(wide):
        why = f"the cluster has {found.gpus} GPUs"
        raise trace.locate(InvalidInput("min_gpus", int(trace.min_gpus[wide[0]]), why, index=int(wide[0])))
    return found


def run_fluid(
    trace: Trace,
    policy: FluidPolicy,
    *,
    cluster: Cluster,
    speeds: Speedups,
    rules: FluidRules,
    on_step: OnStep | None,
    record: bool,
) -> FluidResult:
    """Run `simulate_fluid` with the arguments of `simulate`."""
    return simulate_fluid(trace, policy, cluster=cluster, speedups=speeds, rules=rules, on_event=on_step, record=record)


class _Run:
    """State of a simulation in progress: `step` processes the next event and calls the policy once."""

    def __init__(
        self, trace: Trace, policy: FluidPolicy, cluster: Cluster, speedups: Speedups, rules: FluidRules, record: bool
    ) -> None:
        self.trace, self.policy, self.cluster, self.rules = trace, policy, cluster, rules
        self.jobs = fluid_jobs(trace, speedups, rules)
        self.state = FluidState(cluster.gpus, Clock(rules.microseconds), rules.preemption_s)
        self.arrived = self.ended = self.steps = 0
        self.calls = CallLog()
        # Start of each interval between events, with the GPUs and jobs in it.
        self.levels: list[tuple[float, float, int, int]] = []
        self.stretches = StretchLog() if record else None
        self.held: dict[int, float] = {}  # GPUs of the jobs that have an open stretch
        self.predicted: dict[int, tuple[float, float]] = {}

    @property
    def time_s(self) -> float:
        """Time of the last event."""
        return self.state.time_s

    def step(self) -> bool:
        """Advance to the next event; False if all jobs had ended before it."""
        if self.ended == len(self.jobs):
            return False
        state = self.state
        if self.steps >= self.rules.most_steps:
            raise EquipoiseError(f"{self.steps} events passed, and {len(state.jobs)} jobs have not ended")
        arriving = self.jobs[self.arrived] if self.arrived < len(self.jobs) else None
        self.ended += next_event(state, self.policy, arriving) is not None
        self.arrived += state.event == "arrival"
        present = len(state.jobs)
        answer, wall_s = self.calls.timed(lambda: self.policy.allocate(state))
        divide(state, self.policy, answer)
        evidence = getattr(self.policy, "evidence", None) or Evidence()
        self.calls.record(self.steps, state.time_s, present, wall_s, "allocation", evidence)
        running = [job.gpus for job in state.jobs if job.gpus > 0.0]
        self.levels.append((state.time_s, sum(running), len(running), present - len(running)))
        if self.stretches is not None:
            self._record(self.stretches)
        if self.rules.predict and state.event == "arrival":
            assert arriving is not None
            self.predicted[arriving.trace_index] = play_out(state, self.policy, arriving)
        self.steps += 1
        return True

    def _record(self, stretches: StretchLog) -> None:
        """Record the jobs whose GPUs changed at this event."""
        time_s = self.state.time_s
        now = {job.trace_index: job.gpus for job in self.state.jobs if job.gpus > 0.0}
        for index, gpus in self.held.items():
            if now.get(index) != gpus:
                stretches.stop(index, time_s)
        for index, gpus in now.items():
            if self.held.get(index) != gpus:
                stretches.start(index, time_s, gpus)
        self.held = now

    def result(self) -> FluidResult:
        """Return the result up to the last event."""
        now_s = self.state.time_s
        jobs = sorted(self.jobs, key=lambda job: job.trace_index)
        end_s = np.array([job.end_s for job in jobs])
        span_s = np.fmin(end_s, now_s) - [job.arrival_s for job in jobs]
        seen_s = np.array([job.seen_s for job in jobs])
        # Contention by time is that of the arrival for a job that takes no time.
        mean = np.divide(seen_s, span_s, out=np.ones(len(jobs)), where=span_s > 0.0)
        rows = [
            (start_s, until_s, busy, running, waiting)
            for (start_s, busy, running, waiting), (until_s, *_) in pairwise([*self.levels, (now_s, 0.0, 0, 0)])
        ]
        predicted = [self.predicted.get(job.trace_index, (math.nan, math.nan)) for job in jobs]
        columns = {name: [getattr(job, name) for job in jobs] for name in RECORDS}
        return fluid_result(
            self.trace,
            self.policy,
            self.cluster,
            self.rules,
            {
                **job_columns(jobs),
                **columns,
                "contention": [job._seen / max(1, job._events) for job in jobs],
                "mean_contention": mean,
                "predicted_end_s": [end for end, _ in predicted],
                "bound_s": [bound for _, bound in predicted],
            },
            levels=Levels.of([row for row in rows if row[1] > row[0]]),
            stretches=None if self.stretches is None else self.stretches.stretches(now_s),
            calls=tuple(self.calls.records),
        )
