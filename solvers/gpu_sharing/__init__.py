"""Backends for jobs that share their GPUs."""
