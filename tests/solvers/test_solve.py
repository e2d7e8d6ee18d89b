"""`solve` believes no backend: whatever is claimed, what it returns is what our own arithmetic finds."""

import dataclasses
import math
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from patience import SOON_S

import equipoise as eq
from equipoise.formulations.program.formulation import Formulation
from equipoise.solvers import registry
from equipoise.solvers.backend import Answer, Availability, Backend, Claim

Reason, Limit = eq.Reason, eq.Limit


class Fake(Backend):
    """A backend that gives the answer it was made with, after reporting the points it was made with."""

    name = "fake"
    classes = frozenset({eq.ProblemClass.LP, eq.ProblemClass.MILP})
    licence = "none"
    supported_options = frozenset({"threads", "seed", "warm_start", "log"})

    def __init__(self, answer, points=(), formulations=()):
        self.answer, self.points, self.calls = answer, points, []
        if formulations:
            self.classes, self.formulations = frozenset(), frozenset(formulations)

    def probe(self):
        return Availability(True, "7.0")

    def solve(self, task, options, on_progress):
        self.calls.append((task, options))
        for objective, bound in self.points:
            on_progress(objective, bound)
        return self.answer(task) if callable(self.answer) else self.answer


@pytest.fixture
def install(monkeypatch):
    def put(fake):
        monkeypatch.setitem(registry.BACKENDS, "fake", "fake_for_tests")
        monkeypatch.setitem(sys.modules, "equipoise.solvers.fake_for_tests", SimpleNamespace(BACKEND=fake))
        return fake

    return put


def knapsack(sense="max", gap_unit=None, integer=True, offset=0.0):
    """max 5a + 3b + 3c over 4a + 2b + 2c <= 5 (or min of the negative): a alone gives 5, b and c together 6."""
    build = eq.ProgramBuilder(sense=sense)
    take = build.add_columns("take", (3,), upper=1.0, integer=integer)
    build.add_rows("room", (1,), terms=[(0, take, [4, 2, 2])], upper=5)
    sign = 1.0 if sense == "max" else -1.0
    build.set_objective([(take, sign * np.array([5.0, 3.0, 3.0]))], offset=offset)
    return build.program(gap_unit=gap_unit)


def window():
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 100.0)]) for i in "ab"]
    return eq.ScheduleWindow(jobs, gpus=1, rounds=3)


BEST = np.array([0.0, 1.0, 1.0])


def answer(values=BEST, bound=6.0, claim=Claim.SOLVED, **more):
    return Answer(claim=claim, values=None if values is None else np.array(values, dtype=float), bound=bound, **more)


def nothing_is_proved(result, sense="max"):
    return result.bound == (math.inf if sense == "max" else -math.inf)


def test_a_true_answer_is_optimal(install):
    install(Fake(answer()))
    result = eq.solve(knapsack(), "fake")
    assert result.termination == eq.Termination(Reason.OPTIMAL)
    assert (result.objective, result.bound, result.gap) == (6.0, 6.0, 0.0)
    assert (result.residuals.bound, result.residuals.row, result.residuals.integrality) == (0.0, 0.0, 0.0)
    assert (result.backend, result.version, result.form, result.seed) == ("fake", "7.0", "matrix", 0)
    assert result.plan["take"].tolist() == [0.0, 1.0, 1.0]


VIOLATIONS = {
    "a row": ([1.0, 1.0, 1.0], "row", 3.0),
    "an upper bound": ([0.0, 2.0, 0.0], "bound", 1.0),
    "a lower bound": ([-1.0, 1.0, 1.0], "bound", 1.0),
    "integrality": ([0.5, 1.0, 0.5], "integrality", 0.5),
}


