"""Measured throughputs of jobs by model, batch size, gang and GPU type."""

from .modes import MODES
from .rules import CriticalEpochs
from .table import Profiles

__all__ = ["MODES", "CriticalEpochs", "Profiles"]
