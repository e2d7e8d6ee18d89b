"""Markets of jobs whose speeds follow Markov chains."""

from .chain import JobChain
from .market import StochasticMarket
from .plan import StochasticPlan

__all__ = ["JobChain", "StochasticMarket", "StochasticPlan"]
