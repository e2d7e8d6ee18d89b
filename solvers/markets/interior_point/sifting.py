"""Sifting: an interior-point method on the few pairs of buyer and good that may trade, checked against all others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from ....formulations.arrays import Floats
from ...deadline import Deadline
from ...incumbent import Incumbent
from ...result import Limit
from .newton import InteriorPoint
from .pairs import Edges
from .pricing import NormalizedMarket, Prices
from .rough_prices import rough_prices

# Pairs of the first selection for each buyer and each good: at the optimum a forest trades, one pair for each.
# The selection takes two where all others are clearly worse; otherwise as many as it needs to reach WIDE times as far
# from the best as the error of the prices.
FIRST_PAIRS = (2, 3, 4, 5)
CLEARLY, WIDE = 0.1, 3.0
# Rough prices and their allocation suffice if they close this share of the requested gap.
ENOUGH = 0.5
GROWTH = 1.3
# A market is not sifted if it has no more pairs than this, or no more for each buyer and each good than this.
FEW_PAIRS = 4_000
FEW_PER_SIDE = 8
# A good on which a buyer spends more than this share of the budget stays in the selection.
KEPT_SHARE = 1e-3
# Gap of the central path at which a selection starts, and its ratio to the gap of the prices if that is known.
FIRST_GAP = 0.03
GAP_RATIO = 10.0
GAP_GROWTH = 3.0
MOST_GAP = 0.1
# Gap of the selection from which prices are tried on all pairs, and the factor by which it shrinks before the next try.
FIRST_CHECK = 1e-2
CHECK_AGAIN = 1 / 30
# Number of steps that must reduce the gap by a tenth; otherwise the method ends.
PATIENCE = 8


class End(Enum):
    """The end of the work on one selection."""

    OVER = "the gap is closed, or a limit reached"
    LACKING = "pairs are missing"
    STUCK = "no step helps"


@dataclass(kw_only=True)
class Watch:
    """Stopping criteria and the progress callback.

    Attributes
    ----------
    tolerance : float
        The requested gap, where budgets sum to 1.
    report : callable
        Called at every step with the number of steps, welfare and bound (where budgets sum to 1), and the number of
        pairs in use.
    """

    tolerance: float
    deadline: Deadline
    most_steps: int
    report: Callable[[int, float, float, int], None]
    steps: int = field(default=0, init=False)

    def stops(self) -> Limit | None:
        """Return the limit that is reached; None if there is none."""
        if self.deadline.passed:
            return Limit.TIME
        return Limit.ITERATIONS if self.steps >= self.most_steps else None


class Sifting:
    """The search for the equilibrium.

    Attributes
    ----------
    best : Incumbent
        The best allocation, as pairs of buyer and good with their shares, its Nash welfare, and the least bound that
        prices proved, with those; budgets sum to 1.
    selections : list of int
        Number of pairs of each selection.
    """

    def __init__(self, normalized: NormalizedMarket, watch: Watch) -> None:
        self.normalized, self.watch = normalized, watch
        self.best: Incumbent[tuple[Edges, Floats], Floats] = Incumbent()
        self.selections: list[int] = []
        self._priced: Prices | None = None
        self._latest: Prices | None = None

    def start(self, welfare: float, prices: Floats) -> None:
        """Start from the welfare of a known allocation and from prices."""
        self.best.improve(welfare, None)
        self._try(prices)

    def run(self) -> Limit | None:
        """Search until the gap is closed; return the limit that stopped the search, if there is one."""
        normalized = self.normalized
        sides = normalized.num_buyers + normalized.num_goods
        per_side = FIRST_PAIRS[-1]
        if self.watch.stops():
            return self.watch.stops()
        whole = normalized.num_pairs <= max(FEW_PAIRS, FEW_PER_SIDE * sides)
        if self._priced is None and not whole:
            rough = rough_prices(normalized, ENOUGH * self.watch.tolerance)
            if np.isfinite(rough.welfare):
                self.best.improve(rough.welfare, (rough.edges, rough.shares))
            self._try(rough.prices)
            if self.best.gap <= self.watch.tolerance:
                return None
        if self._priced is not None:
            per_side = self._first_pairs(sides)
        point: InteriorPoint | None = None
        anew = self._priced is None
        while True:
            whole = whole or per_side * sides >= normalized.num_pairs
            edges = normalized.edges(*normalized.everything()) if whole else self._selected(per_side * sides, point)
            self.selections.append(len(edges))
            point = InteriorPoint.from_nothing(edges, normalized.budgets) if anew else self._near(edges)
            end, limit = self._descend(point, whole)
            if end is End.OVER or (whole and anew):
                return limit
            per_side = math.ceil(GROWTH * per_side)
            anew = end is End.STUCK

    def _first_pairs(self, sides: int) -> int:
        """Return the number of pairs to select for each buyer and each good at the best prices."""
        assert self._priced is not None
        widths = self.normalized.widths_of(self._priced, [each * sides for each in FIRST_PAIRS])
        if widths[0] > CLEARLY:
            return FIRST_PAIRS[0]
        enough = [each for each, width in zip(FIRST_PAIRS, widths, strict=True) if width > WIDE * self.best.gap]
        return next((each for each in enough if each > FIRST_PAIRS[0]), FIRST_PAIRS[-1])

    def _near(self, edges: Edges) -> InteriorPoint:
        """Return a start near the best prices: at the least gap of the central path that is not mostly mismatch."""
        assert self._priced is not None
        gap = min(FIRST_GAP, GAP_RATIO * self.best.gap)
        while True:
            point = InteriorPoint.from_prices(edges, self.normalized.budgets, self._priced.prices, gap)
            if point.measure().gap <= gap:
                return point
            if gap >= MOST_GAP:
                return InteriorPoint.from_nothing(edges, self.normalized.budgets)
            gap *= GAP_GROWTH

    def _selected(self, count: int, point: InteriorPoint | None) -> Edges:
        """Return about this number of pairs, the best at the best prices, and missing pairs that the point trades."""
        assert self._priced is not None
        assert self._latest is not None
        normalized, best = self.normalized, self._priced
        buyer, good = normalized.select(best, normalized.widths_of(best, [count])[0] + 1e-12)
        if point is not None:
            goods, edges = normalized.market.num_goods, point.edges
            spent = point.shares * point.prices[edges.good]
            at = np.flatnonzero(spent > KEPT_SHARE * self.normalized.budgets[edges.buyer])
            parts = [buyer * goods + good, edges.buyer[at] * goods + normalized.goods[edges.good[at]]]
            if self._latest is not best:
                buyer, good = normalized.select(self._latest, normalized.widths_of(self._latest, [count])[0] + 1e-12)
                parts.append(buyer * goods + good)
            buyer, good = np.divmod(np.unique(np.concatenate(parts)), goods)
        return normalized.edges(buyer, good)

    def _descend(self, point: InteriorPoint, whole: bool) -> tuple[End, Limit | None]:
        """Step until the gap is closed, a limit is reached, no step helps, or the selection is found to lack pairs.

        Return the cause, and the limit if there is one.
        """
        watch = self.watch
        measure = point.measure()
        # The prices of the point's start have been tried.
        check = FIRST_CHECK if self._priced is None else min(FIRST_CHECK, CHECK_AGAIN * measure.gap)
        least, since = np.inf, 0
        while True:
            self.best.improve(measure.welfare, (point.edges, measure.shares))
            if whole:
                self.best.tighten(measure.bound, point.prices)
            since = 0 if measure.gap < 0.9 * least else since + 1
            least = min(least, measure.gap)
            stuck = since > PATIENCE or not np.isfinite(measure.gap)
            if self.best.gap > watch.tolerance and (stuck or measure.gap <= max(check, watch.tolerance)):
                check = CHECK_AGAIN * measure.gap
                bound = self._try(point.prices)
                lacks = bound - measure.bound > max(0.5 * measure.gap, 0.1 * watch.tolerance)
                if lacks and not whole and self.best.gap > watch.tolerance:
                    return End.LACKING, None
            watch.report(watch.steps, self.best.objective, self.best.bound, len(point.edges))
            if self.best.gap <= watch.tolerance:
                return End.OVER, None
            if stuck:
                return End.STUCK, Limit.METHOD
            limit = watch.stops()
            if limit:
                return End.OVER, limit
            watch.steps += 1
            if not point.step():
                since = PATIENCE + 1
            measure = point.measure()

    def _try(self, prices: Floats) -> float:
        """Try prices on all pairs; return the bound they prove."""
        priced = self.normalized.priced(prices)
        if self.best.tighten(priced.bound, priced.prices):
            self._priced = priced
        self._latest = priced
        return priced.bound
