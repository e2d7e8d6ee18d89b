"""The checker catches what is corrupted, names it, and finds nothing in what the packer makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.formulations.window import kernels as window_kernels
from equipoise.formulations.window.check import Fault, regimes_of, schedule_faults
from equipoise.formulations.window.plan import scheduled, settled
from equipoise.validation.strategies.programs import windows

PENALTIES = st.sampled_from([0.0, 0.5])


def job(name, gpus, *rounds_per_regime) -> eq.WindowJob:
    """A job whose regimes take the given numbers of 60 s rounds."""
    regimes = [eq.Regime(rounds, 60.0) for rounds in rounds_per_regime]
    return eq.WindowJob(id=name, gpus=gpus, finished_epochs=1, total_epochs=1 + sum(rounds_per_regime), regimes=regimes)


# Four GPUs, four rounds: "a" and "b" fill them in rounds 0 and 1, then "c", which ends, and "a".
WINDOW = eq.ScheduleWindow([job("a", 2, 1, 5), job("b", 2, 2), job("c", 1, 1, 1)], gpus=4, rounds=4, round_s=60.0)
GRANTS = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
REGIMES = np.array([[0, 1, 1, 1], [0, 0, -1, -1], [-1, -1, 0, 1]])


def changed(array: np.ndarray, *changes) -> np.ndarray:
    array = array.copy()
    for index, value in changes:
        array[index] = value
    return array


def faults_of(grants, regimes=None, window=WINDOW) -> dict[str, Fault]:
    found = schedule_faults(window, grants, regimes_of(window, grants) if regimes is None else regimes)
    assert len({fault.kind for fault in found}) == len(found)
    return {fault.kind: fault for fault in found}


@st.composite
def window_and_grants(draw, penalty=PENALTIES, feasible=True):
    """A window with any grants; if `feasible`, those that break capacity or outlast their job are taken back."""
    window = draw(windows(max_jobs=5, max_rounds=6, restart_penalty=penalty))
    shape = (len(window.gang_gpus), window.rounds)
    cells = draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    grants = np.array(cells, dtype=bool).reshape(shape)
    if feasible:
        for j in range(shape[0]):
            for t in range(shape[1]):
                over = (
                    window.gang_gpus @ grants[:, t] > window.gpus or grants[j, : t + 1].sum() > window.tables.needs[j]
                )
                grants[j, t] &= not over
    return window, grants


# -- The checker -------------------------------------------------------------------------------------------------------


def test_a_good_schedule_has_no_fault():
    assert schedule_faults(WINDOW, GRANTS, REGIMES) == ()
    assert regimes_of(WINDOW, GRANTS).tolist() == REGIMES.tolist()
    plan = eq.WindowPlan(WINDOW, GRANTS)
    objective, residuals = WINDOW.evaluate(plan)
    assert residuals.worst == 0.0
    assert objective == plan.objective


def test_capacity():
    faults = faults_of(changed(GRANTS, ((1, 3), True), ((2, 1), True), ((2, 3), False)))
    # Round 1: a, b and c hold 5 of 4 GPUs; b's third round is one too many.
    assert faults["capacity"] == Fault("capacity", 1.0, round=1)
    assert str(faults["capacity"]) == "capacity: 1 at round 1"


def test_the_worst_round_over_capacity_is_the_witness():
    window = eq.ScheduleWindow([job(j, 3, 9) for j in range(3)], gpus=3, rounds=4, round_s=60.0)
    grants = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 0]], dtype=bool)
    assert faults_of(grants, window=window) == {"capacity": Fault("capacity", 6.0, round=2)}


def test_rounds_after_completion():
    grants = changed(GRANTS, ((1, 2), True), ((2, 2), False), ((1, 3), True), ((2, 3), False))
    faults = faults_of(grants)
    assert faults == {"completed": Fault("completed", 2.0, job=1)}
    assert str(faults["completed"]) == "completed: 2 at job 1"


def test_regimes_out_of_order():
    early = changed(REGIMES, ((0, 0), 1), ((0, 1), 0))  # the second regime before the first
    assert faults_of(GRANTS, early) == {"regime order": Fault("regime order", 1.0, job=0, round=0)}
    skipped = changed(REGIMES, ((2, 2), 1))
    assert faults_of(GRANTS, skipped) == {"regime order": Fault("regime order", 1.0, job=2, round=2)}
    idle_but_running = changed(REGIMES, ((1, 3), 0))
    assert faults_of(GRANTS, idle_but_running) == {"regime order": Fault("regime order", 1.0, job=1, round=3)}
    running_but_idle = changed(REGIMES, ((0, 3), -1))
    assert faults_of(GRANTS, running_but_idle) == {"regime order": Fault("regime order", 2.0, job=0, round=3)}


def test_idle_gpus_that_a_job_could_use():
    faults = faults_of(changed(GRANTS, ((0, 3), False)))
    assert faults == {"work conservation": Fault("work conservation", 2.0, job=0, round=3)}
    assert str(faults["work conservation"]) == "work conservation: 2 at job 0, round 3"


def test_idle_gpus_that_only_a_job_served_later_could_use():
    window = eq.ScheduleWindow([job("a", 1, 1)], gpus=1, rounds=2, round_s=60.0)
    assert faults_of(np.array([[False, True]]), window=window).keys() == {"work conservation"}
    assert faults_of(np.array([[True, False]]), window=window) == {}


def test_idle_gpus_that_fit_no_one_are_no_fault():
    window = eq.ScheduleWindow([job("a", 3, 9), job("b", 2, 9)], gpus=4, rounds=1, round_s=60.0)
    assert faults_of(np.array([[True], [False]]), window=window) == {}
    assert faults_of(np.array([[False], [True]]), window=window) == {}
    assert faults_of(np.array([[False], [False]]), window=window).keys() == {"work conservation"}


@pytest.mark.parametrize(
    ("grants", "regimes"),
    [
        (GRANTS[:, :3], REGIMES[:, :3]),
        (GRANTS[:2], REGIMES[:2]),
        (GRANTS, REGIMES[:, :3]),
        (GRANTS.astype(int), REGIMES),
        (GRANTS.ravel(), REGIMES.ravel()),
    ],
)
def test_shapes(grants, regimes):
    assert schedule_faults(WINDOW, grants, regimes) == (Fault("shape", 1.0),)


@given(window_and_grants(feasible=False))
def test_faults_against_plain_loops(case):
    window, grants = case
    needs, gang_gpus = window.tables.needs, window.gang_gpus
    expected = {}
    for t in range(window.rounds):
        used = sum(int(gang_gpus[j]) for j in range(len(gang_gpus)) if grants[j, t])
        expected["capacity"] = max(expected.get("capacity", 0), used - window.gpus)
        for j in range(len(gang_gpus)):
            if not grants[j, t] and grants[j, :t].sum() < needs[j] and gang_gpus[j] <= window.gpus - used:
                expected["work conservation"] = max(expected.get("work conservation", 0), int(gang_gpus[j]))
    expected["completed"] = max(int(grants[j].sum() - needs[j]) for j in range(len(gang_gpus)))
    found = faults_of(grants, window=window)
    assert {kind: fault.size for kind, fault in found.items()} == {k: v for k, v in expected.items() if v > 0}
    for fault in found.values():
        if fault.kind == "work conservation":
            assert not grants[fault.job, fault.round]
            assert gang_gpus[fault.job] == fault.size
        elif fault.kind == "capacity":
            assert gang_gpus @ grants[:, fault.round] - window.gpus == fault.size
        else:
            assert grants[fault.job].sum() - needs[fault.job] == fault.size


@given(window_and_grants(feasible=False))
def test_regimes_against_a_plain_loop(case):
    window, grants = case
    regimes = regimes_of(window, grants)
    for j in range(len(window.gang_gpus)):
        needs = window.tables.regime_needs[window.regime_starts[j] : window.regime_starts[j + 1]].tolist()
        order = [k for k, rounds in enumerate(needs) for _ in range(rounds)] + [len(needs)] * window.rounds
        for t in range(window.rounds):
            assert regimes[j, t] == (order[int(grants[j, :t].sum())] if grants[j, t] else -1)


# -- Packing and settling ----------------------------------------------------------------------------------------------


@given(window_and_grants())
def test_what_is_settled_is_a_schedule(case):
    window, grants = case
    plan = settled(window, grants)
    assert schedule_faults(window, plan.grants, plan.regime_of) == ()
    assert (plan.gpus_in_use <= window.gpus).all()
    assert (plan.rounds_granted >= grants.sum(axis=1)).all()


@given(window_and_grants(penalty=0.0))
def test_settling_never_lowers_the_objective_without_a_restart_penalty(case):
    window, grants = case
    before = eq.WindowPlan(window, grants)
    assert settled(window, grants).objective >= before.objective - 1e-12


@given(window_and_grants())
def test_settling_leaves_a_settled_schedule_and_the_callers_array_alone(case):
    window, grants = case
    mine = grants.copy()
    plan = settled(window, mine)
    assert np.array_equal(mine, grants)
    assert np.array_equal(settled(window, plan.grants).grants, plan.grants)


def test_settling_moves_rounds_earlier_before_it_takes_them_from_no_one():
    window = eq.ScheduleWindow([job("a", 1, 2), job("b", 2, 1)], gpus=2, rounds=3, round_s=60.0)
    plan = settled(window, np.array([[False, True, True], [False, False, False]]))
    assert plan.rounds_granted.tolist() == [2, 1]
    assert schedule_faults(window, plan.grants, plan.regime_of) == ()


@given(st.data(), windows(max_jobs=6, max_rounds=6, restart_penalty=PENALTIES))
def test_any_counts_become_a_schedule(data, window):
    count = len(window.gang_gpus)
    counts = np.array(data.draw(st.lists(st.integers(0, window.rounds + 2), min_size=count, max_size=count)))
    plan = scheduled(window, counts)
    assert schedule_faults(window, plan.grants, plan.regime_of) == ()
    assert (plan.gpus_in_use <= window.gpus).all()


@given(st.data(), windows(max_jobs=6, max_rounds=6))
def test_counts_that_fit_side_by_side_are_kept(data, window):
    count = len(window.gang_gpus)
    counts = np.array(data.draw(st.lists(st.integers(0, window.rounds), min_size=count, max_size=count)))
    counts = np.minimum(counts, window.tables.needs)
    fits = np.cumsum(window.gang_gpus) <= window.gpus  # the first jobs of these all fit in every round
    plan = scheduled(window, np.where(fits, counts, 0))
    assert (plan.rounds_granted[fits] >= counts[fits]).all()


@given(st.data(), windows(max_jobs=5, max_rounds=6))
def test_single_gpu_jobs_always_pack_what_fits_in_total(data, window):
    """McNaughton: unit gangs, no count above T, the sum within M T."""
    gang_gpus = np.ones_like(window.gang_gpus)
    count = len(gang_gpus)
    counts = np.array(data.draw(st.lists(st.integers(0, window.rounds), min_size=count, max_size=count)))
    while counts.sum() > window.gpus * window.rounds:
        counts[counts.argmax()] -= 1
    order = np.lexsort((-counts, -gang_gpus))
    grants = window_kernels.pack(order, counts, gang_gpus, window.gpus, window.rounds)
    assert grants.sum(axis=1).tolist() == counts.tolist()
    assert grants.sum(axis=0).max(initial=0) <= window.gpus


def test_blocks_are_in_one_piece_and_continue_what_runs():
    jobs = [job("a", 2, 2), job("b", 2, 2), job("c", 4, 2)]
    window = eq.ScheduleWindow(jobs, gpus=4, rounds=4, round_s=60.0, restart_penalty=0.1, running=["b"])
    plan = scheduled(window, np.array([2, 2, 2]))
    assert plan.rounds_granted.tolist() == [2, 2, 2]
    restarts = np.diff(np.pad(plan.grants, ((0, 0), (1, 0))).astype(int), axis=1) == 1
    assert restarts.sum(axis=1).tolist() == [1, 1, 1]


# -- Compiled loops and their plain twins ------------------------------------------------------------------------------


@given(st.data(), windows(max_jobs=6, max_rounds=6))
def test_compiled_packing_equals_its_plain_twin(data, window):
    count = len(window.gang_gpus)
    counts = np.array(data.draw(st.lists(st.integers(0, window.rounds + 1), min_size=count, max_size=count)))
    order = np.array(data.draw(st.permutations(range(count))))
    for kernel, more in ((window_kernels.pack, ()), (window_kernels.pack_blocks, (window.is_running,))):
        arguments = (order, counts, window.gang_gpus, window.gpus, window.rounds, *more)
        compiled, plain = kernel(*arguments), kernel.py_func(*arguments)
        assert np.array_equal(compiled, plain)
        assert (window.gang_gpus @ compiled <= window.gpus).all()
        assert (compiled.sum(axis=1) <= counts).all()


@given(st.data(), window_and_grants())
def test_compiled_settling_equals_its_plain_twin(data, case):
    window, grants = case
    order = np.array(data.draw(st.permutations(range(len(window.gang_gpus)))))
    compiled, plain = grants.copy(), grants.copy()
    for kernel, mine in ((window_kernels.settle, compiled), (window_kernels.settle.py_func, plain)):
        kernel(mine, order, window.tables.needs, window.gang_gpus, window.gpus, window.is_running)
    assert np.array_equal(compiled, plain)


@given(window_and_grants(feasible=False))
def test_compiled_progress_and_regimes_equal_their_plain_twins(case):
    window, grants = case
    needs = window.tables.regime_needs
    progress = window_kernels.progress
    arguments = (
        window.regime_starts,
        window.regime_epochs,
        window.regime_epoch_s,
        needs,
        window.round_s,
        window.rounds,
    )
    for compiled, plain in zip(progress(*arguments), progress.py_func(*arguments), strict=True):
        assert np.array_equal(compiled, plain)
    regimes = window_kernels.regimes_run
    assert np.array_equal(
        regimes(grants, window.regime_starts, needs), regimes.py_func(grants, window.regime_starts, needs)
    )
