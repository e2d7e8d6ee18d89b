"""Bad input to a window, one field and one kind of badness at a time: the error names field, index and value."""

import copy
import dataclasses
import inspect
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq

NAN, INF = math.nan, math.inf

JOBS = [
    eq.WindowJob(
        id="a", gpus=2, finished_epochs=1.0, total_epochs=4.0, regimes=[eq.Regime(1.0, 60.0), eq.Regime(2.0, 90.0)]
    ),
    eq.WindowJob(id="b", gpus=1, finished_epochs=0.0, total_epochs=2.0, regimes=[eq.Regime(2.0, 30.0)], ftf=2.0),
]
COLUMNS = {
    "ids": ["a", "b"],
    "gang_gpus": [2, 1],
    "finished_epochs": [1.0, 0.0],
    "total_epochs": [4.0, 2.0],
    "regime_starts": [0, 2, 3],
    "regime_epochs": [1.0, 2.0, 2.0],
    "regime_epoch_s": [60.0, 90.0, 30.0],
    "ftf": [1.0, 2.0],
    "weight": [1.0, 1.0],
    "gpus": 4,
}
SCALARS = {"gpus": 4, "rounds": 5, "running": ["a"]}


def from_jobs(**changes) -> eq.ScheduleWindow:
    data = {"jobs": JOBS, **SCALARS} | changes
    return eq.ScheduleWindow(**data)


def from_columns(**changes) -> eq.ScheduleWindow:
    return eq.ScheduleWindow.from_columns(**(COLUMNS | SCALARS | changes))


def same(value, expected) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(value, float) and math.isnan(value)
    return bool(value == expected)


def refused(build, field, index, value, why, **changes) -> None:
    """Assert that `build(**changes)` is refused, and that the error says where, what and why, and says it in words."""
    with pytest.raises(eq.InvalidInput) as caught:
        build(**changes)
    error = caught.value
    assert error.field == field
    assert error.index == (None if index is None else index)
    assert same(error.value, value), error.value
    assert why in error.why
    place = "" if index is None else "[" + ", ".join(map(str, index)) + "]"
    shown = repr(value) if isinstance(value, str) else str(value)
    assert str(error).startswith(f"{field}{place} = {shown[:80]}: ")


def replaced(values, index, value) -> list:
    values = list(values)
    values[index] = value
    return values


def test_the_good_window_is_taken_both_ways():
    for window in (from_jobs(), from_columns()):
        assert window.ids == ("a", "b")
        assert window.regime_starts.tolist() == [0, 2, 3]
        assert window.is_running.tolist() == [True, False]
        assert repr(window) == "<ScheduleWindow: 2 jobs, 4 GPUs, 5 rounds of 120 s>"


# -- Scalars -----------------------------------------------------------------------------------------------------------

REAL_BADNESS = [
    (NAN, "must be finite"),
    (INF, "must be finite"),
    (-INF, "must be finite"),
    ("12", "must be a number"),
    (True, "must be a number"),
    ([1.0], "must be a number"),
    (1 + 2j, "must be a number"),
    (10**400, "must be finite"),
]
SCALAR_BADNESS = [
    *((name, value, why) for name in ("gpus", "rounds", "round_s", "ftf_power", "makespan_weight", "makespan_scale",
                                      "utility_floor", "restart_penalty") for value, why in REAL_BADNESS),
    *((name, None, "must be a number") for name in ("gpus", "rounds", "round_s", "ftf_power", "makespan_weight",
                                                    "utility_floor", "restart_penalty")),
    ("gpus", 0, "at least 1"),
    ("gpus", -3, "at least 1"),
    ("gpus", 2.5, "whole number"),
    ("rounds", 0, "at least 1"),
    ("rounds", -1, "at least 1"),
    ("rounds", 1.5, "whole number"),
    ("rounds", 10**7, "at most 10000"),
    ("round_s", 0.0, "greater than 0"),
    ("round_s", -120.0, "greater than 0"),
    ("ftf_power", -1.0, "at least 0"),
    ("makespan_weight", -1e-9, "at least 0"),
    ("makespan_scale", 0.0, "greater than 0"),
    ("makespan_scale", -5.0, "greater than 0"),
    ("utility_floor", 0.0, "greater than 0"),
    ("utility_floor", -0.5, "greater than 0"),
    ("utility_floor", 1.0, "less than 1"),
    ("restart_penalty", -0.1, "at least 0"),
    *((name, value, "True or False") for name in ("gang_weighted", "skip_wide") for value in (1, "yes", None, NAN)),
]  # fmt: skip


