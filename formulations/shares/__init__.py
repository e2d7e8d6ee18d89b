"""Shares of time on several GPU types: the policies of Gavel as programs."""

from .finish_time.problem import FinishTimeFairness
from .hierarchical_fairness import HierarchicalFairness
from .max_min_fairness import MaxMinFairness
from .max_sum_throughput import MaxSumThroughput
from .min_total_duration import MinTotalDuration
from .polytope import GpuShares

__all__ = [
    "FinishTimeFairness", "GpuShares", "HierarchicalFairness", "MaxMinFairness", "MaxSumThroughput", "MinTotalDuration",
]  # fmt: skip
