"""The exact certificate: an equilibrium of a linear market in rationals, found near an approximate one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from ...formulations.arrays import Floats
from ...formulations.errors import InvalidInput, UnsupportedProblem
from ...formulations.former_names import FormerName
from ...formulations.markets.equilibrium import Equilibrium
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import Market
from ...formulations.markets.volatile import VolatileFisherMarket
from ..certificates.check_result import CheckResult, Witness
from ..certificates.market_state import MarketState
from .flow import Edge
from .market import ExactMarket, Forest, exact_market, forest, prices_of, purchases
from .pivots import pivoted

STATEMENT = "an exact equilibrium, in rationals"
SOURCE = "Eisenberg and Gale 1959; Devanur et al. 2008"
# The most thresholds tried to separate purchases from numerical noise.
MOST_CUTS = 40
# The supports from which pivots start, and the most pivots for each buyer and good.
MOST_PIVOTED, PIVOTS_EACH = 3, 5
# A good whose utility per money is below the buyer's best by more than this share is not a candidate for purchase.
LARGEST_SLACK = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactEquilibrium:
    """An equilibrium of a linear market in exact rationals; true if one was found.

    Attributes
    ----------
    prices : tuple of Fraction
        By good; of a volatile market in C order over (resource, round). Empty if none was found.
    allocation : dict of (int, int) to Fraction
        The amounts, by buyer and good, of all that is bought.
    check_result : CheckResult
        Holds if an equilibrium was found: the violation is then 0, and infinite otherwise. The witness gives the
        distance of the given prices.
    reason : str
        Why none was found; "" if one was.
    attempts : int
        How many supports were tried.
    market : FisherMarket or VolatileFisherMarket
    """

    prices: tuple[Fraction, ...]
    allocation: dict[Edge, Fraction]
    check_result: CheckResult
    reason: str
    attempts: int
    market: Market

    def __bool__(self) -> bool:
        return self.check_result.holds

    finding = FormerName("check_result")

    @property
    def plan(self) -> Equilibrium:
        """The equilibrium rounded to floats; UnsupportedProblem if none was found."""
        if not self:
            raise UnsupportedProblem(f"there is no exact equilibrium to round: {self.reason}")
        count, shape = self.market.num_buyers, self.market.capacities.shape
        flat = np.zeros((count, self.market.capacities.size))
        for edge, amount in self.allocation.items():
            flat[edge] = float(amount)
        prices = np.array([float(price) for price in self.prices]).reshape(shape)
        sparse = isinstance(self.market, FisherMarket) and self.market.is_sparse
        allocation: Any = csr_array(flat) if sparse else flat.reshape((count, *shape))
        return self.market.equilibrium(allocation, prices)

    def __repr__(self) -> str:
        found = "found" if self else f"not found: {self.reason}"
        return f"<ExactEquilibrium: {self.market.num_buyers} buyers, {self.market.capacities.size} goods, {found}>"


def exact_certificate(
    market: Market,
    allocation: Any,
    prices: ArrayLike | None = None,
    *,
    utilities: Any = None,
    budgets: Sequence[Any] | None = None,
    capacities: Sequence[Any] | None = None,
) -> ExactEquilibrium:
    """Find the exact equilibrium near an approximate one, and prove it in rationals.

    Parameters
    ----------
    market : FisherMarket or linear VolatileFisherMarket
    allocation : Equilibrium, or array_like or sparse matrix of float, shape (N, K) or (N, J, T)
        Near an equilibrium. Only the pairs of buyer and good with a purchase are taken from it.
    prices : array_like of float, shape (K,) or (J, T), optional
        Those of the Equilibrium, or those that the allocation implies.
    utilities, budgets, capacities : sequence of int or Fraction, optional
        The exact numbers that the market's floats are roundings of, by buyer and good, flat as `prices` of the answer;
        by default the floats themselves, which are rationals.

    Returns
    -------
    ExactEquilibrium
        Where it was found, exact prices and amounts; where not, the reason.

    Raises
    ------
    InvalidInput
        If the allocation or the prices do not fit the market, or a number given is not what the market has rounded.
    UnsupportedProblem
        If utilities are not linear: equilibria of the other families can be irrational.

    Notes
    -----
    The purchases form trees (a cycle of purchases can always be broken). Along a tree the utilities fix all
    ratios of prices, and the tree's goods cost what its buyers have. These prices are exact if the tree is right; then
    each buyer's goods of the most utility per money are known exactly, and whether all budgets can be spent on them and
    all goods sold is a question of maximal flow, in whole numbers. What remains is which purchases of the approximate
    plan are real and which are noise: pairs are taken in the order of the money that flows, or of how nearly they give
    the most utility per money, and cut at the largest steps first. If no cut closes, pivots in rationals lead from the
    likeliest ones to the equilibrium (:mod:`.pivots`): where floats cannot separate ties, and for buyers with so
    little money that the gap does not bound their purchases.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.validation import exact_certificate
    >>> market = eq.FisherMarket(utilities=[[1, 0, 1], [1, 1, 0]], budgets=[1, 2])
    >>> exact = exact_certificate(market, eq.solve(market, rel_gap=1e-8).plan)
    >>> [str(price) for price in exact.prices]
    ['1', '1', '1']
    """
    given = MarketState(market, allocation, prices)
    if given.implied:  # pivots need no better ones, and no solver
        given = MarketState(market, given.given, given.implied_prices)
    if isinstance(market, VolatileFisherMarket) and market.family == "linear":
        linear = market.static
    elif isinstance(market, FisherMarket):
        linear = market
    else:
        raise UnsupportedProblem(f"{market.kind} has no exact certificate: its equilibria can be irrational")
    for name, trouble in (("allocation", given.trouble), ("prices", given.price_trouble)):
        if trouble is not None:
            raise InvalidInput(name, str(trouble), "must be finite")
    exact = exact_market(linear, utilities, budgets, capacities)
    x: Any = given.allocation if given.allocation.ndim == 2 else given.allocation.reshape(market.num_buyers, -1)
    attempts, reason = 0, "the allocation gives a wanted good to nobody"
    supports = list(_supports(linear, x, given.prices.ravel()))
    most = PIVOTS_EACH * (len(exact.budgets) + len(exact.capacities))
    near = (pivoted(exact, support, most) for support in supports[:MOST_PIVOTED])
    for support in chain(supports, filter(None, near)):
        attempts += 1
        found, reason = _closed(exact, support)
        if found is not None:
            return _answer(exact, given, *found, attempts)
    check_result = given.check_result(STATEMENT, SOURCE, np.inf, 0.0, Witness(words=reason), False)
    return ExactEquilibrium(
        prices=(), allocation={}, check_result=check_result, reason=reason, attempts=attempts, market=market
    )


def _supports(market: FisherMarket, allocation: Any, prices: Floats) -> Iterator[Forest]:
    """Yield forests of purchases, the most likely first, each at most once."""
    buyer, good, worth = market._pairs()
    amount = np.asarray(allocation[buyer, good]).ravel()
    paid = amount * prices[good]
    rate = worth / (prices * market.capacities)[good]  # of utility per money, in the buyer's own unit
    best = np.zeros(market.num_buyers)
    np.maximum.at(best, buyer, rate)
    with np.errstate(divide="ignore"):
        flow = np.log(paid / np.minimum(market.budgets[buyer], (prices * market.capacities)[good]))
        slack = np.log(np.maximum(1.0 - rate / best[buyer], 1e-17))
    near = slack < np.log(LARGEST_SLACK)
    seen: set[tuple[tuple[Edge, ...], ...]] = set()
    cuts: list[tuple[float, Forest]] = []
    for score in (flow, -slack):
        order = np.lexsort((-flow, -score))
        order = order[np.isfinite(flow[order]) if score is flow else near[order]]
        cuts += _cuts(list(zip(buyer[order].tolist(), good[order].tolist(), strict=True)), score[order], market)
    for _, support in sorted(cuts, key=lambda cut: -cut[0])[:MOST_CUTS]:
        key = tuple(sorted(tuple(sorted(tree)) for tree in support))
        if key not in seen:
            seen.add(key)
            yield support


def _cuts(edges: list[Edge], score: Floats, market: FisherMarket) -> list[tuple[float, Forest]]:
    """Return the forests of the first edges that reach everyone, each with the step in the score after it."""
    whole = forest(edges, market.num_buyers)
    rank = {edge: position for position, edge in enumerate(edges)}
    merges = sorted(rank[edge] for tree in whole for edge in tree)
    buyers, goods = np.zeros(market.num_buyers, dtype=bool), ~market.in_demand
    found = []
    for at, position in enumerate(merges):
        buyers[edges[position][0]], goods[edges[position][1]] = True, True
        if buyers.all() and goods.all():
            following = score[merges[at + 1]] if at + 1 < len(merges) else min(score[position] - 1.0, -37.0)
            step = float(score[position] - following)
            found.append((step, forest([edges[i] for i in merges[: at + 1]], market.num_buyers)))
    return found


def _closed(market: ExactMarket, support: Forest) -> tuple[tuple[list[Fraction], dict[Edge, Fraction]] | None, str]:
    """Return exact prices and payments if the support is that of an equilibrium; else None and the reason."""
    prices = prices_of(market, support)
    if prices is None:
        return None, "the support leaves out a wanted good"
    tight = market.tight(prices)
    for tree in support:
        for buyer, good in tree:
            if good not in tight[buyer]:
                return None, f"at the prices of the support, buyer {buyer} would rather not buy good {good}"
    paid = purchases(market, support, prices, tight)
    if paid is None:
        return None, "at the prices of the support, budgets cannot all be spent on the goods that buyers want most"
    return (prices, paid), ""


def _answer(
    exact: ExactMarket, given: MarketState, prices: list[Fraction], paid: dict[Edge, Fraction], attempts: int
) -> ExactEquilibrium:
    """Return the equilibrium after a check of every condition that is independent of the search."""
    market = given.market
    allocation = {(buyer, good): amount / prices[good] for (buyer, good), amount in paid.items()}
    reason = fault(exact, prices, allocation)
    with np.errstate(all="ignore"):
        rough = np.array([float(price) for price in prices]).reshape(market.capacities.shape)
        off = float(np.abs(np.where(market.in_demand, given.prices / rough - 1.0, 0.0)).max())
    words = f"{len(allocation)} purchases; the prices given were within {off:.1e}"
    check_result = CheckResult(
        statement=STATEMENT, source=SOURCE, holds=not reason, violation=0.0 if not reason else np.inf,
        witness=Witness(words=reason or words), tolerance=0.0,
    )  # fmt: skip
    return ExactEquilibrium(
        prices=tuple(prices), allocation=allocation, check_result=check_result, reason=reason, attempts=attempts,
        market=market,
    )  # fmt: skip


def fault(market: ExactMarket, prices: Sequence[Fraction], allocation: dict[Edge, Fraction]) -> str:
    """Return what keeps exact prices and amounts from being an equilibrium, "" if nothing does.

    Amounts are positive; every wanted good has a positive price and is sold out; every buyer spends the budget, on
    goods of the most utility per money.
    """
    wanted = market.wanted
    used, spent = [Fraction(0)] * len(prices), [Fraction(0)] * len(market.budgets)
    for (buyer, good), amount in allocation.items():
        if amount <= 0:
            return f"buyer {buyer} has an amount of good {good} that is not positive"
        used[good] += amount
        spent[buyer] += amount * prices[good]
    for good, price in enumerate(prices):
        if (price > 0) != (good in wanted):
            return f"good {good} has a price and nobody wants it, or the reverse"
        if used[good] > market.capacities[good] or (price > 0 and used[good] < market.capacities[good]):
            return f"of good {good} is more or less sold than there is"
    for buyer, money in enumerate(spent):
        if money != market.budgets[buyer]:
            return f"buyer {buyer} spends more or less than the budget"
    tight = market.tight(prices)
    for buyer, good in allocation:
        if good not in tight[buyer]:
            return f"buyer {buyer} would rather not buy good {good}"
    return ""
