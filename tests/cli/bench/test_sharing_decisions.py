"""`equipoise bench sharing-decisions`: a row for each size of cluster."""

import json

from equipoise.cli.main import run
from equipoise.validation.benchmarks import sharing_decisions


def test_it_prints_a_row_for_each_size(capsys, monkeypatch):
    monkeypatch.setattr(
        sharing_decisions.decision_rows, "__kwdefaults__", {"sizes": ((16, 8, 6, 4),), "repeat": 5, "seed": 0}
    )
    assert run(["bench", "sharing-decisions", "--repeat", "1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["gpus"], row["batch_size"]) == (16, 4)
    assert 0.0 < row["arrival_ms"] <= row["worst_arrival_ms"]


def test_wrong_arguments_are_named(capsys):
    assert run(["bench", "sharing-decisions", "--repeat", "0"]) == 2
    assert "repeat = 0" in capsys.readouterr().err
