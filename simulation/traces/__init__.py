"""Traces of jobs: tables, readers, writers and generators."""

from .generator import SIZE_CLASSES, SizeClass, generate_trace
from .readers import read_durations, read_gavel, read_shockwave, read_trace, write_shockwave
from .trace import Trace
from .trajectory import exclusive_s, isolated_s, trajectory

__all__ = [
    "SIZE_CLASSES",
    "SizeClass",
    "Trace",
    "exclusive_s",
    "generate_trace",
    "isolated_s",
    "read_durations",
    "read_gavel",
    "read_shockwave",
    "read_trace",
    "trajectory",
    "write_shockwave",
]
