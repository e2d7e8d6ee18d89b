"""Search problems, variables and objectives: bad input field by field, scores, the evaluation of a front."""

from dataclasses import replace

import numpy as np
import pytest
from search_cases import schaffer

import equipoise as eq
from equipoise.formulations.search.objective import as_objectives

GOOD = {
    "variables": [eq.Variable("x", -1.0, 3.0)],
    "objectives": ["small", "near"],
    "evaluate_many": schaffer,
    "ideal": [0.0, 0.0],
    "reference": [4.0, 4.0],
}


def problem(**changes):
    return eq.SearchProblem(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variables", []),
        ("variables", [("x", 0.0, 1.0)]),
        ("variables", [eq.Variable("x", 0.0, 1.0)] * 2),
        ("objectives", []),
        ("objectives", "small"),
        ("objectives", ["small", "small"]),
        ("objectives", ["small", 3]),
        ("evaluate_many", None),
        ("ideal", [0.0]),
        ("ideal", [0.0, np.inf]),
        ("reference", [4.0, 0.0]),
        ("reference", [[4.0, 4.0]]),
        ("decode_vector", "x"),
        ("starts", [[0.5]]),
        ("starts['a']", {"a": [0.5, 0.5]}),
        ("starts['a']", {"a": [3.5]}),
        ("starts['a']", {"a": [np.nan]}),
    ],
)
def test_a_bad_field_is_refused_by_name(field, value):
    with pytest.raises(eq.InvalidInput) as caught:
        problem(**{field.partition("[")[0]: value})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", ("", 0.0, 1.0)), ("name", (3, 0.0, 1.0)), ("lower", ("x", np.nan, 1.0)), ("upper", ("x", 0.0, np.inf)),
        ("upper", ("x", 1.0, 1.0)), ("upper", ("x", 0.0, "one")),
    ],
)  # fmt: skip
def test_a_bad_variable_is_refused_by_name(field, values):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.Variable(*values)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "values"),
    [("metric", ("",)), ("metric", ("a:b",)), ("measure", ("jct", "p101")), ("measure", ("jct", "median")),
     ("measure", ("jct", "p-1")), ("measure", ("jct", 50))],
)  # fmt: skip
def test_a_bad_objective_is_refused_by_name(field, values):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.Objective(*values)
    assert caught.value.field == field


def test_objectives_in_three_forms_and_their_measures():
    forms = [("jct", "avg"), "pred_error:p99.9", eq.Objective("load")]
    assert [str(each) for each in as_objectives("objectives", forms)] == ["jct:avg", "pred_error:p99.9", "load"]
    values = np.arange(101.0)
    assert eq.Objective("jct", "avg").of(values) == eq.Objective("jct").of(values) == 50.0
    assert eq.Objective("jct", "p0").of(values) == 0.0
    assert eq.Objective("jct", "p99").of(values) == 99.0
    assert eq.Objective("jct", "p100").of(values) == 100.0
    for given, word in ((["speed:avg"], "metrics are"), (["jct"], "needs a measure")):
        with pytest.raises(eq.InvalidInput, match=word):
            as_objectives("objectives", given, metrics=("jct",))


@pytest.mark.parametrize(
    "found", [None, "scores", [[1.0]], [[1.0, 2.0, 3.0]], [["a", "b"]], [[True, False]], [[1.0], [2.0, 3.0]]]
)
def test_an_evaluator_that_returns_anything_else_is_named(found):
    with pytest.raises(eq.InvalidInput, match="evaluate_many"):
        problem(evaluate_many=lambda x: found).score(np.zeros((1, 1)))


def test_a_row_that_is_not_finite_is_infeasible_as_a_whole():
    scores = problem(evaluate_many=lambda x: np.array([[np.inf, 1.0], [1.0, np.nan], [1.0, 2.0]])).score(
        np.zeros((3, 1))
    )
    assert np.isnan(scores).tolist() == [[True, True], [True, True], [False, False]]


def test_the_front_of_scored_vectors():
    vectors = np.array([[3.0], [2.0], [1.0], [0.0], [1.0]])
    front = problem().front(vectors, problem().score(vectors))
    assert front.vectors[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert front.configurations == ({"x": 0.0}, {"x": 1.0}, {"x": 2.0})
    decoded = problem(decode_vector=lambda vector: round(10.0 * vector[0])).front(vectors, problem().score(vectors))
    assert decoded.configurations == (0, 10, 20)
    with pytest.raises(eq.InvalidInput):
        problem().front(vectors, np.full((5, 2), np.nan))


def test_a_front_is_evaluated_anew():
    stated = problem()
    vectors = np.array([[0.0], [1.0], [2.0]])
    front = stated.front(vectors, stated.score(vectors))
    objective, residuals = stated.evaluate(front)
    assert objective == front.hypervolume == pytest.approx(9.0 / 16.0)
    assert residuals.worst == 0.0
    wrong = replace(front, scores=np.add(front.scores, [[0.0, 0.0], [0.4, 0.0], [0.0, 0.0]]))
    objective, residuals = stated.evaluate(wrong)
    assert objective == front.hypervolume  # by the scores computed anew
    assert residuals.row == pytest.approx(0.1)
    beyond = replace(front, vectors=np.add(front.vectors, [[0.0], [0.0], [1.5]]))
    assert stated.evaluate(beyond)[1].bound == pytest.approx(0.5)
    infeasible = problem(evaluate_many=lambda x: np.where(x > 1.5, np.nan, schaffer(x)))
    assert infeasible.evaluate(front)[1].worst == np.inf


def test_a_plan_of_another_problem_is_refused_by_field():
    stated = problem()
    vectors = np.array([[0.0], [1.0], [3.0]])
    front = stated.front(vectors, stated.score(vectors))
    stated.check_plan(front)
    for other, field in (
        (problem(variables=[eq.Variable("y", -1.0, 3.0)]), "plan.variables"),
        (problem(objectives=["small", "far"]), "plan.objectives"),
        (problem(variables=[eq.Variable("x", 0.5, 3.0)]), "plan.vectors"),
    ):
        with pytest.raises(eq.InvalidInput) as caught:
            other.check_plan(front)
        assert caught.value.field == field
    with pytest.raises(eq.InvalidInput, match="ParetoFront"):
        stated.check_plan(vectors)


def test_a_subclass_is_solved_as_a_search():
    class Named(eq.SearchProblem):
        pass

    result = eq.solve(Named(**GOOD), "grid", backend_options={"grid": {"evaluations": 5}})
    assert (result.backend, result.bound, len(result.plan)) == ("grid", 1.0, 3)
    assert result.with_plan(Named(**GOOD), result.plan).objective == result.objective
