"""Heuristics without a bound: predictors, estimators, scheduling policies, and planners built from them."""

from .prediction.estimators import artifact_ftf, average_contention, egalitarian_ftf, makespan_bound_s, planned_ftf
from .prediction.predictors import PREDICTORS, Prediction, Predictor, predict, predicted_total_s, window_job
from .prediction.regimes import ACCORDION_REGIMES, regime_limit
from .registry import POLICIES, PolicyEntry, engines_of, find_policy, make_policy, policies_of

__all__ = [
    "ACCORDION_REGIMES",
    "POLICIES",
    "PREDICTORS",
    "PolicyEntry",
    "Prediction",
    "Predictor",
    "artifact_ftf",
    "average_contention",
    "egalitarian_ftf",
    "engines_of",
    "find_policy",
    "make_policy",
    "makespan_bound_s",
    "planned_ftf",
    "policies_of",
    "predict",
    "predicted_total_s",
    "regime_limit",
    "window_job",
]
