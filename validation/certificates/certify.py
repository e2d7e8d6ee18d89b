"""Certificates: what makes an allocation and prices an equilibrium, checked without trusting who made them."""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np

from ...formulations.markets.market import Market
from ...solvers.result import CLOSED_GAP, Result
from .efficiency import maximal_nash_welfare, pareto_optimality
from .fairness import envy_freeness, finish_time_fairness_product, proportionality, sharing_incentive
from .finding import Certificate, Finding, Witness
from .market_state import Reading, index_of, most_telling
from .property import EISENBERG_GALE, Property, judged


@judged
def feasibility(at: Reading) -> Finding:
    """Nothing is negative, and of no good is more handed out than there is.

    The violation is a share of the good's capacity. Only rounding is tolerated: no gap excuses it.
    """
    market = at.market
    excess = (at.used - market.capacities) / market.capacities
    good = index_of(np.unravel_index(int(np.argmax(excess)), excess.shape))
    violation, witness = float(excess.max()), Witness(good=good, words="more than there is")
    if isinstance(at.given, np.ndarray):
        short = -at.given / market.capacities
        low = float(short.max())
        buyer, *where = (int(i) for i in np.unravel_index(int(np.argmax(short)), short.shape))
    else:
        short = -at.given.data / market.capacities[at.given.indices]
        low = float(short.max(initial=0.0))
        entry = int(np.argmax(short)) if len(short) else 0
        buyer = int(np.searchsorted(at.given.indptr, entry, side="right") - 1)
        where = at.given.indices[entry : entry + 1].tolist() or [0]
    if low > max(violation, 0.0):
        violation, witness = low, Witness(buyer=buyer, good=index_of(where), words="a negative amount")
    return at.finding("allocation within capacities", "Shockwave, Eq. 4", violation, at.rounding, witness, False)


@judged
def price_total(at: Reading) -> Finding:
    """No price is negative, and all goods together cost what all budgets hold: ``p.c = sum_i B_i``.

    The violation is a share of the sum of the budgets. Only rounding is tolerated: prices of any other unit can be
    scaled (``market.normal_prices``).
    """
    market = at.market
    worth = at.raw_prices * market.capacities / market.total_budget
    total, low = float(worth.sum()), float(worth.min())
    witness = Witness(words=f"goods cost {total:.6g} times all budgets")
    violation = max(abs(total - 1.0), -low)
    if -low > at.rounding:
        at_good = index_of(np.unravel_index(int(np.argmin(worth)), worth.shape))
        witness = Witness(good=at_good, words="a negative price")
    return at.finding("all goods cost all budgets", EISENBERG_GALE, violation, at.rounding, witness, True)


@judged
def budget_clearing(at: Reading) -> Finding:
    """Every buyer spends the whole budget, and no more.

    The violation is the difference as a share of the budget; the tolerance, each buyer's own, is how far the gap lets
    spending be from the budget (t in :mod:`.market_state`).
    """
    below, above = at.reach
    spent = at.market.spending_at(at.allocation, np.maximum(at.raw_prices, 0.0)) / at.market.budgets
    tolerance = np.where(spent < 1, below, above) + at.rounding
    violation = np.abs(spent - 1.0)
    buyer = most_telling(violation, tolerance)
    witness = Witness(buyer=buyer, words=f"spends {spent[buyer]:.6g} of the budget")
    source = "Shockwave, Appendix D"
    return at.finding("budgets spent", source, violation[buyer], tolerance[buyer], witness, True)


@judged
def optimal_spending(at: Reading) -> Finding:
    """Every buyer's money goes to utility at the least cost (maximal bang per buck).

    The violation is the share of spending that buys nothing which the rest would not have bought,
    ``1 - e_i U_i / s_i``; the tolerance is ``1 - exp(-g/q_i)``. A buyer who spends nothing wastes nothing.
    """
    wasted = np.where(at.paid > 0, 1.0 - at.worth / at.paid, 0.0)
    tolerance = -np.expm1(-at.gap / at.shares) + at.rounding
    buyer = most_telling(wasted, tolerance)
    witness = Witness(buyer=buyer, words=f"wastes {wasted[buyer]:.2g} of the money")
    source = EISENBERG_GALE
    return at.finding("money well spent", source, wasted[buyer], tolerance[buyer], witness, True)


