"""Backends that call third-party solver packages."""

from .highs import pass_program

__all__ = ["pass_program"]
