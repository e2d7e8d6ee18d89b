"""WfqTuning: scores are those of simulations, bounds hold, samples are drawn whole and apart, workers rebuild little."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from fluid_cases import PCS, recorded_trace
from shared_data import DATA

import equipoise as eq
from equipoise.formulations.search.wfq_space import CORNERS
from equipoise.heuristics import make_policy
from equipoise.heuristics.search.wfq_tuning import WfqTuning, sample_jobs
from equipoise.simulation import Trace
from equipoise.simulation.fluid import FluidRules, Speedups, generate_jobs, simulate_fluid

HISTORY = generate_jobs(np.random.default_rng(0), num_jobs=300, gpus=16)
METRICS = {"jct": "jct_s", "pred_error": "error_pct", "unfairness": "unfairness"}


def tuning(**options):
    return WfqTuning.from_history(HISTORY, **{"gpus": 16, "jobs": 80, **options})


def drawn(problem, count, seed=0):
    return np.random.default_rng(seed).uniform(problem.lower, problem.upper, (count, len(problem.variables)))


def simulated(trace, config, objectives, *, gpus=16, speedups=None, rules=None):
    """Return the scores of a configuration on one trace, by `simulate_fluid` alone."""
    result = simulate_fluid(
        trace,
        make_policy("wfq", "fluid", config=config),
        cluster=gpus,
        speedups=speedups or Speedups.builtin(),
        rules=replace(rules or FluidRules(), predict=True),
    )
    return [objective.of(getattr(result, METRICS[objective.metric])) for objective in objectives]


@pytest.mark.parametrize(
    "rules", [FluidRules(), FluidRules(size_error_pct=30.0, seed=2), FluidRules(preemption_s=60.0)]
)
@pytest.mark.parametrize("space", ["parameters", "direct"])
def test_scores_are_the_means_of_simulations_to_the_last_bit(space, rules):
    problem = tuning(samples=2, space=space, rules=rules, objectives=["jct:avg", "pred_error:p99", "unfairness:p90"])
    vectors = drawn(problem, 12)
    scores, feasible = problem.score(vectors), 0
    for vector, row in zip(vectors, scores, strict=True):
        try:
            config = problem.configuration(vector)
        except eq.InvalidInput:
            assert np.isnan(row).all()
            continue
        feasible += 1
        each = [simulated(trace, config, problem.objectives, rules=rules) for trace in problem.train]
        np.testing.assert_array_equal(row, np.mean(each, axis=0))
        assert (row >= problem.ideal).all()
    assert feasible >= 3


@pytest.mark.skipif(not DATA.exists(), reason="no shared data")
def test_scores_on_a_recorded_trace():
    trace, speedups = recorded_trace("2869ce", 300), Speedups.read(PCS / "speedups.json")
    problem = WfqTuning(train=(trace,), gpus=64, speedups=speedups)
    (scores,) = problem.scores_of([config := eq.WfqConfig.read(PCS / "configs" / "pareto_2869ce_mid.json")])
    assert scores.tolist() == simulated(trace, config, problem.objectives, gpus=64, speedups=speedups)


def test_an_objective_without_predictions_gives_the_same_scores():
    both, one = tuning(), tuning(objectives=["jct:avg"])
    vectors = np.array(list(both.starts.values()))
    np.testing.assert_array_equal(both.score(vectors)[:, :1], one.score(vectors))


def test_the_reference_lies_a_tenth_beyond_the_corners():
    problem = tuning()
    scores = problem.score(np.array([problem.starts[name] for name in CORNERS]))
    np.testing.assert_allclose(problem.reference, 1.1 * scores.max(axis=0), rtol=1e-15)
    assert tuning(reference=[1e6, 30.0]).reference.tolist() == [1e6, 30.0]


def test_a_problem_survives_pickling_and_is_built_once_in_a_process():
    problem = tuning()
    vectors = drawn(problem, 4)
    first, again = (pickle.loads(pickle.dumps(problem)) for _ in range(2))
    assert first is again is not problem
    np.testing.assert_array_equal(first.score(vectors), problem.score(vectors))
    for name in ("ideal", "reference"):
        np.testing.assert_array_equal(getattr(first, name), getattr(problem, name))
    assert first.variables == problem.variables


def test_samples_are_rows_of_the_history_and_never_the_same():
    problem = tuning(samples=2, held_out=2)
    rows = set(zip(HISTORY.model, HISTORY.gang_gpus.tolist(), HISTORY.size_s.tolist(), strict=True))
    traces = (*problem.train, *problem.test)
    for trace in traces:
        assert len(trace) == 80
        assert set(zip(trace.model, trace.gang_gpus.tolist(), trace.size_s.tolist(), strict=True)) <= rows
    assert (
        len({trace.size_s.tobytes() for trace in traces}) == len({trace.arrival_s.tobytes() for trace in traces}) == 4
    )
    more = tuning(samples=2, held_out=0)
    for mine, other in zip(problem.train, more.train, strict=True):
        np.testing.assert_array_equal(mine.size_s, other.size_s)


def test_the_rate_is_that_of_the_history_or_the_load():
    gap_s = np.ptp(HISTORY.arrival_s) / (len(HISTORY) - 1)
    (sample,) = tuning(jobs=5000, objectives=["jct:avg"], reference=[1e9]).train
    assert np.diff(sample.arrival_s).mean() == pytest.approx(gap_s, rel=0.05)
    (sample,) = tuning(jobs=5000, load=0.5, objectives=["jct:avg"], reference=[1e9]).train
    assert np.diff(sample.arrival_s).mean() == pytest.approx(HISTORY.size_s.mean() / (0.5 * 16), rel=0.05)