@pytest.mark.parametrize("build", [from_jobs, from_columns])
@pytest.mark.parametrize(("name", "value", "why"), SCALAR_BADNESS)
def test_a_bad_scalar(build, name, value, why):
    shown = INF if isinstance(value, float) and value == INF else value
    refused(build, name, None, shown, why, **{name: value})


@pytest.mark.parametrize("build", [from_jobs, from_columns])
@pytest.mark.parametrize(
    ("field", "why", "changes"),
    [
        ("makespan_scale", "= inf per round of makespan", {"makespan_scale": 1e-310}),
        ("makespan_scale", "= 1.2e+300 per round of makespan", {"makespan_scale": 1e-301}),
        ("makespan_scale", "= inf per round of makespan", {"makespan_weight": 1e307, "makespan_scale": 0.1}),
        ("makespan_weight", "= inf per round of makespan", {"makespan_weight": 1e307, "round_s": 1e4}),
        ("makespan_weight", "per round of makespan", {"makespan_weight": 1e301}),
        ("restart_penalty", "2 jobs x 5 rounds", {"restart_penalty": 1e300}),
        ("gpus", "exceed 9007199254740992", {"gpus": 2**51}),
        ("gpus", "exceed 9007199254740992", {"gpus": 10**30}),
    ],
)
def test_numbers_that_overflow_together(build, field, why, changes):
    """Each is a finite number of its own; products of them are not, or are no exact integers."""
    refused(build, field, None, changes[field], why, **changes)


@pytest.mark.parametrize("build", [from_jobs, from_columns])
def test_numbers_just_short_of_overflow_are_taken(build):
    window = build(gpus=2**50, makespan_scale=1e-290, restart_penalty=1e298)
    assert math.isfinite(window.tables.makespan_price)
    assert np.isfinite(window.tables.value).all()


@pytest.mark.parametrize("build", [from_jobs, from_columns])
def test_more_cells_than_a_machine_holds(build, monkeypatch):
    from equipoise.formulations.window import data as module

    monkeypatch.setattr(module, "MOST_CELLS", 11)  # 2 jobs x (5 + 1)
    refused(build, "rounds", None, 5, "exceed 11 cells")


@pytest.mark.parametrize("build", [from_jobs, from_columns])
@pytest.mark.parametrize(
    ("running", "index", "value", "why"),
    [
        (["a", "nobody"], (1,), "nobody", "no job has this id"),
        (["b", "a", "b"], (2,), "b", "the same id as running[0]"),
        ([NAN], (0,), NAN, "text or a whole number"),
        ([True], (0,), True, "text or a whole number"),
        ("ab", None, "ab", "must be a sequence"),
        (None, None, None, "must be a sequence"),
        (5, None, 5, "must be a sequence"),
    ],
)
def test_bad_running(build, running, index, value, why):
    refused(build, "running", index, value, why, running=running)


# -- Columns -----------------------------------------------------------------------------------------------------------

