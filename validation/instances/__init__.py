"""Random and published instances."""

from .markets import random_fisher_market
from .taillard import TaillardInstance

__all__ = ["TaillardInstance", "random_fisher_market"]
