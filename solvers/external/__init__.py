"""Backends that call the solver packages of others."""

from .highs import pass_program

__all__ = ["pass_program"]
