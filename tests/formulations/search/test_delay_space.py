"""Space of delay timers: its scale, the timers that have variables, and the policies that are starts."""

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.search.delay_space import STARTS, DelaySpace, place_of, timer_of
from equipoise.formulations.search.delay_timers import DelayTimers

H = 3600.0


def space(**changes):
    return DelaySpace(**{"demands": [1, 2, 4, 8, 16, 64, 80], "machine_gpus": 8, "rack_gpus": 64, **changes})


def test_the_scale_rises_from_none_to_infinity():
    timers = [timer_of(place) for place in np.linspace(0.0, 1.0, 2001)]
    assert timers == sorted(timers)
    assert (timers[0], timers[1000], timers[-1]) == (0.0, 12 * H, math.inf)
    assert max(each for each in timers if math.isfinite(each)) <= 100 * 24 * H
    assert timer_of(0.93) < math.inf == timer_of(0.94)


@pytest.mark.parametrize("timer_s", [0.0, 1.0, 600.0, 3600.0, 43200.0, 86400.0, 604800.0, 8.64e6, math.inf])
def test_a_place_gives_its_timer_to_the_second(timer_s):
    assert 0.0 <= place_of(timer_s) <= 1.0
    assert timer_of(place_of(timer_s)) == timer_s


def test_only_timers_that_can_change_a_decision_are_variables():
    names = [each.name for each in space().variables]
    assert names == [
        "machine[2]", "machine[4]", "machine[8]", "rack[2]", "rack[4]", "rack[8]", "rack[16]", "rack[64]",
    ]  # fmt: skip
    assert [each.name for each in space(rack_gpus=0).variables] == names[:3]
    assert [each.name for each in space(machine_gpus=0).variables] == names[3:]
    assert [each.name for each in space(name="shared").variables] == ["machine", "rack"]
    assert [each.name for each in space(name="shared", demands=[16]).variables] == ["rack"]


@pytest.mark.parametrize("name", ["by_demand", "shared"])
@pytest.mark.parametrize("rack_gpus", [0, 64])
def test_the_starts_are_these_policies(name, rack_gpus):
    found = space(name=name, rack_gpus=rack_gpus)
    assert list(found.corners) == list(STARTS) == ["nowait", "manual", "consolidated"]
    for start, vector in found.corners.items():
        timers = found.decode(vector)
        for demand in (2, 3, 4, 8):
            assert timers.of(demand).machine_s == STARTS[start].machine_s
            assert timers.of(demand).rack_s == (STARTS[start].rack_s if rack_gpus else 0.0)
        np.testing.assert_array_equal(found.encode(timers), vector)


def test_a_demand_without_timers_takes_the_middle_ones():
    found = space(demands=[2, 4, 8])
    vector = np.array([place_of(each) for each in (60.0, 120.0, math.inf, 600.0, 300.0, 900.0)])
    timers = found.decode(vector)
    assert timers == DelayTimers(
        machine_s=120.0, rack_s=600.0, by_demand={2: (60.0, 600.0), 4: (120.0, 300.0), 8: (math.inf, 900.0)}
    )
    assert timers.of(5) == (120.0, 600.0)
    assert DelayTimers.from_json(timers.to_json()) == timers


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "polar"}, "space = 'polar': must be one of by_demand, shared"),
        ({"demands": [1, 80]}, "train = 'demands 1, 80': no timer can change a decision"),
        ({"machine_gpus": 0, "rack_gpus": 0}, "train = .*no timer can change a decision"),
    ],
)
def test_a_bad_space_is_refused_by_name(changes, message):
    with pytest.raises(eq.InvalidInput, match=message):
        space(**changes)
