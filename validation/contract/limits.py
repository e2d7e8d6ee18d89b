"""Cases of the contract: time limits, gaps, warm starts, and progress."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...formulations.errors import BackendUnavailable, InvalidInput
from ...formulations.program.data import ProblemClass
from ...formulations.program.model import Program
from ...solvers.isolation.run import NOT_STOPPED, Isolation
from ...solvers.result import Limit, Reason, Result
from .check import Check, Failure, Skip, noted, same_numbers
from .programs import LOGARITHMIC, Known, dense, hard_knapsack, knapsack, known, market_split, senses

# Seconds given to programs that take minutes: where one has no incumbent yet, the next is tried.
SHORT_S = (0.5, 2.0, 8.0)
# Seconds past its limit at which a backend is late, and at which one in a process of its own is ended. A busy machine
# delays a solve now and then, a backend that ignores its limit is late every time.
GRACE_S, NET_S, TRIES = 3.0, 5.0, 2


def time_limit(check: Check, wanted: ProblemClass) -> None:
    """A program too hard for the limit: an incumbent with a true bound and a finite gap, soon after the limit."""
    program = hard_knapsack(check.rng(), wanted)
    for seconds in SHORT_S:
        result = _program_in_time(check, program, seconds)
        if result.plan is not None:
            break
    if result.termination.reason is Reason.OPTIMAL:
        return
    if (result.termination.reason, result.termination.limit) != (Reason.FEASIBLE, Limit.TIME):
        raise Failure(f"{result.termination} of a program where 0 is feasible, instead of FEASIBLE (time limit)")
    if not math.isfinite(result.gap):
        raise Failure(f"no finite gap after {seconds:g} s: bound {result.bound:g}")


def no_time_when_hard(check: Check, wanted: ProblemClass) -> None:
    """time_limit=0 on a program that takes minutes: it ends at once, and is not read as no limit at all."""
    result = _program_in_time(check, hard_knapsack(check.rng(), wanted), 0.0)
    if result.termination.reason not in (Reason.NO_SOLUTION_FOUND, Reason.FEASIBLE):
        raise Failure(f"{result.termination} at time_limit=0, of a program that takes minutes")


def bound_within_the_limit(check: Check, wanted: ProblemClass) -> None:
    """Whatever the limit, the bound is on the right side of the optimum, and the incumbent is not beyond it."""
    easy = knapsack(check.rng(), wanted, items=40)
    for seconds in (0.0, 0.02, 0.1):
        result = check.solve(easy.program, time_limit=seconds, rel_gap=0.0)
        check.hold_bound(result, easy)
        if result.objective is not None and easy.optimum is not None and result.objective > easy.optimum + 1e-6:
            raise Failure(f"objective {result.objective:.12g} is better than the optimum {easy.optimum:.12g}")


def gaps(check: Check, wanted: ProblemClass) -> None:
    """A loose gap may end the solve early, a tight one must be closed: relative, absolute, in the problem's unit."""
    for rng in check.draws(1, 10):
        plain = knapsack(rng, wanted)
        for options in ({"rel_gap": 0.1}, {"rel_gap": 0.0, "abs_gap": 15.0}, {"rel_gap": 1e-6}):
            check.optimum(plain, **options)
        # The unit of the gap is far from |objective|, on either side.
        large = Known(program=replace(plain.program, gap_unit=5000.0), optimum=plain.optimum)
        small = Known(program=replace(plain.program, gap_unit=1.0), optimum=plain.optimum)
        for program, rel_gap in ((large, 1e-2), (large, 1e-8), (small, 0.5)):
            check.optimum(program, rel_gap=rel_gap)


def zero_optimum(check: Check, wanted: ProblemClass) -> None:
    """An optimum of 0, where no gap relative to it closes but an absolute one does."""
    for sense in senses(wanted):
        flip = 1.0 if sense == "max" else -1.0
        program = dense(wanted, sense, [-2.0 * flip, -flip], [[1.0, -1.0]], at_most=1.0, upper=5.0)
        check.optimum(Known(program=program, optimum=0.0, rate=3.0), abs_gap=1e-5)


def warm_start(check: Check, wanted: ProblemClass) -> None:
    """Starts that are poor, best, partial, infeasible, fractional: the same answer, and a warm start note."""
    check.needs_warm_start()
    right = knapsack(check.rng(), wanted, items=16)
    cold = check.optimum(right)
    items = len(right.program.columns["x"])
    nothing = {name: np.zeros(index.shape) for name, index in right.program.columns.items()}
    starts = {
        "a feasible start": nothing,
        "its own optimum": cold.plan,
        "a start that violates rows": {**nothing, "x": np.ones(items)},
        "a start out of bounds": {**nothing, "x": np.full(items, -7.0)},
        "a start that is not whole": {**nothing, "x": np.full(items, 0.5)},
    }
    if wanted in LOGARITHMIC:
        starts["a part of a start"] = {"share": np.array([1.0])}
    else:
        starts["a start of no column"] = {}
    for what, start in starts.items():
        result = check.solve(right.program, warm_start=start)
        check.hold(result, right)
        noted(result, what)


