"""Rough prices of a linear market by soft demand, sharpened until it meets supply."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ....formulations.arrays import Floats, Indices
from .pairs import Edges
from .pricing import NormalizedMarket

# Buyers spend by utility per money to the power of 2**sharpness, which rises by 1 from the first to the last.
FIRST_SHARPNESS, LAST_SHARPNESS = 1, 14
# Entries of the sample of buyers while all their goods matter, and the least number of buyers per good in it.
SAMPLE_ENTRIES = 1_000_000
SAMPLE_BUYERS = 4
# A pair matters if the buyer spends more than this on the good, relative to the best. When less than LIST_SHARE of all
# pairs matter, and LIST_PAIRS for each buyer and each good, only they are evaluated; when less than KEPT_SHARE of these
# matter, only those.
MATTERS, LIST_SHARE, LIST_PAIRS, KEPT_SHARE = 1e-5, 0.2, 30, 0.6
# From this sharpness on, if this share of pairs still matters, prices move twice before it rises.
MOVED_TWICE = 6
# Largest move of a price, in logarithms and relative to the sharpness of demand.
FARTHEST = 2.0
# Least demand for a good, as a share of all budgets: its price does not fall to 0.
LEAST_DEMAND = 1e-9
TINY = np.finfo(np.float64).tiny
# Factor on the slope of demand of listed pairs, against overshooting where buyers are few.
WARY = 1.4
# Sharpness rises when a move leaves more of the gap than SLOW or, within NEARLY times the requested gap, more than the
# break-even: a Newton step leaves STEP_LEAVES of the gap, for the time of STEP_MOVES moves and of its dense system,
# FACTOR_S for the cube of its size against MOVE_S for each listed pair.
SLOW, NEARLY = 0.6, 100.0
STEP_LEAVES, STEP_MOVES, FACTOR_S, MOVE_S = 0.3, 3.0, 8e-12, 2e-8


@dataclass(frozen=True)
class Rough:
    """Prices at which soft demand is near supply, and the allocation by that demand.

    Attributes
    ----------
    prices : ndarray of float, shape (K,)
        Prices of the whole capacity of each wanted good; they sum to 1.
    edges, shares : Edges, ndarray of float
        Pairs of buyer and good, and the buyer's share of the good.
    welfare : float
        Nash welfare of the shares, where budgets sum to 1.
    """

    prices: Floats
    edges: Edges
    shares: Floats
    welfare: float


def rough_prices(normalized: NormalizedMarket, enough: float) -> Rough:
    """Sharpen soft demand until its gap is small enough, or shrinks too slowly.

    In a dense market all pairs are evaluated while most matter; in a sparse one they are listed from the start.
    """
    prices, sharpness = normalized.first_prices(), FIRST_SHARPNESS
    if not normalized.market.is_sparse:
        buyers = normalized.sample(max(SAMPLE_ENTRIES // normalized.num_goods, SAMPLE_BUYERS * normalized.num_goods))
        few = min(LIST_SHARE, LIST_PAIRS * (normalized.num_buyers + normalized.num_goods) / normalized.num_pairs)
        matter, again = 1.0, False
        while matter > few and sharpness < LAST_SHARPNESS:
            demand, steepness, matter = _demand_of_all(normalized, prices, buyers, sharpness)
            prices = _moved(prices, demand, steepness, sharpness)
            again = not again and sharpness >= MOVED_TWICE and matter > LIST_SHARE
            sharpness += not again
    priced = normalized.priced(prices)
    edges = normalized.edges(*normalized.select(priced, 1.0 - MATTERS ** (0.5**sharpness)))
    return _sharpened(edges, normalized.budgets, priced.prices, sharpness, enough)


def _sharpened(edges: Edges, budgets: Floats, prices: Floats, sharpness: int, enough: float) -> Rough:
    """Continue with listed pairs alone."""
    found = Rough(prices, edges, np.zeros(len(edges)), -np.inf)
    bound = gap = last_gap = np.inf
    while True:
        ratios = edges.worth / prices[edges.good]
        most = edges.most(ratios)
        ratios /= most[edges.buyer]
        paid = float(prices @ edges.most_by_goods(ratios))  # prices lowered to the highest payment of any buyer
        for _ in range(sharpness):
            ratios *= ratios
        near = ratios > MATTERS
        ratios /= edges.by_buyers(ratios)[edges.buyer]
        spent = ratios * budgets[edges.buyer]
        demand = np.maximum(edges.by_goods(spent), TINY)
        shares = spent / demand[edges.good]
        welfare = float(budgets @ np.log(edges.by_buyers(edges.worth * shares)))
        proved = float(budgets @ np.log(budgets * most)) + math.log(paid)
        if welfare > found.welfare:
            found = Rough(found.prices, edges, shares, welfare)
        if proved < bound:
            bound, found = proved, replace(found, prices=prices)
        moves = STEP_MOVES + FACTOR_S * edges.num_small**3 / (MOVE_S * len(edges))
        worth_it = SLOW if gap > NEARLY * enough else STEP_LEAVES ** (1.0 / moves)
        slow = not proved - welfare < worth_it * gap
        gap = min(gap, proved - welfare)
        ended = slow and (gap > worth_it * last_gap or sharpness == LAST_SHARPNESS)
        if bound - found.welfare <= enough or ended:
            return found
        steepness = WARY * (1.0 - edges.by_goods(spent * ratios) / demand)
        prices = _moved(prices, demand, steepness, sharpness)
        if slow:
            gap, last_gap = np.inf, gap
            sharpness += 1
        near |= (edges.by_goods(near.astype(np.float64)) == 0)[edges.good]  # every good keeps a buyer
        if np.count_nonzero(near) < KEPT_SHARE * len(edges):
            edges = edges.only(near)


def _demand_of_all(
    normalized: NormalizedMarket, prices: Floats, buyers: Indices, sharpness: int
) -> tuple[Floats, Floats, float]:
    """Return soft demand for each good, its steepness, and the share of the last block's pairs that matters."""
    factors = normalized.factors(prices)
    demand, alone = np.zeros(normalized.market.num_goods), np.zeros(normalized.market.num_goods)
    workspace, matter = normalized.workspace(), 1.0
    for some in normalized.blocks(buyers):
        ratios = np.take(normalized.table, some, axis=0, out=workspace[: len(some)], mode="clip")
        ratios *= factors
        ratios /= ratios.max(axis=1)[:, None]
        for _ in range(sharpness):
            ratios *= ratios
        totals = ratios.sum(axis=1)
        rates = normalized.budgets[some] / totals
        demand += rates @ ratios
        matter = np.count_nonzero(ratios > MATTERS) / ratios.size
        ratios *= ratios
        alone += (rates / totals) @ ratios
    demand, alone = demand[normalized.goods], alone[normalized.goods]
    steepness = 1.0 - alone / np.maximum(demand, TINY)
    return demand / normalized.budgets[buyers].sum(), steepness, matter


def _moved(prices: Floats, demand: Floats, steepness: Floats, sharpness: int) -> Floats:
    """Return prices moved towards the balance of demand and supply, each by its own slope.

    A buyer who spends the share s of the budget on a good spends less on it as its price to the power of
    ``-2**sharpness (1 - s)``: `steepness` is 1 - s on the average of what is spent on the good.
    """
    sharp = 2.0**sharpness
    moves = np.log(np.maximum(demand, LEAST_DEMAND) / prices) / (1.0 + sharp * steepness)
    moved = prices * np.exp(np.clip(moves, -FARTHEST / sharp, FARTHEST / sharp))
    return np.asarray(moved / moved.sum())
