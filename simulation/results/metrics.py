"""Measures of a simulation: finish-time fairness, envy, and the figures that one run comes down to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats
from ...formulations.checks import as_integer, as_real, as_reals, same_length

# The thresholds beyond which a finish-time fairness counts as unfair; the paper uses the middle one.
UNFAIR_FTF = (1.0, 1.05, 1.1)


def finish_time_fairness(jct_s: ArrayLike, exclusive_s: ArrayLike, *, jobs: int, gpus: int) -> Floats:
    """Return each job's JCT over its exclusive run time stretched by the cluster's contention, shape (N,).

    Parameters
    ----------
    jct_s, exclusive_s : array_like of float, shape (N,)
        Completion times from arrival, and run times alone along the true trajectory, in seconds.
    jobs, gpus : int
        Contention is max(1, jobs/gpus), with `jobs` all jobs of the trace, whatever their widths and arrivals.

    Notes
    -----
    This is the ratio that Shockwave's released code reports. It differs from the paper's Section 2 (egalitarian time,
    N times the exclusive one) and Eq. 9 (mean contention over the job's life): see docs/errata.md.
    """
    times = as_reals("jct_s", jct_s, minimum=0.0)
    alone = as_reals("exclusive_s", exclusive_s, above=0.0)
    same_length(exclusive_s=alone, jct_s=times)
    jobs, gpus = as_integer("jobs", jobs, minimum=1), as_integer("gpus", gpus, minimum=1)
    return np.asarray(times / (alone * max(1.0, jobs / gpus)))


def unfair_pct(ftf: ArrayLike, threshold: float = 1.05) -> float:
    """Return the percentage of jobs whose finish-time fairness exceeds the threshold."""
    ratios = as_reals("ftf", ftf, minimum=0.0)
    return float(100.0 * (ratios > as_real("threshold", threshold)).mean())


def envy(shares: ArrayLike) -> tuple[float, float]:
    """Return mean and largest absolute difference over all pairs of jobs' shares of rounds.

    Parameters
    ----------
    shares : array_like of float, shape (N,)
        Rounds in which a job ran over those in which it was there, within [0, 1]. A single job envies nobody.
    """
    ordered = np.sort(as_reals("shares", shares, minimum=0.0, maximum=1.0))
    count = len(ordered)
    if count == 1:
        return 0.0, 0.0
    # In ascending order the i-th value is added i times and subtracted count - 1 - i times.
    total = float(ordered @ (2.0 * np.arange(count) - (count - 1)))
    return total / (count * (count - 1) / 2.0), float(ordered[-1] - ordered[0])
