"""Searches for configurations of policies by simulation."""

from .delay_tuning import DelayTuning
from .wfq_operator import WfqOperator
from .wfq_tuning import WfqTuning
from .workload_drift import DriftReport, ObservedJob

__all__ = ["DelayTuning", "DriftReport", "ObservedJob", "WfqOperator", "WfqTuning"]
