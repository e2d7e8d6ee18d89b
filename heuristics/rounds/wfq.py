"""Policy of weighted fair queues by size (PCS) on the rounds engine, with one weight decay per GPU type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.checks import as_real, as_reals, refuse
from ...formulations.errors import InvalidInput
from ...formulations.shares.hierarchical_fairness import HierarchicalFairness
from ...simulation.rounds.policy import RoundJob, RoundState
from .equal_share import usable_rates
from .solved_shares import SolvedShares

#: Largest decay, either way: the search of PCS stays within 3, and weights of 20 queues within the range of numbers.
LARGEST_DECAY = 30.0


def size_gpu_s(job: RoundJob) -> float:
    """Return the size of a job: the seconds that it runs on its fastest GPU type, times its GPUs.

    This is the time on one GPU that PCS's sizes are, if a job is as fast on each GPU of its gang as on one alone. The
    engine has rates of whole gangs only.
    """
    return job.total_steps / float(job.rates.max()) * job.gpus


@dataclass(kw_only=True, eq=False)
class WfqPolicy(SolvedShares):
    """WFQ: weighted fair shares for queues of jobs of similar size, first come first served inside a queue.

    Parameters
    ----------
    thresholds : float or sequence of float
        Largest size of each queue but the last, in GPU-seconds (`size_gpu_s`), ascending. A job joins the first queue
        whose threshold is at least its size, and stays there. The last queue has no threshold; an infinite one may be
        given. Without thresholds there is one queue.
    decay : float or mapping of str to float
        Weight decay (W), or that of each GPU type: the weight of queue i is proportional to exp(-W i). With a positive
        decay small jobs have more weight, with a negative one large jobs.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    Notes
    -----
    A. Bin Faisal et al., PCS, OSDI 2024, Sections 4 and 6. The shares are those of `HierarchicalFairness`; jobs have
    fixed gangs, so PCS's cap on their demands (zeta) does not apply.
    """

    thresholds: float | Sequence[float] = ()
    decay: float | Mapping[str, float] = 0.0
    name: str = field(default="wfq", init=False)
    _queue_of: dict[str | int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._limits = _limits(self.thresholds)
        by_type = self.decay if isinstance(self.decay, Mapping) else {"": self.decay}
        for gpu_type, decay in by_type.items():
            name = f"decay[{gpu_type!r}]" if gpu_type else "decay"
            as_real(name, decay, minimum=-LARGEST_DECAY, maximum=LARGEST_DECAY)
            refuse(name, np.asarray(self._weights(decay) == 0.0).any(), np.asarray(decay), "a weight would be 0")

    def problem(self, state: RoundState) -> HierarchicalFairness:
        """Return the problem of the jobs present, in the order of their arrival."""
        return HierarchicalFairness(
            rates=usable_rates(state),
            gang_gpus=state.gang_gpus,
            gpus=state.gpus,
            queue=self.queues(state),
            weights=np.column_stack([self._weights(self._decay_of(gpu_type)) for gpu_type in state.gpu_types]),
        )

    def queues(self, state: RoundState) -> Indices:
        """Return the queue of each job present, shape (m,), by its size when the policy first saw it."""
        for job in state.jobs:
            if job.id not in self._queue_of:
                self._queue_of[job.id] = int(np.searchsorted(self._limits, size_gpu_s(job)))
        self._queue_of = {job.id: self._queue_of[job.id] for job in state.jobs}
        return np.array([self._queue_of[job.id] for job in state.jobs], dtype=np.int64)

    def _decay_of(self, gpu_type: str) -> float:
        if not isinstance(self.decay, Mapping):
            return self.decay
        if gpu_type not in self.decay:
            raise InvalidInput("decay", self.decay, f"has no decay of GPU type {gpu_type!r}")
        return self.decay[gpu_type]

    def _weights(self, decay: float) -> Floats:
        """Return the weights of all queues, which add up to 1."""
        exponents = -decay * np.arange(len(self._limits) + 1)
        weights = np.exp(exponents - exponents.max())
        return np.asarray(weights / weights.sum())


def _limits(thresholds: float | Sequence[float]) -> Floats:
    """Return the finite thresholds, checked."""
    given = [thresholds] if isinstance(thresholds, int | float) else thresholds
    if isinstance(given, Sequence | np.ndarray) and len(given) and given[-1] == math.inf:
        given = given[:-1]
    limits = as_reals("thresholds", given, above=0.0, empty=True)
    refuse("thresholds", np.diff(limits, prepend=0.0) <= 0.0, limits, "thresholds must ascend")
    return limits
