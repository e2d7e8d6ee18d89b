"""Jobs that share their GPUs: when to start a waiting job beside running ones."""

from .group import GroupSharing
from .pair import PairSharing
from .plan import PairPlan, SharingPlan

__all__ = ["GroupSharing", "PairPlan", "PairSharing", "SharingPlan"]
