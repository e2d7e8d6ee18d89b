"""Random small markets for the agreement of backends, and when two answers of one market agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...formulations.markets.market import Market
from ...solvers.result import CLOSED_GAP, Reason, Result
from ..certificates.certify import certify
from ..contract.market_draws import FAMILY_OF, STATIC, KnownMarket, planted_market, random_market
from ..exact.certificate import exact_certificate

# One market in four is planted around an equilibrium, half of these with budgets over twelve orders of magnitude.
PLANTED, ORDERS = 0.25, 12
# Kinds whose equilibria are rational.
EXACT = ("FisherMarket", "VolatileFisherMarket:linear")
#: Backends that start a program of their own for every step of a solve see one market in so many.
ONE_IN = {"pyomo:highs": 10, "pyomo:cbc": 20, "pyomo:glpk": 20, "pyomo:ipopt": 20}
PLANNED = (Reason.OPTIMAL, Reason.FEASIBLE)


def _drawn(kind: str) -> Callable[[np.random.Generator], KnownMarket]:
    def draw(rng: np.random.Generator) -> KnownMarket:
        if rng.random() < PLANTED:
            return planted_market(rng, kind, orders=int(rng.choice([0, ORDERS])))
        return KnownMarket(market=random_market(rng, kind), optimum=math.nan)

    return draw


#: What is drawn, by the name of its kind.
MARKET_KINDS: dict[str, Callable[[np.random.Generator], KnownMarket]] = {
    "fisher": _drawn(STATIC),
    **{f"volatile-{family}": _drawn(kind) for kind, family in FAMILY_OF.items()},
}


def takes_part(name: str, which: int) -> bool:
    """Whether a backend is given the market of this number."""
    return which % ONE_IN.get(name, 1) == 0


def market_trouble(result: Result[Any], market: Market, best: float, rel_gap: float, tolerance: float) -> str:
    """Return what is wrong with a result, given the best welfare that is known; empty if nothing is.

    A plan keeps the capacities within the tolerance, and its welfare is within the gap asked for of the best, or within
    its own if that is said to be open: two objectives differ by no more than the sum of their gaps. No bound is below
    the best welfare. What exceeding the capacities can gain is its share of the sum of the budgets, which is what all
    goods cost. The plan holds every certificate of an equilibrium within that gap.
    """
    if result.objective is None or result.residuals is None or result.termination.reason not in PLANNED:
        return f"{result.termination}, optimum {best:.12g}"
    unit = market.total_budget
    allowed = CLOSED_GAP * unit
    gap = max(rel_gap if result.termination.reason is Reason.OPTIMAL else result.gap, CLOSED_GAP)
    if not math.isfinite(gap):
        return f"{result.termination}, optimum {best:.12g}"
    if best - result.objective > gap * unit + allowed:
        return f"objective {result.objective:.12g} is worse than {best:.12g}"
    if result.objective - best > allowed + result.residuals.worst * unit:
        return f"objective {result.objective:.12g} is better than the optimum {best:.12g}"
    if best - result.bound > allowed:
        return f"bound {result.bound:.12g} is on the wrong side of {best:.12g}"
    if result.residuals.worst > tolerance:
        return f"the plan violates the market by {result.residuals.worst:.3g}"
    failures = certify(market, result.plan, gap=gap).failures
    return str(failures[0]) if failures else ""


def exact_trouble(result: Result[Any], market: Market) -> str | None:
    """Return why no exact equilibrium was found beside the plan, empty if one was; None if the market is not linear."""
    if market.kind not in EXACT or result.plan is None:
        return None
    return exact_certificate(market, result.plan).reason
