"""Snapshot of a trace at one moment: the states of its jobs if all had shared the cluster evenly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ..formulations.checks import as_flag, as_integer, as_real
from ..formulations.errors import InvalidInput
from .job_state import JobState
from .profiles.rules import Runs
from .profiles.table import Profiles
from .traces.trace import Trace
from .traces.trajectory import timed_trajectory

# A job or stretch of epochs counts as finished if less than this share of its work remains (rounding).
_ROUNDING = 1e-9


class _Job(NamedTuple):
    trace_index: int
    runs: Runs
    epoch_s: dict[int, float]
    work_s: float


class _Served(NamedTuple):
    """One unfinished job at the end: seconds of service received, and the mean contention since its arrival."""

    attained_s: float
    contention: float


def snapshot(trace: Trace, *, at_s: float, gpus: int, profiles: Profiles, skip_wide: bool = False) -> list[JobState]:
    """Return the jobs that have arrived and not finished by `at_s` if all share the cluster as a fluid.

    At every moment each arrived, unfinished job runs at the share min(1, M / sum of their gangs) of its
    exclusive speed. A job that completes leaves at once, and the shares of the others grow. The moments of change are
    computed without time steps, so the result is exact up to rounding.

    Parameters
    ----------
    trace : Trace
    at_s : float
        Moment in seconds from the trace's start, at least 0. A job that arrives at exactly this moment is included.
    gpus : int
        GPUs of the cluster (M), at least 1.
    profiles : Profiles
        Source of seconds per epoch, and of the trajectories of a trace without schedules.
    skip_wide : bool
        Omit jobs that need more GPUs than the cluster has, with a warning. By default such a job is an error.

    Returns
    -------
    list of JobState
        States in order of arrival, ties by id; empty if no job is present. The order of the jobs in the trace does not
        matter. `attained_s` is the fluid service, `waiting_s` the remaining time since arrival, and `contention` the
        mean since arrival of max(1, sum of gangs / M) (at the moment of arrival: the value then). A regime that has
        just ended is followed by the next one with 0 epochs. A fluid has no rounds, so a rule sets `running`: jobs
        that arrived before `at_s` get GPUs in order of arrival, each if its gang fits the GPUs left.

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
    jobs = [_Job(index, *timed_trajectory(trace, index, profiles)) for index in sorted(arrived, key=trace.arrival_rank)]
    served = _serve(trace, jobs, moment, total_gpus)
    states = []
    free = total_gpus
    for job in jobs:
        if job.trace_index not in served:
            continue
        gang_gpus = int(trace.gang_gpus[job.trace_index])
        running = gang_gpus <= free and bool(trace.arrival_s[job.trace_index] < moment)
        free -= gang_gpus if running else 0
        states.append(_state(trace, job, served[job.trace_index], moment, running))
    return states


def _without_wide(trace: Trace, indices: list[int], gpus: int, skip: bool) -> list[int]:
    wide = [index for index in indices if trace.gang_gpus[index] > gpus]
    if not wide:
        return indices
    if not skip:
        why = f"job {trace.job_id[wide[0]]!r} is wider than the cluster of {gpus} GPUs; skip_wide=True leaves it out"
        raise InvalidInput("gang_gpus", int(trace.gang_gpus[wide[0]]), why, index=wide[0])
    names = ", ".join(str(trace.job_id[index]) for index in wide[:10]) + (", ..." if len(wide) > 10 else "")
    warnings.warn(f"left out {len(wide)} job(s) wider than the cluster of {gpus} GPUs: {names}", stacklevel=3)
    out = set(wide)
    return [index for index in indices if index not in out]


def _serve(trace: Trace, jobs: Sequence[_Job], moment: float, gpus: int) -> dict[int, _Served]:
    """Share the cluster until `moment`; return the service that each unfinished job has received.

    All present jobs receive service at one common rate, so a single service clock, `clock_s`, serves for all: a job
    that arrives at clock c with work w completes at clock c + w. A heap of these marks gives the next completion, so
    n jobs take O(n log n).
    """
    now_s = clock_s = contention_integral_s = 0.0
    demand = 0
    marks: list[tuple[float, int]] = []
    started: dict[int, tuple[float, float]] = {}
    arrivals = 0
    while True:
        contention = max(1.0, demand / gpus)
        next_arrival_s = float(trace.arrival_s[jobs[arrivals].trace_index]) if arrivals < len(jobs) else float("inf")
        next_finish_s = now_s + max(0.0, marks[0][0] - clock_s) * contention if marks else float("inf")
        event_s = min(next_arrival_s, next_finish_s, moment)
        finishes = bool(marks) and next_finish_s == event_s
        contention_integral_s += (event_s - now_s) * contention
        # At a completion the clock is set to the mark itself, so that rounding leaves no work.
        clock_s = marks[0][0] if finishes else clock_s + (event_s - now_s) / contention
        now_s = event_s
        if finishes:
            _, order = heappop(marks)
            started.pop(order)
            demand -= int(trace.gang_gpus[jobs[order].trace_index])
        elif next_arrival_s == event_s:
            heappush(marks, (clock_s + jobs[arrivals].work_s, arrivals))
            started[arrivals] = (clock_s, contention_integral_s)
            demand += int(trace.gang_gpus[jobs[arrivals].trace_index])
            arrivals += 1
        else:
            break
    served = {}
    for order, (clock_at_arrival_s, contention_integral_at_arrival_s) in started.items():
        job = jobs[order]
        life_s = now_s - float(trace.arrival_s[job.trace_index])
        attained_s = min(clock_s - clock_at_arrival_s, life_s)
        if attained_s >= job.work_s * (1.0 - _ROUNDING):
            continue
        mean = (contention_integral_s - contention_integral_at_arrival_s) / life_s if life_s > 0.0 else demand / gpus
        served[job.trace_index] = _Served(attained_s, max(1.0, mean))
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
    index = job.trace_index
    return JobState(
        id=trace.job_id[index],
        gpus=int(trace.gang_gpus[index]),
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
