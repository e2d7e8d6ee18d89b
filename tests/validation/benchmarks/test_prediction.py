"""The prediction benchmark: its measures by hand, and the claim that the restatement rule beats both baselines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.errors import InvalidInput
from equipoise.heuristics import PREDICTORS
from equipoise.simulation import Profiles
from equipoise.validation.benchmarks.prediction import Course, generated_courses, prediction_errors, prediction_rows

ACCORDION = Course(id=0, mode="accordion", runs=((16, 30.0), (64, 70.0)), epoch_s={16: 30.0, 64: 10.0})


def means(rows):
    return {row["predictor"]: row for row in rows if row["progress"] is None}


def test_the_errors_by_hand():
    # After 20 of 100 epochs the rule expects 50 + 50 where 30 + 70 come: 20 epochs in the wrong regime, 400 s too many
    # of 1600 s, of which 600 s have been served.
    errors = prediction_errors(ACCORDION, 0.2, "restatement")
    assert (errors.duration, errors.misplaced) == pytest.approx((0.2, 0.2))
    assert (errors.runtime, errors.remaining) == pytest.approx((400 / 1600, 400 / 1000))
    # Greedy expects 100 + 0: 70 epochs in the wrong regime, 1400 s too many.
    greedy = prediction_errors(ACCORDION, 0.2, "greedy")
    assert (greedy.duration, greedy.misplaced, greedy.runtime) == pytest.approx((0.7, 0.7, 1400 / 1600))
    # At 60 epochs the first regime is known to have taken 30: nothing is left to get wrong.
    assert prediction_errors(ACCORDION, 0.6, "restatement").misplaced == pytest.approx(0.0, abs=1e-12)


def test_an_overrun_regime_counts_as_lasting_until_now():
    late = Course(id=0, mode="accordion", runs=((16, 80.0), (64, 20.0)), epoch_s={16: 30.0, 64: 10.0})
    assert prediction_errors(late, 0.6, "restatement").misplaced == pytest.approx(0.2)


def test_when_a_regime_ends_the_next_has_begun_with_no_epochs():
    state = ACCORDION.at(0.3)
    assert (state.batch_sizes, state.regime_epochs, state.future) == ((16, 64), (30.0, 0.0), ((64, 70.0),))
    assert state.attained_s == 900.0
    assert ACCORDION.at(0.0).batch_sizes == (16,)


@given(st.floats(0.0, 0.999))
def test_progress_divides_a_course_into_past_and_future(progress):
    state = ACCORDION.at(progress)
    assert state.finished_epochs + sum(epochs for _, epochs in state.future) == pytest.approx(100.0)
    left_s = sum(epochs * state.epoch_s[size] for size, epochs in state.future)
    assert state.attained_s + left_s == pytest.approx(ACCORDION.total_s)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_restatement_rule_beats_both_baselines_on_the_generated_workload(seed):
    mean = means(prediction_rows(jobs=120, seed=seed, points=10))
    for measure in ("duration", "misplaced", "runtime", "remaining"):
        rule = mean["restatement"][measure]
        assert rule < mean["bayes"][measure] < mean["greedy"][measure]
        assert mean["oracle"][measure] == pytest.approx(0.0, abs=1e-9)


def test_the_rule_errs_less_the_further_the_job_is():
    rows = prediction_rows(jobs=60, seed=0, points=5, predictors=["restatement"])
    curve = [row["misplaced"] for row in rows if row["progress"] is not None]
    assert curve == sorted(curve, reverse=True)


def test_rows_cover_every_predictor_and_progress_and_close_with_the_mean():
    rows = prediction_rows(jobs=5, points=4)
    assert [(row["predictor"], row["progress"]) for row in rows] == [
        (predictor, progress) for predictor in PREDICTORS for progress in (0.0, 0.25, 0.5, 0.75, None)
    ]
    bayes = [row["runtime"] for row in rows if row["predictor"] == "bayes"]
    assert bayes[-1] == pytest.approx(sum(bayes[:-1]) / 4)
    assert rows == prediction_rows(jobs=5, points=4)
    assert rows != prediction_rows(jobs=5, points=4, seed=1)


def test_generated_courses_can_all_change_and_are_as_many_as_asked_for():
    courses = generated_courses(30, 3, Profiles.builtin())
    assert len(courses) == 30
    assert {course.mode for course in courses} == {"accordion", "gns"}
    assert all(len(course.epoch_s) > 1 for course in courses)


@pytest.mark.parametrize(
    "arguments",
    [{"jobs": 0}, {"seed": -1}, {"points": 0}, {"max_regimes": 0}, {"predictors": ["prophet"]}, {"courses": []}],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InvalidInput):
        prediction_rows(**({"jobs": 3, "points": 2} | arguments))
