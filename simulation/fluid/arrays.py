"""Arrays on which the compiled loops work: their layout, and their values for given jobs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from .job import CUT_GPUS, DONE, FluidJob
from .policy import FluidRule

_FLOAT, _INT, _SHORT = np.float64, np.int64, np.int32


def _record(*parts: tuple[str, type[np.number[Any]]]) -> np.dtype[np.void]:
    return np.dtype([(name, kind) for names, kind in parts for name in names.split()])


#: A job, in the order of arrival; times are in ticks, unless their names end in _s. What each event reads comes first,
#: so that it shares few lines of the processor's cache.
JOB = _record(
    # Work left, speed, pause before progress, GPUs held, GPUs given next, work with which it counts as done; key of the
    # order.
    ("work_s rate pause_s gpus given done_s key", _FLOAT),
    # Maximum demand, and row in the table of caps.
    ("max_gpus curve", _SHORT),
    # Error of the estimate, arrival, estimated size; the engine's counters at arrival; scratch of the allocation.
    ("factor arrival estimate_s", _FLOAT),
    ("seen events", _INT),
    ("a b c d", _FLOAT),
    # Least GPUs (0: any fraction will do), place of s(0) in the table of speedups, and queue; then records.
    ("min_gpus first queue preemptions cuts restarts", _SHORT),
    # Estimate from which attained service counts, the least speed that the queue guarantees (nan: none), sum of jobs
    # over time at arrival; records.
    ("known_s least seen_s run_s gpu_s start_s end_s contention mean_contention predicted_s bound_s", _FLOAT),
)

#: A queue: its share of the GPUs by weight, the GPUs that it gets, its share and demand in a round, the GPUs of the
#: jobs at its head that hold their caps; the ends of its part of the list of jobs, its demand, the level of its caps,
#: and the number of jobs at its head that hold them.
QUEUE = _record(("share gpus rest wanted held", _FLOAT), ("head tail demand level full", _INT))

#: The engine.
STATE = _record(
    # Time and timer in ticks; rules; the time to the next turn in quanta; sum of jobs over time.
    ("now timer timer_s turn ticks_per_s preemption_s seen_s", _FLOAT),
    # Rules, whether some jobs have least GPUs, and whether this is a prediction; numbers of jobs present, in service,
    # done without GPUs, in service at the head of the order, and at the head of the list that keep their GPUs.
    ("gpus code microseconds least predicts present served pending prefix kept", _INT),
    # Kind of the event; sum of jobs over events, events, arrivals and ends so far.
    ("event seen events arrived ended", _INT),
    # Sizes of the circle, the turns, the members of the turns, and the logs.
    ("circle turns members changes levels", _INT),
)

#: A whole GPU that goes round among fractions: its place on the circle, and the fraction left of the turn.
TURN = _record(("left", _FLOAT), ("place", _INT))

#: A change of a job's GPUs, and the levels after an event.
CHANGE = _record(("time_s gpus", _FLOAT), ("job", _INT))
LEVEL = _record(("time_s busy", _FLOAT), ("running waiting", _INT))

#: Reasons for which the compiled loop returns.
PAUSED, ENDED, STUCK = range(3)

#: Rows of the lists: jobs in service, done without GPUs and chosen, circle and members of the turns, two for scratch.
SERVED, PENDING, CHOSEN, CIRCLE, MEMBERS, SCRATCH, WINNERS = range(7)
# An index without a sign cannot count from the end, so that compiled loops need not look for that.
_INDEX = np.uint32
# A queue whose share is no more than this may get nothing.
_NONE_GPUS = 1e-3


class Curves:
    """Speedups of some jobs as one array, with the arithmetic of `FluidJob` for all of them at once.

    Parameters
    ----------
    jobs : sequence of FluidJob, length C
        One job of each curve.
    """

    def __init__(self, jobs: Sequence[FluidJob]) -> None:
        self.min_gpus, self.max_gpus = (
            np.array([getattr(job, f"{end}_gpus") for job in jobs]) for end in ("min", "max")
        )
        gpus = np.arange(self.max_gpus.max() + 1)
        within = gpus <= self.max_gpus[:, None]
        self._speedups = np.zeros(within.shape)
        self._speedups[within] = np.concatenate([job.speedups for job in jobs])
        # The least speedup on so many GPUs or more.
        from_end = np.where(within, self._speedups, np.inf)[:, ::-1]
        self._least = np.minimum.accumulate(from_end, axis=1)[:, ::-1]
        # The least speedup per GPU on 1 to g GPUs: the least GPUs of a job are never cut, and none exceeds its maximum.
        per_gpu = np.where(gpus[1:] <= self.min_gpus[:, None], np.inf, self._speedups[:, 1:] / gpus[1:])
        self._per_gpu = np.minimum.accumulate(np.where(within[:, 1:], per_gpu, -np.inf), axis=1)

    def capped_gpus(self, levels: Sequence[float]) -> Indices:
        """Return `FluidJob.capped_gpus` of each curve at each of K levels, shape (C, K)."""
        return np.asarray((self._per_gpu[:, :, None] >= np.array(levels)).sum(axis=1))

    def least_speed(self, gpus: Floats) -> Floats:
        """Return `FluidJob.least_speed` on numbers of GPUs up to the maximum of each curve, both shape (C, Q)."""
        rows = np.arange(len(gpus))[:, None]
        up, down = np.ceil(gpus).astype(np.int64), np.floor(gpus).astype(np.int64)
        slope = self._speedups[rows, up] - self._speedups[rows, down]
        speed = slope * gpus + (self._speedups[rows, up] - slope * up)
        lacks = (self.min_gpus > 1)[:, None] & (gpus < self.min_gpus[:, None] - CUT_GPUS)
        return np.where(lacks, 0.0, np.minimum(speed, self._least[rows, up]))


class EngineArrays:
    """Arrays of the engine for jobs in the order of arrival, none of which has arrived.

    Attributes
    ----------
    jobs : ndarray of JOB, shape (N,)
    order : ndarray of unsigned int, shape (Q, N)
        Jobs of each queue that are present, between its head and its tail.
    queues : ndarray of QUEUE, shape (Q,)
    sums : ndarray of int, shape (Q, K)
        Sums of the caps of each queue's jobs at each level.
    state : ndarray of STATE, shape (1,)
    turns : ndarray of TURN, shape (M,)
        M is 0 without turns.
    lists : ndarray of unsigned int, shape (7, N)
    table : ndarray of float
        Speedups s(0), s(1), ..., of all curves, one after another.
    caps : ndarray of int, shape (C, K)
        GPUs to which each cap level cuts each curve.
    """

    def __init__(
        self, jobs: Sequence[FluidJob], rule: FluidRule, gpus: int, *, microseconds: bool, preemption_s: float
    ) -> None:
        curves = {id(job.speedups): job for job in jobs}
        self.table = np.concatenate([job.speedups for job in curves.values()])
        self.curves = Curves(list(curves.values()))
        self.jobs = np.zeros(len(jobs), JOB)
        self._fill_jobs(jobs, list(curves), np.cumsum([0, *(len(job.speedups) for job in curves.values())]))
        self.state = np.zeros(1, STATE)
        self.state["timer"], self.state["turn"] = np.inf, np.inf
        self.state["ticks_per_s"] = 1e6 if microseconds else 1.0
        self.state["preemption_s"], self.state["microseconds"] = preemption_s, microseconds
        self.state["gpus"] = gpus
        self.state["least"] = self.jobs["min_gpus"].any()
        self._set_rule(rule)

    def under(self, rule: FluidRule) -> EngineArrays:
        """Return new arrays of these jobs, none of which has arrived, under another rule.

        These must be as they were made.
        """
        other = copy.copy(self)
        other.jobs, other.state = self.jobs.copy(), self.state.copy()
        other._set_rule(rule)
        return other

    def _set_rule(self, rule: FluidRule) -> None:
        """Set all that depends on the rule."""
        count, queues, gpus = len(self.jobs), len(rule.weights), int(self.state["gpus"][0])
        self.caps = self.curves.capped_gpus(rule.caps)
        self.jobs["queue"] = np.searchsorted(rule.thresholds, self.jobs["estimate_s"])
        self.order = np.zeros((queues, count), _INDEX)
        self.queues = np.zeros(queues, QUEUE)
        self.queues["share"] = [float(weight * gpus) for weight in rule.weights]
        self.sums = np.zeros((queues, len(rule.caps)), _INT)
        self.state["timer_s"], self.state["code"] = rule.timer_s, rule.code
        self.turns = np.zeros(0 if rule.turns is None else gpus, TURN)
        self.lists = np.zeros((WINNERS + 1, count), _INDEX)

    def guarantee(self) -> None:
        """Set the speed that each job's queue guarantees to its head; estimates that are wrong have none."""
        share = self.queues["share"]
        speeds = self.curves.least_speed(np.minimum(share, self.caps[:, :1]))
        speeds[:, share <= _NONE_GPUS] = 0.0
        exact = self.jobs["factor"] == 1.0
        self.jobs["least"][exact] = speeds[self.jobs["curve"], self.jobs["queue"]][exact]

    def _fill_jobs(self, jobs: Sequence[FluidJob], curves: list[int], firsts: NDArray[Any]) -> None:
        arrays, rows = self.jobs, {curve: row for row, curve in enumerate(curves)}
        arrays["arrival"] = [job._arrival for job in jobs]
        arrays["done_s"] = [DONE * job.true_size_s for job in jobs]
        arrays["work_s"] = [job._work_s for job in jobs]
        arrays["factor"] = [job._factor for job in jobs]
        arrays["estimate_s"] = arrays["known_s"] = [job.size_s for job in jobs]
        arrays["curve"] = [rows[id(job.speedups)] for job in jobs]
        arrays["first"] = firsts[arrays["curve"]]
        arrays["min_gpus"] = [job.min_gpus if job.min_gpus > 1 else 0 for job in jobs]
        arrays["max_gpus"] = [job.max_gpus for job in jobs]
        for name in ("start_s", "end_s", "predicted_s", "bound_s", "least"):
            arrays[name] = np.nan

    @property
    def moving(self) -> tuple[NDArray[Any], ...]:
        """Arrays that the loops change, in the order of their arguments; a prediction needs a copy of each."""
        return self.jobs, self.order, self.queues, self.sums, self.state, self.turns, self.lists

    @property
    def fixed(self) -> tuple[Floats, NDArray[np.int64]]:
        """Table of speedups, and caps."""
        return self.table, self.caps
