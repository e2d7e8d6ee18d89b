"""Shockwave's planner, and the variant in its released code."""

from .policy import ShockwavePolicy

__all__ = ["ShockwavePolicy"]
