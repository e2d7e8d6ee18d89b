"""The arithmetic of a pair against values by hand, and the rule against both ends."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.formulations.gpu_sharing.pair_rule import pair_ends, shares_at_once

times = st.integers(1, 60).map(lambda n: Fraction(n, 4))
ratios = st.integers(1, 44).map(lambda n: Fraction(n, 4))


@pytest.mark.parametrize(
    ("data", "delay", "ends"),
    [
        ((100.0, 1.0, 2.0, 2.0), 0.0, (101.0, 2.0)),  # W ends first: R loses 1 of its 2 shared seconds
        ((100.0, 1.0, 2.0, 2.0), 100.0, (100.0, 101.0)),
        ((100.0, 1.0, 2.0, 2.0), 99.0, (101.0, 101.0)),
        ((10.0, 10.0, 2.0, 4.0), 0.0, (20.0, 25.0)),  # R ends first: W has done 5 of 10 by then
        ((10.0, 10.0, 2.0, 4.0), 4.0, (16.0, 23.0)),
        ((10.0, 10.0, 2.0, 4.0), 12.0, (10.0, 22.0)),
    ],
)
def test_ends_by_hand(data, delay, ends):
    assert pair_ends(*data, delay) == ends


@given(times, times, ratios, ratios)
def test_the_rule_is_the_comparison_of_both_ends(a, b, x, y):
    at_once, sequential = (sum(pair_ends(a, b, x, y, delay)) for delay in (Fraction(0), a))
    assert shares_at_once(a, b, x, y) == (at_once <= sequential)


@pytest.mark.parametrize(("ratio", "shares"), [(1.0, True), (1.5, True), (1.5000001, False), (11.0, False)])
def test_equal_ratios_share_up_to_one_and_a_half(ratio, shares):
    assert shares_at_once(10.0, 10.0, ratio, ratio) is shares


def test_the_sign_of_the_second_slope_is_no_rule():
    a, b, x, y = 100.0, 1.0, 2.0, 2.0
    assert x + 2 * y - 2 * x * y < 0
    assert shares_at_once(a, b, x, y)
    assert [sum(pair_ends(a, b, x, y, delay)) / 2 for delay in (0.0, 100.0)] == [51.5, 100.5]


def test_equal_jobs_at_equal_ratios_are_compared_exactly_in_floats():
    assert shares_at_once(0.1, 0.1, 1.5, 1.5)
    assert shares_at_once(0.3, 0.1 * 3, 1.5, 1.5)
