"""Cases of the contract for backends that read a market directly: planted equilibria, closed forms, and edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...solvers.result import CLOSED_GAP, Limit, Reason, Result
from .check import REL_GAP, Check, Failure, Skip, noted, same_numbers
from .limits import solve_in_time
from .market_draws import KnownMarket, identical_buyers, large_market, one_good_buyers, planted_market, random_market

# What is asked for, from tight to loose.
GAPS = (1e-6, 1e-3, 0.1)
# What rounding may do to a welfare or a bound, in the sum of the budgets.
ROUNDING = 1e-10
# Seconds for a solve that is too slow to tell, and for one that has to end early.
MOST_S, SHORT_S = 5.0, 0.2


def optimal(check: Check, kind: str) -> None:
    """Planted equilibria: the gap asked for is certified, and the plan is as good as the planted one."""
    for rng in check.draws(5, 40):
        known = planted_market(rng, kind)
        _hold(_solve(check, known.market), known, REL_GAP)


def closed_forms(check: Check, kind: str) -> None:
    """Buyers who all want the same, with budgets over twelve orders of magnitude; buyers who want one good each."""
    for rng in check.draws(3, 20):
        for known in (identical_buyers(rng, kind), one_good_buyers(rng, kind)):
            _hold(_solve(check, known.market), known, REL_GAP)


def gaps(check: Check, kind: str) -> None:
    """A gap asked for is closed, relative or absolute, tight or loose; and OPTIMAL is not said of a wider one."""
    for rng in check.draws(2, 10):
        known = planted_market(rng, kind)
        for rel_gap in GAPS:
            _hold(_solve(check, known.market, rel_gap=rel_gap), known, rel_gap)
        absolute = 1e-4 * known.market.total_budget
        _hold(_solve(check, known.market, rel_gap=0.0, abs_gap=absolute), known, 1e-4)


def bounds(check: Check, kind: str) -> None:
    """Whatever the gap, no bound is below the planted optimum, or below what another plan reaches."""
    for rng in check.draws(3, 20):
        known, other = planted_market(rng, kind), random_market(rng, kind)
        for rel_gap in (0.5, *GAPS):
            _bound_holds(_solve(check, known.market, rel_gap=rel_gap), known.market, known.optimum)
            reached = max(_welfare(other, plan) for plan in _plans(other, rng))
            _bound_holds(_solve(check, other, rel_gap=rel_gap), other, reached)


def edges(check: Check, kind: str) -> None:
    """Markets of small whole numbers with everything that is easily forgotten: sound plans, closed gaps.

    Zeros and ties, unwanted goods and rounds, one round, one buyer, budgets over orders of magnitude. The plan
    of a sparse market is sparse; an unwanted good costs nothing.
    """
    for rng in check.draws(10, 60):
        market = random_market(rng, kind)
        result = _solve(check, market)
        _certified(result, market, REL_GAP)
        plan = result.require_plan()
        if isinstance(market, FisherMarket) and market.is_sparse is isinstance(plan.allocation, np.ndarray):
            raise Failure(f"the allocation of {market!r} is a {type(plan.allocation).__name__}")
        if (plan.prices[~market.in_demand] != 0).any():
            raise Failure(f"prices {plan.prices.tolist()} of {market!r}, where nobody wants some goods")


def wide_budgets(check: Check, kind: str) -> None:
    """Planted equilibria with budgets over twelve orders of magnitude."""
    for rng in check.draws(3, 20):
        known = planted_market(rng, kind, orders=12)
        _hold(_solve(check, known.market), known, REL_GAP)


def no_time_at_all(check: Check, kind: str) -> None:
    """time_limit=0: no plan, or a sound one with a true bound."""
    for rng in check.draws(3, 10):
        known = planted_market(rng, kind)
        result = check.solve(known.market, time_limit=0.0)
        termination = result.termination
        if result.plan is None:
            if (termination.reason, termination.limit) != (Reason.NO_SOLUTION_FOUND, Limit.TIME):
                raise Failure(f"{termination} at time_limit=0, of a market that has an equilibrium")
        elif termination.reason is not Reason.OPTIMAL and termination.limit is not Limit.TIME:
            raise Failure(f"{termination} at time_limit=0: the limit is TIME")
        _sides_hold(result, known.market, known.optimum)


def time_limit(check: Check, kind: str) -> None:
    """A market too large for the limit: it ends soon after it, and says so, with a true bound if it has a plan."""
    market = large_market(check.rng(), kind)
    small = random_market(check.rng(), kind)
    for seconds in (0.0, SHORT_S):
        result = solve_in_time(check, market, small, seconds)
        if result.termination.reason not in (Reason.OPTIMAL, Reason.FEASIBLE, Reason.NO_SOLUTION_FOUND):
            raise Failure(f"{result.termination} of a market that has an equilibrium")
        _bound_holds(result, market, max(_welfare(market, plan) for plan in _plans(market, check.rng())))


def warm_start(check: Check, kind: str) -> None:
    """From the best plan, from the split by budgets, from a plan beyond capacity: as good, and a warm start note."""
    check.needs_warm_start()
    for rng in check.draws(2, 10):
        known = planted_market(rng, kind)
        market, best = known.market, _solve(check, known.market).require_plan()
        split = market.equilibrium(next(_plans(market, rng)))
        beyond = deepcopy(split)
        object.__setattr__(beyond, "allocation", 3.0 * split.allocation)
        for start in (best, split, beyond):
            result = _solve(check, market, warm_start=start)
            _hold(result, known, REL_GAP)
            noted(result)


def same_seed(check: Check, kind: str) -> None:
    """The same call gives the same allocation, prices, objective and bound, bit by bit."""
    for rng in check.draws(3, 10):
        market = random_market(rng, kind)
        for given in check.seeds():
            first, second = (_solve(check, market, **given) for _ in range(2))
            one, two = first.require_plan(), second.require_plan()
            for name in ("allocation", "prices"):
                if _bytes(getattr(one, name)) != _bytes(getattr(two, name)):
                    raise Failure(f"the {name} of two plans of one call differ, with {given or 'the default seed'}")
            same_numbers(first, second)


def progress(check: Check, kind: str) -> None:
    """What is reported on the way: bounds above the optimum, plans within capacity and worth what is said."""
    known = planted_market(check.rng(), kind)
    market, best, unit = known.market, known.optimum, known.market.total_budget
    reports = check.reports(market, time_limit=min(MOST_S, check.time_limit))[1]
    if not reports:
        raise Skip("it reports nothing on the way of such markets")
    for report in reports:
        if report.bound < best - ROUNDING * unit:
            raise Failure(f"it reports a bound of {report.bound:.12g}; the optimum is {best:.12g}")
        if report.objective is not None and report.objective > best + (ROUNDING + REL_GAP) * unit:
            raise Failure(f"it reports a plan worth {report.objective:.12g}, better than the optimum {best:.12g}")
        if report.incumbent is None:
            continue
        welfare, residuals = market.evaluate(report.incumbent)
        if residuals.worst > REL_GAP:
            raise Failure(f"it reports a plan that violates the market by {residuals.worst:.3g}")
        if report.objective is not None and abs(welfare - report.objective) > REL_GAP * unit:
            raise Failure(f"it says {report.objective:.12g} of a plan worth {welfare:.12g}")
    said = [report.objective for report in reports if report.objective is not None]
    if any(later - earlier < -REL_GAP * unit for earlier, later in pairwise(said)):
        raise Failure(f"its plans get worse on the way: {said}")


def _solve(check: Check, market: Market, **options: Any) -> Result[Any]:
    return check.solve(market, **{"time_limit": min(MOST_S, check.time_limit), **options})


def _hold(result: Result[Any], known: KnownMarket, gap: float) -> None:
    """Hold a result to the known optimum: certified to the gap, no better than it, its bound no lower."""
    market = known.market
    _sides_hold(result, market, known.optimum)
    _certified(result, market, gap)
    assert result.objective is not None
    if result.objective < known.optimum - (gap + ROUNDING) * market.total_budget:
        raise Failure(f"objective {result.objective:.12g}; the equilibrium of {market!r} has {known.optimum:.12g}")


def _certified(result: Result[Any], market: Market, gap: float) -> None:
    """Hold a result to a plan within the market and a gap that its own prices close."""
    termination = result.termination
    if result.objective is None or result.residuals is None:
        raise Failure(f"{termination} of {market!r}, which has an equilibrium")
    if termination.reason is Reason.OPTIMAL and result.gap <= max(gap, CLOSED_GAP) * (1 + 1e-9):
        return
    said = f"{termination} instead of OPTIMAL (gap {result.gap:.2g}, asked {gap:g}) of {market!r}"
    if termination.limit is Limit.TIME and math.isfinite(result.gap):
        raise Skip(f"too slow to tell: {said}")
    raise Failure(said)


def _sides_hold(result: Result[Any], market: Market, optimum: float) -> None:
    _bound_holds(result, market, optimum)
    if result.objective is None or result.residuals is None:
        return
    # What a violation within the tolerance can gain: the money that the capacities are worth is all the budgets.
    allowed = (ROUNDING + 2 * max(0.0, result.residuals.worst)) * market.total_budget
    if result.objective > optimum + allowed:
        raise Failure(f"objective {result.objective:.12g} is better than the optimum {optimum:.12g} of {market!r}")


def _bound_holds(result: Result[Any], market: Market, reached: float) -> None:
    if result.bound < reached - ROUNDING * market.total_budget:
        raise Failure(f"bound {result.bound:.12g} is below {reached:.12g}, which a plan of {market!r} reaches")


def _plans(market: Market, rng: np.random.Generator) -> Iterator[Any]:
    """Yield allocations that are no equilibria: the split by budgets, the even one, and random ones."""
    count, goods = market.num_buyers, market.capacities.shape
    shares = [market.budgets / market.total_budget, np.full(count, 1.0 / count)]
    parts = [share.reshape(-1, *([1] * len(goods))) for share in shares]
    parts += [np.moveaxis(rng.dirichlet(np.ones(count), size=goods), -1, 0) for _ in range(2)]
    sparse = isinstance(market, FisherMarket) and market.is_sparse
    for part in parts:
        yield csr_array(part * market.capacities) if sparse else part * market.capacities


def _welfare(market: Market, allocation: Any) -> float:
    return market.welfare(market.utilities_at(allocation))


def _bytes(values: Any) -> bytes:
    return bytes(np.asarray(values if isinstance(values, np.ndarray) else values.toarray()).tobytes())
