"""Partial allocation mechanism of Themis's auction, truthful up to the gap of its solves."""

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
    """Allocation of the mechanism, with the proved bounds on its utilities.

    Attributes
    ----------
    allocation : ndarray of float, shape (N, K)
        Allocation ``f_i x*_i``, in the unit of the capacities.
    kept, utilities : ndarray of float, shape (N,)
        Share ``f_i`` of the Nash optimum that each buyer keeps, in (0, 1]; utilities of the allocation.
    least_utilities, most_utilities : ndarray of float, shape (N,)
        Lower and upper bounds on the mechanism's exact utilities, proved from the gaps of the solves.
    leftover : ndarray of float, shape (K,)
        Unallocated goods, which truthfulness costs.
    nash : Equilibrium
        Nash optimum ``x*``.
    slack : ndarray of float, shape (N,)
        Bound on the gain from misreporting: a report of other utilities raises buyer i's utility by a factor of at most
        ``exp(slack_i)``. It is the sum of the gaps of the relevant solves over the budget (see `partial_allocation`).
    gap, solves : float and int
        Largest gap of all solves, as `Result.gap` defines it; number of markets solved: one, and one for each distinct
        buyer.
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
    """Return the least share of the Nash optimum that each buyer can keep, shape (N,) as the budgets.

    It is ``(1 + B_i/B_-i) ** (-B_-i/B_i)``, where B_-i is the budget of all others; 1 for a single buyer. With equal
    budgets it is ``(1 - 1/N) ** (N - 1)``. It exceeds 1/e for any budgets, and is attained if all buyers value the same
    single good.

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
    market: FisherMarket, *, backend: str = "auto", rel_gap: float = 1e-8, time_limit: float | None = None
) -> PartialAllocation:
    """Run the auction: every buyer keeps the share f_i of its allocation in the Nash optimum.

    Parameters
    ----------
    market : FisherMarket
        Dense market with the reported utilities, budgets and capacities.
    backend : str
        Backend of `solve`.
    rel_gap : float
        Gap of every solve, in nats per unit of budget.
    time_limit : float, optional
        Time limit of each solve, in seconds.

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

    Write W for Nash welfare ``sum_j B_j log u_j`` and W^-i for the optimum of the others without i. Then i ends with
    ``log u_i(f_i x_i) = (W(x) - W^-i)/B_i`` at *true* utilities: its report affects only x. The true report, with
    which the mechanism maximises W(x), is therefore optimal. With solves of welfare P and bound D, the same equation
    bounds the utilities: ``(P - D^-i)/B_i`` to ``(D - P^-i)/B_i``; and since another report may lead to another
    x^-i, within `rel_gap` of the optimum if its solve ends as optimal, no report gains more than a factor
    ``exp((D - P + D^-i - P^-i + rel_gap B_-i)/B_i)``.

    Buyers with the same utilities and budget have the same x^-i, so one solve serves all of them. Each solve starts
    from x* with i's goods distributed in proportion.
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
    # The welfare of the solver's x^-i may be below that of the others in x*; at the optimum it is not, and f_i <= 1.
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
    """Solve the market without one buyer, from the plan with the buyer's goods distributed in proportion."""
    stay = np.arange(market.num_buyers) != buyer
    rest = FisherMarket(
        utilities=np.asarray(market.utilities)[stay], budgets=market.budgets[stay], capacities=market.capacities
    )
    held = np.asarray(plan.allocation)[stay]
    used = held.sum(axis=0)
    start = held * np.where(used > 0, market.capacities / np.where(used > 0, used, 1.0), 0.0)
    return _solved(rest, {**options, "warm_start": rest.equilibrium(start, plan.prices)})
