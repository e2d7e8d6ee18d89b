"""The fluid snapshot against exact rational arithmetic, and against what must hold of any fair share."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import SHOCKWAVE

import equipoise as eq
from equipoise.simulation import Profiles, Trace, exclusive_s, generate_trace, snapshot

DATA = SHOCKWAVE

# One epoch takes 1000 / size / rate seconds: 4, 2 and 1 s at sizes 1, 2 and 4, on any gang.
PROFILES = Profiles(
    name="small",
    rates={("m", size, gpus): 250.0 for size in (1, 2, 4) for gpus in (1, 2, 3, 4)},
    dataset_sizes={"m": 1000},
    max_batch_sizes={"m": 4},
    gns={("m", 1, gpus): ((0, 1), (3, 2), (5, 4)) for gpus in (1, 2, 3, 4)},
)


def trace_of(arrivals, gang_gpus, schedules, ids=None):
    return Trace(
        job_id=list(range(len(arrivals))) if ids is None else ids,
        model=["m"] * len(arrivals),
        batch_size=[runs[0][0] for runs in schedules],
        gang_gpus=gang_gpus,
        mode=["gns"] * len(arrivals),
        total_steps=[1000] * len(arrivals),
        arrival_s=arrivals,
        schedule=schedules,
    )


@st.composite
def traces(draw):
    count = draw(st.integers(1, 7))
    runs = st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.integers(1, 4)), min_size=1, max_size=3).map(tuple)
    return trace_of(
        [draw(st.integers(0, 30)) for _ in range(count)],
        [draw(st.integers(1, 4)) for _ in range(count)],
        [draw(runs) for _ in range(count)],
    )


def exact(trace, at_s, gpus):
    """Attained service and summed contention of unfinished jobs, moment of change by moment, in rationals."""
    left = {}
    crowding = {}
    work = {
        i: Fraction(sum(epochs * Fraction(4, size) for size, epochs in runs)) for i, runs in enumerate(trace.schedule)
    }
    waiting = sorted(range(len(trace)), key=lambda i: trace.arrival_s[i])
    now, end = Fraction(0), Fraction(at_s)
    while True:
        while waiting and trace.arrival_s[waiting[0]] <= now:
            left[waiting[0]], crowding[waiting[0]] = work[waiting[0]], Fraction(0)
            waiting.pop(0)
        if now == end:
            break
        crowd = max(Fraction(1), Fraction(sum(int(trace.gang_gpus[i]) for i in left), gpus))
        step = min(
            [end - now]
            + [Fraction(trace.arrival_s[i]) - now for i in waiting]
            + [remaining * crowd for remaining in left.values()]
        )
        now += step
        for i in list(left):
            left[i] -= step / crowd
            crowding[i] += step * crowd
            if left[i] == 0:
                del left[i], crowding[i]
    return {i: (work[i] - left[i], crowding[i]) for i in left}


@given(traces(), st.integers(0, 60), st.integers(4, 9))
def test_service_and_contention_equal_exact_arithmetic(trace, at_s, gpus):
    expected = exact(trace, at_s, gpus)
    states = {state.id: state for state in snapshot(trace, at_s=at_s, gpus=gpus, profiles=PROFILES)}
    assert set(states) == set(expected)
    for index, (attained, crowding) in expected.items():
        state, life = states[index], at_s - trace.arrival_s[index]
        assert state.attained_s == pytest.approx(float(attained), abs=1e-9)
        assert state.attained_s + state.waiting_s == pytest.approx(life, abs=1e-12)
        if life:
            assert state.contention == pytest.approx(float(crowding) / life, abs=1e-9)


@given(traces(), st.integers(0, 60), st.integers(4, 9))
def test_regimes_add_up_to_the_true_trajectory(trace, at_s, gpus):
    for state in snapshot(trace, at_s=at_s, gpus=gpus, profiles=PROFILES):
        so_far = list(zip(state.batch_sizes, state.regime_epochs, strict=True))
        assert state.future[0][0] == state.batch_sizes[-1]
        whole = [*so_far[:-1], (so_far[-1][0], so_far[-1][1] + state.future[0][1]), *state.future[1:]]
        joined: list[list[float]] = []
        for size, epochs in trace.schedule[state.id]:
            if joined and joined[-1][0] == size:
                joined[-1][1] += epochs
            else:
                joined.append([size, epochs])
        assert [size for size, _ in whole] == [size for size, _ in joined]
        assert [epochs for _, epochs in whole] == pytest.approx([epochs for _, epochs in joined])
        assert sum(epochs * state.epoch_s[size] for size, epochs in so_far) == pytest.approx(state.attained_s)
        assert state.finished_epochs == sum(state.regime_epochs) < state.total_epochs


@given(traces(), st.integers(0, 60), st.integers(4, 9))
def test_no_more_service_than_the_cluster_has_and_all_of_it_while_demand_lasts(trace, at_s, gpus):
    states = {state.id: state for state in snapshot(trace, at_s=at_s, gpus=gpus, profiles=PROFILES)}
    work = exclusive_s(trace, PROFILES)
    arrived = [i for i in range(len(trace)) if trace.arrival_s[i] <= at_s]
    served = sum(int(trace.gang_gpus[i]) * (states[i].attained_s if i in states else work[i]) for i in arrived)
    first = min([trace.arrival_s[i] for i in arrived], default=at_s)
    assert served <= gpus * (at_s - first) + 1e-6
    for state in states.values():
        assert state.attained_s <= at_s - trace.arrival_s[state.id]
    if states and all(trace.arrival_s[i] == first for i in arrived):
        still = sum(state.gpus for state in states.values())
        # Present together all along, they kept the cluster full if those left still overfill it.
        if still >= gpus:
            assert served == pytest.approx(gpus * (at_s - first), abs=1e-6)


@given(traces(), st.integers(0, 60), st.randoms())
def test_the_order_of_the_trace_does_not_matter(trace, at_s, random):
    order = list(range(len(trace)))
    random.shuffle(order)
    assert snapshot(trace.select(order), at_s=at_s, gpus=5, profiles=PROFILES) == snapshot(
        trace, at_s=at_s, gpus=5, profiles=PROFILES
    )


@given(traces(), st.integers(0, 40), st.integers(0, 20))
def test_time_only_moves_jobs_forward(trace, at_s, later):
    before = {state.id: state for state in snapshot(trace, at_s=at_s, gpus=4, profiles=PROFILES)}
    after = {state.id: state for state in snapshot(trace, at_s=at_s + later, gpus=4, profiles=PROFILES)}
    for name, state in after.items():
        if name in before:
            assert state.attained_s >= before[name].attained_s - 1e-9
    new = {i for i in range(len(trace)) if at_s < trace.arrival_s[i] <= at_s + later}
    assert set(after) <= set(before) | new


@given(traces(), st.integers(0, 60), st.integers(4, 9))
def test_running_jobs_are_the_earliest_that_fit(trace, at_s, gpus):
    states = snapshot(trace, at_s=at_s, gpus=gpus, profiles=PROFILES)
    arrivals = [float(trace.arrival_s[state.id]) for state in states]
    assert arrivals == sorted(arrivals)
    free = gpus
    for state, arrival_s in zip(states, arrivals, strict=True):
        assert state.running == (arrival_s < at_s and state.gpus <= free)
        free -= state.gpus * state.running


def test_a_hand_worked_case():
    # Two GPUs. A (1 GPU, 4 s of work) and B (2 GPUs, 8 s) share at 2/3 until A leaves at 6 s; then B runs alone at
    # full speed. At 7 s B has 4 + 1 = 5 s of service; 3 epochs at 1 s and 2 at 2 s would take 7 s.
    trace = trace_of([0, 0], [1, 2], [((4, 4),), ((4, 3), (2, 2), (4, 1))], ids=["A", "B"])
    (state,) = snapshot(trace, at_s=7.0, gpus=2, profiles=PROFILES)
    assert state.id == "B"
    assert state.attained_s == pytest.approx(5.0)
    assert state.waiting_s == pytest.approx(2.0)
    assert state.contention == pytest.approx((6 * 1.5 + 1 * 1.0) / 7)
    assert state.batch_sizes == (4, 2)
    assert state.regime_epochs == pytest.approx((3.0, 1.0))
    assert [size for size, _ in state.future] == [2, 4]
    assert [epochs for _, epochs in state.future] == pytest.approx([1.0, 1.0])
    assert state.running


def test_moments_of_change():
    trace = trace_of([0, 4], [1, 1], [((1, 1), (2, 1)), ((4, 2),)])
    at_arrival = snapshot(trace, at_s=0, gpus=4, profiles=PROFILES)
    assert [(s.id, s.attained_s, s.finished_epochs, s.running, s.contention) for s in at_arrival] == [
        (0, 0.0, 0.0, False, 1.0)
    ]
    at_change = snapshot(trace, at_s=4, gpus=4, profiles=PROFILES)
    assert [s.id for s in at_change] == [0, 1]
    assert at_change[0].batch_sizes == (1, 2)
    assert at_change[0].regime_epochs == (1.0, 0.0)
    assert snapshot(trace, at_s=6, gpus=4, profiles=PROFILES) == []


def test_epoch_times_cover_every_size_the_mode_allows():
    trace = trace_of([0], [1], [((1, 2),)])
    (state,) = snapshot(trace, at_s=1, gpus=1, profiles=PROFILES)
    assert state.epoch_s == {1: 4.0, 2: 2.0, 4: 1.0}


def test_without_a_schedule_the_rules_give_it():
    bare = replace(trace_of([0], [1], [((1, 1),)]), schedule=None, total_epochs=[7])
    (state,) = snapshot(bare, at_s=0, gpus=1, profiles=PROFILES)
    assert state.future == ((1, 3.0), (2, 2.0), (4, 2.0))
    (state,) = snapshot(replace(bare, total_epochs=None), at_s=0, gpus=1, profiles=PROFILES)
    assert state.future == ((1, 1.0),)  # 1000 steps of one sample are one epoch


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("at_s", -1.0, "at_s = -1.0: at least 0"),
        ("at_s", float("nan"), "at_s = nan: must be finite"),
        ("at_s", "noon", "at_s = 'noon': must be a number"),
        ("gpus", 0, "gpus = 0: at least 1"),
        ("gpus", 1.5, "gpus = 1.5: must be a whole number"),
        ("gpus", 1, r"gang_gpus\[1\] = 2: job 1 is wider than the cluster of 1 GPUs; skip_wide=True"),
        ("skip_wide", "yes", "skip_wide = 'yes': must be True or False"),
    ],
)
def test_bad_arguments_are_named(field, value, message):
    trace = trace_of([0, 0], [1, 2], [((1, 1),), ((1, 1),)])
    with pytest.raises(eq.InvalidInput, match=message):
        snapshot(trace, **{"at_s": 1.0, "gpus": 4, "profiles": PROFILES} | {field: value})


def test_wide_jobs_are_left_out_by_option_with_a_warning():
    trace = trace_of([0, 0], [1, 2], [((1, 1),), ((1, 1),)])
    with pytest.warns(UserWarning, match=r"left out 1 job\(s\) wider than the cluster of 1 GPUs: 1"):
        states = snapshot(trace, at_s=1, gpus=1, profiles=PROFILES, skip_wide=True)
    assert [(state.id, state.attained_s) for state in states] == [(0, 1.0)]


def test_what_the_profiles_lack_names_the_job():
    trace = trace_of([0, 0], [1, 1], [((1, 1),), ((1, 1),)])
    unknown = replace(trace, model=["m", "BERT"])
    with pytest.raises(eq.InvalidInput, match=r"model\[1\] = 'BERT': no throughput in profiles 'small'"):
        snapshot(unknown, at_s=0, gpus=4, profiles=PROFILES)
    with pytest.raises(eq.InvalidInput, match=r"model\[1\] = 'BERT': no data set size"):
        snapshot(replace(unknown, schedule=None, total_epochs=None), at_s=0, gpus=4, profiles=PROFILES)
    with pytest.raises(eq.InvalidInput, match=r"batch_size, gang_gpus\[1\] = \(1, 5\): no throughput of m"):
        snapshot(replace(trace, gang_gpus=[1, 5]), at_s=0, gpus=8, profiles=PROFILES)


def test_a_large_snapshot_keeps_conservation():
    trace = generate_trace(np.random.default_rng(5), num_jobs=3000)
    profiles = Profiles.builtin()
    at_s = float(trace.arrival_s[-1])
    states = {state.id: state for state in snapshot(trace, at_s=at_s, gpus=256, profiles=profiles)}
    work = exclusive_s(trace, profiles)
    served = sum(
        int(trace.gang_gpus[i]) * (states[i].attained_s if i in states else work[i]) for i in range(len(trace))
    )
    assert 0 < len(states) < 3000
    assert served <= 256 * at_s * (1 + 1e-12)
    assert sum(state.gpus for state in states.values()) > 256
    assert served >= 0.9 * 256 * at_s


@pytest.mark.skipif(not DATA.is_dir(), reason="the published trace is not beside this checkout")
def test_the_published_trace_at_6000_s():
    trace, profiles = Trace.read(DATA / "trace_120.csv"), Profiles.read(DATA)
    states = snapshot(trace, at_s=6000.0, gpus=32, profiles=profiles)
    work = exclusive_s(trace, profiles)
    by_id = {state.id: state for state in states}
    served = sum(int(g) * (by_id[i].attained_s if i in by_id else work[i]) for i, g in enumerate(trace.gang_gpus))
    # The cluster has been full since demand first reached 32 GPUs.
    full = float(np.sort(np.repeat(trace.arrival_s, trace.gang_gpus))[31])
    assert 32 * (6000.0 - full) <= served <= 32 * 6000.0
    assert sum(state.gpus for state in states if state.running) == 32
    assert all(trace.arrival_s[state.id] <= 6000.0 for state in states)
