"""Speeds of jobs that compute and then communicate: what all speeds of this package share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput
from ..cluster import Cluster
from ..placement.occupancy import Occupancy
from ..placement.speeds import Running, require_gang
from ..traces.trace import Trace


class RatioSpeeds(ABC):
    """Speeds by the ratio of exposed communication to computation, which depends on the placement.

    Progress is in seconds of computation. With the ratio r, a job makes ``1 / (1 + r)`` of them per second, and the
    share ``r / (1 + r)`` of its run time is exposed communication. A job's duration in the trace is its run time alone
    on the tightest placement that its gang can have in the cluster.

    Parameters
    ----------
    cluster : Cluster or int
        Cluster of the simulation; a number of GPUs is one machine.

    Attributes
    ----------
    by_tier_alone : bool
        Whether the ratio depends on model, number of GPUs and network tier alone; otherwise also on the numbers of
        machines and racks.
    """

    by_tier_alone: ClassVar[bool]

    def __init__(self, cluster: Cluster | int) -> None:
        self.cluster = Cluster.of(cluster)
        self._empty = Occupancy(self.cluster)

    @abstractmethod
    def ratio(self, run: Running) -> float:
        """Return the exposed communication over the computation of one iteration, at least 0; 0 for one GPU."""

    def alone(self, model: str, gpus: int, batch_size: int = 1, trace_index: int = 0) -> Running:
        """Return a job as it runs on the tightest placement that its gang can have in the cluster."""
        machines, racks = self._empty.fewest_machines(gpus), self._empty.fewest_racks(gpus)
        tier = self._empty.least_tier(gpus)
        return Running(trace_index, model, gpus, gpus, machines, machines, tier, batch_size, batch_size, racks)

    def work(self, trace: Trace) -> Floats:
        """Return the seconds of computation in each duration, shape (N,); InvalidInput names a job without a ratio."""
        if trace.duration_s is None:
            raise InvalidInput("duration_s", None, "the trace has no durations, which state the work of these speeds")
        jobs = zip(trace.model, trace.gang_gpus.tolist(), trace.batch_size.tolist(), strict=True)
        alone = (self.alone(*job, index) for index, job in enumerate(jobs))
        return np.array(trace.duration_s * np.fromiter(map(self.rate, alone), float, len(trace)))

    def rate(self, run: Running) -> float:
        """Return the seconds of computation per second; InvalidInput for other GPUs than the gang, or another model."""
        require_gang(run)
        try:
            return 1.0 / (1.0 + self.ratio(run))
        except InvalidInput as error:
            raise InvalidInput(error.field, error.value, error.why, index=run.trace_index) from None

    def exposed(self, run: Running) -> float:
        """Return the share of the run time that is exposed communication."""
        return 1.0 - self.rate(run)