NUMBER_BADNESS = [
    (NAN, "must be finite"),
    (INF, "must be finite"),
    (-INF, "must be finite"),
    ("2", "must be a number"),
    (None, "must be a number"),
    (True, "must be a number"),
    (1j, "must be a number"),
    ([1.0], "must be a number"),
]
# column, name of the job's attribute, what else is bad about it
PER_JOB = {
    "gang_gpus": [(0, "at least 1"), (-2, "at least 1"), (1.5, "whole number"), (1e300, "at most")],
    "finished_epochs": [(-1.0, "at least 0")],
    "total_epochs": [(0.0, "greater than 0"), (-4.0, "greater than 0")],
    "ftf": [
        (0.0, "greater than 0"),
        (-1.0, "greater than 0"),
        (1e300, "power 5 is out of range"),
        (1e-300, "out of range"),
    ],
    "weight": [(0.0, "greater than 0"), (-1.0, "greater than 0")],
}
PER_REGIME = {
    "regime_epochs": [(0.0, "greater than 0"), (-1.0, "greater than 0")],
    "regime_epoch_s": [(0.0, "greater than 0"), (-60.0, "greater than 0"), (1e300, "too long")],
}
BAD_PER_JOB = [(n, j, v, w) for n, bad in PER_JOB.items() for v, w in [*NUMBER_BADNESS, *bad] for j in (0, 1)]
BAD_PER_REGIME = [(n, i, v, w) for n, bad in PER_REGIME.items() for v, w in [*NUMBER_BADNESS, *bad] for i in (0, 1, 2)]


@pytest.mark.parametrize(("name", "at", "value", "why"), BAD_PER_JOB)
def test_a_bad_entry_of_a_column(name, at, value, why):
    refused(from_columns, name, (at,), value, why, **{name: replaced(COLUMNS[name], at, value)})


@pytest.mark.parametrize(("name", "at", "value", "why"), BAD_PER_JOB)
def test_a_bad_attribute_of_a_job(name, at, value, why):
    attribute = {"gang_gpus": "gpus"}.get(name, name)
    jobs = replaced(JOBS, at, replace(JOBS[at], **{attribute: value}))
    refused(from_jobs, f"jobs.{attribute}", (at,), value, why, jobs=jobs)


@pytest.mark.parametrize(("name", "at", "value", "why"), BAD_PER_REGIME)
def test_a_bad_entry_of_a_column_of_regimes(name, at, value, why):
    refused(from_columns, name, (at,), value, why, **{name: replaced(COLUMNS[name], at, value)})


@pytest.mark.parametrize(("name", "at", "value", "why"), BAD_PER_REGIME)
def test_a_bad_attribute_of_a_regime_names_job_and_regime(name, at, value, why):
    attribute = name.removeprefix("regime_")
    j, k = [(0, 0), (0, 1), (1, 0)][at]
    regimes = replaced(JOBS[j].regimes, k, replace(JOBS[j].regimes[k], **{attribute: value}))
    jobs = replaced(JOBS, j, replace(JOBS[j], regimes=regimes))
    refused(from_jobs, f"jobs.regimes.{attribute}", (j, k), value, why, jobs=jobs)


@pytest.mark.parametrize(
    ("starts", "index", "value", "why"),
    [
        ([0, 3], None, 2, "N + 1 = 3"),
        ([0, 1, 2, 3], None, 4, "N + 1 = 3"),
        ([1, 2, 3], None, (1, 3), "start at 0 and end at 3"),
        ([0, 2, 2], None, (0, 2), "start at 0 and end at 3"),
        ([0, -1, 3], (1,), -1, "at least 0"),
        ([0, 1.5, 3], (1,), 1.5, "whole number"),
        ([0, NAN, 3], (1,), NAN, "must be finite"),
        ([0, "2", 3], (1,), "2", "must be a number"),
        ([0, 4, 3], (1,), 4, "must not decrease"),
    ],
)
def test_bad_regime_starts(starts, index, value, why):
    refused(from_columns, "regime_starts", index, value, why, regime_starts=starts)


@pytest.mark.parametrize("name", ["gang_gpus", "finished_epochs", "total_epochs", "ftf", "weight", "ids"])
def test_columns_of_unequal_length(name):
    with pytest.raises(eq.InvalidInput) as caught:
        from_columns(**{name: COLUMNS[name][:1]})
    if name == "gang_gpus":  # the others are measured against it
        assert (caught.value.field, caught.value.why) == ("ids", "ids has length 2, gang_gpus has length 1")
    else:
        assert (caught.value.field, caught.value.why) == (name, f"{name} has length 1, gang_gpus has length 2")


