"""The two axes of a result: why the solve ended, and the plan."""

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest

import equipoise as eq

LIMITED = {eq.Reason.FEASIBLE, eq.Reason.NO_SOLUTION_FOUND}


def result(reason: eq.Reason, plan: object = None, **changes: object) -> eq.Result:
    limit = eq.Limit.TIME if reason in LIMITED else None
    data = {
        "termination": eq.Termination(reason, limit, "why it ended"),
        "plan": plan,
        "objective": None if plan is None else 1.0,
        "bound": math.inf if plan is None else 1.5,
        "gap": math.inf if plan is None else 0.5,
        "residuals": None,
        "wall_time": 0.25,
        "backend": "fake",
        "version": "1",
        "form": "matrix",
        "seed": 0,
    }
    return eq.Result(**{**data, **changes})


@pytest.mark.parametrize(("reason", "limit"), list(itertools.product(eq.Reason, [None, *eq.Limit])))
def test_a_limit_is_set_exactly_when_one_stopped_the_solve(reason, limit):
    if (reason in LIMITED) == (limit is not None):
        ended = eq.Termination(reason, limit)
        assert (ended.reason, ended.limit) == (reason, limit)
        assert reason.name in str(ended)
        assert limit is None or limit.value in str(ended)
    else:
        with pytest.raises(ValueError, match=reason.name):
            eq.Termination(reason, limit)


def test_members_have_distinct_values():
    for members in (eq.Reason, eq.Limit):
        assert len({member.value for member in members}) == len(members.__members__)


@pytest.mark.parametrize(
    "reason", [reason for reason in eq.Reason if reason not in (eq.Reason.OPTIMAL, eq.Reason.FEASIBLE)]
)
def test_requiring_a_plan_that_is_not_there_raises_with_the_result(reason):
    found = result(reason)
    for require in (found.require_plan, found.require_optimal):
        with pytest.raises(eq.NoSolution, match=reason.name) as caught:
            require()
        assert caught.value.result is found
        assert "why it ended" in str(caught.value)


def test_a_feasible_plan_is_a_plan_and_not_an_optimal_one():
    found = result(eq.Reason.FEASIBLE, plan={"take": 1})
    assert found.require_plan() == {"take": 1}
    with pytest.raises(eq.NoSolution, match=r"gap 0\.5") as caught:
        found.require_optimal()
    assert caught.value.result is found


def test_an_optimal_plan_satisfies_both():
    found = result(eq.Reason.OPTIMAL, plan={"take": 1})
    assert found.require_plan() is found.require_optimal()


def test_a_flagged_plan_can_be_read_but_never_counts_as_optimal():
    found = result(eq.Reason.NUMERICAL, plan={"take": 1})
    assert found.require_plan() == {"take": 1}
    with pytest.raises(eq.NoSolution, match="NUMERICAL"):
        found.require_optimal()


def test_no_solution_is_one_of_ours():
    with pytest.raises(eq.EquipoiseError):
        result(eq.Reason.INFEASIBLE).require_plan()


@pytest.mark.parametrize(
    ("plan", "shown"), [(None, ("none", "gap=inf")), ({"take": 1}, ("objective=1", "gap=5.00e-01"))]
)
def test_its_text_is_one_line_with_all_that_matters(plan, shown):
    text = repr(result(eq.Reason.NO_SOLUTION_FOUND if plan is None else eq.Reason.FEASIBLE, plan))
    assert "\n" not in text
    for part in (*shown, "backend=fake", "time limit", "0.250 s"):
        assert part in text


def test_results_of_programs_travel_between_processes():
    build = eq.ProgramBuilder(sense="max")
    take = build.add_binaries("take", shape=(2,))
    build.set_objective([(take, [1.0, -1.0])])
    found = eq.solve(build.program(), "highs")
    again = pickle.loads(pickle.dumps(found))
    assert again.termination == found.termination
    assert again.plan["take"].tolist() == found.plan["take"].tolist() == [1.0, 0.0]
    assert (again.objective, again.bound, again.history) == (found.objective, found.bound, found.history)


def knapsack(sense: str = "max") -> eq.Program:
    build = eq.ProgramBuilder(sense=sense)
    take = build.add_binaries("take", shape=(3,))
    build.add_rows("room", (1,), terms=[(0, take, [4, 2, 2])], upper=5)
    build.set_objective([(take, [5.0, 3.0, 3.0] if sense == "max" else [-5.0, -3.0, -3.0])])
    return build.program()


@pytest.mark.parametrize("sense", ["max", "min"])
def test_another_plan_of_a_program_has_its_own_objective_residuals_and_gap_and_the_same_bound(sense):
    problem, sign = knapsack(sense), 1.0 if sense == "max" else -1.0
    found = eq.solve(problem, "highs")
    other = found.with_plan(problem, {"take": np.array([1.0, 0.0, 0.0])})
    assert (other.objective, other.bound, other.residuals.worst) == (sign * 5.0, found.bound, 0.0)
    assert other.gap == pytest.approx(1 / 5)
    assert other.termination == found.termination
    broken = found.with_plan(problem, {"take": np.ones(3)})
    assert broken.residuals.row == 3.0
    assert (broken.objective, broken.bound, broken.gap) == (sign * 11.0, sign * 11.0, 0.0)
    assert found.objective == sign * 6.0  # the result itself is as it was


def test_another_plan_of_a_formulation_is_evaluated_by_it():
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 100.0)]) for i in "ab"]
    window = eq.ScheduleWindow(jobs, gpus=1, rounds=3)
    found = eq.solve(window, rel_gap=0.0)
    empty = eq.WindowPlan(window, np.zeros((2, 3), dtype=bool))
    other = found.with_plan(window, empty)
    assert (other.objective, other.residuals) == window.evaluate(empty)
    assert other.gap == (found.bound - empty.objective) / window.tables.weight_sum
    assert found.with_plan(window, found.plan) == found
    unbounded = dataclasses.replace(found, bound=math.inf).with_plan(window, empty)
    assert unbounded.gap == math.inf


def test_a_plan_of_another_problem_is_refused():
    market = eq.FisherMarket(np.ones((2, 2)), [1.0, 2.0])
    with pytest.raises(eq.InvalidInput, match="plan"):
        eq.solve(market).with_plan(market, 3)


def test_the_certificate_says_what_the_result_says():
    found = eq.solve(knapsack(), "highs", seed=3)
    certificate = found.certificate()
    assert certificate.termination == "OPTIMAL"
    assert (certificate.limit, certificate.message) == (None, found.termination.message)
    for field in dataclasses.fields(certificate):
        if field.name not in ("termination", "limit", "message"):
            assert getattr(certificate, field.name) == getattr(found, field.name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.gap = 0.0
