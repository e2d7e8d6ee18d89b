"""The rounds engine: fixed gangs that share GPUs in rounds, under a policy that gives shares or a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import EquipoiseError, InvalidInput
from ..profiles.table import Profiles
from ..results.result import SimulationResult
from ..traces.trace import Trace
from ..traces.trajectory import isolated_s
from .admission import enter_jobs
from .cluster import RoundCluster
from .decisions import Decisions
from .interrupt import SimulationInterrupted
from .job import RoundProgress
from .leases import Placement
from .policy import RoundJob, RoundPolicy, RoundState
from .rules import RoundRules
from .view import Clock, contention_at, halfway, round_job

# on_round(round, time_s, jobs ended, jobs in all)
OnRound = Callable[[int, float, int, int], None]


def simulate_rounds(
    trace: Trace,
    policy: RoundPolicy,
    *,
    gpus: int | Mapping[str, int],
    profiles: Profiles | Mapping[str, Profiles],
    rules: RoundRules | None = None,
    on_round: OnRound | None = None,
) -> SimulationResult:
    """Run a trace to its end under a policy.

    Parameters
    ----------
    trace : Trace
        Its rows may come in any order: jobs go by arrival, ties by id.
    policy : RoundPolicy
        Called with the state of the cluster; see `round_policy`.
    gpus : int or mapping of str to int
        GPUs of the cluster (M), or of each type.
    profiles : Profiles or mapping of str to Profiles
        Rates, epochs and run-time rules of adaptation: one for all GPU types, or one for each.
    rules : RoundRules, optional
        The released simulator's by default.
    on_round : callable, optional
        Called at the end of each round with (round, time_s, jobs ended, jobs in all).

    Returns
    -------
    SimulationResult

    Raises
    ------
    InvalidInput
        Before anything runs: if a gang is wider than the cluster, a job cannot run at a batch size that it can come
        to, or an argument is out of range; of a trace read from a file it names line and column. During the run: if
        the policy's answer is not possible.
    EquipoiseError
        If `rules.most_rounds` pass without an end.
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
        run = _Run(trace, policy, cluster, rules or RoundRules())
    except InvalidInput as error:
        raise trace.locate(error) from None
    try:
        while run.step():
            if on_round is not None:
                on_round(run.round - 1, run.clock.time_s, run.ended, len(trace))
    except KeyboardInterrupt:
        raise SimulationInterrupted(run.result(trace, policy)) from None
    return run.result(trace, policy)


