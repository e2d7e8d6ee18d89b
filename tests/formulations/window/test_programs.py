"""Both programs of a window against enumeration, and plans as points of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.window import programs as window_programs
from equipoise.formulations.window.check import schedule_faults
from equipoise.formulations.window.plan import scheduled
from equipoise.validation.oracles.window import schedules
from equipoise.validation.strategies.programs import windows

PENALTIES = st.sampled_from([0.0, 0.01, 0.5])


def solved(window: eq.ScheduleWindow, form: str) -> eq.Result:
    result = eq.solve(window, backend="highs", form=form, rel_gap=0.0, abs_gap=1e-9)
    assert result.residuals is not None
    assert result.residuals.worst <= 1e-6
    plan = result.require_plan()
    assert schedule_faults(window, plan.grants, plan.regime_of) == ()
    assert result.objective == pytest.approx(plan.objective, abs=1e-12)
    return result


def within(window: eq.ScheduleWindow) -> float:
    """1e-6 of the unit of the gap, and of what the solver's own tolerances can move."""
    return 1e-6 * max(1.0, window.tables.weight_sum)


def conserving(window: eq.ScheduleWindow) -> list[eq.WindowPlan]:
    every = schedules(window)
    return [eq.WindowPlan(window, grants) for grants in every.grants[every.conserves_work]]


# -- Against enumeration -----------------------------------------------------------------------------------------------


@given(windows(max_jobs=4, max_rounds=3))
def test_time_indexed_finds_the_best_schedule(window):
    every = schedules(window)
    result = solved(window, "time_indexed")
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == pytest.approx(every.best, abs=within(window))
    assert result.bound >= every.best - within(window)
    # Without restart penalties, conserving work costs nothing.
    assert every.best == pytest.approx(every.objective.max(), abs=1e-9)


@given(windows(max_jobs=4, max_rounds=3, restart_penalty=PENALTIES))
def test_time_indexed_with_restarts_finds_the_best_schedule_that_conserves_work(window):
    every = schedules(window)
    result = solved(window, "time_indexed")
    assert result.termination.reason is eq.Reason.OPTIMAL
    assert result.objective == pytest.approx(every.best, abs=within(window))
    assert result.bound >= every.best - within(window)


@given(windows(max_jobs=4, max_rounds=3, restart_penalty=PENALTIES))
def test_counts_bound_what_is_best_and_their_plan_is_no_better(window):
    best = schedules(window).best
    result = solved(window, "counts")
    assert result.bound >= best - within(window)
    assert result.objective <= best + within(window)
    if result.termination.reason is eq.Reason.OPTIMAL:
        assert result.objective == pytest.approx(best, abs=within(window))
    else:
        assert result.termination.reason is eq.Reason.FEASIBLE
        assert result.termination.limit is eq.Limit.METHOD
        assert result.gap > 1e-9


def test_conserving_work_can_cost_restarts():
    """Idling is best when starting costs more than it gains; the program must start the job all the same."""
    job = eq.WindowJob(id=0, gpus=1, finished_epochs=1, total_epochs=2, regimes=[eq.Regime(1, 60.0)])
    window = eq.ScheduleWindow([job], gpus=1, rounds=2, round_s=60.0, restart_penalty=5.0)
    every = schedules(window)
    assert every.objective.max() > every.best + 1.0
    assert solved(window, "time_indexed").objective == pytest.approx(every.best, abs=1e-6)


def test_counts_that_fit_in_total_but_cannot_be_packed_are_not_called_optimal():
    jobs = [
        eq.WindowJob(id="wide", gpus=8, finished_epochs=1, total_epochs=2, regimes=[eq.Regime(1, 60.0)]),
        eq.WindowJob(id="long", gpus=4, finished_epochs=1, total_epochs=3, regimes=[eq.Regime(2, 60.0)]),
    ]
    window = eq.ScheduleWindow(jobs, gpus=8, rounds=2, round_s=60.0)
    every = schedules(window)
    result = solved(window, "counts")
    program = window.program("counts")
    both = window.encode(eq.WindowPlan(window, np.array([[True, False], [True, True]])), "counts")
    assert program.residuals_at(both).worst <= 1e-12  # 8 x 1 + 4 x 2 GPU-rounds of 16
    assert result.bound >= program.objective_at(both) - 1e-9
    assert result.objective == pytest.approx(every.best, abs=1e-9)  # either of the two waits
    assert result.bound > every.best + 1e-3
    assert result.termination.reason is eq.Reason.FEASIBLE
    assert result.termination.limit is eq.Limit.METHOD
    assert solved(window, "time_indexed").termination.reason is eq.Reason.OPTIMAL


