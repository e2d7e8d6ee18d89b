"""Speedup tables: reading, limits of demand, sizes, and every fault of a file."""

import json

import numpy as np
import pytest
from fluid_cases import PCS

from equipoise import InvalidInput
from equipoise.simulation import Trace
from equipoise.simulation.fluid import Speedups


def test_the_own_tables_follow_their_formula():
    speedups = Speedups.builtin()
    assert list(speedups.tables) == ["linear", "light", "medium", "heavy"]
    assert speedups.curve("heavy", 2).tolist() == [0.0, 1.0, 2.0 / 1.15]
    assert speedups.curve("anything").tolist() == speedups.curve("medium").tolist()
    assert len(speedups.curve("linear", 100)) == 65


def test_a_file_gives_tables_groups_and_a_formula(tmp_path):
    path = tmp_path / "speedups.json"
    models = {"a": {"speedup": [1, 1.5]}, "b": {"formula": "speedup(g) = g, g=0..3", "max_gpus": 3}}
    path.write_text(json.dumps({"models": models, "groups": {"all": ["a", "b"]}, "default": [1.0]}), encoding="utf-8")
    speedups = Speedups.read(path)
    assert speedups.curve("a").tolist() == [0.0, 1.0, 1.5]
    assert speedups.curve("b").tolist() == [0.0, 1.0, 2.0, 3.0]
    assert speedups.curve("c").tolist() == [0.0, 1.0]
    assert speedups.groups["all"] == ("a", "b")


def test_the_published_tables_are_read():
    path = PCS / "speedups.json"
    if not path.exists():
        pytest.skip("the published tables are not there")
    speedups = Speedups.read(path)
    assert len(speedups.groups["realistic"]) == 9
    assert all(len(speedups.curve(model)) > 4 for model in speedups.groups["realistic"])
    assert speedups.curve("LinearModel", 5).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "models"),
        ('{"models": {}}', "must name at least one model"),
        ('{"models": {"a": 3}}', r"models\[a\] = 'int'"),
        ('{"models": {"a": {}}}', r"models\[a\] = None: must have \"speedup\""),
        ('{"models": {"a": {"speedup": []}}}', r"tables\[a\] = '\[\]': must not be empty"),
        ('{"models": {"a": {"speedup": [1, 0]}}}', r"tables\[a\]\[1\] = 0.0: must be greater than 0"),
        ('{"models": {"a": {"speedup": [2, 3]}}}', r"tables\[a\]\[0\] = 2.0: must be 1"),
        ('{"models": {"a": {"formula": "speedup(g)=g", "max_gpus": 0}}}', r"models\[a\].max_gpus = 0"),
        ('{"models": {"a": {"speedup": [1]}}, "groups": {"g": ["b"]}}', r"groups\[g\]\[0\] = 'b': has no table"),
        ('{"models": {"a": {"speedup": [1]}}, "groups": []}', "groups = 'list'"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, message):
    path = tmp_path / "speedups.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=message):
        Speedups.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="path"):
        Speedups.read(tmp_path / "none.json")


def test_sizes_come_from_the_trace():
    speedups = Speedups(tables={"a": [1.0, 1.5]})
    columns = {"job_id": [0], "model": ["a"], "gang_gpus": [4], "arrival_s": [0.0], "duration_s": [2.0]}
    assert speedups.sizes_s(Trace(**columns)).tolist() == [3.0]
    assert speedups.sizes_s(Trace(**columns, size_s=[7.0])).tolist() == [7.0]
    np.testing.assert_array_equal(speedups.curve_of(Trace(**columns), 0), [0.0, 1.0, 1.5])
