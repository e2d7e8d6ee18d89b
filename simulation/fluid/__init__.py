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
from .workloads.cdf import Cdf
from .workloads.drawn_models import draw_models
from .workloads.generator import WORKLOADS, Workload, generate_jobs
from .workloads.virtual_clusters import read_virtual_cluster, virtual_cluster_jobs

__all__ = [
    "WORKLOADS",
    "Cdf",
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
    "Workload",
    "draw_models",
    "fair_s",
    "generate_jobs",
    "predict_completion",
    "read_virtual_cluster",
    "simulate_fluid",
    "virtual_cluster_jobs",
]
