"""Hypothesis strategies for instances."""

from .markets import allocations, fisher_markets, volatile_markets
from .programs import programs, window_jobs, windows
from .shares import hierarchies
from .stochastic import job_chains, stochastic_markets

__all__ = [
    "allocations", "fisher_markets", "hierarchies", "job_chains", "programs", "stochastic_markets", "volatile_markets",
    "window_jobs", "windows",
]  # fmt: skip
