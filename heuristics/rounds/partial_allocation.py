"""Themis's auction: the partial allocation mechanism, which no buyer can gain from lying to by more than the gap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput, NoSolution
from ...formulations.markets.equilibrium import Equilibrium
from ...formulations.markets.fisher import FisherMarket
from ...solvers.solve import solve


@dataclass(frozen=True, kw_only=True, eq=False)
class PartialAllocation:
    """What each buyer keeps of the Nash optimum, and what is proven of it.

    Attributes
    ----------
    allocation : ndarray of float, shape (N, K)
        ``f_i x*_i``, in the unit of the capacities.
    kept : ndarray of float, shape (N,)
        ``f_i``, in (0, 1].
    utilities : ndarray of float, shape (N,)
        Of the allocation.
    least_utilities, most_utilities : ndarray of float, shape (N,)
        The mechanism's exact utilities lie between these: proven from the gaps of the solves, without trusting them.
    leftover : ndarray of float, shape (K,)
        What nobody gets: the price of truthfulness.
    nash : Equilibrium
        The Nash optimum ``x*``.
    slack : ndarray of float, shape (N,)
        Whatever buyer i says of its utilities, its utility grows by a factor of at most ``exp(slack_i)``: the gaps of
        the solves that its part depends on, over its budget (see the notes of `partial_allocation`).
    gap : float
        The largest gap of all solves, as `Result.gap` defines it.
    solves : int
        Markets solved: one, and one more for each distinct buyer.
    """

    allocation: Floats
    kept: Floats
    utilities: Floats
    least_utilities: Floats
    most_utilities: Floats
    leftover: Floats
    nash: Equilibrium
    slack: Floats
    gap: float
    solves: int


def least_kept(budgets: Floats) -> Floats:
    """Return the least share of the Nash optimum that each buyer can keep, shape (N,).

    Parameters
    ----------
    budgets : ndarray of float, shape (N,)

    Returns
    -------
    ndarray of float, shape (N,)
        ``(1 + B_i/B_-i) ** (-B_-i/B_i)``, where B_-i is what all others hold; 1 for a single buyer. At equal budgets
        ``(1 - 1/N) ** (N - 1)``. It is more than 1/e for any budgets, and met where all want the same single good.

    Notes
    -----
    At the optimum ``sum_j B_j u_j(x)/u_j(x*) <= B`` for every x within the capacities; let x be x^-i, which gives i
    nothing. So the mean of ``u_j(x^-i)/u_j(x*)`` over the others, weighted by budgets, is at most B/B_-i, and so is
    their geometric mean; its power B_-i/B_i is 1/f_i. With y = B_-i/B_i, ``(1 + 1/y) ** y < e``.
    """
    budgets = np.asarray(budgets, dtype=np.float64)
    others = budgets.sum() - budgets
    if len(budgets) == 1:
        return np.ones(1)
    return np.asarray(np.exp(-others / budgets * np.log1p(budgets / others)))


def partial_allocation(
    market: FisherMarket,
    *,
    backend: str = "auto",
    rel_gap: float = 1e-8,
    time_limit: float | None = None,
) -> PartialAllocation:
    """Run the auction: every buyer keeps the share f_i of its part of the Nash optimum.

    Parameters
    ----------
    market : FisherMarket
        Utilities as reported, budgets, capacities. Dense.
    backend : str
        For `solve`.
    rel_gap : float
        Of every solve, in nats per unit of budget.
    time_limit : float, optional
        Seconds for each solve.

    Returns
    -------
    PartialAllocation

    Raises
    ------
    InvalidInput
        If the market is not a dense FisherMarket.
    NoSolution
        If a solve ends without a plan.

    Notes
    -----
    ``f_i = (prod_{j != i} u_j(x*)^B_j / u_j(x^-i)^B_j) ** (1/B_i)``, with x* the Nash optimum and x^-i the optimum
    without i (K. Mahajan et al., "Themis", NSDI 2020; R. Cole, V. Gkatzelis, G. Goel, "Mechanism design for fair
    division", EC 2013).

    Write W for Nash welfare ``sum_j B_j log u_j`` and W^-i for the best the others could have alone. Then i ends with
    ``log u_i(f_i x_i) = (W(x) - W^-i)/B_i`` at *true* utilities, whatever it reports: its report can only choose x.
    So the truth, which makes the mechanism maximise W(x) itself, is best. With solves of welfare P and bound D the same
    line certifies the utilities, ``(P - D^-i)/B_i`` to ``(D - P^-i)/B_i``; and since another report may lead to another
    x^-i, within `rel_gap` of the best if its solve ends as optimal, no report gains more than a factor
    ``exp((D - P + D^-i - P^-i + rel_gap B_-i)/B_i)``.

    Buyers with the same utilities and budget have the same x^-i, so one solve serves them all. Each starts from x* with
    i's part shared out in proportion.
    """
    if not isinstance(market, FisherMarket) or market.is_sparse:
        raise InvalidInput("market", market, "must be a FisherMarket with a dense table of utilities")
    options: dict[str, Any] = {"backend": backend, "rel_gap": rel_gap, "time_limit": time_limit}
    utilities = np.asarray(market.utilities)
    whole = _solved(market, options)
    plan, budgets = whole.require_plan(), market.budgets
    others = market.total_budget - budgets
    welfares = budgets * np.log(plan.utilities)
    gap, table = whole.gap, np.column_stack([utilities, budgets])
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    others_welfare, others_bound = np.zeros(len(first)), np.zeros(len(first))
    if market.num_buyers > 1:
        for index, buyer in enumerate(first):
            rest = _without(market, plan, int(buyer), options)
            others_welfare[index], others_bound[index] = rest.objective, rest.bound
            gap = max(gap, rest.gap)
    group = group.reshape(-1)
    low, high = others_welfare[group], others_bound[group]
    # The solver's x^-i may be worth less than what x* gives the others; the optimum is not, and f_i is at most 1.
    kept = np.exp(np.minimum(0.0, math.fsum(welfares) - welfares - low) / budgets)
    allocation = kept[:, None] * np.asarray(plan.allocation)
    return PartialAllocation(
        allocation=allocation,
        kept=kept,
        utilities=kept * plan.utilities,
        least_utilities=np.exp((whole.objective - high) / budgets),
        most_utilities=np.exp((whole.bound - low) / budgets),
        leftover=np.maximum(0.0, market.capacities - allocation.sum(axis=0)),
        nash=plan,
        slack=(max(0.0, whole.bound - whole.objective) + np.maximum(0.0, high - low) + rel_gap * others) / budgets,
        gap=gap,
        solves=1 + (len(first) if market.num_buyers > 1 else 0),
    )


def _solved(market: FisherMarket, options: dict[str, Any]) -> Any:
    result = solve(market, **options)
    if result.plan is None:
        raise NoSolution("the market of the auction was not solved", result)
    return result


def _without(market: FisherMarket, plan: Equilibrium, buyer: int, options: dict[str, Any]) -> Any:
    """Solve the market without one buyer, from the plan with the buyer's goods shared out in proportion."""
    stay = np.arange(market.num_buyers) != buyer
    rest = FisherMarket(
        utilities=np.asarray(market.utilities)[stay], budgets=market.budgets[stay], capacities=market.capacities
    )
    held = np.asarray(plan.allocation)[stay]
    used = held.sum(axis=0)
    start = held * np.where(used > 0, market.capacities / np.where(used > 0, used, 1.0), 0.0)
    return _solved(rest, {**options, "warm_start": rest.equilibrium(start, plan.prices)})
