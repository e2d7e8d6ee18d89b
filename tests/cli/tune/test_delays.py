"""`equipoise tune delays`: timers that simulate takes, a search that is continued, and what is refused."""

import json
import signal

import numpy as np
import pytest
from optional import needs_package

import equipoise as eq
from equipoise.cli.main import run
from equipoise.heuristics.search import DelayTuning
from equipoise.simulation import Cluster
from equipoise.simulation.network.workloads import draw_dally_jobs
from equipoise.simulation.placement import PlacementRules

TRACE = "generated:60,workload=poisson,load=3"
CLUSTER = ["--racks", "2", "--machines", "4", "--gpus-per-machine", "4"]
SMALL = [*CLUSTER, "--jobs", "24", "--backend", "random", "--evaluations", "12"]
FILES = ["configs", "front.html", "front.json", "search.json", "summary.json", "tuning.json"]


def tune(folder, *more, trace=TRACE):
    return run(["tune", "delays", trace, *SMALL, "--out", str(folder), *more])


def failing(capsys, folder, *more, code=2, trace=TRACE):
    assert tune(folder, *more, trace=trace) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 2
    return captured.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a finished search."""
    folder = tmp_path_factory.mktemp("delays") / "out"
    assert tune(folder) == 0
    return folder


def test_the_folder_has_the_front_of_the_search(folder):
    assert sorted(each.name for each in folder.iterdir()) == FILES
    front = eq.ParetoFront.load(folder / "front.json")
    summary = json.loads((folder / "summary.json").read_text())
    history = draw_dally_jobs(np.random.default_rng(0), jobs=60, arrivals="poisson", load=3.0, gpus=16)
    cluster = Cluster(gpus_by_type={"gpu": 16}, machines=4, racks=2)
    tuning = DelayTuning.from_history(history, cluster=cluster, jobs=24)
    assert front.hypervolume == summary["hypervolume"] == tuning.evaluate(front)[0]
    np.testing.assert_array_equal(front.scores, tuning.scores_of(front.configurations))
    np.testing.assert_array_equal(front.held_out, tuning.held_out_scores(front))
    assert (summary["evaluations"], summary["racks"], summary["speeds"]) == (12, 2, "table")
    assert summary["rules"]["checkpoint_s_per_gpu"] == 1.0
    assert [pick["pick"] for pick in summary["picks"]] == ["jct", "makespan", "balanced"]
    for pick in summary["picks"]:
        assert (folder / "configs" / f"{pick['pick']}.json").read_text() == front.pick(pick["pick"]).to_json()
    page = (folder / "front.html").read_text(encoding="ascii")
    assert "backend random, seed 0, evaluations 12" in page


def test_the_chosen_timers_run(folder, capsys):
    file = folder / "configs" / "balanced.json"
    words = ["simulate", TRACE, *CLUSTER, "--speeds", "table", "--policy", f"dally-manual:timers={file}", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["num_jobs"]) == ("dally-manual", 60)


def test_a_lease_may_be_infinite_and_a_search_with_it_be_continued(tmp_path):
    folder = tmp_path / "out"
    assert tune(folder, "--lease-s", "inf") == 0
    assert json.loads((folder / "tuning.json").read_text())["lease_s"] == "inf"
    before = (folder / "front.json").read_bytes()
    assert tune(folder, "--lease-s", "inf", "--resume") == 0
    assert (folder / "front.json").read_bytes() == before


def test_the_options_reach_the_search(tmp_path, capsys):
    more = ["--lease-s", "1800", "--offer-s", "600", "--no-keep", "--space", "shared", "--rules", "restart_s=30"]
    assert tune(tmp_path / "out", *more, "--objectives", "waited:p90, communication:avg", "--held-out", "0") == 0
    shown = capsys.readouterr().out
    for text in ("waited:p90", "communication:avg", "balanced", "12 evaluations by random, seed 0"):
        assert text in shown
    history = draw_dally_jobs(np.random.default_rng(0), jobs=60, arrivals="poisson", load=3.0, gpus=16)
    tuning = DelayTuning.from_history(
        history,
        cluster=Cluster(gpus_by_type={"gpu": 16}, machines=4, racks=2),
        objectives=["waited:p90", "communication:avg"],
        jobs=24,
        held_out=0,
        space="shared",
        rules=PlacementRules(checkpoint_s_per_gpu=1.0, restart_s=30.0),
        lease_s=1800.0,
        offer_s=600.0,
        keep=False,
    )
    front = eq.ParetoFront.load(tmp_path / "out" / "front.json")
    assert front.variables == ("rack",)  # no job of the sample asks for 2 to 4 GPUs
    np.testing.assert_array_equal(front.scores, tuning.scores_of(front.configurations))


def test_a_shorter_search_continues_to_the_same_front(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert tune(out, "--evaluations", "5") == 0
    capsys.readouterr()
    assert "--resume continues it" in failing(capsys, out)
    assert tune(out, "--resume") == 0
    assert (out / "front.json").read_text() == (folder / "front.json").read_text()


def test_ctrl_c_writes_the_best_so_far_and_the_search_continues(folder, tmp_path, capsys, monkeypatch):
    evaluate, calls = DelayTuning._evaluate, []

    def interrupted(self, vectors):
        calls.append(len(vectors))
        if len(calls) == 9:
            signal.raise_signal(signal.SIGINT)
        return evaluate(self, vectors)

    monkeypatch.setattr(DelayTuning, "_evaluate", interrupted)
    out = tmp_path / "out"
    assert tune(out, "--json") == 130
    summary = json.loads(capsys.readouterr().out)
    assert summary["limit"] == "interrupted"
    assert 0 < summary["evaluations"] < 12
    monkeypatch.undo()
    assert tune(out, "--resume") == 0
    assert (out / "front.json").read_text() == (folder / "front.json").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objectives", "jct:avg"], "has objectives ['jct:avg', 'makespan'], not"),
        (["--lease-s", "1800"], "has lease_s 3600"),
        (["--speeds", "penalties"], "has speeds table, not penalties"),
        (["--rules", "restart_s=3"], "has rules"),
    ],
)
def test_another_search_is_not_continued(folder, capsys, more, message):
    assert message in failing(capsys, folder, "--resume", *more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--backend", "simplex"], "--backend = 'simplex': must be one of auto, spea2"),
        (["--space", "direct"], "--space = 'direct': must be one of by_demand, shared"),
        (["--objectives", "jct:avg,pred_error:avg"], "the metrics are jct, waited, communication, makespan"),
        (["--objectives", "makespan:avg"], "makespan is one number: it takes no measure"),
        (["--objectives", "waited"], "needs a measure"),
        (["--racks", "0"], "--racks = 0"),
        (["--racks", "1", "--machines", "1", "--gpus-per-machine", "16"], "no timer can change a decision"),
        (["--lease-s", "0"], "lease_s = 0"),
        (["--lease-s", "nan"], "lease_s = nan"),
        (["--speeds", "fast"], "--speeds = 'fast'"),
        (["--network", "missing.csv"], "missing.csv"),
        (["--rules", "x=1"], "--rules x: no such rule"),
    ],
)
def test_bad_options_are_one_line_and_a_hint(tmp_path, capsys, more, message):
    assert message in failing(capsys, tmp_path / "out", *more)
    assert not (tmp_path / "out").exists()


@needs_package("pymoo", "search")
def test_one_objective_is_searched_by_differential_evolution(tmp_path, capsys):
    words = [*SMALL[:8], "--evaluations", "16", "--population", "4", "--held-out", "0", "--objectives", "jct:avg"]
    assert run(["tune", "delays", TRACE, *words, "--out", str(tmp_path / "out")]) == 0
    assert "16 evaluations by differential_evolution" in capsys.readouterr().out
    front = eq.ParetoFront.load(tmp_path / "out" / "front.json")
    assert len(front) == 1
    assert "jct:avg" in (tmp_path / "out" / "front.html").read_text()


@needs_package("pymoo", "search")
def test_a_search_for_the_least_of_one_objective_refuses_two(tmp_path, capsys):
    message = failing(capsys, tmp_path / "out", "--backend", "differential_evolution", code=4)
    assert "differential_evolution cannot search for jct:avg, makespan" in message
