"""A trace on a cluster, as arrays for the compiled loops: what no rule changes is computed once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...cluster import Cluster
from ...traces.trace import Trace
from ..occupancy import Occupancy
from ..rules import PlacementRules
from ..speeds import Running, Speeds, checked_exposed, checked_rate, work_and_rates
from .arrays import (
    ARRIVALS,
    EVENT,
    GPU,
    GROUP,
    HELD,
    HISTORY,
    JOB,
    LEVEL,
    MARK,
    PART,
    RATE,
    STATE,
    TIMER,
    TURN,
    WAIT,
    EngineArrays,
    GpuArrays,
    LogArrays,
    QueueArrays,
    TunerArrays,
)
from .rule import DelayRule

# Rows of the logs beyond those of one event.
_LOG_ROWS = 1 << 12
_NO_ROW = -1


class PlacementSetup:
    """A trace on a cluster, for runs under several rules.

    Parameters are those of `simulate_placement`, which checks them. Rates are kept: later runs ask the speeds for new
    placements alone.

    Raises
    ------
    InvalidInput
        If a gang exceeds the cluster, or a job cannot run on it.
    """

    def __init__(self, trace: Trace, cluster: Cluster, speeds: Speeds, rules: PlacementRules) -> None:
        self.trace, self.cluster, self.speeds, self.rules = trace, cluster, speeds, rules
        self._gpus = Occupancy(cluster)
        self.work, self.exclusive_rate = work_and_rates(trace, self._gpus, speeds)
        self.gangs = np.asarray(trace.gang_gpus, np.int64)
        self._first = np.cumsum(self.gangs) - self.gangs
        self.demands, self._group, counts = np.unique(self.gangs, return_inverse=True, return_counts=True)
        self._first_of_group = np.cumsum(counts) - counts
        self._arrivals = np.lexsort((np.arange(len(trace)), trace.arrival_s))
        self.entries = np.full(len(trace), _NO_ROW, np.int64)
        self.rates = np.zeros(2 * len(trace), RATE)
        self._known = 0

    def add_rate(self, index: int, machines: int, racks: int) -> None:
        """Ask the speeds for the rate of a job on so many machines and racks; InvalidInput if it cannot run so."""
        trace, gang = self.trace, int(self.gangs[index])
        size, fewest = int(trace.batch_size[index]), self._gpus.fewest_machines(gang)
        tier = 0 if machines == 1 else 1 if racks == 1 else 2
        run = Running(index, trace.model[index], gang, gang, machines, fewest, tier, size, size, racks)
        rate, exposed = checked_rate(self.speeds, run), checked_exposed(self.speeds, run)
        if self._known == len(self.rates):
            self.rates = np.concatenate([self.rates, np.zeros_like(self.rates)])
        self.rates[self._known] = rate, exposed, machines, racks, self.entries[index]
        self.entries[index] = self._known
        self._known += 1

    def arrays(self, rule: DelayRule, *, record: bool) -> EngineArrays:
        """Return arrays of these jobs, none of which has arrived, under a rule."""
        starts, gpus = min(len(self.trace), self.cluster.gpus), self._gpus_arrays()
        marks, ids = (3 * starts + _LOG_ROWS, len(gpus.gpus) + 4 * _LOG_ROWS) if record else (0, 0)
        return EngineArrays(
            state=self._state(rule, record),
            jobs=self._jobs(),
            queue=self._queue(rule),
            gpus=gpus,
            tuner=self._tuner(rule, starts),
            events=np.zeros(8 * starts + 2, EVENT),
            rates=self.rates,
            log=LogArrays(np.zeros(0, LEVEL), np.zeros(marks, MARK), np.zeros(ids, np.int64)),
        )

    def _jobs(self) -> NDArray[np.void]:
        jobs = np.zeros(len(self.trace), JOB)
        jobs["work"], jobs["arrival_s"] = self.work, self.trace.arrival_s
        jobs["gang"], jobs["group"], jobs["first"] = self.gangs, self._group, self._first
        jobs["entry"] = self.entries
        jobs["start_s"] = jobs["end_s"] = math.nan
        return jobs

    def _queue(self, rule: DelayRule) -> QueueArrays:
        groups = np.zeros(len(self.demands), GROUP)
        groups["demand"], groups["first"], groups["oldest_s"] = self.demands, self._first_of_group, math.inf
        if rule.tuner is None:
            pairs = [rule.by_demand.get(demand, (rule.machine_s, rule.rack_s)) for demand in self.demands.tolist()]
            machine_s, rack_s = np.array(pairs, dtype=np.float64).T
            # Jobs wait for no placement that cannot be.
            groups["machine_s"] = np.where(self.demands > self._gpus.machine_gpus, 0.0, machine_s)
            groups["rack_s"] = np.where(self.demands > self._gpus.rack_gpus, 0.0, rack_s)
        count = len(self.trace)
        lists = np.zeros((4, count), np.int64)
        lists[ARRIVALS] = self._arrivals
        return QueueArrays(np.zeros(count, TURN), groups, np.zeros(2 * count, np.int64), lists)

    def _gpus_arrays(self) -> GpuArrays:
        gpus, machine, rack = self.cluster.gpus, self._gpus.machine_gpus, self._gpus.rack_gpus
        machines, racks = np.zeros(gpus // machine, PART), np.zeros(gpus // rack, PART)
        machines["free"], racks["free"] = machine, rack
        return GpuArrays(np.zeros(gpus, GPU), machines, racks, np.zeros(self.gangs.sum(), HELD))

    def _tuner(self, rule: DelayRule, starts: int) -> TunerArrays:
        histories = np.zeros(2 * len(self.demands), HISTORY)
        histories["tier"], histories["demand"] = np.arange(len(histories)) % 2, np.repeat(self.demands, 2)
        histories["changed"], histories["logged_s"] = 1, math.nan
        length = starts
        if rule.tuner is not None:
            for name in ("floor_s", "cap_s", "empty_s"):
                histories[name] = np.tile(getattr(rule.tuner, name), len(self.demands))
            length = 1 << (4 * starts).bit_length()
        log = np.zeros(2 * starts + 4 * len(self.demands) + _LOG_ROWS, TIMER)
        return TunerArrays(histories, np.zeros((len(histories), length), WAIT), log)

    def _state(self, rule: DelayRule, record: bool) -> NDArray[np.void]:
        state, rules, tuner = np.zeros(1, STATE), self.rules, rule.tuner
        state["wake_s"], state["lease_s"], state["offer_s"] = math.inf, rule.lease_s, rule.offer_s
        state["keep"], state["record"] = rule.keep, record
        for name in ("checkpoint_s", "checkpoint_s_per_gpu", "restart_s"):
            state[name] = getattr(rules, name)
        if tuner is not None:
            state["tuned"] = True
            for name in ("history_s", "least_wait_s", "ddof"):
                state[name] = getattr(tuner, name)
        state["gpus"] = state["free"] = self.cluster.gpus
        state["per_machine"] = state["most_on_machine"] = self._gpus.machine_gpus
        state["most_in_rack"] = self._gpus.rack_gpus
        state["per_rack"] = self._gpus.rack_gpus // self._gpus.machine_gpus
        return state
