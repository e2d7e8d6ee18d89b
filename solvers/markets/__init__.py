"""Backends for Fisher markets."""
