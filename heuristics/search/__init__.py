"""Searches for configurations of policies by simulation."""

from .wfq_operator import WfqOperator
from .wfq_tuning import WfqTuning
from .workload_drift import DriftReport, ObservedJob

__all__ = ["DriftReport", "ObservedJob", "WfqOperator", "WfqTuning"]
