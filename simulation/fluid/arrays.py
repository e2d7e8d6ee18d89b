"""Layout of the arrays on which the compiled loops work."""

from __future__ import annotations

import numpy as np

_FLOAT, _INT = np.float64, np.int64


def _record(floats: str, integers: str) -> np.dtype[np.void]:
    return np.dtype([(name, _FLOAT) for name in floats.split()] + [(name, _INT) for name in integers.split()])


#: A job, in the order of arrival. Times are in ticks, but for names that end in _s. First what does not change: arrival,
#: true size, error of the estimate, estimated size, least speed that its queue guarantees. Then the state: work left, estimate from
#: which attained service counts, speed, pause before progress, GPUs held and given next, key of the order, scratch of
#: the allocation, and sums over time at arrival. Then the records.
#: `first` is the place of s(0) in the table of speedups, `curve` the row of the table of caps; `seen` and `events` are
#: the engine's counters at arrival.
JOB = _record(
    "arrival size_s factor estimate_s least work_s known_s rate pause_s gpus given key a b c d seen_s "
    "start_s end_s run_s gpu_s contention mean_contention predicted_s bound_s",
    "first max_gpus curve queue seen events preemptions cuts restarts",
)

#: A queue: its share of GPUs by weight, GPUs given and shares of the rounds, and where its jobs stand in its list.
QUEUE = _record("share gpus rest wanted", "head tail demand")

#: The engine: present time, timer, and rules; jobs in the system, in service, and done without GPUs; counters.
STATE = _record(
    "now timer timer_s turn ticks_per_s preemption_s seen_s",
    "gpus code microseconds present served pending prefix event seen events arrived ended circle turns members changes levels",
)

#: A whole GPU that goes round among fractions: its place on the circle, and the fraction left of the turn.
TURN = _record("left", "place")

#: A change of a job's GPUs, and the levels after an event.
CHANGE = _record("time_s gpus", "job")
LEVEL = _record("time_s busy", "running waiting")

#: Reasons for which the compiled loop returns.
PAUSED, ENDED, STUCK = range(3)