@pytest.mark.parametrize("name", ["regime_epochs", "regime_epoch_s"])
def test_regime_columns_of_unequal_length(name):
    with pytest.raises(eq.InvalidInput, match=r"regime_epoch_s has length \d, regime_epochs has length \d"):
        from_columns(**{name: [1.0, 2.0]})


@pytest.mark.parametrize("name", ["gang_gpus", "finished_epochs", "total_epochs", "ftf", "weight", "regime_starts"])
def test_an_empty_column(name):
    with pytest.raises(eq.InvalidInput) as caught:
        from_columns(**{name: []})
    assert caught.value.field == name
    assert "must not be empty" in str(caught.value)


@pytest.mark.parametrize("name", ["gang_gpus", "finished_epochs", "total_epochs", "ftf", "weight", "regime_starts",
                                  "regime_epochs", "regime_epoch_s"])  # fmt: skip
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("12", "must be a sequence of numbers, not text"),
        (3.0, "1 dimension"),
        (np.array([[1.0, 2.0]]), "1 dimension"),
        ([[1.0], [2.0, 3.0]], "must be a number"),
        ({"a": 1}, "must be a sequence of numbers"),
        ([object(), object(), object()], "must be a number"),
    ],
)
def test_a_column_that_is_no_column(name, value, why):
    with pytest.raises(eq.InvalidInput) as caught:
        from_columns(**{name: value})
    assert caught.value.field == name
    assert why in str(caught.value)


# -- Ids, jobs, and what concerns several fields -----------------------------------------------------------------------

ID_BADNESS = [("a", "the same id as"), (1.5, "text or a whole number"), (True, "text or a whole number"),
              (None, "text or a whole number"), (NAN, "text or a whole number"), ("", "must not be empty"),
              (("a",), "text or a whole number")]  # fmt: skip


@pytest.mark.parametrize(("value", "why"), ID_BADNESS)
def test_a_bad_id(value, why):
    refused(from_columns, "ids", (1,), value, why, ids=["a", value])
    refused(from_jobs, "jobs.id", (1,), value, why, jobs=[JOBS[0], replace(JOBS[1], id=value)])


@pytest.mark.parametrize("ids", ["ab", 7])
def test_ids_that_are_no_sequence(ids):
    refused(from_columns, "ids", None, ids, "must be a sequence of ids", ids=ids)


def test_a_number_and_its_text_are_two_ids():
    assert from_columns(ids=[1, "1"], running=[1]).is_running.tolist() == [True, False]


@pytest.mark.parametrize(
    ("jobs", "index", "value", "why"),
    [
        ([], None, "[]", "must not be empty"),
        ((), None, "[]", "must not be empty"),
        (None, None, "NoneType", "must be a sequence of WindowJob"),
        ("jobs", None, "str", "must be a sequence of WindowJob"),
        (7, None, "int", "must be a sequence of WindowJob"),
        ({"a": 1}, None, "dict", "must be a sequence of WindowJob"),
        ([JOBS[0], {"id": "b"}], (1,), "dict", "must be a WindowJob"),
        ([None], (0,), "NoneType", "must be a WindowJob"),
    ],
)
def test_jobs_that_are_no_jobs(jobs, index, value, why):
    refused(from_jobs, "jobs", index, value, why, jobs=jobs)


@pytest.mark.parametrize(
    ("regimes", "index", "value", "why"),
    [
        (None, (1,), "NoneType", "must be a sequence of Regime"),
        ("fast", (1,), "str", "must be a sequence of Regime"),
        (eq.Regime(2.0, 30.0), (1,), "Regime", "must be a sequence of Regime"),
        ([eq.Regime(1.0, 30.0), (1.0, 30.0)], (1, 1), "tuple", "must be a Regime"),
    ],
)
def test_regimes_that_are_no_regimes(regimes, index, value, why):
    refused(from_jobs, "jobs.regimes", index, value, why, jobs=[JOBS[0], replace(JOBS[1], regimes=regimes)])


