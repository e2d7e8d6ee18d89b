"""`equipoise front`: the page of a front on disk, the table of picks, and bad folders."""

import json

import numpy as np
import pytest

import equipoise as eq
from equipoise.cli.main import run


@pytest.fixture
def folder(tmp_path):
    scores = np.array([[600.0, 40.0], [900.0, 10.0], [1200.0, 1.0]])
    front = eq.ParetoFront(
        variables=("timer",),
        objectives=("jct:avg", "pred_error:p99"),
        vectors=np.array([[1.0], [2.0], [3.0]]),
        scores=scores,
        configurations=({"timer": 1.0}, {"timer": 2.0}, {"timer": 3.0}),
        ideal=[0.0, 0.0],
        reference=[2000.0, 50.0],
        held_out=scores * 2.0,
    )
    front.save(tmp_path / "front.json")
    return tmp_path


def test_the_page_is_written_and_the_picks_are_printed(folder, capsys):
    assert run(["front", str(folder)]) == 0
    captured = capsys.readouterr()
    front = eq.ParetoFront.load(folder / "front.json")
    assert (folder / "front.html").read_text(encoding="ascii") == front.to_html()
    assert captured.err == f"equipoise: wrote {folder / 'front.html'}\n"
    rows = [line.split("  ") for line in captured.out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[0] == ["pick", "point", "jct:avg", "pred_error:p99", "jct:avg held out", "pred_error:p99 held out"]
    assert cells[2] == ["jct", "0", "10.0 min", "40%", "20.0 min", "80%"]
    assert [row[0] for row in cells[2:]] == ["jct", "pred", "balanced"]


def test_the_summary_beside_the_front_is_its_evidence(folder, capsys):
    document = {"backend": "spea2", "seed": 3, "evaluations": 1330, "wall_s": 61.0, "more": "</script>"}
    (folder / "summary.json").write_text(json.dumps(document))
    assert run(["front", str(folder), "--out", str(folder / "other.html")]) == 0
    assert not (folder / "front.html").exists()
    assert "backend spea2, seed 3, evaluations 1330, wall time 61 s" in (folder / "other.html").read_text()
    (folder / "summary.json").write_text("{")
    assert run(["front", str(folder)]) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no front.json"),
        ("{", "is no front"),
        ("[]", "is no front"),
        (json.dumps({"points": []}), "is no front"),
    ],
)
def test_a_folder_without_a_front_is_refused(tmp_path, capsys, content, message):
    if content is not None:
        (tmp_path / "front.json").write_text(content)
    assert run(["front", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert not (tmp_path / "front.html").exists()


def test_bad_places_are_refused(folder, capsys):
    assert run(["front", str(folder / "missing")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert run(["front", str(folder), "--out", str(folder / "missing" / "page.html")]) == 2
    assert "does not exist" in capsys.readouterr().err
