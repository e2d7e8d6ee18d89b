"""Policy of weighted fair queues by size (PCS) on the rounds engine, with weights by GPU type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...formulations.arrays import Indices
from ...formulations.checks import as_real, as_reals, refuse
from ...formulations.errors import InvalidInput
from ...formulations.search.wfq_config import WfqConfig, as_wfq_config, decayed, each_type
from ...formulations.shares.hierarchical_fairness import HierarchicalFairness
from ...simulation.rounds.policy import RoundJob, RoundState
from .equal_share import usable_rates
from .solved_shares import SolvedShares

#: Largest decay, either way: the search of PCS stays within 3, and weights of 20 queues within the range of numbers.
LARGEST_DECAY = 30.0


def size_gpu_s(job: RoundJob) -> float:
    """Return the size of a job in GPU-seconds: the seconds that it runs on its fastest GPU type, times its GPUs.

    This is the time on one GPU that the sizes of `WfqConfig` are, if a job is as fast on each GPU of its gang as on one
    alone, and more if it is slower. The engine has rates of whole gangs only.
    """
    return job.total_steps / float(job.rates.max()) * job.gpus


@dataclass(kw_only=True, eq=False)
class WfqPolicy(SolvedShares):
    """WFQ: weighted fair shares for queues of jobs of similar size, first come first served inside a queue.

    Parameters
    ----------
    config : WfqConfig, path or str, optional
        Configuration, or the file that holds it; see `WfqConfig.read`. Its thresholds apply to `size_gpu_s`, and its
        weights, if they are by type, name the types of the cluster. It has zeta 0. Without it the other two options
        make one.
    thresholds : float or sequence of float, optional
        Largest size of each queue but the last, ascending. A job joins the first queue whose threshold is at least its
        size, and stays there. The last queue has no threshold; an infinite one may be given. By default there is one
        queue.
    decay : float or mapping of str to float, optional
        Weight decay (W), or that of each GPU type: the weight of queue i is proportional to exp(-W i). With a positive
        decay small jobs have more weight, with a negative one large jobs. By default all queues have equal weights.
    interval_s, backend, rel_gap, time_limit
        See `SolvedShares`.

    Raises
    ------
    InvalidInput
        If an option is out of range, `config` is given beside `thresholds` or `decay`, or caps demands; in a run, if
        the weights are not those of the cluster's types.

    Notes
    -----
    A. Bin Faisal et al., PCS, OSDI 2024, Sections 4 and 6. The shares are those of `HierarchicalFairness`; jobs have
    fixed gangs, so that PCS's cap on their demands (zeta) cannot apply.
    """

    config: WfqConfig | str | Path | None = None
    thresholds: float | Sequence[float] | None = None
    decay: float | Mapping[str, float] | None = None
    name: str = field(default="wfq", init=False)
    _queue_of: dict[str | int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.config is None:
            self._config = _configured(self.thresholds, self.decay)
            return
        for name in ("thresholds", "decay"):
            if getattr(self, name) is not None:
                raise InvalidInput(name, getattr(self, name), "not beside config, which has thresholds and weights")
        self._config = self.config = as_wfq_config("config", self.config)
        if self._config.zeta > 0.0:
            why = "must be 0: jobs of the rounds engine run on all of their GPUs, and demands cannot be capped"
            raise InvalidInput("config.zeta", self._config.zeta, why)

    def problem(self, state: RoundState) -> HierarchicalFairness:
        """Return the problem of the jobs present, in the order of their arrival."""
        self._check_types(state.gpu_types)
        return HierarchicalFairness(
            rates=usable_rates(state),
            gang_gpus=state.gang_gpus,
            gpus=state.gpus,
            queue=self.queues(state),
            weights=np.column_stack([np.array(self._config.weights_of(each), float) for each in state.gpu_types]),
        )

    def queues(self, state: RoundState) -> Indices:
        """Return the queue of each job present, shape (m,), by its size when the policy first saw it."""
        for job in state.jobs:
            if job.id not in self._queue_of:
                self._queue_of[job.id] = self._config.queue_of(size_gpu_s(job))
        self._queue_of = {job.id: self._queue_of[job.id] for job in state.jobs}
        return np.array([self._queue_of[job.id] for job in state.jobs], dtype=np.int64)

    def _check_types(self, gpu_types: Sequence[str]) -> None:
        """Raise InvalidInput if the weights are by type, and not those of the cluster's types."""
        named = self._config.gpu_types
        if named and set(named) != set(gpu_types):
            option = "decay" if self.config is None else "config"
            why = f"must be for the GPU types of the cluster, which are {', '.join(gpu_types)}"
            raise InvalidInput(option, ", ".join(named), why)


def _configured(thresholds: float | Sequence[float] | None, decay: float | Mapping[str, float] | None) -> WfqConfig:
    """Return the configuration of these options."""
    given: Any = () if thresholds is None else [thresholds] if isinstance(thresholds, int | float) else thresholds
    if isinstance(given, Sequence | np.ndarray) and len(given) and given[-1] == math.inf:
        given = given[:-1]
    limits = as_reals("thresholds", given, above=0.0, empty=True)
    weights = each_type("decay", 0.0 if decay is None else decay, partial(_weights, len(limits) + 1))
    return WfqConfig(thresholds=[*limits, math.inf], weights=weights)


def _weights(queues: int, name: str, decay: Any) -> list[Fraction]:
    """Return the weights of a decay, which add up to 1 and are not rounded."""
    raw = decayed(queues, as_real(name, decay, minimum=-LARGEST_DECAY, maximum=LARGEST_DECAY))
    weights = raw / raw.sum()
    refuse(name, np.asarray((weights == 0.0).any()), np.asarray(decay), "a weight would be 0")
    return [Fraction(each) for each in weights.tolist()]
