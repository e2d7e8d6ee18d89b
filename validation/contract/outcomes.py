"""Cases of the contract: every outcome a solve can have, and the shapes of program that are easily mistaken."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np

from ...formulations.program.builder import ProgramBuilder
from ...formulations.program.data import ProblemClass
from ...formulations.program.model import Program
from ...solvers.result import Limit, Reason
from .check import Check, Failure
from .programs import LOGARITHMIC, SHARE_GAIN, dense, known, senses

# Two rows over two columns, the corners of which are easily told by hand.
CORNER = ((1.0, 1.0), (1.0, 3.0))


def optimal(check: Check, wanted: ProblemClass) -> None:
    """Maximise and minimise, with an offset; the plan is that one corner."""
    for sense in senses(wanted):
        side = {"at_most": [4.0, 6.0]} if sense == "max" else {"at_least": [4.0, 6.0]}
        cost, best = ([3.0, 4.0], 13.0) if sense == "max" else ([2.0, 3.0], 9.0)
        program = known(wanted, sense, cost, CORNER, optimum=best + 7.5, rate=9.0, upper=9.0, offset=7.5, **side)
        result = check.optimum(program)
        _at(result.require_plan()["x"], [3.0, 1.0])


def infeasible(check: Check, wanted: ProblemClass) -> None:
    """Rows that no point within the bounds can satisfy; and two rows that contradict each other."""
    for sense in senses(wanted):
        out_of_reach = dense(wanted, sense, [1.0, 1.0], [[1.0, 1.0]], at_least=5.0, upper=2.0)
        check.infeasible(check.solve(out_of_reach), out_of_reach)
        apart = dense(
            wanted, sense, [1.0, -1.0], [[1.0, -1.0], [1.0, -1.0]], at_least=[2.0, -9.0], at_most=[9.0, 1.0], upper=50.0
        )
        check.infeasible(check.solve(apart), apart)


def infeasible_by_integrality(check: Check, wanted: ProblemClass) -> None:
    """Only whole numbers rule it out: an even sum that is odd, bounds with no whole number between."""
    odd = dense(wanted, "max", [1.0, 1.0], [[2.0, 2.0]], at_least=7.0, at_most=7.0, upper=9.0)
    check.infeasible(check.solve(odd), odd)
    between = dense(wanted, "max", [1.0, 1.0], [[1.0, 1.0]], at_most=7.0, lower=[0.2, 0.0], upper=[0.8, 9.0])
    check.infeasible(check.solve(between), between)


def unbounded(check: Check, wanted: ProblemClass) -> None:
    """A ray along which the objective improves without end."""
    for sense in senses(wanted):
        flip = 1.0 if sense == "max" else -1.0
        result = check.solve(dense(wanted, sense, [flip, flip], [[1.0, -1.0]], at_most=1.0))
        if result.termination.reason not in (Reason.UNBOUNDED, Reason.INFEASIBLE_OR_UNBOUNDED):
            raise Failure(f"{result.termination} instead of UNBOUNDED")
        if result.bound != flip * math.inf:
            raise Failure(f"bound {result.bound:g} of an unbounded program")


def no_columns(check: Check, wanted: ProblemClass) -> None:
    """Nothing to decide: the offset is the optimum, unless an empty row is violated. Its class is LP."""
    for allowed in (True, False):
        build = ProgramBuilder(sense="max")
        build.add_rows("row", (2,), terms=[], lower=[-1.0, 0.0 if allowed else 1.0], upper=2.0)
        build.set_objective([], offset=-1.5)
        result = check.solve(build.program())
        if not allowed:
            check.infeasible(result, build.program())
        elif (result.termination.reason, result.objective, result.bound) != (Reason.OPTIMAL, -1.5, -1.5):
            raise Failure(f"{result!r} instead of OPTIMAL -1.5")


def no_rows(check: Check, wanted: ProblemClass) -> None:
    """Every column goes to its better bound; then with no objective either."""
    for sense in senses(wanted):
        best, at = (22.0, [5.0, -4.0]) if sense == "max" else (-20.0, [-1.0, 6.0])
        program = known(wanted, sense, [2.0, -3.0], optimum=best, rate=5.0, lower=[-1.0, -4.0], upper=[5.0, 6.0])
        _at(check.optimum(program).require_plan()["x"], at)
        check.optimum(known(wanted, sense, [0.0, 0.0], optimum=3.0, rate=0.0, upper=1.0, offset=3.0))


def free_columns(check: Check, wanted: ProblemClass) -> None:
    """Columns without bounds, at a negative optimum; and columns with an upper bound alone."""
    for sense in senses(wanted):
        flip = 1.0 if sense == "max" else -1.0
        rows, side = [[1.0, -1.0], [1.0, 1.0]], flip * 4.0
        low, high = ([2.0, -math.inf], [2.0, side]) if sense == "max" else ([2.0, side], [2.0, math.inf])
        program = known(
            wanted, sense, [1.0, 1.0], rows, optimum=side, rate=2.0, lower=-math.inf, at_least=low, at_most=high
        )
        _at(check.optimum(program).require_plan()["x"], [1.0 + side / 2, -1.0 + side / 2])
        below = known(
            wanted, sense, [2.0 * flip, -flip], [[1.0, -1.0]], optimum=flip, rate=3.0,
            lower=-math.inf, upper=-1.0, at_most=2.0,
        )  # fmt: skip
        _at(check.optimum(below).require_plan()["x"], [-1.0, -3.0])


def fixed_columns(check: Check, wanted: ProblemClass) -> None:
    """Lower bound and upper bound alike: for one column, and for all."""
    for sense in senses(wanted):
        best = 3.0 * 2 + 4 if sense == "max" else 3.0 * 2 + 1
        check.optimum(known(
            wanted, sense, [3.0, 1.0], [[2.0, 1.0]], optimum=best, rate=5.0,
            lower=[2.0, 1.0], upper=[2.0, 9.0], at_most=8.0,
        ))  # fmt: skip
        every = known(
            wanted, sense, [3.0, -1.0], [[1.0, 1.0]], optimum=-11.0, rate=4.0,
            lower=[-3.0, 2.0], upper=[-3.0, 2.0], at_least=-9.0,
        )  # fmt: skip
        _at(check.optimum(every).require_plan()["x"], [-3.0, 2.0])
        broken = dense(wanted, sense, [1.0, 1.0], [[1.0, 1.0]], lower=2.0, upper=2.0, at_most=3.0)
        check.infeasible(check.solve(broken), broken)


def negative_integers(check: Check, wanted: ProblemClass) -> None:
    """Whole numbers below zero, where rounding towards zero and rounding down differ."""
    for sense in senses(wanted):
        # 3 x + 2 y within [-13, -9.5], x and y in [-5, -1]: at best -10 of a maximisation, -13 of a minimisation.
        best = -10.0 if sense == "max" else -13.0
        check.optimum(known(
            wanted, sense, [3.0, 2.0], [[3.0, 2.0]], optimum=best + 1.0, rate=3.0, offset=1.0,
            lower=-5.0, upper=-1.0, at_least=-13.0, at_most=-9.5,
        ))  # fmt: skip
        check.optimum(known(
            wanted, sense, [1.0], [[2.0]], optimum=-2.0 if sense == "max" else -4.0, rate=1.0,
            lower=-9.0, upper=0.0, at_least=-9.0, at_most=-3.0,
        ))  # fmt: skip


def row_ranges(check: Check, wanted: ProblemClass) -> None:
    """Rows with two sides, either of them active; and a range of one point, an equation."""
    for sense in senses(wanted):
        best = 3.0 if sense == "max" else 2.0
        check.optimum(known(
            wanted, sense, [1.0, 1.0], [[1.0, 1.0], [1.0, -1.0]], optimum=best, rate=2.0,
            upper=9.0, at_least=[2.0, -1.0], at_most=[3.0, 1.0],
        ))  # fmt: skip
        check.optimum(known(
            wanted, sense, [1.0, 2.0], [[1.0, 1.0], [0.0, 1.0]], optimum=8.0 if sense == "max" else 6.0, rate=4.0,
            upper=9.0, at_least=[5.0, 1.0], at_most=[5.0, 3.0],
        ))  # fmt: skip


def empty_row(check: Check, wanted: ProblemClass) -> None:
    """A row with no entry: of no effect where 0 satisfies it, infeasible where it does not; and a row that is free."""
    for sense in senses(wanted):
        best = 2.0 if sense == "max" else 1.0
        rows = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
        check.optimum(known(
            wanted, sense, [1.0, 1.0], rows, optimum=best, rate=2.0, upper=9.0,
            at_least=[-1.0, 1.0, -math.inf], at_most=[0.0, 2.0, math.inf],
        ))  # fmt: skip
        broken = dense(wanted, sense, [1.0, 1.0], rows[:2], upper=9.0, at_least=[1.0, 1.0], at_most=[2.0, 2.0])
        check.infeasible(check.solve(broken), broken)


def degenerate(check: Check, wanted: ProblemClass) -> None:
    """An assignment of small, equal costs: many optima, many bases for each."""
    size = 4
    worker, task = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
    rows = np.vstack([worker == each for each in range(size)] + [task == each for each in range(size)]).astype(float)
    for sense in senses(wanted):
        cost = check.rng(sense == "max").integers(0, 3, (size, size))
        totals = [int(cost[np.arange(size), each].sum()) for each in permutations(range(size))]
        best = max(totals) if sense == "max" else min(totals)
        check.optimum(known(
            wanted, sense, cost.ravel(), rows, optimum=float(best + 1), rate=2.0 * size * size, offset=1.0,
            upper=1.0, at_least=1.0, at_most=1.0,
        ))  # fmt: skip


def equality_knapsack_without_time(check: Check, wanted: ProblemClass) -> None:
    """An equation over whole numbers at time_limit=0: no plan, or a right one if it is found at once."""
    rng = check.rng()
    weights = rng.integers(10_000, 100_000, 12)
    point = rng.integers(0, 2, 12)
    side = float(weights @ point)
    program = dense(wanted, "max", rng.integers(1, 50, 12), [weights], at_least=side, at_most=side, upper=1.0)
    reached = float(program.objective[:12] @ point) + (SHARE_GAIN if wanted in LOGARITHMIC else 0.0)
    _hurried(check, program, reached)


def no_time_at_all(check: Check, wanted: ProblemClass) -> None:
    """time_limit=0 on an easy program: no plan, or a right one if it is found at once."""
    easy = known(wanted, "max", [3.0, 4.0], CORNER, optimum=13.0, rate=9.0, upper=9.0, at_most=[4.0, 6.0])
    assert easy.optimum is not None
    _hurried(check, easy.program, easy.optimum)


def _hurried(check: Check, program: Program, reached: float) -> None:
    result = check.solve(program, time_limit=0.0)
    termination = result.termination
    if termination.reason not in (Reason.NO_SOLUTION_FOUND, Reason.FEASIBLE, Reason.OPTIMAL):
        raise Failure(f"{termination} at time_limit=0, of a program that has a plan")
    if termination.reason is not Reason.OPTIMAL and termination.limit is not Limit.TIME:
        raise Failure(f"{termination} at time_limit=0: the limit is TIME")
    if reached - result.bound > 1e-6 * max(1.0, abs(reached)):
        raise Failure(f"bound {result.bound:.12g} at time_limit=0 is below a plan of {reached:.12g}")


def _at(found: Any, point: list[float]) -> None:
    if np.abs(np.asarray(found) - point).max() > 1e-4:
        raise Failure(f"the plan is {np.asarray(found).tolist()}; only {point} is optimal")
