"""Fairness of an allocation: envy, proportional shares, sharing incentive, and corrected finish-time fairness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import VolatileFisherMarket
from .check_result import CheckResult, Witness
from .efficiency import maximal_nash_welfare, pareto_optimality
from .market_state import MarketState, place_of_most, property_check

__all__ = [
    "envy_freeness",
    "finish_time_fairness",
    "finish_time_fairness_product",
    "maximal_nash_welfare",
    "pareto_optimality",
    "proportionality",
    "sharing_incentive",
]

# Up to so many products, every pair of buyers is compared; beyond, only those that prices do not clear of envy.
COMPARED_PRODUCTS = 1 << 30
# Entries of the utilities of one another that are held at a time.
BLOCK_ENTRIES = 1 << 22


@property_check
def envy_freeness(state: MarketState) -> CheckResult:
    """No buyer would rather have another's goods, scaled to its own budget: ``U_i(x_i) >= (B_i/B_j) U_i(x_j)``.

    The violation is the share of what it would have that a buyer lacks, ``1 - B_j U_i(x_i) / (B_i U_i(x_j))``. As
    ``U_i(x_j) <= s_j/e_i``, at least ``r_i/t_j`` is there, which is no less than ``least_i/most_j``: the tolerance is
    what is missing from that to 1.

    In a market too large to compare all pairs, those with ``r_i/t_j >= least_i/most_j`` are cleared by that bound
    (proved, in O(N K)) and the others compared; the violation is then the largest of what was compared, or if nothing
    had to be the bound itself.
    """
    below, above = state.reach
    worth, paid = state.worth, state.paid
    floor, ceiling = 1.0 - below, 1.0 + above
    count = state.market.num_buyers
    everyone = np.arange(count)
    rows, columns = everyone, everyone
    source = "Shockwave, Section 4.2; Varian 1974"
    if state.trouble is not None:
        return state.check_result("no envy", source, np.inf, state.rounding, None, False)
    if float(count) * count * state.market.capacities.size > COMPARED_PRODUCTS:
        poor, rich = ~(worth >= floor * (1.0 - state.rounding)), ~(paid <= ceiling * (1.0 + state.rounding))
        # A pair may only be in doubt if the bound fails for its first buyer or for its second.
        if not poor.any() and not rich.any():
            least, most = int(np.argmin(worth)), int(np.argmax(paid))
            bound = max(0.0, 1.0 - float(worth[least] / paid[most])) + state.rounding
            tolerance = 1.0 - float(floor.min() / ceiling.max()) + 4.0 * state.rounding
            proof = Witness(words="the prices leave no pair more")
            return state.check_result("no envy", source, bound, tolerance, proof, False)
        rows = everyone if rich.any() else everyone[poor]
        columns = everyone if poor.any() else everyone[rich]
    worst, violation, tolerance = 0.0, 0.0, 1.0 - float(floor.max() / ceiling.min()) + state.rounding
    witness: Witness | None = None
    budgets, own = state.market.budgets, state.utilities
    for buyers, others, values in _utilities_of_others(state, rows, columns):
        fair = values * (budgets[buyers, None] / budgets[others])
        lacks = np.where(fair > 0, 1.0 - own[buyers, None] / fair, 0.0)
        allowed = 1.0 - floor[buyers, None] / ceiling[others] + state.rounding
        lacks[buyers[:, None] == others] = 0.0
        times = np.where(np.isnan(lacks), np.inf, lacks) / allowed
        i, j = place_of_most(times)
        if times[i, j] > worst:
            worst, violation, tolerance = times[i, j], lacks[i, j], allowed[i, j]
            words = f"has {_percent(violation)} less than the other's goods would give"
            witness = Witness(buyer=int(buyers[i]), other=int(others[j]), words=words)
    return state.check_result("no envy", source, violation, tolerance, witness, False)


@property_check
def proportionality(state: MarketState) -> CheckResult:
    """Every buyer has at least its budget's share of what all goods are worth to it: ``U_i >= (B_i/B) U_i(C)``.

    The violation is the share of that which is lacking. As ``U_i(C) <= B/e_i``, at least ``r_i >= least_i`` of it is
    there: the tolerance is ``1 - least_i``.
    """
    lacks, tolerance, buyer = _lacking(state, state.shares, 1.0)
    witness = Witness(buyer=buyer, words=f"has {_percent(lacks)} less than its share")
    source = "Steinhaus 1948; Shockwave, Section 4.2"
    return state.check_result("a proportional share for each", source, lacks, tolerance, witness, False)


@property_check
def sharing_incentive(state: MarketState) -> CheckResult:
    """No buyer with an average budget or more would be better off with 1/N of every good: ``U_i >= U_i(C/N)``.

    At equal budgets that is every buyer, and 1/N of everything costs exactly one budget: the finish-time fairness
    ``rho_i = U_i(C/N)/U_i`` is at most 1, part (b) of Corollary 4.0.1 put right. At other budgets nothing is promised
    to a buyer with less than the average; the weighted form, ``U_i >= (N B_i/B) U_i(C/N)``, is proportionality, as
    utilities are homogeneous.

    The violation is the share of U_i(C/N) that is lacking. At least ``r_i N B_i/B`` of it is there, and the tolerance
    is ``1 - least_i N B_i/B``, or 0 (and rounding) where that is negative.
    """
    count = state.market.num_buyers
    owed = np.where(state.shares * count >= 1.0 - state.rounding, 1.0 / count, 0.0)
    lacks, tolerance, buyer = _lacking(state, owed, state.shares * count)
    witness = Witness(buyer=buyer, words=f"has {_percent(lacks)} less than an equal split gives")
    equal = bool((owed > 0).all())
    who = "no buyer" if equal else "no buyer of an average budget or more"
    source = "Shockwave, Corollary 4.0.1 (b), put right"
    return state.check_result(f"{who} prefers an equal split", source, lacks, tolerance, witness, False)


@property_check
def finish_time_fairness_product(state: MarketState) -> CheckResult:
    """The product of finish-time fairness over buyers, ``prod_i rho_i^(B_i/B)``, is the least of all allocations.

    Here ``rho_i = U_i(C/N)/U_i`` is how many times the buyer's utility an equal split would give: part (a) of Corollary
    4.0.1, put right by the budgets in the exponents. As only the U_i depend on the allocation, it is Nash welfare that
    counts: the logarithm of the product is above its least by the shortfall in Nash welfare per unit of budget, which
    is the violation. The tolerance is the gap.

    These are shares of utility. As *finish times* over those under an equal split neither part holds; docs/errata.md
    has the counterexamples.
    """
    rho = _rho(state)
    product = float(np.exp(np.sum(state.shares * np.log(rho))))
    violation, _, _ = state.shortfall
    worst = int(np.argmax(np.where(np.isnan(rho), np.inf, rho)))
    witness = Witness(buyer=worst, words=f"has the largest rho, {rho[worst]:.4g}; the mean is {product:.4g}")
    source = "Shockwave, Corollary 4.0.1 (a) and Appendix E, put right"
    return state.check_result(
        "least product of finish-time fairness", source, violation, state.required_gap, witness, False
    )


def finish_time_fairness(market: Market, allocation: Any) -> Floats:
    """Return ``rho_i = U_i(C/N) / U_i``, shape (N,); infinite for a buyer without utility.

    Parameters
    ----------
    market : FisherMarket or VolatileFisherMarket
    allocation : Equilibrium, or array_like or sparse matrix of float, shape (N, K) or (N, J, T)
    """
    return _rho(MarketState(market, allocation))


def _rho(state: MarketState) -> Floats:
    with np.errstate(all="ignore"):
        return np.where(state.utilities > 0, state.whole / state.market.num_buyers / state.utilities, np.inf)


def _lacking(state: MarketState, owed: Floats, times: Floats | float) -> tuple[float, float, int]:
    """Return the worst lack of a share of U_i(C), its tolerance, and the buyer; `times` scales what r_i promises."""
    fair = state.whole * owed
    lacks = np.where(fair > 0, 1.0 - state.utilities / fair, 0.0)
    below, _ = state.reach
    tolerance = np.maximum(1.0 - (1.0 - below) * times, 0.0) + state.rounding
    lacks = np.where(np.isnan(lacks), np.inf, lacks)
    buyer = int(np.argmax(lacks / tolerance))
    return float(lacks[buyer]), float(tolerance[buyer]), buyer


def _utilities_of_others(
    state: MarketState, rows: NDArray[Any], columns: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], Floats]]:
    """Yield buyers, others, and U_i(x_j) of each pair, shape (buyers, others), in blocks of bounded memory."""
    market, allocation = state.market, state.allocation
    if isinstance(market, VolatileFisherMarket) and market.family == "linear":
        market, allocation = market.static, allocation.reshape(len(allocation), -1)
    if isinstance(market, FisherMarket):
        goods: Any = allocation[columns].T
        step = max(1, BLOCK_ENTRIES // len(columns))
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            values = market.utilities[block] @ goods
            yield block, columns, values if isinstance(values, np.ndarray) else values.toarray()
        return
    for other in columns:
        values = market.utilities_at(np.broadcast_to(allocation[other], allocation.shape))
        yield rows, np.array([other]), values[rows, None]


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
