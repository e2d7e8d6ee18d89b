"""Decisions of the policy in the rounds engine: calls, checks of answers, and selection of jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ...formulations.errors import InvalidInput
from ..decision import CallLog
from .cluster import RoundCluster
from .job import RoundProgress
from .policy import RoundPolicy, RoundState, Schedule, Shares
from .priorities import TimeSharing
from .rules import RoundRules


class Decisions:
    """Current decision of the policy, and selection of the jobs that run by it.

    The engine counts the events since the policy's last call, `called_s`, which is minus infinity before the first.
    """

    def __init__(self, policy: RoundPolicy, cluster: RoundCluster, rules: RoundRules, jobs: Sequence[RoundProgress]):
        self._policy, self._cluster, self._rules = policy, cluster, rules
        self._by_id = {job.id: job for job in jobs}
        self._sharing = TimeSharing(len(jobs), len(cluster.types), rules)
        self._decision: Shares | Schedule | None = None
        self._consulted_jobs: list[RoundProgress] = []
        self._shares_are_new = False
        self._next_round = 0
        self.called_s = -math.inf
        self.arrived = self.completed = self.rescaled = 0
        self.calls = CallLog()

    def consult(self, state: RoundState) -> None:
        """Call the policy if there is no decision, its schedule is used up, or `policy.due` returns True."""
        decision = self._decision
        used_up = isinstance(decision, Schedule) and self._next_round >= len(decision.rounds)
        if decision is not None and not used_up and not self._policy.due(state):
            return
        call: Callable[[], object] = partial(self._policy.decide, state)
        answer, wall_s = self.calls.timed(call)
        consulted = [self._by_id[job.id] for job in state.jobs]
        if isinstance(answer, Shares):
            if answer.values.shape != (len(consulted), len(self._cluster.types)):
                why = f"must have a row for each of {len(consulted)} jobs, a column for each GPU type"
                raise InvalidInput(f"shares of policy {self._policy.name}", answer.values.shape, why)
        elif isinstance(answer, Schedule):
            self._check_schedule(answer, {job.id for job in consulted})
        else:
            field = f"decision of policy {self._policy.name}"
            raise InvalidInput(field, type(answer).__name__, "must be Shares or a Schedule")
        self._decision, self._consulted_jobs, self._shares_are_new, self._next_round = answer, consulted, True, 0
        self.called_s = state.time_s
        self.arrived = self.completed = self.rescaled = 0
        self.calls.record(
            state.round, state.time_s, len(consulted), wall_s, type(answer).__name__.lower(), answer.evidence
        )

    def choose(self, jobs: Sequence[RoundProgress], time_s: float) -> list[tuple[RoundProgress, int]]:
        """Return (job, GPU type) of the jobs that run in the round that starts now."""
        decision = self._decision
        if isinstance(decision, Shares):
            if self._shares_are_new:
                # With `plan_ahead`, jobs may have ended since the policy was called.
                rows = [row for row, job in enumerate(self._consulted_jobs) if not job.ended_by]
                orders = np.array([self._consulted_jobs[row].order for row in rows], dtype=np.int64)
                self._sharing.reset(orders, decision.values[rows], time_s)
                self._shares_are_new = False
            return self._sharing.choose(jobs, list(self._cluster.counts))
        assert isinstance(decision, Schedule)
        assignment: Mapping[str | int, int] = decision.rounds[self._next_round]
        self._next_round += 1
        chosen = [(self._by_id[key], gpu_type) for key, gpu_type in assignment.items()]
        # A job may have changed to a batch size that this type cannot run.
        return [(job, gpu_type) for job, gpu_type in chosen if not job.ended_by and job.rates[gpu_type] > 0.0]

    def record(self, job: RoundProgress, gpu_type: int, run_s: float) -> None:
        """Add a run to the time that the job has received."""
        self._sharing.record(job.order, gpu_type, run_s)

    def _check_schedule(self, schedule: Schedule, job_ids: set[str | int]) -> None:
        field, types = f"schedule of policy {self._policy.name}", self._cluster.types
        for number, assignment in enumerate(schedule.rounds):
            used = [0] * len(types)
            for key, gpu_type in assignment.items():
                job, where = self._by_id.get(key), f"round {number} of the schedule"
                if job is None or (key not in job_ids and not job.ended_by):
                    raise InvalidInput(field, key, f"{where}: no such job has arrived")
                whole = isinstance(gpu_type, int | np.integer) and not isinstance(gpu_type, bool)
                if not whole or not 0 <= gpu_type < len(types):
                    raise InvalidInput(field, gpu_type, f"{where}, job {key!r}: must be the index of a GPU type")
                if job.ended_by:
                    continue
                if job.rates[gpu_type] <= 0.0:
                    why = f"{where}: job {key!r} cannot run on type {types[gpu_type]!r}"
                    raise InvalidInput(field, int(gpu_type), why)
                used[gpu_type] += job.gang_gpus
            for gpu_type, count in enumerate(self._cluster.counts):
                if used[gpu_type] > count:
                    why = f"round {number} of the schedule needs more GPUs than the {count} of type {types[gpu_type]!r}"
                    raise InvalidInput(field, used[gpu_type], why)
