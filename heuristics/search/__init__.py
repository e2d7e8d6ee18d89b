"""Searches for configurations of policies by simulation."""

from .wfq_operator import ObservedJob, WfqOperator
from .wfq_tuning import WfqTuning

__all__ = ["ObservedJob", "WfqOperator", "WfqTuning"]
