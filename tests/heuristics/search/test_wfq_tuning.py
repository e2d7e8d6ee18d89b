"""WfqTuning: scores are those of simulations, bounds hold, and samples are drawn whole and apart."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fluid_cases import PCS, recorded_trace
from shared_data import DATA

import equipoise as eq
from equipoise.formulations.search.wfq_space import CORNERS
from equipoise.heuristics import make_policy
from equipoise.heuristics.search.wfq_tuning import WfqTuning
from equipoise.simulation import Profiles, RoundRules, Trace, generate_trace, simulate_rounds
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


# -- Several GPU types -------------------------------------------------------------------------------------------------


def by_type(**options):
    fast = Profiles.builtin()
    slow = replace(fast, rates={key: 0.4 * rate for key, rate in fast.rates.items()})
    history = generate_trace(np.random.default_rng(0), num_jobs=20, profiles=fast, mean_interarrival_s=300.0)
    types = {"gpus": {"v100": 8, "k80": 8}, "profiles": {"v100": fast, "k80": slow}}
    return WfqTuning.from_history(
        history, **{**types, "objectives": ["jct:avg", "unfairness:avg"], "jobs": 10, **options}
    )


def test_several_types_have_a_decay_each_and_are_scored_on_the_rounds_engine():
    problem = by_type(reference=[1e7, 100.0])
    assert [each.name for each in problem.variables] == ["T", "W[v100]", "W[k80]"]
    vector = np.array([0.5, 1.0, -1.0])
    config = problem.configuration(vector)
    assert config.gpu_types == ("v100", "k80")
    assert config.queues > 1
    (trace,) = problem.train
    policy = make_policy("wfq", "rounds", config=config)
    result = simulate_rounds(trace, policy, gpus=problem.gpus, profiles=problem.profiles)
    (scores,) = problem.score(vector[None])
    fair_s = result.exclusive_s * np.maximum(1.0, trace.gang_gpus * np.maximum(1.0, result.mean_jobs) / 16)
    assert scores.tolist() == [result.jct_s.mean(), np.maximum(0.0, result.jct_s / fair_s - 1.0).mean()]
    by_queue = [config.queue_of(size) for size in problem._trained.sizes_s]
    assert sorted({*by_queue}) == list(range(config.queues))


# -- Bad input ---------------------------------------------------------------------------------------------------------


def wide(**columns):
    columns = {"gang_gpus": [32] * 12, "min_gpus": [1] * 12, "size_s": np.arange(1.0, 13.0), **columns}
    return Trace(job_id=range(12), model=["medium"] * 12, arrival_s=np.arange(12.0), **columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": []}, "objectives = "),
        ({"objectives": "jct:avg"}, "objectives = 'jct:avg': must be a sequence"),
        ({"objectives": ["jct"]}, r"objectives\[0\] = 'jct': needs a measure"),
        (
            {"objectives": ["makespan:avg"]},
            r"objectives\[0\] = 'makespan': the metrics are jct, pred_error, unfairness",
        ),
        ({"objectives": ["jct:p101"]}, r"objectives\[0\] = 'p101'"),
        ({"objectives": ["jct:avg", "jct:avg"]}, r"objectives\[1\] = 'jct:avg': the same objective twice"),
        ({"objectives": [f"jct:p{each}" for each in range(5)]}, "objectives = '5 objectives': must be at most four"),
        ({"gpus": 0}, "gpus = 0"),
        ({"gpus": {}}, "gpus = '{}'"),
        ({"gpus": {"v100": 8, "k80": -1}}, r"gpus\[k80\] = -1"),
        ({"space": "polar"}, "space = 'polar': must be one of parameters, direct"),
        ({"train": HISTORY}, "train = 'Trace': must be a tuple of traces"),
        ({"train": ()}, r"train = '\(\)': must have at least one trace"),
        ({"test": (HISTORY, 3)}, r"test\[1\] = 'int': must be a Trace"),
        ({"train": (wide(min_gpus=[32] * 12),)}, r"min_gpus\[0\] = 32: the cluster has 16 GPUs"),
        ({"test": (wide(min_gpus=[32] * 12),)}, r"min_gpus\[0\] = 32: the cluster has 16 GPUs"),
        ({"speedups": Speedups.linear(3), "train": (wide(min_gpus=[4] * 12),)}, r"min_gpus\[0\] = 4: model medium has"),
        (
            {"speedups": Speedups(tables={"medium": np.array([1.0, 1.8, 1.7, 2.0])}), "train": (wide(),)},
            r"speedups\[medium\]\[2\] = 1.7: the table falls",
        ),
        ({"profiles": Profiles.builtin()}, "profiles = 'Profiles': are for several GPU types"),
        ({"rules": RoundRules()}, "rules = 'RoundRules': must be FluidRules"),
        ({"reference": [1.0, 0.0]}, "reference"),
    ],
)
def test_bad_fields_are_refused_by_name(options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        WfqTuning(**{"train": (HISTORY,), "gpus": 16, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"objectives": ["jct:avg", "pred_error:avg"]},
            r"objectives\[1\] = 'pred_error:avg': several GPU types are .* no ends",
        ),
        ({"speedups": Speedups.builtin()}, "speedups = 'Speedups': are of one GPU type"),
        ({"rules": FluidRules()}, "rules = 'FluidRules': must be RoundRules"),
        ({"profiles": {"v100": Profiles.builtin()}}, "profiles = 'k80'"),
        ({"gpus": {"v100": 1, "k80": 1}, "profiles": None}, r"gang_gpus\[\d+\] = "),
    ],
)
def test_bad_fields_of_several_types_are_refused_by_name(options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        by_type(**options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wide(gang_gpus=[2] * 12, min_gpus=[3] * 12), r"min_gpus\[0\] = 3: more than the job's gang_gpus, 2"),
        (lambda: wide(size_s=np.zeros(12)), r"size_s\[0\] = 0"),
        (lambda: Speedups(tables={"m": np.array([1.0, -1.0])}), r"tables\[m\]\[1\] = -1"),
        (lambda: Speedups(tables={"m": np.array([2.0])}), r"tables\[m\]\[0\] = 2.0: must be 1"),
        (lambda: eq.WfqConfig(thresholds=[1.0, np.inf], weights=[Fraction(0), Fraction(1)]), r"weights\[0\] = "),
        (lambda: eq.WfqConfig(thresholds=[2.0, 1.0, np.inf], weights=[Fraction(1, 3)] * 3), r"thresholds\[1\] = 1.0"),
    ],
)
def test_bad_parts_are_refused_by_name_before_any_search(make, message):
    with pytest.raises(eq.InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("trace", "options", "message"),
    [
        (HISTORY.select(range(9)), {}, "trace = '9 jobs': a history must have at least 10"),
        (replace(HISTORY, arrival_s=np.zeros(300)), {}, "trace = 'one time of arrival'"),
        ("philly.csv", {}, "trace = 'str': must be a Trace"),
        (HISTORY, {"jobs": 0}, "jobs = 0"),
        (HISTORY, {"samples": 0}, "samples = 0"),
        (HISTORY, {"held_out": -1}, "held_out = -1"),
        (HISTORY, {"load": 0.0}, "load = 0"),
        (HISTORY, {"seed": "x"}, "seed = 'x'"),
    ],
)
def test_a_bad_history_is_refused_by_name(trace, options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        WfqTuning.from_history(trace, gpus=16, **options)


def test_held_out_scores_need_test_samples():
    problem = tuning(held_out=0)
    front = problem.front(vectors := drawn(problem, 5), problem.score(vectors))
    with pytest.raises(eq.InvalidInput, match=r"test = '\(\)': there are no samples"):
        problem.held_out_scores(front)


def test_held_out_scores_are_those_of_the_test_samples():
    problem = tuning(held_out=2)
    front = problem.front(vectors := drawn(problem, 8), problem.score(vectors))
    scores = problem.held_out_scores(front)
    for config, row in zip(front.configurations, scores, strict=True):
        each = [simulated(trace, config, problem.objectives) for trace in problem.test]
        np.testing.assert_array_equal(row, np.mean(each, axis=0))
    assert front.with_held_out(scores)[0].held_out.keys() == {"jct:avg", "pred_error:avg"}
