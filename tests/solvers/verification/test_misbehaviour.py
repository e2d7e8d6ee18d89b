"""A misbehaving solver is harmless: the caller lives, is answered in time, and is told nothing that is wrong."""

import itertools
import math
import os
import resource
import time
from dataclasses import replace

import misbehaving as bad
import numpy as np
import pytest
from patience import SOON_S

import equipoise as eq
from equipoise.solvers.backend import Answer, Claim

Reason, Limit = eq.Reason, eq.Limit
LIMIT = 0.4
GOOD, BEST = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])
RIGHT = (Reason.OPTIMAL, Reason.INFEASIBLE, Reason.UNBOUNDED, Reason.INFEASIBLE_OR_UNBOUNDED)
WAYS = ["in process", pytest.param("isolated", marks=pytest.mark.skipif(os.name != "posix", reason="needs POSIX"))]
posix = pytest.mark.skipif(os.name != "posix", reason="isolation needs a POSIX system")


def knapsack(sense="max", integer=True):
    """max 5a + 3b + 3c over 4a + 2b + 2c <= 5 (or min of the negative): a alone gives 5, b and c together 6."""
    build = eq.ProgramBuilder(sense=sense)
    take = build.add_columns("take", (3,), upper=1.0, integer=integer)
    build.add_rows("room", (1,), terms=[(0, take, [4, 2, 2])], upper=5)
    build.set_objective([(take, (1.0 if sense == "max" else -1.0) * np.array([5.0, 3.0, 3.0]))])
    return build.program()


def choice(integer=True):
    """max a + 2b + 3c over a + b + c = 1: neither the zeros nor a bound of every column satisfies it."""
    build = eq.ProgramBuilder(sense="max")
    take = build.add_columns("take", (3,), upper=1.0, integer=integer)
    build.add_rows("one", (1,), terms=[(0, take, 1.0)], lower=1.0, upper=1.0)
    build.set_objective([(take, [1.0, 2.0, 3.0])])
    return build.program()


def wide():
    """max z over 0 <= 10 x - 10 y <= 5, x and y without upper bounds: room for numbers that overflow."""
    build = eq.ProgramBuilder(sense="max")
    free = build.add_columns("free", (2,))
    z = build.add_columns("z", (1,), upper=1.0)
    build.add_rows("near", (1,), terms=[(0, free, [10.0, -10.0])], lower=0.0, upper=5.0)
    build.set_objective([(z, 1.0)])
    return build.program()


def pools():
    """max log a + 2 log b + log c over a + b + c <= 2, each at most 1: the best is at (0.5, 1, 0.5)."""
    build = eq.ProgramBuilder(sense="max")
    take = build.add_columns("take", (3,), upper=1.0)
    build.add_rows("room", (1,), terms=[(0, take, 1.0)], upper=2.0)
    build.add_logs([1.0, 2.0, 1.0], terms=[(np.arange(3), take, 1.0)])
    return build.program()


def window():
    jobs = [eq.WindowJob(id=i, gpus=1, finished_epochs=1, total_epochs=4, regimes=[eq.Regime(3, 100.0)]) for i in "ab"]
    return eq.ScheduleWindow(jobs, gpus=1, rounds=3)


def solved(problem, *deeds, way="isolated", name="deeds", **more):
    """Solve by a backend of these deeds, and hold the promise about time."""
    special = (type(problem).__name__,) if isinstance(problem, eq.ScheduleWindow) else ()
    backend = bad.Deeds(*deeds, name=name, formulations=special)
    isolate = more.pop("isolate", way == "isolated")
    if more.pop("warm", False):  # so that a short limit leaves time for what is said
        eq.solve(problem, bad.Deeds(None, name=name), isolate=True)
    started = time.perf_counter()
    result = eq.solve(problem, backend, isolate=isolate, **more)
    if "time_limit" in more:
        assert time.perf_counter() - started < more["time_limit"] + SOON_S
    return result


def optimum(program):
    """Return the best objective, by enumeration of whole numbers."""
    sign = 1.0 if program.sense == "max" else -1.0
    points = (np.array(point) for point in itertools.product((0.0, 1.0), repeat=program.num_columns))
    return sign * max(
        sign * program.objective_at(point) for point in points if program.residuals_at(point).worst <= 1e-9
    )


def says(claim=Claim.SOLVED, **more):
    return Answer(claim=claim, **more)


