"""Searches through `solve`: the clock, the incumbent, the callback, the choice of "auto"."""

import time

import numpy as np
import pytest
from optional import needs_package
from search_cases import BOX, slow_problem

import equipoise as eq
from equipoise.validation.contract.fronts import (
    easy_fronts,
    hard_fronts,
    mean_problem,
    problem_of,
    schaffer,
    schaffer_problem,
)


def test_a_time_limit_leaves_time_for_the_check_of_the_front():
    began = time.perf_counter()
    result = eq.solve(slow_problem(0.02), "random", time_limit=1.0)
    took = time.perf_counter() - began
    assert result.termination.limit is eq.Limit.TIME
    # About half of the vectors lie on the front: without a reserve the check would take another half second.
    assert len(result.plan) >= 10
    assert 0.8 < took < 1.0 + 0.3


def test_a_long_evaluation_ends_the_search_in_its_own_time():
    result = eq.solve(slow_problem(0.5), "random", time_limit=0.2)
    assert result.history[-2].measures["evaluations"] == 1
    assert len(result.plan) == 1
    assert result.wall_time < 0.5 + 0.5 + 0.3  # the evaluation and its check


def test_an_error_of_the_callback_goes_to_the_caller_as_it_is():
    def fail(point):
        raise KeyError("callback")

    with pytest.raises(KeyError, match="callback"):
        eq.solve(schaffer_problem(), "random", on_progress=fail)


def test_the_gap_asked_for_ends_a_search():
    result = eq.solve(schaffer_problem(), "random", rel_gap=0.5)
    assert result.termination.limit is eq.Limit.METHOD
    assert result.gap <= 0.5
    assert result.history[-2].measures["evaluations"] == 70


def test_a_stall_ends_a_search():
    constant = problem_of(lambda x: np.full((len(x), 2), 0.5))
    result = eq.solve(constant, "random", backend_options={"random": {"stall": 100}})
    assert result.termination.limit is eq.Limit.METHOD
    assert result.history[-2].measures["evaluations"] == 210
    assert len(result.plan) == 1


def test_auto_takes_an_evolutionary_search_where_one_is_installed():
    table = {row.name: row for row in eq.candidates(schaffer_problem())}
    usable = {row.name for row in eq.backends(usable=True)}
    taken = next(name for name in ("spea2", "nsga2", "random", "grid") if name in usable)
    assert [name for name, row in table.items() if row.taken] == [taken]


@needs_package("pymoo", "search")
def test_auto_takes_the_search_for_the_least_of_one_objective():
    taken = [row.name for row in eq.candidates(mean_problem(schaffer_problem())) if row.taken]
    assert taken == ["differential_evolution"]
    (row,) = [each for each in eq.candidates(schaffer_problem()) if each.name == taken[0]]
    assert row.reason == "it is for 1 objective, here 2"


@needs_package("pymoo", "search")
def test_a_search_for_the_least_of_one_objective_refuses_two_by_name():
    with pytest.raises(eq.UnsupportedProblem, match=r"differential_evolution cannot search for f0, f1: .*use backend"):
        eq.solve(schaffer_problem(), "differential_evolution")


@needs_package("pymoo", "search")
@pytest.mark.parametrize("known", [each.of(1) for each in hard_fronts()], ids=lambda known: known.name)
def test_the_least_of_one_objective_is_found(known):
    own = {"differential_evolution": {"evaluations": 600}}
    result = eq.solve(known.problem, "differential_evolution", backend_options=own)
    assert result.objective <= known.hypervolume * (1.0 + 1e-9)
    assert result.objective >= 0.9 * known.hypervolume
    assert len(result.plan) == 1


def test_a_wrong_evaluator_is_an_error_of_the_caller():
    with pytest.raises(eq.InvalidInput, match=r"evaluate_many.*shape"):
        eq.solve(problem_of(lambda x: x[:, :1], **BOX), "random")


def test_an_evaluator_that_is_not_deterministic_fails_the_check():
    drawn = np.random.default_rng(0)
    result = eq.solve(problem_of(lambda x: schaffer(x) + drawn.random((len(x), 2)), **BOX), "random")
    assert result.termination.reason is eq.Reason.NUMERICAL
    assert "violates its own problem" in result.termination.message


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["spea2", "nsga2"])
def test_infeasible_vectors_lose_against_feasible_ones(backend):
    pytest.importorskip("pymoo")
    known = next(each for each in hard_fronts() if each.name == "constrained ZDT1")
    result = eq.solve(known.problem, backend, backend_options={backend: {"evaluations": 700}})
    random = eq.solve(known.problem, "random", backend_options={"random": {"evaluations": 700}})
    assert result.objective > (random.objective or 0.0) + 0.1


@pytest.mark.thorough
def test_distances_in_raw_units_are_another_search():
    pytest.importorskip("pymoo")
    problem = easy_fronts()[1].problem
    wide = problem_of(lambda x: problem.evaluate_many(x) * [1.0, 1e6], variables=2, reference=(1.0, 1e6))
    fronts = {
        distances: eq.solve(wide, "spea2", backend_options={"spea2": {"distances": distances, "evaluations": 700}}).plan
        for distances in ("normalised", "raw")
    }
    assert fronts["raw"].vectors.tolist() != fronts["normalised"].vectors.tolist()
    # In units of the box a search does not depend on the units of its objectives.
    narrow = eq.solve(problem, "spea2", backend_options={"spea2": {"evaluations": 700}}).plan
    np.testing.assert_allclose(fronts["normalised"].vectors, narrow.vectors)