@pytest.mark.parametrize("claim", [Claim.SOLVED, Claim.STOPPED, Claim.FAILED])
@pytest.mark.parametrize("what", VIOLATIONS)
def test_an_answer_that_violates_the_problem_is_numerical_whatever_it_claims(install, what, claim):
    values, kind, size = VIOLATIONS[what]
    install(Fake(answer(values, bound=100.0, claim=claim, limit=Limit.TIME if claim is Claim.STOPPED else None)))
    result = eq.solve(knapsack(), "fake", rel_gap=1e9)
    assert result.termination.reason is Reason.NUMERICAL
    assert result.termination.limit is None
    assert "violates" in result.termination.message
    assert result.plan is None
    assert result.objective is None
    assert getattr(result.residuals, kind) == pytest.approx(size)
    assert math.isinf(result.gap)
    with pytest.raises(eq.NoSolution):
        result.require_plan()


def test_an_equality_broken_from_either_side_is_seen(install):
    build = eq.ProgramBuilder(sense="min")
    x = build.add_columns("x", (1,), lower=-9.0, upper=9.0)
    build.add_rows("exact", (1,), terms=[(0, x, 1.0)], lower=2.0, upper=2.0)
    build.set_objective([(x, 1.0)])
    for value, reason in ((2.0, Reason.OPTIMAL), (2.1, Reason.NUMERICAL), (1.9, Reason.NUMERICAL)):
        install(Fake(answer([value], bound=-100.0 if reason is Reason.NUMERICAL else 2.0)))
        assert eq.solve(build.program(), "fake").termination.reason is reason


