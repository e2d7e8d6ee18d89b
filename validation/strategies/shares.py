"""Hypothesis strategy: small problems of sharing GPU time between queues."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ...formulations.shares.hierarchical_fairness import HierarchicalFairness


@st.composite
def hierarchies(
    draw: DrawFn, max_jobs: int = 6, max_types: int = 3, max_queues: int = 3, *, orders: int = 0
) -> HierarchicalFairness:
    """Draw a small problem of hierarchical fairness.

    Rates, weights, gangs and GPUs are small whole numbers, so that there are ties, and the arithmetic of fractions
    stays short. Now and then jobs are equal, queues are empty, gangs are wider than a type, jobs can run on some types
    only, or GPUs suffice for all. A job that could run nowhere is given a type.

    Parameters
    ----------
    max_jobs, max_types, max_queues : int
        At least 1.
    orders : int
        Over how many orders of magnitude the rates of jobs and the weights may go, at most; 0 or more.

    Returns
    -------
    SearchStrategy of HierarchicalFairness
    """
    jobs, types = draw(st.integers(1, max_jobs)), draw(st.integers(1, max_types))
    queues = draw(st.integers(1, max_queues))

    def numbers(low: int, high: int, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size))).reshape(shape)

    rates = numbers(0, 4, jobs, types).astype(np.float64)
    rates[rates.max(axis=1) == 0, draw(st.integers(0, types - 1))] = 1.0
    if draw(st.booleans()):  # of few kinds, so that equal jobs follow each other
        rates = rates[np.minimum(numbers(0, 1, jobs), jobs - 1)]
    weights = numbers(1, 4, queues, types).astype(np.float64)
    if draw(st.booleans()):
        weights = weights[:, 0]
    if orders:
        rates *= 10.0 ** numbers(0, orders, jobs, 1)
        weights *= 10.0 ** numbers(0, orders, *weights.shape)
    return HierarchicalFairness(
        rates=rates,
        gang_gpus=numbers(1, 4, jobs),
        gpus=numbers(1, draw(st.sampled_from((3, 12))), types),
        queue=numbers(0, queues - 1, jobs),
        weights=weights,
    )
