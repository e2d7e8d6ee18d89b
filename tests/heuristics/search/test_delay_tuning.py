"""DelayTuning: scores are those of simulations, bounds hold, starts are policies, and samples are apart."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from optional import needs_package

import equipoise as eq
from equipoise.formulations.search.delay_timers import DelayTimers
from equipoise.heuristics import make_policy
from equipoise.heuristics.search import DelayTuning
from equipoise.heuristics.search.delay_scores import DelayScores
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.network import CommunicationRow, CommunicationTable, TableSpeeds
from equipoise.simulation.placement import DurationSpeeds, PlacementRules, simulate_placement

CLUSTER = Cluster(gpus_by_type={"gpu": 16}, machines=4, racks=2)
OBJECTIVES = ["jct:avg", "waited:p90", "communication:avg", "makespan"]
RULES = PlacementRules(checkpoint_s_per_gpu=1.0)


def jobs(seed=0, count=24, gap_s=900.0):
    rng = np.random.default_rng(seed)
    return Trace(
        job_id=range(count),
        model=rng.choice(["VGG11", "AlexNet", "ResNet50", "BERT-large"], count).tolist(),
        arrival_s=np.cumsum(rng.exponential(gap_s, count)) if gap_s else np.zeros(count),
        gang_gpus=rng.choice([1, 2, 3, 4, 6, 10], count),
        duration_s=rng.uniform(600.0, 20_000.0, count),
    )


def tuning(**options):
    return DelayTuning(**{"train": (jobs(0), jobs(1)), "cluster": CLUSTER, "objectives": OBJECTIVES, **options})


def drawn(problem, count, seed=0):
    return np.random.default_rng(seed).uniform(problem.lower, problem.upper, (count, len(problem.variables)))


def simulated(trace, policy, *, rules=RULES, speeds=None, compiled=False):
    """Return the four scores of a policy on one trace, by the engine that is read."""
    result = simulate_placement(
        trace, policy, cluster=CLUSTER, speeds=speeds or TableSpeeds(cluster=CLUSTER), rules=rules, compiled=compiled
    )
    return [
        float(np.mean(result.jct_s)),
        float(np.percentile(result.waited_s, 90.0)),
        float(np.mean(result.exposed_s)),
        float(result.end_s.max() - trace.arrival_s.min()),
    ]


@pytest.mark.parametrize("space", ["by_demand", "shared"])
@pytest.mark.parametrize("policy", [{}, {"lease_s": 1800.0, "keep": False}, {"offer_s": 600.0}])
def test_scores_are_the_means_of_simulations(space, policy):
    problem = tuning(space=space, **policy)
    vectors = drawn(problem, 3)
    for vector, row in zip(vectors, problem.score(vectors), strict=True):
        timers = problem.configuration(vector)
        each = [
            simulated(trace, make_policy("dally-manual", timers=timers, **policy), compiled=None)
            for trace in problem.train
        ]
        np.testing.assert_array_equal(row, np.mean(each, axis=0))
        assert (row >= problem.ideal).all()


@pytest.mark.parametrize(
    ("start", "name"), [("nowait", "dally-nowait"), ("manual", "dally-manual"), ("consolidated", "dally-consolidated")]
)
def test_the_starts_score_as_their_policies(start, name):
    problem = tuning(train=(jobs(2),))
    (row,) = problem.score(problem.starts[start][None])
    np.testing.assert_allclose(row, simulated(jobs(2), make_policy(name)), rtol=1e-12)
    np.testing.assert_array_equal(row, problem.scores_of_policy(make_policy(name)))


def test_any_policy_is_scored_also_on_held_out_samples():
    problem = tuning(train=(jobs(0),), test=(jobs(3), jobs(4)))
    found = problem.scores_of_policy(make_policy("fifo", "placement"), held_out=True)
    expected = [simulated(trace, make_policy("fifo", "placement"), compiled=None) for trace in problem.test]
    np.testing.assert_array_equal(found, np.mean(expected, axis=0))
    online = problem.scores_of_policy(make_policy("dally"), held_out=True)
    np.testing.assert_allclose(
        online, np.mean([simulated(trace, make_policy("dally")) for trace in problem.test], axis=0), rtol=1e-12
    )


def test_the_reference_lies_a_tenth_beyond_the_starts():
    problem = tuning()
    scores = problem.score(np.array(list(problem.starts.values())))
    np.testing.assert_allclose(problem.reference, 1.1 * scores.max(axis=0), rtol=1e-15)
    assert tuning(objectives=["makespan"], reference=[1e9]).reference.tolist() == [1e9]


# -- Bounds ------------------------------------------------------------------------------------------------------------


def ideal(trace, objectives=OBJECTIVES, **options):
    return tuning(train=(trace,), objectives=objectives, **options).ideal


def alone(demand, **columns):
    """Return a trace of one job, and an empty cluster's scores of it."""
    trace = Trace(job_id=[0, 1], model=["VGG11"] * 2, arrival_s=[50.0, 50.0], gang_gpus=[demand, 2], **columns)
    return trace, simulated(trace, make_policy("dally-consolidated"))