# -- It does not come back, or dies ------------------------------------------------------------------------------------

STUCK = {
    "sleeps": [bad.sleep],
    "holds Python's lock": [bad.spin],
    "ignores signals": [bad.ignore_signals, bad.sleep],
    "floods us": [bad.Says(None, 9.0, times=10**9)],
}


@posix
@pytest.mark.parametrize("how", STUCK)
def test_one_that_hangs_is_ended_in_time(how):
    result = solved(knapsack(), *STUCK[how], time_limit=LIMIT, warm=how == "floods us")
    assert (result.termination.reason, result.termination.limit) == (Reason.NO_SOLUTION_FOUND, Limit.TIME)
    assert "deeds did not stop at the time limit of 0.4 s and was ended" in result.termination.message
    assert result.plan is None
    assert result.bound == (9.0 if how == "floods us" else math.inf)


@posix
def test_one_that_hangs_at_a_limit_of_zero_is_ended_in_time_and_the_grace_is_the_callers():
    for grace in (0.0, 0.3):
        started = time.perf_counter()
        result = solved(knapsack(), bad.sleep, time_limit=0.0, isolate=eq.Isolation(grace_s=grace))
        assert grace <= time.perf_counter() - started < grace + SOON_S
        assert result.termination.limit is Limit.TIME


@posix
def test_one_that_is_late_but_within_the_grace_is_heard():
    result = solved(knapsack(), bad.nap, says(values=BEST, bound=6.0), time_limit=0.0, warm=True)
    assert result.termination.reason is Reason.OPTIMAL
    assert result.wall_time >= 0.4


@posix
@pytest.mark.parametrize("sense", ["max", "min"])
def test_the_best_incumbent_outlives_one_that_hangs(sense):
    sign = 1.0 if sense == "max" else -1.0
    result = solved(
        knapsack(sense),
        bad.Says(sign * 3.0, sign * 9.0, np.array([0.0, 1.0, 0.0])),
        bad.Says(sign * 5.0, sign * 8.0, GOOD),
        bad.Says(sign * 99.0, sign * 7.5, np.ones(3)),  # breaks the row
        bad.sleep,
        time_limit=LIMIT,
        isolate=eq.Isolation(grace_s=0.2),
        warm=True,
    )
    assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.TIME)
    assert (result.objective, result.bound) == (sign * 5.0, sign * 7.5)
    assert result.gap == pytest.approx(0.5)
    assert result.plan["take"].tolist() == GOOD.tolist()
    assert "was ended" in result.termination.message


@posix
def test_an_incumbent_whose_gap_is_closed_is_optimal_even_if_the_solver_hangs_afterwards():
    patient = eq.Isolation(grace_s=0.2)
    result = solved(knapsack(), bad.Says(6.0, 6.0, BEST), bad.sleep, time_limit=LIMIT, isolate=patient, warm=True)
    assert (result.termination.reason, result.objective) == (Reason.OPTIMAL, 6.0)


@posix
def test_an_incumbent_on_the_wrong_side_of_the_streamed_bound_is_numerical():
    result = solved(knapsack(), bad.Says(6.0, 4.0, BEST), bad.segfault, time_limit=600.0)
    assert result.termination.reason is Reason.NUMERICAL
    assert math.isinf(result.bound)


DEATHS = {
    "segfaults": (bad.segfault, "SIGSEGV"),
    "aborts": (bad.abort, "SIGABRT"),
    "is killed": (bad.be_killed, "SIGKILL"),
    "exits": (bad.exit_at_once, "exit code 3"),
}


@posix
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("how", DEATHS)
def test_one_that_dies_is_numerical_and_its_incumbent_is_kept(how, streamed):
    deed, words = DEATHS[how]
    before = [bad.Says(5.0, 8.0, GOOD)] if streamed else []
    result = solved(knapsack(), *before, deed, time_limit=600.0)
    assert result.termination.reason is Reason.NUMERICAL
    assert f"deeds's process ended unexpectedly: {words}" in result.termination.message
    assert result.wall_time < SOON_S  # at once, not at the limit
    assert result.objective == (5.0 if streamed else None)


@posix
def test_one_that_calls_sys_exit_ends_nothing_but_its_own_solve():
    result = solved(knapsack(), bad.leave)
    assert result.termination.reason is Reason.NUMERICAL
    assert "deeds failed: SystemExit: goodbye" in result.termination.message