def test_duals_however_large_prove_no_false_bound(install):
    """Maximise x with x <= z, x >= z and x <= 10: at duals of 1e15 the cost of 1 is as small as their rounding."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), lower=-np.inf)
    build.add_rows("row", (2,), terms=[([0, 1], x[0], [1.0, -1.0]), ([0, 1], x[1], [-1.0, 1.0])], upper=0.0)
    build.add_rows("end", (1,), terms=[(0, x[0], 1.0)], upper=10.0)
    build.set_objective([(x[0], 1.0)])
    for size in (1e15, 1e16):
        install(Fake(answer([0.0, 0.0], bound=0.0, duals=np.array([size, size, 0.0]))))
        result = eq.solve(build.program(), "fake")
        assert result.bound >= 10.0
        assert result.termination.reason is not Reason.OPTIMAL


def test_a_bound_that_duals_prove_is_refuted_too(install, monkeypatch):
    """Were the proof wrong: a plan that is better says so."""
    build = eq.ProgramBuilder("max")
    x = build.add_columns("x", (2,), upper=10.0)
    build.add_rows("row", (1,), terms=[(0, x, 1.0)], upper=15.0)
    build.set_objective([(x, [1.0, 2.0])])
    monkeypatch.setattr("equipoise.solvers.verification.bound.proved_bound", lambda *_: 12.0)
    install(Fake(answer([5.0, 2.0], duals=np.array([1.0]))))
    result = eq.solve(build.program(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "refuted" in result.termination.message
    assert nothing_is_proved(result)


def test_the_tolerance_is_the_callers(install):
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,))
    build.add_rows("room", (1,), terms=[(0, x, 1.0)], upper=1.0)
    build.set_objective([(x, 1.0)])
    install(Fake(answer([1.00005], bound=1.0001)))
    assert eq.solve(build.program(), "fake").termination.reason is Reason.NUMERICAL
    loose = eq.solve(build.program(), "fake", feasibility_tol=1e-4)
    assert loose.termination.reason is Reason.OPTIMAL
    assert loose.residuals.row == pytest.approx(5e-5)


@pytest.mark.parametrize("values", [[math.nan, 0, 0], [0, math.inf, 0], [0, 0, -math.inf], [math.nan] * 3])
def test_values_that_are_no_numbers_are_numerical(install, values):
    install(Fake(answer(values)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert result.plan is None
    assert math.isinf(result.residuals.worst)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_a_bound_on_the_wrong_side_is_dropped(install, sense):
    sign = 1.0 if sense == "max" else -1.0
    install(Fake(answer(bound=sign * 5.5)))
    result = eq.solve(knapsack(sense), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "wrong side" in result.termination.message
    assert nothing_is_proved(result, sense)
    assert math.isinf(result.gap)
    assert result.objective == sign * 6.0  # the plan is right, and flagged
    with pytest.raises(eq.NoSolution):
        result.require_optimal()


@pytest.mark.parametrize("bound", [-math.inf, -1e300])
def test_a_bound_far_on_the_wrong_side_is_no_bound(install, bound):
    install(Fake(answer(bound=bound)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert nothing_is_proved(result)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_a_bound_wrong_by_rounding_alone_is_moved_to_the_objective(install, sense):
    sign = 1.0 if sense == "max" else -1.0
    install(Fake(answer(bound=sign * (6.0 - 1e-7))))
    result = eq.solve(knapsack(sense), "fake")
    assert result.termination.reason is Reason.OPTIMAL
    assert result.bound == result.objective == sign * 6.0
    assert result.gap == 0.0


def test_optimal_is_not_taken_on_the_backends_word(install):
    install(Fake(answer(bound=9.0)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.FEASIBLE
    assert result.termination.limit is Limit.METHOD
    assert result.gap == pytest.approx(0.5)
    install(Fake(answer(bound=9.0, claim=Claim.STOPPED, limit=Limit.NODES)))
    assert eq.solve(knapsack(), "fake").termination.limit is Limit.NODES


def test_a_closed_gap_is_optimal_even_if_the_backend_did_not_notice(install):
    install(Fake(answer(claim=Claim.STOPPED, limit=Limit.TIME)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.OPTIMAL
    assert result.termination.limit is None


def test_either_gap_suffices(install):
    install(Fake(answer(bound=6.3)))
    assert eq.solve(knapsack(), "fake", rel_gap=0.04).termination.reason is Reason.FEASIBLE
    assert eq.solve(knapsack(), "fake", rel_gap=0.051).termination.reason is Reason.OPTIMAL
    assert eq.solve(knapsack(), "fake", rel_gap=0.0, abs_gap=0.31).termination.reason is Reason.OPTIMAL
    assert eq.solve(knapsack(), "fake", rel_gap=0.0, abs_gap=0.29).termination.reason is Reason.FEASIBLE


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("bound", [None, math.nan])
@pytest.mark.parametrize("values", [None, BEST])
def test_a_missing_bound_is_an_infinity(install, sense, bound, values):
    install(Fake(answer(values, bound=bound, limit=Limit.TIME, claim=Claim.STOPPED)))
    result = eq.solve(knapsack(sense), "fake")
    assert isinstance(result.bound, float)
    assert nothing_is_proved(result, sense)
    assert math.isinf(result.gap)
    assert result.termination.reason is (Reason.NO_SOLUTION_FOUND if values is None else Reason.FEASIBLE)
    assert result.termination.limit is Limit.TIME


def test_without_a_plan_the_bound_is_kept(install):
    install(Fake(answer(None, bound=8.0, limit=Limit.TIME, claim=Claim.STOPPED, message="out of time")))
    result = eq.solve(knapsack(), "fake")
    assert str(result.termination).startswith("NO_SOLUTION_FOUND (time limit): it ran out of time before it had a plan")
    assert str(result.termination).endswith("[out of time]")
    assert (result.plan, result.objective, result.residuals, result.bound) == (None, None, None, 8.0)


def test_a_time_limit_keeps_incumbent_bound_and_gap(install):
    install(Fake(answer([1.0, 0.0, 0.0], bound=7.5, limit=Limit.TIME, claim=Claim.STOPPED)))
    result = eq.solve(knapsack(), "fake", time_limit=0.5)
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert (result.objective, result.bound) == (5.0, 7.5)
    assert result.gap == pytest.approx(0.5)
    assert result.require_plan()["take"].tolist() == [1.0, 0.0, 0.0]


def puzzle():
    """max a + b over 2a - 4b = 1, both whole and free: nothing satisfies it, and nothing at hand proves that."""
    build = eq.ProgramBuilder(sense="max")
    x = build.add_columns("x", (2,), lower=-math.inf, integer=True)
    build.add_rows("row", (1,), terms=[(0, x, [2.0, -4.0])], lower=1.0, upper=1.0)
    build.set_objective([(x, 1.0)])
    return build.program()


CONCLUSIONS = {
    Claim.SOLVED: Reason.NO_SOLUTION_FOUND,
    Claim.STOPPED: Reason.NO_SOLUTION_FOUND,
    Claim.INFEASIBLE: Reason.INFEASIBLE,
    Claim.UNBOUNDED: Reason.UNBOUNDED,
    Claim.INFEASIBLE_OR_UNBOUNDED: Reason.INFEASIBLE_OR_UNBOUNDED,
    Claim.FAILED: Reason.NUMERICAL,
}


@pytest.mark.parametrize("claim", list(Claim))
def test_every_claim_without_values_ends_without_a_plan_and_never_optimal(install, claim):
    limit = Limit.NODES if claim is Claim.STOPPED else None
    install(Fake(answer(None, bound=None, claim=claim, limit=limit, message="no")))
    result = eq.solve(puzzle(), "fake")
    assert result.termination.reason is CONCLUSIONS[claim]
    assert result.termination.limit is {Claim.SOLVED: Limit.METHOD, Claim.STOPPED: Limit.NODES}.get(claim)
    assert result.plan is None
    assert result.bound == (-math.inf if claim is Claim.INFEASIBLE else math.inf)
    assert "no" in result.termination.message


@pytest.mark.parametrize("claim", [Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED])
def test_a_verified_plan_refutes_the_claim_that_there_is_none(install, claim):
    install(Fake(answer(bound=None, claim=claim)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.FEASIBLE
    assert result.objective == 6.0


@pytest.mark.parametrize("claim", list(Claim))
def test_a_limit_belongs_to_a_stopped_answer_alone(install, claim):
    wrong = None if claim is Claim.STOPPED else Limit.TIME
    with pytest.raises(ValueError, match=f"{claim.name} (needs|has no) limit"):
        answer(claim=claim, limit=wrong)
    install(Fake(lambda task: answer(claim=claim, limit=wrong)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert f"fake failed: ValueError: an answer {claim.name}" in result.termination.message


def test_a_claim_that_a_simple_point_refutes_is_numerical(install):
    install(Fake(answer(None, bound=None, claim=Claim.INFEASIBLE)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "a simple point satisfies" in result.termination.message


def test_a_claim_that_the_bounds_of_columns_refute_is_numerical(install):
    install(Fake(answer(None, bound=None, claim=Claim.UNBOUNDED)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "bounds prove 11" in result.termination.message


@pytest.mark.parametrize("sense", ["max", "min"])
def test_a_bound_that_a_single_step_refutes_is_numerical(install, sense):
    """Zeros called optimal: taking any one thing is better."""
    install(Fake(answer([0.0, 0.0, 0.0], bound=0.0)))
    result = eq.solve(knapsack(sense), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "changing column 0 by 1 is better" in result.termination.message
    assert nothing_is_proved(result, sense)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_the_best_verified_incumbent_survives_a_worse_answer(install, sense):
    sign = 1.0 if sense == "max" else -1.0
    garbage = [np.full(3, math.nan), np.array([1.0, 1.0, 1.0]), np.zeros(7)]

    class Streams(Fake):
        def solve(self, task, options, on_progress):
            for values in (np.array([1.0, 0.0, 0.0]), BEST, np.array([0.0, 1.0, 0.0]), *garbage):
                on_progress(0.0, sign * 9.0, values)
            return self.answer

    install(Streams(answer(None, bound=None, claim=Claim.STOPPED, limit=Limit.TIME)))
    result = eq.solve(knapsack(sense), "fake")
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert (result.objective, result.bound) == (sign * 6.0, sign * 9.0)
    assert result.plan["take"].tolist() == BEST.tolist()
    install(Streams(answer([1.0, 1.0, 1.0], bound=sign * 9.0)))
    result = eq.solve(knapsack(sense), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert result.plan["take"].tolist() == BEST.tolist()
    install(Streams(answer(None, bound=None, claim=Claim.INFEASIBLE)))
    assert eq.solve(knapsack(sense), "fake").termination.reason is Reason.NUMERICAL


def test_an_exception_in_a_backend_is_an_outcome_not_a_crash(install):
    class Raises(Fake):
        def solve(self, task, options, on_progress):
            on_progress(5.0, 9.0, np.array([1.0, 0.0, 0.0]))
            raise self.answer

    install(Raises(ZeroDivisionError("pivot")))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert result.termination.message == "fake failed: ZeroDivisionError: pivot"
    assert result.objective == 5.0
    install(Raises(MemoryError()))
    result = eq.solve(knapsack(), "fake")
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.MEMORY)
    assert "[fake ran out of memory]" in result.termination.message
    install(Raises(eq.InvalidInput("backend_options", 3, "no")))
    with pytest.raises(eq.InvalidInput):
        eq.solve(knapsack(), "fake")


def test_a_backend_object_needs_no_registry():
    result = eq.solve(knapsack(), Fake(answer()), backend_options={"fake": {"depth": 3}})
    assert (result.backend, result.termination.reason) == ("fake", Reason.OPTIMAL)


def test_explain_says_why_each_backend_was_taken_or_passed_over():
    result = eq.solve(knapsack(), explain=True)
    table = {row.name: row for row in result.candidates}
    assert [row.name for row in result.candidates if row.taken] == ["highs"]
    assert table["highs"].reason == "reads MILP programs"
    assert table["marginal"].reason == "reads ScheduleWindow only"
    assert table["clarabel"].reason == "cannot state MILP programs"
    assert table["scipy"].reason.startswith("used by name only")
    assert "passed over" in str(result.candidates)
    assert eq.solve(knapsack()).candidates == ()
    assert {row.name: row for row in eq.candidates(knapsack(), threads=2)}["scipy"].reason == "cannot honour threads"
    special = eq.candidates(window())
    assert [(row.name, row.reason) for row in special if row.taken] == [("marginal", "made for ScheduleWindow")]
    general = {row.name: row.reason for row in eq.candidates(window(), form="counts")}
    assert general["marginal"] == "reads the problem itself, not its program 'counts'"


def test_a_backend_that_failed_is_numerical_even_with_a_plan(install):
    install(Fake(answer(claim=Claim.FAILED, message="singular basis")))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert "singular basis" in result.termination.message
    with pytest.raises(eq.NoSolution):
        result.require_optimal()


def test_a_failure_without_a_message_is_still_a_failure(install):
    install(Fake(answer(None, bound=None, claim=Claim.FAILED)))
    result = eq.solve(knapsack(), "fake")
    assert result.termination.reason is Reason.NUMERICAL


@pytest.mark.parametrize("sense", ["max", "min"])
def test_the_gap_is_relative_to_the_objective_or_in_the_problems_unit(install, sense):
    sign = 1.0 if sense == "max" else -1.0
    install(Fake(answer(bound=sign * 7.0)))
    assert eq.solve(knapsack(sense), "fake").gap == pytest.approx(1 / 6)
    assert eq.solve(knapsack(sense, gap_unit=20.0), "fake").gap == pytest.approx(1 / 20)
    assert eq.solve(knapsack(sense, gap_unit=0.5), "fake").gap == pytest.approx(2.0)


def test_the_gap_of_an_objective_of_zero_is_finite_and_large(install):
    install(Fake(answer(bound=1.0)))
    result = eq.solve(knapsack(offset=-6.0), "fake")
    assert result.objective == 0.0
    assert result.gap == pytest.approx(1e9)
    assert result.termination.reason is Reason.FEASIBLE


def test_the_offset_counts(install):
    install(Fake(answer(bound=106.0)))
    result = eq.solve(knapsack(offset=100.0), "fake")
    assert result.objective == 106.0
    assert result.termination.reason is Reason.OPTIMAL


def test_history_ends_with_what_was_verified_and_progress_was_called(install):
    install(Fake(answer(), points=[(None, 9.0), (5.0, 8.0), (999.0, 6.0)]))  # the last incumbent is a lie
    heard = []
    result = eq.solve(knapsack(), "fake", on_progress=heard.append)
    assert [(p.objective, p.bound) for p in heard] == [(None, 9.0), (5.0, 8.0), (999.0, 6.0)]
    assert list(result.history[:-1]) == heard
    last = result.history[-1]
    assert (
        (last.time, last.objective, last.bound)
        == (result.wall_time, result.objective, result.bound)
        == (last.time, 6.0, 6.0)
    )
    times = [point.time for point in result.history]
    assert times == sorted(times)
    assert times[0] >= 0


def test_an_error_in_the_callers_progress_reaches_the_caller(install):
    install(Fake(answer(), points=[(5.0, 8.0)]))

    def refuse(point):
        raise KeyError(point.bound)

    with pytest.raises(KeyError, match=r"8\.0"):
        eq.solve(knapsack(), "fake", on_progress=refuse)


def test_nearly_whole_values_are_made_whole(install):
    install(Fake(answer([1e-9, 1.0 + 3e-8, 0.9999999], bound=6.0)))
    result = eq.solve(knapsack(), "fake")
    assert result.plan["take"].tolist() == [0.0, 1.0, 1.0]
    assert result.objective == 6.0
    assert result.residuals.worst == 0.0
    assert result.termination.reason is Reason.OPTIMAL


def test_whole_values_are_not_forced_where_that_breaks_a_row(install):
    build = eq.ProgramBuilder(sense="max")
    n = build.add_columns("n", (1,), upper=5.0, integer=True)
    x = build.add_columns("x", (1,), upper=5.0)
    build.add_rows("tied", (1,), terms=[(0, x, 1.0), (0, n, -1e5)], lower=0.0, upper=0.0)
    build.set_objective([(x, 1.0)])
    install(Fake(answer([1e-5, 1.0], bound=1.0)))  # a big-M that trickles: 1e-5 of 1e5
    result = eq.solve(build.program(), "fake", feasibility_tol=1e-4)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.plan["n"][0] == 1e-5  # within the tolerance asked for, and said so:
    assert result.residuals.integrality == pytest.approx(1e-5)
    strict = eq.solve(build.program(), "fake")
    assert strict.termination.reason is Reason.NUMERICAL


def test_values_just_outside_a_bound_are_clipped(install):
    install(Fake(answer([-1e-8, 1.0 + 1e-8, 1.0], bound=6.0)))
    result = eq.solve(knapsack(integer=False), "fake")
    assert result.plan["take"].min() == 0.0
    assert result.plan["take"].max() == 1.0
    assert result.objective == 6.0


def test_duals_come_by_block(install):
    install(Fake(answer(duals=np.array([1.5]), reduced_costs=np.array([1.0, 2.0, 3.0]))))
    result = eq.solve(knapsack(integer=False), "fake")
    assert result.duals["room"].tolist() == [1.5]
    assert result.reduced_costs["take"].tolist() == [1.0, 2.0, 3.0]


def test_the_program_and_the_options_reach_the_backend(install):
    fake = install(Fake(answer()))
    program = knapsack()
    eq.solve(program, "fake", rel_gap=0.25, seed=11, time_limit=50.0, warm_start={"take": [1.0, 0.0, 0.0]})
    ((task, options),) = fake.calls
    assert task.program is program
    assert task.start.tolist() == [1.0, 0.0, 0.0]
    assert (options.rel_gap, options.seed) == (0.25, 11)
    assert 49.0 < options.time_limit <= 50.0


@pytest.mark.parametrize("backend", ["auto", "proportional_response", "highs"])
@pytest.mark.parametrize("isolate", [False, True])
def test_a_warm_start_that_is_no_plan_of_the_market_is_the_callers_fault(backend, isolate):
    market = eq.FisherMarket(utilities=[[2.0, 1.0], [1.0, 3.0]], budgets=[1.0, 1.0])
    other = eq.FisherMarket(utilities=[[2.0]], budgets=[1.0])
    plan = other.equilibrium(np.ones((1, 1)))
    for start, message in (
        (3, "warm_start = 'int': must be an Equilibrium of this market"),
        (np.ones((2, 2)), "warm_start = 'ndarray': must be an Equilibrium of this market"),
        (plan, "warm_start.allocation = (1, 1): must have shape (2, 2)"),
        (dataclasses.replace(plan, allocation=np.ones((2, 2))), "warm_start.prices = (1,): must have shape (2,)"),
    ):
        with pytest.raises(eq.InvalidInput) as caught:
            eq.solve(market, backend, warm_start=start, isolate=isolate)
        assert str(caught.value) == message


def test_a_warm_start_of_the_wrong_shape_or_block_is_the_callers_fault(install):
    fake = install(Fake(answer()))
    for start in ({"take": [1.0, 0.0]}, {"give": [1.0]}):
        with pytest.raises(eq.InvalidInput):
            eq.solve(knapsack(), "fake", warm_start=start)
    assert not fake.calls


def test_an_empty_program_needs_no_backend(install):
    fake = install(Fake(answer()))
    build = eq.ProgramBuilder(sense="min")
    build.set_objective([], offset=4.0)
    result = eq.solve(build.program(), "fake")
    assert (result.termination.reason, result.objective, result.bound, result.plan) == (Reason.OPTIMAL, 4.0, 4.0, {})
    build.add_rows("never", (1,), terms=[], lower=1.0)
    broken = eq.solve(build.program(), "fake")
    assert broken.termination.reason is Reason.INFEASIBLE
    assert broken.bound == math.inf
    assert not fake.calls


def test_a_special_backends_plan_is_evaluated_by_the_problem(install):
    problem = window()
    grants = np.array([[True, True, False], [False, False, True]])
    install(
        Fake(
            Answer(claim=Claim.SOLVED, plan=eq.WindowPlan(problem, grants), bound=0.0),
            formulations=["ScheduleWindow"],
        )
    )
    result = eq.solve(problem, "fake")
    assert result.termination.reason is Reason.FEASIBLE
    assert result.objective == problem.tables.objective(grants, problem.is_running, 0.0)
    assert result.gap == pytest.approx(abs(result.objective) / problem.tables.weight_sum)


BROKEN = {
    "capacity": [[True, True, False], [True, False, True]],
    "work conservation": [[True, False, False], [False, False, True]],
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_special_backends_plan_with_a_fault_is_numerical(install, what):
    problem = window()
    plan = eq.WindowPlan(problem, np.array(BROKEN[what]))
    install(Fake(Answer(claim=Claim.SOLVED, plan=plan, bound=plan.objective), formulations=["ScheduleWindow"]))
    result = eq.solve(problem, "fake")
    assert result.termination.reason is Reason.NUMERICAL
    assert result.residuals.row == 1.0
    with pytest.raises(eq.NoSolution):
        result.require_optimal()


def test_the_residuals_of_a_window_are_those_of_the_plan_as_well_as_of_the_program(install):
    """A general backend's values may be good, and what `decode` makes of them is checked again."""
    problem = window()

    def good(task):
        plan = eq.solve(problem, "marginal", rel_gap=0.0).plan
        values = problem.encode(plan, task.form)
        return Answer(claim=Claim.SOLVED, values=values, bound=plan.objective * task.objective_factor)

    install(Fake(good))
    result = eq.solve(problem, "fake", form="counts", rel_gap=1e-9)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.residuals.worst <= 1e-9
    assert result.plan.grants.sum() == 3


