"""Solves in a process of their own, which is ended at the time limit."""

from .run import Isolation, run_isolated

__all__ = ["Isolation", "run_isolated"]
