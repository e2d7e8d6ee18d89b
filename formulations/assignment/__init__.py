"""Assignments of GPUs to jobs: AlloX's matching, and goodput allocation after Pollux and Sia."""

from .allox import AlloxMatching
from .allox_plan import AlloxPlan
from .goodput import GoodputAllocation
from .goodput_plan import GoodputPlan

__all__ = ["AlloxMatching", "AlloxPlan", "GoodputAllocation", "GoodputPlan"]
