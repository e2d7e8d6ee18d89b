"""Compiled form of the placement engine: it fills the arrays, runs the loops in batches and collects the records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....formulations.arrays import Floats, Indices
from ....formulations.errors import EquipoiseError, InvalidInput
from ...results.timeline import Levels, Stretches
from ..policy import PlacementPolicy
from ..result import PlacementResult, TimerLog
from .arrays import LEVEL
from .loop_kernels import FULL, LEASE_REFUSED, RATE_UNKNOWN, STUCK, WAKE_REFUSED, run_events
from .order_kernels import LEASE, WAKE
from .rule import DelayRule
from .setup import PlacementSetup

# Events in a batch: Ctrl-C and progress wait for its end.
_BATCH = 4096
_LOGS = ("levels", "timers", "starts", "stops", "ids")


class CompiledRun:
    """Simulation in progress: `step` processes a batch of events.

    Parameters
    ----------
    setup : PlacementSetup
        It stays as it is, but for the rates that it keeps.
    policy : PlacementPolicy
        Policy of the rule; its name alone is read.
    rule : DelayRule
    record : bool
        Whether to record which job held which GPUs when.
    """

    def __init__(self, setup: PlacementSetup, policy: PlacementPolicy, rule: DelayRule, *, record: bool) -> None:
        self.setup, self.policy, self.rule, self.record = setup, policy, rule, record
        self.arrays = setup.arrays(rule, record=record)
        self._state: NDArray[Any] = self.arrays.state
        self._logged: dict[str, list[NDArray[Any]]] = {name: [] for name in _LOGS}
        self.steps = self.ended = 0

    @property
    def time_s(self) -> float:
        """Time of the last event."""
        return float(self._state["now"][0])

    def step(self) -> bool:
        """Process a batch of events; False if all jobs had ended before it."""
        if self.ended == len(self.setup.trace):
            return False
        if self.steps >= self.setup.rules.most_steps:
            present = int(self._state["arrived"][0]) - self.ended
            raise EquipoiseError(f"{self.steps} calls passed, and {present} jobs have not ended")
        most = min(_BATCH, self.setup.rules.most_steps - self.steps)
        self.arrays = self.arrays._replace(levels=np.zeros(most, LEVEL))
        while (reason := run_events(self.arrays, most)) == RATE_UNKNOWN:
            self._add_rate()
        self.steps += int(self._state["levels"][0])
        self.ended = int(self._state["ended"][0])
        self._collect()
        if reason == FULL:
            self._enlarge()
        elif reason == STUCK:
            raise EquipoiseError(f"{self.policy.name} leaves jobs waiting, and no event is to come: {self._waiting()}")
        elif reason == LEASE_REFUSED:
            raise self._refusal("lease_s", "pass_lease_s", "must be positive")
        elif reason == WAKE_REFUSED:
            raise self._refusal("wake", "wake_s", f"must be later than now, {self.time_s:g}")
        return True

    def _add_rate(self) -> None:
        """Find the rate of the job whose start is due."""
        index = int(self.arrays.accepted[self._state["started"][0]])
        job = self.arrays.jobs[index]
        try:
            self.setup.add_rate(index, int(job["machines"]), int(job["racks"]))
        except InvalidInput as error:
            raise self._of_action(error) from None
        self.arrays = self.arrays._replace(rates=self.setup.rates)

    def _of_action(self, error: InvalidInput) -> InvalidInput:
        return InvalidInput(f"{error.field} of an action of policy {self.policy.name}", error.value, error.why)

    def _refusal(self, field: str, name: str, why: str) -> InvalidInput:
        return self._of_action(InvalidInput(field, float(self._state[name][0]), why))

    def _waiting(self) -> str:
        """Return the names of the first jobs that wait."""
        arrived = self.arrays.arrivals[: self._state["arrived"][0]]
        left = arrived[np.isnan(self.arrays.jobs["end_s"][arrived])]
        return ", ".join(repr(self.setup.trace.job_id[index]) for index in left[:5]) + ", ..."

    def _collect(self) -> None:
        """Move the logs out of the arrays."""
        for name in _LOGS:
            count = int(self._state[name][0])
            if count:
                self._logged[name].append(getattr(self.arrays, name)[:count].copy())
                self._state[name] = 0

    def _enlarge(self) -> None:
        """Drop events that will not take place, and double the arrays that are more than half full."""
        arrays, jobs = self.arrays, self.arrays.jobs
        events = arrays.events[: self._state["events"][0]]
        index = events["code"] % LEASE
        version = np.where(events["code"] < LEASE, jobs["version"][index], jobs["lease"][index])
        events = events[(events["code"] >= WAKE) | (events["version"] == version)]
        # A sorted array is a heap.
        events = events[np.lexsort((events["code"], events["time_s"]))]
        size = len(arrays.events) * (2 if 2 * len(events) > len(arrays.events) else 1)
        self._state["events"] = len(events)
        self._state["longest"] = longest = arrays.lists["count"].max()
        waits = arrays.waits
        if 2 * longest > waits.shape[1]:
            # Each row begins at its first wait.
            places = (arrays.lists["head"][:, None] + np.arange(waits.shape[1])) % waits.shape[1]
            waits = np.concatenate([np.take_along_axis(waits, places, axis=1), np.zeros_like(waits)], axis=1)
            arrays.lists["head"] = 0
        self.arrays = arrays._replace(events=np.resize(events, size), waits=waits)

    # -- Result --------------------------------------------------------------------------------------------------------

    def result(self) -> PlacementResult:
        """Return the result up to the last event; jobs that run hold their GPUs up to it."""
        setup, jobs, now_s = self.setup, self.arrays.jobs.copy(), self.time_s
        runs = jobs["runs"] != 0
        seconds = np.where(runs, np.maximum(0.0, now_s - np.maximum(jobs["at_s"], jobs["progress_from_s"])), 0.0)
        held_s = jobs["held_s"] + np.where(runs, now_s - jobs["last_start_s"], 0.0)
        return PlacementResult(
            engine="placement",
            policy=str(self.policy.name),
            trace=setup.trace,
            cluster=setup.cluster,
            rules=setup.rules,
            start_s=jobs["start_s"],
            end_s=jobs["end_s"],
            run_s=jobs["run_s"] + seconds,
            gpu_s=jobs["gpu_s"] + seconds * jobs["gang"],
            exclusive_s=setup.work / setup.exclusive_rate,
            restarts=jobs["restarts"],
            ended_by=np.where(np.isnan(jobs["end_s"]), "", "completed"),
            levels=self._levels(),
            stretches=self._stretches() if self.record else None,
            solve_rows=(),
            held_s=held_s,
            exposed_s=jobs["exposed_s"] + seconds * jobs["exposed"],
            shared_gpu_s=np.zeros(len(jobs)),
            machines=jobs["most_machines"],
            tier=jobs["highest_tier"],
            preemptions=jobs["preemptions"],
            moves=np.zeros(len(jobs), np.int64),
            timers=self._timers() if self.rule.tuner is not None else None,
        )

    def _log(self, name: str) -> NDArray[Any]:
        return np.concatenate([*self._logged[name], getattr(self.arrays, name)[:0]])

    def _levels(self) -> Levels:
        rows = self._log("levels")
        end_s = np.append(rows["time_s"][1:], self.time_s)[: len(rows)]
        kept = end_s > rows["time_s"]
        return Levels(
            start_s=rows["time_s"][kept],
            end_s=end_s[kept],
            gpus_busy=rows["busy"][kept].astype(np.int64),
            running=rows["running"][kept].astype(np.int64),
            waiting=rows["waiting"][kept].astype(np.int64),
        )

    def _timers(self) -> TimerLog:
        rows = self._log("timers")
        return TimerLog(
            time_s=rows["time_s"].copy(),
            tier=rows["tier"].astype(np.int64),
            demand=rows["demand"].astype(np.int64),
            timer_s=rows["timer_s"].copy(),
        )

    def _stretches(self) -> Stretches:
        """Return the stretches from each start of a job to its next stop."""
        starts, ids = self._log("starts"), self._log("ids")
        index = starts["job"].astype(np.int64)
        end_s = _ends(index, self._log("stops"), len(self.setup.trace))
        gpus = self.setup.gangs[index]
        kept = starts["time_s"] < self.time_s
        ids = ids[np.repeat(kept, gpus)]
        return Stretches(
            trace_index=index[kept],
            start_s=starts["time_s"][kept],
            end_s=np.minimum(self.time_s, end_s[kept]),
            gpus=gpus[kept].astype(np.float64),
            gpu_type=np.zeros(int(kept.sum()), np.int64),
            gpu_ids=ids if len(ids) else None,
        )


def _ends(index: Indices, stops: NDArray[Any], jobs: int) -> Floats:
    """Return the time at which each stretch of a job ends: that of the job's stop of the same number; else infinity."""
    found = np.full(len(index), math.inf)
    by_job, stops = np.argsort(index, kind="stable"), stops[np.argsort(stops["job"], kind="stable")]
    started, stopped = np.bincount(index, minlength=jobs), np.bincount(stops["job"], minlength=jobs)
    # Numbers of the starts that have a stop, job by job.
    number = np.arange(len(index)) - np.repeat(np.cumsum(started) - started, started)
    found[by_job[number < np.repeat(stopped, started)]] = stops["time_s"]
    return found
