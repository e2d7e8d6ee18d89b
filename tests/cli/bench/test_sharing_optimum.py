"""`equipoise bench sharing-optimum`: a row for each heuristic, beside the proved optimum."""

import json

import pytest

from equipoise.cli.main import run


def test_it_prints_a_row_for_each_heuristic(capsys):
    arguments = ["--count", "5", "--jobs", "4", "--gpus", "2", "--seed", "3", "--json"]
    assert run(["bench", "sharing-optimum", *arguments]) == 0
    found = capsys.readouterr()
    rows = {row["policy"]: row for row in json.loads(found.out)}
    assert list(rows) == ["sjf-bsbf", "sjf-ffs"]
    for row in rows.values():
        assert row["instances"] == row["proved"] == 5
        assert 1 <= row["mean_ratio"] <= row["worst_ratio"] == pytest.approx(row["worst_to_bound"], abs=1e-6)
    assert found.err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--count", "0"], 2, "at least 1"),
        (["--jobs", "0"], 2, "at least 1"),
        (["--time-limit", "0"], 2, "greater than 0"),
        (["--backend", "hihgs"], 4, "did you mean 'highs'"),
    ],
)
def test_wrong_arguments_are_named(arguments, code, words, capsys):
    assert run(["bench", "sharing-optimum", *arguments]) == code
    assert words in capsys.readouterr().err