@pytest.mark.parametrize("demand", [2, 4, 6])
def test_jobs_alone_reach_the_bounds(demand):
    trace, scores = alone(demand, duration_s=[5000.0, 5000.0])
    np.testing.assert_allclose(ideal(trace), scores, rtol=1e-6, atol=1e-4)
    assert (ideal(trace) <= scores).all()


def test_work_over_the_gpus_bounds_the_makespan():
    gangs, arrivals_s = [2, *[16] * 7], [0.0, *[100.0] * 7]
    trace = Trace(job_id=range(8), model=["VGG11"] * 8, arrival_s=arrivals_s, gang_gpus=gangs, duration_s=[500.0] * 8)
    bound = ideal(trace)[3]
    assert bound == pytest.approx(100.0 + 7 * 500.0, abs=0.1)
    assert bound <= simulated(trace, make_policy("dally-nowait"))[3]


def test_the_bound_takes_the_fastest_placement_where_the_tightest_is_not():
    odd = CommunicationRow(model="odd", machine=1.0, rack=0.25, network=0.5, gradient_mb=1.0, layers=1, skew=1.0)
    speeds = TableSpeeds(CommunicationTable([odd]), cluster=CLUSTER)
    trace = Trace(job_id=[0, 1], model=["odd"] * 2, arrival_s=[0.0, 0.0], gang_gpus=[4, 2], duration_s=[1000.0, 10.0])
    # On 4 GPUs the measured ratios count 1.5/1.75 times.
    ratios = [1.5 / 1.75 * each for each in (1.0, 0.25)]
    least_s = 1000.0 / (1.0 + ratios[0]) * (1.0 + ratios[1])
    found = ideal(trace, ["jct:p100", "communication:p100", "makespan"], speeds=speeds)
    assert found[0] <= 1000.0
    assert found[2] == pytest.approx(least_s, rel=1e-6)
    assert found[1] == pytest.approx(1000.0 / (1.0 + ratios[0]) * ratios[1], rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_no_timers_fall_below_the_bounds(seed):
    trace = jobs(seed, gap_s=(0.0, 400.0, 5000.0)[seed % 3])
    problem = tuning(train=(trace,), keep=seed % 2 == 0, reference=[1e12] * 4)
    assert (problem.score(drawn(problem, 8, seed)) >= problem.ideal).all()
    for name in ("dally", "fifo", "srtf", "tiresias"):
        assert (problem.scores_of_policy(make_policy(name, "placement")) >= problem.ideal).all()


# -- Samples -----------------------------------------------------------------------------------------------------------


def test_samples_are_rows_of_the_history_and_never_the_same():
    history = jobs(0, 60)
    problem = DelayTuning.from_history(history, cluster=CLUSTER, samples=2, held_out=2, jobs=30)
    rows = set(zip(history.model, history.gang_gpus.tolist(), history.duration_s.tolist(), strict=True))
    traces = (*problem.train, *problem.test)
    for trace in traces:
        assert len(trace) == 30
        assert set(zip(trace.model, trace.gang_gpus.tolist(), trace.duration_s.tolist(), strict=True)) <= rows
    assert len({trace.duration_s.tobytes() for trace in traces}) == 4
    assert len({trace.arrival_s.tobytes() for trace in traces}) == 4
    again = DelayTuning.from_history(history, cluster=CLUSTER, samples=2, held_out=0, jobs=30)
    assert [each.arrival_s.tolist() for each in again.train] == [each.arrival_s.tolist() for each in problem.train]


def test_the_rate_is_that_of_the_history_or_the_load_and_a_batch_stays_one():
    history = jobs(0, 60)
    gap_s = np.ptp(history.arrival_s) / 59
    options = {"cluster": CLUSTER, "held_out": 0, "reference": [1e12, 1e12], "jobs": 4000}
    (sample,) = DelayTuning.from_history(history, **options).train
    assert np.diff(sample.arrival_s).mean() == pytest.approx(gap_s, rel=0.05)
    (sample,) = DelayTuning.from_history(history, load=0.5, **options).train
    # No job of these models runs faster than on its tightest placement.
    gpu_s = (history.gang_gpus * history.duration_s).mean()
    assert np.diff(sample.arrival_s).mean() == pytest.approx(gpu_s / (0.5 * 16), rel=0.05)
    batch = DelayTuning.from_history(jobs(0, 60, gap_s=0.0), cluster=CLUSTER, jobs=20)
    assert [trace.arrival_s.any() for trace in (*batch.train, *batch.test)] == [False, False]


def test_a_demand_of_the_test_samples_alone_has_no_variable():
    wide = replace(jobs(3), gang_gpus=np.full(24, 5))
    problem = tuning(train=(replace(jobs(0), gang_gpus=np.full(24, 4)),), test=(wide,))
    assert [each.name for each in problem.variables] == ["machine[4]", "rack[4]"]
    (timers,) = [problem.configuration(np.array([0.5, 0.0]))]
    assert timers.of(5) == (43200.0, 0.0)


# -- Searches ----------------------------------------------------------------------------------------------------------


def search(problem, backend, evaluations=30, **options):
    own = {"evaluations": evaluations, **options.pop("own", {})}
    return eq.solve(problem, backend, backend_options={backend: own}, **options)


@pytest.mark.parametrize("backend", ["random", "grid", "spea2", "nsga2", "differential_evolution"])
def test_every_search_starts_from_the_policies_and_ends_no_worse(backend):
    if backend not in ("random", "grid"):
        pytest.importorskip("pymoo")
    objectives = ["jct:avg"] if backend == "differential_evolution" else ["jct:avg", "makespan"]
    problem = tuning(train=(jobs(0),), test=(jobs(5),), objectives=objectives)
    result = search(problem, backend, own={} if backend in ("random", "grid") else {"population": 6})
    front = result.require_plan()
    best = problem.score(np.array(list(problem.starts.values()))).min(axis=0)
    assert (front.scores.min(axis=0) <= best).all()
    held_out = problem.held_out_scores(front)
    np.testing.assert_array_equal(held_out, problem.scores_of(front.configurations, held_out=True))
    assert list(front.named_picks) == ["jct", *(["makespan"] if len(objectives) > 1 else []), "balanced"]
    assert all(isinstance(each, DelayTimers) for each in front.configurations)
    again = search(problem, backend, own={} if backend in ("random", "grid") else {"population": 6}).require_plan()
    assert again.vectors.tolist() == front.vectors.tolist()


@needs_package("joblib", "distributed")
def test_one_worker_and_two_give_the_same_front():
    problem = tuning(train=(jobs(0),), objectives=["jct:avg", "communication:avg"])
    one, two = (search(problem, "random", threads=threads).require_plan() for threads in (1, 2))
    assert one.vectors.tolist() == two.vectors.tolist()
    assert one.scores.tolist() == two.scores.tolist()


class Killed(BaseException):
    """Ends a search at once, as the end of its process does."""


@pytest.mark.parametrize("backend", ["random", "spea2", "differential_evolution"])
def test_a_killed_search_goes_on_from_its_checkpoint(backend, tmp_path, monkeypatch):
    own = {"checkpoint": str(tmp_path / "search.json")}
    if backend != "random":
        pytest.importorskip("pymoo")
        own["population"] = 6
    problem = tuning(train=(jobs(0),), objectives=["jct:avg"])
    unbroken = search(problem, backend, own={**own, "checkpoint": str(tmp_path / "other.json")}).require_plan()
    score, calls = DelayScores.of, []

    def counted(self, timers):
        calls.append(timers)
        if len(calls) == 17:
            raise Killed
        return score(self, timers)

    monkeypatch.setattr(DelayScores, "of", counted)
    with pytest.raises(Killed):
        search(problem, backend, own=own)
    resumed = search(problem, backend, own=own)
    assert any("evaluations were read from" in note for note in resumed.notes)
    assert len(calls) - 17 < 30
    assert resumed.require_plan().vectors.tolist() == unbroken.vectors.tolist()


def test_a_problem_survives_pickling_and_is_built_once_in_a_process():
    problem = tuning(test=(jobs(7),))
    vectors = drawn(problem, 3)
    first, again = (pickle.loads(pickle.dumps(problem)) for _ in range(2))
    assert first is again is not problem
    np.testing.assert_array_equal(first.score(vectors), problem.score(vectors))
    assert first.variables == problem.variables


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": []}, "objectives = "),
        ({"objectives": ["jct"]}, r"objectives\[0\] = 'jct': needs a measure"),
        ({"objectives": ["makespan:avg"]}, r"objectives\[0\] = 'makespan:avg': makespan is one number"),
        ({"objectives": ["pred_error:avg"]}, "the metrics are jct, waited, communication, makespan"),
        ({"objectives": ["jct:avg", "jct:avg"]}, r"objectives\[1\] = 'jct:avg': the same objective twice"),
        ({"objectives": [f"jct:p{each}" for each in range(5)]}, "must be at most four"),
        ({"space": "polar"}, "space = 'polar': must be one of by_demand, shared"),
        ({"train": jobs()}, "train = 'Trace': must be a tuple of traces"),
        ({"train": ()}, r"train = '\(\)': must have at least one trace"),
        ({"test": (jobs(), 3)}, r"test\[1\] = 'int': must be a Trace"),
        ({"train": (replace(jobs(), gang_gpus=np.full(24, 17)),)}, r"gang_gpus\[0\] = 17: .*wider than the cluster"),
        ({"test": (replace(jobs(), gang_gpus=np.full(24, 17)),)}, r"gang_gpus\[0\] = 17: .*wider than the cluster"),
        ({"train": (replace(jobs(), gang_gpus=np.ones(24, int)),)}, "train = 'demands 1': no timer can change"),
        ({"test": (replace(jobs(), model=["LM"] * 24),)}, r"model\[0\] = 'LM': .*the table of communication has"),
        ({"train": (replace(jobs(), duration_s=None, total_steps=np.ones(24)),)}, "duration_s"),
        ({"cluster": 16}, "train = .*no timer can change a decision"),
        ({"cluster": {"v100": 8, "k80": 8}}, "cluster = 'v100, k80': the placement engine takes GPUs of one type"),
        ({"cluster": 0}, "gpus = 0"),
        ({"rules": None}, "rules = 'NoneType': must be PlacementRules"),
        ({"speeds": 3}, "speeds = 'int': must be Speeds"),
        ({"lease_s": 0.0}, "lease_s = 0"),
        ({"lease_s": math.nan}, "lease_s = nan"),
        ({"offer_s": -1.0}, "offer_s = -1"),
        ({"keep": "yes"}, "keep = 'yes'"),
        ({"reference": [math.nan] * 4}, "reference"),
        ({"reference": [0.0] * 4}, r"reference\[0\] = 0"),
    ],
)
def test_bad_fields_are_refused_by_name(options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        tuning(**options)


@pytest.mark.parametrize(
    ("trace", "options", "message"),
    [
        (jobs(0, 9), {}, "trace = '9 jobs': a history must have at least 10"),
        ("philly.csv", {}, "trace = 'str': must be a Trace"),
        (jobs(), {"jobs": 0}, "jobs = 0"),
        (jobs(), {"samples": 0}, "samples = 0"),
        (jobs(), {"held_out": -1}, "held_out = -1"),
        (jobs(), {"load": 0.0}, "load = 0"),
        (jobs(), {"load": math.nan}, "load = nan"),
        (jobs(), {"seed": "x"}, "seed = 'x'"),
    ],
)
def test_a_bad_history_is_refused_by_name(trace, options, message):
    with pytest.raises(eq.InvalidInput, match=message):
        DelayTuning.from_history(trace, cluster=CLUSTER, **options)


def test_held_out_scores_need_test_samples():
    problem = tuning(train=(jobs(0),))
    for score in (lambda: problem.scores_of([DelayTimers.manual()], held_out=True),
                  lambda: problem.scores_of_policy(make_policy("dally"), held_out=True)):  # fmt: skip
        with pytest.raises(eq.InvalidInput, match=r"test = '\(\)': there are no samples"):
            score()


def test_speeds_without_a_network_still_have_bounds():
    problem = tuning(speeds=DurationSpeeds(2.0), train=(jobs(0),), objectives=["jct:avg", "communication:avg"])
    assert problem.ideal[1] == 0.0 < problem.reference[1]


class OddSpeeds(DurationSpeeds):
    """Speeds that answer as stated across racks, and well elsewhere."""

    def __init__(self, **answers):
        super().__init__()
        self.answers = answers

    def work(self, trace):
        return self.answers.get("work", super().work(trace))

    def rate(self, run):
        return self.answers.get("rate", 1.0) if run.tier == 2 else 1.0

    def exposed(self, run):
        return self.answers.get("exposed", 0.0) if run.tier == 2 else 0.0


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"rate": 0.0}, r"speeds\[\d+\] = 0\.0: job cannot run so"),
        ({"rate": math.nan}, r"speeds\[\d+\] = nan: job cannot run so"),
        ({"exposed": 1.5}, "exposed of speeds = 1.5: at most 1"),
        ({"work": np.ones(3)}, "work of speeds"),
        ({"work": np.full(24, -1.0)}, r"work of speeds\[0\] = -1"),
    ],
)
def test_speeds_that_answer_out_of_range_are_refused(answers, message):
    with pytest.raises(eq.InvalidInput, match=message):
        tuning(speeds=OddSpeeds(**answers), train=(jobs(0),), test=())
