"""Settings in which a waiting job can share the GPUs of a running one, and the running times from which they gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once
from ...simulation.placement.job import PlacementJob
from ...simulation.placement.model_speeds import ModelSpeeds
from ...simulation.placement.policy import PlacementState
from ...simulation.placement.speeds import Running

#: Rules of the benefit test.
RULES = ("pair", "sign")
# Differences below this, of times of a few times 1, are rounding errors.
ROUNDING = 1e-12
TINY = 1e-300


class Kind(NamedTuple):
    """Jobs whose ratios, memory and relative speeds are equal."""

    model: str
    gpus: int
    batch_size: int
    sub_batch: int

    @staticmethod
    def of(job: PlacementJob) -> Kind:
        """Return the kind of a running job, or of a waiting one at its full batch."""
        if job.run is None:
            return Kind(job.model, job.gang_gpus, job.batch_size, job.batch_size)
        return Kind(job.model, job.gang_gpus, job.run.batch_size, job.run.sub_batch)


class Setting(NamedTuple):
    """One way in which a waiting job can run beside a running one, for jobs of two kinds.

    Attributes
    ----------
    sub_batch : int
        Samples per GPU that the waiting job computes at once.
    factor : float
        Its time alone with this sub-batch, relative to that with its full batch, at least 1.
    running_ratio, waiting_ratio : float
        Interference ratios of the two jobs.
    running_gpus, waiting_gpus : int
        GPUs of the two jobs.
    """

    sub_batch: int
    factor: float
    running_ratio: float
    waiting_ratio: float
    running_gpus: int = 1
    waiting_gpus: int = 1

    def ends(self, running_s: float, waiting_s: float) -> tuple[float, float]:
        """Return the ends of the running and the waiting job if they share at once."""
        return pair_ends(running_s, waiting_s * self.factor, self.running_ratio, self.waiting_ratio, 0.0)

    def held_gpu_s(self, running_end_s: float, waiting_end_s: float) -> float:
        """Return the GPU-seconds until the pair has left all its GPUs, of which it shares as many as possible."""
        shared = min(self.running_gpus, self.waiting_gpus)
        alone = (self.running_gpus - shared) * running_end_s + (self.waiting_gpus - shared) * waiting_end_s
        return shared * max(running_end_s, waiting_end_s) + alone

    def cost(self, running_s: float, waiting_s: float, behind: float) -> float:
        """Return the sum of both ends and `behind` times the GPU-seconds of the pair, if the jobs share at once."""
        ends = self.ends(running_s, waiting_s)
        return sum(ends) + (behind * self.held_gpu_s(*ends) if behind else 0.0)


class Thresholds:
    """Least remaining times of running jobs, relative to those of waiting ones, from which sharing gains.

    Let a be the time that the running job still needs, b that of the waiting one at its full batch, and n the other
    jobs that wait, per GPU of the cluster. Sharing gains if the two ends, and n times the GPU-seconds of the pair, add
    up to no more than if one job ran after the other. The difference is b times a function of a/b. It is not negative
    at 0, linear up to the value at which both jobs end together, and falls by 1 per unit from there on, where the
    GPU-seconds of both sides grow alike: from its one root on, sharing gains.

    A threshold has a number: 0 that of settings that never gain, 1 that of those that always do.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[float, ...], int] = {}
        # The value of a/b at which both jobs end together; there, for b = 1, the losses in the sum of the ends and in
        # GPU-seconds; and both losses at 0.
        self._losses = [(0.0, np.inf, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0)]
        self._array = np.empty((0, 5))
        self._values: dict[float, Floats] = {}

    def number(self, setting: Setting) -> int:
        """Return the number of a setting's threshold."""
        number = self._numbers.setdefault(setting[1:], len(self._losses))
        if number == len(self._losses):
            _, factor, x, y, running_gpus, waiting_gpus = setting
            together = y * factor / x
            shared = setting.ends(together, 1.0)
            sum_loss = sum(shared) - sum(pair_ends(together, 1.0, x, y, together))
            held_loss = setting.held_gpu_s(*shared) - running_gpus * together - waiting_gpus
            slower = factor - 1.0
            self._losses.append((together, sum_loss, held_loss, slower, waiting_gpus * slower))
        return number

    def values(self, behind: float) -> Floats:
        """Return all thresholds by their numbers, with so many other jobs that wait per GPU."""
        known = self._values.get(behind, np.empty(0))
        if len(known) < len(self._losses):
            # Conversion takes longer than all the rest.
            self._array = np.concatenate((self._array, np.reshape(self._losses[len(self._array) :], (-1, 5))))
            together, sum_loss, held_loss, sum_at_zero, held_at_zero = self._array[len(known) :].T
            at_zero, at_break = sum_at_zero + behind * held_at_zero, sum_loss + behind * held_loss
            rising = np.maximum(at_zero - np.minimum(at_break, 0.0), TINY)
            root = np.where(
                at_break > ROUNDING * (1.0 + 1e3 * behind), together + at_break, together * (at_zero / rising)
            )
            known = self._values[behind] = np.concatenate((known, root))
        return known

    def forget(self) -> None:
        """Forget the values of other numbers of jobs that wait than 0."""
        self._values = {behind: values for behind, values in self._values.items() if not behind}


