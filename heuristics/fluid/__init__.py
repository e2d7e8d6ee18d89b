"""Policies of the fluid engine."""
