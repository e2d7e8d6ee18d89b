"""Policies of the rounds engine other than Shockwave."""

from .partial_allocation import least_kept, partial_allocation

__all__ = ["least_kept", "partial_allocation"]
