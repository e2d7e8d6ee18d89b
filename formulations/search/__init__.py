"""Answers of searches: decisions that are scored only by simulation."""
