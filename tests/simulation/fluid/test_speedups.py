"""Speedup tables: reading, limits of demand, sizes, and every fault of a file."""

import json

import numpy as np
import pytest
from fluid_cases import PCS

from equipoise import InvalidInput
from equipoise.heuristics import make_policy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.fluid import Speedups, simulate_fluid


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


TYPES = {
    "gpu_type": "v100",
    "models": {"a": {"speedup": [1, 1.9, 2.7, 3.4], "spread": [1, 1.5, 2.0, 2.5]}, "b": {"speedup": [1, 2]}},
    "gpu_types": {"k80": {"models": {"a": {"speedup": [1, 2, 3], "rate": 0.25}}}},
}


def test_speedups_by_gpu_type_and_by_machines(tmp_path):
    path = tmp_path / "speedups.json"
    path.write_text(json.dumps(TYPES), encoding="utf-8")
    speedups = Speedups.read(path)
    for cluster in (8, {"v100": 8}):
        assert speedups.on(Cluster.of(cluster)).curve("a").tolist() == [0.0, 1.0, 1.9, 2.7, 3.4]
    machines = speedups.on(Cluster(gpus_by_type={"v100": 8}, gpus_per_machine=2))
    assert machines.curve("a").tolist() == [0.0, 1.0, 1.9, 2.0, 2.5]
    assert machines.curve("b").tolist() == [0.0, 1.0, 2.0]
    trace = Trace(job_id=[0], model=["a"], gang_gpus=[4], arrival_s=[0.0], size_s=[100.0])
    slow = speedups.on(Cluster.of({"k80": 8}))
    assert slow.curve("a").tolist() == [0.0, 1.0, 2.0, 3.0]
    assert slow.sizes_s(trace).tolist() == [400.0]
    with pytest.raises(InvalidInput, match="cluster = 'p100': the speedups are of the GPU types v100, k80"):
        speedups.on(Cluster.of({"p100": 8}))
    # Without named types, those of the tables hold for any.
    assert Speedups.builtin().on(Cluster.of({"p100": 8})).curve("linear", 2).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("cluster", "end_s"), [(4, 100 / 3.4), ({"v100": 4}, 100 / 3.4), ({"k80": 4}, 400 / 3)])
def test_the_engine_takes_the_speedups_of_its_gpu_type(tmp_path, cluster, end_s):
    path = tmp_path / "speedups.json"
    path.write_text(json.dumps(TYPES), encoding="utf-8")
    trace = Trace(job_id=[0], model=["a"], gang_gpus=[4], arrival_s=[0.0], size_s=[100.0])
    policy = make_policy("fifo", "fluid")
    result = simulate_fluid(trace, policy, cluster=Cluster.of(cluster), speedups=Speedups.read(path), compiled=False)
    assert result.end_s.tolist() == [pytest.approx(end_s, rel=1e-15)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spread": {"a": [1.0]}}, r"spread\[a\] = '1 entries': must be as long as its table, which has 2 entries"),
        ({"spread": {"b": [1.0, 2.0]}}, r"spread\[b\] = '2 entries': must be as long as its table, which has 0"),
        ({"spread": {"a": [1.0, -2.0]}}, r"spread\[a\]\[1\] = -2.0: must be greater than 0"),
        ({"rates": {"a": 0.0}}, r"rates\[a\] = 0.0: must be greater than 0"),
        ({"rates": {"b": 1.0}}, "rates = 'b': has no table"),
        ({"by_type": {"k80": 3}}, r"by_type\[k80\] = 'int': must be Speedups of one GPU type"),
    ],
)
def test_bad_speedups_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        Speedups(tables={"a": [1.0, 2.0]}, **change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ('{"models": {"a": {"speedup": [1]}}, "gpu_types": []}', "gpu_types = 'list': must be an object"),
        ('{"models": {"a": {"speedup": [1]}}, "gpu_types": {"k": 3}}', "models = .*must be an object"),
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
