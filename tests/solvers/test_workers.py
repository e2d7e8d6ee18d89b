"""Workers: scores from processes, which may end in the middle of their work."""

import sys
from functools import partial

import numpy as np
import pytest
from optional import needs_package
from search_cases import BOX, ends_once, fails, one_thread, schaffer, slow_problem

import equipoise as eq
from equipoise.solvers.workers import Workers
from equipoise.validation.contract.fronts import problem_of, schaffer_problem

needs_joblib = needs_package("joblib", "distributed")
VECTORS = np.linspace(-1.0, 3.0, 12)[:, None]


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=needs_joblib)])
def test_scores_are_those_of_the_function(count):
    with Workers(schaffer, 2, count) as workers:
        assert workers.all_scores(VECTORS).tolist() == schaffer(VECTORS).tolist()
        assert workers.all_scores(VECTORS[:1]).tolist() == schaffer(VECTORS[:1]).tolist()
        assert workers.notes == []


@needs_joblib
def test_a_local_function_reaches_the_workers():
    shift = 2.0
    with Workers(lambda x: x + shift, 1, 2) as workers:
        assert workers.all_scores(VECTORS).tolist() == (VECTORS + shift).tolist()


@needs_joblib
@pytest.mark.thorough
@pytest.mark.parametrize("how", ["exit", "SIGKILL", "SIGSEGV"])
def test_a_worker_that_ends_once_loses_nothing(tmp_path, how):
    problem = problem_of(partial(ends_once, str(tmp_path / "flag"), how), **BOX)
    own = {"random": {"evaluations": 40}}
    broken = eq.solve(problem, "random", threads=2, backend_options=own)
    assert (tmp_path / "flag").exists()
    unbroken = eq.solve(schaffer_problem(), "random", backend_options=own)
    assert broken.plan.vectors.tolist() == unbroken.plan.vectors.tolist()
    assert broken.notes == ()


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=needs_joblib)])
def test_a_worker_uses_one_blas_thread(count):
    with Workers(one_thread, 1, count) as workers:
        assert workers.all_scores(VECTORS).tolist() == [[1.0]] * len(VECTORS)


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=needs_joblib)])
def test_nothing_begins_after_the_stop(count):
    begun = []

    def stop():
        begun.append(1)
        return len(begun) > 5

    with Workers(schaffer, 2, count) as workers:
        assert len(list(workers.scored(VECTORS, stop))) <= 5


@needs_joblib
def test_an_error_in_a_worker_is_raised_here():
    with Workers(fails, 2, 2) as workers, pytest.raises(ZeroDivisionError):
        workers.all_scores(VECTORS)


@needs_joblib
def test_a_function_that_cannot_be_sent_is_refused_before_anything_runs():
    frame = sys._getframe()
    with pytest.raises(eq.InvalidInput, match=r"evaluate_many.*worker processes"):
        eq.solve(problem_of(lambda x: (frame, schaffer(x))[1], **BOX), "random", threads=2)


def test_several_workers_without_joblib_are_refused_with_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    monkeypatch.setattr("equipoise.solvers.workers.find_spec", lambda name: None)
    with pytest.raises(eq.InvalidInput, match=r"threads.*pip install 'equipoise\[distributed\]'"):
        eq.solve(schaffer_problem(), "random", threads=2)


@needs_joblib
@pytest.mark.thorough
def test_two_workers_share_the_search_and_the_final_check():
    own = {"random": {"evaluations": 70}}
    eq.solve(slow_problem(0.0), "random", threads=2, backend_options=own)  # the processes start
    one, two = (eq.solve(slow_problem(0.02), "random", threads=count, backend_options=own) for count in (1, 2))
    assert one.plan.vectors.tolist() == two.plan.vectors.tolist()
    assert two.wall_time < 0.8 * one.wall_time
