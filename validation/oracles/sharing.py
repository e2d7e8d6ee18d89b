"""Simulations of jobs that share GPUs, from event to event: exact for one delay, in floats for many delays at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...formulations.arrays import Floats

# Relative differences of times below this are rounding errors.
ROUNDING = 1e-12


def simulated_ends(
    running_s: Sequence[Fraction],
    waiting_s: Fraction,
    running_ratios: Sequence[Fraction],
    waiting_ratios: Sequence[Fraction],
    delay_s: Fraction,
) -> list[Fraction]:
    """Return the ends of the running jobs, then that of the waiting job, which starts after the delay.

    At each moment the speed of every unfinished job follows from the jobs on the GPUs; the simulation advances by the
    shortest time to an end or to the start.
    """
    work = dict(enumerate(running_s))
    new = len(work)
    ends = [Fraction(0)] * (new + 1)
    now = Fraction(0)
    started = delay_s == 0
    if started:
        work[new] = waiting_s
    while work:
        beside = [i for i in work if i != new]
        slow = started and new in work
        speed = {i: 1 / running_ratios[i] if slow else Fraction(1) for i in beside}
        if slow:
            speed[new] = 1 / max((waiting_ratios[i] for i in beside), default=Fraction(1))
        steps = [work[i] / speed[i] for i in work]
        if not started:
            steps.append(delay_s - now)
        step = min(steps)
        now += step
        for i in list(work):
            work[i] -= step * speed[i]
            if work[i] == 0:
                ends[i] = now
                del work[i]
        if not started and (now == delay_s or not work):
            now, started = delay_s, True
            work[new] = waiting_s
    return ends


def ends_over_delays(
    running_s: Floats, waiting_s: float, running_ratios: Floats, waiting_ratios: Floats, delays_s: Floats
) -> Floats:
    """Return the ends as `simulated_ends` does, in floats, shape (m + 1, D), for D delays.

    Until the start, and after the end of the waiting job, each running job is alone; in between there are at most m
    ends, one in each step.
    """
    jobs, cases = len(running_s), len(delays_s)
    work = np.maximum(running_s[:, None] - delays_s, 0.0)
    ends = np.where(work > 0, np.inf, running_s[:, None] + np.zeros(cases))
    now, left = delays_s.astype(np.float64), np.full(cases, waiting_s)
    waiting_end = np.full(cases, np.nan)
    for _ in range(jobs + 1):
        beside = work > 0
        ratio = np.where(beside, waiting_ratios[:, None], -np.inf).max(axis=0)
        ratio = np.where(beside.any(axis=0), ratio, 1.0)
        times = np.where(beside, work * running_ratios[:, None], np.inf)
        step = np.minimum(times.min(axis=0), left * ratio)
        over = left > 0
        step = np.where(over, step, 0.0)
        # Rounding must not decide whether two jobs end together: what is left would be less than nothing.
        until = step * (1.0 + ROUNDING)
        done = over & (left * ratio <= until)
        now = now + step
        finished = beside & over & (times <= until)
        ends = np.where(finished, now, ends)
        work = np.where(finished, 0.0, np.where(beside, np.maximum(work - step / running_ratios[:, None], 0.0), 0.0))
        left = np.where(done, 0.0, left - step / ratio)
        waiting_end = np.where(done, now, waiting_end)
    ends = np.where(np.isinf(ends), waiting_end + work, ends)
    return np.vstack([ends, waiting_end])