@posix
@pytest.mark.parametrize("deed", [bad.exhaust, bad.exhaust_without_a_word])
def test_one_that_takes_all_memory_is_stopped_at_its_limit(deed):
    result = solved(knapsack(), bad.Says(5.0, 8.0, GOOD), deed, time_limit=600.0, isolate=eq.Isolation(memory_gb=0.4))
    assert result.objective == 5.0
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if deed is bad.exhaust or ours < 0.75 * 0.4e9:  # a death without a word is judged by a peak beyond our own
        assert (result.termination.reason, result.termination.limit) == (Reason.FEASIBLE, Limit.MEMORY)
        assert "deeds exceeded its memory limit of 0.4 GB" in result.termination.message
    else:
        assert result.termination.reason in (Reason.FEASIBLE, Reason.NUMERICAL)


@pytest.mark.parametrize("way", WAYS)
def test_one_that_raises_is_numerical(way):
    result = solved(knapsack(), bad.Says(5.0, 8.0, GOOD), bad.fail, way=way)
    assert result.termination.reason is Reason.NUMERICAL
    assert "deeds failed: RuntimeError: singular basis" in result.termination.message
    assert result.objective == 5.0


@pytest.mark.parametrize("way", WAYS)
def test_one_that_raises_what_cannot_even_be_printed_is_numerical(way):
    result = solved(knapsack(), bad.fail_strangely, way=way)
    assert result.termination.reason is Reason.NUMERICAL


# -- It talks nonsense -------------------------------------------------------------------------------------------------


GARBAGE = {
    "nothing": None,
    "text": "optimal",
    "a mapping": {"values": [0, 1, 1]},
    "too few values": says(values=np.zeros(2), bound=0.0),
    "too many dimensions": says(values=np.zeros((3, 1)), bound=0.0),
    "no dimensions": says(values=np.float64(1.0), bound=1.0),
    "nan": says(values=np.full(3, np.nan), bound=math.nan),
    "inf": says(values=np.full(3, np.inf), bound=math.inf),
    "-inf": says(values=np.full(3, -np.inf), bound=-math.inf),
    "numbers that overflow": says(values=np.array([1e308, 1e308, 0.0]), bound=0.0),
    "texts": says(values=["0", "1", "1"], bound="6"),
    "objects": says(values=[None, object, "x"], bound=[6.0]),
    "complex numbers": says(values=BEST + 1j, bound=6.0 + 1j),
    "ragged": says(values=[[1], [1, 2]], bound=6.0),
    "a claim that is a word": says("optimal", values=BEST, bound=6.0),
    "a claim that is a conclusion": says(Reason.OPTIMAL, values=BEST, bound=6.0),
    "a limit that is a word": says(Claim.STOPPED, limit="time", values=BEST, bound=9.0),
    "notes that are none": says(values=BEST, bound=6.0, notes=None),
    "a message that is none": says(Claim.FAILED, message=None),
    "duals of another program": says(values=BEST, bound=6.0, duals=np.zeros(7), reduced_costs=np.zeros(2)),
    "duals that are texts": says(values=BEST, bound=6.0, duals=["a"], reduced_costs="abc"),
    "a ray of another program": says(Claim.INFEASIBLE, ray=np.ones(9)),
}
# Of these the plan is the true one, so it may be kept, or even be called optimal once it is checked.
TRUE_PLAN = {name for name, said in GARBAGE.items() if isinstance(said, Answer) and said.values is BEST}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("problem", [knapsack(), knapsack("min"), knapsack(integer=False), choice(), wide()], ids=repr)
@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_numerical(what, problem, way):
    result = solved(problem, GARBAGE[what], way=way)
    assert result.termination.reason is Reason.NUMERICAL
    assert result.termination.message
    if what not in TRUE_PLAN or "take" not in problem.columns or "one" in problem.rows:
        assert (result.plan, result.objective) == (None, None)
    assert isinstance(result.bound, float)
    assert math.isinf(result.gap) or result.plan is not None
    with pytest.raises(eq.NoSolution):
        result.require_optimal()


def test_garbage_is_called_by_its_name():
    words = {
        "text": "deeds returned a str and not an Answer",
        "too few values": "its values is of shape (2,) and not (3,)",
        "texts": "its values is not numbers, its bound is not a number",
        "a claim that is a word": "its claim is a str",
    }
    for what, expected in words.items():
        assert expected in solved(knapsack(), GARBAGE[what], way="in process").termination.message


