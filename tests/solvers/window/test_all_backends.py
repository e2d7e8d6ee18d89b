"""Every backend and form of the window program agrees with exhaustive search on small windows."""

import math

import numpy as np
import pytest
from examples import examples

import equipoise as eq
from equipoise.formulations.window.check import schedule_faults

Reason = eq.Reason
WAYS = [
    ("highs", "time_indexed"),
    ("highs", "counts"),
    ("scipy", "time_indexed"),
    ("scipy", "counts"),
    ("lagrangian", None),
]
EXACT = 1e-6  # of the sum of weights, with rel_gap=0


def agree(window, found, ways, counted):
    """Check every way against the optimum; return how often a counts optimum could not be packed."""
    unpacked = 0
    unit = window.tables.weight_sum
    for backend, form in ways:
        result = eq.solve(window, backend, form=form, rel_gap=0.0)
        what = f"{backend} {form} {window!r}: {result!r}, optimum {found.best}"
        plan = result.require_plan()
        assert not schedule_faults(window, plan.grants, plan.regime_of), what
        assert result.objective <= found.best + 1e-9 * unit, what
        assert result.bound >= found.best - EXACT * unit, what
        assert result.termination.reason in (Reason.OPTIMAL, Reason.FEASIBLE), what
        if form == "counts":
            missed = result.objective < found.best - EXACT * unit
            unpacked += missed
            if missed:
                assert result.termination.reason is Reason.FEASIBLE, what
                assert result.gap > EXACT, what
            counted.append(missed)
        else:
            assert result.objective == pytest.approx(found.best, abs=EXACT * unit), what
            assert result.bound == pytest.approx(found.best, abs=EXACT * unit), what
            assert result.gap <= EXACT, what
        # What the plan says of itself is what the definitions say of its rounds.
        if not window.restart_penalty:
            mine = found.values[tuple(int(n) for n in plan.rounds_granted)]
            assert result.objective == pytest.approx(mine, rel=1e-9, abs=1e-12), what
        else:
            assert result.objective <= found.values[tuple(int(n) for n in plan.rounds_granted)] + 1e-9 * unit, what
    return unpacked


def test_small_windows(draw_small, exhausted):
    rng = np.random.default_rng(2024)
    counted = []
    for _ in range(examples(100)):
        window = draw_small(rng)
        agree(window, exhausted(window), WAYS, counted)
    assert counted
    # A relaxation that is nearly always exact: it would be odd if it never were, or never failed.
    assert 0 < sum(counted) < len(counted) / 4


def test_small_windows_with_restarts(draw_small, exhausted):
    rng = np.random.default_rng(77)
    counted = []
    for _ in range(examples(40)):
        window = draw_small(rng, restarts=True)
        agree(window, exhausted(window), [way for way in WAYS if way[0] != "scipy"], counted)
    assert counted


def test_rounds_that_fit_the_total_and_cannot_be_packed_are_never_called_optimal():
    """8 GPUs, 2 rounds: a gang of 8 for one round and a gang of 4 for two fill 16 GPU-rounds, and do not fit."""
    jobs = [
        eq.WindowJob(id="wide", gpus=8, finished_epochs=1, total_epochs=2, regimes=[eq.Regime(1, 60.0)], ftf=1.1),
        eq.WindowJob(id="long", gpus=4, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 60.0)], ftf=1.1),
    ]
    window = eq.ScheduleWindow(jobs, gpus=8, rounds=2, round_s=60.0, makespan_weight=0.0)
    relaxed = eq.solve(window, "highs", form="counts", rel_gap=0.0)
    assert relaxed.bound == pytest.approx(0.0, abs=1e-9)  # both would end
    assert relaxed.termination.reason is Reason.FEASIBLE
    assert relaxed.termination.limit is eq.Limit.METHOD
    exact = eq.solve(window, "highs", form="time_indexed", rel_gap=0.0)
    special = eq.solve(window, "lagrangian", rel_gap=0.0)
    best = 1.1**5 / 16 * math.log(2 / 3)  # one round each; the long one alone twice is worth less
    for result in (exact, special):
        assert result.termination.reason is Reason.OPTIMAL
        assert result.objective == pytest.approx(best, abs=1e-9)
