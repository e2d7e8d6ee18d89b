"""Cases of the contract: optima, bounds and duals against what is planted, enumerated or in closed form."""

from __future__ import annotations

import math

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.program.builder import ProgramBuilder
from ...formulations.program.data import ProblemClass, Sense
from ...formulations.program.model import Program
from ...solvers.result import Limit
from .check import Check, Failure, Skip
from .programs import INTEGER, LOGARITHMIC, Known, enumerated, planted, senses, two_buyers, whole_goods

# What solvers are asked for, from exact to loose.
GAPS = (0.0, 1e-2, 0.5)
# A conic or cutting method closes no gap to the last bit; this is asked of programs with logarithms instead of 0.
FINEST_LOG_GAP = 1e-6
# Prices are only as good as the root of the gap.
MARKET_GAP = 1e-7
# Of a bounded rate of change, relative: duals come from solvers that stop within tolerances, of all kinds.
DUAL_TOLERANCE = 1e-4
# How far a side is moved to measure a dual. A logarithm bends on the way: that changes the rate by 1e-3 at most.
STEP = 1 / 256
MOVED_TOLERANCE = 2e-3


def planted_optima(check: Check, wanted: ProblemClass) -> None:
    """Random programs with planted multipliers: objective, bound and gap."""
    for rng in check.draws(5):
        for sense in senses(wanted):
            check.optimum(planted(rng, wanted, sense))


def endless_columns(check: Check, wanted: ProblemClass) -> None:
    """The same with columns that have no bound on one side, or on both."""
    for rng in check.draws(5):
        for sense in senses(wanted):
            check.optimum(planted(rng, wanted, sense, endless=True))


def badly_scaled(check: Check, wanted: ProblemClass) -> None:
    """The same with columns up to 1e6, coefficients from 1e-6 to 1e3, and costs to 1e6.

    An interior-point method may leave one gap in four open, if it says so and its bound and plan are right.
    """
    solved = left = 0
    for rng in check.draws(4):
        for sense in senses(wanted):
            # A method of whole or fixed-point numbers has no room for such a range, and may say so.
            known = planted(rng, wanted, sense, scaled=True)
            result = check.solve(known.program, rel_gap=1e-5, may_refuse=True)
            if result.termination.limit is Limit.METHOD and result.objective is not None:
                check.hold_bound(result, known, rel_gap=1e-5)
                left += 1
            else:
                check.hold(result, known, rel_gap=1e-5)
                solved += 1
    if left > solved / 3:
        raise Failure(f"it left {left} gaps of {left + solved} open")


def enumerated_optima(check: Check, wanted: ProblemClass) -> None:
    """Random integer programs of few points, every point looked at; some have none that is feasible."""
    for rng in check.draws(5):
        for sense in senses(wanted):
            check.optimum(enumerated(rng, wanted, sense))


def bounds(check: Check, wanted: ProblemClass) -> None:
    """The bound is never on the wrong side of the optimum, and the gap is within what was asked, tight or loose."""
    draw = enumerated if wanted in INTEGER else planted
    for rng in check.draws(3):
        for sense in senses(wanted):
            known = draw(rng, wanted, sense)
            for rel_gap in GAPS:
                asked = max(rel_gap, FINEST_LOG_GAP) if wanted in LOGARITHMIC else rel_gap
                check.optimum(known, rel_gap=asked)


def duals(check: Check, wanted: ProblemClass) -> None:
    """Duals and reduced costs of planted optima, which are unique: rows and columns of every kind, on either side."""
    for rng in check.draws(5):
        for sense in senses(wanted):
            known = planted(rng, wanted, sense, endless=True)
            result = check.optimum(known, rel_gap=_fine(wanted))
            if result.duals is None:
                raise Skip(f"it gives no duals of {wanted.value} programs")
            assert known.duals is not None
            assert known.reduced_costs is not None
            _alike("duals", result.duals["row"], known.duals, known.program)
            if result.reduced_costs is not None:
                _alike("reduced costs", result.reduced_costs["x"], known.reduced_costs, known.program)


def dual_signs(check: Check, wanted: ProblemClass) -> None:
    """Duals and reduced costs are what the optimum changes by when a side or a bound moves, measured by moving it."""
    for sense in senses(wanted):
        here = check.solve(_movable(wanted, sense), rel_gap=_fine(wanted))
        if here.duals is None:
            raise Skip(f"it gives no duals of {wanted.value} programs")
        claimed = [("row", k, here.duals["row"][k]) for k in range(4)]
        if here.reduced_costs is not None:
            claimed += [("column", k, here.reduced_costs["x"][k]) for k in range(5)]
        for what, k, rate in claimed:
            moved = check.solve(_movable(wanted, sense, what, k, STEP), rel_gap=_fine(wanted))
            if here.objective is None or moved.objective is None:
                raise Failure(f"{moved.termination} with {what} {k} moved a little")
            measured = (moved.objective - here.objective) / STEP
            if abs(measured - rate) > MOVED_TOLERANCE * max(1.0, abs(measured)):
                raise Failure(
                    f"{what} {k} has {rate:.9g}, but moving it changes the optimum ({sense}) by {measured:.9g}"
                )


