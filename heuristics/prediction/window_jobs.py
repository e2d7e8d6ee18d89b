"""From what a scheduler knows of a job to the `WindowJob` that the window program plans."""

from __future__ import annotations

from ...formulations.window.problem import Regime, WindowJob
from ...simulation.job_state import JobState
from .estimators import planned_ftf
from .predictors import Predictor, predict


def window_job(state: JobState, predictor: Predictor = "restatement", *, max_regimes: int | None = None) -> WindowJob:
    """Return the job as the window program sees it: predicted regimes in order and planned finish-time fairness.

    Parameters
    ----------
    state : JobState
    predictor : {"restatement", "bayes", "greedy", "oracle"}
    max_regimes : int, optional
        Most regimes the job can have (K); see `regime_limit`.

    Returns
    -------
    WindowJob
        `ftf` is Eq. 9 on the predicted remaining run time.

    Raises
    ------
    InvalidInput
        If the predictor is unknown, `max_regimes` is less than 1, or the oracle is asked and `state.future` is empty.
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
    """Return P_j, the predicted total isolated run time: service received plus what is predicted to remain.

    The sum over all jobs is the makespan scale Z0 of the window program. Parameters and errors are those of
    `window_job`.
    """
    return state.attained_s + predict(state, predictor, max_regimes=max_regimes).remaining_s
