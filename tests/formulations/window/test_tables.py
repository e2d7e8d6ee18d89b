"""The tables of a window against a run of each job, round by round, in exact fractions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.window.tables import starts
from equipoise.validation.oracles.window import course, schedules
from equipoise.validation.strategies.programs import windows

WIDE = st.floats(0.25, 8.0, allow_subnormal=False)


def rebuilt(window: eq.ScheduleWindow, **changes) -> eq.ScheduleWindow:
    """The same window from columns, with changes."""
    columns = (
        "ids gang_gpus finished_epochs total_epochs regime_starts regime_epochs regime_epoch_s ftf weight gpus rounds "
        "round_s ftf_power makespan_weight makespan_scale gang_weighted utility_floor restart_penalty"
    )
    data = {name: getattr(window, name) for name in columns.split()}
    data["running"] = [name for name, runs in zip(window.ids, window.is_running, strict=True) if runs]
    return eq.ScheduleWindow.from_columns(**(data | changes))


def all_counts(window: eq.ScheduleWindow) -> np.ndarray:
    """Every vector of rounds, feasible or not: the tables do not know the capacity. Shape (vectors, N)."""
    count = len(window.gang_gpus)
    return np.indices((window.rounds + 1,) * count).reshape(count, -1).T


def one_job(regimes, *, finished=0.0, rounds=6, round_s=60.0, **options) -> eq.ScheduleWindow:
    total = finished + sum(epochs for epochs, _ in regimes)
    job = eq.WindowJob(
        id="a", gpus=1, finished_epochs=finished, total_epochs=total, regimes=[eq.Regime(*each) for each in regimes]
    )
    return eq.ScheduleWindow([job], gpus=1, rounds=rounds, round_s=round_s, **options)


@given(windows(max_jobs=4, max_rounds=8))
def test_the_tables_are_the_run_of_each_job(window):
    tables = window.tables
    for j in range(len(window.gang_gpus)):
        exact = course(window, j)
        assert tables.needs[j] == exact.needs
        assert tables.utility[j] == pytest.approx([float(share) for share in exact.utility], abs=1e-12)
        seconds = tables.remaining[j] * window.round_s
        assert seconds == pytest.approx([float(left) for left in exact.remaining_s], abs=1e-9)
        done = np.arange(window.rounds + 1) >= exact.needs
        assert (tables.utility[j, done] == 1.0).all()
        assert (tables.remaining[j, done] == 0.0).all()


@given(windows(max_jobs=4, max_rounds=8))
def test_a_round_more_never_lowers_utility_nor_lengthens_what_remains(window):
    tables = window.tables
    assert (np.diff(tables.utility, axis=1) >= 0).all()
    assert (np.diff(tables.value, axis=1) >= 0).all()
    assert (np.diff(tables.remaining, axis=1) <= 0).all()
    assert ((tables.utility >= 0) & (tables.utility <= 1)).all()
    assert (tables.value <= 0).all()


def test_the_rest_of_a_regimes_last_round_is_lost():
    window = one_job([(1, 90.0), (1, 30.0)])  # 1.5 rounds take two, half a round takes one
    assert window.tables.regime_needs.tolist() == [2, 1]
    assert window.tables.needs.tolist() == [3]
    assert window.tables.utility[0, :4] == pytest.approx([0, 1 / 3, 1 / 2, 1])
    assert window.tables.remaining[0, :4] == pytest.approx([2, 1, 0.5, 0])


@pytest.mark.parametrize(
    ("epochs", "epoch_s", "round_s", "needs"), [(3, 0.1, 0.3, 1), (7, 0.1, 0.7, 1), (49, 1 / 49, 1.0, 1)]
)
def test_a_whole_number_of_rounds_but_for_rounding_is_that_number(epochs, epoch_s, round_s, needs):
    assert one_job([(epochs, epoch_s)], round_s=round_s).tables.needs.tolist() == [needs]


def test_a_little_more_than_a_round_takes_two():
    assert one_job([(1, 60.001)]).tables.needs.tolist() == [2]


def test_a_job_longer_than_the_window_is_not_done_at_its_end():
    tables = one_job([(100, 60.0)], rounds=4).tables
    assert tables.needs.tolist() == [100]
    assert tables.utility[0].tolist() == [0, 0.01, 0.02, 0.03, 0.04]
    assert tables.remaining[0].tolist() == [100, 99, 98, 97, 96]


def test_the_floor_stands_in_for_no_progress_and_no_more():
    tables = one_job([(4, 60.0)], utility_floor=0.3).tables
    assert tables.value[0, :5] == pytest.approx(np.log([0.3, 0.3, 0.5, 0.75, 1.0]))


def test_weights_follow_the_formula():
    jobs = [
        eq.WindowJob(
            id=0, gpus=2, finished_epochs=0, total_epochs=1, regimes=[eq.Regime(1, 60.0)], ftf=2.0, weight=3.0
        ),
        eq.WindowJob(id=1, gpus=1, finished_epochs=0, total_epochs=1, regimes=[eq.Regime(1, 60.0)], ftf=0.5),
    ]
    window = eq.ScheduleWindow(jobs, gpus=4, ftf_power=3.0)
    assert window.tables.weights == pytest.approx([3 * 8 / (2 * 4), 0.125 / (2 * 4)])
    assert window.tables.weight_sum == pytest.approx(3 + 1 / 64)
    assert window.gap_scale(-5.0) == window.tables.weight_sum


@pytest.mark.parametrize(
    ("gang_weighted", "counts", "makespan"),
    [
        (True, [0, 0, 0], 8.0),  # (2*4 + 4 + 2*2) / 2
        (True, [0, 0, 1], 7.0),
        (True, [1, 0, 1], 6.0),
        (True, [2, 0, 2], 4.0),  # the longest job sets it
        (False, [0, 0, 0], 5.0),  # (4 + 4 + 2) / 2
        (False, [0, 0, 1], 4.5),
        (False, [1, 0, 1], 4.0),
        (False, [4, 1, 2], 3.0),
    ],
)
def test_both_forms_of_the_makespan_bound(gang_weighted, counts, makespan):
    jobs = [
        eq.WindowJob(id=j, gpus=gang, finished_epochs=0, total_epochs=epochs, regimes=[eq.Regime(epochs, 60.0)])
        for j, (gang, epochs) in enumerate([(2, 4), (1, 4), (2, 2)])
    ]
    window = eq.ScheduleWindow(jobs, gpus=2, round_s=60.0, rounds=4, gang_weighted=gang_weighted)
    assert window.tables.makespan(np.array(counts)) == makespan


@given(windows(max_jobs=3, max_rounds=3, restart_penalty=st.sampled_from([0.0, 0.5])))
def test_the_objective_of_every_schedule(window):
    every = schedules(window)
    for grants, objective in zip(every.grants, every.objective, strict=True):
        plan = eq.WindowPlan(window, grants)
        assert plan.objective == pytest.approx(objective, abs=1e-9)


def test_restarts_count_from_the_round_before_the_window():
    grants = np.array([[True, False, True], [True, True, False], [False, False, False]])
    restarts = starts(grants, np.array([True, False, True]))
    assert restarts.tolist() == [[False, False, True], [True, False, False], [False, False, False]]


@given(windows(max_jobs=4, max_rounds=3), st.randoms(use_true_random=False))
def test_the_order_of_jobs_does_not_matter(window, random):
    order = list(range(len(window.gang_gpus)))
    random.shuffle(order)
    lengths = np.diff(window.regime_starts)
    entries = [i for j in order for i in range(window.regime_starts[j], window.regime_starts[j + 1])]
    names = ("gang_gpus", "finished_epochs", "total_epochs", "ftf", "weight")
    other = rebuilt(
        window,
        ids=[window.ids[j] for j in order],
        regime_starts=np.cumsum([0, *lengths[order]]),
        regime_epochs=window.regime_epochs[entries],
        regime_epoch_s=window.regime_epoch_s[entries],
        **{name: getattr(window, name)[order] for name in names},
    )
    assert other.is_running.tolist() == window.is_running[order].tolist()
    for counts in all_counts(window)[:50]:
        assert other.tables.makespan(counts[order]) == pytest.approx(window.tables.makespan(counts), rel=1e-12)
    for name in ("utility", "value", "remaining", "needs"):
        assert (getattr(other.tables, name) == getattr(window.tables, name)[order]).all()


@given(windows(max_jobs=4, max_rounds=4), st.sampled_from([0.25, 0.5, 2.0, 3.0, 60.0]))
def test_another_unit_of_time_changes_nothing(window, factor):
    other = rebuilt(
        window,
        regime_epoch_s=window.regime_epoch_s * factor,
        round_s=window.round_s * factor,
        makespan_scale=window.makespan_scale * factor,
    )
    assert other.tables.needs.tolist() == window.tables.needs.tolist()
    for name in ("utility", "value", "remaining"):
        assert getattr(other.tables, name) == pytest.approx(getattr(window.tables, name), rel=1e-12, abs=1e-12)
    assert other.tables.makespan_price == pytest.approx(window.tables.makespan_price, rel=1e-12)


@given(windows(max_jobs=4, max_rounds=4), st.sampled_from([0.5, 4.0]))
def test_another_unit_of_work_changes_nothing(window, factor):
    names = ("finished_epochs", "total_epochs", "regime_epochs")
    changes = {name: getattr(window, name) * factor for name in names}
    other = rebuilt(window, regime_epoch_s=window.regime_epoch_s / factor, **changes)
    for name in ("utility", "value", "remaining", "needs"):
        assert getattr(other.tables, name) == pytest.approx(getattr(window.tables, name), rel=1e-12, abs=1e-12)


@given(windows(max_jobs=3, max_rounds=4))
def test_twice_the_jobs_on_twice_the_gpus(window):
    """Each job and its twin get half the weight per job and GPU each: the value halves, H stays."""
    size = len(window.regime_epochs)
    names = ("gang_gpus", "finished_epochs", "total_epochs", "regime_epochs", "regime_epoch_s", "ftf", "weight")
    other = rebuilt(
        window,
        ids=None,
        running=(),
        gpus=2 * window.gpus,
        regime_starts=np.concatenate([window.regime_starts, window.regime_starts[1:] + size]),
        **{name: np.tile(getattr(window, name), 2) for name in names},
    )
    for counts in all_counts(window)[:50]:
        rows, twice = np.arange(len(counts)), np.tile(counts, 2)
        assert other.tables.makespan(twice) == pytest.approx(window.tables.makespan(counts), rel=1e-12)
        gained = other.tables.value[np.arange(2 * len(counts)), twice].sum()
        assert gained == pytest.approx(window.tables.value[rows, counts].sum() / 2, rel=1e-12, abs=1e-15)


@given(windows(max_jobs=4, max_rounds=4))
def test_jobs_and_columns_are_the_same_window(window):
    bounds = zip(window.regime_starts[:-1], window.regime_starts[1:], strict=True)
    jobs = [
        eq.WindowJob(
            id=window.ids[j],
            gpus=int(window.gang_gpus[j]),
            finished_epochs=window.finished_epochs[j],
            total_epochs=window.total_epochs[j],
            regimes=[eq.Regime(window.regime_epochs[i], window.regime_epoch_s[i]) for i in range(first, last)],
            ftf=window.ftf[j],
            weight=window.weight[j],
        )
        for j, (first, last) in enumerate(bounds)
    ]
    scalars = ("gpus", "rounds", "round_s", "ftf_power", "makespan_weight", "gang_weighted", "utility_floor")
    again = eq.ScheduleWindow(
        jobs, **{name: getattr(window, name) for name in scalars}, makespan_scale=window.makespan_scale
    )
    for name in ("value", "remaining", "needs", "weights", "branch_weights"):
        assert (getattr(again.tables, name) == getattr(window.tables, name)).all()


def test_the_scale_is_the_remaining_run_time_unless_given():
    assert one_job([(2, 30.0), (1, 45.0)]).makespan_scale == 105.0
    assert one_job([(2, 30.0)], makespan_scale=7.0).makespan_scale == 7.0
    assert one_job([], finished=3.0).makespan_scale == 1.0  # nothing remains: any scale does


def test_a_job_repeats_itself_in_its_own_tables():
    job = eq.WindowJob(id=0, gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 50.0)])
    window = eq.ScheduleWindow([job, replace(job, id=1)], gpus=2, rounds=4, round_s=60.0)
    for name in ("utility", "value", "remaining", "needs"):
        first, second = getattr(window.tables, name)
        assert np.array_equal(first, second)
