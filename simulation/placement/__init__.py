"""Placement engine: jobs hold particular GPUs on machines and racks, share them, and move between them."""

from .actions import Action, Move, Start, Stop, Wake
from .consolidation import MeasuredSlowdown, SlowdownTable
from .engine import simulate_placement
from .interference import (
    ConstantInterference,
    DrawnInterference,
    Interference,
    PairTable,
    SharedSpeeds,
    find_interference,
)
from .job import PlacementJob, Remainder
from .model_speeds import ModelSpeeds
from .model_table import ModelRow, ModelTable
from .occupancy import PLACEMENTS, Occupancy
from .pictures.communication import ExposedShares, communication_picture, exposed_shares
from .pictures.pair_ratios import pair_ratio_picture
from .pictures.throughput import throughput_picture
from .pictures.timers import timers_picture
from .policy import PlacementPolicy, PlacementState
from .result import PlacementResult, TimerLog
from .rules import PlacementRules
from .speeds import DurationSpeeds, ProfileSpeeds, Running, Speeds
from .ticks import TICK_S, ticks
from .time_model import InferredRatio, Iteration, TimeModel, TimeModelFit, fit_time_model, infer_ratio
from .workloads.busiest_period import sample_busiest
from .workloads.drawn_jobs import draw_cluster_jobs, draw_testbed_jobs
from .workloads.drawn_models import ModelClass, draw_models

__all__ = [
    "PLACEMENTS",
    "TICK_S",
    "Action",
    "ConstantInterference",
    "DrawnInterference",
    "DurationSpeeds",
    "ExposedShares",
    "InferredRatio",
    "Interference",
    "Iteration",
    "MeasuredSlowdown",
    "ModelClass",
    "ModelRow",
    "ModelSpeeds",
    "ModelTable",
    "Move",
    "Occupancy",
    "PairTable",
    "PlacementJob",
    "PlacementPolicy",
    "PlacementResult",
    "PlacementRules",
    "PlacementState",
    "ProfileSpeeds",
    "Remainder",
    "Running",
    "SharedSpeeds",
    "SlowdownTable",
    "Speeds",
    "Start",
    "Stop",
    "TimeModel",
    "TimeModelFit",
    "TimerLog",
    "Wake",
    "communication_picture",
    "draw_cluster_jobs",
    "draw_models",
    "draw_testbed_jobs",
    "exposed_shares",
    "find_interference",
    "fit_time_model",
    "infer_ratio",
    "pair_ratio_picture",
    "sample_busiest",
    "simulate_placement",
    "throughput_picture",
    "ticks",
    "timers_picture",
]
