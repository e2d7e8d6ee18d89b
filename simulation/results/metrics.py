"""Fairness metrics of a simulation: finish-time fairness, share of unfair jobs, and envy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real, as_reals, same_length

# Thresholds above which a finish-time fairness counts as unfair; the paper uses the middle one.
UNFAIR_FTF = (1.0, 1.05, 1.1)


def finish_time_fairness(jct_s: ArrayLike, exclusive_s: ArrayLike, *, jobs: int, gpus: int) -> Floats:
    """Return each job's JCT over its exclusive time multiplied by the cluster's contention, shape (N,).

    Parameters
    ----------
    jct_s, exclusive_s : array_like of float, shape (N,)
        Times from arrival to completion, and run times alone on the whole gang, in seconds.
    jobs, gpus : int
        Numbers of jobs and GPUs. Contention is max(1, jobs/gpus), where `jobs` counts all jobs of the trace, regardless
        of gangs and arrivals.

    Notes
    -----
    This is the ratio that Shockwave's released code reports. It differs from the paper's Section 2 (egalitarian time,
    N times the exclusive one) and Eq. 9 (mean contention from arrival on): see docs/errata.md.
    """
    times = as_reals("jct_s", jct_s, minimum=0.0)
    exclusive = as_reals("exclusive_s", exclusive_s, above=0.0)
    same_length(exclusive_s=exclusive, jct_s=times)
    jobs, gpus = as_integer("jobs", jobs, minimum=1), as_integer("gpus", gpus, minimum=1)
    return np.asarray(times / (exclusive * max(1.0, jobs / gpus)))


def unfair_pct(ftf: ArrayLike, threshold: float = 1.05) -> float:
    """Return the percentage of jobs whose finish-time fairness exceeds the threshold."""
    ratios = as_reals("ftf", ftf, minimum=0.0)
    return float(100.0 * (ratios > as_real("threshold", threshold)).mean())


def envy(shares: ArrayLike) -> tuple[float, float]:
    """Return mean and largest absolute difference over all pairs of jobs' shares of rounds.

    Parameters
    ----------
    shares : array_like of float, shape (N,)
        Rounds in which a job ran over rounds in which it was present, within [0, 1]. For a single job both values
        are 0.
    """
    ordered = np.sort(as_reals("shares", shares, minimum=0.0, maximum=1.0))
    count = len(ordered)
    if count == 1:
        return 0.0, 0.0
    # In ascending order the i-th value is added i times and subtracted count - 1 - i times.
    total = float(ordered @ (2.0 * np.arange(count) - (count - 1)))
    return total / (count * (count - 1) / 2.0), float(ordered[-1] - ordered[0])
