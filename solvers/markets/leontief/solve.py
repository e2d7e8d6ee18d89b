"""Leontief markets over rounds by an interior-point method whose linear systems use the market's structure."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.markets.volatile import VolatileFisherMarket
from ...backend import Answer, Claim, Progress
from ...deadline import Deadline
from ...options import Options
from ...result import CLOSED_GAP, Limit
from .central_path import LeontiefPath
from .scaling import ScaledLeontief

# Number of steps that must reduce the gap by a tenth; otherwise rounding limits the path, and it ends.
PATIENCE, IMPROVEMENT = 12, 0.9
MOST_STEPS = 500
# Rates stay this share below full capacity, so that the plan's own sums, in another order, need no repair.
HEADROOM = 1e-13
# The path aims a little below the requested gap: the check sums in another order.
MARGIN = 0.99


def solve_leontief(
    market: VolatileFisherMarket,
    options: Options,
    on_progress: Progress,
    deadline: Deadline,
    most_steps: int = MOST_STEPS,
) -> Answer:
    """Solve a Leontief market over rounds.

    The variables are the rates of utility r_it of buyer i in round t. With prices p and w_i, the marginal utility of
    money, the optimum is where ``sum_i a_ijt r_it + s_jt = c_jt``, ``z_it = sum_j a_ijt p_jt - w_i``, ``U_i w_i =
    B_i``, ``r z = 0`` and ``p s = 0``. Newton steps follow ``r z = p s = mu`` down to 0. A step solves one system over
    the goods, or over the buyers where those are fewer; memory is that of a few copies of the data.

    Parameters
    ----------
    market : VolatileFisherMarket
        A market of the family "leontief".
    options : Options
        The gaps, the warm start (the first incumbent) and the log are honoured. Nothing is drawn, so the seed has no
        effect.
    on_progress : Progress
        Called after each step; only the last step gets a plan, as a large one takes time and memory.

    Returns
    -------
    Answer
        The plan holds the best rates and the best prices found, which need not be of the same step.

    Raises
    ------
    InvalidInput
        If the warm start does not have this market's shape.

    Notes
    -----
    Budgets enter as weighted complementarity, ``U_i w_i = B_i``, which leaves everything but the products linear; the
    steps are Mehrotra's predictor and corrector. Prices of a Leontief market are often not unique: these lie in the
    middle of those that are optimal.
    """
    best = BestPoint(market, options, on_progress)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        limit = None if best.closed() else _followed(market, best, deadline, most_steps)
    if not math.isfinite(best.objective):  # there is no plan
        why = "requirements over capacities exceed the range of floats: state them in other units"
        return Answer(claim=Claim.FAILED, message=why)
    return best.answer(limit)


def _followed(market: VolatileFisherMarket, best: BestPoint, deadline: Deadline, most_steps: int) -> Limit | None:
    """Follow the path; return the limit that ended it, None if the gap is closed."""
    scaled = ScaledLeontief(market)
    if not scaled.representable:
        return Limit.METHOD
    best.begin(scaled)
    path: LeontiefPath | None = None
    marks = [best.gap]
    while not best.closed():
        if deadline.passed:
            return Limit.TIME
        if best.steps >= most_steps:
            return Limit.ITERATIONS
        try:
            path = path or LeontiefPath(scaled)
            path.step()
        except np.linalg.LinAlgError:
            return Limit.METHOD
        if not best.offer(path):
            return Limit.METHOD
        marks.append(best.gap)
        if len(marks) > PATIENCE and not marks[-1] <= IMPROVEMENT * marks[-1 - PATIENCE]:
            return Limit.METHOD
    return None


class BestPoint:
    """The best rates and the best prices so far; they need not be of one step.

    Attributes
    ----------
    objective, bound : float
        Nash welfare of the rates, and the bound that the prices prove.
    """

    def __init__(self, market: VolatileFisherMarket, options: Options, on_progress: Progress) -> None:
        self.market, self.options, self._on_progress = market, options, on_progress
        self.objective, self.bound, self.steps = -math.inf, math.inf, 0
        self._allocation: Floats | None = None  # the plan of a warm start, until a better one is found
        self._prices: Floats | None = None
        self._scaled: ScaledLeontief | None = None
        self._rates: list[Floats] = []
        self._total = market.total_budget
        self._allowed = MARGIN * max(options.rel_gap, CLOSED_GAP, options.abs_gap / self._total)
        self._warm_start_note = () if options.warm_start is None else (self._begin_warm(options.warm_start),)

    @property
    def gap(self) -> float:
        """Bound less objective, over the sum of the budgets."""
        return (self.bound - self.objective) / self._total

    def closed(self) -> bool:
        """Whether the gap is within the requested one."""
        return self.gap <= self._allowed

    def begin(self, scaled: ScaledLeontief) -> None:
        """Take the plan that needs no step: every good divided by budgets, and equal prices."""
        self._scaled = scaled
        shares = [np.broadcast_to(scaled.budgets[block.buyers], block.yields.shape) for block in scaled.blocks]
        self._offer_rates(scaled, shares, 1.0 + HEADROOM)
        prices, least = np.ones((scaled.rounds, scaled.resources)), np.empty(scaled.count)
        for block in scaled.blocks:
            costs = block.costs(prices) / block.yields
            least[block.buyers] = np.where(block.yields > 0, costs, np.inf).min(axis=0)
        self._offer_prices(scaled, prices, least)

    def offer(self, path: LeontiefPath) -> bool:
        """Take improvements at this point of the path, and report; False if the point is not finite."""
        self.steps += 1
        loads = np.zeros_like(path.prices)
        for block, rates in zip(path.scaled.blocks, path.rates, strict=True):
            loads += block.loads(rates)
        if not (np.isfinite(loads).all() and np.isfinite(path.prices).all()):
            return False
        self._offer_rates(path.scaled, path.rates, np.maximum(loads.max(axis=1), 1.0)[:, None] + HEADROOM)
        self._offer_prices(path.scaled, path.prices, path.marginal)
        if self.options.log:
            values = f"welfare {self.objective:.10g}  bound {self.bound:.10g}  gap {self.gap:.2e}"
            sys.stdout.write(f"step {self.steps:3d}  {values}\n")
        self._on_progress(self.objective, self.bound)
        return True

    def answer(self, limit: Limit | None) -> Answer:
        """Return the plan with its claim; the point's own arrays are released."""
        allocation = self._allocation
        if allocation is None:
            assert self._scaled is not None
            rates = self._scaled.rates_of(self._rates)
            self._scaled, self._rates = None, []  # a large market has no memory for both
            allocation = self.market.requirements * rates[:, None, :]
        limit = None if self.closed() else limit or Limit.METHOD
        plan = self.market.equilibrium(allocation, self._prices)
        return Answer.ended(limit, plan=plan, notes=(*self._warm_start_note, f"{self.steps} steps"))

    def _offer_rates(self, scaled: ScaledLeontief, rates: list[Floats], over: Floats | float) -> None:
        """Take scaled rates, each divided by its round's excess over capacity, if that is better."""
        levels = np.empty(scaled.count)
        for block, values in zip(scaled.blocks, rates, strict=True):
            levels[block.buyers] = np.einsum("tn,tn->n", block.yields / over, values)
        objective = self._total * (float(scaled.budgets @ np.log(levels)) + scaled.offset)
        if objective > self.objective:
            self.objective, self._allocation = objective, None
            self._rates = self._rates or [np.empty_like(block.yields) for block in scaled.blocks]
            for own, values in zip(self._rates, rates, strict=True):
                np.divide(values, over, out=own)

    def _offer_prices(self, scaled: ScaledLeontief, prices: Floats, costs: Floats) -> None:
        """Take scaled prices if they prove a better bound; `costs` is the least cost of a unit of utility by buyer."""
        logs = np.log(scaled.budgets) - np.log(costs) + math.log(prices.sum())
        bound = self._total * (float(scaled.budgets @ logs) + scaled.offset)
        if bound < self.bound:
            self.bound, self._prices = bound, scaled.prices_of(prices)

    def _begin_warm(self, plan: Any) -> str:
        """Take a warm start; return the note on its use."""
        objective, residuals = self.market.evaluate(plan)
        if not residuals.worst <= self.options.feasibility_tol:
            return f"warm start rejected: it violates the market by {residuals.worst:.3g}"
        if not math.isfinite(objective):
            return "warm start rejected: a buyer gets nothing"
        # Within the tolerance it may exceed the capacities, which our own plans never do.
        prices = np.asarray(plan.prices, dtype=np.float64)
        equilibrium_found = self.market.equilibrium(np.asarray(plan.allocation, dtype=np.float64), prices)
        self._allocation, self._prices = np.asarray(equilibrium_found.allocation), equilibrium_found.prices
        self.objective, self.bound = self.market.welfare(equilibrium_found.utilities), self.market.bound_at(prices)
        self._on_progress(self.objective, self.bound, equilibrium_found)
        return f"warm start accepted, welfare {objective:.12g}"