def markets(check: Check, wanted: ProblemClass) -> None:
    """Two buyers with exact equilibria: their welfare, and as far as duals are given the prices."""
    for rng in check.draws(3, 20):
        goods = int(rng.integers(1, 5))
        budgets, worth = rng.integers(1, 6, 2), rng.integers(1, 8, (2, goods))
        known = two_buyers(budgets.tolist(), worth.tolist())
        result = check.optimum(known, rel_gap=MARKET_GAP)
        if result.duals is not None:
            assert known.duals is not None
            prices, budget = result.duals["supply"], float(known.duals.sum())
            # The welfare that duals prove is a convex function of them: an excess of e moves them by its root.
            allowed = 3.0 * math.sqrt(MARKET_GAP) * budget
            if np.abs(prices - known.duals).max() > allowed:
                raise Failure(f"prices {prices.tolist()} instead of {known.duals.tolist()}")


def closed_forms(check: Check, wanted: ProblemClass) -> None:
    """One log and a cost; water filling between logs with offsets; a log that rises and one that falls."""
    build = ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,), upper=5.0)
    build.add_logs([2.0], terms=[(0, x, 3.0)])
    build.set_objective([(x, -0.5)], offset=1.0)
    # 2 log(3 x) - x / 2 rises until x = 4.
    check.optimum(Known(program=build.program(), optimum=2 * math.log(12.0) - 1.0, rate=1.0))

    # Water filling: weights w over offsets b with a sum of 3; level 2 at x = (1.5, 1, 0.5, 0).
    build = ProgramBuilder(sense="max")
    x = build.add_columns("x", (4,))
    build.add_rows("sum", (1,), terms=[(0, x, 1.0)], upper=3.0)
    build.add_logs(1.0 * np.ones(4), terms=[(np.arange(4), x, 1.0)], offsets=[0.5, 1.0, 1.5, 4.0])
    check.optimum(Known(program=build.program(), optimum=3 * math.log(2.0) + math.log(4.0), rate=1.0))

    # Two terms over the same column, one of weight 0, one that falls: log(x) + 2 log(6 - x) is best at x = 2.
    build = ProgramBuilder(sense="max")
    x = build.add_columns("x", (1,), upper=9.0)
    build.add_logs([1.0, 2.0, 0.0], terms=[([0, 1, 2], x, [1.0, -1.0, 1.0])], offsets=[0.0, 6.0, 0.0])
    check.optimum(Known(program=build.program(), optimum=math.log(2.0) + 2 * math.log(4.0), rate=1.0))


def whole_markets(check: Check, wanted: ProblemClass) -> None:
    """Two buyers and goods in whole units, every allocation looked at."""
    for rng in check.draws(3, 20):
        check.optimum(whole_goods(rng))


def _fine(wanted: ProblemClass) -> float:
    return 1e-8 if wanted in LOGARITHMIC else 1e-9


def _movable(wanted: ProblemClass, sense: Sense, what: str = "", which: int = 0, by: float = 0.0) -> Program:
    """Return a program with one side of a row, or one bound of a column, moved; a small move leaves its duals alone.

    Row 0 is active above, 1 below, 2 is an equation, 3 has slack; column 0 is at its upper bound, 1 at its lower, the
    others lie between.
    """
    flip = 1.0 if sense == "max" else -1.0
    rows = np.array([[1.0, 0, 1, 1, 0], [0, 1, 0, 1, 1], [0, 1, 1, 0, 1], [1, 1, 1, 0, 0]])
    cost = rows.T @ [2 * flip, -1 * flip, 3, 0] + [1.5 * flip, -2 * flip, 0, 0, 0]
    below, above = np.array([5.0, 10, 9, -np.inf]), np.array([9.0, 15, 9, 8])
    lower, upper = np.array([-1.0, 1, 0, 0, 0]), np.array([2.0, 7, 10, 10, 10])
    moving = {"row": ([above], [below], [below, above], [above]), "column": ([upper], [lower], *[[upper]] * 3)}
    for side in moving[what][which] if what else ():
        side[which] += by
    build = ProgramBuilder(sense=sense)
    x = build.add_columns("x", (5,), lower=lower, upper=upper)
    build.add_rows("row", (4,), terms=[(np.arange(4)[:, None], x, rows)], lower=below, upper=above)
    if wanted in LOGARITHMIC:  # its slope at the optimum, x[2] = 3, is taken from the costs
        build.add_logs([2.0], terms=[(0, x[2], 1.0)], offsets=1.0)
        cost[2] -= 0.5
    build.set_objective([(x, cost)], offset=4.0)
    return build.program()


def _alike(what: str, found: Floats, expected: Floats, program: Program) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    worst = float(np.abs(found - expected).max(initial=0.0))
    # Where the objective bends, duals are only as good as the root of the gap.
    allowed = math.sqrt(FINEST_LOG_GAP) if len(program.log_weights) else DUAL_TOLERANCE
    if worst > allowed * scale:
        raise Failure(f"{what} {found.tolist()} instead of {expected.tolist()} ({program.sense}), unique")
