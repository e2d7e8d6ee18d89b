"""Certificates of market equilibria: the properties of a plan, checked independently of the solver that made it."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ...formulations.markets.market import Market
from ...solvers.result import CLOSED_GAP, Result
from .check_result import Certificate, CheckResult, Witness
from .efficiency import maximal_nash_welfare, pareto_optimality
from .fairness import envy_freeness, finish_time_fairness_product, proportionality, sharing_incentive
from .market_state import (
    EISENBERG_GALE,
    MarketState,
    Property,
    index_of,
    largest_relative,
    place_of_most,
    property_check,
)


@property_check
def feasibility(state: MarketState) -> CheckResult:
    """No amount is negative, and no good is allocated beyond its capacity.

    The violation is a share of the good's capacity. Only rounding is tolerated: no gap excuses it.
    """
    market = state.market
    excess = (state.used - market.capacities) / market.capacities
    good = index_of(place_of_most(excess))
    violation, witness = float(excess.max()), Witness(good=good, words="more than there is")
    if isinstance(state.given, np.ndarray):
        short = -state.given / market.capacities
    else:
        short = -state.given.data / market.capacities[state.given.indices]
    low = float(short.max(initial=0.0))
    if low > max(violation, 0.0):
        violation, witness = low, state.witness_of(int(np.argmax(short)), "a negative amount")
    return state.check_result(
        "allocation within capacities", "Shockwave, Eq. 4", violation, state.rounding, witness, False
    )


@property_check
def price_total(state: MarketState) -> CheckResult:
    """No price is negative, and all goods together cost what all budgets hold: ``p.c = sum_i B_i``.

    The violation is a share of the sum of the budgets. Only rounding is tolerated: prices of any other unit can be
    scaled (``market.normal_prices``).
    """
    market = state.market
    worth = state.raw_prices * market.capacities / market.total_budget
    total, low = float(worth.sum()), float(worth.min())
    witness = Witness(words=f"goods cost {total:.6g} times all budgets")
    violation = max(abs(total - 1.0), -low)
    if -low > state.rounding:
        witness = Witness(good=index_of(place_of_most(-worth)), words="a negative price")
    return state.check_result("all goods cost all budgets", EISENBERG_GALE, violation, state.rounding, witness, True)


@property_check
def budget_clearing(state: MarketState) -> CheckResult:
    """Every buyer spends the whole budget, and no more.

    The violation is the difference as a share of the budget; the tolerance, each buyer's own, is how far the gap lets
    spending be from the budget (t in docs/guarantees.md).
    """
    below, above = state.reach
    spent = state.market.spending_at(state.allocation, np.maximum(state.raw_prices, 0.0)) / state.market.budgets
    tolerance = np.where(spent < 1, below, above) + state.rounding
    violation = np.abs(spent - 1.0)
    buyer = largest_relative(violation, tolerance)
    witness = Witness(buyer=buyer, words=f"spends {spent[buyer]:.6g} of the budget")
    source = "Shockwave, Appendix D"
    return state.check_result("budgets spent", source, violation[buyer], tolerance[buyer], witness, True)


@property_check
def optimal_spending(state: MarketState) -> CheckResult:
    """Every buyer's money goes to utility at the least cost (maximal bang per buck).

    The violation is the share of spending that buys nothing which the rest would not have bought,
    ``1 - e_i U_i / s_i``; the tolerance is ``1 - exp(-g/q_i)``. A buyer who spends nothing wastes nothing.
    """
    wasted = np.where(state.paid > 0, 1.0 - state.worth / state.paid, 0.0)
    tolerance = -np.expm1(-state.gap / state.shares) + state.rounding
    buyer = largest_relative(wasted, tolerance)
    witness = Witness(buyer=buyer, words=f"wastes {wasted[buyer]:.2g} of the money")
    source = EISENBERG_GALE
    return state.check_result("money well spent", source, wasted[buyer], tolerance[buyer], witness, True)


@property_check
def market_clearing(state: MarketState) -> CheckResult:
    """Every good that has a price is sold out: ``p_k (c_k - sum_i x_ik) = 0``.

    The violation is the worth of what is unsold (or sold twice) as a share of the worth of all goods; the tolerance is
    ``1 - exp(-g)``. The witness is the good that adds most.
    """
    unsold = state.prices * np.abs(state.market.capacities - state.used) / state.market.total_budget
    good = index_of(place_of_most(unsold))
    left = float((1.0 - state.used / state.market.capacities)[good])
    witness = Witness(good=good, words=f"{100 * abs(left):.3g}% of it {'left' if left >= 0 else 'too much'}")
    tolerance = -float(np.expm1(-state.gap)) + state.rounding
    return state.check_result("goods sold out", EISENBERG_GALE, float(unsold.sum()), tolerance, witness, True)


@property_check
def duality_gap(state: MarketState) -> CheckResult:
    """The prices prove the allocation optimal: ``(D - P)/sum B`` is within the gap.

    The geometric mean of utilities, weighted by budgets, is within ``exp(-gap)`` of the best. Held to the gap given,
    or by default to the one that `solve` closes. An allocation that beats the bound is not feasible: a violation too.
    """
    gap, witness = state.measured_gap, None
    if gap > 0:
        buyer = int(np.argmin(state.shares * np.log(state.worth)))
        witness = Witness(buyer=buyer, words=f"utility worth {state.worth[buyer]:.6g} of the budget")
    elif gap < -state.rounding:
        witness = Witness(words="better than any feasible allocation")
    return state.check_result("prices prove it optimal", EISENBERG_GALE, abs(gap), state.required_gap, witness, True)


#: The properties of an equilibrium, in the order in which `certify` lists them.
PROPERTIES: tuple[Property, ...] = (
    feasibility,
    price_total,
    budget_clearing,
    optimal_spending,
    market_clearing,
    duality_gap,
    maximal_nash_welfare,
    envy_freeness,
    proportionality,
    sharing_incentive,
    finish_time_fairness_product,
    pareto_optimality,
)


@overload
def certify(market: Result[Any], *, gap: float | None = None) -> Certificate: ...


@overload
def certify(market: Market, plan: Any, *, gap: float | None = None) -> Certificate: ...


def certify(market: Market | Result[Any], plan: Any = None, *, gap: float | None = None) -> Certificate:
    """Check every property of an equilibrium on a plan.

    Parameters
    ----------
    market : FisherMarket, VolatileFisherMarket or Result
        The result of a solve stands for its market, its plan and its gap.
    plan : Equilibrium, an allocation of shape (N, K) or (N, J, T), or Result
        From any solver or scheduler. A bare allocation is checked at the prices that it implies
        (``market.implied_prices``) or, where these do not prove it optimal, at those of a solve if they prove more; the
        statements of properties that need prices name them.
    gap : float, optional
        The certified relative gap ``(D - P)/sum B`` that every tolerance is derived from. Pass the `rel_gap` that the
        plan was solved to. (``result.gap`` can be less than the plan's prices prove, if the solver had better
        multipliers.) For a Result the default is its gap if that is finite, but not below 1e-9, where a gap counts as
        closed. Otherwise it is the gap that the plan and its prices prove themselves, but no more than 1e-4, the gap
        that `solve` closes by default: the gap of a bad plan would allow any violation.

    Returns
    -------
    Certificate
        A tuple of CheckResult that prints as a table; true if all hold.

    Raises
    ------
    InvalidInput
        If the plan is not an array of numbers of the market's shape, or the gap is negative.
    NoSolution
        If a Result has no plan.

    Notes
    -----
    No solver is trusted; utilities and costs come from the market's own arithmetic. A solver is called only where a
    property fails at the plan's prices, to find an allocation that is better, or prices that prove more; any prices
    prove only what weak duality allows, and so hide no wrong allocation.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.validation import certify
    >>> market = eq.FisherMarket(utilities=[[2.0, 1.0], [1.0, 3.0]], budgets=[1.0, 1.0])
    >>> certify(eq.solve(market, rel_gap=1e-6)).holds
    True
    >>> certify(market, [[0.0, 1.0], [1.0, 0.0]]).failures[-1].witness.buyer
    1
    """
    traded: Any = market
    if isinstance(market, Result):
        traded, plan = market.problem, market
    if isinstance(plan, Result):
        gap = max(plan.gap, CLOSED_GAP) if gap is None and math.isfinite(plan.gap) else gap
        plan = plan.require_plan()
    state = MarketState(traded, plan, gap=gap)
    return Certificate(check(traded, state) for check in PROPERTIES)
