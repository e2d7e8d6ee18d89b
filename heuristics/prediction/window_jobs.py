"""Conversion of a `JobState` to the `WindowJob` of the window program."""

from __future__ import annotations

from ...formulations.window.problem import Regime, WindowJob
from ...simulation.job_state import JobState
from .estimators import planned_ftf
from .predictors import Predictor, predict


def window_job(state: JobState, predictor: Predictor = "restatement", *, max_regimes: int | None = None) -> WindowJob:
    """Return a job's data for the window program: predicted regimes in order and planned finish-time fairness.

    Parameters
    ----------
    state : JobState
    predictor : {"restatement", "bayes", "greedy", "oracle"}
    max_regimes : int, optional
        Largest number of regimes of the job (K); see `regime_limit`.

    Returns
    -------
    WindowJob
        Job whose `ftf` is Eq. 9 with the predicted remaining run time.

    Raises
    ------
    InvalidInput
        If the predictor is unknown, `max_regimes` is less than 1, or the predictor is "oracle" and `state.future` is
        empty.
    """
    prediction = predict(state, predictor, max_regimes=max_regimes)
    return WindowJob(
        id=state.id,
        gpus=state.gpus,
        finished_epochs=state.finished_epochs,
        total_epochs=state.total_epochs,
        regimes=tuple(Regime(epochs, float(state.epoch_s[size])) for size, epochs in prediction.regimes),
        ftf=planned_ftf(state.attained_s, state.waiting_s, prediction.remaining_s, state.contention),
        weight=state.weight,
    )


def predicted_total_s(
    state: JobState, predictor: Predictor = "restatement", *, max_regimes: int | None = None
) -> float:
    """Return P_j, the predicted total run time on the whole gang: service received plus predicted remaining time.

    The sum over all jobs is the makespan scale Z0 of the window program. Parameters and errors are those of
    `window_job`.
    """
    return state.attained_s + predict(state, predictor, max_regimes=max_regimes).remaining_s
