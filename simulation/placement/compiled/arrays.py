"""Arrays on which the compiled loops of the placement engine work: their layout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FLOAT, _INT, _SHORT = np.float64, np.int64, np.int32


def _record(*parts: tuple[str, type[np.number[Any]]]) -> np.dtype[np.void]:
    return np.dtype([(name, kind) for names, kind in parts for name in names.split()])


#: A job, by index in the trace, with the quantities of `PlacementJob` under the same names.
JOB = _record(
    ("work done rate exposed at_s progress_from_s ready_s last_start_s", _FLOAT),
    # GPUs asked for; group of the jobs that ask for so many; first rows of its GPUs and of its rates, -1: none.
    ("gang group first entry", _INT),
    # Versions of run and lease; whether it runs; machines, racks and tier on which it does or is about to; whether it
    # accepts GPUs when its lease ends.
    ("version lease runs machines racks tier accepts", _INT),
    ("arrival_s run_s gpu_s exposed_s held_s start_s end_s", _FLOAT),
    # Numbers of restarts and preemptions; most machines and highest tier so far.
    ("restarts preemptions most_machines highest_tier", _INT),
)

#: Place of a job in the order of offers: sensitivity and latest change of its GPUs in ticks, this time in seconds, and
#: GPUs held.
TURN = _record(("sensitivity since since_s", _FLOAT), ("held", _INT))

#: The jobs that ask for a number of GPUs: their timers, and the earliest `since_s` of those that wait (nan: to be
#: found); their part of the order; in a pass of offers, the place of the first job not asked so far, and whether the
#: timers are to be refreshed.
GROUP = _record(("machine_s rack_s oldest_s", _FLOAT), ("demand first count cursor stale", _INT))

#: A GPU: until when stopped jobs save their state on it, and whether it is in use.
GPU = _record(("ready_s", _FLOAT), ("used", _INT))
#: A machine or rack: its free GPUs, and those of them that are being chosen.
PART = _record(("free share", _INT))
#: A GPU of a job: the one that it holds, and the one that it accepted.
HELD = _record(("gpu chosen", _INT))

#: The recorded waits of a tier and demand: the timer that follows from them and the one logged last; its floor, cap and
#: value without waits; demand, tier, place of the first wait, number of waits, and whether they changed since.
HISTORY = _record(("timer_s logged_s floor_s cap_s empty_s", _FLOAT), ("demand tier head count changed", _INT))
WAIT = _record(("time_s wait_s", _FLOAT))

#: An event; `code` is its kind times 2^40, and the job.
EVENT = _record(("time_s", _FLOAT), ("code version", _INT))

#: Rate and share of exposed communication of a job on so many machines and racks; `next` is the same job's next row.
RATE = _record(("rate exposed", _FLOAT), ("machines racks next", _INT))

#: Logs: levels after an event; changes of timers; starts and stops of jobs, which take turns.
LEVEL = _record(("time_s", _FLOAT), ("busy running waiting", _SHORT))
TIMER = _record(("time_s timer_s", _FLOAT), ("tier demand", _SHORT))
MARK = _record(("time_s", _FLOAT), ("job", _SHORT))

#: The engine.
STATE = _record(
    # Time, and time of the next call that the rule asked for; rule; settings of the tuner; rules of the engine.
    ("now wake_s lease_s offer_s", _FLOAT),
    ("history_s least_wait_s", _FLOAT),
    ("checkpoint_s checkpoint_s_per_gpu restart_s", _FLOAT),
    ("keep tuned ddof", _INT),
    # Cluster: GPUs, GPUs of a machine, machines of a rack; free GPUs, and most of them on a machine and in a rack.
    ("gpus per_machine per_rack free most_on_machine most_in_rack", _INT),
    # Numbers of jobs that arrived, ended and run; events to come; most waits in a history.
    ("arrived ended running events longest", _INT),
    # Whether a pass of offers is being carried out; accepted offers, those carried out, and their lease.
    ("starting accepted started", _INT),
    ("pass_lease_s", _FLOAT),
    # Numbers of rows in the logs, and whether starts and stops are logged.
    ("levels timers marks ids record", _INT),
)

#: Rows of the lists of jobs: in order of arrival; those that end at this event, those whose leases end, and those that
#: accepted GPUs.
ARRIVALS, ENDED, DUE, ACCEPTED = range(4)


class QueueArrays(NamedTuple):
    """Jobs in order, for N jobs with D different demands.

    Attributes
    ----------
    turns : ndarray of TURN, shape (N,)
    groups : ndarray of GROUP, shape (D,)
        In ascending order of the demand.
    order : ndarray of int, shape (2 N,)
        Waiting jobs in order, group by group; then those whose leases end at this event, in order.
    lists : ndarray of int, shape (4, N)
    """

    turns: NDArray[Any]
    groups: NDArray[Any]
    order: NDArray[Any]
    lists: NDArray[Any]


class GpuArrays(NamedTuple):
    """GPUs, machines and racks, and the GPUs of each job, one job after another."""

    gpus: NDArray[Any]
    machines: NDArray[Any]
    racks: NDArray[Any]
    held: NDArray[Any]


class TunerArrays(NamedTuple):
    """Auto-tuner: two histories of each group, by tier; their waits, in rows that are circles; log of timers.

    The length of a row is a power of two.
    """

    histories: NDArray[Any]
    waits: NDArray[Any]
    log: NDArray[Any]


class LogArrays(NamedTuple):
    """Logs of levels, of starts and stops of jobs, and of the GPUs of each start."""

    levels: NDArray[Any]
    marks: NDArray[Any]
    ids: NDArray[Any]


class EngineArrays(NamedTuple):
    """Arguments of the loop."""

    state: NDArray[Any]
    jobs: NDArray[Any]
    queue: QueueArrays
    gpus: GpuArrays
    tuner: TunerArrays
    events: NDArray[Any]
    rates: NDArray[Any]
    log: LogArrays
