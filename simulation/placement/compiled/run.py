"""Compiled form of the placement engine: it fills the arrays, runs the loops in batches and collects the records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....formulations.errors import EquipoiseError, InvalidInput
from ...results.timeline import Levels, Stretches
from ..policy import PlacementPolicy
from ..result import PlacementResult, TimerLog
from .arrays import ACCEPTED, ARRIVALS, JOB, LEVEL, MARK, TIMER, TunerArrays
from .loop_kernels import FULL, LEASE_REFUSED, RATE_UNKNOWN, STUCK, WAKE_REFUSED, run_events
from .order_kernels import LEASE, WAKE
from .rule import DelayRule
from .setup import PlacementSetup

# Events in a batch: Ctrl-C and progress wait for its end.
_BATCH = 4096
# Columns of `Levels` by those of the log.
_COUNTS = {"gpus_busy": "busy", "running": "running", "waiting": "waiting"}
_LOGS = ("levels", "timers", "marks", "ids")


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
        self.arrays = self.arrays._replace(log=self.arrays.log._replace(levels=np.zeros(most, LEVEL)))
        while (reason := run_events(*self.arrays, most)) == RATE_UNKNOWN:
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
        index = int(self.arrays.queue.lists[ACCEPTED, self._state["started"][0]])
        job = self.arrays.jobs[index]
        try:
            self.setup.add_rate(index, int(job["machines"]), int(job["racks"]))
        except InvalidInput as error:
            raise self._of_action(error) from None
        job["entry"] = self.setup.entries[index]
        self.arrays = self.arrays._replace(rates=self.setup.rates)

    def _of_action(self, error: InvalidInput) -> InvalidInput:
        return InvalidInput(f"{error.field} of an action of policy {self.policy.name}", error.value, error.why)

    def _refusal(self, field: str, name: str, why: str) -> InvalidInput:
        return self._of_action(InvalidInput(field, float(self._state[name][0]), why))

    def _waiting(self) -> str:
        """Return the names of the first jobs that wait."""
        arrived = self.arrays.queue.lists[ARRIVALS, : self._state["arrived"][0]]
        left = arrived[np.isnan(self.arrays.jobs["end_s"][arrived])]
        return ", ".join(repr(self.setup.trace.job_id[index]) for index in left[:5]) + ", ..."

    def _collect(self) -> None:
        """Move the logs out of the arrays."""
        log = self.arrays.log
        for name, rows in zip(_LOGS, (log.levels, self.arrays.tuner.log, log.marks, log.ids), strict=True):
            count = int(self._state[name][0])
            if count:
                self._logged[name].append(rows[:count].copy())
                self._state[name] = 0

    def _enlarge(self) -> None:
        """Drop events that will not take place, and double the arrays of events and waits if they are half full."""
        jobs, events = self.arrays.jobs, self.arrays.events[: self._state["events"][0]]
        calls, index = events["code"] >= WAKE, events["code"] % LEASE
        index[calls] = 0
        version = np.where(events["code"] >= LEASE, jobs["lease"][index], jobs["version"][index])
        events = events[calls | (events["version"] == version)]
        # A sorted array is a heap.
        events = events[np.lexsort((events["code"], events["time_s"]))]
        size = len(self.arrays.events) * (2 if 2 * len(events) > len(self.arrays.events) else 1)
        self._state["events"] = len(events)
        self.arrays = self.arrays._replace(events=np.resize(events, size), tuner=self._longer(self.arrays.tuner))

    def _longer(self, tuner: TunerArrays) -> TunerArrays:
        """Return arrays of the tuner with rows twice as long, if one is half full."""
        histories, waits = tuner.histories, tuner.waits
        self._state["longest"] = longest = histories["count"].max()
        if 2 * longest <= waits.shape[1]:
            return tuner
        # Each row begins at its first wait.
        places = (histories["head"][:, None] + np.arange(waits.shape[1])) % waits.shape[1]
        histories["head"] = 0
        ordered = np.take_along_axis(waits, places, axis=1)
        return tuner._replace(waits=np.concatenate([ordered, np.zeros_like(ordered)], axis=1))

    # -- Result --------------------------------------------------------------------------------------------------------

    def result(self) -> PlacementResult:
        """Return the result up to the last event; jobs that run hold their GPUs up to it."""
        setup, now_s = self.setup, self.time_s
        jobs = {name: self.arrays.jobs[name].copy() for name in JOB.names or ()}
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
            ended_by=np.array(["" if math.isnan(end_s) else "completed" for end_s in jobs["end_s"]]),
            levels=self._levels(),
            stretches=self._stretches() if self.record else None,
            solve_rows=(),
            held_s=held_s,
            exposed_s=jobs["exposed_s"] + seconds * jobs["exposed"],
            shared_gpu_s=np.zeros(len(setup.trace)),
            machines=jobs["most_machines"],
            tier=jobs["highest_tier"],
            preemptions=jobs["preemptions"],
            moves=np.zeros(len(setup.trace), np.int64),
            timers=self._timers() if self.rule.tuner is not None else None,
        )

    def _log(self, name: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([*self._logged[name], np.zeros(0, kind)])

    def _levels(self) -> Levels:
        rows = self._log("levels", LEVEL)
        end_s = np.append(rows["time_s"][1:], self.time_s)[: len(rows)]
        kept = end_s > rows["time_s"]
        counts = {name: rows[field][kept].astype(np.int64) for name, field in _COUNTS.items()}
        return Levels(start_s=rows["time_s"][kept], end_s=end_s[kept], **counts)

    def _timers(self) -> TimerLog:
        rows = self._log("timers", TIMER)
        whole = {name: rows[name].astype(np.int64) for name in ("tier", "demand")}
        return TimerLog(time_s=rows["time_s"].copy(), timer_s=rows["timer_s"].copy(), **whole)

    def _stretches(self) -> Stretches:
        """Return the stretches from each start of a job to the stop that follows it."""
        marks, ids = self._log("marks", MARK), self._log("ids", np.int64)
        by_job = np.argsort(marks["job"], kind="stable")
        marks = marks[by_job]
        first = np.append(True, marks["job"][1:] != marks["job"][:-1])[: len(marks)]
        # Starts and stops of a job take turns, and the first is a start.
        place = np.arange(len(marks))
        starts = (place - np.maximum.accumulate(np.where(first, place, 0))) % 2 == 0
        left_s = np.where(np.append(first[1:], True)[: len(marks)], math.inf, np.append(marks["time_s"][1:], 0.0))
        back = np.argsort(by_job[starts])
        index, start_s, end_s = (column[starts][back] for column in (marks["job"], marks["time_s"], left_s))
        gpus = self.setup.gangs[index]
        kept = start_s < self.time_s
        ids = ids[np.repeat(kept, gpus)]
        return Stretches(
            trace_index=index[kept].astype(np.int64),
            start_s=start_s[kept],
            end_s=np.minimum(self.time_s, end_s[kept]),
            gpus=gpus[kept].astype(np.float64),
            gpu_type=np.zeros(int(kept.sum()), np.int64),
            gpu_ids=ids if len(ids) else None,
        )
