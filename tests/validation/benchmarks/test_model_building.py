"""The benchmark of the hand-off: its rows, and that every peer is given the same program."""

import numpy as np
import pytest

from equipoise import InvalidInput
from equipoise.validation.benchmarks import model_building as benchmark_handoff
from equipoise.validation.benchmarks.model_building import (
    HandoffData,
    handoff_data,
    handoff_rows,
    load_cvxpy,
    load_equipoise,
    load_pyomo,
)

KEYS = {"what", "peer", "cpu_s", "wall_s", "ratio", "note"}
SMALL = handoff_data(np.random.default_rng(3), jobs=12, rounds=4)
# A peer's own warnings are not ours to answer for.
ignoring_peers = pytest.mark.filterwarnings("ignore")


def best_by_hand(data: HandoffData) -> float:
    """Return the greatest worth by dynamic programming over rounds for one job at a time; exact for two jobs."""
    rounds = data.worth.shape[1]
    best = 0.0
    for first in range(2**rounds):
        for second in range(2**rounds):
            grants = np.array([[mask >> t & 1 for t in range(rounds)] for mask in (first, second)])
            if (grants.sum(axis=1) <= data.most).all() and (data.gang_gpus @ grants <= data.gpus).all():
                best = max(best, float((data.worth * grants).sum()))
    return best


def highs_objective(data: HandoffData) -> float:
    solver = load_equipoise(data)
    solver.run()
    return solver.getInfo().objective_function_value


@ignoring_peers
def test_there_is_a_row_for_each_peer_and_measure_and_ours_come_first():
    rows = handoff_rows(jobs=12, rounds=4, repeats=1)
    assert [(row["what"], row["peer"]) for row in rows] == [
        (what, peer) for what in ("hand-off", "import") for peer in ("equipoise", "pyomo", "cvxpy")
    ]
    for row in rows:
        assert set(row) == KEYS
        assert (row["cpu_s"] is None) == (row["wall_s"] is None)
        if row["cpu_s"] is None:
            assert "is not installed" in row["note"]
        else:
            assert "is not installed" not in row["note"]
    ours = [row for row in rows if row["peer"] == "equipoise"]
    # The wall time of an import is a difference, which a busy machine can make negative.
    assert ours[0]["wall_s"] > 0
    assert all(row["cpu_s"] > 0 and row["ratio"] == 1.0 for row in ours)
    assert ours[0]["note"] == "48 binaries, to a loaded model"


def test_a_peer_that_is_absent_has_a_reason_instead_of_figures(monkeypatch):
    monkeypatch.setattr(benchmark_handoff, "find_spec", lambda name: None)
    rows = handoff_rows(jobs=4, rounds=2, repeats=1)
    absent = [row for row in rows if row["peer"] != "equipoise"]
    assert len(absent) == 4
    for row in absent:
        assert row["note"] == f"{row['peer']} is not installed: pip install {row['peer']}"
        assert row["cpu_s"] is None
        assert row["wall_s"] is None
        assert row["ratio"] is None
    assert all(row["cpu_s"] is not None for row in rows if row["peer"] == "equipoise")


def test_the_ratio_is_the_peers_cpu_time_over_ours(monkeypatch):
    monkeypatch.setattr(
        benchmark_handoff,
        "_medians",
        lambda runs, repeats: (
            dict.fromkeys(runs, (3.0, 4.0))
            | {
                "equipoise": (0.5, 1.0),
                **({"": (0.25, 0.5)} if "" in runs else {}),
            }
        ),
    )
    monkeypatch.setattr(benchmark_handoff, "find_spec", lambda name: object())
    ratios = {(row["what"], row["peer"]): row["ratio"] for row in handoff_rows(jobs=4, rounds=2, repeats=1)}
    assert ratios["hand-off", "pyomo"] == 3.0 / 0.5
    assert ratios["import", "pyomo"] == (3.0 - 0.25) / (0.5 - 0.25)  # beyond a bare interpreter


def test_what_reaches_highs_is_the_program():
    solver = load_equipoise(SMALL)
    assert (solver.getNumCol(), solver.getNumRow(), solver.getNumNz()) == (48, 16, 96)
    two = HandoffData(
        gang_gpus=np.array([2, 1]),
        most=np.array([3, 2]),
        gpus=2,
        worth=np.array([[0.9, 0.2, 0.5, 0.4], [0.3, 0.6, 0.8, 0.1]]),
    )
    assert highs_objective(two) == pytest.approx(best_by_hand(two))


@ignoring_peers
def test_pyomo_is_given_the_same_program():
    pytest.importorskip("pyomo", reason="pyomo is not installed")
    solver, model = load_pyomo(SMALL)
    assert solver.solve(model).best_feasible_objective == pytest.approx(highs_objective(SMALL))


@ignoring_peers
def test_cvxpy_is_given_the_same_program():
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    solver = "HIGHS" if "HIGHS" in cvxpy.installed_solvers() else "SCIPY"
    assert load_cvxpy(SMALL).solve(solver=solver) == pytest.approx(highs_objective(SMALL))


@pytest.mark.parametrize("field", ["jobs", "rounds", "repeats"])
def test_sizes_are_checked(field):
    with pytest.raises(InvalidInput, match=field):
        handoff_rows(**{field: 0})
