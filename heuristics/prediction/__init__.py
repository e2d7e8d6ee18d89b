"""Prediction of regimes, run times and fairness of jobs."""

from .estimators import artifact_ftf, average_contention, egalitarian_ftf, makespan_bound_s, planned_ftf
from .predictors import PREDICTORS, Prediction, Predictor, predict, predicted_total_s, window_job
from .regimes import ACCORDION_REGIMES, regime_limit

__all__ = [
    "ACCORDION_REGIMES",
    "PREDICTORS",
    "Prediction",
    "Predictor",
    "artifact_ftf",
    "average_contention",
    "egalitarian_ftf",
    "makespan_bound_s",
    "planned_ftf",
    "predict",
    "predicted_total_s",
    "regime_limit",
    "window_job",
]
