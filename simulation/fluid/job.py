"""A job of the fluid engine: the size, the speedups, the work left and the GPUs that it holds."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from ...formulations.errors import InvalidInput
from ..traces.trace import Trace
from .clock import Clock
from .rules import FluidRules
from .speedups import Speedups

# A job whose GPUs fall, or fall short, by no more than this has not been cut: fractions carry rounding errors.
CUT_GPUS = 1e-9
# A job with no more than this share of its size left ends: progress carries rounding errors.
DONE = 1e-12


class FluidJob:
    """One arrived and unfinished job. Policies read it; the engine changes it.

    Sizes and work are seconds on one GPU, as estimated: the true values times the job's error (`FluidRules`).

    Attributes
    ----------
    trace_index : int
    rank : int
        Place in the order of arrival, ties by id.
    arrival_s : float
    min_gpus, max_gpus : int
        Least GPUs with which it can run, and maximum demand (d): more GPUs are of no use.
    speedups : sequence of float, length d + 1
        s(0), s(1), ..., s(d).
    size_s : float
        Estimated size at arrival (S).
    true_size_s : float
        True size, for the engine alone.
    gpus : float
        GPUs that it holds.
    """

    def __init__(
        self,
        trace_index: int,
        rank: int,
        arrival: float,
        arrival_s: float,
        size_s: float,
        speedups: Sequence[float],
        factor: float = 1.0,
        min_gpus: int = 1,
    ) -> None:
        self.trace_index, self.rank, self.arrival_s = trace_index, rank, arrival_s
        self.speedups, self.min_gpus, self.max_gpus = speedups, min_gpus, len(speedups) - 1
        self.size_s = size_s * factor
        self.gpus = 0.0
        self._arrival, self._work_s, self._factor = arrival, size_s, factor
        self.true_size_s, self._known_s = size_s, self.size_s  # attained service counts from the second
        self._rate = self._pause_s = 0.0
        self._seen = self._events = 0
        # Records of the result.
        self.start_s = self.end_s = math.nan
        self.run_s = self.gpu_s = self.seen_s = 0.0
        self.preemptions = self.cuts = self.restarts = 0

    @property
    def remaining_s(self) -> float:
        """Estimated work left, in seconds on one GPU."""
        return self._work_s * self._factor

    @property
    def exact(self) -> bool:
        """Whether the estimates are the true values."""
        return self._factor == 1.0

    @property
    def attained_s(self) -> float:
        """Work done, in seconds on one GPU; in a prediction it counts from the moment of the prediction."""
        return self._known_s - self.remaining_s

    @property
    def exclusive_s(self) -> float:
        """True run time alone on the maximum demand, in seconds."""
        return self.true_size_s / self.speedups[-1]

    @property
    def contention(self) -> float:
        """Mean number of jobs in the system at the events since its arrival, this one included."""
        return self._seen / self._events

    def speed(self, gpus: float) -> float:
        """Return the speedup on any number of GPUs, linear between whole numbers and constant past the maximum."""
        table = self.speedups
        if gpus > self.max_gpus:
            return table[self.max_gpus]
        up, down = math.ceil(gpus), math.floor(gpus)
        slope = table[up] - table[down]
        return slope * gpus + (table[up] - slope * up)

    def lacks(self, gpus: float) -> bool:
        """Whether so many GPUs are too few to run with; without a stated least any fraction of a GPU will do."""
        return self.min_gpus > 1 and gpus < self.min_gpus - CUT_GPUS

    def least_speed(self, gpus: float) -> float:
        """Return the least speedup on `gpus` or more GPUs, up to the maximum: for tables that fall somewhere.

        With fewer than its least GPUs a job may get none: 0.
        """
        if self.lacks(gpus):
            return 0.0
        return min(self.speed(gpus), *self.speedups[math.ceil(min(gpus, self.max_gpus)) :])

    def capped_gpus(self, level: float) -> int:
        """Return the GPUs before the first on which the speedup per GPU is below `level`; without one, the maximum.

        The least GPUs of the job are never cut.
        """
        for gpus in range(self.min_gpus + 1, self.max_gpus + 1):
            if self.speedups[gpus] / gpus < level:
                return gpus - 1
        return self.max_gpus

    def _progress(self, span_s: float, present: int) -> None:
        """Run for a span in which so many jobs were in the system."""
        if self.gpus > 0.0:
            paused = min(span_s, self._pause_s)
            self._pause_s -= paused
            self._work_s -= self._rate * (span_s - paused)
            self.run_s += span_s - paused
            self.gpu_s += self.gpus * (span_s - paused)
        self._seen += present
        self._events += 1
        self.seen_s += present * span_s

    def _hold(self, gpus: float, time_s: float, preemption_s: float) -> None:
        """Hold this number of GPUs from now on."""
        if gpus == 0.0:
            self.preemptions += self.gpus > 0.0
        elif self.gpus == 0.0:
            if math.isnan(self.start_s):
                self.start_s = time_s
            else:
                self.restarts += 1
                self._pause_s = preemption_s
        elif gpus < self.gpus - CUT_GPUS:
            self.cuts += 1
        self.gpus = gpus
        self._rate = self.speed(gpus)

    def _needs_s(self) -> float:
        """Return the seconds until the job ends on its GPUs; infinity if it does not."""
        if self._work_s <= DONE * self.true_size_s:
            return 0.0
        return self._pause_s + self._work_s / self._rate if self._rate > 0.0 else math.inf

    def _as_estimated(self) -> FluidJob:
        """Return a copy whose estimates are true, and whose attained service counts from now on."""
        copied = copy.copy(self)
        copied._work_s = copied._known_s = self.remaining_s
        copied._factor = 1.0
        return copied


def fluid_jobs(trace: Trace, speedups: Speedups, rules: FluidRules) -> list[FluidJob]:
    """Return the jobs of a trace in order of arrival, ties by id; sizes are estimated with the rules' error.

    InvalidInput names a job that needs more GPUs than its model's table has.
    """
    sizes_s, clock = speedups.sizes_s(trace).tolist(), Clock(rules.microseconds)
    share = rules.size_error_pct / 100.0
    factors = 1.0 + np.random.default_rng(rules.seed).uniform(-share, share, len(trace))
    curves: dict[tuple[str, int, int], tuple[float, ...]] = {}
    jobs = []
    for rank, index in enumerate(sorted(range(len(trace)), key=trace.arrival_rank)):
        least = int(trace.min_gpus[index])
        key = trace.model[index], least, int(trace.gang_gpus[index])
        if key not in curves:
            curves[key] = tuple(speedups.curve_of(trace, index).tolist())
            if len(curves[key]) <= least:
                why = f"model {trace.model[index]} has speedups of up to {len(curves[key]) - 1} GPUs"
                raise trace.locate(InvalidInput("min_gpus", least, why, index=index))
        arrival = clock.ticks(float(trace.arrival_s[index]))
        factor, arrival_s = float(factors[index]), clock.seconds(arrival)
        jobs.append(FluidJob(index, rank, arrival, arrival_s, sizes_s[index], curves[key], factor, least))
    return jobs