def test_wall_time_is_measured_here(install):
    def slow(task):
        time.sleep(0.05)
        return answer()

    install(Fake(slow))
    assert 0.05 <= eq.solve(knapsack(), "fake").wall_time < SOON_S


def test_the_time_spent_building_counts_against_the_limit(install):
    fake = install(Fake(answer(None, bound=None, claim=Claim.STOPPED, limit=Limit.TIME)))
    program = knapsack()

    class Slow(Formulation):
        forms = ("matrix",)
        sense = "max"

        def class_of(self, form=None):
            return eq.ProblemClass.MILP

        def program(self, form):
            time.sleep(0.06)
            return program

        def decode(self, values, duals, form):
            return values

    result = eq.solve(Slow(), "fake", time_limit=0.05)
    assert fake.calls[0][1].time_limit == 0.0
    assert result.termination.limit is Limit.TIME


def test_notes_and_seed_are_carried(install):
    install(Fake(dataclasses.replace(answer(), notes=("bound: by decree",))))
    result = eq.solve(knapsack(), "fake", seed=5)
    assert result.notes == ("bound: by decree",)
    assert result.seed == 5


def test_of_a_market_the_best_allocation_meets_the_best_prices_whenever_they_were_reported():
    market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0])
    good, even = np.eye(2), np.full((2, 2), 0.5)
    right, wrong = np.array([1.0, 1.0]), np.array([1.0, 19.0])

    class Reports(Fake):
        def solve(self, task, options, on_progress):
            on_progress(None, np.inf, market.equilibrium(good, wrong))
            return super().solve(task, options, on_progress)

    last = Answer(claim=Claim.SOLVED, plan=market.equilibrium(even, right))
    result = eq.solve(market, Reports(last, formulations={"FisherMarket"}), rel_gap=1e-9)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.plan.allocation.tolist() == good.tolist()
    assert result.plan.prices.tolist() == right.tolist()
    assert result.plan.spending.tolist() == [1.0, 1.0]


