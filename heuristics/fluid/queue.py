"""Policies that serve jobs of the fluid engine in an order, each up to its maximum demand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...simulation.fluid.job import FluidJob
from ...simulation.fluid.policy import FluidCode, FluidRule
from ...simulation.fluid.state import FluidState


def guaranteed_end_s(state: FluidState, ahead: Sequence[FluidJob], share_gpus: float, level: float = 0.0) -> float:
    """Return the time by which the last of some jobs ends if they are served in order, the first always with enough.

    Enough is `share_gpus`, or its cap at this level of the speedup per GPU if that is less. One after another, at their
    least speed on so many GPUs or more, the jobs end no earlier. With errors of sizes, or an overhead of preemptions,
    there is no guarantee: nan.
    """
    if state.preemption_s > 0.0 or not all(job.exact for job in ahead):
        return math.nan
    needs_s = 0.0
    for job in ahead:
        speed = job.least_speed(min(share_gpus, job.capped_gpus(level)))
        needs_s += job.remaining_s / speed if speed > 0.0 else math.inf
    return state.time_s + needs_s


class WithoutTimer:
    """Part of a policy that sets no timer and guarantees no end."""

    engine: ClassVar[str] = "fluid"

    def timer_s(self, state: FluidState) -> float:
        """Return infinity: there is no timer."""
        return math.inf

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return nan: there is no guarantee."""
        return math.nan


class _InOrder(WithoutTimer):
    """Serve the jobs by ascending key; jobs with equal keys keep the order that they had."""

    name: ClassVar[str]
    code: ClassVar[FluidCode]

    @property
    def rule(self) -> FluidRule:
        """Rule that the compiled loops follow."""
        return FluidRule(code=self.code)

    def key(self, job: FluidJob) -> float:
        """Return the place of a job in the order."""
        raise NotImplementedError

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Give each job in order its maximum demand, or what is left."""
        rest, gpus = state.gpus, {}
        for job in sorted(state.jobs, key=self.key):
            gpus[job.trace_index] = float(min(rest, job.max_gpus))
            rest -= min(rest, job.max_gpus)
        return gpus


@dataclass(eq=False)
class FifoPolicy(_InOrder):
    """First come, first served, elastic: the last job served may get fewer GPUs than its maximum demand."""

    name: ClassVar[str] = "fifo"
    code: ClassVar[FluidCode] = FluidCode.FIFO

    def key(self, job: FluidJob) -> float:
        """Return the place in the order of arrival."""
        return job.rank

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return the time by which a job ends: the first in order always gets its demand."""
        ahead = sorted((each for each in state.jobs if each.rank <= job.rank), key=self.key)
        return guaranteed_end_s(state, ahead, float(state.gpus))


@dataclass(eq=False)
class SrsfPolicy(_InOrder):
    """Shortest remaining service first: maximum demand times remaining time on it (Tiresias with known sizes)."""

    name: ClassVar[str] = "srsf"
    code: ClassVar[FluidCode] = FluidCode.SRSF

    def key(self, job: FluidJob) -> float:
        """Return the remaining GPU-seconds at the maximum demand."""
        return job.max_gpus * (job.remaining_s / job.speedups[-1])


@dataclass(eq=False)
class SrtfPolicy(_InOrder):
    """Shortest remaining time first, at the maximum demand."""

    name: ClassVar[str] = "srtf"
    code: ClassVar[FluidCode] = FluidCode.SRTF

    def key(self, job: FluidJob) -> float:
        """Return the remaining seconds at the maximum demand."""
        return job.remaining_s / job.speedups[-1]


@dataclass(eq=False)
class LasPolicy(_InOrder):
    """Least attained service first: work done, in seconds on one GPU.

    A prediction does not know the service attained before it: each job starts from none.
    """

    name: ClassVar[str] = "las"
    code: ClassVar[FluidCode] = FluidCode.LAS

    def key(self, job: FluidJob) -> float:
        """Return the work done."""
        return job.attained_s
