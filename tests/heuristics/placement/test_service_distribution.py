"""Distributions of service, and the Gittins index against closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.heuristics.placement.service_distribution import ServiceDistribution


@pytest.mark.parametrize("attained", [0, Fraction(1, 3), 3, 4, 9, Fraction(99, 10)])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)])
def test_the_index_of_two_points_is_exact(attained, share):
    """S is 4 with probability p, else 10: the better of stopping at 4 and of going on to the end."""
    found = ServiceDistribution([10, 4], [1 - share, share])
    if attained < 4:
        to_first = share / (4 - attained)  # everyone receives 4 - a
        wanted = max(to_first, 1 / (share * (4 - attained) + (1 - share) * (10 - attained)))
    else:
        wanted = Fraction(1) / (10 - attained)
    assert found.index(attained) == wanted
    assert isinstance(found.index(attained), Fraction)
    quantum = Fraction(5)
    ending = (share if attained < 4 else 0) + ((1 - share) if 10 - attained <= quantum else 0)
    if attained >= 4:
        mean = min(10 - attained, quantum) * (1 - share)
    else:
        mean = share * min(4 - attained, quantum) + (1 - share) * min(10 - attained, quantum)
    assert found.index(attained, quantum) == ending / mean


def test_the_index_is_zero_where_no_job_ends():
    found = ServiceDistribution([Fraction(4), Fraction(10)])
    assert found.index(10) == found.index(11) == found.index(10, math.inf) == 0
    assert found.index(0, 3) == 0
    assert found.index(0, 4) == Fraction(1, 8)
    assert found.index(0, math.inf) == found.index(0, 10) == Fraction(1, 7)


@pytest.mark.parametrize("rate", [0.01, 2.0])
@pytest.mark.parametrize("quantum", [0.1, 1.0, 5.0, None])
def test_the_index_of_an_exponential_is_its_rate(rate, quantum):
    """The exponential rounded up to multiples of h is geometric.

    With q = exp(-rate h), at a = i h and d = k h: P(S - a <= d) = 1 - q^k and E[min(S - a, d)] = h (1 - q^k) / (1 - q).
    The index is (1 - q) / h for all a and d, and rate (1 - rate h / 2) < (1 - q) / h < rate. The values beyond n h are
    left out, which changes a moment by a relative q^(n - i) n at most, below 1e-15.
    """
    step, count = 0.001 / rate, 60_000
    decay = math.exp(-rate * step)
    numbers = np.arange(1, count + 1)
    found = ServiceDistribution(numbers * step, decay ** (numbers - 1.0) * (1.0 - decay))
    for place in (0, 1000, 7000):
        # A quantum a hundredth of a step too long, so that rounding of a + d moves no value across it: it is a relative
        # 0.01 / k of the service at most.
        steps = None if quantum is None else round(quantum * 1000)
        index = found.index(place * step, None if steps is None else (steps + 0.01) * step)
        # Rounding of sums of `count` numbers up to E[S] = 1 / rate, relative to the service in one step, h q^i.
        rounding = count * 2.0**-53 / (rate * step * math.exp(-rate * step * place))
        tolerance = rounding + (0.0 if steps is None else 0.01 / steps)
        assert index == pytest.approx((1.0 - decay) / step, rel=tolerance)
        assert abs(index / rate - 1.0) <= rate * step / 2 + tolerance


def test_the_supremum_is_over_the_points_and_no_other_quantum_is_better():
    found = ServiceDistribution([Fraction(value) for value in (3, 5, 5, 8, 13, 21)])
    for attained in (0, 1, 3, 5, Fraction(13, 2), 20):
        quanta = [Fraction(number, 7) for number in range(1, 200)]
        assert found.index(attained) >= max(found.index(attained, quantum) for quantum in quanta)
        assert found.index(attained) in [
            found.index(attained, value - attained) for value in found.values if value > attained
        ]


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (([],), "^values"),
        (([1, 0],), r"^values\[1\] = 0"),
        (([1, math.nan],), r"^values\[1\] = nan"),
        (([1, 2], [1]), "^weights = '1 weights'"),
        (([1, 2], [1, -1]), r"^weights\[1\] = -1"),
        (([1, 2], [1, 0]), r"^weights\[1\] = 0"),
    ],
)
def test_distributions_are_refused(arguments, pattern):
    with pytest.raises(InvalidInput, match=pattern):
        ServiceDistribution(*arguments)
