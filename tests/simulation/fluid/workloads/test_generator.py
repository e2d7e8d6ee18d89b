"""Generated elastic jobs: their load, their demands and models, same seed same bits, bad arguments by name."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

import equipoise as eq
from equipoise.heuristics import make_policy
from equipoise.simulation.fluid import WORKLOADS, Cdf, Speedups, Workload, generate_jobs, simulate_fluid

N = 4000
PCS = DATA / "pcs"


def drawn(workload="training", seed=0, **options):
    return generate_jobs(np.random.default_rng(seed), workload, **{"num_jobs": N, "gpus": 64} | options)


def columns(trace):
    return (
        trace.model,
        *(getattr(trace, name).tobytes() for name in ("gang_gpus", "arrival_s", "size_s", "total_steps")),
    )


@given(
    st.sampled_from(sorted(WORKLOADS)),
    st.floats(0.05, 3.0),
    st.integers(1, 500),
    st.integers(0, 2**32),
)
def test_the_offered_load_is_the_one_asked_for(name, load, gpus, seed):
    workload = replace(WORKLOADS[name], load=load, jobs_per_hour=None)
    trace = drawn(workload, seed, gpus=gpus)
    span_s = trace.arrival_s[-1] * N / (N - 1)
    # The mean of N exponential gaps is off by more than five standard deviations once in a million draws.
    assert trace.size_s.sum() / (gpus * span_s) == pytest.approx(load, rel=6 / np.sqrt(N))
    assert trace.arrival_s[0] == 0.0
    assert (np.diff(trace.arrival_s) >= 0.0).all()


def test_gaps_are_exponential():
    gaps = np.diff(drawn().arrival_s)
    for multiple in (0.5, 1.0, 2.0, 3.0):
        share = np.exp(-multiple)
        assert (gaps > multiple * gaps.mean()).mean() == pytest.approx(share, abs=5 * np.sqrt(share / N))


def test_continuous_arrivals_come_at_four_per_hour_whatever_their_sizes():
    trace = drawn("continuous")
    assert trace.arrival_s[-1] / (N - 1) == pytest.approx(900.0, rel=5 / np.sqrt(N))
    longer = replace(WORKLOADS["continuous"], sizes=Cdf(values=[1e6, 2e6], cdf=[0, 1], unit="hours"))
    assert (drawn(longer).arrival_s == trace.arrival_s).all()


@given(st.sampled_from(sorted(WORKLOADS)), st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_bits(name, seed):
    assert columns(drawn(name, seed, num_jobs=50)) == columns(drawn(name, seed, num_jobs=50))
    assert columns(drawn(name, seed, num_jobs=50)) != columns(drawn(name, seed + 1, num_jobs=50))


def test_the_load_scales_the_arrivals_and_changes_nothing_else():
    base, twice = drawn(), drawn(replace(WORKLOADS["training"], load=1.6))
    assert twice.arrival_s == pytest.approx(base.arrival_s / 2)
    assert (twice.size_s == base.size_s).all()
    assert twice.model == base.model
    assert (twice.gang_gpus == base.gang_gpus).all()


def test_an_application_is_a_linear_job_of_as_many_gpus_as_trials():
    trace = drawn("automl")
    shares = np.bincount(trace.gang_gpus, minlength=21)[1:] / N
    assert len(shares) == 20
    assert shares == pytest.approx(np.full(20, 0.05), abs=5 * np.sqrt(0.05 / N))
    assert set(trace.model) == {"linear"}
    few = trace.select(range(30))
    alone = replace(few, arrival_s=np.arange(30) * 1e8)
    result = simulate_fluid(alone, make_policy("fs", "fluid"), cluster=64, speedups=Speedups.builtin())
    assert result.jct_s == pytest.approx(few.size_s / few.gang_gpus, rel=1e-6)


def test_gangs_are_powers_of_two_and_models_come_evenly():
    trace = drawn()
    assert set(trace.gang_gpus.tolist()) == {1, 2, 4, 8}
    for model in ("light", "medium", "heavy"):
        assert trace.model.count(model) / N == pytest.approx(1 / 3, abs=5 * np.sqrt(2 / 9 / N))


@pytest.mark.parametrize(("gpus", "table", "largest"), [(3, 8, 3), (64, 5, 5), (64, 8, 8)])
def test_demands_are_cut_to_the_table_and_to_the_cluster(gpus, table, largest):
    speedups = Speedups(tables={"m": np.arange(1.0, table + 1)}, groups={"realistic": ["m"]})
    trace = drawn(gpus=gpus, speedups=speedups)
    whole = drawn(speedups=Speedups(tables={"m": np.arange(1.0, 9)}, groups={"realistic": ["m"]}))
    assert (trace.gang_gpus == np.minimum(whole.gang_gpus, largest)).all()
    assert (trace.size_s == whole.size_s).all()


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_workload_runs_to_its_end(name):
    trace = drawn(name, num_jobs=40)
    result = simulate_fluid(trace, make_policy("srsf", "fluid"), cluster=64, speedups=Speedups.builtin())
    assert np.isfinite(result.end_s).all()


@pytest.mark.skipif(not PCS.exists(), reason="no shared data")
def test_the_published_distributions_make_workloads():
    def published(name):
        return Cdf.read(PCS / "workload_cdfs" / f"cdf-{name}.csv")

    speedups = Speedups.read(PCS / "speedups.json")
    automl = replace(
        WORKLOADS["automl"],
        sizes=published("app-service-times-themis1"),
        demands=published("num-jobs-per-app-themis1"),
    )
    trace = drawn(automl, gpus=128, speedups=speedups)
    assert set(trace.model) == {"LinearModel"}
    assert trace.size_s.mean() == pytest.approx(829_343, rel=0.05)  # the mean of the table
    assert trace.gang_gpus.max() < 90
    gavel = replace(
        WORKLOADS["continuous"],
        sizes=published("app-service-times-gavel-contmultiple"),
        demands=published("max-gpus-per-job-gavel"),
    )
    trace = drawn(gavel, speedups=speedups)
    assert set(trace.model) == set(speedups.groups["realistic"])
    assert (trace.size_s % 60 == 0).all()
    # Rounding down turns all but none of the two-GPU jobs of the table into jobs of one GPU.
    assert (trace.gang_gpus == 1).mean() == pytest.approx(0.9, abs=0.03)


CDF = Cdf(values=[1, 2], cdf=[0, 1], unit="secs")
COUNT = Cdf(values=[1, 2], cdf=[0, 1], unit="jobs")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sizes": COUNT}, "sizes.unit"),
        ({"demands": CDF}, "demands.unit"),
        ({"sizes": [1, 2]}, "sizes"),
        ({"load": None}, "load"),
        ({"jobs_per_hour": 2}, "load"),
        ({"load": 0}, "load"),
        ({"load": "much"}, "load"),
        ({"load": None, "jobs_per_hour": -1}, "jobs_per_hour"),
    ],
)
def test_a_bad_workload_is_refused_by_name(change, field):
    with pytest.raises(eq.InvalidInput) as caught:
        Workload(**{"sizes": CDF, "demands": COUNT, "load": 0.5} | change)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("options", "field", "why"),
    [
        ({"workload": "auto"}, "workload", "did you mean 'automl'? the workloads are training, automl, continuous"),
        ({"num_jobs": 0}, "num_jobs", "at least 1"),
        ({"gpus": 0}, "gpus", "at least 1"),
        ({"speedups": Speedups.linear(8)}, "group", "the groups of speedups are: none"),
        (
            {"speedups": Speedups(tables={"m": np.ones(1)}, groups={"realistic": []})},
            "group",
            "must name at least one model",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(options, field, why):
    with pytest.raises(eq.InvalidInput) as caught:
        drawn(**options)
    assert caught.value.field == field
    assert why in caught.value.why


def test_a_seed_is_no_generator():
    with pytest.raises(eq.InvalidInput, match=r"numpy\.random\.Generator"):
        generate_jobs(0, num_jobs=1, gpus=1)
