"""Samples of the busiest period of a trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....formulations.checks import as_generator, as_integer, as_real
from ....formulations.errors import InvalidInput
from ...traces.trace import Trace


def sample_busiest(rng: np.random.Generator, trace: Trace, *, num_jobs: int, window_s: float) -> Trace:
    """Draw jobs of the busiest period of a trace, each at most once and with equal probability.

    The busiest period of length `window_s` is the one in which most jobs arrive, and the earliest of several.

    Parameters
    ----------
    rng : numpy.random.Generator
    trace : Trace
        Jobs in any order.
    num_jobs : int
        Jobs of the sample, at least 1.
    window_s : float
        Length of the period, in seconds, positive. It begins with an arrival and ends before its length is over.

    Returns
    -------
    Trace
        In order of arrival, ties in the order of the trace; the period begins at 0.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or fewer than `num_jobs` jobs arrive in the period.
    """
    as_generator(rng)
    count = as_integer("num_jobs", num_jobs, minimum=1)
    length_s = as_real("window_s", window_s, above=0.0)
    order = np.argsort(trace.arrival_s, kind="stable")
    arrival_s = trace.arrival_s[order]
    arrivals = np.searchsorted(arrival_s, arrival_s + length_s) - np.arange(len(arrival_s))
    start, most = int(arrivals.argmax()), int(arrivals.max())
    if count > most:
        raise InvalidInput("num_jobs", count, f"the busiest {length_s:g} s of the trace have {most} jobs")
    places = start + np.sort(rng.choice(most, size=count, replace=False))
    sample = trace.select(order[places])
    return replace(sample, arrival_s=sample.arrival_s - arrival_s[start])
