"""Weighted fair queues of PCS: queues by size share GPUs by weight; a queue serves jobs in order of arrival."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from ...formulations.checks import as_flag, as_real, store_checked
from ...formulations.errors import InvalidInput
from ...formulations.search.wfq_config import WfqConfig, as_wfq_config
from ...simulation.fluid.job import FluidJob
from ...simulation.fluid.policy import FluidCode, FluidRule
from ...simulation.fluid.state import FluidState
from .queue import guaranteed_end_s
from .rotation import Rotation

# GPUs and demands up to this count as none.
NONE_GPUS = 1e-3
_MOST_ROUNDS = 101


def queue_gpus(gpus: int, weights: Sequence[Fraction], demands: Sequence[int]) -> list[Fraction]:
    """Return the GPUs of each queue: weighted max-min fair, up to the queue's demand, in exact fractions.

    Each round gives every queue in turn its share or what it still demands, and then divides what is left in
    proportion to the shares of the queues that demand more. Amounts of up to 0.001 GPUs count as none.
    """
    shares = [weight * gpus for weight in weights]
    given = [Fraction(0)] * len(weights)
    wanted = [Fraction(demand) for demand in demands]
    rest, left = sum(shares), sum(wanted)
    for _ in range(_MOST_ROUNDS):
        if rest <= 0 or left <= 0:
            break
        for queue in range(len(weights)):
            amount = min(shares[queue], wanted[queue])
            if abs(float(amount)) <= NONE_GPUS:
                amount = Fraction(0)
            given[queue] += amount
            wanted[queue] -= amount
            rest -= amount
            left -= amount
            if abs(float(wanted[queue])) <= NONE_GPUS:
                shares[queue] = wanted[queue] = Fraction(0)
        total = sum(shares)
        if abs(float(rest)) <= NONE_GPUS or abs(float(left)) <= NONE_GPUS or total <= 0:
            break
        shares = [rest * share / total for share in shares]
    return given


@dataclass(kw_only=True, eq=False)
class WfqPolicy:
    """Weighted fair queues (PCS, OSDI 2024, Section 4).

    Parameters
    ----------
    config : WfqConfig, path or str
        Configuration, or the file that holds it; see `WfqConfig.read`. By default one queue without a cap, which is
        elastic FIFO. Weights by GPU type must be those of one type, the cluster's, whatever its name.
    integral : bool
        Whether each job keeps the whole part of its GPUs, and the fractions take turns on whole GPUs.
    quantum_s : float
        Time in which these turns go round once (integral only).

    Raises
    ------
    InvalidInput
        If an option is out of range or the configuration cannot be read.
    """

    config: WfqConfig | str | Path | None = None
    integral: bool = False
    quantum_s: float = 100.0
    name: ClassVar[str] = "wfq"
    engine: ClassVar[str] = "fluid"
    _turns: Rotation = field(default_factory=Rotation, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.config is None:
            self.config = WfqConfig(thresholds=[math.inf], weights=[Fraction(1)])
        self._config = self.config = as_wfq_config("config", self.config)
        if len(self._config.gpu_types) > 1:
            why = "has weights of several GPU types, and the fluid engine has one"
            raise InvalidInput("config", ", ".join(self._config.gpu_types), why)
        self._weights, self._levels = self._config.weights_of(), self._config.cap_levels
        store_checked(self, as_flag, "integral")
        store_checked(self, as_real, "quantum_s", above=0.0)

    @property
    def rule(self) -> FluidRule:
        """Rule that the compiled loops follow."""
        return FluidRule(
            code=FluidCode.WFQ_INTEGRAL if self.integral else FluidCode.WFQ,
            timer_s=self.quantum_s if self.integral else math.inf,
            thresholds=tuple(self._config.thresholds),
            weights=self._weights,
            caps=self._levels,
            turns=self._turns.present() if self.integral else None,
        )

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Return the GPUs of each job in order of arrival."""
        if not self.integral:
            return self.shares(state)
        if state.event != "timer":
            self._turns.begin(self.shares(state), self._by_queue(state.jobs))
        else:
            self._turns.next_turn()
        return self._turns.gpus()

    def timer_s(self, state: FluidState) -> float:
        """Return the time to the next turn of the integral variant."""
        return self.quantum_s * self._turns.turn if self.integral else math.inf

    def shares(self, state: FluidState) -> dict[int, float]:
        """Return the fractional GPUs of each job."""
        queues = self._queues(state.jobs)
        demands = [sum(job.max_gpus for job in jobs) for jobs in queues]
        shares = dict.fromkeys((job.trace_index for job in state.jobs), 0.0)
        for jobs, gpus in zip(queues, queue_gpus(state.gpus, self._weights, demands), strict=True):
            self._serve(jobs, float(gpus), shares)
        return shares

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return the time by which a job ends whatever arrives later; nan where there is no guarantee.

        There is one for the fractional form, exact sizes and no preemption overhead: the head of a queue always gets
        the queue's weight of the GPUs, or its cap. So the jobs up to this one, one after another at the least speed on
        so many GPUs or more, end no earlier.
        """
        queue = self._config.queue_of(job.size_s)
        ahead = [each for each in self._queues(state.jobs)[queue] if each.rank <= job.rank]
        share = float(self._weights[queue] * state.gpus)
        if self.integral:
            return math.nan
        return guaranteed_end_s(state, ahead, share if share > NONE_GPUS else 0.0, self._config.zeta)

    def _queues(self, jobs: Sequence[FluidJob]) -> list[list[FluidJob]]:
        """Return the jobs of each queue in order of arrival."""
        queues: list[list[FluidJob]] = [[] for _ in range(self._config.queues)]
        for job in sorted(jobs, key=lambda each: each.rank):
            queues[self._config.queue_of(job.size_s)].append(job)
        return queues

    def _by_queue(self, jobs: Sequence[FluidJob]) -> list[int]:
        """Return the trace indices of jobs, queue by queue."""
        return [job.trace_index for queue in self._queues(jobs) for job in queue]

    def _serve(self, jobs: Sequence[FluidJob], gpus: float, shares: dict[int, float]) -> None:
        """Divide a queue's GPUs: each job in order gets its cap or what is left; relax the cap while GPUs are left."""
        if gpus <= 0.0:
            return
        for level in self._levels:
            rest = gpus
            for job in jobs:
                shares[job.trace_index] = min(rest, float(job.capped_gpus(level)))
                rest -= shares[job.trace_index]
            if rest <= 0.0:
                return