def warm_start_is_used(check: Check, wanted: ProblemClass) -> None:
    """A start of a program whose points are hard to find: it is in the answer at once, whole or completed."""
    check.needs_warm_start()
    program, plan = market_split(check.rng(), wanted)
    result = check.solve(program, warm_start=plan, time_limit=SHORT_S[0], rel_gap=0.0)
    noted(result, "a feasible start")
    start = program.objective_at(program.encode(plan))
    if result.objective is None or result.objective < start - 1e-6 * abs(start):
        raise Failure(f"{result!r} from a feasible start of {start:.9g}; notes {result.notes}")


def continuous_warm_start(check: Check, wanted: ProblemClass) -> None:
    """A start of a continuous program, feasible or not, changes nothing but the notes."""
    check.needs_warm_start()
    right = known(
        wanted, "max", [3.0, 4.0], [[1.0, 1.0], [1.0, 3.0]], optimum=13.0, rate=9.0, upper=9.0, at_most=[4.0, 6.0]
    )
    share = {"share": np.array([0.0])} if wanted in LOGARITHMIC else {}
    for what, point in (("a feasible start", [1.0, 1.0]), ("a start that violates rows", [9.0, 9.0])):
        result = check.solve(right.program, warm_start={"x": np.array(point), **share})
        check.hold(result, right)
        noted(result, what)


def same_seed(check: Check, wanted: ProblemClass) -> None:
    """The same call gives the same plan and objective, bit by bit, with the default seed and with another."""
    right = knapsack(check.rng(), wanted, items=16)
    degenerate = dense(wanted, "max", np.ones(12), np.ones((1, 12)), at_most=6.0, upper=1.0)
    for program in (right.program, degenerate):
        for given in check.seeds():
            first, second = (check.solve(program, **given) for _ in range(2))
            for name in program.columns:
                if first.require_plan()[name].tobytes() != second.require_plan()[name].tobytes():
                    raise Failure(f"two plans of one call differ, with {given or 'the default seed'}")
            same_numbers(first, second)


def progress(check: Check, wanted: ProblemClass) -> None:
    """What is reported on the way: incumbents keep the program and are worth what is said, bounds keep their side."""
    right = knapsack(check.rng(), wanted, items=30)
    program, best = right.program, right.optimum
    assert best is not None
    sign, reports = program.sign, check.reports(program)[1]
    if not reports:
        raise Skip(f"it reports nothing on the way of {wanted.value} programs")
    allowed = 1e-6 * max(1.0, abs(best))
    for report in reports:
        if sign * (best - report.bound) > allowed:
            raise Failure(f"it reports a bound of {report.bound:.12g}; the optimum is {best:.12g}")
        if report.objective is not None and sign * (report.objective - best) > allowed:
            raise Failure(f"it reports an incumbent of {report.objective:.12g}, better than the optimum {best:.12g}")
        if report.incumbent is None:
            continue
        violation = program.residuals_at(report.incumbent).worst
        if violation > 1e-6:
            raise Failure(f"it reports an incumbent that violates the program by {violation:.3g}")
        value = program.objective_at(report.incumbent)
        if report.objective is not None and abs(value - report.objective) > 1e-5 * max(1.0, abs(best)):
            raise Failure(f"it says {report.objective:.12g} of an incumbent worth {value:.12g}")
    said = [report.objective for report in reports if report.objective is not None]
    if any(sign * (later - earlier) < -allowed for earlier, later in pairwise(said)):
        raise Failure(f"its incumbents get worse on the way: {said}")


def solve_in_time(check: Check, problem: Any, easy: Any, seconds: float) -> Result[Any]:
    """Solve within the limit or fail; `easy` shows how long the smallest problem takes.

    A process of its own, where the backend can be sent to one, ends a solve that never stops.
    """
    net: Isolation | bool = Isolation(grace_s=NET_S)
    try:
        check.solve(easy, isolate=net)
    except (InvalidInput, BackendUnavailable):
        net = False
        check.solve(easy)
    started = time.perf_counter()  # the first solve may have compiled
    check.solve(easy, isolate=net)
    allowed_s = seconds + GRACE_S + time.perf_counter() - started
    for _ in range(TRIES):
        result = check.solve(problem, isolate=net, time_limit=seconds, rel_gap=0.0)
        if NOT_STOPPED in result.termination.message:
            raise Failure(f"it did not stop within {NET_S:g} s after a time limit of {seconds:g} s")
        if result.wall_time <= allowed_s:
            return result
    raise Failure(f"it took {result.wall_time:.1f} s with a time limit of {seconds:g} s, in each of {TRIES} tries")


def _program_in_time(check: Check, program: Program, seconds: float) -> Result[Any]:
    return solve_in_time(check, program, dense(program.problem_class, "max", [1.0], upper=1.0), seconds)
