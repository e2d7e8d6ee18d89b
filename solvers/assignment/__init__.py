"""Backends for assignments of GPUs to jobs."""
