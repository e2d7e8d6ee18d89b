"""Measured throughputs of jobs by model, batch size, gang and GPU type."""

from .table import CriticalEpochs, Profiles

__all__ = ["CriticalEpochs", "Profiles"]
