"""Goodput allocation by prices for GPUs."""
