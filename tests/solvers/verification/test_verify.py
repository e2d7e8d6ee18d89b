"""The five steps of a verification, one by one, and the solutions that they compare."""

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.solvers.backend import Answer, Claim, Task
from equipoise.solvers.verification.checked_solution import ProgressRecorder, better_solution, check_solution
from equipoise.solvers.verification.verify import Verification

OPTIONS = eq.Options()
GOOD, BEST, BROKEN = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0]), np.ones(3)


def knapsack(integer=True):
    """max 5a + 3b + 3c over 4a + 2b + 2c <= 5: a alone gives 5, b and c together 6."""
    build = eq.ProgramBuilder(sense="max")
    take = build.add_columns("take", (3,), upper=1.0, integer=integer)
    build.add_rows("room", (1,), terms=[(0, take, [4, 2, 2])], upper=5)
    build.set_objective([(take, [5.0, 3.0, 3.0])])
    return build.program()


def task(integer=True):
    program = knapsack(integer)
    return Task(problem=program, form="matrix", program=program)


def verification(answer, *reports, integer=True):
    given = task(integer)
    progress = ProgressRecorder(given, OPTIONS, 0.0, None)
    for report in reports:
        progress(*report)
    return Verification(given, answer, OPTIONS, progress)


def says(claim=Claim.SOLVED, **more):
    return Answer(claim=claim, **more)


def test_an_answer_is_examined_and_its_bound_dropped_with_its_violations():
    right = verification(says(values=BEST, bound=6.0))
    right.examine_answer()
    assert (right.objective, right.fault, right.answer.bound) == (6.0, "", 6.0)
    assert right.solution.final
    wrong = verification(says(values=BROKEN, bound=6.0))
    wrong.examine_answer()
    assert wrong.solution is None
    assert "violates its own problem by 3" in wrong.fault
    assert (wrong.residuals.row, wrong.answer.bound) == (3.0, None)
    empty = verification(says(bound=6.0))
    empty.examine_answer()
    assert (empty.solution, empty.residuals, empty.fault) == (None, None, "")


@pytest.mark.parametrize(("values", "kept"), [(GOOD, BEST), (BEST, BEST), (BROKEN, BEST), (None, BEST)])
def test_the_better_of_answer_and_incumbent_is_kept(values, kept):
    steps = verification(says(values=values, bound=6.0), (6.0, 9.0, BEST), (5.0, 9.0, GOOD), (11.0, 9.0, BROKEN))
    steps.examine_answer()
    steps.reconcile_with_incumbent()
    assert steps.solution.values.tolist() == kept.tolist()
    assert steps.solution.final is (values is BEST)
    assert steps.residuals.worst == 0.0


@pytest.mark.parametrize("claim", [Claim.INFEASIBLE, Claim.INFEASIBLE_OR_UNBOUNDED, Claim.UNBOUNDED])
def test_an_incumbent_refutes_that_there_is_none_and_not_that_there_is_no_best(claim):
    steps = verification(says(claim), (5.0, 9.0, GOOD))
    steps.examine_answer()
    steps.reconcile_with_incumbent()
    assert (steps.solution is None) == (claim is Claim.UNBOUNDED)
    assert bool(steps.fault) == (claim is not Claim.UNBOUNDED)


def test_claims_are_tested_only_where_no_plan_is_at_hand_and_nothing_is_wrong_already():
    for claim in (Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED):
        steps = verification(says(claim))
        steps.test_claims()
        assert "the backend claims" in steps.fault
        steps = verification(says(claim))
        steps.fault = "something else"
        steps.test_claims()
        assert (steps.fault, steps.notes) == ("something else", [])


def test_a_bound_is_proved_by_duals_or_unverified():
    for integer, bound, proved in ((False, 7.25, True), (True, 6.0, False)):
        steps = verification(says(values=BEST, bound=6.0, duals=np.array([1.25])), integer=integer)
        steps.examine_answer()
        steps.establish_bound()
        assert (steps.bound, steps.bound_proved, steps.fault) == (bound, proved, "")
    steps = verification(says(bound=7.0), integer=False)
    steps.establish_bound()
    assert "gave no duals" in steps.notes[0]
    refuted = verification(says(values=GOOD, bound=5.0))
    refuted.examine_answer()
    refuted.establish_bound()
    assert (refuted.bound, "is refuted" in refuted.fault) == (math.inf, True)


@pytest.mark.parametrize(
    ("claim", "reason", "bound"),
    [
        (Claim.INFEASIBLE, eq.Reason.INFEASIBLE, -math.inf),
        (Claim.UNBOUNDED, eq.Reason.UNBOUNDED, math.inf),
        (Claim.INFEASIBLE_OR_UNBOUNDED, eq.Reason.INFEASIBLE_OR_UNBOUNDED, math.inf),
        (Claim.SOLVED, eq.Reason.NO_SOLUTION_FOUND, 7.0),
    ],
)
def test_without_a_plan_the_conclusion_is_the_claim_and_the_bound_follows(claim, reason, bound):
    steps = verification(says(claim))
    steps.bound = 7.0
    assert steps.conclude().reason is reason
    assert steps.bound == bound
    steps.fault = "broken"
    assert steps.conclude().reason is eq.Reason.NUMERICAL


def test_the_comparison_of_solutions_changes_neither():
    market = eq.FisherMarket([[2.0, 1.0], [1.0, 3.0]], [1.0, 1.0])
    special = Task(problem=market, form="special")
    plans = [
        market.equilibrium(np.eye(2), np.array([1.0, 19.0])),
        market.equilibrium(np.full((2, 2), 0.5), np.ones(2)),
    ]
    good, priced = (check_solution(special, plan, OPTIONS) for plan in plans)
    before = good.plan, priced.plan
    for pair in ((good, priced), (priced, good)):
        best = better_solution(market, *pair)
        assert best.plan.allocation.tolist() == np.eye(2).tolist()
        assert best.plan.prices.tolist() == [1.0, 1.0]
        assert best is not good
        assert (good.plan, priced.plan) == before
    assert good.plan.prices.tolist() != [1.0, 1.0]


def test_of_equals_the_first_is_kept_and_a_failed_evaluation_is_no_better():
    given = task()
    first, second = (check_solution(given, BEST, OPTIONS, final=final) for final in (True, False))
    assert better_solution(given.problem, first, second).final
    assert not better_solution(given.problem, second, first).final
    nothing = check_solution(given, "junk", OPTIONS)
    assert (nothing.plan, nothing.feasible, nothing.residuals.worst) == (None, False, math.inf)
