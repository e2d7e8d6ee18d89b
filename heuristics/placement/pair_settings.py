"""Settings in which a waiting job can share the GPUs of a running one, and the running times from which they gain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_speeds import ModelSpeeds
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.speeds import Running

#: Rules of the benefit test.
RULES = ("pair", "sign")
# Differences below this, of times of a few times 1, are rounding errors.
_ROUNDING = 1e-12


class Kind(NamedTuple):
    """Jobs whose ratios, memory and relative speeds are equal."""

    model: str
    gpus: int
    batch_size: int
    sub_batch: int

    @staticmethod
    def of(job: PlacementJob) -> Kind:
        """Return the kind of a running job, or of a waiting one at its full batch."""
        size, part = (job.batch_size, job.batch_size) if job.run is None else job.run[-2:]
        return Kind(job.model, job.gang_gpus, size, part)


#: Kind of a job, and its trace index.
Member = tuple[Kind, int]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way in which a waiting job can run beside a running one, for jobs of two kinds.

    Attributes
    ----------
    sub_batch : int
        Samples per GPU that the waiting job computes at once.
    factor : float
        Its time alone with this sub-batch, relative to that with its full batch, at least 1.
    running_ratio, waiting_ratio : float
        Interference ratios of the two jobs.

    Notes
    -----
    Let a be the time that the running job still needs, b that of the waiting job at its full batch, and n the jobs
    that wait behind them. Sharing gains if the ends of the two, and n times the later one, add up to no more than if
    one ran after the other. The difference is b times a function of a/b: up to the value at which both jobs end
    together it is linear, and from there on falls by 1 per unit. It is not negative at 0, so that sharing gains from
    some a/b on.
    """

    sub_batch: int
    factor: float
    running_ratio: float
    waiting_ratio: float
    # Value of a/b at which both jobs end together; there, the loss in the sum of the ends, and in the later end.
    _together: float = field(init=False, repr=False)
    _sum_loss: float = field(init=False, repr=False)
    _last_loss: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        together = self.waiting_ratio * self.factor / self.running_ratio
        shared = self.ends(together, 1.0)
        apart = pair_ends(together, 1.0, self.running_ratio, self.waiting_ratio, together)
        object.__setattr__(self, "_together", together)
        object.__setattr__(self, "_sum_loss", sum(shared) - sum(apart))
        object.__setattr__(self, "_last_loss", max(shared) - max(apart))

    def ends(self, running_s: float, waiting_s: float) -> tuple[float, float]:
        """Return the ends of the running and the waiting job if they share at once."""
        return pair_ends(running_s, waiting_s * self.factor, self.running_ratio, self.waiting_ratio, 0.0)

    def cost(self, running_s: float, waiting_s: float, behind: float) -> float:
        """Return the sum of both ends, and `behind` times the later one, if the jobs share at once."""
        ends = self.ends(running_s, waiting_s)
        return sum(ends) + behind * max(ends)

    def least_running(self, behind: float) -> float:
        """Return the least a/b from which sharing gains, with so many jobs behind."""
        at_zero = (1.0 + behind) * (self.factor - 1.0)
        at_break = self._sum_loss + behind * self._last_loss
        if at_break > _ROUNDING * (1.0 + behind):
            return self._together + at_break
        return self._together * at_zero / (at_zero - min(at_break, 0.0)) if at_zero > 0.0 else 0.0

    def passes_sign_test(self) -> bool:
        """Return whether the sum of the ends does not fall with the delay when the running job ends first."""
        return shares_at_once(0.0, 1.0, self.running_ratio, self.waiting_ratio)


class PairSettings:
    """Settings of pairs of kinds, computed once.

    Parameters
    ----------
    state : PlacementState
        With speeds, and with interference unless `rule` is None.
    gpu_memory_gb : float
        Memory of a GPU; both jobs of a pair must fit it. With `ModelSpeeds` only.
    rule : {"pair", "sign"}, optional
        Benefit test. None: every setting that fits the memory gains, and the largest sub-batch is the only one.
    """

    def __init__(self, state: PlacementState, gpu_memory_gb: float, rule: str | None) -> None:
        self.state, self.gpu_memory_gb, self.rule = state, gpu_memory_gb, rule
        self.speeds = state.speeds
        self._found: dict[Kind, dict[Kind, tuple[Setting, ...]]] = {}
        self._least: dict[Kind, dict[Kind, float]] = {}

    def of(self, waiting: Member, running: Member) -> tuple[Setting, ...]:
        """Return the settings of a waiting job beside a running one, each given by its kind and trace index."""
        found = self._found.setdefault(waiting[0], {})
        if running[0] not in found:
            found[running[0]] = tuple(self._settings(waiting, running))
        return found[running[0]]

    def gaining_from(self, waiting: Member, running: Member, behind: float) -> float:
        """Return the least remaining time of the running job, relative to the waiting one's, from which one gains."""
        least = {} if behind else self._least.setdefault(waiting[0], {})
        if running[0] not in least:
            settings = self.of(waiting, running)
            least[running[0]] = min((self.least_running(each, behind) for each in settings), default=math.inf)
        return least[running[0]]

    def least_running(self, setting: Setting, behind: float) -> float:
        """Return the least remaining time, relative to the waiting job's, from which this setting gains."""
        if self.rule == "pair":
            return setting.least_running(behind)
        return 0.0 if self.rule is None or setting.passes_sign_test() else math.inf

    def _settings(self, waiting: Member, running: Member) -> Iterator[Setting]:
        (kind, index), beside = waiting, self._alone(*running)
        whole_rate = self.speeds.rate(self._alone(kind, index))
        for part in self._fitting(kind, running[0]):
            if self.rule is None:
                yield Setting(sub_batch=part, factor=1.0, running_ratio=1.0, waiting_ratio=1.0)
                return
            run = self._alone(kind._replace(sub_batch=part), index)
            yield Setting(
                sub_batch=part,
                # A mapping of overlaps may make a smaller sub-batch the faster one.
                factor=max(1.0, whole_rate / self.speeds.rate(run)),
                running_ratio=float(self.state.interference.ratio(beside, [run])),
                waiting_ratio=float(self.state.interference.ratio(run, [beside])),
            )

    def _fitting(self, kind: Kind, beside: Kind) -> Iterator[int]:
        """Yield the sub-batches B, B/2, .., 1, rounded up, that fit the memory beside a running job."""
        if not isinstance(self.speeds, ModelSpeeds):
            yield kind.batch_size
            return
        table, part = self.speeds.table, kind.batch_size
        row, left_gb = table.row(kind.model), self.gpu_memory_gb - table.row(beside.model).worker_gb(beside.sub_batch)
        while True:
            if row.worker_gb(part) <= left_gb:
                yield part
            if part == 1:
                return
            part = -(-part // 2)

    def _alone(self, kind: Kind, index: int) -> Running:
        """Return a job of a kind alone on as few machines as possible."""
        gpus, fewest = self.state.gpus, self.state.gpus.fewest_machines(kind.gpus)
        model, count, size, part = kind
        return Running(index, model, count, count, fewest, fewest, gpus.least_tier(count), size, part)
