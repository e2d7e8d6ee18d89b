"""Backends of SearchProblem: decisions that only a simulation scores."""
