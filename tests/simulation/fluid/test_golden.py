"""The recorded runs of PCS's released code: starts, ends, contention and predictions, and a published Pareto front."""

import json

import numpy as np
import pytest
from fluid_cases import PCS, recorded_columns, recorded_policy, recorded_trace

from equipoise import WfqConfig
from equipoise.heuristics import make_policy
from equipoise.simulation.fluid import FluidRules, Speedups, simulate_fluid

RUNS = sorted((PCS / "golden").glob("*.csv"))
# The plain reference takes a minute for all predictions of this run: it makes the first ones alone.
LONGEST = "0e4a51_n200_realistic_AFS_est"
pytestmark = pytest.mark.skipif(not RUNS, reason="the recorded runs are not there")


def is_long(path):
    """Return whether the plain reference takes more than a second: it divides for AFS, and plays out predictions."""
    trace, _, _, name = path.stem.split("_", 3)
    return name == "AFS" or (name.endswith("_est") and (trace == "0e4a51" or name not in ("SRSF_est", "FS_est")))


def run_of(path, compiled, first=None):
    """Return the result and the recorded columns of a file such as 0e4a51_n200_realistic_FIFO_est.csv."""
    trace, jobs, _, name = path.stem.split("_", 3)
    result = simulate_fluid(
        recorded_trace(trace, first or int(jobs[1:])),
        recorded_policy(name.removesuffix("_est")),
        cluster=64,
        speedups=Speedups.read(PCS / "speedups.json"),
        rules=FluidRules(microseconds=True, predict=name.endswith("_est")),
        compiled=compiled,
    )
    return result, recorded_columns(path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.thorough] if is_long(path) else [])
        for path in RUNS
        if path.stem != LONGEST
    ],
)
def test_the_reference_equals_the_recorded_runs_to_the_last_bit(path):
    result, recorded = run_of(path, compiled=False)
    np.testing.assert_array_equal(result.start_s, recorded["start"])
    np.testing.assert_array_equal(result.end_s, recorded["end"])
    np.testing.assert_array_equal(result.contention, recorded["contention"])
    np.testing.assert_array_equal(result.predicted_end_s, recorded["pred_end"])
    assert (recorded["service"] == result.size_s).all()
    assert (recorded["demand"] == result.max_gpus).all()


def test_the_reference_makes_the_first_predictions_of_the_longest_run_to_the_last_bit():
    result, recorded = run_of(PCS / "golden" / f"{LONGEST}.csv", compiled=False, first=60)
    np.testing.assert_array_equal(result.predicted_end_s, recorded["pred_end"][:60])


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_compiled_loops_equal_the_recorded_runs(path):
    result, recorded = run_of(path, compiled=True)
    np.testing.assert_allclose(result.start_s, recorded["start"], rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(result.end_s, recorded["end"], rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(result.contention, recorded["contention"], rtol=1e-12)
    np.testing.assert_allclose(result.predicted_end_s, recorded["pred_end"], rtol=0.0, atol=1e-6)


def front():
    return json.loads((PCS / "pareto" / "trace_2869ce.json").read_text(encoding="utf-8"))["solutions"]


def test_the_thresholds_and_weights_of_a_published_front_follow_from_its_parameters():
    sizes_s = recorded_trace("2869ce").size_s
    for point in front():
        config = WfqConfig.from_parameters(
            sizes_s, variation=point["T"], decay=point["W"], zeta=point["zeta"], delta=point["delta"],
            thresholds="artifact",
        )  # fmt: skip
        assert config.thresholds == tuple(map(float, point["class_thresholds"]))
        assert [str(weight) for weight in config.weights] == point["class_rates"]


@pytest.mark.parametrize("points", [slice(0, 3), pytest.param(slice(3, None), marks=pytest.mark.thorough)])
def test_a_published_front_simulates_to_its_scores(points):
    trace, speedups = recorded_trace("2869ce"), Speedups.read(PCS / "speedups.json")
    assert len(front()) == 70
    for point in front()[points]:
        config = WfqConfig(
            thresholds=[*map(float, point["class_thresholds"])], weights=point["class_rates"], zeta=point["zeta"],
            delta=point["delta"],
        )  # fmt: skip
        rules = FluidRules(microseconds=True, predict=True)
        policy = make_policy("wfq", "fluid", config=config)
        figures = simulate_fluid(trace, policy, cluster=64, speedups=speedups, rules=rules, record=False).metrics
        assert figures["avg_jct_s"] == pytest.approx(point["objectives"]["avg_jct"], rel=1e-9)
        assert figures["avg_error_pct"] == pytest.approx(point["objectives"]["avg_pred_error"], rel=0, abs=1e-6)