ENDINGS = [
    ("answers", "in process"),
    *(pytest.param(end, "isolated", marks=posix) for end in ("answers", "hangs", "dies")),
]


@pytest.mark.parametrize(("end", "way"), ENDINGS)
def test_garbage_on_the_way_is_no_incumbent(end, way):
    nonsense = ["abc", None, math.nan, -math.inf, np.zeros(3), object, [1, 2]]
    reports = [bad.Says(*report) for report in itertools.product(nonsense, nonsense, [None, "abc", np.ones(2), {}])]
    reports += [bad.Says(6.0, 9.0, np.full(3, np.nan)), bad.Says(6.0, 9.0, -BEST), bad.Says(6.0, 9.0, [None] * 3)]
    ends = {"answers": says(Claim.STOPPED, limit=Limit.NODES), "hangs": bad.sleep, "dies": bad.segfault}
    heard = []
    result = solved(
        knapsack(), *reports, ends[end], way=way, time_limit=LIMIT if end == "hangs" else 20.0, on_progress=heard.append
    )
    assert result.termination.reason is (Reason.NUMERICAL if end == "dies" else Reason.NO_SOLUTION_FOUND)
    assert result.plan is None
    for point in heard:
        assert point.objective is None or isinstance(point.objective, float)
        assert isinstance(point.bound, float)
        assert not math.isnan(point.bound)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "plan", [None, "junk", 3.0, {"grants": None}, np.zeros((2, 3)), knapsack()], ids=lambda plan: type(plan).__name__
)
def test_a_special_backend_that_returns_garbage_is_numerical_or_has_no_plan(plan, way):
    result = solved(window(), bad.Says(1.0, 2.0, plan), says(plan=plan, bound=0.0), way=way)
    expected = (Reason.NO_SOLUTION_FOUND, Reason.NUMERICAL) if plan is None else (Reason.NUMERICAL,)
    assert result.termination.reason in expected
    assert result.objective is None
    assert result.plan is None


# -- It lies -----------------------------------------------------------------------------------------------------------

