"""Efficiency of an allocation: whether another is better for some and worse for none, or in Nash welfare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...formulations.errors import EquipoiseError
from .domination import dominating
from .finding import Finding, Witness
from .market_state import SEARCH_S, Reading
from .property import EISENBERG_GALE, judged


@judged
def maximal_nash_welfare(at: Reading) -> Finding:
    """No allocation has more Nash welfare over time, ``sum_i B_i log U_i``.

    The violation is by how much the best may be more, per unit of budget: the gap at the plan's prices or, where that
    is more than tolerated, at those of a solve made here. The tolerance is the gap. The witness holds the better
    allocation that the solve found.
    """
    violation, better, words = shortfall(at)
    witness = Witness(words=words, allocation=better)
    return at.finding("most Nash welfare over time", EISENBERG_GALE, violation, at.required_gap, witness, False)


@judged
def pareto_optimality(at: Reading) -> Finding:
    """No allocation is better for some buyer and worse for none, over all rounds together.

    The violation is the most by which such an allocation may raise Nash welfare per unit of budget,
    ``sum_i q_i log(U_i(y)/U_i)``; any gap bounds it, and is the tolerance. It is proved to be small, in this order:

    1. by the gap at the plan's own prices;
    2. for linear and Leontief markets by a linear program: the most of ``sum_i q_i (U_i(y)/U_i - 1)``, which is no
       less, over all y that are worse for nobody;
    3. for the others by prices that fit the allocation: at any prices that sum ``p.c = 1``,
       ``sum_i e_i (U_i(y) - U_i) <= 1 - sum_i e_i U_i``, and so the most of 2 is at most that over
       ``min_i e_i U_i/q_i``. They come from the search for an allocation that gives all buyers the same factor more.

    Where 2 or 3 finds an allocation y that dominates by more than the tolerance, it is the witness, and the violation
    is what it gains. Where neither is proved, the finding fails and says so.
    """
    source = "Shockwave, Section 4.2"
    statement, tolerance = "none can gain without another's loss", at.gap
    if at.trouble is not None or at.measured_gap <= tolerance:
        witness = Witness(words="the prices leave no more to gain")
        return at.finding(statement, source, at.measured_gap, tolerance, witness, False)
    found = dominating(at, SEARCH_S)
    gain, who = _gain(at, found.allocation)
    if gain > tolerance:
        return at.finding(statement, source, gain, tolerance, who, False)
    words = "a search found none" if found.bound <= tolerance else "not proved, and a search found none"
    return at.finding(statement, source, max(found.bound, gain), tolerance, Witness(words=words), False)


def shortfall(at: Reading) -> tuple[float, Any, str]:
    """Return how far Nash welfare may be from the best, per unit of budget, a better allocation if found, and words."""
    if at.shortfall is None:
        at.shortfall = _shortfall(at)
    return at.shortfall


def _shortfall(at: Reading) -> tuple[float, Any, str]:
    gap = at.measured_gap
    if at.trouble is not None:
        return math.inf, None, ""
    if gap <= at.required_gap:
        return max(0.0, gap), None, ""
    result = at.optimum
    if isinstance(result, EquipoiseError):
        return gap, None, f"no solver could look for a better one: {result}"
    welfare = at.market.welfare(at.utilities)
    proved = (result.bound - welfare) / at.market.total_budget
    if result.plan is None or result.objective is None:
        return min(gap, proved), None, "no better one found"
    gain = (result.objective - welfare) / at.market.total_budget
    if gain <= at.required_gap:
        return min(gap, proved), None, "no better one found"
    words = (
        f"another has {math.exp(gain):.6g} times the mean utility"
        if gain < 700
        else "another gives everybody something"
    )
    return min(gap, proved), result.plan.allocation, words


def _gain(at: Reading, allocation: Any) -> tuple[float, Witness | None]:
    """Return by how much a dominating allocation raises Nash welfare per unit of budget, and who gains most."""
    if allocation is None:
        return 0.0, None
    ratios = np.where(at.utilities > 0, at.market.utilities_at(allocation) / at.utilities, np.inf)
    ratios = np.where((at.utilities > 0) | (at.market.utilities_at(allocation) > 0), ratios, 1.0)
    gain = float(np.sum(at.shares * np.log(ratios)))
    gainers = np.flatnonzero(ratios > 1.0 + at.gap)
    first = int(np.argmax(ratios))
    more = "something instead of nothing" if math.isinf(ratios[first]) else f"{100 * (ratios[first] - 1.0):.3g}% more"
    words = f"could have {more}, and nobody less; {len(gainers)} of {len(ratios)} gain"
    return gain, Witness(buyer=first, words=words, allocation=allocation)
