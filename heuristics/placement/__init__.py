"""Policies of the placement engine."""
