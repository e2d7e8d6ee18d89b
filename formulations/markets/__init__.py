"""Fisher markets, static and volatile, and their equilibria."""

from .equilibrium import Equilibrium
from .fisher import FisherMarket
from .stochastic import JobChain, StochasticMarket, StochasticPlan
from .volatile import VolatileFisherMarket

__all__ = ["Equilibrium", "FisherMarket", "JobChain", "StochasticMarket", "StochasticPlan", "VolatileFisherMarket"]
