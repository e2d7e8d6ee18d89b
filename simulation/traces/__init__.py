"""Traces of jobs: tables, readers, writers and generators."""

from .durations import read_durations
from .generator import SIZE_CLASSES, SizeClass, generate_trace
from .readers import read_gavel, read_shockwave, write_shockwave
from .trace import Trace
from .trajectory import isolated_s, trajectory

__all__ = [
    "SIZE_CLASSES",
    "SizeClass",
    "Trace",
    "generate_trace",
    "isolated_s",
    "read_durations",
    "read_gavel",
    "read_shockwave",
    "trajectory",
    "write_shockwave",
]