def test_more_finished_than_there_is():
    why = "must not exceed total_epochs"
    refused(from_columns, "finished_epochs", (1,), 2.5, why, finished_epochs=[1.0, 2.5])
    jobs = [JOBS[0], replace(JOBS[1], finished_epochs=2.5)]
    refused(from_jobs, "jobs.finished_epochs", (1,), 2.5, why, jobs=jobs)


@pytest.mark.parametrize("total", [4.5, 3.9, 4.00001])
def test_regimes_that_do_not_add_up(total):
    why = "the regimes do not add up: finished 1 + regimes 3 = 4"
    refused(from_columns, "total_epochs", (0,), total, why, total_epochs=[total, 2.0])
    jobs = [replace(JOBS[0], total_epochs=total), JOBS[1]]
    refused(from_jobs, "jobs.total_epochs", (0,), total, why, jobs=jobs)


def test_an_unfinished_job_without_regimes_does_not_add_up():
    jobs = [JOBS[0], replace(JOBS[1], regimes=[])]
    refused(from_jobs, "jobs.total_epochs", (1,), 2.0, "finished 0 + regimes 0 = 0", jobs=jobs)


def test_regimes_that_add_up_but_for_rounding_are_taken():
    tenths = [eq.Regime(0.1, 60.0)] * 3  # 0.1 + 0.1 + 0.1 != 0.3
    window = from_jobs(jobs=[JOBS[0], replace(JOBS[1], total_epochs=0.3, regimes=tenths)])
    assert window.tables.utility[1, -1] == 1.0


# -- Wide jobs ---------------------------------------------------------------------------------------------------------

WIDE = replace(JOBS[0], id="wide", gpus=5)


def test_a_gang_wider_than_the_cluster_is_an_error():
    why = "wider than the cluster's 4 GPUs; skip_wide=True leaves such jobs out"
    refused(from_jobs, "jobs.gpus", (1,), 5, why, jobs=[JOBS[0], WIDE, JOBS[1]])
    refused(from_columns, "gang_gpus", (1,), 5, why, gang_gpus=[2, 5])


def test_a_gang_as_wide_as_the_cluster_is_none():
    assert from_jobs(gpus=2).skipped == ()


def test_a_wide_job_is_skipped_by_option_with_a_warning_that_points_here():
    jobs = [JOBS[0], WIDE, JOBS[1]]
    with pytest.warns(UserWarning, match=r"1 job\(s\) wider than 4 GPUs left out: \('wide',\)") as heard:
        window = from_jobs(jobs=jobs, skip_wide=True, running=["wide", "b"])
    assert len(heard) == 1
    assert window.skipped == ("wide",)
    assert window.ids == ("a", "b")
    assert window.is_running.tolist() == [False, True]
    without = from_jobs(running=["b"])
    for name in (
        "gang_gpus",
        "finished_epochs",
        "total_epochs",
        "regime_starts",
        "regime_epochs",
        "regime_epoch_s",
        "ftf",
    ):
        assert getattr(window, name).tolist() == getattr(without, name).tolist()
        assert not getattr(window, name).flags.writeable
    assert window.makespan_scale == without.makespan_scale


def test_wide_columns_are_skipped_the_same_way():
    with pytest.warns(UserWarning, match="'a'"):
        window = from_columns(gpus=1, skip_wide=True, running=())
    assert window.skipped == ("a",)
    assert window.ids == ("b",)
    assert window.regime_starts.tolist() == [0, 1]
    assert window.regime_epoch_s.tolist() == [30.0]


