"""Fisher markets, static and volatile, and their equilibria."""

from .equilibrium import Equilibrium
from .fisher import FisherMarket
from .stochastic.chain import JobChain
from .stochastic.market import StochasticMarket
from .stochastic.plan import StochasticPlan
from .volatile import VolatileFisherMarket

__all__ = ["Equilibrium", "FisherMarket", "JobChain", "StochasticMarket", "StochasticPlan", "VolatileFisherMarket"]
