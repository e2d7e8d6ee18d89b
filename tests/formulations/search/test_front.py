"""Fronts: what is refused, the choice of a point, tables and files."""

import json

import numpy as np
import pytest

import equipoise as eq

GOOD = {
    "variables": ("x", "y"),
    "objectives": ("jct:avg", "pred_error:p99"),
    "vectors": [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]],
    "scores": [[1.0, 9.0], [2.0, 2.0], [8.0, 1.0]],
    "configurations": ({"k": 1}, {"k": 2}, {"k": 3}),
    "ideal": [0.0, 0.0],
    "reference": [10.0, 10.0],
}
HELD_OUT = [[1.5, 9.0], [2.5, 2.0], [8.5, 1.0]]


def front(**changes):
    return eq.ParetoFront(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scores", [[1.0, 9.0], [2.0, 2.0], [2.0, 3.0]]),  # dominated
        ("scores", [[1.0, 9.0], [1.0, 9.0], [8.0, 1.0]]),  # equal
        ("scores", [[1.0, np.nan], [2.0, 2.0], [8.0, 1.0]]),
        ("scores", [[1.0], [2.0], [8.0]]),
        ("vectors", [[0.0, 1.0], [1.0, 1.0]]),
        ("vectors", [[0.0, 1.0], [1.0, np.inf], [2.0, 0.0]]),
        ("ideal", [0.0]),
        ("reference", [0.0, "ten"]),
        ("configurations", ({"k": 1},)),
        ("held_out", [[1.0, 2.0]]),
        ("objectives", ("jct:avg", "jct:avg")),
        ("objectives", "jct:avg"),
    ],
)
def test_a_bad_field_is_refused_by_name(field, value):
    with pytest.raises(eq.InvalidInput) as caught:
        front(**{field: value})
    assert caught.value.field == field


def test_a_dominated_point_is_named():
    with pytest.raises(eq.InvalidInput, match=r"scores\[2\]"):
        front(scores=[[1.0, 9.0], [2.0, 2.0], [2.0, 3.0]])


def test_points_by_name_weights_and_limits():
    found = front()
    assert found.pick("jct").index == 0
    assert found.pick("pred").index == 2
    assert found.pick().index == found.pick("balanced").index == 1
    assert found.pick(weights={"jct:avg": 1.0}).index == 0
    assert found.pick(weights={"jct:avg": 1.0, "pred_error:p99": 100.0}).index == 2
    assert found.pick(limits={"jct:avg": 5.0}).index == 1  # the least error within the limit
    assert found.pick("jct", limits={"pred_error:p99": 5.0}).index == 1
    assert found[-1].scores == {"jct:avg": 8.0, "pred_error:p99": 1.0}
    assert found[1].vector == {"x": 1.0, "y": 1.0}
    assert found[1].configuration == {"k": 2}


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("name", {"name": "fastest"}),
        ("weights", {"name": "jct", "weights": {"jct:avg": 1.0}}),
        ("weights", {"weights": {"jct:p50": 1.0}}),
        ("weights", {"weights": {"jct:avg": 0.0}}),
        ("weights['jct:avg']", {"weights": {"jct:avg": -1.0}}),
        ("limits", {"limits": {"jct:avg": 0.5}}),
        ("limits", {"limits": {"unfairness": 0.5}}),
        ("limits['jct:avg']", {"limits": {"jct:avg": "low"}}),
    ],
)
def test_a_bad_choice_is_refused_by_name(field, options):
    with pytest.raises(eq.InvalidInput) as caught:
        front().pick(**options)
    assert caught.value.field == field


def test_a_pick_of_a_metric_that_the_front_lacks_is_refused():
    with pytest.raises(eq.InvalidInput, match="pred_error"):
        front(objectives=("jct:avg", "unfairness:avg")).pick("pred")


def test_an_index_beyond_the_end():
    with pytest.raises(IndexError):
        front()[3]


def test_the_table_has_scores_and_variables():
    table = front().with_held_out(HELD_OUT).to_frame()
    assert list(table.columns) == [
        "jct:avg", "pred_error:p99", "jct:avg held out", "pred_error:p99 held out", "x", "y",
    ]  # fmt: skip
    assert table["jct:avg held out"].tolist() == [1.5, 2.5, 8.5]


@pytest.mark.parametrize("held_out", [None, HELD_OUT])
def test_a_front_survives_its_file(tmp_path, held_out):
    saved = front(held_out=held_out)
    text = saved.save(tmp_path / "front.json")
    assert json.loads(text)["objectives"] == ["jct:avg", "pred_error:p99"]
    loaded = eq.ParetoFront.load(tmp_path / "front.json")
    for name in ("variables", "objectives", "configurations"):
        assert getattr(loaded, name) == getattr(saved, name)
    for name in ("vectors", "scores", "ideal", "reference"):
        assert getattr(loaded, name).tolist() == getattr(saved, name).tolist()
    assert (loaded.held_out is None) == (held_out is None)
    assert held_out is None or loaded.held_out.tolist() == held_out


def test_configurations_of_queues_survive_the_file(tmp_path):
    configs = tuple(eq.WfqConfig(thresholds=[size, np.inf], weights=["1/3", "2/3"]) for size in (1.0, 2.0, 3.0))
    front(configurations=configs).save(tmp_path / "front.json")
    assert eq.ParetoFront.load(tmp_path / "front.json").configurations == configs


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"points": 3}', '{"points": [], "configurations": "mapping"}', "\xff"]
)
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "front.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(eq.InvalidInput):
        eq.ParetoFront.load(path)


def test_a_file_with_a_bad_number_is_refused_by_field(tmp_path):
    path = tmp_path / "front.json"
    content = json.loads(front().save())
    content["points"][1]["scores"] = [20.0, 20.0]
    path.write_text(json.dumps(content))
    with pytest.raises(eq.InvalidInput, match="dominates"):
        eq.ParetoFront.load(path)
    with pytest.raises(eq.InvalidInput, match="path"):
        eq.ParetoFront.load(tmp_path / "missing.json")


def test_it_prints_its_hypervolume():
    found = front()
    assert found.hypervolume == pytest.approx(0.67)  # 9 + 8 x 7 + 2 of 100
    assert repr(found) == f"<ParetoFront of 3 points by jct:avg, pred_error:p99, hypervolume {found.hypervolume:.4f}>"