@judged
def market_clearing(at: Reading) -> Finding:
    """Every good that has a price is sold out: ``p_k (c_k - sum_i x_ik) = 0``.

    The violation is the worth of what is unsold (or sold twice) as a share of the worth of all goods; the tolerance is
    ``1 - exp(-g)``. The witness is the good that adds most.
    """
    unsold = at.prices * np.abs(at.market.capacities - at.used) / at.market.total_budget
    good = index_of(np.unravel_index(int(np.argmax(unsold)), unsold.shape))
    left = float((1.0 - at.used / at.market.capacities)[good])
    witness = Witness(good=good, words=f"{100 * abs(left):.3g}% of it {'left' if left >= 0 else 'too much'}")
    tolerance = -float(np.expm1(-at.gap)) + at.rounding
    return at.finding("goods sold out", EISENBERG_GALE, float(unsold.sum()), tolerance, witness, True)


@judged
def duality_gap(at: Reading) -> Finding:
    """The prices prove the allocation optimal: ``(D - P)/sum B`` is within the gap.

    The geometric mean of utilities, weighted by budgets, is within ``exp(-gap)`` of the best. Held to the gap given,
    or by default to the one that `solve` closes. An allocation that beats the bound is not feasible: a violation too.
    """
    gap, witness = at.measured_gap, None
    if gap > 0:
        buyer = int(np.argmin(at.shares * np.log(at.worth)))
        witness = Witness(buyer=buyer, words=f"utility worth {at.worth[buyer]:.6g} of the budget")
    elif gap < -at.rounding:
        witness = Witness(words="better than any feasible allocation")
    return at.finding("prices prove it optimal", EISENBERG_GALE, abs(gap), at.required_gap, witness, True)


#: What an equilibrium has, in the order in which `certify` lists it.
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
    """Judge a plan by every property that an equilibrium has.

    Parameters
    ----------
    market : FisherMarket, VolatileFisherMarket or Result
        The result of a solve stands for its market, its plan and its gap.
    plan : Equilibrium, an allocation of shape (N, K) or (N, J, T), or Result
        From any solver or scheduler. A bare allocation is judged at the prices that it implies
        (``market.implied_prices``) or, where these do not prove it optimal, at those of a solve if they prove more; the
        findings that need prices say which.
    gap : float, optional
        The certified relative gap ``(D - P)/sum B`` that every tolerance is derived from. Pass what you want the plan
        to be held to: the `rel_gap` that it was solved to. (``result.gap`` can be less than the plan's prices prove, if
        the solver had better multipliers.) Of a Result the default is its gap if that is finite, but not below 1e-9,
        where a gap counts as closed. Otherwise it is the gap that the plan and its prices prove themselves, but no
        more than 1e-4, the gap that `solve` closes by default: a bad plan's own gap would excuse everything.

    Returns
    -------
    Certificate
        A tuple of findings that prints as a table; true if all hold.

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
    prove only what weak duality allows, and so excuse no wrong allocation.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.validation.certificates.certify import certify
    >>> market = eq.FisherMarket(utilities=[[2.0, 1.0], [1.0, 3.0]], budgets=[1.0, 1.0])
    >>> certify(eq.solve(market, rel_gap=1e-6)).holds
    True
    >>> print(certify(market, [[0.0, 1.0], [1.0, 0.0]]).failures[-1].witness)
    buyer 1: could have 200% more, and nobody less; 2 of 2 gain
    """
    traded: Any = market
    if isinstance(market, Result):
        traded, plan = market.problem, market
    if isinstance(plan, Result):
        gap = max(plan.gap, CLOSED_GAP) if gap is None and math.isfinite(plan.gap) else gap
        plan = plan.require_plan()
    at = Reading(traded, plan, gap=gap)
    return Certificate(judge(traded, at) for judge in PROPERTIES)
