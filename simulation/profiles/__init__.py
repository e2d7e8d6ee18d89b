"""Measured throughputs of jobs by model, batch size, gang and GPU type."""

from .rules import MODES, CriticalEpochs
from .table import Profiles

__all__ = ["MODES", "CriticalEpochs", "Profiles"]
