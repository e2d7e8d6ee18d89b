"""Models drawn by seed: sizes and demands that follow from them, and groups that do not exist."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.simulation import Trace
from equipoise.simulation.fluid import Speedups, draw_models, simulate_fluid

SPEEDUPS = Speedups(
    tables={"short": np.array([1.0, 1.5]), "long": np.array([1.0, 1.9, 2.7, 3.4, 4.0]), "other": np.ones(1)},
    groups={"realistic": ["short", "long"], "empty": []},
)


@st.composite
def recorded(draw):
    """Return jobs with durations that follow each other without overlap."""
    count = draw(st.integers(1, 12))
    durations = draw(st.lists(st.floats(1.0, 1e6), min_size=count, max_size=count))
    gangs = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    return Trace(
        job_id=range(count),
        model=["recorded"] * count,
        gang_gpus=gangs,
        arrival_s=np.arange(count) * 2e6,
        duration_s=durations,
    )


def drawn(trace, seed=0, group="realistic"):
    return draw_models(np.random.default_rng(seed), trace, SPEEDUPS, group)


@given(recorded(), st.integers(0, 2**32))
def test_a_job_alone_takes_its_duration(trace, seed):
    found = drawn(trace, seed)
    result = simulate_fluid(found, make_policy("fifo", "fluid"), cluster=8, speedups=SPEEDUPS, compiled=False)
    assert result.jct_s == pytest.approx(trace.duration_s, rel=1e-9, abs=1e-6)  # seconds of 10^7


@given(recorded(), st.integers(0, 2**32))
def test_demands_are_cut_to_the_table_and_sizes_follow(trace, seed):
    found = drawn(trace, seed)
    for index, model in enumerate(found.model):
        table = SPEEDUPS.tables[model]
        assert model in ("short", "long")
        assert found.gang_gpus[index] == min(trace.gang_gpus[index], len(table))
        assert found.size_s[index] == trace.duration_s[index] * table[found.gang_gpus[index] - 1]
    assert (found.duration_s == trace.duration_s).all()
    assert found.job_id == trace.job_id


@given(recorded(), st.integers(0, 2**32), st.data())
def test_a_seed_gives_the_first_jobs_the_same_models_however_many_follow(trace, seed, data):
    count = data.draw(st.integers(1, len(trace)))
    assert drawn(trace.select(range(count)), seed).model == drawn(trace, seed).model[:count]


def test_models_come_evenly_and_depend_on_the_seed():
    count = 4000
    trace = Trace(
        job_id=range(count), model=["m"] * count, gang_gpus=[1] * count, arrival_s=[0] * count, duration_s=[1] * count
    )
    one, other = drawn(trace, 1).model, drawn(trace, 2).model
    assert one != other
    assert one.count("short") / count == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / count))


def test_sizes_of_the_trace_are_kept_and_least_demands_are_cut():
    trace = Trace(job_id=[0, 1], model=["m"] * 2, gang_gpus=[8, 8], min_gpus=[7, 1], arrival_s=[0, 0], size_s=[5, 6])
    found = drawn(trace)
    assert found.size_s.tolist() == [5, 6]
    longest = [len(SPEEDUPS.tables[model]) for model in found.model]
    assert found.gang_gpus.tolist() == longest
    assert found.min_gpus.tolist() == [longest[0], 1]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ("realistc", "did you mean 'realistic'? the groups of speedups are: realistic, empty"),
        ("empty", "must name at least one model of the speedups"),
    ],
)
def test_a_group_without_models_is_refused(group, why):
    trace = Trace(job_id=[0], model=["m"], gang_gpus=[1], arrival_s=[0], duration_s=[1])
    with pytest.raises(eq.InvalidInput) as caught:
        drawn(trace, group=group)
    assert (caught.value.field, caught.value.value) == ("group", group)
    assert why in caught.value.why


def test_a_trace_without_times_is_refused():
    trace = Trace(job_id=[0], model=["m"], gang_gpus=[1], arrival_s=[0], total_steps=[1])
    with pytest.raises(eq.InvalidInput, match="size_s or duration_s"):
        drawn(trace)


def test_a_seed_is_no_generator():
    trace = Trace(job_id=[0], model=["m"], gang_gpus=[1], arrival_s=[0], duration_s=[1])
    with pytest.raises(eq.InvalidInput, match=r"numpy\.random\.Generator"):
        draw_models(7, trace, SPEEDUPS)
