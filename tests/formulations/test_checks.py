"""The checks of input: what they accept comes out as arrays of one type, what they refuse is named."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from equipoise.formulations.checks import (
    LARGEST_INTEGER,
    as_flag,
    as_ids,
    as_integer,
    as_integers,
    as_real,
    as_reals,
    same_length,
)
from equipoise.formulations.errors import EquipoiseError, InvalidInput


def refused(check, *arguments, **limits) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        check(*arguments, **limits)
    return caught.value


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1))
def test_integers_come_back_as_they_are_and_read_only(values):
    for given_as in (values, tuple(values), np.array(values), pd.Series(values)):
        array = as_integers("x", given_as)
        assert array.tolist() == values
        assert array.dtype == np.int64
        assert not array.flags.writeable


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_reals_come_back_as_they_are_and_read_only(values):
    array = as_reals("x", values)
    assert array.tolist() == values
    assert array.dtype == np.float64
    assert not array.flags.writeable


def test_the_callers_array_is_copied():
    mine = np.array([1.0, 2.0])
    array = as_reals("x", mine)
    mine[0] = 9.0
    assert array.tolist() == [1.0, 2.0]
    assert mine.flags.writeable


@given(st.lists(st.floats(), min_size=1), st.floats(-10, 10), st.floats(0, 10))
def test_the_first_value_out_of_range_is_named(values, minimum, width):
    def good(value: float) -> bool:
        return math.isfinite(value) and minimum <= value <= minimum + width

    bad = [i for i, value in enumerate(values) if not good(value)]
    if not bad:
        assert as_reals("x", values, minimum=minimum, maximum=minimum + width).tolist() == values
        return
    error = refused(as_reals, "x", values, minimum=minimum, maximum=minimum + width)
    # Values that are not finite come first, then those too small, then those too large.
    wrong = [i for i, v in enumerate(values) if not math.isfinite(v)]
    wrong = wrong or [i for i, v in enumerate(values) if v < minimum] or bad
    assert error.index == (wrong[0],)
    assert repr(error.value) == repr(values[wrong[0]])


def test_whole_floats_and_fractions_are_integers_and_halves_are_not():
    assert as_integers("x", [2.0, 3.0]).tolist() == [2, 3]
    assert as_integers("x", [Fraction(4, 2)]).tolist() == [2]
    assert as_integer("x", 2.0) == 2
    assert type(as_integer("x", np.float64(2.0))) is int
    assert refused(as_integers, "x", [1, 2.5]).index == (1,)
    assert refused(as_integer, "x", 2.5).why == "must be a whole number"


def test_integers_that_floats_cannot_hold_are_refused():
    assert as_integers("x", [LARGEST_INTEGER]).tolist() == [2**53]
    error = refused(as_integers, "x", [1, LARGEST_INTEGER + 2])
    assert (error.index, error.value) == ((1,), 2**53 + 2)
    assert refused(as_integers, "x", [1, 2**70]).index == (1,)
    assert "too large" in refused(as_reals, "x", [1, 10**400]).why


@pytest.mark.parametrize("check", [as_reals, as_integers])
@pytest.mark.parametrize("bad", [True, np.True_, "3", b"3", None, 1j, [1], object()])
@pytest.mark.parametrize("others", [[], [1], [1, 2.5]])
def test_what_is_no_number_is_found_among_numbers(check, bad, others):
    error = refused(check, "x", [*others, bad])
    assert error.field == "x"
    assert error.index == (len(others),)
    assert error.value is bad


@pytest.mark.parametrize("check", [as_reals, as_integers])
def test_arrays_of_other_types(check):
    assert refused(check, "x", np.array([True, False])).why == "must be a number, not a truth value"
    assert refused(check, "x", np.array(["1", "2"])).index == (0,)
    assert refused(check, "x", np.array([1, None], dtype=object)).index == (1,)
    assert refused(check, "x", pd.Series([1.0, None, "a"])).index == (1,)
    assert check("x", np.array([1, 2], dtype=object)).tolist() == [1, 2]


@pytest.mark.parametrize("check", [as_reals, as_integers])
def test_what_is_no_plain_array(check):
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]])
    assert refused(check, "x", masked, ndim=2).index == (1, 1)
    assert check("x", np.ma.masked_array([1, 2])).tolist() == [1, 2]
    assert refused(check, "x", csr_array(np.eye(2)), ndim=2).why == "must be a dense array here"
    assert refused(check, "x", {1, 2}).why == "must be a sequence of numbers"


@pytest.mark.parametrize("check", [as_reals, as_integers])
def test_shapes(check):
    assert check("x", [[1, 2], [3, 4]], ndim=2).shape == (2, 2)
    assert "must have 1 dimension" in refused(check, "x", np.ones((2, 2))).why
    assert "must have 2 dimension" in refused(check, "x", [1, 2], ndim=2).why
    assert "must have shape (3,)" in refused(check, "x", [1, 2], shape=(3,)).why
    assert "one shape" in refused(check, "x", [[1, 2], [3]], ndim=2).why
    assert refused(check, "x", [[1, 2], [3, math.nan]], ndim=2).index == (1, 1)
    assert refused(check, "x", 3).why == "must have 1 dimension(s)"


@pytest.mark.parametrize("check", [as_reals, as_integers])
def test_empty_is_refused_unless_allowed(check):
    assert refused(check, "x", []).why == "must not be empty"
    assert check("x", [], empty=True).size == 0


def test_limits_are_inclusive_and_above_is_not():
    assert as_reals("x", [0.0, 1.0], minimum=0.0, maximum=1.0).tolist() == [0.0, 1.0]
    assert as_real("x", 1.0, minimum=1.0, maximum=1.0) == 1.0
    assert refused(as_reals, "x", [1.0, 0.0], above=0.0).index == (1,)
    assert refused(as_real, "x", 0.0, above=0.0).why == "must be greater than 0"
    assert refused(as_real, "x", 1.5, maximum=1.0).why == "at most 1"
    assert refused(as_integer, "x", 0, minimum=1).why == "at least 1"
    assert refused(as_integer, "x", 10**7, maximum=10**4).why == "at most 10000"


@pytest.mark.parametrize(
    "bad", [True, np.True_, "1", None, [1], math.nan, math.inf, -math.inf, 10**400, np.array([1.0])]
)
@pytest.mark.parametrize("check", [as_real, as_integer])
def test_one_bad_number(check, bad):
    error = refused(check, "x", bad)
    assert error.field == "x"
    assert error.index is None


def test_numpy_and_exact_scalars_become_pythons():
    assert type(as_real("x", np.float32(0.5))) is float
    assert type(as_integer("x", np.int8(5))) is int
    assert as_real("x", Fraction(1, 4)) == 0.25


@pytest.mark.parametrize("bad", [0, 1, "no", None, [], 1.0])
def test_flags_are_truth_values_only(bad):
    assert as_flag("x", np.True_) is True
    assert as_flag("x", False) is False
    assert refused(as_flag, "x", bad).value == bad


def test_ids_keep_their_type():
    assert as_ids("x", ["a", 1, "1"]) == ("a", 1, "1")
    assert as_ids("x", np.array([3, 5])) == (3, 5)
    assert all(type(each) is int for each in as_ids("x", np.array([3, 5])))
    assert as_ids("x", np.array(["a", "b"])) == ("a", "b")


@pytest.mark.parametrize(
    ("ids", "index", "why"),
    [
        (["a", "b", "a"], (2,), "the same id as x[0]; ids must be unique"),
        ([1, 2, 2], (2,), "the same id as x[1]; ids must be unique"),
        ([1, True], (1,), "an id must be text or a whole number"),
        ([1.0], (0,), "an id must be text or a whole number"),
        (["a", None], (1,), "an id must be text or a whole number"),
        (["a", ("b",)], (1,), "an id must be text or a whole number"),
        (["a", []], (1,), "an id must be text or a whole number"),
        (["a", ""], (1,), "an id must not be empty"),
        ("abc", None, "must be a sequence of ids, not text"),
    ],
)
def test_bad_ids(ids, index, why):
    error = refused(as_ids, "x", ids)
    assert (error.field, error.index, error.why) == ("x", index, why)


@pytest.mark.parametrize("ids", [None, 5])
def test_ids_that_are_no_sequence(ids):
    assert refused(as_ids, "x", ids).field == "x"


def test_lengths_are_measured_against_the_last():
    same_length(a=[1, 2], b=np.zeros(2), c=(3, 4))
    error = refused(same_length, a=[1, 2], b=np.zeros(3), c=(3, 4))
    assert (error.field, error.why) == ("b", "b has length 3, c has length 2")


def test_the_error_says_where_what_and_why_and_is_a_value_error():
    error = InvalidInput("x", math.nan, "must be finite", index=(3, 1))
    assert str(error) == "x[3, 1] = nan: must be finite"
    assert str(InvalidInput("x", "a", "no", index=2)) == "x[2] = 'a': no"
    assert str(InvalidInput("x", 1, "no")) == "x = 1: no"
    assert len(str(InvalidInput("x", "a" * 1000, "no"))) < 100
    assert isinstance(error, ValueError)
    assert isinstance(error, EquipoiseError)