def test_the_warning_names_the_callers_line():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        eq.ScheduleWindow([*JOBS, WIDE], gpus=4, skip_wide=True)
        eq.ScheduleWindow.from_columns(**(COLUMNS | {"gpus": 1}), skip_wide=True)
    assert [warning.filename for warning in heard] == [__file__, __file__]


def test_skipping_is_silent_when_there_is_nothing_to_skip():
    assert from_jobs(skip_wide=True).skipped == ()  # a warning would be an error here


def test_nothing_left_after_skipping_is_an_error():
    with pytest.raises(eq.InvalidInput, match="every job is wider than the cluster's 1 GPUs"):
        from_jobs(jobs=[JOBS[0], WIDE], gpus=1, running=(), skip_wide=True)


# -- Frozen ------------------------------------------------------------------------------------------------------------


def test_a_window_is_frozen_and_apart_from_the_callers_arrays():
    gang_gpus = np.array([2, 1])
    window = from_columns(gang_gpus=gang_gpus)
    gang_gpus[0] = 7
    assert window.gang_gpus.tolist() == [2, 1]
    with pytest.raises(AttributeError, match="cannot assign to field"):
        window.gpus = 8
    for name in ("gang_gpus", "finished_epochs", "total_epochs", "regime_starts", "regime_epochs", "regime_epoch_s",
                 "ftf", "weight", "is_running"):  # fmt: skip
        with pytest.raises(ValueError, match="read-only"):
            getattr(window, name)[0] = 1


def test_a_window_is_made_of_jobs_and_eleven_settings_by_name_or_place():
    parameters = inspect.signature(eq.ScheduleWindow).parameters
    assert list(parameters)[:3] == ["jobs", "gpus", "rounds"]
    assert len(parameters) == 12
    assert {each.kind for each in parameters.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert eq.ScheduleWindow(JOBS, 4, 7).rounds == 7
    with pytest.raises(TypeError, match="unexpected keyword argument 'round'"):
        eq.ScheduleWindow.from_columns(**COLUMNS, round=7)


def test_another_windows_jobs_are_taken_with_settings_of_their_own():
    window = from_jobs(running=[JOBS[0].id], rounds=5)
    again = eq.ScheduleWindow(window, gpus=window.gpus, rounds=7)
    assert again.gang_gpus is window.gang_gpus
    assert (again.ids, again.rounds, again.is_running.any()) == (window.ids, 7, False)
    assert again.tables.value.shape == (2, 8)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda window: pickle.loads(pickle.dumps(window))])
def test_a_copy_is_the_same_window_and_frozen_too(copied):
    window = from_jobs(running=[JOBS[0].id])
    value = window.tables.value
    other = copied(window)
    assert other is not window
    assert repr(other) == repr(window)
    for each in dataclasses.fields(window):
        np.testing.assert_array_equal(getattr(other, each.name), getattr(window, each.name))
    assert (other.tables.value == value).all()
    assert eq.solve(other).objective == eq.solve(window).objective
    with pytest.raises(dataclasses.FrozenInstanceError):
        other.rounds = 9
    assert window == window
    assert other != window


@pytest.mark.parametrize("call", ["program", "decode", "encode"])
def test_a_form_that_does_not_exist(call):
    window = from_jobs()
    plan = eq.WindowPlan(window, np.zeros((2, 5), bool))
    arguments = {"program": (), "decode": (np.zeros(3),), "encode": (plan,)}[call]
    with pytest.raises(eq.InvalidInput, match="form = 'count'"):
        getattr(window, call)(*arguments, form="count")


@pytest.mark.parametrize("plan", [None, "plan", np.zeros((2, 5), bool)])
def test_a_warm_start_that_is_no_plan(plan):
    with pytest.raises(eq.InvalidInput, match="must be a WindowPlan of this window"):
        from_jobs().encode(plan)


def test_a_warm_start_of_another_windows_shape():
    window = from_jobs()
    with pytest.raises(eq.InvalidInput, match="must be a WindowPlan of this window"):
        window.encode(eq.WindowPlan(window, np.zeros((2, 6), bool)))
