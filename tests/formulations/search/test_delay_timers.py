"""DelayTimers: timers by demand, their JSON, and what is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import InvalidInput
from equipoise.formulations.search.delay_timers import DelayTimers, TimerPair, as_delay_timers

TIMERS = st.one_of(st.just(math.inf), st.floats(0.0, 1e12), st.integers(0, 10**9))


@given(st.builds(DelayTimers, machine_s=TIMERS, rack_s=TIMERS, by_demand=st.dictionaries(
    st.integers(1, 4096), st.tuples(TIMERS, TIMERS), max_size=5
)))  # fmt: skip
def test_json_gives_the_same_timers(timers):
    assert DelayTimers.from_json(timers.to_json()) == timers
    assert json.loads(timers.to_json(), parse_constant=pytest.fail)["format"] == "equipoise.delays/1"


def test_a_demand_has_its_own_timers_or_the_shared_pair():
    timers = DelayTimers(machine_s=60, rack_s=math.inf, by_demand={16: [0, 5.5], 2: (1.0, math.inf)})
    assert timers.of(2) == TimerPair(1.0, math.inf)
    assert timers.of(16) == (0.0, 5.5)
    assert timers.of(8) == timers.of(1) == (60.0, math.inf)
    assert list(timers.by_demand) == [2, 16]
    assert DelayTimers.manual().of(3) == (12 * 3600, 24 * 3600)


def test_a_file_holds_timers(tmp_path):
    timers = DelayTimers(machine_s=60.0, rack_s=math.inf, by_demand={8: (1.0, 2.0)})
    path = tmp_path / "timers.json"
    text = timers.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    assert json.loads(text) == {
        "format": "equipoise.delays/1", "machine_s": 60.0, "rack_s": "inf",
        "by_demand": {"8": {"machine_s": 1.0, "rack_s": 2.0}},
    }  # fmt: skip
    assert DelayTimers.read(path) == as_delay_timers("timers", str(path)) == as_delay_timers("timers", timers) == timers


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"machine_s": -1}, "machine_s = -1: at least 0"),
        ({"rack_s": math.nan}, "rack_s = nan: must be finite"),
        ({"rack_s": -math.inf}, "rack_s = -inf: must be finite"),
        ({"rack_s": True}, "rack_s = True: must be a number"),
        ({"rack_s": "12"}, "rack_s = '12': must be a number"),
        ({"by_demand": [(8, (1, 2))]}, "by_demand = 'list': must map demands to pairs of timers"),
        ({"by_demand": {0: (1, 2)}}, "by_demand = 0: at least 1"),
        ({"by_demand": {2.5: (1, 2)}}, r"by_demand = 2\.5: must be a whole number"),
        ({"by_demand": {8: 5}}, r"by_demand\[8\] = 5: must be a pair of timers"),
        ({"by_demand": {8: (1, 2, 3)}}, r"by_demand\[8\] = .*must be a pair of timers"),
        ({"by_demand": {8: (1, -2)}}, r"by_demand\[8\]\.rack_s = -2: at least 0"),
    ],
)
def test_timers_out_of_range_are_refused(given, why):
    with pytest.raises(InvalidInput, match=why):
        DelayTimers(**{"machine_s": 1.0, "rack_s": 2.0, **given})


def changed(**changes):
    """Return the JSON of timers with other entries; None leaves one out."""
    content = {"format": "equipoise.delays/1", "machine_s": 1.0, "rack_s": 2.0, "by_demand": {}, **changes}
    return json.dumps({name: value for name, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "text = '': is no JSON"),
        ("machine_s: 5", "text = 'machine_s: 5': is no JSON"),
        ("[1, 2]", "text = 'list': must be an object of JSON"),
        (changed(format="equipoise.delays/2"), "format = 'equipoise.delays/2': must be 'equipoise.delays/1'"),
        (changed(format=None), "format = None: must be 'equipoise.delays/1'"),
        (changed(machine_s=None), "machine_s = None: missing from the timers"),
        (changed(rack_s=None), "rack_s = None: missing from the timers"),
        (changed(machine_s=-5), "machine_s = -5: at least 0"),
        (changed(machine_s=math.nan), "machine_s = nan: must be finite"),
        (changed(machine_s="5"), "machine_s = '5': must be a number"),
        (changed(machine_s=[5]), r"machine_s = \[5\]"),
        (changed(by_demand=[8]), "by_demand = 'list': must be an object of JSON"),
        (changed(by_demand={"eight": {}}), "by_demand = 'eight': must be a number of GPUs"),
        (changed(by_demand={"0": {"machine_s": 1, "rack_s": 2}}), "by_demand = '0': must be a number of GPUs"),
        (changed(by_demand={"08": {"machine_s": 1, "rack_s": 2}}), "by_demand = '08': must be a number of GPUs"),
        (changed(by_demand={"8": [1, 2]}), r"by_demand\[8\] = \[1, 2\]: must be an object of JSON"),
        (changed(by_demand={"8": {"machine_s": 1}}), r"by_demand\[8\]\.rack_s = None: missing from the timers"),
        (changed(by_demand={"8": {"machine_s": 1, "rack_s": -1}}), r"by_demand\[8\]\.rack_s = -1: at least 0"),
    ],
)  # fmt: skip
def test_files_that_hold_no_timers_are_refused(tmp_path, text, why):
    path = tmp_path / "timers.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=why):
        DelayTimers.read(path)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"path = '.*: No such file"):
        DelayTimers.read(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="is not a text file in UTF-8"):
        DelayTimers.read(tmp_path / "bytes")
    with pytest.raises(InvalidInput, match="timers = 'int': must be DelayTimers or the path of their file"):
        as_delay_timers("timers", 5)
