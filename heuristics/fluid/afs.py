"""AFS and AFS-L: GPU by GPU, short jobs are preferred to long ones until the long ones use a GPU better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from ...simulation.fluid.job import FluidJob
from ...simulation.fluid.policy import FluidCode, FluidRule
from ...simulation.fluid.state import FluidState
from .queue import WithoutTimer

# Seconds added to a remaining time before it is inverted.
_MARGIN_S = 1e-7


def _remaining_s(job: FluidJob, gpus: int) -> float:
    speed = job.speed(gpus)
    return job.remaining_s / speed if speed > 0.0 else math.inf


class _Tournament(WithoutTimer):
    """Give one GPU after another to the winner among the jobs below their maximum demand, in order of arrival."""

    name: ClassVar[str]
    code: ClassVar[FluidCode]

    @property
    def rule(self) -> FluidRule:
        """Rule that the compiled loops follow."""
        return FluidRule(code=self.code)

    def prefers_short(self, short: FluidJob, long: FluidJob, gpus: Mapping[int, int]) -> bool:
        """Return whether the next GPU is better given to the job that ends earlier on its present GPUs."""
        raise NotImplementedError

    def divide(self, jobs: list[FluidJob], gpus: dict[int, int], rest: int) -> None:
        """Give the GPUs that are left, one by one."""
        open_jobs = [job for job in jobs if gpus[job.trace_index] < job.max_gpus]
        while rest > 0 and open_jobs:
            winner = open_jobs[0]
            for job in open_jobs[1:]:
                # Of two equal jobs the one that has won so far counts as the short one.
                shorter = _remaining_s(job, gpus[job.trace_index]) < _remaining_s(winner, gpus[winner.trace_index])
                short, long = (job, winner) if shorter else (winner, job)
                winner = short if self.prefers_short(short, long, gpus) else long
            gpus[winner.trace_index] += 1
            rest -= 1
            if gpus[winner.trace_index] == winner.max_gpus:
                open_jobs.remove(winner)


@dataclass(eq=False)
class AfsPolicy(_Tournament):
    """AFS as PCS runs it: the relative gain of the short job against that of the long one.

    With S(n) = 1/(remaining/s(n) + 1e-7), the short job wins if (S(x+1) - S(x))/S(x) exceeds (S(x+1) - S(x))/S(x+1) of
    the long one; if the short job has no GPU, the larger S(x+1) wins.
    """

    name: ClassVar[str] = "afs"
    code: ClassVar[FluidCode] = FluidCode.AFS

    def prefers_short(self, short: FluidJob, long: FluidJob, gpus: Mapping[int, int]) -> bool:
        """Compare the gains of one more GPU."""
        (short_now, short_next), (long_now, long_next) = (
            [1.0 / (_remaining_s(job, gpus[job.trace_index] + more) + _MARGIN_S) for more in (0, 1)]
            for job in (short, long)
        )
        if short_now == 0.0:
            return short_next > long_next
        return (short_next - short_now) / short_now > (long_next - long_now) / long_next

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Give all GPUs one by one."""
        gpus = {job.trace_index: 0 for job in state.jobs}
        self.divide(state.jobs, gpus, state.gpus)
        return {index: float(count) for index, count in gpus.items()}


@dataclass(eq=False)
class AfsLPolicy(_Tournament):
    """AFS-L (Hwang et al., NSDI 2021): one GPU for each of the shortest jobs, and the others by relative gains.

    With R(n) = remaining/s(n), the short job wins a spare GPU if R(k)/R(k+1) of it plus R(k+1)/R(k) of the long one
    exceeds 2.
    """

    name: ClassVar[str] = "afs-l"
    code: ClassVar[FluidCode] = FluidCode.AFS_L

    def prefers_short(self, short: FluidJob, long: FluidJob, gpus: Mapping[int, int]) -> bool:
        """Compare the gain of the short job with the loss of the long one."""
        have, other = gpus[short.trace_index], gpus[long.trace_index]
        gain = short.speed(have + 1) / short.speed(have)
        loss = long.speed(other) / long.speed(other + 1)
        return gain + loss > 2.0

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Give one GPU to each of the jobs with least work left, then the spare ones."""
        gpus = {job.trace_index: 0 for job in state.jobs}
        shortest = sorted(state.jobs, key=attrgetter("remaining_s"))[: state.gpus]
        for job in shortest:
            gpus[job.trace_index] = 1
        if len(state.jobs) < state.gpus:
            self.divide(state.jobs, gpus, state.gpus - len(shortest))
        return {index: float(count) for index, count in gpus.items()}
