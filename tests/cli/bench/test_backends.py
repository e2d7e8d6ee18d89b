"""`equipoise bench agreement` and `bench overhead`: rows, exit codes, and no noise off a terminal."""

import json

import pytest

from equipoise.cli.main import run
from equipoise.validation.agreement import run as agreement


def test_agreement_prints_a_row_for_each_kind_and_backend(capsys):
    assert run(["bench", "agreement", "--count", "1", "--backends", "highs,scipy", "--json"]) == 0
    found = capsys.readouterr()
    rows = json.loads(found.out)
    assert {row["backend"] for row in rows} == {"highs", "scipy"}
    assert {row["kind"] for row in rows} == set(agreement.KINDS) - {"volatile-ces", "volatile-cobb-douglas"}
    assert all(row["agreed"] == row["programs"] == 1 for row in rows)
    assert found.err == ""


def test_agreement_takes_kinds_by_name(capsys):
    arguments = ["--count", "1", "--kinds", "fisher,planted LP", "--backends", "highs", "--json"]
    assert run(["bench", "agreement", *arguments]) == 0
    assert [row["kind"] for row in json.loads(capsys.readouterr().out)] == ["fisher", "planted LP"]
    assert run(["bench", "agreement", "--kinds", "fischer"]) == 2
    assert "must be among" in capsys.readouterr().err


def test_a_disagreement_is_an_exit_code(capsys, monkeypatch):
    def disagree(tally, *rest):
        tally.disagreements.append("program 0: off by one")

    monkeypatch.setattr(agreement, "_compare", disagree)
    assert run(["bench", "agreement", "--count", "1", "--backends", "highs", "--json"]) == 1
    assert "off by one" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["agreement", "--count", "0"], ["overhead", "--repeats", "0"], ["door", "--repeats", "0"]]
)
def test_bad_input_is_two(arguments, capsys):
    assert run(["bench", *arguments]) == 2
    assert "at least 1" in capsys.readouterr().err
