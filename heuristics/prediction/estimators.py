"""Finish-time fairness in its three definitions, contention, and the makespan bound (Shockwave, Sections 2 and 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.checks import as_flag, as_integer, as_integers, as_real, as_reals
from ...formulations.errors import InvalidInput
from ...formulations.former_names import former_parameters


def egalitarian_ftf(jct_s: float, exclusive_s: float, jobs: float) -> float:
    """Return JCT/(exclusive time x N): completion relative to an equal split of the cluster (Shockwave, Section 2).

    Parameters
    ----------
    jct_s : float
        Seconds from arrival to completion.
    exclusive_s : float
        Run time alone on the whole gang, in seconds.
    jobs : float
        Number of jobs that share the cluster (N), at least 1; a time average may be fractional.

    Notes
    -----
    A value above 1 means that the job would have finished earlier with 1/N of the cluster.
    """
    jct_s = as_real("jct_s", jct_s, minimum=0.0)
    return jct_s / (as_real("exclusive_s", exclusive_s, above=0.0) * as_real("jobs", jobs, minimum=1.0))


def planned_ftf(attained_s: float, waiting_s: float, remaining_s: float, contention: float) -> float:
    """Return rho = (L + W + R N_avg)/(P N_avg) with P = L + R, the planned fairness (Shockwave, Eq. 9).

    Parameters
    ----------
    attained_s : float
        Seconds of service received on the whole gang (L).
    waiting_s : float
        Seconds waited (W).
    remaining_s : float
        Predicted seconds left on the whole gang (R).
    contention : float
        Mean contention N_avg, see `average_contention`; values below 1 count as 1.

    Raises
    ------
    InvalidInput
        If a value is negative or not finite, or L + R = 0.
    """
    attained_s = as_real("attained_s", attained_s, minimum=0.0)
    waiting_s = as_real("waiting_s", waiting_s, minimum=0.0)
    remaining_s = as_real("remaining_s", remaining_s, minimum=0.0)
    share = max(1.0, as_real("contention", contention, minimum=0.0))
    total_s = attained_s + remaining_s
    if total_s <= 0:
        raise InvalidInput("remaining_s", remaining_s, "attained_s + remaining_s must be greater than 0")
    return (attained_s + waiting_s + remaining_s * share) / (total_s * share)


def artifact_ftf(jct_s: float, exclusive_s: float, jobs: float, gpus: int) -> float:
    """Return JCT/(exclusive x max(1, jobs/M)), the fairness that the released code reports.

    Parameters
    ----------
    jct_s, exclusive_s : float
        Seconds from arrival to completion, and run time alone on the whole gang.
    jobs : float
        Number of jobs that share the cluster between the job's arrival and end, at least 1.
    gpus : int
        GPUs of the cluster (M).

    Notes
    -----
    With more GPUs than jobs the contention is 1, whereas `egalitarian_ftf` still divides by the jobs.
    """
    jct_s = as_real("jct_s", jct_s, minimum=0.0)
    share = max(1.0, as_real("jobs", jobs, minimum=1.0) / as_integer("gpus", gpus, minimum=1))
    return jct_s / (as_real("exclusive_s", exclusive_s, above=0.0) * share)


def average_contention(demand: ArrayLike, spans_s: ArrayLike, gpus: int) -> float:
    """Return N_avg, the mean of max(1, demand/M) from a job's arrival to its end.

    Parameters
    ----------
    demand : array_like of float, shape (S,)
        GPUs requested by all jobs (or the number of jobs) during each span of time.
    spans_s : array_like of float, shape (S,)
        Duration of each span in seconds; at least one is positive.
    gpus : int
        GPUs of the cluster (M).

    Notes
    -----
    The maximum is taken for each span, as in `simulation.snapshot`: idle GPUs do not run a job faster than alone, so
    spans of low demand do not compensate for spans of high demand.
    """
    spans = as_reals("spans_s", spans_s, minimum=0.0)
    requested = as_reals("demand", demand, minimum=0.0, shape=spans.shape)
    gpus = as_integer("gpus", gpus, minimum=1)
    if not spans.sum() > 0:
        raise InvalidInput("spans_s", 0.0, "must sum to more than 0")
    return float(np.average(np.maximum(requested / gpus, 1.0), weights=spans))


@former_parameters(gangs="gang_gpus")
def makespan_bound_s(
    remaining_s: ArrayLike, gpus: int, *, gang_gpus: Sequence[int] | ArrayLike | None = None, gang_weighted: bool = True
) -> float:
    """Return H = max(sum_j a_j R_j/M, max_j R_j), a lower bound on the makespan (Shockwave, Eq. 10).

    Parameters
    ----------
    remaining_s : array_like of float, shape (N,)
        Seconds left of each job on its whole gang (R). The bound is 0 without jobs.
    gpus : int
        GPUs of the cluster (M).
    gang_gpus : array_like of int, shape (N,), optional
        GPUs that each job needs; all 1 by default.
    gang_weighted : bool
        Whether a_j is the job's gang, so that the first term is work over GPUs. False sets a_j = 1, as Eq. 10 is
        printed, which gives a weaker bound if a job needs several GPUs.
    """
    remaining = as_reals("remaining_s", remaining_s, minimum=0.0, empty=True)
    gpus = as_integer("gpus", gpus, minimum=1)
    sizes = np.ones(remaining.shape, dtype=np.int64)
    if gang_gpus is not None:
        sizes = as_integers("gang_gpus", gang_gpus, minimum=1, shape=remaining.shape, empty=True)
    if remaining.size == 0:
        return 0.0
    work = sizes @ remaining if as_flag("gang_weighted", gang_weighted) else remaining.sum()
    return max(float(work) / gpus, float(remaining.max()))
