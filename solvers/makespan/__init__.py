"""Backends for shortest schedules."""
