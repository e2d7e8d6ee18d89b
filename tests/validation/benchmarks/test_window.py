"""The benchmark of the window: what its rows say can be recomputed."""

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.validation.benchmarks.window import PAPER_GAPS, window_rows
from equipoise.validation.instances.window import random_window

KEYS = {"backend", "form", "wall_s", "cpu_s", "objective", "bound", "gap", "termination"}
SMALL = {"jobs": 12, "gpus": 8, "rounds": 5}


def scale(seed: int, makespan_weight: float) -> float:
    """Return the sum of the weights w_j = B_j rho_j^k / (N M) of the window the benchmark draws."""
    window = random_window(np.random.default_rng(seed), **SMALL, makespan_weight=makespan_weight)
    return float(np.sum(window.weight * window.ftf**window.ftf_power)) / (len(window.ids) * window.gpus)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("makespan_weight", [1e-3, 10.0])
def test_the_gap_of_each_row_follows_from_its_objective_and_bound(seed, makespan_weight):
    rows = window_rows(**SMALL, seed=seed, makespan_weight=makespan_weight, backends=["lagrangian", "highs", "scipy"])
    assert [(row["backend"], row["form"]) for row in rows] == [
        ("lagrangian", "special"),
        ("highs", "counts"),
        ("highs", "time_indexed"),
        ("scipy", "counts"),
        ("scipy", "time_indexed"),
    ]
    for row in rows:
        assert set(row) == KEYS
        assert row["bound"] >= row["objective"]
        assert row["gap"] == pytest.approx((row["bound"] - row["objective"]) / scale(seed, makespan_weight), abs=1e-12)
        assert (row["termination"] == "OPTIMAL") == (row["gap"] <= 1e-4)
        assert row["wall_s"] > 0
        assert row["cpu_s"] > 0


def test_no_backends_plan_is_above_anothers_bound():
    rows = window_rows(**SMALL, seed=4, makespan_weight=1.0, backends=["lagrangian", "highs"])
    # Both forms bound the same window: "counts" relaxes it, and its plan is packed.
    best = max(row["objective"] for row in rows)
    assert all(row["bound"] >= best - 1e-9 for row in rows)


def test_the_same_seed_is_the_same_window_with_the_same_answer():
    first, again, other = (window_rows(**SMALL, seed=seed, backends=["lagrangian"])[0] for seed in (7, 7, 8))
    assert (first["objective"], first["bound"]) == (again["objective"], again["bound"])
    assert first["objective"] != other["objective"]


def test_the_default_backends_are_ours_and_highs_on_both_forms():
    rows = window_rows(**SMALL, seed=0)
    assert [(row["backend"], row["form"]) for row in rows] == [
        ("lagrangian", "special"),
        ("highs", "counts"),
        ("highs", "time_indexed"),
    ]


def test_the_papers_figure_stands_beside_the_sizes_it_reports():
    (paper,) = window_rows(jobs=500, gpus=256, seed=0, backends=[])
    assert set(paper) == KEYS
    assert (paper["wall_s"], paper["gap"]) == (15.0, PAPER_GAPS[500])
    assert window_rows(jobs=500, gpus=128, seed=0, backends=[]) == []


def test_a_solve_that_is_stopped_at_once_still_gives_a_row():
    (row,) = (r for r in window_rows(**SMALL, seed=0, backends=["highs"], time_limit=0.0) if r["form"] == "counts")
    assert set(row) == KEYS
    if row["objective"] is None:
        assert row["termination"] == "NO_SOLUTION_FOUND"
        assert math.isinf(row["gap"])


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_window_is_a_valid_one_of_the_size_asked_for(seed):
    window = random_window(np.random.default_rng(seed), jobs=50, gpus=6, rounds=7, makespan_weight=2.0)
    assert (len(window.ids), window.gpus, window.rounds, window.makespan_weight) == (50, 6, 7, 2.0)
    assert window.gang_gpus.max() <= 6
    assert isinstance(eq.solve(window).require_plan(), eq.WindowPlan)


def test_an_unknown_backend_is_named():
    with pytest.raises(eq.BackendNotFound, match="hihgs"):
        window_rows(**SMALL, seed=0, backends=["hihgs"])
