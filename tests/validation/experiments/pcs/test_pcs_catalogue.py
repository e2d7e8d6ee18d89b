"""The experiments of PCS: the printed instance, workloads with and without data, picks, and small runs."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from shared_data import DATA

from equipoise.cli.main import run
from equipoise.formulations.errors import InvalidInput
from equipoise.formulations.search.front import ParetoFront
from equipoise.formulations.search.wfq_config import WfqConfig
from equipoise.simulation.fluid import Speedups
from equipoise.solvers.result import HistoryPoint
from equipoise.validation.experiments.experiment import ExperimentSettings
from equipoise.validation.experiments.papers import EXPERIMENTS
from equipoise.validation.experiments.pcs.paper import FIGURE_7
from equipoise.validation.experiments.pcs.published_front import published_config
from equipoise.validation.experiments.pcs.run import Figures, Steps, picks, progress_of, simulated
from equipoise.validation.experiments.pcs.searches import hypervolume_after
from equipoise.validation.experiments.pcs.workloads import (
    cluster_cases,
    generated_case,
    gpus_at_load,
    held_out_case,
    published_case,
)

PCS = EXPERIMENTS["pcs"]
SMALL = ExperimentSettings(jobs=12, gpus=8, repeats=1, evaluations=12)
needs_data = pytest.mark.skipif(not (DATA / "pcs").is_dir(), reason="shared/data is not here")


def front(scores):
    """Return a front of one-queue configurations whose caps number its points."""
    scores = np.array(scores)
    configs = [WfqConfig(thresholds=[np.inf], weights=[1], zeta=place / 10.0) for place in range(len(scores))]
    return ParetoFront(
        variables=("x",), objectives=("jct:avg", "pred_error:avg"), vectors=np.zeros((len(scores), 1)), scores=scores,
        configurations=tuple(configs), ideal=[0.0, 0.0], reference=[1e9, 1e9],
    )  # fmt: skip


def test_the_printed_instance():
    outcome = PCS.find("1").run(SMALL)
    # The printed largest unfairness is no outcome of the stated formula (docs/errata.md).
    assert [claim.holds for claim in outcome.claims] == [True, True, False]
    assert [row["jct s"] for row in outcome.rows] == [11.25, 13.5, 15.75]


def test_picks_by_hand():
    points = [[10.0, 50.0], [12.0, 20.0], [30.0, 10.0], [60.0, 5.0], [90.0, 0.0]]
    # Counted from the best (0) to the worst (1): (0, 1), (.025, .4), (.25, .2), (.625, .1), (1, 0).
    assert [config.zeta for config in picks(front(points), most_jct_s=70.0).values()] == [0.0, 0.2, 0.3]
    assert [config.zeta for config in picks(front(points), most_jct_s=20.0).values()] == [0.0, 0.1, 0.1]
    # With no point within the limit, all picks are the one of the least JCT.
    assert {config.zeta for config in picks(front([[10.0, 50.0], [12.0, 20.0]]), most_jct_s=5.0).values()} == {0.0}


def test_workloads_without_data_are_generated_by_seed():
    first, again = (generated_case(SMALL, "automl", gpus=8, seed=3) for _ in range(2))
    other, held_out = generated_case(SMALL, "automl", gpus=8, seed=4), held_out_case(SMALL, "automl", gpus=8, seed=3)
    assert first.source == "generated"
    assert np.array_equal(first.trace.size_s, again.trace.size_s)
    for each in (other, held_out):
        assert not np.array_equal(first.trace.size_s, each.trace.size_s)
    slow = generated_case(SMALL, "continuous", gpus=8, seed=3, load=0.1)
    assert slow.trace.arrival_s[-1] > generated_case(SMALL, "continuous", gpus=8, seed=3).trace.arrival_s[-1]


def test_clusters_without_data_say_so():
    cases = list(cluster_cases(replace(SMALL, gpus=None, jobs=200)))
    assert [name for name, _, _ in cases] == list(FIGURE_7)
    assert {case.source for _, _, case in cases} == {"generated"}
    for _, _, case in cases:
        load = case.trace.size_s.sum() / (case.gpus * np.ptp(case.trace.arrival_s))
        assert load == pytest.approx(0.8, abs=0.5 / case.gpus)
    assert published_case(SMALL, "2869ce", 64) is None
    assert "--data" in PCS.find("published").run(SMALL).skipped


@pytest.mark.thorough
@needs_data
def test_clusters_with_data_are_parts_of_their_traces():
    settings = replace(SMALL, gpus=None, jobs=50, data=DATA, repeats=2)
    cases = {(name, seed): case for name, seed, case in cluster_cases(settings)}
    assert {case.source for case in cases.values()} == {"published trace", "Philly"}
    assert all(len(case.trace) == 50 for case in cases.values())
    assert all(case.gpus == gpus_at_load(case.trace) for case in cases.values())
    whole = published_case(settings, "2869ce", 64)
    ids = list(whole.trace.job_id)
    start = ids.index(cases["2869ce", 0].trace.job_id[0])
    assert list(cases["2869ce", 0].trace.job_id) == ids[start : start + 50]
    assert generated_case(settings, "automl", gpus=16, seed=0).source == "published distributions"


@needs_data
def test_full_traces_give_the_printed_figures():
    case = published_case(replace(SMALL, data=DATA), "2869ce", 64)
    afs, srsf = (simulated(case, name) for name in ("afs", "srsf"))
    printed = FIGURE_7["2869ce"]
    assert srsf.jct_s / afs.jct_s == pytest.approx(printed["srsf"].jct, abs=6e-4)
    assert afs.error_pct == pytest.approx(printed["afs"].error_pct, abs=6e-4)
    assert srsf.p99_error_pct == pytest.approx(printed["srsf"].p99_error_pct, abs=6e-4)


@needs_data
def test_published_configurations_have_the_published_jct():
    solutions = json.loads((DATA / "pcs" / "pareto" / "trace_2869ce.json").read_text())["solutions"]
    case = published_case(replace(SMALL, data=DATA), "2869ce", 64)
    for solution in solutions[::30]:
        found = simulated(case, published_config(solution))
        assert found.jct_s == pytest.approx(solution["objectives"]["avg_jct"], rel=1e-9)


def test_figures_by_hand():
    case = generated_case(SMALL, "automl", gpus=8, seed=0)
    fifo = simulated(case, "fifo")
    one_queue = simulated(case, WfqConfig(thresholds=[np.inf], weights=[1]))
    assert fifo == one_queue
    assert fifo.error_pct == pytest.approx(0.0, abs=1e-9)
    assert fifo.p90_jct_s >= fifo.jct_s / 2
    assert simulated(case, "fifo", size_error_pct=20.0).error_pct > 1.0


def test_the_course_of_a_search_by_hand():
    class Found:
        history = (
            HistoryPoint(time=0.0, objective=None, bound=1.0),
            HistoryPoint(time=1.0, objective=0.5, bound=1.0, measures={"evaluations": 10}),
            HistoryPoint(time=2.0, objective=0.7, bound=1.0, measures={"evaluations": 20}),
            HistoryPoint(time=3.0, objective=0.7, bound=1.0),
        )

    assert progress_of(Found) == [(1.0, 10, 0.5), (2.0, 20, 0.7)]
    assert hypervolume_after(Found, [5, 10, 19, 30]) == [0.0, 0.5, 0.5, 0.7]


def test_steps_are_counted():
    seen = []
    steps = Steps(lambda done, total: seen.append((done, total)), 3)
    steps.add()
    steps.add(2)
    assert seen == [(1, 3), (3, 3)]


def test_the_command_lists_the_experiments(capsys):
    assert run(["bench", "pcs"]) == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"^{re.escape(name)} ", shown, re.MULTILINE) for name in PCS.experiments)
    assert [PCS.find(name).name for name in ("3", "5", "6", "10b")] == ["trade-off", "4", "4", "10a"]


def test_options_of_searches_are_for_papers_with_searches(capsys):
    for option in ("--evaluations", "--threads"):
        assert run(["bench", "shockwave", "--figure", "3", option, "2"]) == 2
        assert f"{option} 2" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="evaluations"):
        replace(SMALL, evaluations=0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in PCS.experiments if name not in ("1", "9a", "9b", "9c", "published")])
def test_every_experiment_runs_small_without_data(name):
    pytest.importorskip("pymoo")
    steps = []
    outcome = PCS.find(name).run(replace(SMALL, on_step=lambda done, total: steps.append((done, total))))
    assert steps[-1][0] == steps[-1][1]
    assert {row["jobs of"] for row in outcome.rows} == {"generated"}
    assert all(claim.numbers for claim in outcome.claims)
    assert all(plot.svg().startswith("<svg") for plot in outcome.plots)


@pytest.mark.thorough
def test_the_same_command_gives_the_same_rows():
    pytest.importorskip("pymoo")
    rows = [PCS.find("8").run(replace(SMALL, threads=threads)).rows for threads in (1, 2)]
    assert json.dumps(rows[0]) == json.dumps(rows[1])


def test_a_speedup_table_is_the_data_or_our_own():
    case = generated_case(SMALL, "continuous", gpus=8, seed=0)
    assert set(case.speedups.groups) == set(Speedups.builtin().groups)
    assert isinstance(simulated(case, "srsf"), Figures)
