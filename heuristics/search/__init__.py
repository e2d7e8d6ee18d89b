"""Searches for configurations of policies by simulation."""

from .wfq_tuning import WfqTuning

__all__ = ["WfqTuning"]
