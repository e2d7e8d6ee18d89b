"""`equipoise tune wfq`: the search, its folder, its end by Ctrl-C, its continuation, and what is refused."""

import json
import resource
import signal
from dataclasses import replace

import numpy as np
import pytest
from optional import needs_package

import equipoise as eq
from equipoise.cli.main import run
from equipoise.cli.progress import SearchProgress
from equipoise.heuristics.search.wfq_tuning import WfqTuning
from equipoise.simulation.fluid import generate_jobs
from equipoise.simulation.fluid.workloads.generator import find_workload

TRACE = "generated:80,load=1.2"
SMALL = ["--gpus", "8", "--jobs", "40", "--backend", "random", "--evaluations", "12"]
FILES = ["configs", "front.html", "front.json", "search.json", "summary.json", "tuning.json"]


def tune(folder, *more, trace=TRACE):
    return run(["tune", "wfq", trace, *SMALL, "--out", str(folder), *more])


def failing(capsys, folder, *more, code=2, trace=TRACE):
    assert tune(folder, *more, trace=trace) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 2
    return captured.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a finished search."""
    folder = tmp_path_factory.mktemp("tuning") / "out"
    assert tune(folder) == 0
    return folder


def test_the_folder_has_the_front_of_the_search(folder):
    assert sorted(each.name for each in folder.iterdir()) == FILES
    front = eq.ParetoFront.load(folder / "front.json")
    summary = json.loads((folder / "summary.json").read_text())
    history = generate_jobs(
        np.random.default_rng(0), replace(find_workload("training"), load=1.2, jobs_per_hour=None), num_jobs=80, gpus=8
    )
    tuning = WfqTuning.from_history(history, gpus=8, jobs=40, objectives=("jct:avg", "pred_error:p99"))
    assert front.hypervolume == summary["hypervolume"] == tuning.evaluate(front)[0]
    np.testing.assert_array_equal(front.scores, tuning.scores_of(front.configurations))
    np.testing.assert_array_equal(front.held_out, tuning.held_out_scores(front))
    assert summary["evaluations"] == 12
    assert summary["points"] == len(front)
    for pick in summary["picks"]:
        point = front.pick(pick["pick"])
        assert (pick["point"], pick["scores"]) == (point.index, point.scores)
        assert (folder / "configs" / f"{pick['pick']}.json").read_text() == point.to_json()
    page = (folder / "front.html").read_text(encoding="ascii")
    assert "backend random, seed 0, evaluations 12" in page


def test_a_chosen_configuration_runs(folder, capsys):
    words = ["simulate", TRACE, "--engine", "fluid", "--gpus", "8", "--json"]
    assert run([*words, "--policy", f"wfq:config={folder / 'configs' / 'balanced.json'}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["num_jobs"]) == ("wfq", 80)


def test_the_same_search_prints_the_same_and_nothing_of_its_progress(folder, tmp_path, capsys):
    assert tune(tmp_path / "out", "--json") == 0
    captured = capsys.readouterr()
    found, former = json.loads(captured.out), json.loads((folder / "summary.json").read_text())
    assert {**found, "wall_s": 0} == {**former, "wall_s": 0}
    assert (tmp_path / "out" / "front.json").read_text() == (folder / "front.json").read_text()
    assert captured.err.splitlines() == [
        f"equipoise: wrote front.json, front.html, configs/ and summary.json to {tmp_path / 'out'}; "
        "search.json is for --resume"
    ]


def test_people_get_a_table_of_the_picks(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tuning.json").touch()  # of a search that was refused
    assert tune(tmp_path / "out", "--objectives", "jct:avg, unfairness:p90") == 0
    shown = capsys.readouterr().out
    for text in ("unfairness:p90 held out", "jct ", "balanced", "hypervolume", "12 evaluations by random, seed 0"):
        assert text in shown
    assert "pred " not in shown
    assert sorted(each.name for each in (tmp_path / "out" / "configs").iterdir()) == ["balanced.json", "jct.json"]


def test_a_shorter_search_continues_to_the_same_front(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert tune(out, "--evaluations", "5") == 0
    capsys.readouterr()
    assert "--resume continues it" in failing(capsys, out)
    assert tune(out, "--resume") == 0
    assert (out / "front.json").read_text() == (folder / "front.json").read_text()
    assert json.loads((out / "summary.json").read_text())["evaluations"] == 12


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objectives", "jct:avg,unfairness:avg"], "has objectives ['jct:avg', 'pred_error:p99'], not"),
        (["--seed", "1"], "has seed 0, not 1"),
        (["--jobs", "41"], "has jobs 40, not 41"),
        (["--rules", "preemption_s=3"], "has rules"),
    ],
)
def test_another_search_is_not_continued(folder, capsys, more, message):
    before = {name: (folder / name).read_bytes() for name in ("search.json", "tuning.json", "summary.json")}
    assert message in failing(capsys, folder, "--resume", *more)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_trace_whose_jobs_have_changed_is_not_continued(tmp_path, capsys):
    trace = tmp_path / "jobs.csv"

    def write(size):
        rows = [f"{job},{60 * job},{size + 100 * job},{1 + job % 4},LM" for job in range(20)]
        trace.write_text("\n".join(["job_id,submit_time_s,duration_s,num_gpus,model", *rows]) + "\n")

    write(1000)
    assert tune(tmp_path / "out", trace=str(trace)) == 0
    write(1001)
    capsys.readouterr()
    assert "has other jobs or speeds" in failing(capsys, tmp_path / "out", "--resume", trace=str(trace))


def test_ctrl_c_writes_the_best_so_far_and_the_search_continues(folder, tmp_path, capsys, monkeypatch):
    evaluate, calls = WfqTuning._evaluate, []

    def interrupted(self, vectors):
        calls.append(len(vectors))
        if len(calls) == 9:
            signal.raise_signal(signal.SIGINT)
        return evaluate(self, vectors)

    monkeypatch.setattr(WfqTuning, "_evaluate", interrupted)
    out = tmp_path / "out"
    assert tune(out, "--json") == 130
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert summary["limit"] == "interrupted"
    assert 0 < summary["evaluations"] < 12
    assert "this is the best so far" in captured.err
    assert captured.err.splitlines()[-1] == "equipoise: interrupted"
    front = eq.ParetoFront.load(out / "front.json")
    assert front.held_out is None
    assert sorted(each.name for each in out.iterdir()) == FILES

    monkeypatch.undo()
    assert tune(out, "--resume") == 0
    assert (out / "front.json").read_text() == (folder / "front.json").read_text()


def test_a_folder_that_cannot_hold_the_results_is_reported_before_the_search(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    assert "is a file, not a folder" in failing(capsys, tmp_path / "file")
    assert "cannot be written" in failing(capsys, tmp_path / "file" / "out", code=1)
    monkeypatch.setattr(WfqTuning, "score", lambda self, vectors: pytest.fail("the search has begun"))
    # Stands for a full disk.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert "cannot be written (File too large)" in failing(capsys, tmp_path / "out", code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--backend", "simplex"], "--backend = 'simplex': must be one of auto, spea2"),
        (["--space", "x"], "--space = 'x': must be one of"),
        (["--time-limit", "0"], "--time-limit = 0"),
        (["--evaluations", "0"], "--evaluations = 0"),
        (["--population", "3"], "--population = 3"),
        (["--population", "8"], "--population = 8: random has no population"),
        (["--samples", "0"], "--samples = 0"),
        (["--held-out", "-1"], "--held-out = -1"),
        (["--jobs", "0"], "--jobs = 0"),
        (["--load", "0"], "--load = 0"),
        (["--threads", "0"], "--threads = 0"),
        (["--seed", "-1"], "--seed = -1"),
        (["--objectives", "jct:avg,jct:p101"], "p101"),
        (["--objectives", "jct:avg,speed:avg"], "the metrics are jct, pred_error, unfairness"),
        (["--rules", "x=1"], "--rules x: no such rule"),
        (["--speedups", "missing.json"], "missing.json"),
    ],
)
def test_bad_options_are_one_line_and_a_hint(tmp_path, capsys, more, message):
    assert message in failing(capsys, tmp_path / "out", *more)
    assert not (tmp_path / "out").exists()


@needs_package("pymoo", "search")
def test_the_default_search_is_that_of_pcs(tmp_path, capsys):
    words = [*SMALL[:4], "--evaluations", "16", "--population", "4", "--held-out", "0", "--space", "direct"]
    assert run(["tune", "wfq", TRACE, *words, "--out", str(tmp_path / "out")]) == 0
    assert "16 evaluations by spea2" in capsys.readouterr().out
    front = eq.ParetoFront.load(tmp_path / "out" / "front.json")
    assert front.held_out is None
    assert front.variables[0] == "queues"


def test_the_line_of_progress():
    objectives = (eq.Objective("jct", "avg"), eq.Objective("pred_error", "p99"))
    with SearchProgress(objectives, 60.0) as progress:
        assert progress.line().endswith("s of 60 s")
        progress(eq.HistoryPoint(0.1, None, 1.0, {"evaluations": 3.0}))
        assert progress.line().endswith("3 evaluations  nothing feasible yet")
        progress(eq.HistoryPoint(0.2, 0.51, 1.0, {"evaluations": 1330.0, "jct:avg": 600.0, "pred_error:p99": 12.0}))
        text = "1,330 evaluations  hypervolume 0.5100  best jct:avg 10.0 min, pred_error:p99 12%"
        assert progress.line().endswith(text)
