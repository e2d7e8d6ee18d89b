"""Trajectories of batch sizes of traced jobs, and the time that they take on the whole gang."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInput
from ..profiles.rules import Runs, extend_runs
from ..profiles.table import Profiles
from .trace import Trace


def trajectory(trace: Trace, index: int, profiles: Profiles) -> Runs:
    """Return one job's (batch size, epochs) stretches, from the trace if it has them, otherwise by the profiles' rules.

    Adjacent stretches of one size are merged.

    Raises
    ------
    InvalidInput
        If the profiles lack the job's model; the error holds the trace index of the job.
    """
    if trace.schedule is not None:
        joined: list[tuple[int, int]] = []
        for size, epochs in trace.schedule[index]:
            extend_runs(joined, size, epochs)
        return tuple(joined)
    model, size, gpus = trace.model[index], int(trace.batch_size[index]), int(trace.gang_gpus[index])
    try:
        return profiles.schedule(model, size, gpus, trace.mode[index], total_epochs(trace, index, profiles))
    except InvalidInput as error:
        raise InvalidInput(error.field, error.value, error.why, index=index) from None


def total_epochs(trace: Trace, index: int, profiles: Profiles) -> int:
    """Return one job's epochs, from the trace if it has them, otherwise from its steps."""
    if trace.total_epochs is not None:
        return int(trace.total_epochs[index])
    return profiles.total_epochs(trace.model[index], int(trace.batch_size[index]), int(trace.total_steps[index]))


def epoch_seconds(trace: Trace, index: int, profiles: Profiles, runs: Runs) -> dict[int, float]:
    """Return one job's seconds per epoch on its whole gang at every batch size of `runs` and every other it may have.

    Raises InvalidInput if the profiles have no rate for a size in `runs`; another size without a rate is omitted.
    """
    model, gpus = trace.model[index], int(trace.gang_gpus[index])
    allowed = profiles.batch_sizes(model, int(trace.batch_size[index]), gpus, trace.mode[index])
    sizes = {size for size, _ in runs} | {size for size in allowed if (model, size, gpus) in profiles.rates}
    try:
        return {size: profiles.epoch_s(model, size, gpus) for size in sorted(sizes)}
    except InvalidInput as error:
        raise InvalidInput(error.field, error.value, error.why, index=index) from None


def timed_trajectory(trace: Trace, index: int, profiles: Profiles) -> tuple[Runs, dict[int, float], float]:
    """Return one job's trajectory, its seconds per epoch by batch size, and the seconds of the whole trajectory."""
    runs = trajectory(trace, index, profiles)
    epoch_s = epoch_seconds(trace, index, profiles, runs)
    return runs, epoch_s, sum(epochs * epoch_s[size] for size, epochs in runs)


def exclusive_s(trace: Trace, profiles: Profiles) -> NDArray[np.float64]:
    """Return each job's run time alone on its whole gang along its true trajectory, shape (N,), in seconds.

    Finish-time fairness divides by this time, multiplied by the contention (Shockwave, Section 8.1).
    """
    return np.array([timed_trajectory(trace, index, profiles)[2] for index in range(len(trace))], dtype=np.float64)


def isolated_s(trace: Trace, profiles: Profiles) -> NDArray[np.float64]:
    """Return `exclusive_s` under its former name, with a DeprecationWarning.

    The time on an isolated share of the cluster is a different quantity (`FinishTimeFairness.isolated_s`).
    """
    warnings.warn("isolated_s is now exclusive_s", DeprecationWarning, stacklevel=2)
    return exclusive_s(trace, profiles)
