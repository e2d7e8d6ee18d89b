"""Efficiency of an allocation: Pareto optimality and maximal Nash welfare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .check_result import CheckResult, Witness
from .domination import dominating
from .market_state import EISENBERG_GALE, SEARCH_S, MarketState, property_check


@property_check
def maximal_nash_welfare(state: MarketState) -> CheckResult:
    """No allocation has more Nash welfare over time, ``sum_i B_i log U_i``.

    The violation is by how much the best may be more, per unit of budget: the gap at the plan's prices or, where that
    is more than tolerated, at those of a solve made here. The tolerance is the gap. The witness holds the better
    allocation that the solve found.
    """
    violation, better, words = state.shortfall
    witness = Witness(words=words, allocation=better)
    return state.check_result(
        "most Nash welfare over time", EISENBERG_GALE, violation, state.required_gap, witness, False
    )


@property_check
def pareto_optimality(state: MarketState) -> CheckResult:
    """No allocation is better for some buyer and worse for none, over all rounds together.

    The violation is the most by which such an allocation may raise Nash welfare per unit of budget,
    ``sum_i q_i log(U_i(y)/U_i)``; any gap bounds it, and is the tolerance. It is proved to be small, in this order:

    1. by the gap at the plan's own prices;
    2. for linear and Leontief markets by a linear program: the most of ``sum_i q_i (U_i(y)/U_i - 1)``, which is no
       less, over all y that are worse for no buyer;
    3. for the others by prices that fit the allocation: at any prices that sum ``p.c = 1``,
       ``sum_i e_i (U_i(y) - U_i) <= 1 - sum_i e_i U_i``, and so the most of 2 is at most that over
       ``min_i e_i U_i/q_i``. They come from the search for an allocation that gives all buyers the same factor more.

    Where 2 or 3 finds an allocation y that dominates by more than the tolerance, it is the witness, and the violation
    is what it gains. Where neither is proved, the check fails, and its witness notes it.
    """
    source = "Shockwave, Section 4.2"
    statement, tolerance = "none can gain without another's loss", state.gap
    if state.trouble is not None or state.measured_gap <= tolerance:
        witness = Witness(words="the prices leave no more to gain")
        return state.check_result(statement, source, state.measured_gap, tolerance, witness, False)
    found = dominating(state, SEARCH_S)
    gain, who = _gain(state, found.allocation)
    if gain > tolerance:
        return state.check_result(statement, source, gain, tolerance, who, False)
    words = "a search found none" if found.bound <= tolerance else "not proved, and a search found none"
    return state.check_result(statement, source, max(found.bound, gain), tolerance, Witness(words=words), False)


def _gain(state: MarketState, allocation: Any) -> tuple[float, Witness | None]:
    """Return by how much a dominating allocation raises Nash welfare per unit of budget, and who gains most."""
    if allocation is None:
        return 0.0, None
    ratios = np.where(state.utilities > 0, state.market.utilities_at(allocation) / state.utilities, np.inf)
    ratios = np.where((state.utilities > 0) | (state.market.utilities_at(allocation) > 0), ratios, 1.0)
    gain = float(np.sum(state.shares * np.log(ratios)))
    gainers = np.flatnonzero(ratios > 1.0 + state.gap)
    first = int(np.argmax(ratios))
    more = "something instead of nothing" if math.isinf(ratios[first]) else f"{100 * (ratios[first] - 1.0):.3g}% more"
    words = f"could have {more}, and nobody less; {len(gainers)} of {len(ratios)} gain"
    return gain, Witness(buyer=first, words=words, allocation=allocation)