ZEROS = np.zeros(3)
LIES = {
    "zeros for a solution": says(values=ZEROS, bound=0.0),
    "zeros, and not a word about a bound": says(values=ZEROS),
    "optimal with nothing": says(),
    "optimal with nothing but a bound": says(bound=6.0),
    "infeasible": says(Claim.INFEASIBLE),
    "infeasible, with a ray": says(Claim.INFEASIBLE, ray=np.ones(1)),
    "infeasible, with a solution": says(Claim.INFEASIBLE, values=ZEROS),
    "unbounded": says(Claim.UNBOUNDED),
    "unbounded, with a bound": says(Claim.UNBOUNDED, bound=6.0),
    "infeasible or unbounded": says(Claim.INFEASIBLE_OR_UNBOUNDED),
    "a bound of nan": says(values=GOOD, bound=math.nan),
    "a bound of the wrong infinity": says(values=GOOD, bound=-math.inf),
    "a bound of the wrong sign": says(values=GOOD, bound=-5.0),
    "a bound on the wrong side": says(values=GOOD, bound=0.1),
    "its own objective as the bound": says(values=GOOD, bound=5.0),
    "its own objective as the bound, of a worse solution": says(values=np.array([0.0, 1.0, 0.0]), bound=3.0),
    "the objective that it wishes": says(values=ZEROS, bound=6.0),
    "a solution that is better than possible": says(values=np.ones(3), bound=11.0),
    "halves": says(values=np.full(3, 0.5), bound=5.5),
    "duals of zero": says(values=GOOD, bound=5.0, duals=np.zeros(1), reduced_costs=np.zeros(3)),
    "duals of the wrong sign": says(values=GOOD, bound=5.0, duals=np.array([-1.5]), reduced_costs=np.zeros(3)),
    "thirds, which are a plan of some": says(values=np.full(3, 1 / 3), bound=2.0),
    "two thirds, and their objective as the bound": says(values=np.full(3, 2 / 3), bound=4.0 * math.log(2 / 3)),
    "a bound at the end of all numbers": says(values=GOOD, bound=1.7e308),
    "a bound at the other end of all numbers": says(values=GOOD, bound=-1.7e308),
    "duals at the end of all numbers": says(
        values=GOOD, bound=5.0, duals=np.array([1.7e308]), slopes=np.full(3, 1e-320)
    ),
    "slopes of the wrong sign": says(values=np.full(3, 2 / 3), duals=np.ones(1), slopes=-np.ones(3)),
    "a ray at the end of all numbers": says(Claim.INFEASIBLE, ray=np.array([-1.7e308])),
    "duals of nan": says(values=GOOD, bound=5.0, duals=np.array([math.nan]), reduced_costs=np.zeros(3)),
}
PROGRAMS = {
    "knapsack": knapsack(),
    "knapsack, minimised": knapsack("min"),
    "knapsack, continuous": knapsack(integer=False),
    "choice": choice(),
    "choice, continuous": choice(integer=False),
}
BEST_OF = {name: optimum(program) for name, program in PROGRAMS.items()}
BEST_OF["knapsack, continuous"] = 6.0 + 5.0 / 4.0
PROGRAMS["pools"], BEST_OF["pools"] = pools(), 2.0 * math.log(0.5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", PROGRAMS)
@pytest.mark.parametrize("what", LIES)
def test_a_lie_is_not_believed(what, which, way):
    program, lie = PROGRAMS[which], LIES[what]
    sign = 1.0 if program.sense == "max" else -1.0
    if program.sense == "min" and lie.bound is not None:
        lie = replace(lie, bound=-lie.bound)
    result = solved(program, lie, way=way)
    best = BEST_OF[which]
    if result.termination.reason is Reason.OPTIMAL:
        assert result.objective == pytest.approx(best, rel=1e-4)  # nothing else is optimal, whoever says so
    assert result.termination.reason not in RIGHT[1:]
    assert sign * (result.bound - best) >= -1e-6  # no bound that is refuted by the optimum
    if result.plan is not None:
        assert program.residuals_at(program.encode(result.plan)).worst <= 1e-6


@pytest.mark.parametrize("way", WAYS)
def test_a_lie_about_a_window_is_not_believed(way):
    problem = window()
    honest = eq.solve(problem, "lagrangian", rel_gap=0.0)
    poor = eq.WindowPlan(problem, np.zeros((2, 3), dtype=bool))
    for lie in (says(plan=poor, bound=poor.objective), says(plan=poor, bound=honest.objective + 9.0)):
        result = solved(problem, lie, way=way)
        assert result.termination.reason is Reason.NUMERICAL
    late = solved(problem, bad.Says(honest.objective, 0.0, honest.plan), says(Claim.INFEASIBLE), way=way)
    assert late.termination.reason is Reason.NUMERICAL
    assert late.plan.grants.tolist() == honest.plan.grants.tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("claim", [Claim.INFEASIBLE, Claim.UNBOUNDED, Claim.INFEASIBLE_OR_UNBOUNDED])
def test_a_claim_against_its_own_incumbent_is_not_believed(claim, way):
    result = solved(knapsack(), bad.Says(5.0, 8.0, GOOD), says(claim), way=way)
    assert result.termination.reason not in RIGHT
    assert result.objective in (5.0, None)


@pytest.mark.parametrize("way", WAYS)
def test_a_true_answer_is_believed(way):
    """So that none of the above holds because nothing is ever right."""
    assert solved(knapsack(), says(values=BEST, bound=6.0), way=way).termination.reason is Reason.OPTIMAL
    program = knapsack(integer=False)
    duals = np.array([5.0 / 4.0])
    exact = says(values=np.array([0.25, 1.0, 1.0]), duals=duals, reduced_costs=np.array([0.0, 0.5, 0.5]))
    assert solved(program, exact, way=way).termination.reason is Reason.OPTIMAL
    build = eq.ProgramBuilder(sense="max")
    take = build.add_binaries("take", (2,))
    build.add_rows("much", (1,), terms=[(0, take, 1.0)], lower=3.0)
    build.set_objective([(take, 1.0)])
    assert solved(build.program(), says(Claim.INFEASIBLE), way=way).termination.reason is Reason.INFEASIBLE
    build = eq.ProgramBuilder(sense="max")
    free = build.add_columns("free", (1,))
    build.set_objective([(free, 1.0)])
    assert solved(build.program(), says(Claim.UNBOUNDED), way=way).termination.reason is Reason.UNBOUNDED
