"""Rounds engine: fixed gangs share GPUs in rounds under a policy that returns shares or a schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.checks import as_flag
from ...formulations.errors import EquipoiseError, InvalidInput
from ..cluster import Cluster
from ..profiles.table import Profiles
from ..results.interrupt import OnStep, play
from ..results.timeline import Levels, StretchLog
from ..traces.trace import Trace
from ..traces.trajectory import exclusive_s
from .admission import admit_jobs
from .cluster import RoundCluster
from .decisions import Decisions
from .job import RoundProgress
from .leases import GpuLeases
from .policy import RoundJob, RoundPolicy, RoundState
from .result import RoundRecord, RoundResult
from .rules import RoundRules
from .view import Clock, contention_at, halfway, round_job


def simulate_rounds(
    trace: Trace,
    policy: RoundPolicy,
    *,
    gpus: Cluster | int | Mapping[str, int],
    profiles: Profiles | Mapping[str, Profiles],
    rules: RoundRules | None = None,
    on_round: OnStep | None = None,
    record: bool = True,
) -> RoundResult:
    """Run a trace to its end under a policy.

    Parameters
    ----------
    trace : Trace
        Jobs in any order; the engine orders them by arrival, ties by id.
    policy : RoundPolicy
        Policy that is called with the state of the cluster; see `rounds.policy`.
    gpus : Cluster, int or mapping of str to int
        GPUs of the cluster (M), or of each type. This engine ignores machines and racks.
    profiles : Profiles or mapping of str to Profiles
        Rates, epochs and run-time rules of adaptation: one for all GPU types, or one for each.
    rules : RoundRules, optional
        Rules; by default those of the released simulator.
    on_round : callable, optional
        Callback at the end of each round with (round, time_s, jobs ended, jobs in all).
    record : bool
        Whether to record every run of a job in a round. If False, the result has no `runs`, `schedule` and
        `stretches`, and takes less memory.

    Raises
    ------
    InvalidInput
        Before the simulation: if a gang exceeds the cluster, a job cannot run at a batch size that it can reach, or an
        argument is out of range; for a trace read from a file, the message names line and column. During the
        simulation: if the policy's answer is infeasible.
    EquipoiseError
        If jobs are unfinished after `rules.most_rounds` rounds.
    SimulationInterrupted
        On Ctrl-C: a KeyboardInterrupt that carries the jobs that had ended.

    Notes
    -----
    The rules are those of the simulator released with Shockwave (NSDI 2023), as its published results show them;
    docs/rounds.md lists them. The same arguments give the same result to the last bit, but for the policy's wall times.
    """
    if not isinstance(trace, Trace):
        raise InvalidInput("trace", type(trace).__name__, "must be a Trace")
    for name in ("decide", "due"):
        if not callable(getattr(policy, name, None)):
            raise InvalidInput("policy", type(policy).__name__, f"must have a method {name}(state); see RoundPolicy")
    if not isinstance(getattr(policy, "name", None), str):
        raise InvalidInput("policy", type(policy).__name__, "must have a name; see RoundPolicy")
    if rules is not None and not isinstance(rules, RoundRules):
        raise InvalidInput("rules", type(rules).__name__, "must be RoundRules")
    cluster = RoundCluster(gpus, profiles)
    try:
        run = _Run(trace, policy, cluster, rules or RoundRules(), record=as_flag("record", record))
    except InvalidInput as error:
        raise trace.locate(error) from None
    return play(run, len(trace), on_round)


def run_rounds(
    trace: Trace,
    policy: RoundPolicy,
    *,
    cluster: Cluster,
    speeds: Profiles | Mapping[str, Profiles],
    rules: RoundRules,
    on_step: OnStep | None,
    record: bool,
) -> RoundResult:
    """Run `simulate_rounds` with the arguments of `simulate`."""
    return simulate_rounds(trace, policy, gpus=cluster, profiles=speeds, rules=rules, on_round=on_step, record=record)


class _Run:
    """State of a simulation in progress: `step` simulates one round."""

    def __init__(
        self, trace: Trace, policy: RoundPolicy, cluster: RoundCluster, rules: RoundRules, *, record: bool
    ) -> None:
        self.trace, self.policy, self.cluster, self.rules, self.record = trace, policy, cluster, rules, record
        self.jobs = admit_jobs(trace, cluster, follow_schedules=rules.follow_schedules)
        self.exclusive_s = exclusive_s(trace, cluster.fastest())
        # The limit of overrun counts the slowest type, so that slow GPUs do not end a job.
        longest_s = exclusive_s(trace, cluster.slowest()) if len(cluster.types) > 1 else self.exclusive_s
        self.most_run_s = [
            math.inf if rules.overrun is None else int(rules.overrun * int(longest_s[job.trace_index]))
            for job in self.jobs
        ]
        self.decisions = Decisions(policy, cluster, rules, self.jobs)
        self.leases = GpuLeases(cluster.counts)
        self.lease_extensions = 0
        self.clock = Clock()
        self.gpus = np.array(cluster.counts, dtype=np.int64)
        self.gpus.setflags(write=False)
        self.active: list[RoundProgress] = []
        self.views: dict[int, RoundJob] = {}
        self.steps = self.ended = self.admitted = self.demand = 0
        self.planned = False
        self.round_rows: list[RoundRecord] = []
        # Fields of `RunRecord`, and how many of them belong to rounds that have ended. The records are built on access:
        # building 200,000 of them takes a tenth of a large run's time.
        self.runs: list[tuple[Any, ...]] = []
        self.whole_runs = 0
        self.stretches = StretchLog()
        # GPUs are numbered within their type here, and across types in the records common to all engines.
        self.first_gpu = [0, *accumulate(cluster.counts[:-1])]

    @property
    def time_s(self) -> float:
        """Current simulated time."""
        return self.clock.time_s

    def step(self) -> bool:
        """Simulate one round; return False if all jobs had ended before it."""
        clock, number = self.clock, self.steps
        if not self.active:
            if self.admitted == len(self.jobs):
                return False
            self.planned = False
            clock.advance(max(clock.time_s, self.jobs[self.admitted].arrival_s))
        if number >= self.rules.most_rounds:
            names = ", ".join(repr(job.id) for job in self.active[:5])
            raise EquipoiseError(f"{number} rounds passed, and {len(self.active)} jobs have not ended: {names}, ...")
        admitted_before = self.admitted
        self._admit(clock.time_s)
        calls = len(self.decisions.calls.records)
        if not self.planned:
            self.decisions.consult(self._state(number, [self._view(job, number) for job in self.active]))
        self.planned = False
        start_s, waiting = clock.time_s, len(self.active)
        chosen = self.decisions.choose(self.active, start_s)
        if self.rules.plan_ahead:
            self._plan(number, start_s, chosen)
        end_s, rescaled = self._run_jobs(number, start_s, chosen)
        for job in self.active[:waiting]:
            job.waited_rounds += job.last_round != number
        ended = sum(job.ended_by != "" for job, _ in chosen)
        if ended:
            self.active = [job for job in self.active if not job.ended_by]
        busy = sum(job.gang_gpus for job, _ in chosen)
        self.round_rows.append(
            RoundRecord(
                round=number,
                start_s=start_s,
                end_s=end_s,
                gpus_busy=busy,
                jobs_running=len(chosen),
                jobs_waiting=waiting - len(chosen),
                arrived=self.admitted - admitted_before,
                ended=ended,
                rescaled=rescaled,
                calls=len(self.decisions.calls.records) - calls,
            )
        )
        self.ended += ended
        self.decisions.completed += ended
        self.decisions.rescaled += rescaled
        clock.advance(end_s)
        self.demand -= sum(job.gang_gpus for job, _ in chosen if job.ended_by)
        clock.contention = contention_at(self.demand, self.cluster.total_gpus)
        self.steps += 1
        self.whole_runs = len(self.runs)
        return True

    def _admit(self, time_s: float) -> None:
        """Admit the jobs that have arrived by `time_s`, which is the clock's time."""
        clock, admitted_before = self.clock, self.admitted
        while self.admitted < len(self.jobs) and self.jobs[self.admitted].arrival_s <= time_s:
            job = self.jobs[self.admitted]
            job.contention_integral_at_arrival_s = clock.contention_integral_s - clock.contention * (
                time_s - job.arrival_s
            )
            self.active.append(job)
            self.demand += job.gang_gpus
            self.admitted += 1
        clock.contention = contention_at(self.demand, self.cluster.total_gpus)
        self.decisions.arrived += self.admitted - admitted_before

    def _plan(self, number: int, start_s: float, chosen: list[tuple[RoundProgress, int]]) -> None:
        """Call the policy for the next round in the middle of this one, with the state at that time."""
        length_s = max((job.run_length_s(job.rates[gpu_type], self.rules) for job, gpu_type in chosen), default=None)
        half_s = (self.rules.round_s if length_s is None else length_s) / 2.0
        self.clock.advance(start_s + half_s)
        self._admit(self.clock.time_s)
        ahead = {
            job.order: halfway(job, number, float(job.rates[gpu_type]), half_s, self.rules) for job, gpu_type in chosen
        }
        views = [
            round_job(ahead[job.order], self.clock, True) if job.order in ahead else self._view(job, number + 1)
            for job in self.active
        ]
        self.decisions.consult(self._state(number + 1, views))
        self.planned = True

    def _run_jobs(self, number: int, start_s: float, chosen: list[tuple[RoundProgress, int]]) -> tuple[float, int]:
        """Run the chosen jobs; return the end of the round, and how many jobs changed their batch size."""
        end_s = start_s if chosen else start_s + self.rules.round_s
        rescaled = 0
        leases = self.leases.assign([(job.order, gpu_type, job.gang_gpus) for job, gpu_type in chosen])
        for (job, gpu_type), (gpu_ids, extended) in zip(chosen, leases, strict=True):
            batch_size, first = job.batch_size, not job.rounds
            self.lease_extensions += extended
            if self.record and not extended:
                self._start_stretch(job, gpu_type, gpu_ids, start_s)
            most_s = self.most_run_s[job.order]
            steps, run_s, stop_s, lost_s = job.run(number, start_s, float(job.rates[gpu_type]), most_s, self.rules)
            self.decisions.record(job, gpu_type, run_s)
            rescaled += job.batch_size != batch_size and not job.ended_by
            end_s = max(end_s, stop_s)
            if self.record:
                did = (number, job.trace_index, gpu_type, gpu_ids, first, extended, lost_s, batch_size, steps, run_s)
                self.runs.append((*did, job.steps_run, job.total_steps, job.batch_size))
        return end_s, rescaled

    def _start_stretch(self, job: RoundProgress, gpu_type: int, gpu_ids: tuple[int, ...], start_s: float) -> None:
        self._stop_stretch(job)
        offset = self.first_gpu[gpu_type]
        ids = tuple(offset + gpu for gpu in gpu_ids) if offset else gpu_ids
        self.stretches.start(job.trace_index, start_s, job.gang_gpus, gpu_ids=ids, gpu_type=gpu_type)

    def _stop_stretch(self, job: RoundProgress) -> None:
        """End the job's stretch, if it has one, at the end of the last complete round in which it ran."""
        if job.rounds and self.round_rows:
            self.stretches.stop(job.trace_index, self.round_rows[min(job.last_round, len(self.round_rows) - 1)].end_s)

    def _view(self, job: RoundProgress, number: int) -> RoundJob:
        """Return the job's view before a round; an unchanged view is reused."""
        running = job.last_round == number - 1
        view = self.views.get(job.order)
        if view is None or view.running != running or view.attained_s != job.attained_s:
            view = self.views[job.order] = round_job(job, self.clock, running)
        return view

    def _state(self, number: int, views: list[RoundJob]) -> RoundState:
        decisions = self.decisions
        return RoundState(
            round=number,
            time_s=self.clock.time_s,
            round_s=self.rules.round_s,
            gpu_types=self.cluster.types,
            gpus=self.gpus,
            jobs=tuple(views),
            arrived=decisions.arrived,
            completed=decisions.completed,
            rescaled=decisions.rescaled,
            since_call_s=self.clock.time_s - decisions.called_s,
        )

    def result(self) -> RoundResult:
        """Return the result of the rounds that have ended; an interrupt may come within a round."""
        jobs = sorted(self.jobs, key=lambda job: job.trace_index)
        rounds = self.round_rows
        for job in jobs:
            self._stop_stretch(job)

        def column(name: str) -> NDArray[Any]:
            return np.array([getattr(job, name) for job in jobs])

        return RoundResult(
            engine="rounds",
            policy=str(self.policy.name),
            trace=self.trace,
            cluster=self.cluster.cluster,
            rules=self.rules,
            start_s=column("start_s"),
            end_s=column("end_s"),
            run_s=column("attained_s"),
            gpu_s=column("attained_s") * self.trace.gang_gpus,
            exclusive_s=self.exclusive_s,
            rounds_run=column("rounds"),
            rounds_waited=column("waited_rounds"),
            restarts=column("restarts"),
            ended_by=column("ended_by"),
            last_round=column("last_round"),
            lease_extensions=self.lease_extensions,
            levels=Levels.of(
                [(row.start_s, row.end_s, row.gpus_busy, row.jobs_running, row.jobs_waiting) for row in rounds]
            ),
            stretches=self.stretches.stretches(rounds[-1].end_s if rounds else 0.0) if self.record else None,
            round_rows=tuple(rounds),
            run_values=tuple(self.runs[: self.whole_runs]) if self.record else None,
            solve_rows=tuple(self.decisions.calls.records),
        )
