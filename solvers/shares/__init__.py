"""Backends for shares of time on several GPU types."""

from .backend import nearest_optimum

__all__ = ["nearest_optimum"]
