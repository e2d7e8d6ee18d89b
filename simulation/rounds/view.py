"""Views of jobs that the rounds engine passes to policies, and job states for predictors."""

from __future__ import annotations

import copy
from functools import partial

from ..job_state import JobState
from .job import RoundProgress
from .policy import RoundJob
from .rules import RoundRules

# Least share of its epochs that an unfinished job has left, even if all its steps are run.
_MIN_REMAINING_SHARE = 1e-6


class Clock:
    """Clock with the integral over time of the contention max(1, GPUs requested / GPUs present)."""

    __slots__ = ("contention", "contention_integral_s", "time_s")

    def __init__(self) -> None:
        self.time_s = self.contention_integral_s = 0.0
        self.contention = 1.0

    def advance(self, time_s: float) -> None:
        """Advance to a later time at the current contention."""
        self.contention_integral_s += self.contention * (time_s - self.time_s)
        self.time_s = time_s

    def mean_contention(self, since_s: float, integral_s: float) -> float:
        """Return the mean contention since a time at which the integral was `integral_s`; now, the current one."""
        life_s = self.time_s - since_s
        return (self.contention_integral_s - integral_s) / life_s if life_s > 0.0 else self.contention


def round_job(job: RoundProgress, clock: Clock, running: bool) -> RoundJob:
    """Return the view of a job for policies; `state` holds at the moment when it is read."""
    return RoundJob(
        id=job.id,
        trace_index=job.trace_index,
        gpus=job.gang_gpus,
        model=job.model,
        mode=job.mode,
        weight=job.weight,
        arrival_s=job.arrival_s,
        batch_size=job.batch_size,
        initial_batch_size=job.initial_batch_size,
        steps_run=job.steps_run,
        total_steps=job.total_steps,
        steps_per_epoch=job.steps_per_epoch,
        rates=job.rates,
        attained_s=job.attained_s,
        running=running,
        make_state=partial(job_state, job, clock, running),
    )


def halfway(job: RoundProgress, number: int, rate: float, seconds: float, rules: RoundRules) -> RoundProgress:
    """Return a copy of the job in its state after `seconds` of its run in a round."""
    ahead = copy.copy(job)
    length_s = job.run_length_s(rate, rules)
    lost_s = job.restart_s(number, length_s, rules)
    run_s = max(0.0, min(seconds, length_s) - lost_s)
    ahead.steps_run += int(rate * run_s)
    ahead.attained_s += run_s
    return ahead


def job_state(job: RoundProgress, clock: Clock, running: bool) -> JobState:
    """Return regimes, service, waiting and contention of a job at the clock's time.

    Epochs are counted in steps of the current batch size, so the last one may be incomplete. One epoch takes
    steps per epoch / rate, with whole steps and on the fastest GPU type, as in the engine. `future` follows the
    run-time rule without the delay of one or two rounds with which the engine applies it.
    """
    total = job.total_steps / job.steps_per_epoch
    # Rescaling may leave more steps run than the total; the engine ends such a job later.
    finished = min(job.finished_epochs, total * (1.0 - _MIN_REMAINING_SHARE))
    ends = [min(end, finished) for _, end in job.regimes] + [finished]
    starts = [0.0, *ends[:-1]]
    sizes = [size for size, _ in job.regimes] + [job.batch_size]
    future = job.adaptation.future(job.batch_size, finished, total)
    life_s = clock.time_s - job.arrival_s
    contention = clock.mean_contention(job.arrival_s, job.contention_integral_at_arrival_s)
    return JobState(
        id=job.id,
        gpus=job.gang_gpus,
        mode=job.mode,
        total_epochs=total,
        finished_epochs=finished,
        batch_sizes=tuple(sizes),
        regime_epochs=tuple(end - start for start, end in zip(starts, ends, strict=True)),
        epoch_s=_epoch_s(job, {*sizes, *(size for size, _ in future)}),
        future=future,
        attained_s=job.attained_s,
        waiting_s=max(0.0, life_s - job.attained_s),
        contention=max(1.0, contention),
        weight=job.weight,
        running=running,
    )


def _epoch_s(job: RoundProgress, sizes: set[int]) -> dict[int, float]:
    """Return seconds per epoch at these sizes and every other that the mode allows and that has a rate."""
    cluster = job.cluster
    profiles = cluster.profiles[0]
    sizes |= set(profiles.batch_sizes(job.model, job.initial_batch_size, job.gang_gpus, job.mode))
    seconds = {}
    for size in sorted(sizes):
        rate = float(cluster.rates(job.model, size, job.gang_gpus).max())
        if rate > 0.0:
            seconds[size] = profiles.steps_per_epoch(job.model, size) / rate
    return seconds


def contention_at(demand: int, gpus: int) -> float:
    """Return max(1, GPUs requested / GPUs present)."""
    return max(1.0, demand / gpus) if demand else 1.0