# -- Plans as points ---------------------------------------------------------------------------------------------------


@given(st.data(), windows(max_jobs=4, max_rounds=3, restart_penalty=PENALTIES))
def test_every_schedule_is_a_point_of_time_indexed(data, window):
    plan = data.draw(st.sampled_from(conserving(window)))
    program = window.program("time_indexed")
    values = window.encode(plan, "time_indexed")
    assert np.isfinite(values).all()
    assert program.residuals_at(values).worst <= 1e-9
    assert program.objective_at(values) == pytest.approx(plan.objective, abs=1e-9)
    again = window.decode(values, form="time_indexed")
    assert np.array_equal(again.grants, plan.grants)


@given(st.data(), windows(max_jobs=4, max_rounds=3))
def test_without_restarts_a_schedule_need_not_conserve_work_to_be_a_point(data, window):
    plan = eq.WindowPlan(window, data.draw(st.sampled_from(list(schedules(window).grants))))
    values = window.encode(plan, "time_indexed")
    assert window.program("time_indexed").residuals_at(values).worst <= 1e-9
    assert window.decode(values, form="time_indexed").objective >= plan.objective - 1e-12


@given(st.data(), windows(max_jobs=4, max_rounds=3, restart_penalty=PENALTIES))
def test_every_schedule_is_a_point_of_counts_that_looks_no_worse(data, window):
    plan = data.draw(st.sampled_from(conserving(window)))
    program = window.program("counts")
    values = window.encode(plan, "counts")
    assert np.isfinite(values).all()
    assert program.residuals_at(values).worst <= 1e-9
    shown = program.objective_at(values)
    if window.restart_penalty:
        assert shown >= plan.objective - 1e-9
    else:
        assert shown == pytest.approx(plan.objective, abs=1e-9)
    counts = window_programs.counts_of(window, values)
    assert counts.tolist() == plan.rounds_granted.tolist()
    assert np.array_equal(window.decode(values).grants, scheduled(window, counts).grants)


@given(st.data(), windows(max_jobs=3, max_rounds=3))
def test_a_schedule_that_breaks_a_rule_is_no_point_of_time_indexed(data, window):
    """Over capacity, or past completion."""
    shape = (len(window.gang_gpus), window.rounds)
    cells = data.draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    plan = eq.WindowPlan(window, np.array(cells).reshape(shape))
    kinds = {fault.kind for fault in schedule_faults(window, plan.grants, plan.regime_of)}
    worst = window.program("time_indexed").residuals_at(window.encode(plan, "time_indexed")).worst
    assert (worst >= 1.0 - 1e-9) == bool(kinds & {"capacity", "completed"})


@given(windows(max_jobs=3, max_rounds=4))
def test_regimes_follow_from_the_grants_of_time_indexed_in_order(window):
    plan = eq.solve(window, backend="highs", form="time_indexed").require_plan()
    for j, row in enumerate(plan.regime_of):
        ran = row[row >= 0]
        needs = window.tables.regime_needs[window.regime_starts[j] : window.regime_starts[j + 1]]
        assert ran.tolist() == np.repeat(np.arange(len(needs)), needs)[: len(ran)].tolist()


@given(windows(max_jobs=4, max_rounds=3, restart_penalty=st.sampled_from([0.01, 0.5])))
def test_idling_breaks_work_conservation_of_time_indexed_with_restarts(window):
    program = window.program("time_indexed")
    every = schedules(window)
    for grants in every.grants[~every.conserves_work][:20]:
        values = window.encode(eq.WindowPlan(window, grants), "time_indexed")
        assert program.residuals_at(values).row >= 1.0 - 1e-9


# -- Masks, cuts and sizes ---------------------------------------------------------------------------------------------


