"""Shockwave's planner, and the variant of its released code."""

from .policy import ShockwavePolicy

__all__ = ["ShockwavePolicy"]
