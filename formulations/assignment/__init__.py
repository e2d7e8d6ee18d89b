"""Assignments of GPUs to jobs: AlloX's matching, and goodput allocation after Pollux and Sia."""

from .allox import AlloxMatching, AlloxPlan
from .goodput import GoodputAllocation, GoodputPlan

__all__ = ["AlloxMatching", "AlloxPlan", "GoodputAllocation", "GoodputPlan"]
