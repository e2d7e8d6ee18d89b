"""Placement engine: jobs hold particular GPUs on machines and racks, share them, and move between them."""

from .actions import Action, Move, Start, Stop, Wake
from .engine import simulate_placement
from .interference import ConstantInterference, Interference, SharedSpeeds
from .job import PlacementJob
from .occupancy import PLACEMENTS, Occupancy
from .policy import PlacementPolicy, PlacementState
from .result import PlacementResult
from .rules import PlacementRules
from .speeds import DurationSpeeds, ProfileSpeeds, Running, Speeds
from .ticks import TICK_S, ticks

__all__ = [
    "PLACEMENTS",
    "TICK_S",
    "Action",
    "ConstantInterference",
    "DurationSpeeds",
    "Interference",
    "Move",
    "Occupancy",
    "PlacementJob",
    "PlacementPolicy",
    "PlacementResult",
    "PlacementRules",
    "PlacementState",
    "ProfileSpeeds",
    "Running",
    "SharedSpeeds",
    "Speeds",
    "Start",
    "Stop",
    "Wake",
    "simulate_placement",
    "ticks",
]
