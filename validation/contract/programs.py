"""Programs with known optima, planted, enumerated or in closed form, for the contract of backends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.arrays import Floats, Indices
from ...formulations.program.builder import ProgramBuilder
from ...formulations.program.data import ProblemClass, Sense
from ...formulations.program.model import Program

EVERY = (ProblemClass.LP, ProblemClass.MILP, ProblemClass.LOG, ProblemClass.MILOG)
INTEGER = (ProblemClass.MILP, ProblemClass.MILOG)
CONTINUOUS = (ProblemClass.LP, ProblemClass.LOG)
LOGARITHMIC = (ProblemClass.LOG, ProblemClass.MILOG)

# A program without logarithms becomes one with them by the term 2 log(1 + share), share in [0, 3]: this is its optimum,
# and this is what one unit of violation of its bound gains.
SHARE_GAIN, SHARE_RATE = 2.0 * math.log(4.0), 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """A program and what is known of its optimum; None: no point is feasible.

    `rate` is the most that the objective gains per unit of violation of every bound and row: the sum of the absolute
    duals. Duals and reduced costs, by row and column, are unique: the change of the optimum per unit of the active
    side.
    """

    program: Program
    optimum: float | None
    rate: float = 0.0
    duals: Floats | None = None
    reduced_costs: Floats | None = None


def senses(wanted: ProblemClass) -> tuple[Sense, ...]:
    """Return the senses that a program of this class can have."""
    return ("max",) if wanted in LOGARITHMIC else ("max", "min")


def dense(
    wanted: ProblemClass, sense: Sense, cost: ArrayLike, rows: ArrayLike = (), *, at_least: ArrayLike = -np.inf,
    at_most: ArrayLike = np.inf, lower: ArrayLike = 0.0, upper: ArrayLike = np.inf, offset: float = 0.0,
) -> Program:  # fmt: skip
    """Return a program of the wanted class from a dense matrix, its columns in the block "x", its rows in "row".

    All columns are integer where the class has integers. A class with logarithms gets one more column, "share", which
    adds :data:`SHARE_GAIN` to the optimum and changes nothing else.
    """
    cost, matrix = np.asarray(cost, dtype=np.float64), np.asarray(rows, dtype=np.float64)
    build = ProgramBuilder(sense=sense)
    x = build.add_columns("x", cost.shape, lower=lower, upper=upper, integer=wanted in INTEGER)
    if len(matrix):
        _add_matrix(build, x, matrix, at_least, at_most)
    build.set_objective([(x, cost)], offset=offset)
    if wanted in LOGARITHMIC:
        share = build.add_columns("share", (1,), upper=3.0)
        build.add_logs([2.0], terms=[(0, share, 1.0)], offsets=1.0)
    return build.program()


def known(
    wanted: ProblemClass,
    sense: Sense,
    cost: ArrayLike,
    rows: ArrayLike = (),
    *,
    optimum: float,
    rate: float,
    **more: Any,
) -> Known:
    """Return the program of :func:`dense` with its optimum and rate, those of the share added."""
    program = dense(wanted, sense, cost, rows, **more)
    if wanted in LOGARITHMIC:
        optimum, rate = optimum + SHARE_GAIN, rate + SHARE_RATE
    return Known(program=program, optimum=optimum, rate=rate)


def planted(
    rng: np.random.Generator, wanted: ProblemClass, sense: Sense, *, scaled: bool = False, endless: bool = False
) -> Known:
    """Draw a program around a point and multipliers that satisfy the optimality conditions, both unique.

    Rows are equations, ranges, one-sided, active or slack; columns at either bound or between. An integer program has
    a relaxation of whole numbers. In a `scaled` one columns take values up to 1e6, coefficients go from 1e-6 to 1e3,
    and costs to 1e6; in an `endless` one the columns between have infinite bounds, on one side or on both.
    """
    columns, slack = int(rng.integers(2, 6)), int(rng.integers(0, 3))
    active = int(rng.integers(1, columns + 1))
    while True:
        matrix = _whole(rng, 4, (active + slack, columns)) * (rng.random((active + slack, columns)) < 0.8)
        basic = np.sort(rng.permutation(columns)[:active])
        if abs(np.linalg.det(matrix[:active][:, basic])) > 0.5:
            break
    flip = 1.0 if sense == "max" else -1.0
    values = _whole(rng, 4, columns) + 0.0
    gap_below, gap_above = rng.integers(1, 4, (2, columns)).astype(np.float64)
    at_upper = rng.random(columns) < 0.5
    gap_above[at_upper], gap_below[~at_upper] = 0.0, 0.0
    gap_below[basic], gap_above[basic] = rng.choice([2.0, np.inf] if endless else [1.0, 2.0], (2, active))
    reduced = flip * np.where(at_upper, 1.0, -1.0) * rng.integers(1, 6, columns)
    reduced[basic] = 0.0

    upper_active = rng.random(active) < 0.5
    duals = np.zeros(active + slack)
    duals[:active] = flip * np.where(upper_active, 1.0, -1.0) * rng.integers(1, 6, active)
    row_above, row_below = rng.choice([1.0, 3.0, np.inf], (2, active + slack))
    row_above[:active][upper_active], row_below[:active][~upper_active] = 0.0, 0.0
    equal = np.flatnonzero(rng.random(active) < 0.3)
    row_above[equal], row_below[equal] = 0.0, 0.0

    size = np.power(10.0, rng.integers(0, 7, columns) * scaled).astype(np.float64)
    weight = np.power(10.0, rng.integers(0, 4, active + slack) * scaled).astype(np.float64)
    if scaled:
        duals, reduced = 1e3 * duals, 1e3 * reduced
    matrix = weight[:, None] * matrix / size
    duals, reduced = duals / weight, reduced / size
    values, gap_below, gap_above = size * values, size * gap_below, size * gap_above
    activity = matrix @ values

    whole = (rng.random(columns) < 0.7) & (wanted in INTEGER)
    whole[0] = wanted in INTEGER
    build = ProgramBuilder(sense=sense)
    x = build.add_columns("x", (columns,), lower=values - gap_below, upper=values + gap_above, integer=whole)
    _add_matrix(build, x, matrix, activity - weight * row_below, activity + weight * row_above)
    cost = matrix.T @ duals + reduced
    if wanted in LOGARITHMIC:
        inside, weights = _whole(rng, 3, (2, columns)) / size, rng.integers(1, 5, 2).astype(np.float64)
        level = 2.0 ** rng.integers(0, 3, 2)
        build.add_logs(weights, terms=[(np.arange(2)[:, None], x, inside)], offsets=level - inside @ values)
        cost = cost - (weights / level) @ inside
    build.set_objective([(x, cost)], offset=float(rng.integers(-9, 10)))
    rate = float(np.abs(duals).sum() + np.abs(reduced).sum())
    known = Known(program=build.program(), optimum=0.0, rate=rate, duals=duals, reduced_costs=reduced)
    return _away_from_zero(known, known.program.objective_at(values))


def enumerated(rng: np.random.Generator, wanted: ProblemClass, sense: Sense) -> Known:
    """Draw an integer program of few points and look at all of them; a MILP may be infeasible."""
    columns, rows = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    lower = rng.integers(-3, 3, columns)
    spread = rng.integers(0, 4, columns)
    points = lower + np.array(list(product(*(range(each + 1) for each in spread))), dtype=np.float64)
    point = points[rng.integers(len(points))]
    matrix = _whole(rng, 5, (rows, columns)) * (rng.random((rows, columns)) < 0.8)
    low = matrix @ point - rng.integers(0, 5, rows)
    high = matrix @ point + rng.integers(0, 5, rows)
    if wanted is ProblemClass.MILP and rng.random() < 0.2:
        low, high = low + rng.integers(-9, 10, rows), high + 9  # perhaps out of reach
    low[rng.random(rows) < 0.4] = -np.inf
    high[rng.random(rows) < 0.4] = np.inf

    build = ProgramBuilder(sense=sense)
    x = build.add_columns("x", (columns,), lower=lower, upper=lower + spread, integer=True)
    _add_matrix(build, x, matrix, low, high)
    build.set_objective([(x, _whole(rng, 9, columns))], offset=float(rng.integers(-9, 10)))
    if wanted in LOGARITHMIC:
        inside = _whole(rng, 3, (2, columns))
        terms = [(np.arange(2)[:, None], x, inside)]
        build.add_logs(rng.integers(1, 9, 2), terms=terms, offsets=rng.integers(1, 4, 2) - inside @ point)
    program = build.program()
    activity = points @ matrix.T
    feasible = points[((activity >= low) & (activity <= high)).all(axis=1)]
    best = max if sense == "max" else min
    found = best((program.objective_at(each) for each in feasible), default=None)
    known = Known(program=program, optimum=None)
    return known if found is None else _away_from_zero(known, found)


def knapsack(rng: np.random.Generator, wanted: ProblemClass, items: int = 24) -> Known:
    """Draw a 0/1 knapsack of two rows, its optimum by dynamic programming: small, and not solved at the root."""
    weights = rng.integers(5, 30, (2, items))
    profits = weights.sum(axis=0) + rng.integers(0, 8, items)
    most = weights.sum(axis=1) // 3
    best = np.zeros(most + 1)
    for (a, b), profit in zip(weights.T, profits, strict=True):
        best[a:, b:] = np.maximum(best[a:, b:], best[: len(best) - a, : best.shape[1] - b] + profit)
    return known(wanted, "max", profits, weights, at_most=most, upper=1.0, optimum=float(best[-1, -1]), rate=0.0)


def hard_knapsack(rng: np.random.Generator, wanted: ProblemClass) -> Program:
    """Draw a 0/1 knapsack of ten rows and 100 columns, which takes any branch and bound minutes; zero is feasible."""
    rows, columns = 10, 100
    weights = rng.integers(1, 1001, (rows, columns))
    profits = weights.mean(axis=0) + rng.integers(0, 501, columns)
    build = ProgramBuilder(sense="max")
    x = build.add_binaries("x", (columns,))
    build.add_rows("row", (rows,), terms=[(np.arange(rows)[:, None], x, weights)], upper=weights.sum(axis=1) // 2)
    if wanted in LOGARITHMIC:
        group = np.arange(columns) % 3
        build.add_logs([300.0, 200.0, 100.0], terms=[(group, x, profits / 1000.0)], offsets=1.0)
    else:
        build.set_objective([(x, profits)])
    return build.program()


def market_split(rng: np.random.Generator, wanted: ProblemClass) -> tuple[Program, dict[str, Floats]]:
    """Draw equations over 0/1 columns around a point, and return both: no solver finds such a point soon.

    Cornuejols and Dawande, "A class of hard small 0-1 programs", IPCO 1998.
    """
    rows, columns = 5, 40
    weights, point = rng.integers(0, 100, (rows, columns)), rng.integers(0, 2, columns).astype(np.float64)
    side = weights @ point
    profits = rng.integers(1, 10, columns)
    program = dense(wanted, "max", profits, weights, at_least=side, at_most=side, upper=1.0)
    plan = {"x": point}
    if wanted in LOGARITHMIC:
        plan["share"] = np.array([3.0])
    return program, plan


def two_buyers(budgets: Sequence[int], worth: Sequence[Sequence[int]]) -> Known:
    """Return the Fisher market of two buyers with linear utilities, one unit of every good, and its exact prices.

    The goods, by the ratio of the buyers' worths, go to the first buyer up to one good that both share: the shares
    that maximise Nash welfare follow from one equation. The prices are the duals of the supplies.
    """
    (one, two), (mine, yours) = budgets, np.asarray(worth, dtype=np.float64)
    order = np.argsort(-mine / yours, kind="stable")
    found = []
    for k, shared in enumerate(order):
        first, last = mine[order[:k]].sum(), yours[order[k + 1 :]].sum()
        a, b = mine[shared], yours[shared]
        share = (one * a * (last + b) - two * b * first) / (a * b * (one + two))
        share = min(1.0, max(0.0, share))
        utilities = first + share * a, last + (1 - share) * b
        if min(utilities) > 0:
            found.append((one * math.log(utilities[0]) + two * math.log(utilities[1]), utilities))
    welfare, (u, v) = max(found)
    prices = np.maximum(one * mine / u, two * yours / v)

    build = ProgramBuilder(sense="max")
    goods = len(mine)
    x = build.add_columns("x", (2, goods))
    build.add_rows("supply", (goods,), terms=[(np.arange(goods), x, 1.0)], upper=1.0)
    build.add_logs(budgets, terms=[(np.arange(2)[:, None], x, worth)])
    reduced = np.concatenate([one * mine / u - prices, two * yours / v - prices])
    program = build.program(gap_unit=float(one + two))
    rate = float(prices.sum() + np.abs(reduced).sum())
    return Known(program=program, optimum=welfare, rate=rate, duals=prices)


def whole_goods(rng: np.random.Generator) -> Known:
    """Draw a market of two buyers whose goods come in whole units, and look at every allocation."""
    supply, worth = rng.integers(1, 5, 3), rng.integers(1, 6, (2, 3))
    budgets = rng.integers(1, 4, 2)
    build = ProgramBuilder(sense="max")
    x = build.add_columns("x", (2, 3), upper=supply, integer=True)
    build.add_rows("supply", (3,), terms=[(np.arange(3), x, 1.0)], upper=supply)
    build.add_logs(budgets, terms=[(np.arange(2)[:, None], x, worth)], offsets=[1.0, 0.0])
    program = build.program()
    shares = (np.array(share, dtype=np.float64) for share in product(*(range(each + 1) for each in supply)))
    optimum = max(program.objective_at(np.concatenate([share, supply - share])) for share in shares)
    return Known(program=program, optimum=optimum)


def _add_matrix(build: ProgramBuilder, x: Indices, matrix: Floats, low: ArrayLike, high: ArrayLike) -> None:
    used = np.nonzero(matrix)  # zeros are left out
    build.add_rows("row", (len(matrix),), terms=[(used[0], x[used[1]], matrix[used])], lower=low, upper=high)


def _away_from_zero(known: Known, optimum: float) -> Known:
    """Return the program with its optimum, moved where that is so small that no gap relative to it closes."""
    by = 7.0 if abs(optimum) < 1.0 else 0.0
    return replace(known, program=replace(known.program, offset=known.program.offset + by), optimum=optimum + by)


def _whole(rng: np.random.Generator, most: int, shape: int | tuple[int, ...]) -> Floats:
    return rng.integers(-most, most + 1, shape).astype(np.float64)
