"""The messages, read aloud: each says what, why, and what to do next."""

import sys

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers import registry
from equipoise.solvers.backend import Answer, Availability, Backend, Claim


class Slow(Backend):
    """A backend that runs out of time, with or without a plan."""

    name = "slow"
    licence = "none"
    classes = frozenset({eq.ProblemClass.LP, eq.ProblemClass.MILP})

    def __init__(self, values=None):
        self.values = values

    def probe(self):
        return Availability(True, "1")

    def solve(self, task, options, on_progress):
        return Answer(claim=Claim.STOPPED, limit=eq.Limit.TIME, values=self.values, bound=8.0)


def knapsack(size=3):
    build = eq.ProgramBuilder(sense="max")
    take = build.add_binaries("take", shape=(size,))
    build.add_rows("room", shape=(1,), terms=[(0, take, [4, 2, 2] + [1] * (size - 3))], upper=5)
    build.set_objective([(take, [5.0, 3.0, 3.0] + [0.1] * (size - 3))])
    return build.program()


def said(error, problem, backend, **options):
    with pytest.raises(error) as caught:
        eq.solve(problem, backend, **options)
    return str(caught.value)


MISSING = {
    "gurobi": ("gurobipy", "gurobi"),
    "scip": ("pyscipopt", "scip"),
    "clarabel": ("clarabel", "clarabel"),
    "ortools": ("ortools", "ortools"),
    "pyomo:cbc": ("pyomo", "pyomo"),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_solver_that_is_not_installed(name, monkeypatch):
    package, extra = MISSING[name]
    monkeypatch.setitem(sys.modules, package, None)  # what importlib.util.find_spec looks at first
    problem = knapsack()
    if name == "clarabel":
        build = eq.ProgramBuilder(sense="max")
        build.add_columns("x", (1,), upper=1.0)
        problem = build.program()
    words = f"backend {name!r} cannot run here: {package} is not installed: pip install 'equipoise[{extra}]'"
    assert said(eq.BackendUnavailable, problem, name) == words


def test_a_typo_in_a_name():
    names = ", ".join(registry.BACKENDS)
    assert said(eq.BackendNotFound, knapsack(), "higs") == f"no backend 'higs': did you mean 'highs'? there are {names}"
    assert "did you mean 'pyomo:glpk'?" in said(eq.BackendNotFound, knapsack(), "pyomo_glpk")


def test_a_licence_too_small():
    pytest.importorskip("gurobipy", reason="gurobipy is not installed")
    if not registry.find_backend("gurobi").probe().limit:
        pytest.skip("a full Gurobi licence is installed: nothing is too large for it")
    words = said(eq.LicenseLimit, knapsack(3000), "gurobi")
    assert "3,000 variables" in words
    assert "2,000" in words
    assert "use backend='highs'" in words
    assert "licence" in words


def test_a_class_that_a_backend_cannot_state():
    words = said(eq.UnsupportedProblem, knapsack(), "clarabel")
    assert words == (
        "clarabel cannot state this MILP program: it reads VolatileFisherMarket:ces, VolatileFisherMarket:cobb-douglas "
        "and LP, LOG programs; use backend='highs'"
    )
    words = said(eq.UnsupportedProblem, knapsack(), "lagrangian")
    assert words == "lagrangian cannot state this MILP program: it reads ScheduleWindow; use backend='highs'"


def test_an_option_that_a_backend_cannot_honour():
    words = said(eq.InvalidInput, knapsack(), "scipy", threads=4)
    assert words == "threads = 4: the scipy backend cannot honour it; use backend='highs' or leave it out"


def test_a_time_limit_with_an_incumbent():
    result = eq.solve(knapsack(), Slow(np.array([1.0, 0.0, 0.0])), time_limit=2.0)
    assert str(result.termination) == (
        "FEASIBLE (time limit): it stopped at time_limit=2 s with a plan whose gap is 0.6: "
        "a longer time_limit or a warm_start may help"
    )
    with pytest.raises(eq.NoSolution) as caught:
        result.require_optimal()
    assert str(caught.value).startswith("not optimal: FEASIBLE (time limit): it stopped at time_limit=2 s with a plan")


def test_a_time_limit_without_an_incumbent():
    result = eq.solve(knapsack(), Slow(), time_limit=0.5)
    words = "NO_SOLUTION_FOUND (time limit): it stopped at time_limit=0.5 s before it had a plan; there may be one: "
    assert str(result.termination) == words + "a longer time_limit or a warm_start may help"
    with pytest.raises(eq.NoSolution) as caught:
        result.require_plan()
    assert str(caught.value) == f"no plan: {result.termination}"


def test_a_real_time_limit_says_what_the_solver_said_too():
    result = eq.solve(knapsack(), "highs", time_limit=0.0)
    assert result.termination.message.startswith("it stopped at time_limit=0 s before it had a plan")
    assert result.termination.message.endswith("[HiGHS: Time limit reached]")
