"""`equipoise bench open-shop`: a row for each size and backend, and no noise off a terminal."""

import json
from importlib.util import find_spec

import pytest

from equipoise.cli.main import run


def test_it_prints_a_row_for_each_size_and_backend(capsys):
    if find_spec("ortools") is None:  # not imported here: it cannot share a process with highspy
        pytest.skip("CP-SAT is an extra")
    arguments = ["--sizes", "4", "--backends", "cp_sat_schedule,highs", "--time-limit", "3", "--json"]
    assert run(["bench", "open-shop", *arguments]) == 0
    found = capsys.readouterr()
    rows = {row["backend"]: row for row in json.loads(found.out)}
    assert set(rows) == {"cp_sat_schedule", "highs"}
    assert rows["cp_sat_schedule"]["right"] == 10
    assert all(row["right"] == row["optimal"] for row in rows.values())  # what is proven is the known optimum
    assert found.err == ""


def test_with_preemption_every_row_meets_its_bound(capsys):
    assert run(["bench", "open-shop", "--preemptive", "--sizes", "3,8", "--seed", "4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["size"] for row in rows] == ["3x3", "8x8"]
    assert all(row["makespan"] == row["bound"] and row["fault"] == 0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--sizes", "six"], 2, "not whole numbers"),
        (["--sizes", "6"], 2, "must be of 4, 5, 7, 10, 15, 20"),
        (["--sizes", "4", "--backends", "cpsat"], 4, "no backend 'cpsat'"),
        (["--preemptive", "--sizes", "0"], 2, "at least 1"),
    ],
)
def test_wrong_arguments_are_said(arguments, code, words, capsys):
    assert run(["bench", "open-shop", *arguments]) == code
    assert words in capsys.readouterr().err
