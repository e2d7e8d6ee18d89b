"""Columns of the jobs of a round for the window program and the order of rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from ...formulations.arrays import Floats, Indices
from ...simulation.job_state import JobState
from ...simulation.rounds.policy import RoundJob, RoundState
from ..prediction.predictors import Predictor, predict

Contention = Literal["jobs_seen", "jobs_present", "demand"]
CONTENTIONS: tuple[Contention, ...] = get_args(Contention)

# Weight of the predicted speed against the measured one, as a share of a round's time.
_UNMEASURED_ROUNDS = 0.1
# Margin of a job that has not run, as a multiple of the typical error of speeds.
_RISK_FACTOR = 2.0
_LARGEST_LOG_ERROR = 10.0  # cap of the logarithm of the margin


class _CachedJob(NamedTuple):
    """Prediction of a job, and the progress at which it was made."""

    progress: tuple[int, int, int]
    attained_s: float
    epochs: tuple[float, ...]
    epoch_s: tuple[float, ...]
    finished_epochs: float
    total_epochs: float
    remaining_s: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ActiveJobs:
    """Columns of N jobs at the start of a round, shape (N,) each unless stated.

    Attributes
    ----------
    finished_epochs, total_epochs : ndarray of float
    regime_starts, regime_epochs, regime_epoch_s : ndarray, shape (N + 1,), (R,) and (R,)
        Job j has the regimes regime_starts[j] to regime_starts[j + 1] - 1.
    attained_s, waiting_s, remaining_s : ndarray of float
        Service received (L) and time waited (W) since arrival; predicted seconds left on the whole gang (R).
    contention : ndarray of float
        Mean contention N_avg, at least 1.
    risk : ndarray of float
        Margin, as a share of R, for the error of the predicted speed, from the errors of other jobs; 0 after the job's
        first run.
    """

    finished_epochs: Floats
    total_epochs: Floats
    regime_starts: Indices
    regime_epochs: Floats
    regime_epoch_s: Floats
    attained_s: Floats
    waiting_s: Floats
    remaining_s: Floats
    contention: Floats
    risk: Floats

    @property
    def ftf(self) -> Floats:
        """Planned finish-time fairness, rho of Eq. 9 (`planned_ftf` for all jobs at once)."""
        share = self.contention
        total_s = self.attained_s + self.remaining_s
        return (self.attained_s + self.waiting_s + self.remaining_s * share) / (total_s * share)

    @property
    def predicted_s(self) -> Floats:
        """Predicted total run time on the whole gang (P)."""
        return self.attained_s + self.remaining_s


class JobReader:
    """Reader of the jobs of a round, which predicts only the jobs that have run since the last call.

    The parameters are options of `ShockwavePolicy`.

    Notes
    -----
    If a job has run for L seconds between calls, at one batch size, and its seconds per epoch predict L', its remaining
    time is multiplied by L/L' from then on. The typical error of speeds is the root mean square of log(L/L') over all
    jobs that have run; a job that has not run gets a margin of twice this error.
    """

    def __init__(
        self, predictor: Predictor, max_regimes: int | None, contention: Contention, measured_speeds: bool
    ) -> None:
        self._predictor, self._max_regimes, self._contention = predictor, max_regimes, contention
        self._measured_speeds = measured_speeds
        # Measured seconds of each job, and the seconds predicted for the same epochs.
        self._measured_times: dict[str | int, tuple[float, float]] = {}
        self._squared_errors = 0.0  # squared logarithms of measured over predicted seconds, summed over jobs
        self._cached: dict[str | int, _CachedJob] = {}
        self._arrived: set[str | int] = set()

    def read(self, state: RoundState) -> ActiveJobs:
        """Return the columns of `state.jobs`, which has at least one job."""
        self._arrived.update(job.id for job in state.jobs)
        cached, contention = {}, []
        for job in state.jobs:
            progress = (job.steps_run, job.batch_size, job.total_steps)
            before = self._cached.get(job.id)
            if self._contention == "demand":
                contention.append(job.state.contention)
            if before is not None and before.progress == progress:
                cached[job.id] = before
                continue
            now = job.state
            prediction = predict(now, self._predictor, max_regimes=self._max_regimes)
            slowdown = self._measured(job, now, before, state.round_s)
            cached[job.id] = _CachedJob(
                progress,
                job.attained_s,
                tuple(epochs for _, epochs in prediction.regimes),
                tuple(slowdown * float(now.epoch_s[size]) for size, _ in prediction.regimes),
                now.finished_epochs,
                now.total_epochs,
                slowdown * prediction.remaining_s,
            )
        self._cached = cached
        jobs = list(cached.values())
        life_s = np.array([max(0.0, state.time_s - job.arrival_s) for job in state.jobs])
        attained_s = np.minimum([job.attained_s for job in state.jobs], life_s)
        if self._contention != "demand":
            count = len(self._arrived) if self._contention == "jobs_seen" else len(jobs)
            contention = [max(1.0, count / state.total_gpus)] * len(jobs)
        return ActiveJobs(
            finished_epochs=np.array([job.finished_epochs for job in jobs]),
            total_epochs=np.array([job.total_epochs for job in jobs]),
            regime_starts=np.cumsum([0, *(len(job.epochs) for job in jobs)]),
            regime_epochs=np.array([epochs for job in jobs for epochs in job.epochs]),
            regime_epoch_s=np.array([seconds for job in jobs for seconds in job.epoch_s]),
            attained_s=attained_s,
            waiting_s=life_s - attained_s,
            remaining_s=np.array([job.remaining_s for job in jobs]),
            contention=np.array(contention),
            risk=self._risk(state),
        )

    def _measured(self, job: RoundJob, now: JobState, before: _CachedJob | None, round_s: float) -> float:
        """Return the job's measured over its predicted time per epoch, updated with its runs since `before`."""
        measured_s, predicted_s = self._measured_times.get(job.id, (0.0, 0.0))
        slowdown = _ratio(measured_s, predicted_s, round_s)
        # A change of the batch size rounds epochs, so intervals with a change are not used.
        if self._measured_speeds and before is not None and before.progress[1:] == (job.batch_size, job.total_steps):
            self._squared_errors -= math.log(slowdown) ** 2
            epochs = (job.steps_run - before.progress[0]) / job.steps_per_epoch
            measured_s += job.attained_s - before.attained_s
            predicted_s += epochs * float(now.epoch_s[job.batch_size])
            slowdown = _ratio(measured_s, predicted_s, round_s)
            self._measured_times[job.id] = measured_s, predicted_s
            self._squared_errors += math.log(slowdown) ** 2
        return slowdown

    def _risk(self, state: RoundState) -> Floats:
        if not self._measured_times:
            return np.zeros(len(state.jobs))
        error = math.sqrt(max(0.0, self._squared_errors) / len(self._measured_times))
        share = math.expm1(min(_RISK_FACTOR * error, _LARGEST_LOG_ERROR))
        return np.array([0.0 if job.id in self._measured_times else share for job in state.jobs])


def _ratio(measured_s: float, predicted_s: float, round_s: float) -> float:
    offset_s = _UNMEASURED_ROUNDS * round_s
    return (measured_s + offset_s) / (predicted_s + offset_s)
