"""The benchmark of markets: what its rows say is so, whatever becomes of the process that solves."""

import json
import sys

import pytest

import equipoise as eq
from equipoise.cli.main import run
from equipoise.validation.benchmarks import markets as module
from equipoise.validation.instances.markets import random_fisher_market, random_leontief_market


def test_each_backend_has_a_row_and_the_gap_is_the_one_that_the_prices_prove():
    rows = list(module.market_rows(sizes=["8x5", "6x2x3"], kinds=["low_rank"], gaps=[1e-6], names=["highs", "scipy"]))
    assert [(row["size"], row["kind"], row["backend"]) for row in rows] == [
        (size, kind, name) for size, kind in (("8x5", "low_rank"), ("6x2x3", "leontief")) for name in ("highs", "scipy")
    ]
    for row in rows:
        assert row["reached"]
        assert 0 <= row["gap"] <= row["asked"] == 1e-6
        assert row["wall_s"] > 0
        assert row["ratio"] == pytest.approx(
            row["wall_s"] / next(r for r in rows if r["size"] == row["size"])["wall_s"]
        )
        market = module.market_of(row["size"], row["kind"], 0)
        assert row["gap"] == pytest.approx(eq.solve(market, row["backend"], rel_gap=1e-6).gap, abs=1e-9)


def test_a_gap_that_is_not_reached_is_no_success():
    run = {"size": "300x40", "kind": "lognormal", "gap": 1e-9, "name": "highs", "seed": 0, "limit": 0.01}
    row = module.measure(run)
    assert not row["reached"]
    assert row["state"] != "OPTIMAL"


def test_a_process_that_hangs_or_dies_is_said_to(monkeypatch):
    run = {"size": "8x5", "kind": "uniform", "gap": 1e-6, "name": "highs", "seed": 0, "limit": 0.2}
    monkeypatch.setattr(module, "GRACE", 0.0)
    assert module._measured(run)["state"] == "ended"
    monkeypatch.setattr(module, "GRACE", 60.0)
    monkeypatch.setattr(sys, "executable", "false")
    row = module._measured(run)
    assert row["state"] == "crashed"
    assert row["reached"] is False
    assert row["wall_s"] is None  # nothing was measured


def test_a_backend_that_refuses_the_market_is_named_with_its_error():
    run = {"size": "8x5", "kind": "uniform", "gap": 1e-6, "name": "highs", "seed": 0, "limit": -1.0}
    row = module.measure(run)
    assert (row["state"], row["reached"], row["wall_s"]) == ("InvalidInput", False, None)


def test_a_backend_that_does_not_exist_is_refused_beside_one_that_does():
    with pytest.raises(eq.BackendNotFound, match="nope"):
        list(module.market_rows(sizes=["8x5"], names=["highs", "nope"]))


def test_the_memory_of_a_solve_is_counted_by_the_data():
    run = {"size": "400x100", "kind": "uniform", "gap": 1e-2, "name": "highs", "seed": 0, "limit": 20.0}
    assert module.measure(run)["peak_by_data"] > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": ["8by5"]}, "size = '8by5': must be"),
        ({"kinds": ["odd"]}, "kinds = 'odd': must be one of uniform, low_rank, lognormal"),
        ({"names": ["ortools"]}, "backends = 'ortools': solves none of these markets here"),
        ({"sizes": ["0x5"]}, "size = '0x5': must be"),
        ({"gaps": [1e-3, -1.0]}, r"gaps\[1\] = -1.0: at least 0"),
        ({"seed": -1}, "seed = -1: at least 0"),
        ({"patience": 0.0}, "patience = 0.0: must be greater than 0"),
    ],
)
def test_bad_input_is_named_before_anything_runs(options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        list(module.market_rows(**{"sizes": ["8x5"], **options}))


def test_the_command_prints_json(capsys):
    assert (
        run(
            [
                "bench",
                "market",
                "--sizes",
                "8x5",
                "--kinds",
                "uniform",
                "--gaps",
                "1e-4",
                "--backends",
                "highs",
                "--json",
            ]
        )
        == 0
    )
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["backend"], row["reached"], row["ratio"]) == ("highs", True, 1.0)
    assert run(["bench", "market", "--gaps", "small"]) == 2


def test_instances_are_the_same_for_the_same_seed_and_differ_by_kind():
    for kind in ("uniform", "low_rank", "lognormal"):
        first, again = (random_fisher_market(kind, 7, 5, seed=3) for _ in range(2))
        assert (first.utilities == again.utilities).all()
        assert (first.budgets == again.budgets).all()
        assert (first.utilities != random_fisher_market(kind, 7, 5, seed=4).utilities).all()
    first, again = (random_leontief_market(7, 2, 4, seed=3) for _ in range(2))
    assert (first.requirements == again.requirements).all()
    with pytest.raises(eq.InvalidInput, match="kind = 'odd'"):
        random_fisher_market("odd", 2, 2)
