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
    # GPUs asked for; group of the jobs that ask for so many; place of its GPUs in the lists of GPUs.
    ("gang group first", _INT),
    # Versions of run and lease; whether it runs, and the machines, racks and tier on which it does or is about to; its
    # answer when its lease ends.
    ("version lease runs machines racks tier answer", _INT),
    ("arrival_s run_s gpu_s exposed_s held_s start_s end_s", _FLOAT),
    # Numbers of restarts and preemptions; most machines and highest tier so far.
    ("restarts preemptions most_machines highest_tier", _INT),
)

#: Place of a job in the order of offers: sensitivity and latest change of its GPUs in ticks, this time in seconds, and
#: GPUs held.
TURN = _record(("sensitivity since since_s", _FLOAT), ("held", _INT))

#: The jobs that ask for a number of GPUs: their timers, and the earliest `since_s` of those that wait (nan: to be
#: found); their part of the list of waiting jobs; in a pass of offers, the place of the first job not asked so far, and
#: whether the timers are to be refreshed.
GROUP = _record(("machine_s rack_s oldest_s", _FLOAT), ("demand first count cursor stale", _INT))

#: Recorded waits of a demand and tier, in row 2 group + tier of a table whose rows are circles: the timer that follows
#: from them and the one logged last, the first wait, their number, and whether they changed since.
WAITS = _record(("timer_s logged_s", _FLOAT), ("head count changed", _INT))
WAIT = _record(("time_s wait_s", _FLOAT))

#: An event; `code` is its kind times 2^40, and the job.
EVENT = _record(("time_s", _FLOAT), ("code version", _INT))

#: Rate and share of exposed communication of a job on so many machines and racks; `next` is the same job's next row.
RATE = _record(("rate exposed", _FLOAT), ("machines racks next", _INT))

#: Logs: levels after an event, changes of timers, starts and stops of jobs.
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
    ("gpus size per_rack free most_on_machine most_in_rack", _INT),
    # Numbers of jobs that arrived, ended and run; events to come; most waits in a row.
    ("arrived ended running events longest", _INT),
    # Whether a pass of offers is being carried out; accepted offers, those carried out, and their lease.
    ("starting accepted started", _INT),
    ("pass_lease_s", _FLOAT),
    # Numbers of rows in the logs.
    ("levels timers starts stops ids", _INT),
    ("record", _INT),
)


class EngineArrays(NamedTuple):
    """Arrays of a run of N jobs with D different demands on G GPUs.

    Attributes
    ----------
    state : ndarray of STATE, shape (1,)
    jobs, turns : ndarray of JOB and TURN, shape (N,)
    groups : ndarray of GROUP, shape (D,)
        In ascending order of the demand.
    arrivals : ndarray of int, shape (N,)
        Jobs in order of arrival.
    order : ndarray of int, shape (N,)
        Waiting jobs in order, group by group.
    ended, due, expired, accepted : ndarray of int, shape (N,)
        Jobs that end at this event, those whose leases end, these in order, and those that accepted GPUs.
    held, chosen : ndarray of int
        GPUs that each job holds, and those that it accepted at this event.
    used : ndarray of int, shape (G,)
        Whether each GPU is in use.
    gpu_ready_s : ndarray of float, shape (G,)
        Until when stopped jobs save their state on each GPU.
    machine_free, rack_free : ndarray of int
        Free GPUs of each machine and rack.
    machine_share, rack_share : ndarray of int
        Scratch of the choice of GPUs: GPUs taken from each machine and rack.
    lists : ndarray of WAITS, shape (2 D,)
    waits : ndarray of WAIT, shape (2 D, W)
        W is a power of two.
    bounds : ndarray of float, shape (3, 2)
        Floors, caps, and timers without waits, of the tuner, by tier.
    events : ndarray of EVENT
        Heap.
    entries : ndarray of int, shape (N,)
        First row of each job in `rates`; -1: none.
    rates : ndarray of RATE
    levels, timers, starts, stops : ndarray of LEVEL, TIMER, MARK and MARK
    ids : ndarray of int
        GPUs of each start.
    """

    state: NDArray[Any]
    jobs: NDArray[Any]
    turns: NDArray[Any]
    groups: NDArray[Any]
    arrivals: NDArray[Any]
    order: NDArray[Any]
    ended: NDArray[Any]
    due: NDArray[Any]
    expired: NDArray[Any]
    accepted: NDArray[Any]
    held: NDArray[Any]
    chosen: NDArray[Any]
    used: NDArray[Any]
    gpu_ready_s: NDArray[Any]
    machine_free: NDArray[Any]
    rack_free: NDArray[Any]
    machine_share: NDArray[Any]
    rack_share: NDArray[Any]
    lists: NDArray[Any]
    waits: NDArray[Any]
    bounds: NDArray[Any]
    events: NDArray[Any]
    entries: NDArray[Any]
    rates: NDArray[Any]
    levels: NDArray[Any]
    timers: NDArray[Any]
    starts: NDArray[Any]
    stops: NDArray[Any]
    ids: NDArray[Any]
