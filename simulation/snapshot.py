"""The snapshot: what a scheduler would see of a trace's jobs at one moment, had all shared the cluster evenly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ..formulations.checks import as_flag, as_integer, as_real
from ..formulations.errors import InvalidInput
from .job_state import JobState
from .profiles.modes import Runs
from .profiles.table import Profiles
from .traces.trace import Trace
from .traces.trajectory import epoch_seconds, trajectory

# Work below this share of a job, or of a stretch of epochs, is rounding: the job or stretch counts as finished.
_ROUNDING = 1e-9


class _Job(NamedTuple):
    place: int  # in the trace
    runs: Runs
    epoch_s: dict[int, float]
    work_s: float


class _Served(NamedTuple):
    """One job still there at the end: isolated seconds received, and the mean contention over its life."""

    attained_s: float
    contention: float


def snapshot(trace: Trace, *, at_s: float, gpus: int, profiles: Profiles, skip_wide: bool = False) -> list[JobState]:
    """Return the jobs that have arrived and not finished by `at_s`, had they shared the cluster as a fluid.

    At every moment each arrived, unfinished job runs at the share min(1, M / sum of their gangs) of its isolated
    speed. A job that completes leaves at once, and the others' shares grow. The moments of change are computed, not
    stepped, so the result is exact up to rounding.

    Parameters
    ----------
    trace : Trace
    at_s : float
        The moment, in seconds from the trace's start, at least 0. A job that arrives at this very moment is there.
    gpus : int
        GPUs of the cluster (M), at least 1.
    profiles : Profiles
        Give seconds per epoch, and the trajectories of a trace without schedules.
    skip_wide : bool
        Leave out jobs that need more GPUs than there are, with a warning; otherwise they are an error, since no share
        of such a cluster can run them.

    Returns
    -------
    list of JobState
        By arrival, ties by id; empty if nobody is there. The order of the jobs in the trace does not matter.
        `attained_s` is the fluid service and `waiting_s` the rest of the job's life; `contention` is the mean over its
        life of max(1, sum of gangs / M) (at the moment of arrival: the value there). A regime that has just ended is
        followed by the next one with 0 epochs. A fluid has no rounds, so `running` is set by a rule: of the jobs that
        arrived before `at_s`, the earliest that fit the cluster together, later ones filling what is left.

    Raises
    ------
    InvalidInput
        If `at_s` or `gpus` is out of range, a job is too wide, or the profiles lack its model or a rate; the message
        names the job's position in the trace.
    """
    moment = as_real("at_s", at_s, minimum=0.0)
    total_gpus = as_integer("gpus", gpus, minimum=1)
    arrived = [index for index in range(len(trace)) if trace.arrival_s[index] <= moment]
    arrived = _without_wide(trace, arrived, total_gpus, as_flag("skip_wide", skip_wide))
    # Numbers before text within one moment: ids of both kinds need an order that no input order can change.
    arrived.sort(key=lambda i: (trace.arrival_s[i], isinstance(trace.job_id[i], str), trace.job_id[i]))
    jobs = [_job(trace, index, profiles) for index in arrived]
    served = _serve(trace, jobs, moment, total_gpus)
    states = []
    free = total_gpus
    for job in jobs:
        if job.place not in served:
            continue
        gang = int(trace.num_gpus[job.place])
        running = gang <= free and bool(trace.arrival_s[job.place] < moment)
        free -= gang if running else 0
        states.append(_state(trace, job, served[job.place], moment, running))
    return states


def _without_wide(trace: Trace, indices: list[int], gpus: int, skip: bool) -> list[int]:
    wide = [index for index in indices if trace.num_gpus[index] > gpus]
    if not wide:
        return indices
    if not skip:
        why = f"job {trace.job_id[wide[0]]!r} is wider than the cluster of {gpus} GPUs; skip_wide=True leaves it out"
        raise InvalidInput("num_gpus", int(trace.num_gpus[wide[0]]), why, index=wide[0])
    names = ", ".join(str(trace.job_id[index]) for index in wide[:10]) + (", ..." if len(wide) > 10 else "")
    warnings.warn(f"left out {len(wide)} job(s) wider than the cluster of {gpus} GPUs: {names}", stacklevel=3)
    out = set(wide)
    return [index for index in indices if index not in out]


def _job(trace: Trace, index: int, profiles: Profiles) -> _Job:
    runs = trajectory(trace, index, profiles)
    epoch_s = epoch_seconds(trace, index, profiles, runs)
    return _Job(index, runs, epoch_s, sum(epochs * epoch_s[size] for size, epochs in runs))


def _serve(trace: Trace, jobs: Sequence[_Job], moment: float, gpus: int) -> dict[int, _Served]:
    """Share the cluster until `moment`; return what each job still there has received.

    All present jobs gain service at one common speed, so one clock of service per job, `clock_s`, runs for all: a
    job that arrives at clock c with work w completes when the clock shows c + w. A heap of these marks gives the next
    completion, so n jobs take O(n log n).
    """
    now_s = clock_s = crowding_s = 0.0
    demand = 0
    marks: list[tuple[float, int]] = []
    started: dict[int, tuple[float, float]] = {}
    arrivals = 0
    while True:
        crowding = max(1.0, demand / gpus)
        next_arrival_s = float(trace.arrival_s[jobs[arrivals].place]) if arrivals < len(jobs) else float("inf")
        next_finish_s = now_s + max(0.0, marks[0][0] - clock_s) * crowding if marks else float("inf")
        event_s = min(next_arrival_s, next_finish_s, moment)
        finishes = bool(marks) and next_finish_s == event_s
        crowding_s += (event_s - now_s) * crowding
        # At a completion the clock is set to the mark itself, so that rounding cannot leave the job a last crumb.
        clock_s = marks[0][0] if finishes else clock_s + (event_s - now_s) / crowding
        now_s = event_s
        if finishes:
            _, order = heappop(marks)
            started.pop(order)
            demand -= int(trace.num_gpus[jobs[order].place])
        elif next_arrival_s == event_s:
            heappush(marks, (clock_s + jobs[arrivals].work_s, arrivals))
            started[arrivals] = (clock_s, crowding_s)
            demand += int(trace.num_gpus[jobs[arrivals].place])
            arrivals += 1
        else:
            break
    served = {}
    for order, (clock_then_s, crowding_then_s) in started.items():
        job = jobs[order]
        life_s = now_s - float(trace.arrival_s[job.place])
        attained_s = min(clock_s - clock_then_s, life_s)
        if attained_s >= job.work_s * (1.0 - _ROUNDING):
            continue
        mean = (crowding_s - crowding_then_s) / life_s if life_s > 0.0 else demand / gpus
        served[job.place] = _Served(attained_s, max(1.0, mean))
    return served


def _state(trace: Trace, job: _Job, served: _Served, moment: float, running: bool) -> JobState:
    left_s = served.attained_s
    done: list[tuple[int, float]] = []
    future: list[tuple[int, float]] = []
    for step, (size, epochs) in enumerate(job.runs, start=1):
        run_s = epochs * job.epoch_s[size]
        if future:
            future.append((size, float(epochs)))
        elif step < len(job.runs) and left_s >= run_s * (1.0 - _ROUNDING):
            done.append((size, float(epochs)))
            left_s = max(0.0, left_s - run_s)
        else:
            finished = left_s / job.epoch_s[size]
            done.append((size, finished))
            future.append((size, epochs - finished))
    index = job.place
    return JobState(
        id=trace.job_id[index],
        gpus=int(trace.num_gpus[index]),
        mode=trace.mode[index],
        total_epochs=float(sum(epochs for _, epochs in job.runs)),
        finished_epochs=sum(epochs for _, epochs in done),
        batch_sizes=tuple(size for size, _ in done),
        regime_epochs=tuple(epochs for _, epochs in done),
        epoch_s=job.epoch_s,
        future=tuple(future),
        attained_s=served.attained_s,
        waiting_s=moment - float(trace.arrival_s[index]) - served.attained_s,
        contention=served.contention,
        weight=float(trace.weight[index]),
        running=running,
    )
