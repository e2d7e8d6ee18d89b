"""Job of the placement engine: its request, where it runs, and the service that it has received."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...formulations.errors import EquipoiseError
from ..traces.trace import Trace
from .speeds import Running


class Observation:
    """Current time, and what a policy declares that it knows; `knows` as in `PlacementPolicy`."""

    def __init__(self, knows: frozenset[str]) -> None:
        self.time_s = 0.0
        self.knows = knows

    def require(self, what: str) -> None:
        """Raise EquipoiseError unless the policy knows this."""
        if what not in self.knows:
            raise EquipoiseError(f"the policy reads {what}, which its attribute `knows` does not list")


class Remainder(NamedTuple):
    """Work that is left of a job at a time, and its rates from then on, until its GPUs or the jobs beside it change.

    The `work` left at `from_s` shrinks by `rate` per second; alone on its gang the job would have `exclusive_rate`.
    """

    work: float
    from_s: float
    rate: float
    exclusive_rate: float


class PlacementJob:
    """Arrived job, as a policy observes it; policies do not change it.

    Attributes
    ----------
    id : str or int
    trace_index, gang_gpus, min_gpus, batch_size : int
        Index in the trace; GPUs that the job asks for, and the least on which it can run; samples per GPU and step.
    model : str
    arrival_s, weight : float
    run : Running or None
        How it runs; None while it waits.
    gpu_ids : tuple of int
        GPUs that it holds; empty while it waits.
    start_s, last_start_s, last_stop_s : float
        First start, latest start, and latest stop; nan if there was none.
    restarts, preemptions, moves : int
        Starts after a stop, stops by the policy before the end (without moves), and moves.
    """

    def __init__(
        self, observation: Observation, trace: Trace, trace_index: int, work: float, exclusive_rate: float
    ) -> None:
        self._observation = observation
        self.trace_index, self.id = trace_index, trace.job_id[trace_index]
        self.model = trace.model[trace_index]
        self.gang_gpus, self.min_gpus = int(trace.gang_gpus[trace_index]), int(trace.min_gpus[trace_index])
        self.batch_size = int(trace.batch_size[trace_index])
        self.arrival_s, self.weight = float(trace.arrival_s[trace_index]), float(trace.weight[trace_index])
        self.run: Running | None = None
        self.gpu_ids: tuple[int, ...] = ()
        self.start_s = self.last_start_s = self.last_stop_s = self.end_s = math.nan
        self.restarts = self.preemptions = self.moves = 0
        # Sums up to `_at_s`: seconds and GPU-seconds of progress, GPU-seconds beside others, exposed communication.
        self.run_s = self.run_gpu_s = self.shared_gpu_s = self.exposed_s = 0.0
        self._work, self._exclusive_rate, self._done = work, exclusive_rate, 0.0
        # Progress per second now, and alone; share of exposed communication; GPUs held beside others.
        self._rate = self._solo_rate = self._exposed = 0.0
        self._shared_gpus = 0
        # Time of the sums; times from which the run makes progress and from which the saved state can be loaded.
        self._at_s = self._progress_from_s = self._ready_s = 0.0
        self._version = self._lease = 0

    @property
    def attained_s(self) -> float:
        """Seconds of progress so far, without restarts."""
        return self.run_s + self._running_s()

    @property
    def computed_s(self) -> float:
        """Part of `attained_s` in which communication was not exposed: the time spent on computation."""
        running_s = self._running_s()
        return (self.run_s + running_s) - (self.exposed_s + running_s * self._exposed)

    @property
    def attained_gpu_s(self) -> float:
        """Attained service: GPU-seconds of progress so far, without restarts."""
        return self.run_gpu_s + self._running_s() * len(self.gpu_ids)

    @property
    def progress_from_s(self) -> float:
        """Time from which the latest run makes progress: after saves of state on its GPUs, and its restart."""
        return self._progress_from_s

    @property
    def total_s(self) -> float:
        """Exclusive time: run time alone on the gang, in seconds. For policies that know "durations"."""
        self._observation.require("durations")
        return self._work / self._exclusive_rate

    @property
    def remaining_s(self) -> float:
        """Part of the exclusive time that is left, in seconds. For policies that know "durations"."""
        self._observation.require("durations")
        return max(0.0, self._work - self._done - self._rate * self._running_s()) / self._exclusive_rate

    @property
    def remainder(self) -> Remainder:
        """Work that is left of a running job, for policies that know "durations".

        It states `remaining_s` of all later times, so that a policy need not ask each job again at each call.
        """
        self._observation.require("durations")
        from_s = max(self._at_s, self._progress_from_s)
        return Remainder(self._work - self._done, from_s, self._rate, self._exclusive_rate)

    def _running_s(self) -> float:
        """Return the seconds of progress since `_at_s`."""
        if self.run is None:
            return 0.0
        return max(0.0, self._observation.time_s - max(self._at_s, self._progress_from_s))

    def _accrue(self) -> None:
        """Add the progress since `_at_s` to the sums."""
        seconds = self._running_s()
        if seconds > 0.0:
            self._done = min(self._work, self._done + self._rate * seconds)
            self.run_s += seconds
            self.run_gpu_s += seconds * len(self.gpu_ids)
            self.shared_gpu_s += seconds * self._shared_gpus
            self.exposed_s += seconds * self._exposed
        self._at_s = self._observation.time_s

    def __repr__(self) -> str:
        where = f"runs on {len(self.gpu_ids)} of" if self.gpu_ids else "waits for"
        return f"<PlacementJob {self.id!r}: {where} {self.gang_gpus} GPUs>"
