"""CES and Cobb-Douglas markets on Clarabel: repeated solves until the gap closes, each repaired to an equilibrium."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.markets.equilibrium import Equilibrium
from ....formulations.markets.volatile import VolatileFisherMarket
from ...backend import Answer, Progress
from ...deadline import Deadline
from ...result import CLOSED_GAP, Limit
from .market_cones import MarketCones
from .run import SHARE, SOLVED, TOLERANCE, limit_of, solved, stopped

# Clarabel changes its way of scaling cones for good when a step is shorter than this. Keeping the first way takes
# more steps, and succeeds where the second stalls.
PATIENT = {"min_switch_step_length": 1e-3}
# Clarabel's own scaling of rows and columns helps in most cases, and misleads in some.
BARE = {"equilibrate_enable": False}
# Solves of one market until the gap is closed: settings, and whether to use units of the best plan so far.
ATTEMPTS: tuple[tuple[dict[str, Any], bool], ...] = (
    ({}, False), (PATIENT, False), ({}, True), (PATIENT, True), (BARE, False), (BARE, True),
)  # fmt: skip
# Rounds of proportional sharing after each solve, and the share of the split by budgets mixed in before them, so that
# rounding to 0 in Clarabel leaves every buyer with something.
SHARINGS, MIXED = 3, 1e-12


def solve_market(
    market: VolatileFisherMarket, deadline: Deadline, own: dict[str, Any], on_progress: Progress
) -> Answer:
    """Solve a CES or Cobb-Douglas market; the answer's plan holds the best allocation and the best prices found."""
    options = deadline.given
    wanted = max(options.abs_gap / market.total_budget, options.rel_gap, CLOSED_GAP)
    found = Found(market)
    limit, message = None, ""
    for settings, scaled in ATTEMPTS:
        cones = MarketCones.of(market, found.allocation, scaled=scaled)
        tolerance = TOLERANCE if found.allocation is None else min(TOLERANCE, SHARE * wanted * market.num_buyers)
        solution = solved(cones, tolerance, deadline, {**settings, **own})
        if solution is None:
            limit = Limit.TIME
            break
        status = str(solution.status)
        limit = limit_of(status, own) or (Limit.METHOD if status not in SOLVED else None)
        message = "" if status == "Solved" else f"Clarabel: {status}"
        found.take(*cones.read(solution))
        if found.gap < np.inf:
            on_progress(found.welfare, found.bound, found.plan)
        if found.gap <= wanted or stopped(status, own):
            break
    plan = None if found.allocation is None else found.plan
    return Answer.ended(None if found.gap <= wanted else limit or Limit.METHOD, plan=plan, message=message)


class Found:
    """The best allocation and the best prices so far, recomputed by our own arithmetic."""

    def __init__(self, market: VolatileFisherMarket) -> None:
        self.market = market
        self.allocation: Floats | None = None
        self.prices: Floats | None = None
        self.welfare, self.bound = -np.inf, np.inf

    @property
    def gap(self) -> float:
        """The gap that the plan proves, relative to the sum of the budgets."""
        return (self.bound - self.welfare) / self.market.total_budget

    @property
    def plan(self) -> Equilibrium:
        """The allocation and the prices as an equilibrium."""
        return self.market.equilibrium(self.allocation, self.prices)

    def take(self, allocation: Floats, prices: Floats) -> None:
        """Evaluate the point of a solve and its rounds of proportional sharing; the split replaces a point with nan."""
        market = self.market
        split = (market.budgets / market.total_budget)[:, None, None] * market.capacities
        split = np.where(market.arithmetic.has_demand, split, 0.0)
        if not (np.isfinite(allocation).all() and np.isfinite(prices).all()):
            allocation, prices = split, np.ones_like(prices)
        mixed = (1.0 - MIXED) * np.clip(allocation, 0.0, market.capacities) + MIXED * split
        sound = market.equilibrium(mixed, prices)
        self._weigh(np.asarray(sound.allocation), sound.prices)
        self._weigh(None, market.implied_prices(sound.allocation))
        allocation, prices = np.asarray(sound.allocation), sound.prices
        for _ in range(SHARINGS):
            money = spending(market, allocation, prices)
            prices = market.normal_prices(money.sum(axis=0) / market.capacities)
            with np.errstate(divide="ignore", invalid="ignore"):
                allocation = np.where(money > 0, money / prices, 0.0)
            sound = market.equilibrium(allocation, prices)
            allocation = np.asarray(sound.allocation)
            self._weigh(allocation, prices)

    def _weigh(self, allocation: Floats | None, prices: Floats) -> None:
        bound = self.market.bound_at(prices)
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        if allocation is None:
            return
        welfare = self.market.welfare(self.market.utilities_at(allocation))
        if welfare > self.welfare or self.allocation is None:
            self.welfare, self.allocation = welfare, allocation


def spending(market: VolatileFisherMarket, allocation: Floats, prices: Floats) -> Floats:
    """Return each budget over goods: over rounds by their yields, over a round's resources by the family's rule.

    For substitutes (rho >= 0) the rule is the marginal utility of each good; for complements (rho < 0), where that
    oscillates, it is demand at the prices. The equilibrium is a fixed point of both, and attracts nearby points.
    """
    if market.rho is None or market.rho > 0:
        claims = market.arithmetic.contributions(allocation)
    else:
        rho, wants = market.rho, market.arithmetic.has_demand
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = (np.log(market.utilities) - rho * np.log(prices)) / (1.0 - rho)  # log of w^sigma p^(1 - sigma)
        terms = np.where(wants, terms, -np.inf)
        most = terms.max(axis=1, keepdims=True)
        parts = np.where(wants, np.exp(terms - np.where(np.isfinite(most), most, 0.0)), 0.0)
        sums = parts.sum(axis=1, keepdims=True)
        claims = parts / np.where(sums > 0, sums, 1.0) * market.arithmetic.rates(allocation)[:, None, :]
    total = claims.sum(axis=(1, 2), keepdims=True)
    return np.asarray(market.budgets[:, None, None] * claims / np.where(total > 0, total, 1.0))
