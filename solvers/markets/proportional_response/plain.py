"""The plain proportional response of CES and Cobb-Douglas markets: bids follow the marginal utility of spending."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.markets.volatile import VolatileFisherMarket
from ...deadline import Deadline
from .price_path import PathOutcome, Report

# Rounds between two checks of the bound.
LOOK_ROUNDS = 10
# Factors of the response's length: it shrinks when welfare falls, and grows a little when it rises, up to the first.
DAMPED, RELEASED = 0.7, 1.05


def respond_rounds(
    market: VolatileFisherMarket,
    *,
    start: Floats | None,
    gap: float,
    deadline: Deadline,
    max_rounds: int,
    report: Report,
) -> PathOutcome:
    """Run rounds until the gap, the time or the rounds end.

    Every buyer bids ``b_ijt' = B_i x_ijt dU_i/dx_ijt / U_i``, which sums to the budget because U is homogeneous. With
    complements (rho < 0) this overshoots on scarce goods; so the new bid is ``b^(1-d) b'^d`` with d = 1/(1 - rho), and
    less where welfare falls.

    Parameters
    ----------
    market : VolatileFisherMarket
        A market of family "ces" or "cobb-douglas".
    start : ndarray of float, shape (N, J, T), or None
        Bids to start from; by default those of equal shares of all goods.
    gap, deadline, max_rounds, report
        As in :func:`follow_prices`.
    """
    arithmetic, budgets = market.arithmetic, market.budgets[:, None, None]
    rho = market.rho or 0.0
    most = damping = 1.0 / (1.0 - min(rho, 0.0))
    if start is None:
        even = np.broadcast_to(market.capacities / market.num_buyers, market.shape)
        start = _claimed(arithmetic.contributions(even), budgets)
    bids = np.where(arithmetic.has_demand, start, 0.0)
    bound, welfare, last, late = math.inf, -math.inf, -math.inf, False
    prices, shares = bids.sum(axis=0), bids
    for number in range(max_rounds + 1):
        money = bids.sum(axis=0)
        allocation = bids / np.where(money > 0, money, 1.0) * market.capacities
        claims = arithmetic.contributions(allocation)
        now = market.welfare(claims.sum(axis=(1, 2)))
        damping = min(most, damping * RELEASED) if now >= last else damping * DAMPED
        last = now
        if now > welfare or number == 0:
            welfare, shares = now, allocation
        late = deadline.passed
        if number % LOOK_ROUNDS == 0 or late or number == max_rounds:
            proved = market.bound_at(money / market.capacities)
            if proved < bound or number == 0:
                bound, prices = proved, money / market.capacities
            report(number, bound, welfare, partial(tuple, (shares, prices)))
            if bound - welfare <= gap * market.total_budget or late:
                break
        answer = _claimed(claims, budgets)
        if damping < 1.0:
            answer = _claimed(bids ** (1.0 - damping) * answer**damping, budgets)
        bids = answer
    return PathOutcome(
        allocation=shares, prices=prices, gap=(bound - welfare) / market.total_budget, steps=number, out_of_time=late
    )


def _claimed(claims: Floats, budgets: Floats) -> Floats:
    """Return the budgets split in proportion to claims."""
    total = claims.sum(axis=(1, 2), keepdims=True)
    return np.asarray(budgets * (claims / np.where(total > 0, total, 1.0)))
