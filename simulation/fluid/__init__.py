"""Fluid engine: GPUs are divisible, and a policy divides them anew at each event."""

from .clock import Clock
from .engine import simulate_fluid
from .job import FluidJob
from .policy import FluidCode, FluidPolicy, FluidRule
from .prediction import Completion, predict_completion
from .result import FluidResult, fair_s
from .rules import FluidRules
from .speedups import Speedups
from .state import FluidState

__all__ = [
    "Clock",
    "Completion",
    "FluidCode",
    "FluidJob",
    "FluidPolicy",
    "FluidResult",
    "FluidRule",
    "FluidRules",
    "FluidState",
    "Speedups",
    "fair_s",
    "predict_completion",
    "simulate_fluid",
]
