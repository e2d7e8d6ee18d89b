"""Fair policies of the fluid engine: fair share, and Themis's worst finish-time fairness first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...formulations.checks import as_real, store_checked
from ...simulation.fluid.job import FluidJob
from ...simulation.fluid.policy import FluidCode, FluidRule
from ...simulation.fluid.state import FluidState
from .queue import WithoutTimer

# GPUs and demands below this count as none.
_NONE_GPUS = 1e-6
_MOST_ROUNDS = 100


@dataclass(eq=False)
class FairSharePolicy(WithoutTimer):
    """Max-min fair fractions of GPUs, up to each job's maximum demand."""

    name: ClassVar[str] = "fs"
    code: ClassVar[FluidCode] = FluidCode.FS

    @property
    def rule(self) -> FluidRule:
        """Rule that the compiled loops follow."""
        return FluidRule(code=self.code)

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Share the GPUs evenly, again and again what jobs leave that have enough."""
        jobs, rest = state.jobs, float(state.gpus)
        gpus = {job.trace_index: 0.0 for job in jobs}
        wanted = [float(job.max_gpus) for job in jobs]
        shares = [rest / len(jobs) for _ in jobs]
        left = sum(wanted)
        for _ in range(_MOST_ROUNDS):
            for place, job in enumerate(jobs):
                given = min(shares[place], wanted[place])
                gpus[job.trace_index] += given
                wanted[place] -= given
                rest -= given
                left -= given
                if wanted[place] == 0.0:
                    shares[place] = 0.0
            total = sum(shares)
            if rest <= _NONE_GPUS or left <= _NONE_GPUS or total <= 0.0:
                break
            shares = [rest * share / total for share in shares]
        return {job.trace_index: min(gpus[job.trace_index], float(job.max_gpus)) for job in jobs}


@dataclass(kw_only=True, eq=False)
class ThemisPolicy:
    """The job with the worst finish-time fairness first, as PCS runs Themis.

    Parameters
    ----------
    lease_s : float
        Seconds after the last event of any kind at which GPUs are divided anew.

    Notes
    -----
    Fairness is the ratio of the time that the job would take in all, on the GPUs that it could get now, to its fair
    finish time. The work left counts in seconds per GPU, regardless of the job's speedups, as in PCS's code.
    """

    lease_s: float = 600.0
    name: ClassVar[str] = "themis"
    engine: ClassVar[str] = "fluid"

    def __post_init__(self) -> None:
        store_checked(self, as_real, "lease_s", above=0.0)

    @property
    def rule(self) -> FluidRule:
        """Rule that the compiled loops follow."""
        return FluidRule(code=FluidCode.THEMIS, timer_s=self.lease_s)

    def timer_s(self, state: FluidState) -> float:
        """Return the lease."""
        return self.lease_s

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return nan: there is no guarantee."""
        return float("nan")

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Give the job of the largest ratio its maximum demand, or what is left; then the next."""
        waiting, rest = list(state.jobs), state.gpus
        gpus: dict[int, float] = {job.trace_index: 0.0 for job in state.jobs}
        while rest > 0 and waiting:
            ratios = [self._ratio(state, job, min(rest, job.max_gpus)) for job in waiting]
            job = waiting.pop(ratios.index(max(ratios)))
            gpus[job.trace_index] = float(min(rest, job.max_gpus))
            rest -= min(rest, job.max_gpus)
        return gpus

    @staticmethod
    def _ratio(state: FluidState, job: FluidJob, gpus: int) -> float:
        fair_s = job.size_s / min(state.gpus / job.contention, job.max_gpus)
        shared_s = state.clock.seconds(state._now - job._arrival) + job.remaining_s / gpus
        return shared_s / fair_s
