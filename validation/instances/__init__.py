"""Random and published instances."""

from .markets import random_fisher_market
from .taillard import TaillardInstance
from .window import random_window

__all__ = ["TaillardInstance", "random_fisher_market", "random_window"]
