"""The picture of delay timers: a line for each tier and demand, as high as the timer, with gaps for infinity."""

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import DurationSpeeds, TimerLog, simulate_placement, timers_picture

CLUSTER = Cluster(gpus_by_type={"gpu": 32}, machines=4, racks=2)
SVG = "{http://www.w3.org/2000/svg}"
# Panels: where each begins and ends, in pixels.
TOPS, HEIGHT, LEFT, WIDTH = (26, 202), 110, 46, 484


@pytest.fixture(scope="module")
def result():
    trace = Trace(
        job_id=["a", "b"], model=["m", "m"], gang_gpus=[8, 16], arrival_s=[0.0, 0.0], duration_s=[7200.0, 36000.0]
    )
    return simulate_placement(trace, make_policy("dally"), cluster=CLUSTER, speeds=DurationSpeeds())


def lines(svg):
    """Return (class, tip, points) of each line."""
    found = []
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if (tip := path.findtext(f"{SVG}title")) is not None:
            numbers = [float(number) for number in re.findall(r"[0-9.]+", path.get("d"))]
            corners = [(numbers[0], numbers[1]), *zip(numbers[2::2], numbers[3::2], strict=True)]
            found.append((path.get("class"), tip, corners))
    return found


def test_a_line_has_the_height_of_the_timer_from_each_change_on(result, tmp_path):
    hour = 3600.0
    log = TimerLog.of(
        [(0.0, 0, 8, 4 * hour), (0.0, 1, 8, 8 * hour), (5 * hour, 0, 8, 2 * hour), (5 * hour, 1, 16, 1 * hour)]
    )
    path = tmp_path / "timers.svg"
    svg = timers_picture(replace(result, timers=log), until_s=10 * hour, path=path)
    assert path.read_text(encoding="utf-8") == svg
    machine, rack, wide = lines(svg)
    top = 8 * 1.06

    def at(tier, hours_across, hours_up):
        across, up = LEFT + WIDTH * hours_across / 10, TOPS[tier] + HEIGHT * (1 - hours_up / top)
        return pytest.approx((across, up), abs=0.11)

    assert [machine[2], rack[2]] == [[at(0, 0, 4), at(0, 5, 2), at(0, 10, 2)], [at(1, 0, 8), at(1, 10, 8)]]
    assert wide[2] == [at(1, 5, 1), at(1, 10, 1)]
    # One colour a demand, in both panels.
    assert machine[0] == rack[0] != wide[0]
    assert [each[1] for each in (machine, rack, wide)] == [
        "8 GPUs: timer of a machine",
        "8 GPUs: timer of a rack",
        "16 GPUs: timer of a rack",
    ]


def test_infinite_timers_and_those_that_are_not_consulted_are_left_out(result):
    # A demand of 16 is wider than a machine, one of 24 wider than a rack.
    unused = [(0.0, 0, 16, 9.0), (0.0, 0, 24, 9.0), (0.0, 1, 24, 9.0)]
    used = [(0.0, 1, 4, math.inf), (50.0, 1, 4, 5.0), (60.0, 1, 4, math.inf), (70.0, 1, 4, 6.0)]
    log = TimerLog.of(unused + used)
    found = lines(timers_picture(replace(result, timers=log), until_s=100.0))
    assert [tip for _, tip, _ in found] == ["4 GPUs: timer of a rack"] * 2
    edges = [(corners[0][0], corners[-1][0]) for *_, corners in found]
    assert np.allclose(edges, [(LEFT + WIDTH * 0.5, LEFT + WIDTH * 0.6), (LEFT + WIDTH * 0.7, LEFT + WIDTH)], atol=0.1)


def test_a_run_of_the_policy_is_drawn(result):
    assert len(result.timers) > 0
    assert (np.diff(result.timers.time_s) >= 0).all()
    assert list(result.tables()) == ["jobs", "levels", "solves", "timers"]
    assert result.tables()["timers"].columns.tolist() == ["time_s", "tier", "demand", "timer_s"]
    assert lines(timers_picture(result))
    many = TimerLog.of([(float(k), 0, 8, float(k % 7)) for k in range(5000)])
    assert max(len(corners) for *_, corners in lines(timers_picture(replace(result, timers=many)))) <= 401


def test_a_log_without_changes_is_an_empty_picture(result):
    empty = replace(result, timers=TimerLog.of([]))
    assert lines(timers_picture(empty)) == []
    assert empty.tables()["timers"].empty


def test_a_policy_that_tunes_nothing_has_no_picture(result):
    none = simulate_placement(
        result.trace, make_policy("dally-manual"), cluster=CLUSTER, speeds=DurationSpeeds(), record=False
    )
    assert none.timers is None
    assert "timers" not in none.tables()
    with pytest.raises(InvalidInput, match="timers = None: policy dally-manual tunes no timers"):
        timers_picture(none)
