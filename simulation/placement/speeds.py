"""Speeds of jobs on given GPUs: the protocol, and speeds from durations and from throughput profiles."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.checks import as_real, as_reals
from ...formulations.errors import InvalidInput
from ..profiles.table import Profiles
from ..traces.trace import Trace
from ..traces.trajectory import exclusive_s
from .occupancy import Occupancy


class Running(NamedTuple):
    """A job as it runs, or would run, on GPUs of the cluster.

    `gang_gpus` is the number of GPUs that the job asks for, `gpus` the number that it holds, on so many `machines`,
    which `tier` of the network connects (see `Cluster.tier`), in so many `racks`. `fewest_machines` is the least number
    of machines that can hold so many GPUs. Batch sizes are in samples per GPU; `sub_batch` is below `batch_size` with
    gradient accumulation.
    """

    trace_index: int
    model: str
    gang_gpus: int
    gpus: int
    machines: int
    fewest_machines: int
    tier: int
    batch_size: int
    sub_batch: int
    racks: int = 1


class Speeds(Protocol):
    """Speeds of the jobs of a trace. All answers are functions of the arguments alone."""

    def work(self, trace: Trace) -> Floats:
        """Return the progress that each job must make, shape (N,), positive; InvalidInput names the job otherwise."""
        ...

    def rate(self, run: Running) -> float:
        """Return the progress per second alone on its GPUs; InvalidInput if the job cannot run in this way."""
        ...

    def exposed(self, run: Running) -> float:
        """Return the share of the run time that is communication not hidden by computation; 0 if unknown."""
        ...


class DurationSpeeds:
    """Speeds that follow from recorded durations alone: a job runs on its whole gang, and makes 1 s of progress in 1 s.

    Parameters
    ----------
    slowdown : float
        Factor on the run time of a job on more machines than it needs, at least 1.
    """

    def __init__(self, slowdown: float = 1.0) -> None:
        self.slowdown = as_real("slowdown", slowdown, minimum=1.0)

    def work(self, trace: Trace) -> Floats:
        """Return the durations, in seconds."""
        if trace.duration_s is None:
            raise InvalidInput("duration_s", None, "the trace has no durations; take speeds from profiles or models")
        return trace.duration_s

    def rate(self, run: Running) -> float:
        """Return 1, divided by the slowdown if the job is not consolidated."""
        require_gang(run)
        return 1.0 / self.slowdown if run.machines > run.fewest_machines else 1.0

    def exposed(self, run: Running) -> float:
        """Return 0: durations do not divide computation and communication."""
        return 0.0


class ProfileSpeeds:
    """Speeds by throughput profiles: the same jobs at the same speed as in the rounds engine.

    The progress of a job is its exclusive time in seconds, along its true trajectory of batch sizes, which it follows
    by itself. On its whole gang it makes 1 s of progress in 1 s.

    Parameters
    ----------
    profiles : Profiles
    slowdown : float
        Factor on the run time of a job on more machines than it needs, at least 1.
    """

    def __init__(self, profiles: Profiles, slowdown: float = 1.0) -> None:
        if not isinstance(profiles, Profiles):
            raise InvalidInput("profiles", type(profiles).__name__, "must be Profiles")
        self.profiles, self._durations = profiles, DurationSpeeds(slowdown)

    def work(self, trace: Trace) -> Floats:
        """Return the exclusive times, in seconds."""
        return np.asarray(exclusive_s(trace, self.profiles))

    def rate(self, run: Running) -> float:
        """Return 1, divided by the slowdown if the job is not consolidated."""
        return self._durations.rate(run)

    def exposed(self, run: Running) -> float:
        """Return 0: profiles do not divide computation and communication."""
        return 0.0


def checked_rate(speeds: Speeds, run: Running) -> float:
    """Return the progress per second of a job alone; InvalidInput if it cannot run so."""
    rate = float(speeds.rate(run))
    if not (math.isfinite(rate) and rate > 0):
        raise InvalidInput("speeds", rate, f"job cannot run so: {run}", index=run.trace_index)
    return rate


def checked_exposed(speeds: Speeds, run: Running) -> float:
    """Return the share of the run time that is exposed communication; InvalidInput unless it is from 0 to 1."""
    return as_real("exposed of speeds", speeds.exposed(run), minimum=0.0, maximum=1.0)


def work_and_rates(trace: Trace, gpus: Occupancy, speeds: Speeds) -> tuple[Floats, Floats]:
    """Return the work of each job, and its rate alone on its gang, both of shape (N,).

    Raises
    ------
    InvalidInput
        For the first job that cannot run alone on the empty cluster.
    """
    work = as_reals("work of speeds", speeds.work(trace), above=0.0, shape=(len(trace),))
    rates = np.empty(len(trace))
    for index, model in enumerate(trace.model):
        gang, size = int(trace.gang_gpus[index]), int(trace.batch_size[index])
        if gang > gpus.cluster.gpus:
            why = f"job {trace.job_id[index]!r} is wider than the cluster of {gpus.cluster.gpus} GPUs"
            raise InvalidInput("gang_gpus", gang, why, index=index)
        fewest, racks = gpus.fewest_machines(gang), gpus.fewest_racks(gang)
        alone = Running(index, model, gang, gang, fewest, fewest, gpus.least_tier(gang), size, size, racks)
        rates[index] = checked_rate(speeds, alone)
    return work, rates


def require_gang(run: Running) -> None:
    """Raise InvalidInput unless the job holds as many GPUs as it asks for."""
    if run.gpus != run.gang_gpus:
        why = f"these speeds are known on the {run.gang_gpus} GPUs that the job asks for alone"
        raise InvalidInput("gpu_ids", f"{run.gpus} GPUs", why, index=run.trace_index)


def table_names(model: str, batch_size: int) -> tuple[str, str]:
    """Return the names under which tables of measurements list a job: with its batch size per GPU, and without."""
    return f"{model} (batch size {batch_size})", model
