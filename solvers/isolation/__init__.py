"""Solves in separate processes, which are ended at the time limit."""

from .run import Isolation, run_isolated

__all__ = ["Isolation", "run_isolated"]