class _Run:
    """One simulation as it goes: `step` plays one round."""

    def __init__(self, trace: Trace, policy: RoundPolicy, cluster: RoundCluster, rules: RoundRules) -> None:
        self.cluster, self.rules = cluster, rules
        self.jobs = enter_jobs(trace, cluster)
        self.exclusive_s = isolated_s(trace, cluster.fastest())
        # Overrun is judged on the slowest type: a job is not to end because it was given slow GPUs.
        longest_s = isolated_s(trace, cluster.slowest()) if len(cluster.types) > 1 else self.exclusive_s
        self.most_run_s = [
            math.inf if rules.overrun is None else int(rules.overrun * int(longest_s[job.place])) for job in self.jobs
        ]
        self.decisions = Decisions(policy, cluster, rules, self.jobs)
        self.placement = Placement(cluster.counts)
        self.clock = Clock()
        self.gpus = np.array(cluster.counts, dtype=np.int64)
        self.gpus.setflags(write=False)
        self.active: list[RoundProgress] = []
        self.views: dict[int, RoundJob] = {}
        self.round = self.ended = self.admitted = self.demand = 0
        self.planned = False
        self.round_rows: list[tuple[Any, ...]] = []
        self.run_rows: list[tuple[Any, ...]] = []

    def step(self) -> bool:
        """Play one round; return False if all jobs have ended before it."""
        clock, number = self.clock, self.round
        if not self.active:
            if self.admitted == len(self.jobs):
                return False
            self.planned = False
            clock.advance(max(clock.time_s, self.jobs[self.admitted].arrival_s))
        if number >= self.rules.most_rounds:
            names = ", ".join(repr(job.id) for job in self.active[:5])
            raise EquipoiseError(f"{number} rounds passed, and {len(self.active)} jobs have not ended: {names}, ...")
        before = self.admitted
        self._admit(clock.time_s)
        calls = len(self.decisions.solves)
        if not self.planned:
            self.decisions.consult(self._state(number, [self._view(job, number) for job in self.active]))
        self.planned = False
        start_s, waiting = clock.time_s, len(self.active)
        chosen = self.decisions.choose(self.active, start_s)
        if self.rules.plan_ahead:
            self._plan(number, start_s, chosen)
        end_s, rescaled = self._play(number, start_s, chosen)
        for job in self.active[:waiting]:
            job.waited_rounds += job.last_round != number
        ended = sum(job.ended_by != "" for job, _ in chosen)
        if ended:
            self.active = [job for job in self.active if not job.ended_by]
        busy = sum(job.gang for job, _ in chosen)
        self.round_rows.append(
            (
                number,
                start_s,
                end_s,
                busy,
                len(chosen),
                waiting - len(chosen),
                self.admitted - before,
                ended,
                rescaled,
                len(self.decisions.solves) - calls,
            )
        )
        self.ended += ended
        self.decisions.completed += ended
        self.decisions.rescaled += rescaled
        clock.advance(end_s)
        self.demand -= sum(job.gang for job, _ in chosen if job.ended_by)
        clock.contention = contention_at(self.demand, self.cluster.total_gpus)
        self.round += 1
        return True

    def _admit(self, time_s: float) -> None:
        """Let in who has arrived by now; the clock stands there."""
        clock, before = self.clock, self.admitted
        while self.admitted < len(self.jobs) and self.jobs[self.admitted].arrival_s <= time_s:
            job = self.jobs[self.admitted]
            job.crowding_then_s = clock.crowding_s - clock.contention * (time_s - job.arrival_s)
            self.active.append(job)
            self.demand += job.gang
            self.admitted += 1
        clock.contention = contention_at(self.demand, self.cluster.total_gpus)
        self.decisions.arrived += self.admitted - before

    def _plan(self, number: int, start_s: float, chosen: list[tuple[RoundProgress, int]]) -> None:
        """Call the policy for the next round in the middle of this one, on what is known then."""
        length_s = max((job.run_length_s(job.rates[kind], self.rules) for job, kind in chosen), default=None)
        half_s = (self.rules.round_s if length_s is None else length_s) / 2.0
        self.clock.advance(start_s + half_s)
        self._admit(self.clock.time_s)
        ahead = {job.order: halfway(job, number, float(job.rates[kind]), half_s, self.rules) for job, kind in chosen}
        views = [
            round_job(ahead[job.order], self.clock, True) if job.order in ahead else self._view(job, number + 1)
            for job in self.active
        ]
        self.decisions.consult(self._state(number + 1, views))
        self.planned = True

    def _play(self, number: int, start_s: float, chosen: list[tuple[RoundProgress, int]]) -> tuple[float, int]:
        """Run the chosen jobs; return when the round ends, and how many changed their batch size."""
        end_s = start_s if chosen else start_s + self.rules.round_s
        rescaled = 0
        placed = self.placement.place([(job.order, kind, job.gang) for job, kind in chosen])
        for (job, kind), (gpu_ids, extended) in zip(chosen, placed, strict=True):
            batch_size, first = job.batch_size, not job.rounds
            most_s = self.most_run_s[job.order]
            steps, run_s, stop_s, lost_s = job.run(number, start_s, float(job.rates[kind]), most_s, self.rules)
            self.decisions.record(job, kind, run_s)
            rescaled += job.batch_size != batch_size and not job.ended_by
            end_s = max(end_s, stop_s)
            self.run_rows.append(
                (
                    number,
                    job.place,
                    kind,
                    gpu_ids,
                    first,
                    extended,
                    lost_s,
                    batch_size,
                    steps,
                    run_s,
                    job.steps_run,
                    job.total_steps,
                    job.batch_size,
                )
            )
        return end_s, rescaled

    def _view(self, job: RoundProgress, number: int) -> RoundJob:
        """Return the job as it stands before a round; what has not changed is not made anew."""
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

    def result(self, trace: Trace, policy: RoundPolicy) -> SimulationResult:
        """Return what happened."""
        jobs = sorted(self.jobs, key=lambda job: job.place)

        def column(name: str) -> NDArray[Any]:
            return np.array([getattr(job, name) for job in jobs])

        return SimulationResult(
            policy=str(policy.name),
            trace=trace,
            gpus_by_type=dict(zip(self.cluster.types, self.cluster.counts, strict=True)),
            rules=self.rules,
            start_s=column("start_s"),
            end_s=column("end_s"),
            run_s=column("attained_s"),
            exclusive_s=self.exclusive_s,
            rounds_run=column("rounds"),
            rounds_waited=column("waited_rounds"),
            restarts=column("restarts"),
            ended_by=column("ended_by"),
            round_rows=tuple(self.round_rows),
            # An interrupt may come within a round.
            run_rows=tuple(row for row in self.run_rows if row[0] < len(self.round_rows)),
            solve_rows=tuple(self.decisions.solves),
        )
