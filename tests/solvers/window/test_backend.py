"""The window planner as a whole: certified gaps, fallbacks that are named, and relations between windows."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.formulations.window.check import schedule_faults
from equipoise.validation.instances.window import random_window

Reason, Limit = eq.Reason, eq.Limit
COLUMNS = (
    "gang_gpus",
    "finished_epochs",
    "total_epochs",
    "regime_starts",
    "regime_epochs",
    "regime_epoch_s",
    "ftf",
    "weight",
)
SCALARS = (
    "gpus",
    "rounds",
    "round_s",
    "ftf_power",
    "makespan_weight",
    "makespan_scale",
    "gang_weighted",
    "utility_floor",
    "restart_penalty",
)


def changed(window, **changes):
    """The same window built anew, with some of its data changed."""
    data = {name: getattr(window, name) for name in (*COLUMNS, *SCALARS)}
    running = [name for name, ran in zip(window.ids, window.is_running, strict=True) if ran]
    return eq.ScheduleWindow.from_columns(**{**data, "ids": window.ids, "running": running, **changes})


def permuted(window, order):
    lengths = np.diff(window.regime_starts)[order]
    entries = np.concatenate([np.arange(window.regime_starts[j], window.regime_starts[j + 1]) for j in order] or [[]])
    by_job = {name: getattr(window, name)[order] for name in COLUMNS if not name.startswith("regime")}
    by_regime = {name: getattr(window, name)[entries.astype(int)] for name in ("regime_epochs", "regime_epoch_s")}
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return changed(window, **by_job, **by_regime, regime_starts=starts, ids=[window.ids[j] for j in order])


def check(window, result):
    """What must hold of any result with a plan."""
    plan = result.require_plan()
    assert not schedule_faults(window, plan.grants, plan.regime_of)
    assert result.residuals.worst == 0.0
    assert result.objective <= result.bound <= 0.0
    assert result.gap == pytest.approx((result.bound - result.objective) / window.tables.weight_sum, abs=1e-15)
    if result.notes[0] == "bound: 0, the objective when all jobs finish within the window":
        assert result.bound == 0.0
        assert (plan.rounds_granted >= window.tables.needs).all()
    else:
        assert result.notes[0] == "bound: Lagrangian, holds for the time-indexed program"
    assert result.backend == "lagrangian"
    assert result.history[-1].objective == result.objective == plan.objective
    bounds = [point.bound for point in result.history]
    assert bounds == sorted(bounds, reverse=True)
    return plan


@pytest.mark.parametrize("makespan_weight", [0.0, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_medium_windows_are_certified(seed, makespan_weight):
    window = random_window(np.random.default_rng(seed), jobs=200, gpus=32, makespan_weight=makespan_weight)
    result = eq.solve(window, time_limit=10.0)
    plan = check(window, result)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.gap <= 1e-4
    assert plan.gpus_in_use.max() <= 32
    # Two ways to bound one number: neither may contradict the other's plan.
    relaxed = eq.solve(window, "highs", form="counts", time_limit=2.0, rel_gap=1e-3)
    assert relaxed.bound >= result.objective
    assert relaxed.objective is None or result.bound >= relaxed.objective


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, 1])
def test_restarts_are_bounded_honestly(seed):
    window = random_window(np.random.default_rng(seed), jobs=30, gpus=8, rounds=8, restart_penalty=1e-3)
    result = eq.solve(window, time_limit=2.0)
    plan = check(window, result)
    free = eq.solve(changed(window, restart_penalty=0.0), time_limit=2.0)
    assert result.objective <= free.bound + 1e-12  # a penalty never helps
    paid = free.plan.objective - 1e-3 * eq.WindowPlan(window, free.plan.grants).restarts
    assert result.bound >= paid - 1e-9  # and the bound holds for any schedule, this one too
    assert plan.restarts <= eq.WindowPlan(window, free.plan.grants).restarts


def test_fallbacks_are_named(draw_small):
    rng = np.random.default_rng(50)
    counts = indexed = alone = 0
    for _ in range(80):
        window = draw_small(rng)
        result = eq.solve(window, rel_gap=0.0)
        check(window, result)
        text = " ".join(result.notes)
        counts += "counts (HiGHS" in text
        indexed += "time_indexed (HiGHS" in text
        alone += len(result.notes) == 1
        # The last note on the bound says which bound it is.
        dual = eq.solve(window, rel_gap=1e9)
        if result.bound < dual.bound - 1e-9:
            assert len(result.notes) > 1 or result.bound >= result.objective
    assert counts > 0
    assert indexed > 0
    assert alone > 0


def test_a_loose_gap_needs_no_fallback(draw_small):
    rng = np.random.default_rng(51)
    for _ in range(20):
        window = draw_small(rng)
        result = eq.solve(window, rel_gap=1e3)
        assert result.termination.reason is Reason.OPTIMAL
        assert not any("HiGHS" in note for note in result.notes)
        loose = eq.solve(window, rel_gap=0.0, abs_gap=1e9)
        assert not any("HiGHS" in note for note in loose.notes)


@pytest.mark.parametrize("restarts", [False, True])
def test_no_time_still_gives_a_plan_and_a_bound(draw_small, exhausted, restarts):
    rng = np.random.default_rng(52 + restarts)
    open_gaps = 0
    for _ in range(60):
        window = draw_small(rng, restarts=restarts)
        best, result = exhausted(window).best, eq.solve(window, time_limit=0.0, rel_gap=0.0)
        check(window, result)
        unit = window.tables.weight_sum
        assert result.objective - 1e-9 * unit <= best <= result.bound + 1e-9 * unit
        if result.termination.reason is Reason.FEASIBLE:
            open_gaps += 1
            assert result.termination.limit is Limit.TIME
        else:
            assert result.termination.reason is Reason.OPTIMAL
    assert open_gaps > 0


def test_an_empty_branch_goes_unnoticed_by_the_caller():
    """A branch that asks more rounds than there are has an infinite price; no warning, and the answer stands."""
    window = eq.ScheduleWindow.from_columns(
        gang_gpus=[4, 2, 1, 2],
        finished_epochs=[6.0, 1.0, 3.0, 2.0],
        total_epochs=[8.0, 2.0, 3.0, 4.0],
        regime_starts=[0, 1, 2, 2, 3],
        regime_epochs=[2.0, 1.0, 2.0],
        regime_epoch_s=[33.35625343, 21.28902382, 16.17808964],
        ftf=[0.97938669, 1.94820211, 0.86571572, 0.53605467],
        weight=[3.0, 0.5, 1.0, 1.0],
        gpus=5,
        rounds=1,
        round_s=60.0,
        ftf_power=0.0,
        makespan_weight=10.0,
        makespan_scale=210.4394910131757,
        gang_weighted=False,
    )
    result = eq.solve(window, rel_gap=0.0)  # a RuntimeWarning is an error here
    assert result.termination.reason is Reason.OPTIMAL
    assert result.objective == pytest.approx(-1.5933601262569879, abs=1e-9)


def test_no_time_for_a_large_window():
    window = random_window(np.random.default_rng(53), jobs=2000, gpus=64)
    result = eq.solve(window, time_limit=0.0)
    check(window, result)
    assert result.gap < 0.05


def test_a_warm_start_is_accepted_or_rejected_with_a_reason(draw_small):
    rng = np.random.default_rng(54)
    for _ in range(15):
        window = draw_small(rng)
        best = eq.solve(window, rel_gap=0.0)
        warm = eq.solve(window, rel_gap=0.0, time_limit=0.0, warm_start=best.plan)
        check(window, warm)
        assert any(note.startswith("warm start accepted") for note in warm.notes)
        assert warm.objective == best.objective
        # The same schedule as another object, of a window with the same data, serves too.
        again = eq.solve(changed(window), rel_gap=0.0, time_limit=0.0, warm_start=best.plan)
        assert again.objective == best.objective
        assert again.plan.window is not window


def wide_window():
    jobs = [eq.WindowJob(id=i, gpus=2, finished_epochs=1, total_epochs=9, regimes=[eq.Regime(8, 120.0)]) for i in "abc"]
    return eq.ScheduleWindow(jobs, gpus=4, rounds=5)


def test_a_warm_start_with_a_fault_is_rejected_and_changes_nothing():
    window = wide_window()
    plain = eq.solve(window)
    everything, nothing = np.ones((3, 5), bool), np.zeros((3, 5), bool)
    for grants, why in ((everything, "capacity: 2"), (nothing, "work conservation: 2")):
        result = eq.solve(window, warm_start=eq.WindowPlan(window, grants))
        check(window, result)
        (note,) = [note for note in result.notes if note.startswith("warm start")]
        assert note.startswith(f"warm start rejected: {why}")
        assert result.plan.grants.tolist() == plain.plan.grants.tolist()


@pytest.mark.parametrize("wrong", [{"grants": []}, np.ones((3, 5), bool), "plan", 3, "other window"], ids=repr)
def test_a_warm_start_of_the_wrong_kind_is_refused(wrong):
    if isinstance(wrong, str) and wrong == "other window":
        other = eq.ScheduleWindow(
            [eq.WindowJob(id=1, gpus=1, finished_epochs=1, total_epochs=2, regimes=[eq.Regime(1, 9.0)])], 1
        )
        wrong = eq.solve(other).plan
    for backend, form in (("lagrangian", None), ("highs", "counts"), ("highs", "time_indexed")):
        with pytest.raises(eq.InvalidInput, match="WindowPlan"):
            eq.solve(wide_window(), backend, form=form, warm_start=wrong)


def test_general_backends_take_a_windows_plan_as_warm_start(draw_small):
    rng = np.random.default_rng(55)
    for restarts, form in itertools.product((False, True), ("counts", "time_indexed")):
        for _ in range(6):
            window = draw_small(rng, restarts=restarts)
            plan = eq.solve(window, rel_gap=0.0).plan
            result = eq.solve(window, "highs", form=form, rel_gap=0.0, warm_start=plan)
            (note,) = [note for note in result.notes if note.startswith("warm start")]
            assert "violates" not in note
            if form == "time_indexed" or not restarts:
                assert (
                    result.objective == pytest.approx(plan.objective, abs=1e-6 * window.tables.weight_sum)
                    or form == "counts"
                )


def test_h_literal_and_weighted_by_gang_differ_only_where_gangs_do():
    window = random_window(np.random.default_rng(56), jobs=40, gpus=8, makespan_weight=50.0)
    literal = changed(window, gang_weighted=False)
    for w in (window, literal):
        check(w, eq.solve(w, time_limit=5.0))
    ones = changed(window, gang_gpus=np.ones(40, int))
    same = changed(ones, gang_weighted=False)
    assert eq.solve(ones, time_limit=5.0).plan.grants.tolist() == eq.solve(same, time_limit=5.0).plan.grants.tolist()
    # A gang weighs at least 1, so the literal H is smaller and its optimum no worse.
    assert eq.solve(literal, time_limit=5.0).bound >= eq.solve(window, time_limit=5.0).objective


def test_all_jobs_finished():
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=4, total_epochs=4, regimes=[]) for i in "abc"]
    result = eq.solve(eq.ScheduleWindow(jobs, gpus=2, rounds=3))
    assert result.termination.reason is Reason.OPTIMAL
    assert (result.objective, result.bound, result.gap) == (0.0, 0.0, 0.0)
    assert not result.plan.grants.any()


@pytest.mark.parametrize(("rounds", "epochs"), [(1, 1), (3, 2), (4, 9)])
def test_one_job_runs_until_it_ends(rounds, epochs):
    job = eq.WindowJob(
        id="only", gpus=3, finished_epochs=1, total_epochs=1 + epochs, regimes=[eq.Regime(epochs, 120.0)]
    )
    window = eq.ScheduleWindow([job], gpus=4, rounds=rounds)
    result = eq.solve(window)
    ran = min(rounds, epochs)
    assert result.plan.grants.tolist() == [[t < ran for t in range(rounds)]]
    left = epochs - ran
    assert result.objective == pytest.approx(math.log((1 + ran) / (1 + epochs)) / 4 - 1e-3 * left / epochs, abs=1e-12)
    assert result.gap <= 1e-9


def test_with_more_gpus_than_anyone_needs_all_run():
    window = random_window(np.random.default_rng(57), jobs=20, gpus=8)
    roomy = changed(window, gpus=8 * 20)
    result = eq.solve(roomy)
    check(roomy, result)
    assert result.plan.rounds_granted.tolist() == np.minimum(roomy.tables.needs, roomy.rounds).tolist()
    assert result.gap <= 1e-9


def test_without_fairness_or_makespan_only_the_weights_count():
    window = random_window(np.random.default_rng(58), jobs=50, gpus=8)
    plain = changed(window, ftf_power=0.0, makespan_weight=0.0)
    check(plain, eq.solve(plain, time_limit=5.0))
    other = changed(plain, ftf=np.full(50, 7.0))
    assert eq.solve(plain, time_limit=5.0).plan.grants.tolist() == eq.solve(other, time_limit=5.0).plan.grants.tolist()


def test_one_more_gpu_never_hurts(draw_small):
    """Objectives are divided by the cluster's size, the makespan's term is not: undo the one, scale the other."""
    rng = np.random.default_rng(59)
    for _ in range(30):
        window = draw_small(rng)
        values = []
        for gpus in range(window.gpus, window.gpus + 3):
            grown = changed(window, gpus=gpus, makespan_weight=window.makespan_weight / gpus)
            values.append(eq.solve(grown, rel_gap=0.0).objective * gpus)
        unit = window.tables.weight_sum * window.gpus
        assert all(b >= a - 1e-7 * unit for a, b in itertools.pairwise(values))


@pytest.mark.thorough
def test_one_more_round_never_hurts(draw_small):
    rng = np.random.default_rng(60)
    for _ in range(30):
        window = draw_small(rng)
        values = [eq.solve(changed(window, rounds=T), rel_gap=0.0).objective for T in range(1, 6)]
        assert all(b >= a - 1e-7 * window.tables.weight_sum for a, b in itertools.pairwise(values))


@pytest.mark.thorough
@pytest.mark.parametrize("restarts", [False, True])
def test_the_order_of_the_jobs_does_not_matter(draw_small, restarts):
    rng = np.random.default_rng(61 + restarts)
    for _ in range(40):
        window = draw_small(rng, restarts=restarts)
        order = rng.permutation(len(window.gang_gpus))
        one, other = (eq.solve(w, rel_gap=0.0) for w in (window, permuted(window, order)))
        assert one.objective == pytest.approx(other.objective, abs=1e-7 * window.tables.weight_sum)
        # The plan of one is a plan of the other.
        moved = eq.WindowPlan(permuted(window, order), one.plan.grants[order])
        assert moved.objective == pytest.approx(one.objective, abs=1e-12)
        assert not schedule_faults(moved.window, moved.grants, moved.regime_of)


def test_scaling_all_weights_scales_the_objective(draw_small):
    rng = np.random.default_rng(63)
    for _ in range(30):
        window = draw_small(rng)
        scaled = changed(window, weight=window.weight * 8, makespan_weight=window.makespan_weight * 8)
        one, other = eq.solve(window, rel_gap=0.0), eq.solve(scaled, rel_gap=0.0)
        assert other.objective == pytest.approx(8 * one.objective, abs=8e-7 * window.tables.weight_sum)


@pytest.mark.parametrize("case", ["closed at once", "by programs", "with restarts"])
def test_the_same_input_gives_the_same_bits(case):
    def draw():
        if case == "closed at once":
            return random_window(np.random.default_rng(64), jobs=300, gpus=64)
        penalty = 1e-3 if case == "with restarts" else 0.0
        return random_window(np.random.default_rng(65), jobs=12, gpus=4, rounds=6, restart_penalty=penalty)

    one, other = eq.solve(draw(), rel_gap=1e-6), eq.solve(draw(), rel_gap=1e-6, seed=0)
    assert one.plan.grants.tobytes() == other.plan.grants.tobytes()
    assert (one.objective, one.bound, one.notes) == (other.objective, other.bound, other.notes)
    assert dataclasses.replace(one.termination) == other.termination


def test_progress_is_heard(draw_small):
    window = random_window(np.random.default_rng(66), jobs=60, gpus=8)
    heard = []
    result = eq.solve(window, on_progress=heard.append, time_limit=5.0)
    assert heard
    assert list(result.history[:-1]) == heard
    objectives = [point.objective for point in heard]
    assert objectives == sorted(objectives)
