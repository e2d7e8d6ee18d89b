"""Interface between the placement engine and its policies: jobs, the state of the cluster, and `decide`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from ...formulations.arrays import Floats
from ..cluster import Cluster
from .actions import Action
from .interference import Interference
from .job import Observation, PlacementJob
from .occupancy import Occupancy
from .speeds import Running, Speeds


class PlacementState(Observation):
    """State of the cluster when the policy is called; it changes with each action that the policy yields.

    Attributes
    ----------
    time_s : float
    step : int
        Number of the call, from 0.
    cluster : Cluster
    jobs_per_gpu : int
        Most jobs on one GPU (C).
    gpus : Occupancy
        Jobs on each GPU, and `find`, which chooses free GPUs.
    jobs : mapping of int to PlacementJob
        Arrived and unfinished jobs by trace index, in order of arrival.
    waiting, running : mapping of int to PlacementJob
        Those without GPUs, and those with GPUs, in the order in which they began to wait or to run.
    arrived, ended, expired : list of PlacementJob
        Jobs that arrived, ended, or whose lease ended since the last call.
    """

    def __init__(
        self, cluster: Cluster, jobs_per_gpu: int, speeds: Speeds, interference: Interference, knows: frozenset[str]
    ) -> None:
        super().__init__(knows)
        self.step = 0
        self.cluster, self.jobs_per_gpu = cluster, jobs_per_gpu
        self.gpus = Occupancy(cluster)
        self.jobs: dict[int, PlacementJob] = {}
        self.waiting: dict[int, PlacementJob] = {}
        self.running: dict[int, PlacementJob] = {}
        self.arrived: list[PlacementJob] = []
        self.ended: list[PlacementJob] = []
        self.expired: list[PlacementJob] = []
        self._all_jobs: list[PlacementJob] = []
        self._speeds, self._interference = speeds, interference

    @property
    def service_gpu_s(self) -> Floats:
        """GPU-seconds of all jobs of the trace alone on their gangs, ascending, for policies that know "service"."""
        self.require("service")
        return np.sort([job._work / job._exclusive_rate * job.gang_gpus for job in self._all_jobs])

    @property
    def speeds(self) -> Speeds:
        """Speeds of jobs alone, for policies that know "speeds"."""
        self.require("speeds")
        return self._speeds

    @property
    def interference(self) -> Interference:
        """Interference of jobs that share GPUs, for policies that know "interference"."""
        self.require("interference")
        return self._interference

    def run_on(self, job: PlacementJob, gpu_ids: Iterable[int], batch_size: int, sub_batch: int) -> Running:
        """Return the job as it would run on these GPUs."""
        ids = tuple(gpu_ids)
        machines, tier = self.gpus.span(ids)
        fewest, racks = self.gpus.fewest_machines(len(ids)), self.gpus.racks(ids) if tier == 2 else 1
        return Running(
            job.trace_index, job.model, job.gang_gpus, len(ids), machines, fewest, tier, batch_size, sub_batch, racks
        )

    def sharing(self, job: PlacementJob) -> Mapping[int, PlacementJob]:
        """Return the other jobs on the job's GPUs, by trace index."""
        found = {other for gpu in job.gpu_ids for other in self.gpus.jobs_on[gpu]}
        return {index: self.running[index] for index in sorted(found) if index != job.trace_index}


class PlacementPolicy(Protocol):
    """Policy of the placement engine.

    Attributes
    ----------
    name : str
    knows : frozenset of str
        What the policy reads beyond the requests of jobs and the service that they have received: "durations" (the
        work of a job and what remains of it), "service" (its distribution over the trace, not that of one job),
        "speeds", "interference".
    """

    name: str
    knows: frozenset[str]

    def decide(self, state: PlacementState) -> Iterable[Action]:
        """Yield the actions of this call; each takes effect when it is yielded.

        The engine calls the policy after each arrival, end, and end of a lease, and at the times that it set by `Wake`.
        Events within 2^-20 s of each other count as one.
        """
        ...