class _WaitingKind:
    """Settings of one kind of waiting jobs beside kinds of running jobs, by their numbers.

    Attributes
    ----------
    parts : list of (Running, float, float)
        See `PairSettings._parts`.
    settings : dict of int to tuple of Setting
    thresholds : ndarray of int, shape (S, K)
        Numbers of the thresholds of the settings: 0 where there are fewer, and -1 first where they are not known yet.
    """

    def __init__(self, parts: list[tuple[Running, float, float]]) -> None:
        self.parts = parts
        self.settings: dict[int, tuple[Setting, ...]] = {}
        self.thresholds = np.full((1, 16), -1)

    def extend(self, kinds: int) -> None:
        """Add columns for so many kinds, if there are fewer."""
        rows, columns = self.thresholds.shape
        if kinds > columns:
            self.thresholds = np.concatenate((self.thresholds, np.full((rows, kinds), -1)), axis=1)

    def add(self, number: int, settings: tuple[Setting, ...], thresholds: list[int]) -> None:
        """Add the settings beside a kind of running jobs, and the numbers of their thresholds."""
        rows, columns = self.thresholds.shape
        if len(settings) > rows:
            more = np.zeros((len(settings) - rows, columns), dtype=np.int64)
            self.thresholds = np.concatenate((self.thresholds, more))
        self.settings[number] = settings
        for row in range(len(self.thresholds)):
            self.thresholds[row, number] = thresholds[row] if row < len(thresholds) else 0