def test_of_a_special_backend_of_markets_nothing_but_allocation_and_prices_is_believed():
    """Its utilities, spending and unit of prices are restated, and its bound is what the plan's prices prove."""
    plan = eq.Equilibrium(
        allocation=np.full((2, 2), 0.5), prices=np.array([5.0, 15.0]), spending=np.ones(2), utilities=np.full(2, 9.0)
    )
    fake = Fake(Answer(claim=Claim.SOLVED, plan=plan, bound=-100.0), formulations={"FisherMarket"})
    result = eq.solve(eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0]), fake)
    assert result.plan.utilities.tolist() == [1.5, 2.0]
    assert result.plan.prices.tolist() == [0.5, 1.5]
    assert result.plan.spending.tolist() == [1.0, 1.0]
    assert result.objective == pytest.approx(np.log(3.0))
    assert result.bound == pytest.approx(np.log(1 / 0.25) + np.log(1 / 0.5))  # one unit costs 0.5/2 and 1.5/3
    assert result.termination.reason is Reason.FEASIBLE


@pytest.mark.parametrize("given", [{"isolate": "yes"}, {"explain": 1}, {"on_progress": "print"}])
def test_an_argument_that_is_no_such_thing_is_named_before_anything_runs(given):
    with pytest.raises(eq.InvalidInput) as caught:
        eq.solve(knapsack(), "highs", **given)
    assert caught.value.field == next(iter(given))
