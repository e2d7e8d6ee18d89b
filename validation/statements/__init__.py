"""Statements of the theory, each tested on random instances."""

from .verify import verify

__all__ = ["verify"]
