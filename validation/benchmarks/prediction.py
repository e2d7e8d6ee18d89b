"""Benchmark of the predictors: errors of regimes and run time over a job's progress (Shockwave, Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ...heuristics.prediction.predictors import PREDICTORS, Prediction, Predictor, predict
from ...heuristics.prediction.regimes import regime_limit
from ...simulation.job_state import JobState
from ...simulation.profiles.table import Profiles
from ...simulation.traces.generator import generate_trace
from ...simulation.traces.trace import Trace
from ...simulation.traces.trajectory import epoch_seconds, trajectory


@dataclass(frozen=True, kw_only=True)
class Course:
    """One job's true course, as only an oracle knows it.

    `runs` has batch size and epochs of each regime, in order, and `epoch_s` the isolated seconds per epoch at each
    batch size that the job can take.
    """

    id: str | int
    mode: str
    runs: tuple[tuple[int, float], ...]
    epoch_s: Mapping[int, float]

    @property
    def total_epochs(self) -> float:
        """Epochs of all regimes together."""
        return float(sum(epochs for _, epochs in self.runs))

    @property
    def total_s(self) -> float:
        """Isolated run time, seconds."""
        return float(sum(epochs * self.epoch_s[size] for size, epochs in self.runs))

    def at(self, progress: float) -> JobState:
        """Return the job's state once the share `progress`, in [0, 1), of its epochs is finished.

        At the very end of a regime the next one has begun, with 0 epochs.
        """
        done: list[tuple[int, float]] = []
        future: list[tuple[int, float]] = []
        left = progress * self.total_epochs
        for size, epochs in self.runs:
            if future:
                future.append((size, epochs))
            elif left >= epochs:
                done.append((size, epochs))
                left -= epochs
            else:
                done.append((size, left))
                future.append((size, epochs - left))
        sizes, spans = zip(*done, strict=True)
        return JobState(
            id=self.id,
            gpus=1,
            mode=self.mode,
            total_epochs=self.total_epochs,
            finished_epochs=sum(spans),
            batch_sizes=sizes,
            regime_epochs=spans,
            epoch_s=self.epoch_s,
            future=tuple(future),
            attained_s=sum(epochs * self.epoch_s[size] for size, epochs in done),
            waiting_s=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class PredictionErrors:
    """Errors of one prediction, or their means over several; every one is a share and at least 0.

    Attributes
    ----------
    duration : float
        Mean over regimes of |predicted - true epochs of the whole regime|, as a share of the job's epochs. Regimes
        are matched by place; one that only the prediction or only the truth has counts as 0 in the other. The mean
        is over max(K, true regimes) places, the same for every predictor.
    misplaced : float
        Share of the epochs put into the wrong regime: half the sum of which `duration` is the mean.
    runtime, remaining : float
        |predicted - true total run time| in isolation, over the true one and over the part of it that is left.
    """

    duration: float
    misplaced: float
    runtime: float
    remaining: float


def prediction_errors(
    course: Course, progress: float, predictor: Predictor, *, max_regimes: int | None = None
) -> PredictionErrors:
    """Predict from the state of a job at the share `progress` of its epochs, and compare with what came."""
    state = course.at(progress)
    prediction = predict(state, predictor, max_regimes=max_regimes)
    expected = _whole_regimes(state, prediction)
    truth = [epochs for _, epochs in course.runs]
    apart = np.zeros(max(len(expected), len(truth)))
    apart[: len(expected)] += expected
    apart[: len(truth)] -= truth
    wrong = float(np.abs(apart).sum()) / course.total_epochs
    wrong_s = abs(state.attained_s + prediction.remaining_s - course.total_s)
    return PredictionErrors(
        duration=wrong / max(len(truth), regime_limit(state, max_regimes)),
        misplaced=wrong / 2,
        runtime=wrong_s / course.total_s,
        remaining=wrong_s / (course.total_s - state.attained_s),
    )


def _whole_regimes(state: JobState, prediction: Prediction) -> list[float]:
    """Return the epochs of every regime, past ones as they were: the prediction goes on with the ongoing one or not."""
    epochs = list(state.regime_epochs)
    first, *later = prediction.regimes
    if first[0] == state.batch_sizes[-1]:
        epochs[-1] += first[1]
    else:
        epochs.append(first[1])
    return epochs + [more for _, more in later]


def trace_courses(trace: Trace, profiles: Profiles) -> list[Course]:
    """Return the course of every job of a trace whose batch size can change; the others any predictor foresees."""
    courses = []
    for index in range(len(trace)):
        runs = trajectory(trace, index, profiles)
        course = Course(
            id=trace.job_id[index],
            mode=trace.mode[index],
            runs=tuple((size, float(epochs)) for size, epochs in runs),
            epoch_s=epoch_seconds(trace, index, profiles, runs),
        )
        if regime_limit(course.at(0.0)) > 1:
            courses.append(course)
    return courses


def generated_courses(jobs: int, seed: int, profiles: Profiles) -> list[Course]:
    """Return so many jobs of the generated workload, Accordion and GNS in even shares, that can change their size."""
    rng = np.random.default_rng(seed)
    courses: list[Course] = []
    while len(courses) < jobs:
        trace = generate_trace(
            rng, num_jobs=2 * jobs, mode_probabilities={"accordion": 0.5, "gns": 0.5}, profiles=profiles
        )
        courses += trace_courses(trace, profiles)
    return courses[:jobs]


def prediction_rows(
    *,
    jobs: int = 200,
    seed: int = 0,
    points: int = 20,
    max_regimes: int | None = None,
    predictors: Sequence[Predictor] = PREDICTORS,
    profiles: Profiles | None = None,
    courses: Sequence[Course] | None = None,
) -> list[dict[str, str | float | None]]:
    """Measure each predictor's mean errors at evenly spaced progress.

    Errors are measured at the shares 0, 1/points, ... of the epochs, on generated jobs (builtin profiles by default)
    or, without `jobs`, `seed` and `profiles`, on `courses`. The default of `max_regimes`, K, is that of `regime_limit`.

    Returns
    -------
    list of dict
        For each predictor one row per progress, {predictor, progress, jobs, duration, misplaced, runtime, remaining},
        and a last one with progress None: the mean of the curve. See `PredictionErrors`.

    Raises
    ------
    InvalidInput
        If a count is less than 1 or a predictor is unknown.
    """
    points = as_integer("points", points, minimum=1)
    if courses is None:
        jobs, seed = as_integer("jobs", jobs, minimum=1), as_integer("seed", seed, minimum=0)
        courses = generated_courses(jobs, seed, Profiles.builtin() if profiles is None else profiles)
    if not courses:
        raise InvalidInput("courses", "[]", "must not be empty")
    names = [field.name for field in fields(PredictionErrors)]
    rows: list[dict[str, str | float | None]] = []
    for predictor in predictors:
        curve = np.empty((points, len(names)))
        for point in range(points):
            errors = [
                prediction_errors(course, point / points, predictor, max_regimes=max_regimes) for course in courses
            ]
            curve[point] = np.mean([[getattr(error, name) for name in names] for error in errors], axis=0)
        shares = [*(point / points for point in range(points)), None]
        for progress, means in zip(shares, [*curve, curve.mean(axis=0)], strict=True):
            row: dict[str, str | float | None] = {"predictor": predictor, "progress": progress, "jobs": len(courses)}
            rows.append(row | dict(zip(names, means.tolist(), strict=True)))
    return rows
