"""Placement engine: event by event, jobs start on particular GPUs, share them, move, and end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from ...formulations.checks import as_flag, as_real
from ...formulations.errors import EquipoiseError, InvalidInput
from ..cluster import Cluster
from ..decision import CallLog, Evidence
from ..profiles.table import Profiles
from ..results.interrupt import EngineRun, OnStep, play
from ..results.timeline import Levels
from ..traces.trace import Trace
from .actions import Move, Start, Stop, Wake
from .compiled.rule import DelayRule
from .execution import ARRIVAL, END, LEASE, WAKE, Event, Execution
from .interference import ConstantInterference, Interference, SharedSpeeds
from .job import PlacementJob
from .policy import PlacementPolicy, PlacementState
from .result import PlacementResult, TimerLog
from .rules import PlacementRules
from .speeds import ProfileSpeeds, Speeds, work_and_rates
from .ticks import TICK_S

_KNOWS = frozenset({"durations", "service", "speeds", "interference"})


def simulate_placement(
    trace: Trace,
    policy: PlacementPolicy,
    *,
    cluster: Cluster | int,
    speeds: Speeds | Profiles,
    interference: Interference | None = None,
    rules: PlacementRules | None = None,
    on_event: OnStep | None = None,
    record: bool = True,
    compiled: bool | None = None,
) -> PlacementResult:
    """Run a trace to its end under a policy that places jobs on GPUs.

    Parameters
    ----------
    trace : Trace
        Jobs in any order.
    policy : PlacementPolicy
        Policy that is called after each event; see `placement.policy`.
    cluster : Cluster or int
        GPUs of one type, with their machines and racks; a number is one machine.
    speeds : Speeds or Profiles
        Work of the jobs, and their progress on given GPUs; `Profiles` stand for `ProfileSpeeds`.
    interference : Interference, optional
        Slowdown of jobs that share GPUs; by default there is none.
    rules : PlacementRules, optional
    on_event : callable, optional
        Callback after each call of the policy, or batch of events of the compiled loops, with (call, time_s, jobs
        ended, jobs in all).
    record : bool
        Whether to record which job held which GPUs when (`stretches`).
    compiled : bool, optional
        Whether compiled loops follow the policy's `rule`, a `DelayRule`, or the plain Python reference calls the
        policy. By default the loops run where there is such a rule. Both give the same result, but that the calls of a
        policy are recorded by the reference only.

    Raises
    ------
    InvalidInput
        Before the simulation: if an argument is out of range, or a gang exceeds the cluster or cannot run on it. During
        the simulation: if the policy yields an action that is infeasible.
    EquipoiseError
        If the policy leaves jobs waiting with no event to come, or exceeds `rules.most_steps`.
    SimulationInterrupted
        On Ctrl-C: a KeyboardInterrupt that carries the jobs that had ended.

    Notes
    -----
    The same arguments give the same result to the last bit, but for the policy's wall times.
    """
    if not isinstance(trace, Trace):
        raise InvalidInput("trace", type(trace).__name__, "must be a Trace")
    members = isinstance(getattr(policy, "name", None), str), isinstance(getattr(policy, "knows", None), Iterable)
    if not all(members) or not _has_methods(policy, "decide"):
        why = "must have a name, a set knows and decide(state); see PlacementPolicy"
        raise InvalidInput("policy", type(policy).__name__, why)
    unknown = sorted(set(policy.knows) - _KNOWS)
    if unknown:
        raise InvalidInput("policy.knows", unknown[0], f"must be one of {', '.join(sorted(_KNOWS))}")
    found = Cluster.of(cluster)
    if len(found.types) > 1:
        raise InvalidInput("cluster", ", ".join(found.types), "the placement engine takes GPUs of one type")
    if rules is not None and not isinstance(rules, PlacementRules):
        raise InvalidInput("rules", type(rules).__name__, "must be PlacementRules")
    rates = ProfileSpeeds(speeds) if isinstance(speeds, Profiles) else speeds
    if not _has_methods(rates, "work", "rate", "exposed"):
        raise InvalidInput("speeds", type(speeds).__name__, "must be Speeds or Profiles")
    slowdown = ConstantInterference(1.0) if interference is None else interference
    if not _has_methods(slowdown, "ratio"):
        raise InvalidInput("interference", interference, "must have ratio(mine, others), as ConstantInterference has")
    rules, record = rules or PlacementRules(), as_flag("record", record)
    rule = getattr(policy, "rule", None) if compiled is None or as_flag("compiled", compiled) else None
    if not isinstance(rule, DelayRule):
        if compiled:
            raise InvalidInput("compiled", compiled, f"policy {policy.name} has no rule that the compiled loops know")
        rule = None
    run: EngineRun[PlacementResult]
    try:
        if rule is None:
            run = _Run(trace, policy, found, rates, slowdown, rules, record)
        else:
            # Loading numba takes a second, which the reference does not need.
            from .compiled.run import CompiledRun
            from .compiled.setup import PlacementSetup

            run = CompiledRun(PlacementSetup(trace, found, rates, rules), policy, rule, record=record)
    except InvalidInput as error:
        raise trace.locate(error) from None
    return play(run, len(trace), on_event)


def run_placement(
    trace: Trace,
    policy: PlacementPolicy,
    *,
    cluster: Cluster,
    speeds: Speeds | Profiles | SharedSpeeds,
    rules: PlacementRules,
    on_step: OnStep | None,
    record: bool,
) -> PlacementResult:
    """Run `simulate_placement` with the arguments of `simulate`."""
    alone, beside = speeds if isinstance(speeds, SharedSpeeds) else (speeds, None)
    return simulate_placement(
        trace, policy, cluster=cluster, speeds=alone, interference=beside, rules=rules, on_event=on_step, record=record
    )


class _Run:
    """State of a simulation in progress: `step` processes the next events and calls the policy once."""

    def __init__(
        self,
        trace: Trace,
        policy: PlacementPolicy,
        cluster: Cluster,
        speeds: Speeds,
        interference: Interference,
        rules: PlacementRules,
        record: bool,
    ) -> None:
        self.trace, self.policy, self.rules, self.record = trace, policy, rules, record
        self.state = PlacementState(cluster, rules.jobs_per_gpu, speeds, interference, frozenset(policy.knows))
        # An event is (time, kind, trace index, version of the run or lease); arrivals are added one by one.
        self.events: list[Event] = []
        self.execution = Execution(self.state, self.events, len(trace), speeds, interference, rules, record)
        self.jobs = self.state._all_jobs = self._admissible(speeds)
        order = sorted(range(len(trace)), key=lambda index: (self.jobs[index].arrival_s, index))
        self.arrivals = iter(order)
        self._expect_arrival()
        self.steps = self.ended = 0
        self.calls = CallLog()
        # Start of each interval between calls, with the GPUs and jobs in it.
        self.levels: list[tuple[float, int, int, int]] = []

    def _admissible(self, speeds: Speeds) -> list[PlacementJob]:
        """Return the jobs; InvalidInput names the first that cannot run alone on the empty cluster."""
        work, rates = work_and_rates(self.trace, self.state.gpus, speeds)
        pairs = zip(work.tolist(), rates.tolist(), strict=True)
        return [PlacementJob(self.state, self.trace, index, *pair) for index, pair in enumerate(pairs)]

    @property
    def time_s(self) -> float:
        """Current simulated time."""
        return self.state.time_s

    def step(self) -> bool:
        """Process the events of the next time, and call the policy; return False if all jobs had ended before."""
        if self.ended == len(self.trace):
            return False
        state, due = self.state, self._due_events()
        if self.steps >= self.rules.most_steps:
            raise EquipoiseError(f"{self.steps} calls passed, and {len(state.jobs)} jobs have not ended")
        last_s = max(state.time_s, max(time_s for time_s, *_ in due))
        for time_s, kind, index, _ in due:
            if kind == END:
                state.time_s = max(state.time_s, time_s)
                self.execution.end(self.jobs[index])
                self.ended += 1
        state.time_s = last_s
        # In order of the trace: times within a tick of each other are in no order.
        due.sort(key=lambda event: event[1:3])
        state.ended = [self.jobs[index] for _, kind, index, _ in due if kind == END]
        state.arrived = [self.jobs[index] for _, kind, index, _ in due if kind == ARRIVAL]
        expired = [self.jobs[index] for _, kind, index, _ in due if kind == LEASE]
        state.expired = [job for job in expired if job.run is not None]
        self.execution.unrenewed = {job.trace_index: job for job in state.expired}
        for job in state.arrived:
            state.jobs[job.trace_index] = state.waiting[job.trace_index] = job
        present, state.step = len(state.jobs), self.steps
        _, wall_s = self.calls.timed(lambda: self._apply(self.policy.decide(state)))
        evidence = getattr(self.policy, "evidence", None) or Evidence()
        self.calls.record(self.steps, state.time_s, present, wall_s, "actions", evidence)
        for job in list(self.execution.unrenewed.values()):
            self.execution.stop(job)
        self.levels.append((state.time_s, self.execution.busy, len(state.running), len(state.waiting)))
        self.steps += 1
        return True

    def _due_events(self) -> list[tuple[float, int, int, int]]:
        """Take the events within a tick of the next, in order of time."""
        due: list[tuple[float, int, int, int]] = []
        while self.events and (not due or self.events[0][0] <= due[0][0] + TICK_S):
            event = heappop(self.events)
            _, kind, index, version = event
            if kind == ARRIVAL:
                self._expect_arrival()
            elif kind != WAKE and version != (self.jobs[index]._version, self.jobs[index]._lease)[kind]:
                continue  # the run or its lease changed since
            due.append(event)
        if not due:
            names = ", ".join(repr(job.id) for job in list(self.state.jobs.values())[:5])
            raise EquipoiseError(f"{self.policy.name} leaves jobs waiting, and no event is to come: {names}, ...")
        return due

    def _expect_arrival(self) -> None:
        index = next(self.arrivals, None)
        if index is not None:
            heappush(self.events, (self.jobs[index].arrival_s, ARRIVAL, index, 0))

    # -- Actions -------------------------------------------------------------------------------------------------------

    def _apply(self, actions: Any) -> None:
        if not isinstance(actions, Iterable):
            why = f"decide of policy {self.policy.name} must yield actions"
            raise InvalidInput("actions", type(actions).__name__, why)
        for action in actions:
            try:
                self._take_effect(action)
            except InvalidInput as error:
                if error.field == "interference":  # the action is feasible
                    raise
                field = f"{error.field} of an action of policy {self.policy.name}"
                raise InvalidInput(field, error.value, error.why) from None

    def _take_effect(self, action: Any) -> None:
        """Check an action and carry it out."""
        if isinstance(action, Wake):
            time_s = as_real("wake", action.time_s)
            if time_s <= self.state.time_s + TICK_S:
                raise InvalidInput("wake", time_s, f"must be later than now, {self.state.time_s:g}")
            heappush(self.events, (time_s, WAKE, -1, 0))
            return
        if not isinstance(action, Start | Move | Stop):
            raise InvalidInput("action", type(action).__name__, "must be Start, Stop, Move or Wake")
        job = self.state.jobs.get(action.trace_index)
        if job is None:
            raise InvalidInput("trace_index", action.trace_index, "no such job has arrived and not ended")
        if isinstance(action, Start):
            self.execution.start(job, action)
        elif job.run is None:
            raise InvalidInput("trace_index", job.trace_index, f"job {job.id!r} does not run")
        elif isinstance(action, Stop):
            self.execution.stop(job)
        else:
            self.execution.move(job, action)

    # -- Result --------------------------------------------------------------------------------------------------------

    def result(self) -> PlacementResult:
        """Return the result up to the last call; jobs that run hold their GPUs up to it."""
        jobs, now_s = self.jobs, self.state.time_s

        def column(name: str, kind: type = float) -> Any:
            return np.array([getattr(job, name) for job in jobs], dtype=kind)

        for job in self.state.running.values():
            job._accrue()
        held_s = self.execution.held_s.copy()
        for index, job in self.state.running.items():
            held_s[index] += now_s - job.last_start_s
        rows = [
            (start_s, end_s, busy, running, waiting)
            for (start_s, busy, running, waiting), (end_s, *_) in pairwise([*self.levels, (now_s, 0, 0, 0)])
        ]
        return PlacementResult(
            engine="placement",
            policy=str(self.policy.name),
            trace=self.trace,
            cluster=self.state.cluster,
            rules=self.rules,
            start_s=column("start_s"),
            end_s=column("end_s"),
            run_s=column("run_s"),
            gpu_s=column("run_gpu_s"),
            exclusive_s=np.array([job._work / job._exclusive_rate for job in jobs]),
            restarts=column("restarts", int),
            ended_by=np.array(["" if math.isnan(job.end_s) else "completed" for job in jobs]),
            levels=Levels.of([row for row in rows if row[1] > row[0]]),
            stretches=self.execution.stretches.stretches(now_s) if self.record else None,
            solve_rows=tuple(self.calls.records),
            held_s=held_s,
            exposed_s=column("exposed_s"),
            shared_gpu_s=column("shared_gpu_s"),
            machines=self.execution.machines.copy(),
            tier=self.execution.tiers.copy(),
            preemptions=column("preemptions", int),
            moves=column("moves", int),
            timers=TimerLog.of(timers) if (timers := getattr(self.policy, "timer_log", None)) is not None else None,
        )


def _has_methods(value: object, *names: str) -> bool:
    return all(callable(getattr(value, name, None)) for name in names)
