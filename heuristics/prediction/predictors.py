"""Predictors of a job's regimes (restatement rule, Bayes, greedy and oracle; Shockwave, Section 5), and window jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeVar, get_args

from ...formulations.errors import InvalidInput
from ...formulations.window.problem import Regime, WindowJob
from ...simulation.job_state import JobState
from .estimators import planned_ftf
from .regimes import coming_batch_sizes, regime_limit, tidy

Predictor = Literal["restatement", "bayes", "greedy", "oracle"]
PREDICTORS: tuple[Predictor, ...] = get_args(Predictor)

# The same arithmetic is exact with fractions and fast with floats.
Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True)
class Prediction:
    """Predicted remaining work of a job.

    Attributes
    ----------
    regimes : tuple of (int, float)
        Batch size and epochs of each remaining regime, in order; the epochs are positive and sum to total_epochs -
        finished_epochs.
    remaining_s : float
        Remaining run time on the whole gang, in seconds (R_j in Eq. 9).
    """

    regimes: tuple[tuple[int, float], ...]
    remaining_s: float


def prior(total: Number, max_regimes: int) -> tuple[Number, ...]:
    """Return the concentrations of the prior Dir(N/K, ..., N/K) over K = `max_regimes` regimes, N = `total` epochs.

    They sum to N, so each is also the prior mean epochs of its regime.
    """
    return (total / max_regimes,) * max_regimes


def restated_posterior(total: Number, finished: Sequence[Number], max_regimes: int) -> tuple[Number, ...]:
    """Return the posterior Dir(m_1, ..., m_k, S_k, ..., S_k) of the restatement rule when regime k ends, shape (K,).

    The job has N = `total` epochs and at most K = `max_regimes` regimes, of which k < K have `finished` with these
    epochs (m). The concentrations sum to N, so each is also the mean epochs of its regime. The observed finished
    regimes *restate* the evenly split prior over the others: ``S_k = (N - m_1 - ... - m_k)/(K - k)``. Source:
    Shockwave, Section 5.
    """
    later = max_regimes - len(finished)
    return tuple(finished) + ((total - sum(finished)) / later,) * later


def bayes_posterior(total: Number, observed: Sequence[Number], max_regimes: int) -> tuple[Number, ...]:
    """Return the standard posterior Dir(N/K + observed epochs) over K = `max_regimes` regimes, shape (K,).

    The epochs of each of k <= K regimes so far, the ongoing one included, are `observed`. The concentrations sum to N +
    sum(observed); `mean_epochs` turns them into epochs.
    """
    even = total / max_regimes
    return tuple(even + epochs for epochs in observed) + (even,) * (max_regimes - len(observed))


def mean_epochs(concentrations: Sequence[Number], total: Number) -> tuple[Number, ...]:
    """Return the mean epochs of each regime under Dir(concentrations) over `total` epochs; they sum to `total`."""
    mass = sum(concentrations)
    return tuple(total * concentration / mass for concentration in concentrations)


def restated_remaining(total: Number, observed: Sequence[Number], max_regimes: int) -> tuple[Number, ...]:
    """Return the epochs left in the ongoing regime and in each later one, by the restatement rule, shape (K - k,).

    `observed` has the epochs of the k finished regimes (m), then those of the ongoing regime so far (o); together at
    most N = `total`. K = `max_regimes` is at least k + 1. The result sums to N - sum(observed). The ongoing regime's
    mean is S_k until it has lasted longer; from then on its mean is o (it is expected to end now) and the later regimes
    split N - sum(m) - o evenly. Without a later regime it lasts to the end.
    """
    left = total - sum(observed)
    means = restated_posterior(total, observed[:-1], max_regimes)
    ongoing_mean = means[len(observed) - 1]
    later = means[len(observed) :]
    if not later:
        return (left,)
    if observed[-1] <= ongoing_mean:
        return (left - sum(later),) + later  # noqa: RUF005 - the type of a starred tuple is lost on mypy
    return (left * 0,) + (left / len(later),) * len(later)


def bayes_remaining(total: Number, observed: Sequence[Number], max_regimes: int) -> tuple[Number, ...]:
    """Return the epochs left in the ongoing regime and in each later one, by standard Bayes; as `restated_remaining`.

    Posterior means e_i sum to N, but they do not reproduce the finished regimes. The finished regimes are kept as
    observed: the ongoing and later regimes get max(0, e_i - observed_i) epochs, scaled together to sum to N -
    sum(observed). If all of these are 0, there is no later regime, and the ongoing one gets all epochs.
    """
    means = mean_epochs(bayes_posterior(total, observed, max_regimes), total)
    ongoing = means[len(observed) - 1] - observed[-1]
    unscaled = (max(total * 0, ongoing),) + means[len(observed) :]  # noqa: RUF005 - as above
    left = total - sum(observed)
    mass = sum(unscaled)
    if not mass > 0:
        return (left,)
    return tuple(left * share / mass for share in unscaled)


def predict(state: JobState, predictor: Predictor = "restatement", *, max_regimes: int | None = None) -> Prediction:
    """Predict the remaining regimes of a job and its remaining run time on the whole gang.

    Parameters
    ----------
    state : JobState
    predictor : {"restatement", "bayes", "greedy", "oracle"}
        Restatement rule, standard Bayesian update, current batch size to the end, or true regimes of `state.future`.
    max_regimes : int, optional
        K of the restatement rule and of Bayes; see `regime_limit` for the default and its limits.

    Raises
    ------
    InvalidInput
        If the predictor is unknown, `max_regimes` is less than 1, or the predictor is "oracle" and `state.future` is
        empty.

    Notes
    -----
    Run time is the sum over regimes of epochs times seconds per epoch. Shockwave, Section 5.
    """
    if predictor not in PREDICTORS:
        raise InvalidInput("predictor", predictor, f"one of {', '.join(PREDICTORS)}")
    limit = regime_limit(state, max_regimes)
    left = state.total_epochs - state.finished_epochs
    if predictor == "greedy":
        regimes = [(state.batch_sizes[-1], left)]
    elif predictor == "oracle":
        if not state.future:
            raise InvalidInput("future", "()", "the oracle needs the true remaining regimes")
        sizes = [size for size, _ in state.future]
        regimes = list(zip(sizes, _summing_to(left, [epochs for _, epochs in state.future]), strict=True))
    else:
        rule = restated_remaining if predictor == "restatement" else bayes_remaining
        observed = _summing_to(state.finished_epochs, state.regime_epochs)
        epochs_left = [max(0.0, epochs) for epochs in rule(state.total_epochs, observed, limit)]
        regimes = list(zip(coming_batch_sizes(state, len(epochs_left)), epochs_left, strict=True))
    tidied = tidy(regimes, state.total_epochs)
    return Prediction(tidied, sum(epochs * float(state.epoch_s[size]) for size, epochs in tidied))


def window_job(state: JobState, predictor: Predictor = "restatement", *, max_regimes: int | None = None) -> WindowJob:
    """Return a job's data for the window program: predicted regimes in order, and Eq. 9 with the predicted time left.

    Parameters
    ----------
    state : JobState
    predictor : {"restatement", "bayes", "greedy", "oracle"}
    max_regimes : int, optional
        Largest number of regimes of the job (K); see `regime_limit`.

    Raises
    ------
    InvalidInput
        As `predict`.
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


def _summing_to(total: float, parts: Sequence[float]) -> list[float]:
    """Scale `parts` to sum to `total`; a `JobState` allows a difference by rounding."""
    found = math.fsum(parts)
    if found <= 0.0:
        return [*parts[:-1], total]
    return [part * (total / found) for part in parts]
