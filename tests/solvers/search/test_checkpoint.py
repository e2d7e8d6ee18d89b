"""Checkpoints: a search that was killed ends as an unbroken one; files of others, or damaged ones, are refused."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from search_cases import BOX, slow_problem

import equipoise as eq
from equipoise.validation.contract.fronts import constrained, problem_of, schaffer, schaffer_problem

CHILD = """
import sys
import equipoise as eq
from search_cases import slow_problem
own = {sys.argv[1]: {"evaluations": 350, "checkpoint": sys.argv[2]}}
eq.solve(slow_problem(0.004), sys.argv[1], seed=5, backend_options=own)
"""


def search(path, problem=None, backend="random", seed=5, **own):
    own = {"evaluations": 350, "checkpoint": path, **own}
    return eq.solve(problem or schaffer_problem(), backend, seed=seed, backend_options={backend: own})


def same(one, other):
    return one.plan.vectors.tolist() == other.plan.vectors.tolist() and one.objective == other.objective


@pytest.mark.parametrize("backend", ["random", "grid", pytest.param("spea2", marks=pytest.mark.thorough)])
def test_a_killed_search_ends_as_an_unbroken_one(tmp_path, backend):
    if backend == "spea2":
        pytest.importorskip("pymoo")
    path = tmp_path / "search.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    child = subprocess.Popen([sys.executable, "-c", CHILD, backend, str(path)], env=environment)
    until = time.monotonic() + 60.0
    while time.monotonic() < until and not (path.exists() and 0 < len(evaluations(path)) < 350):
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    done = len(evaluations(path))
    assert 0 < done < 350
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".writing")] == ["search.json"]
    counted = []

    def count(x):
        counted.extend(x[:, 0].tolist())
        return schaffer(x)

    resumed = search(path, problem_of(count, **BOX), backend)
    assert f"{done} evaluations were read from {path}" in resumed.notes
    unbroken = eq.solve(slow_problem(0.0), backend, seed=5, backend_options={backend: {"evaluations": 350}})
    assert same(resumed, unbroken)
    total = int(resumed.history[-2].measures["evaluations"])
    assert len(counted) == total - done + len(resumed.plan)  # scores of the file are not computed again
    assert len(evaluations(path)) == total


def evaluations(path):
    return json.loads(path.read_text())["evaluations"]


def test_a_search_goes_on_from_a_time_limit_with_infeasible_vectors(tmp_path):
    path = tmp_path / "search.json"

    def slow(x):
        time.sleep(0.002)
        return constrained(0.5, x)

    problem = problem_of(slow, variables=2)
    own = {"random": {"checkpoint": path, "evaluations": 200}}
    first = eq.solve(problem, "random", time_limit=0.15, backend_options=own)
    assert first.termination.limit is eq.Limit.TIME
    assert None in [scores for _, scores in evaluations(path)]
    longer = eq.solve(problem, "random", backend_options=own)
    assert same(longer, eq.solve(problem, "random", backend_options={"random": {"evaluations": 200}}))


def test_a_longer_search_goes_on_from_a_shorter_one(tmp_path):
    path = tmp_path / "search.json"
    search(path, evaluations=100)
    assert same(search(path, evaluations=300), search(tmp_path / "other.json", evaluations=300))
    assert len(evaluations(path)) == 300
    search(path, evaluations=50)
    assert len(evaluations(path)) == 300  # a shorter one takes nothing away


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("variables", {"problem": problem_of(schaffer, bounds=(-1.0, 4.0), reference=(4.0, 4.0))}),
        ("reference", {"problem": problem_of(schaffer, bounds=(-1.0, 3.0), reference=(4.0, 5.0))}),
        ("ideal", {"problem": problem_of(schaffer, bounds=(-1.0, 3.0), ideal=(0.0, -1.0), reference=(4.0, 4.0))}),
        ("objectives", {"problem": problem_of(schaffer, **{**BOX, "ideal": (0.0,) * 3, "reference": (4.0,) * 3})}),
        ("starts", {"problem": schaffer_problem(starts={"middle": [1.0]})}),
        ("seed", {"seed": 6}),
        ("backend", {"backend": "grid"}),
    ],
)
def test_a_checkpoint_of_another_search_is_refused_by_field(tmp_path, field, other):
    path = tmp_path / "search.json"
    search(path)
    before = path.read_text()
    with pytest.raises(eq.InvalidInput) as caught:
        search(path, **other)
    assert caught.value.field == field
    assert str(path) in str(caught.value)
    assert path.read_text() == before


def test_a_checkpoint_of_another_population_is_refused(tmp_path):
    pytest.importorskip("pymoo")
    path = tmp_path / "search.json"
    search(path, backend="spea2", evaluations=20, population=10)
    for field, other in (("population", {"population": 12}), ("distances", {"population": 10, "distances": "raw"})):
        with pytest.raises(eq.InvalidInput) as caught:
            search(path, backend="spea2", evaluations=20, **other)
        assert caught.value.field == field


def cut(text):
    return text[: len(text) // 2]


def without(name):
    return lambda text: json.dumps({key: value for key, value in json.loads(text).items() if key != name})


def with_evaluation(evaluation):
    return lambda text: json.dumps({**json.loads(text), "evaluations": [evaluation]})


@pytest.mark.parametrize(
    "damage",
    [
        cut, lambda text: "", lambda text: "[]", lambda text: "\x00" * 100, without("format"), without("search"),
        without("evaluations"), with_evaluation([[0.5]]), with_evaluation([[0.5, 0.5], [1.0, 2.0]]),
        with_evaluation([["a"], [1.0, 2.0]]), with_evaluation([[0.5], [1.0]]), with_evaluation(3),
        with_evaluation([[0.5], [float("nan"), 1.0]]),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "search.json"
    search(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(eq.InvalidInput, match="checkpoint"):
        search(path)


def refuses_to_run(x):
    raise AssertionError("the evaluator ran")


@pytest.mark.parametrize("place", ["missing/search.json", "file/search.json", "folder", "/dev/full"])
def test_a_place_that_cannot_be_written_is_reported_before_the_search(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(eq.InvalidInput) as caught:
        search(tmp_path / place, problem_of(refuses_to_run, **BOX))
    assert caught.value.field == "backend_options['random']['checkpoint']"


def test_a_full_disk_before_the_search_is_reported_and_one_in_it_is_noted(tmp_path):
    path = tmp_path / "search.json"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written = []
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.raises(eq.InvalidInput, match="cannot be written"):
            search(path, problem_of(refuses_to_run, **BOX))
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
        result = search(path)
        written = evaluations(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sum("could not be written" in note for note in result.notes) == 1
    assert 0 < len(written) < 350  # the last file that fitted is there, and whole
    assert same(
        result, eq.solve(schaffer_problem(), "random", seed=5, backend_options={"random": {"evaluations": 350}})
    )
    assert list(tmp_path.iterdir()) == [path]


def test_scores_are_kept_to_the_last_bit(tmp_path):
    path = tmp_path / "search.json"
    thirds = problem_of(lambda x: x / 3.0, ideal=(0.0,), reference=(1.0,))
    search(path, thirds)
    for vector, scores in evaluations(path):
        assert (np.array(vector) / 3.0).tolist() == scores
