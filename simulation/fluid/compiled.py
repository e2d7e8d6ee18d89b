"""Compiled form of the fluid engine: it fills the arrays, runs the loops in batches and collects the records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import EquipoiseError
from ..cluster import Cluster
from ..results.timeline import Levels, Stretches
from ..traces.trace import Trace
from .arrays import CHANGE, LEVEL, STUCK, EngineArrays
from .job import fluid_jobs
from .loop_kernels import run_events
from .policy import FluidCode, FluidPolicy, FluidRule
from .result import RECORDS, FluidResult, fluid_result, job_columns
from .rules import FluidRules
from .speedups import Speedups

# Events in a batch without and with predictions: Ctrl-C and progress wait for its end.
_BATCH, _PREDICTED_BATCH = 4096, 256
_LEAST_CHANGES = 1 << 16


class FluidSetup:
    """A trace on a cluster, for runs under several policies: what no policy changes is computed once.

    Parameters are those of `simulate_fluid`, which checks them; the speedups are those of the cluster.
    """

    def __init__(self, trace: Trace, cluster: Cluster, speedups: Speedups, rules: FluidRules) -> None:
        self.trace, self.cluster, self.rules = trace, cluster, rules
        jobs = fluid_jobs(trace, speedups, rules)
        self.arrays = EngineArrays(
            jobs,
            FluidRule(code=FluidCode.FIFO),
            cluster.gpus,
            microseconds=rules.microseconds,
            preemption_s=rules.preemption_s,
        )
        self.trace_index = np.array([job.trace_index for job in jobs])
        self.place = np.argsort(self.trace_index)
        self.columns = job_columns([jobs[each] for each in self.place])


class CompiledRun:
    """Simulation in progress: `step` processes a batch of events.

    Parameters
    ----------
    setup : FluidSetup
        It stays as it is.
    policy : FluidPolicy
    rule : FluidRule
        Rule of the policy.
    record : bool
    bounds : bool
        Whether the guarantees of ends are computed.
    """

    def __init__(
        self, setup: FluidSetup, policy: FluidPolicy, rule: FluidRule, *, record: bool, bounds: bool = True
    ) -> None:
        self.setup, self.policy, self.rules, self.record = setup, policy, setup.rules, record
        made = setup.arrays.under(rule)
        self.arrays, self.state = made.jobs, made.state
        if bounds and rule.code in (FluidCode.FIFO, FluidCode.WFQ) and self.rules.preemption_s == 0.0:
            made.guarantee()
        # Without predictions the copies are not read, but have the same types.
        copied = tuple(np.zeros_like(array) if self.rules.predict else array[:0].copy() for array in made.moving)
        self.changes = np.zeros(4 * len(self.arrays) + _LEAST_CHANGES if record else 0, CHANGE)
        self._arguments = (*made.moving, *copied, *made.fixed, self.changes, np.zeros(0, CHANGE))
        self.logged: list[NDArray[Any]] = []
        self.level_rows: list[NDArray[Any]] = []
        self.steps = self.ended = 0

    @property
    def time_s(self) -> float:
        """Time of the last event."""
        return float(self.state["now"][0] / self.state["ticks_per_s"][0])

    def step(self) -> bool:
        """Process a batch of events; False if all jobs had ended before it."""
        if self.ended == len(self.arrays):
            return False
        if self.steps >= self.rules.most_steps:
            present = int(self.state["present"][0])
            raise EquipoiseError(f"{self.steps} events passed, and {present} jobs have not ended")
        most = min(_PREDICTED_BATCH if self.rules.predict else _BATCH, self.rules.most_steps - self.steps)
        levels = np.zeros(most, LEVEL)
        self.state["changes"] = self.state["levels"] = 0
        arguments: tuple[Any, ...] = (*self._arguments, levels, most, self.rules.predict)
        reason = run_events(*arguments)
        done = int(self.state["levels"][0])
        self.steps += done
        self.ended = int(self.state["ended"][0])
        self.level_rows.append(levels[:done])
        self.logged.append(self.changes[: self.state["changes"][0]].copy())
        if reason == STUCK:
            raise EquipoiseError(f"{self.policy.name} leaves jobs without GPUs, and no event is to come")
        return True

    def result(self) -> FluidResult:
        """Return the result up to the last event."""
        setup, arrays = self.setup, self.arrays[self.setup.place]
        columns = {name: arrays[name] for name in (*RECORDS, "contention", "mean_contention", "bound_s")}
        return fluid_result(
            setup.trace,
            self.policy,
            setup.cluster,
            self.rules,
            {**setup.columns, **columns, "predicted_end_s": arrays["predicted_s"]},
            levels=self._levels(),
            stretches=self._stretches() if self.record else None,
        )

    def _levels(self) -> Levels:
        rows = np.concatenate(self.level_rows) if self.level_rows else np.zeros(0, LEVEL)
        end_s = np.append(rows["time_s"][1:], self.time_s)[: len(rows)]
        kept = end_s > rows["time_s"]
        names = {"start_s": "time_s", "gpus_busy": "busy", "running": "running", "waiting": "waiting"}
        columns = {name: rows[field][kept] for name, field in names.items()}
        return Levels(end_s=end_s[kept], **columns)

    def _stretches(self) -> Stretches:
        """Return the stretches between the changes of each job's GPUs."""
        log = np.concatenate(self.logged) if self.logged else np.zeros(0, CHANGE)
        log = log[np.argsort(log["job"], kind="stable")]
        last = np.append(log["job"][1:] != log["job"][:-1], True)[: len(log)]
        trace_index = self.setup.trace_index[log["job"]]
        # A job gives up its GPUs when it ends, which is no change of the policy's.
        left_s = np.fmin(self.arrays["end_s"], self.time_s)[log["job"]]
        end_s = np.where(last, left_s, np.append(log["time_s"][1:], 0.0)[: len(log)])
        chosen = (log["gpus"] > 0.0) & (log["time_s"] < self.time_s)
        return Stretches(
            trace_index=trace_index[chosen],
            start_s=log["time_s"][chosen],
            end_s=end_s[chosen],
            gpus=log["gpus"][chosen],
            gpu_type=np.zeros(int(chosen.sum()), np.int64),
        )
