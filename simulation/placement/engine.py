"""Placement engine: event by event, jobs start on particular GPUs, share them, move, and end."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from ...formulations.checks import as_flag, as_integer, as_real, as_reals
from ...formulations.errors import EquipoiseError, InvalidInput
from ..cluster import Cluster
from ..decision import CallLog, Evidence
from ..profiles.table import Profiles
from ..results.interrupt import OnStep, play
from ..results.timeline import Levels, StretchLog
from ..traces.trace import Trace
from .actions import Move, Start, Stop, Wake
from .interference import ConstantInterference, Interference, SharedSpeeds
from .job import PlacementJob
from .policy import PlacementPolicy, PlacementState
from .result import PlacementResult
from .rules import PlacementRules
from .speeds import ProfileSpeeds, Running, Speeds
from .ticks import TICK_S

_KNOWS = frozenset({"durations", "service", "speeds", "interference"})
# Kinds of events; of those at one time, ends come first.
_END, _LEASE, _ARRIVAL, _WAKE = range(4)


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
        Callback after each call of the policy with (call, time_s, jobs ended, jobs in all).
    record : bool
        Whether to record which job held which GPUs when (`stretches`).

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
    try:
        run = _Run(trace, policy, found, rates, slowdown, rules or PlacementRules(), as_flag("record", record))
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
        self.speeds, self.interference = speeds, interference
        self.state = PlacementState(cluster, rules.jobs_per_gpu, speeds, interference, frozenset(policy.knows))
        self.jobs = self.state._all_jobs = self._admissible()
        order = sorted(range(len(trace)), key=lambda index: (self.jobs[index].arrival_s, index))
        # An event is (time, kind, trace index, version of the run or lease); arrivals are added one by one.
        self.arrivals = iter(order)
        self.events: list[tuple[float, int, int, int]] = []
        self._expect_arrival()
        self.steps = self.ended = self.busy = 0
        self.unrenewed: dict[int, PlacementJob] = {}  # jobs whose leases end in this call, and are not renewed so far
        self.ready_s: dict[int, float] = {}  # GPUs on which a stopped job saves its state, and until when
        self.held_s = np.zeros(len(trace))
        self.machines = np.zeros(len(trace), dtype=np.int64)
        self.tiers = np.zeros(len(trace), dtype=np.int64)
        self.calls, self.stretches = CallLog(), StretchLog()
        # Start of each interval between calls, with the GPUs and jobs in it.
        self.levels: list[tuple[float, int, int, int]] = []

    def _admissible(self) -> list[PlacementJob]:
        """Return the jobs; InvalidInput names the first that cannot run alone on the empty cluster."""
        trace, gpus = self.trace, self.state.gpus
        work = as_reals("work of speeds", self.speeds.work(trace), above=0.0, shape=(len(trace),))
        jobs = []
        for index, model in enumerate(trace.model):
            gang, size = int(trace.gang_gpus[index]), int(trace.batch_size[index])
            if gang > gpus.cluster.gpus:
                why = f"job {trace.job_id[index]!r} is wider than the cluster of {gpus.cluster.gpus} GPUs"
                raise InvalidInput("gang_gpus", gang, why, index=index)
            fewest = gpus.fewest_machines(gang)
            alone = Running(index, model, gang, gang, fewest, fewest, gpus.least_tier(gang), size, size)
            jobs.append(PlacementJob(self.state, trace, index, float(work[index]), self._rate_of(alone)))
        return jobs

    def _rate_of(self, run: Running) -> float:
        rate = float(self.speeds.rate(run))
        if not (math.isfinite(rate) and rate > 0):
            raise InvalidInput("speeds", rate, f"job cannot run so: {run}", index=run.trace_index)
        return rate

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
            if kind == _END:
                state.time_s = max(state.time_s, time_s)
                self._end(self.jobs[index])
        state.time_s = last_s
        # In order of the trace: times within a tick of each other are in no order.
        due.sort(key=lambda event: event[1:3])
        state.ended = [self.jobs[index] for _, kind, index, _ in due if kind == _END]
        state.arrived = [self.jobs[index] for _, kind, index, _ in due if kind == _ARRIVAL]
        expired = [self.jobs[index] for _, kind, index, _ in due if kind == _LEASE]
        state.expired = [job for job in expired if job.run is not None]
        self.unrenewed = {job.trace_index: job for job in state.expired}
        for job in state.arrived:
            state.jobs[job.trace_index] = state.waiting[job.trace_index] = job
        present, state.step = len(state.jobs), self.steps
        _, wall_s = self.calls.timed(lambda: self._apply(self.policy.decide(state)))
        evidence = getattr(self.policy, "evidence", None) or Evidence()
        self.calls.record(self.steps, state.time_s, present, wall_s, "actions", evidence)
        for job in list(self.unrenewed.values()):
            self._stop(job)
        self.levels.append((state.time_s, self.busy, len(state.running), len(state.waiting)))
        self.steps += 1
        return True

    def _due_events(self) -> list[tuple[float, int, int, int]]:
        """Take the events within a tick of the next, in order of time."""
        due: list[tuple[float, int, int, int]] = []
        while self.events and (not due or self.events[0][0] <= due[0][0] + TICK_S):
            event = heappop(self.events)
            _, kind, index, version = event
            if kind == _ARRIVAL:
                self._expect_arrival()
            elif kind != _WAKE and version != (self.jobs[index]._version, self.jobs[index]._lease)[kind]:
                continue  # the run or its lease changed since
            due.append(event)
        if not due:
            names = ", ".join(repr(job.id) for job in list(self.state.jobs.values())[:5])
            raise EquipoiseError(f"{self.policy.name} leaves jobs waiting, and no event is to come: {names}, ...")
        return due

    def _expect_arrival(self) -> None:
        index = next(self.arrivals, None)
        if index is not None:
            heappush(self.events, (self.jobs[index].arrival_s, _ARRIVAL, index, 0))

    # -- Actions -------------------------------------------------------------------------------------------------------

    def _apply(self, actions: Iterable[Any]) -> None:
        if not isinstance(actions, Iterable):
            why = f"decide of policy {self.policy.name} must yield actions"
            raise InvalidInput("actions", type(actions).__name__, why)
        for action in actions:
            try:
                self._take_effect(action)
            except InvalidInput as error:
                field = f"{error.field} of an action of policy {self.policy.name}"
                raise InvalidInput(field, error.value, error.why) from None

    def _take_effect(self, action: Any) -> None:
        """Check an action and carry it out."""
        if isinstance(action, Wake):
            time_s = as_real("wake", action.time_s)
            if time_s <= self.state.time_s + TICK_S:
                raise InvalidInput("wake", time_s, f"must be later than now, {self.state.time_s:g}")
            heappush(self.events, (time_s, _WAKE, -1, 0))
            return
        if not isinstance(action, Start | Move | Stop):
            raise InvalidInput("action", type(action).__name__, "must be Start, Stop, Move or Wake")
        job = self.state.jobs.get(action.trace_index)
        if job is None:
            raise InvalidInput("trace_index", action.trace_index, "no such job has arrived and not ended")
        if isinstance(action, Start):
            self._start(job, action)
        elif job.run is None:
            raise InvalidInput("trace_index", job.trace_index, f"job {job.id!r} does not run")
        elif isinstance(action, Stop):
            self._stop(job)
        else:
            self._move(job, action)

    def _start(self, job: PlacementJob, action: Start) -> None:
        if job.run is not None:
            self._renew(job, action)
            return
        job.restarts += not math.isnan(job.start_s)
        self._occupy(job, action)

    def _renew(self, job: PlacementJob, action: Start) -> None:
        """Extend the lease of a job whose lease ends now."""
        if job.trace_index not in self.unrenewed:
            raise InvalidInput("trace_index", job.trace_index, f"job {job.id!r} runs already; use Move")
        why = f"job {job.id!r} renews its lease on its own GPUs with its own batch; use Move"
        if _whole_numbers(action.gpu_ids) != job.gpu_ids:
            raise InvalidInput("gpu_ids", action.gpu_ids, why)
        for name in ("batch_size", "sub_batch"):
            if getattr(action, name) not in (None, getattr(job.run, name)):
                raise InvalidInput(name, getattr(action, name), why)
        del self.unrenewed[job.trace_index]
        self._schedule_lease(job, action.lease_s)

    def _move(self, job: PlacementJob, action: Move) -> None:
        before = job.gpu_ids
        self._vacate(job)
        self._save(job, before)
        self._occupy(job, action)
        job.moves += 1

    def _stop(self, job: PlacementJob) -> None:
        before = job.gpu_ids
        self._vacate(job)
        self._save(job, before)
        self.state.waiting[job.trace_index] = job
        job.last_stop_s = self.state.time_s
        job.preemptions += 1

    def _save(self, job: PlacementJob, gpu_ids: tuple[int, ...]) -> None:
        """Note until when a stopped job saves its state."""
        if self.rules.checkpoint_s:
            job._ready_s = self.state.time_s + self.rules.checkpoint_s
            for gpu in gpu_ids:
                self.ready_s[gpu] = max(job._ready_s, self.ready_s.get(gpu, 0.0))

    def _occupy(self, job: PlacementJob, action: Start | Move) -> None:
        """Put a job on GPUs, after checks."""
        state, now_s = self.state, self.state.time_s
        ids = self._checked_ids(action.gpu_ids)
        size = part = job.batch_size
        if action.batch_size is not None:
            size = part = as_integer("batch_size", action.batch_size, minimum=1)
        if action.sub_batch is not None:
            part = as_integer("sub_batch", action.sub_batch, minimum=1, maximum=size)
        run = state.run_on(job, ids, size, part)
        job._solo_rate = self._rate_of(run)
        job._exposed = as_real("exposed of speeds", self.speeds.exposed(run), minimum=0.0, maximum=1.0)
        again = not math.isnan(job.start_s)
        ready_s = max([now_s, job._ready_s, *(self.ready_s.get(gpu, 0.0) for gpu in ids)]) if self.ready_s else now_s
        job._progress_from_s = ready_s + (self.rules.restart_s if again else 0.0)
        job.start_s, job.last_start_s = job.start_s if again else now_s, now_s
        job.run, job.gpu_ids, job._at_s = run, ids, now_s
        state.waiting.pop(job.trace_index, None)
        state.running[job.trace_index] = job
        state.gpus.add(job.trace_index, ids, now_s)
        self.busy = state.cluster.gpus - state.gpus.free_gpus
        self.machines[job.trace_index] = max(self.machines[job.trace_index], run.machines)
        self.tiers[job.trace_index] = max(self.tiers[job.trace_index], run.tier)
        if self.record:
            self.stretches.start(job.trace_index, now_s, len(ids), gpu_ids=ids)
        self._update_rates(job)
        self._schedule_lease(job, action.lease_s)

    def _checked_ids(self, gpu_ids: Iterable[int]) -> tuple[int, ...]:
        gpus, ids = self.state.gpus, _whole_numbers(gpu_ids)
        if not ids:
            raise InvalidInput("gpu_ids", "()", "must not be empty")
        for gpu in ids:
            if not 0 <= gpu < len(gpus.jobs_on):
                raise InvalidInput("gpu_ids", gpu, f"the GPUs are 0 to {len(gpus.jobs_on) - 1}")
            if len(gpus.jobs_on[gpu]) >= self.rules.jobs_per_gpu:
                raise InvalidInput("gpu_ids", gpu, f"the GPU has {len(gpus.jobs_on[gpu])} job(s) already")
        for one, other in pairwise(ids):
            if one == other:
                raise InvalidInput("gpu_ids", one, "the GPU is named twice")
        return ids

    def _schedule_lease(self, job: PlacementJob, lease_s: float) -> None:
        if not (isinstance(lease_s, Real) and lease_s > TICK_S):
            raise InvalidInput("lease_s", lease_s, "must be positive")
        job._lease += 1
        if math.isfinite(lease_s):
            heappush(self.events, (self.state.time_s + float(lease_s), _LEASE, job.trace_index, job._lease))

    def _vacate(self, job: PlacementJob) -> None:
        """Take a job off its GPUs; the jobs beside it go on at their new rates."""
        state, ids, index = self.state, job.gpu_ids, job.trace_index
        others = state.sharing(job) if self.rules.jobs_per_gpu > 1 else {}
        job._accrue()
        self.held_s[index] += state.time_s - job.last_start_s
        state.gpus.remove(index, ids, state.time_s)
        self.busy = state.cluster.gpus - state.gpus.free_gpus
        del state.running[index]
        self.unrenewed.pop(index, None)
        job.run, job.gpu_ids, job._rate, job._shared_gpus = None, (), 0.0, 0
        job._version += 1
        job._lease += 1
        if self.record:
            self.stretches.stop(index, state.time_s)
        for other in others.values():
            self._set_rate(other)

    def _end(self, job: PlacementJob) -> None:
        self._vacate(job)
        job._done, job.end_s = job._work, self.state.time_s
        del self.state.jobs[job.trace_index]
        self.ended += 1

    # -- Rates ---------------------------------------------------------------------------------------------------------

    def _update_rates(self, job: PlacementJob) -> None:
        """Set the rate of a job that has started, and of the jobs beside it."""
        self._set_rate(job)
        if self.rules.jobs_per_gpu > 1:
            for other in self.state.sharing(job).values():
                self._set_rate(other)

    def _set_rate(self, job: PlacementJob) -> None:
        """Set a job's rate by the jobs beside it, and its end."""
        job._accrue()
        rate, run = job._solo_rate, job.run
        assert run is not None
        if self.rules.jobs_per_gpu > 1:
            others = [other.run for other in self.state.sharing(job).values() if other.run is not None]
            job._shared_gpus = sum(len(self.state.gpus.jobs_on[gpu]) > 1 for gpu in job.gpu_ids)
            if others:
                ratio = float(self.interference.ratio(run, others))
                if not (math.isfinite(ratio) and ratio >= 1.0):
                    raise InvalidInput("interference", ratio, f"must be at least 1, for {run} beside {others}")
                rate /= ratio
        job._rate = rate
        job._version += 1
        from_s = max(self.state.time_s, job._progress_from_s)
        heappush(self.events, (from_s + (job._work - job._done) / rate, _END, job.trace_index, job._version))

    # -- Result --------------------------------------------------------------------------------------------------------

    def result(self) -> PlacementResult:
        """Return the result up to the last call; jobs that run hold their GPUs up to it."""
        jobs, now_s = self.jobs, self.state.time_s

        def column(name: str, kind: type = float) -> Any:
            return np.array([getattr(job, name) for job in jobs], dtype=kind)

        for job in self.state.running.values():
            job._accrue()
        held_s = self.held_s.copy()
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
            stretches=self.stretches.stretches(now_s) if self.record else None,
            solve_rows=tuple(self.calls.records),
            held_s=held_s,
            exposed_s=column("exposed_s"),
            shared_gpu_s=column("shared_gpu_s"),
            machines=self.machines.copy(),
            tier=self.tiers.copy(),
            preemptions=column("preemptions", int),
            moves=column("moves", int),
        )


def _whole_numbers(gpu_ids: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of GPUs in ascending order."""
    try:
        return tuple(sorted(map(operator.index, gpu_ids)))
    except TypeError:
        raise InvalidInput("gpu_ids", gpu_ids, "must be a sequence of numbers of GPUs") from None


def _has_methods(value: object, *names: str) -> bool:
    return all(callable(getattr(value, name, None)) for name in names)
