"""Layout of the arrays on which the compiled loops work."""

from __future__ import annotations

import numpy as np

_FLOAT, _INT = np.float64, np.int64


def _record(floats: str, integers: str) -> np.dtype[np.void]:
    return np.dtype([(name, _FLOAT) for name in floats.split()] + [(name, _INT) for name in integers.split()])


#: A job, in the order of arrival; times are in ticks, unless their names end in _s.
JOB = _record(
    # State, in an order that keeps together what each event reads: true size, work left, speed, pause before progress,
    # GPUs held, GPUs given next; the time run and GPU-seconds so far.
    "size_s work_s rate pause_s gpus given run_s gpu_s "
    # Arrival, error of the estimate, estimated size, sum of jobs over time at arrival; key of the order, estimate from
    # which attained service counts, the least speed that the queue guarantees (nan: none), scratch of the allocation.
    "arrival factor estimate_s seen_s key known_s least a b c d "
    # Records.
    "start_s end_s contention mean_contention predicted_s bound_s",
    # Least GPUs (0: any fraction will do) and maximum demand, the engine's counters at arrival, place of s(0) in the
    # table of speedups, row in the table of caps, and queue; then records.
    "min_gpus max_gpus seen events first curve queue preemptions cuts restarts",
)

#: A queue: its share of the GPUs by weight, the GPUs that it gets, its share and demand in a round; the ends of its
#: part of the list of jobs, and its demand.
QUEUE = _record("share gpus rest wanted", "head tail demand")

#: The engine.
STATE = _record(
    # Time and timer in ticks; rules; the time to the next turn in quanta; sum of jobs over time.
    "now timer timer_s turn ticks_per_s preemption_s seen_s",
    # Rules, and whether some jobs have least GPUs; numbers of jobs present, in service, done without GPUs, and in
    # service at the head of the order.
    "gpus code microseconds least present served pending prefix "
    # Kind of the event; sum of jobs over events, events, arrivals and ends so far.
    "event seen events arrived ended "
    # Sizes of the circle, the turns, the members of the turns, and the logs.
    "circle turns members changes levels",
)

#: A whole GPU that goes round among fractions: its place on the circle, and the fraction left of the turn.
TURN = _record("left", "place")

#: A change of a job's GPUs, and the levels after an event.
CHANGE = _record("time_s gpus", "job")
LEVEL = _record("time_s busy", "running waiting")

#: Reasons for which the compiled loop returns.
PAUSED, ENDED, STUCK = range(3)