class PairSettings:
    """Settings of pairs of kinds, computed once.

    Parameters
    ----------
    state : PlacementState
        With speeds, and with interference unless `rule` is None.
    gpu_memory_gb : float
        Memory of a GPU, with `ModelSpeeds` only; both jobs of a pair must fit it.
    rule : {"pair", "sign"}, optional
        Benefit test. None: the largest sub-batch that fits the memory is the only setting, and gains.
    counts_waiting : bool
        Whether jobs that wait count. If they do not, no setting has the numbers of GPUs, so that fewer differ.
    """

    def __init__(self, state: PlacementState, gpu_memory_gb: float, rule: str | None, counts_waiting: bool) -> None:
        self.state, self.gpu_memory_gb, self.rule, self.counts_waiting = state, gpu_memory_gb, rule, counts_waiting
        self.table = state.speeds.table if isinstance(state.speeds, ModelSpeeds) else None
        self.thresholds = Thresholds()
        # Numbers of the kinds of running jobs; their jobs as they would run alone, and the memory beside them.
        self._numbers: dict[Kind, int] = {}
        self._running: list[tuple[Running, float]] = []
        self._waiting: dict[Kind, _WaitingKind] = {}

    def number(self, job: PlacementJob) -> int:
        """Return the number of a running job's kind."""
        kind = Kind.of(job)
        if kind not in self._numbers:
            self._numbers[kind] = len(self._running)
            used = 0.0 if self.table is None else self.table.row(kind.model).worker_gb(kind.sub_batch)
            self._running.append((self._alone(kind, job.trace_index), self.gpu_memory_gb - used))
        return self._numbers[kind]

    def of(self, kind: Kind, beside: int) -> tuple[Setting, ...]:
        """Return the settings of a waiting kind beside a running one that `least_running` was asked for."""
        return self._waiting[kind].settings[beside]

    def least_running(self, job: PlacementJob, kind: Kind, beside: Indices, behind: float) -> Floats:
        """Return the least time of running jobs, relative to that of a waiting job, from which sharing gains.

        `beside` has the numbers of the kinds of the running jobs, shape (R,), and so has the result. It is infinite
        where no setting ever gains.
        """
        known = self._waiting.get(kind)
        if known is None:
            known = self._waiting[kind] = _WaitingKind(list(self._parts(kind, job.trace_index)))
        known.extend(len(self._running))
        numbers = known.thresholds.take(beside, axis=1)
        if numbers[0].min(initial=0) < 0:
            for number in set(beside[numbers[0] < 0].tolist()):
                settings = tuple(self._settings(known.parts, number))
                by_pair = self.rule == "pair"
                known.add(number, settings, [self.thresholds.number(each) if by_pair else 1 for each in settings])
            numbers = known.thresholds.take(beside, axis=1)
        return np.asarray(self.thresholds.values(behind).take(numbers).min(axis=0))

    def _parts(self, kind: Kind, index: int) -> Iterator[tuple[Running, float, float]]:
        """Yield a job with its sub-batches B, B/2, .., 1, rounded up; the memory of a worker, and the factor."""
        part, rate = kind.batch_size, self.state.speeds.rate
        whole_rate = rate(self._alone(kind, index))
        if self.table is None:
            yield self._alone(kind, index), 0.0, 1.0
            return
        row = self.table.row(kind.model)
        while True:
            run = self._alone(kind._replace(sub_batch=part), index)
            # A smaller sub-batch never counts as faster, although a mapping of overlaps may make it so.
            yield run, row.worker_gb(part), max(1.0, whole_rate / rate(run))
            if part == 1:
                return
            part = -(-part // 2)

    def _settings(self, parts: list[tuple[Running, float, float]], beside: int) -> Iterator[Setting]:
        """Yield the settings that fit the memory and may gain, without those that are no better than an earlier one."""
        running, left_gb = self._running[beside]
        fitting = [(run, factor) for run, needed_gb, factor in parts if needed_gb <= left_gb]
        if self.rule is None:
            if fitting:
                yield Setting(fitting[0][0].sub_batch, 1.0, 1.0, 1.0)
            return
        best, interference, other = dict[tuple[float, float], float](), self.state.interference, [running]
        ratio, by_sub_batch, fastest = interference.ratio, getattr(interference, "by_sub_batch", True), np.inf
        for run, factor in fitting:
            if not by_sub_batch and factor >= fastest:  # the ratios are those of an earlier one
                continue
            fastest = min(fastest, factor)
            x, y = float(ratio(running, [run])), float(ratio(run, other))
            if factor < best.get((x, y), np.inf) and (self.rule == "pair" or shares_at_once(0.0, 1.0, x, y)):
                best[x, y] = factor
                gpus = (running.gpus, run.gpus) if self.counts_waiting else ()
                yield Setting(run.sub_batch, factor, x, y, *gpus)

    def _alone(self, kind: Kind, index: int) -> Running:
        """Return a job of a kind alone on as few machines as possible."""
        gpus, fewest = self.state.gpus, self.state.gpus.fewest_machines(kind.gpus)
        model, count, size, part = kind
        tier, racks = gpus.least_tier(count), gpus.fewest_racks(count)
        return Running(index, model, count, count, fewest, fewest, tier, size, part, racks)