@given(st.data(), windows(max_jobs=3, max_rounds=3), st.sampled_from(["counts", "time_indexed"]))
def test_a_mask_restricts_the_rounds_to_choose_from(data, window, form):
    """`keep` of one schedule's numbers, and some more: the best over the schedules with such numbers."""
    every = schedules(window)
    chosen = every.grants[data.draw(st.integers(0, len(every.grants) - 1))].sum(axis=1)
    shape = (len(window.gang_gpus), window.rounds + 1)
    cells = data.draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    keep = np.array(cells).reshape(shape)
    keep[np.arange(shape[0]), chosen] = True
    program = window_programs.counts(window, keep) if form == "counts" else window_programs.time_indexed(window, keep)
    counts = every.grants.sum(axis=2)
    allowed = keep[np.arange(shape[0]), counts].all(axis=1)
    best = every.objective[allowed].max()

    result = eq.solve(program, backend="highs", rel_gap=0.0, abs_gap=1e-9)
    values = program.encode(result.require_plan())
    if form == "counts":
        picked = window_programs.counts_of(window, values[program.columns["choice"]], keep)
        assert keep[np.arange(shape[0]), picked].all()
        assert result.bound >= best - within(window)
    else:
        grants = values[program.columns["grant"]] > 0.5
        found = eq.WindowPlan(window, grants).objective
        assert keep[np.arange(shape[0]), grants.sum(axis=1)].all()
        assert result.objective == pytest.approx(best, abs=within(window))
        assert found == pytest.approx(best, abs=within(window))

    at = int(np.flatnonzero(allowed)[every.objective[allowed].argmax()])
    point = window_programs.encode(window, eq.WindowPlan(window, every.grants[at]), program, keep)
    assert program.residuals_at(point).worst <= 1e-9
    assert program.objective_at(point) == pytest.approx(best, abs=1e-9)


def test_a_cut_tightens_counts():
    jobs = [
        eq.WindowJob(id=j, gpus=8 - 4 * j, finished_epochs=1, total_epochs=2 + j, regimes=[eq.Regime(1 + j, 60.0)])
        for j in range(2)
    ]
    window = eq.ScheduleWindow(jobs, gpus=8, rounds=2, round_s=60.0)
    # In a round runs the wide job or the long one: together at most two rounds.
    cut = window_programs.Cut(np.array([1.0, 1.0]), 2.0)
    result = eq.solve(window_programs.counts(window, cuts=[cut]), backend="highs", rel_gap=0.0)
    assert result.objective == pytest.approx(schedules(window).best, abs=1e-9)
    assert result.bound < solved(window, "counts").bound - 1e-3


@given(windows(max_jobs=4, max_rounds=4, restart_penalty=PENALTIES))
def test_the_programs_are_what_they_say(window):
    counts, timed = window.program(), window.program("time_indexed")
    for program in (counts, timed):
        assert program.sense == "max"
        assert program.problem_class in (eq.ProblemClass.LP, eq.ProblemClass.MILP)  # LP: all jobs have ended
        assert program.gap_unit == window.tables.weight_sum
    assert counts.num_columns <= len(window.gang_gpus) * (window.rounds + 1) + 1
    assert timed.columns["grant"].shape == (len(window.gang_gpus), window.rounds)
    assert counts.integer[counts.columns["choice"]].all()
    assert timed.integer[timed.columns["grant"]].all()
    assert (timed.columns.keys() >= {"start", "used", "ended"}) == bool(window.restart_penalty)
    assert ("horizon" in counts.columns) == bool(window.makespan_weight)


@given(windows(max_jobs=3, max_rounds=3, restart_penalty=PENALTIES))
def test_a_bigger_cluster_is_never_worse_in_either_form(window):
    """The objective's weights depend on M, so the bounds are compared after scaling them alike."""
    if window.makespan_weight or window.restart_penalty:
        window = _plain(window)
    wider = _plain(window, gpus=window.gpus + 1)
    for form in window.forms:
        before, after = solved(window, form), solved(wider, form)
        assert after.bound * wider.gpus >= before.bound * window.gpus - 1e-6 * window.gpus


def _plain(window: eq.ScheduleWindow, gpus: int | None = None) -> eq.ScheduleWindow:
    names = (
        "gang_gpus finished_epochs total_epochs regime_starts regime_epochs regime_epoch_s ftf weight rounds round_s"
    )
    data = {name: getattr(window, name) for name in f"{names} ftf_power utility_floor".split()}
    return eq.ScheduleWindow.from_columns(**data, gpus=gpus or window.gpus, makespan_weight=0.0)


def test_a_window_where_nothing_is_left_to_do():
    done = eq.WindowJob(id=0, gpus=2, finished_epochs=3, total_epochs=3, regimes=[])
    window = eq.ScheduleWindow([done, replace(done, id=1)], gpus=2, rounds=3, restart_penalty=0.1)
    for form in window.forms:
        result = solved(window, form)
        assert result.objective == 0.0
        assert not result.plan.grants.any()
