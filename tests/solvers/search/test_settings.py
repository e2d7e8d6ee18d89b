"""Own options of searches: what is refused, by name, before anything runs."""

import pytest
from search_cases import BOX

import equipoise as eq
from equipoise.solvers.search.settings import DEFAULT_EVALUATIONS
from equipoise.validation.contract.fronts import problem_of, schaffer_problem


def refuses_to_run(x):
    raise AssertionError("the evaluator ran")


BAD: dict[str, list[object]] = {
    "evaluations": [0, -1, 2.5, "many", True, None],
    "hypervolume": [0.0, 1.5, float("nan"), "half"],
    "stall": [0, 1.5],
    "front_size": [0, "all"],
    "checkpoint": [3, True],
}


@pytest.mark.parametrize(("option", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_option_is_refused_by_name(option, value):
    problem = problem_of(refuses_to_run, **BOX)
    with pytest.raises(eq.InvalidInput) as caught:
        eq.solve(problem, "random", backend_options={"random": {option: value}})
    assert caught.value.field == f"backend_options['random'][{option!r}]"


@pytest.mark.parametrize(
    ("backend", "option", "value"),
    [("spea2", "population", 3), ("nsga2", "population", 2.5), ("spea2", "distances", "metres"),
     ("nsga2", "distances", "raw"), ("random", "population", 70), ("grid", "distances", "raw")],
)  # fmt: skip
def test_a_bad_option_of_one_method_is_refused_by_name(backend, option, value):
    if backend in ("spea2", "nsga2"):
        pytest.importorskip("pymoo")
    with pytest.raises(eq.InvalidInput) as caught:
        eq.solve(problem_of(refuses_to_run, **BOX), backend, backend_options={backend: {option: value}})
    assert caught.value.field == f"backend_options[{backend!r}][{option!r}]"


def test_a_warm_start_of_another_problem_is_refused():
    front = eq.solve(schaffer_problem(), "grid", backend_options={"grid": {"evaluations": 9}}).plan
    for other in (problem_of(refuses_to_run, variables=2), problem_of(refuses_to_run, bounds=(0.0, 1.0))):
        with pytest.raises(eq.InvalidInput, match="warm_start"):
            eq.solve(other, "random", warm_start=front)
    with pytest.raises(eq.InvalidInput, match="warm_start"):
        eq.solve(problem_of(refuses_to_run), "random", warm_start=[[0.5]])


def test_the_number_of_evaluations_without_any_limit():
    result = eq.solve(schaffer_problem(), "random")
    assert result.history[-2].measures["evaluations"] == DEFAULT_EVALUATIONS
    assert result.termination.limit is eq.Limit.ITERATIONS


def test_no_more_points_than_the_front_size():
    for most in (1, 2, 7):
        own = {"evaluations": 200, "front_size": most}
        plan = eq.solve(schaffer_problem(), "random", backend_options={"random": own}).require_plan()
        assert len(plan) == most
