"""The released artifact's variant of the window program, stated through ProgramBuilder, against recorded optima."""

import itertools
import json
import math

import numpy as np
import pytest
from shared_data import SHOCKWAVE

import equipoise as eq

FIXTURES = SHOCKWAVE / "window_fixtures.json"
LOG_BASES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def variant(
    *, num_epochs, epoch_progress, gpus, epoch_duration_s, remaining_runtime_s, weight, num_gpus, future_rounds,
    round_duration_s, k_makespan_weight, log_bases=LOG_BASES, log_origin=1e-6, by_round=True,
):  # fmt: skip
    """Maximise (1/(m T)) sum_j W_j PWLlog((F_j + p_j)/E_j) - k max_j max(0, R_j - d_j p_j).

    X_jt binary (or, not `by_round`, rounds per job n_j within the total capacity), sum_j s_j X_jt <= M,
    d_j p_j <= D sum_t X_jt. The piecewise logarithm is concave, so a mix of its nodes needs no ordering binaries.
    """
    E, F, s, d, R, W = (np.asarray(a, dtype=float) for a in (
        num_epochs, epoch_progress, gpus, epoch_duration_s, remaining_runtime_s, weight))  # fmt: skip
    m, T, j = len(E), future_rounds, np.arange(len(E))
    nodes = np.asarray(log_bases)
    logs = np.log(np.where(nodes > 0, nodes, log_origin))
    build = eq.ProgramBuilder(sense="max")
    if by_round:
        run = build.add_binaries("run", (m, T))
        build.add_rows("capacity", (T,), terms=[(np.arange(T), run, s[:, None])], upper=num_gpus)
    else:
        run = build.add_columns("rounds", (m, 1), upper=T, integer=True)
        build.add_rows("capacity", (1,), terms=[(0, run, s[:, None])], upper=num_gpus * T)
    progress = build.add_columns("progress", (m,))
    build.add_rows("run_time", (m,), terms=[(j, progress, d), (j[:, None], run, -round_duration_s)], upper=0.0)
    mix = build.add_columns("mix", (m, len(nodes)), upper=1.0)
    build.add_rows("one_mix", (m,), terms=[(j[:, None], mix, 1.0)], lower=1.0, upper=1.0)
    build.add_rows("share", (m,), terms=[(j[:, None], mix, nodes), (j, progress, -1.0 / E)], lower=F / E, upper=F / E)
    longest = build.add_columns("longest", (1,))
    build.add_rows("left", (m,), terms=[(j, longest[0], 1.0), (j, progress, d)], lower=R)
    build.set_objective([(mix, W[:, None] * logs / (m * T)), (longest, -k_makespan_weight)])
    return build.program()


def data_of(fixture):
    names = ("num_epochs", "epoch_progress", "gpus", "epoch_duration_s", "remaining_runtime_s", "weight", "num_gpus",
             "future_rounds", "round_duration_s", "k_makespan_weight", "log_bases", "log_origin")  # fmt: skip
    return {name: fixture[name] for name in names}


def recorded():
    return json.loads(FIXTURES.read_text(encoding="utf-8")) if FIXTURES.is_file() else [None] * 3


@pytest.mark.skipif(not FIXTURES.is_file(), reason="shared/data/shockwave/window_fixtures.json is not here")
@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("backend", ["highs", "scipy"])
def test_recorded_optima(index, backend):
    fixture = recorded()[index]
    optimum = fixture["results"]["agg"]
    assert (optimum["status"], optimum["gap"]) == ("Optimal", 0.0)
    result = eq.solve(variant(**data_of(fixture), by_round=False), backend, rel_gap=0.0)
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == pytest.approx(optimum["objective_max"], rel=1e-6)


@pytest.mark.skipif(not FIXTURES.is_file(), reason="shared/data/shockwave/window_fixtures.json is not here")
@pytest.mark.parametrize("index", range(3))
def test_by_round_agrees_with_what_was_recorded(index):
    """Rounds per job are a relaxation of rounds: its optimum bounds, and here meets, the program by round."""
    fixture = recorded()[index]
    results = fixture["results"]
    result = eq.solve(variant(**data_of(fixture)), "highs", rel_gap=1e-6, time_limit=60.0)
    assert result.require_optimal()
    assert result.objective <= results["agg"]["objective_max"] + 1e-6
    assert result.objective == pytest.approx(results["agg"]["objective_max"], rel=2e-6)
    for name, other in results.items():
        if name != "lp":  # some were stopped early: no better than the optimum, and no worse than their gap says
            assert other["objective_max"] <= result.bound + 1e-6
    assert results["lp"]["objective_max"] >= result.objective - 1e-6


def by_hand(data, counts):
    """The objective of given rounds per job, from the definition, each p_j as large as useful."""
    m, T, D = len(counts), data["future_rounds"], data["round_duration_s"]
    nodes = np.array(LOG_BASES)
    logs = [math.log(node or 1e-6) for node in LOG_BASES]
    welfare, longest = 0.0, 0.0
    for j, n in enumerate(counts):
        done = data["epoch_progress"][j]
        p = min(D * n / data["epoch_duration_s"][j], data["num_epochs"][j] - done)
        welfare += data["weight"][j] * np.interp((done + p) / data["num_epochs"][j], nodes, logs)
        longest = max(longest, data["remaining_runtime_s"][j] - data["epoch_duration_s"][j] * p)
    return welfare / (m * T) - data["k_makespan_weight"] * longest


def small(rng):
    m = int(rng.integers(2, 5))
    epochs = rng.integers(2, 12, size=m)
    done = rng.integers(0, epochs)
    epoch_s = rng.uniform(20.0, 150.0, size=m).round(1)
    return {
        "num_epochs": epochs.tolist(), "epoch_progress": done.tolist(), "gpus": rng.choice([1, 2], size=m).tolist(),
        "epoch_duration_s": epoch_s.tolist(), "remaining_runtime_s": ((epochs - done) * epoch_s).tolist(),
        "weight": rng.uniform(0.5, 4.0, size=m).tolist(), "num_gpus": 3, "future_rounds": 4, "round_duration_s": 60.0,
        "k_makespan_weight": float(rng.choice([0.0, 1e-4, 1e-2])),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_a_small_instance_of_the_variant_against_enumeration(seed):
    data = small(np.random.default_rng(seed))
    m, T, M = len(data["gpus"]), data["future_rounds"], data["num_gpus"]
    fits = [s for s in itertools.product((0, 1), repeat=m) if np.dot(s, data["gpus"]) <= M]
    reached = {(0,) * m}
    for _ in range(T):
        reached = {tuple(np.add(had, s).tolist()) for had in reached for s in fits}
    best = max(by_hand(data, counts) for counts in reached)
    totals = (n for n in itertools.product(range(T + 1), repeat=m) if np.dot(n, data["gpus"]) <= M * T)
    relaxed = max(by_hand(data, counts) for counts in totals)
    for backend in ("highs", "scipy"):
        for by_round, optimum in ((True, best), (False, relaxed)):
            result = eq.solve(variant(**data, by_round=by_round), backend, rel_gap=0.0)
            assert result.objective == pytest.approx(optimum, abs=1e-6)
            assert result.bound >= optimum - 1e-6
