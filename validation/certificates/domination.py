"""Search for a Pareto improvement of an allocation, or for a bound on the gain of any improvement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.errors import EquipoiseError
from ...formulations.markets.equilibrium import Equilibrium
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import VolatileFisherMarket
from ...formulations.program.builder import ProgramBuilder
from ...solvers.solve import solve
from .market_state import MarketState

# Columns of a linear program that HiGHS solves in a minute or so.
LARGEST_PROGRAM = 300_000
# The finest tolerance that HiGHS takes; the rows are relative.
FEASIBILITY_TOL = 1e-9
# The least utility that the search requires for each buyer, as a share of its utility of all goods.
LEAST_SHARE = 1e-9
SEARCH_STEPS = 1000
# Smaller gains, of those that a linear program finds, may be the solver's rounding.
LEAST_GAIN = 1e-8


@dataclass(frozen=True, kw_only=True)
class Improvement:
    """The result of the search for a dominating allocation; None if none was found.

    It is within the capacities, no buyer loses more than 1e-9 of its utility by it, and some gain more than these
    losses explain. No allocation that is worse for no buyer has more of ``sum_i q_i (U_i(y)/U_i - 1)`` than the bound.
    """

    allocation: Any
    bound: float


def dominating(state: MarketState, time_limit: float) -> Improvement:
    """Search for an allocation worse for no buyer and better for some, by a linear program or by prices."""
    market = state.market
    assert isinstance(market, FisherMarket | VolatileFisherMarket)
    family = market.family if isinstance(market, VolatileFisherMarket) else "linear"
    if family in ("linear", "leontief") and market.program_size() // 2 <= LARGEST_PROGRAM:
        try:
            return _by_program(state, time_limit)
        except EquipoiseError:  # numbers that no program can hold, or no solver
            return Improvement(allocation=None, bound=math.inf)
    if family == "leontief" or (isinstance(market, FisherMarket) and market.is_sparse):
        return Improvement(allocation=None, bound=math.inf)
    return _by_prices(state, time_limit)


def _by_program(state: MarketState, time_limit: float) -> Improvement:
    """Maximise ``sum_i q_i U_i(y)/U_i`` with ``U_i(y) >= U_i``; the market's own program has the rows of both."""
    market = state.market
    assert isinstance(market, FisherMarket | VolatileFisherMarket)
    source = market.program()
    logs, rows = source.log_matrix, source.matrix
    plan = Equilibrium(allocation=state.allocation, prices=state.prices, spending=state.paid, utilities=state.utilities)
    held = logs.times(market.encode(plan))
    unit = np.where(held > LEAST_SHARE, held, 1.0)  # of a buyer with nothing, a gain counts by the most it could have
    worth = logs.values / unit[logs.row_of_entry()]
    build = ProgramBuilder(sense="max")
    share = build.add_columns("share", (source.num_columns,), lower=source.lower, upper=source.upper)
    capacity = (rows.row_of_entry(), share[rows.columns], rows.values)
    build.add_rows("capacity", (source.num_rows,), terms=[capacity], lower=source.row_lower, upper=source.row_upper)
    no_loss = (logs.row_of_entry(), share[logs.columns], worth)
    build.add_rows("no_loss", held.shape, terms=[no_loss], lower=held / unit)
    gains = (share[logs.columns], worth * state.shares[logs.row_of_entry()])
    build.set_objective([gains], offset=-math.fsum(state.shares * held / unit))
    program, abs_gap = build.program(), state.gap / 10
    result = solve(
        program, "highs", feasibility_tol=FEASIBILITY_TOL, rel_gap=0.0, abs_gap=abs_gap, time_limit=time_limit
    )
    if result.plan is None or result.duals is None:
        return Improvement(allocation=None, bound=result.bound)
    better = market.decode(result.plan["share"])
    change = (logs.times(market.encode(better)) - held) / unit
    # The gain that losses within the solver's tolerance explain, by the duals.
    borrowed = np.abs(result.duals["no_loss"]) @ np.maximum(-change, 0.0)
    if state.shares @ change - borrowed < LEAST_GAIN:
        return Improvement(allocation=None, bound=result.bound)
    return Improvement(allocation=_if_no_loss(state, better.allocation), bound=result.bound)


def _by_prices(state: MarketState, time_limit: float) -> Improvement:
    """Look for an allocation that gives every buyer the same factor more, or prices that exclude much more.

    Weights a sum to 1, and prices are those at which buyers with budgets a share the goods by proportional response.
    Each step gives the weight of a buyer who has gained more than others to those who have gained less.
    """
    market, started = state.market, time.perf_counter()
    claims, damping = _claims(market)
    wanted = np.maximum(state.utilities, LEAST_SHARE * state.whole)
    weights, goods = state.shares.copy(), tuple(range(1, 1 + market.capacities.ndim))
    spread = (slice(None), *(None for _ in goods))
    bids = np.broadcast_to(market.capacities, state.allocation.shape) * market.in_demand
    allocation, bids = weights[spread] * bids, weights[spread] * bids / bids.sum(axis=goods, keepdims=True)
    best, least, bound = None, 1.0, math.inf
    for _ in range(SEARCH_STEPS):
        with np.errstate(all="ignore"):
            worth = claims(allocation)
            asked = worth / worth.sum(axis=goods, keepdims=True)
            bids = np.where(asked > 0, asked**damping * (bids / weights[spread]) ** (1.0 - damping), 0.0)
            bids *= (weights / bids.sum(axis=goods))[spread]
            prices = bids.sum(axis=0) / market.capacities
            allocation = np.where(prices > 0, bids / prices, 0.0)
            factors = market.utilities_at(allocation) / wanted
            bound = min(bound, _most_gain(state, prices))
            weights = weights / np.sqrt(factors)
            weights /= weights.sum()
        if not np.isfinite(weights).all():
            break
        if factors.min() > least:
            best, least = allocation, float(factors.min())
        if bound <= state.gap or time.perf_counter() - started > time_limit:
            break
        if best is not None and factors.max() - 1.0 <= 1.01 * (least - 1.0):
            break
    return Improvement(allocation=None if best is None else _if_no_loss(state, best), bound=bound)


def _claims(market: Market) -> tuple[Callable[[Floats], Floats], float]:
    """Return what each good adds to utility, and the share of a new bid that keeps the response from swinging."""
    if isinstance(market, FisherMarket):
        table: Any = market.utilities
        return lambda allocation: np.asarray(table * allocation), 1.0
    assert isinstance(market, VolatileFisherMarket)
    return market.arithmetic.contributions, 1.0 if market.rho is None else min(1.0, 1.0 / (1.0 - market.rho))


def _most_gain(state: MarketState, prices: Floats) -> float:
    """Return the bound on ``sum_i q_i (U_i(y)/U_i - 1)`` that prices prove for any y that is worse for no buyer."""
    prices = state.market.normal_prices(prices)
    kept = state.market.unit_costs(prices) / state.market.total_budget * state.utilities
    least = float((kept / state.shares).min())
    return max(0.0, 1.0 - math.fsum(kept)) / least if least > 0 else math.inf


def _if_no_loss(state: MarketState, allocation: Any) -> Any:
    """Return the allocation, made to fit the capacities, if no buyer loses by it; None otherwise."""
    fitting = state.market.equilibrium(allocation, state.prices)
    return fitting.allocation if (fitting.utilities >= state.utilities * (1.0 - FEASIBILITY_TOL)).all() else None
