"""Reading: what an allocation and prices come to in a market, and how far a certified gap lets them be from ideal.

All tolerances of :mod:`.certificates` and :mod:`.fairness` come from here. With budgets ``B_i`` (sum ``B``, shares
``q_i = B_i/B``), spending ``s_i = p.x_i``, least unit costs ``e_i(p)``, and prices scaled so that ``p.c = B``, write
``t_i = s_i/B_i`` and ``r_i = e_i U_i/B_i`` (what the utility is worth, as a share of the budget). Then ``r_i <= t_i``,
``sum_i q_i t_i <= 1``, and the relative gap is ``g = (D - P)/B = - sum_i q_i log r_i``. So, of any feasible allocation:

- ``- q_i log(r_i/t_i) <= g``, as ``- sum q log t >= - log sum q t >= 0``: at least the share ``exp(-g/q_i)`` of what a
  buyer spends buys utility at the least cost.
- ``sum_i q_i t_i >= exp(-g)``: goods worth at most ``1 - exp(-g)`` of all are unsold.
- ``KL(q_i, q_i r_i) <= g`` and ``KL(q_i, q_i t_i) <= g``, where ``KL(a, b) = a log(a/b) + (1-a) log((1-a)/(1-b))``: the
  other buyers share at most ``B - s_i``, and the logarithm is concave. So r_i and t_i lie between the two roots
  ``least_i < 1 < most_i`` of ``KL(q_i, q_i r) = g``. To first order both are ``sqrt(2 g (1 - q_i)/q_i)`` from 1 (with
  Pinsker's inequality, ``sum_i |B_i - s_i| <= B sqrt(2 g)``): a gap says the less of a buyer, the smaller the budget.

A float sum of n terms of one sign is off by at most n units in the last place: `rounding` is four times that over the
terms of the longest sum, and is added to the gap and to each tolerance.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...formulations.arrays import Floats
from ...formulations.checks import as_real
from ...formulations.errors import EquipoiseError, InvalidInput
from ...formulations.markets.equilibrium import Equilibrium
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.market import LEAST_PRICE, Market
from ...solvers.options import Options
from ...solvers.result import Result
from ...solvers.solve import solve
from .finding import Finding, Witness

# The gap that `solve` closes where nothing else is asked for: a plan further off is not called an equilibrium.
DEFAULT_GAP = Options().rel_gap
# Seconds given to a solver that looks for something better, or for prices.
SEARCH_S = 20.0
# No solver is asked for a finer gap.
FINEST_GAP = 1e-9
NEWTON_STEPS = 100
# Logarithms, exponentials and a few products beside each sum.
FEW = 64


class Reading:
    """What an allocation and prices come to in a market.

    Parameters
    ----------
    market : FisherMarket or VolatileFisherMarket
    allocation : array_like or sparse matrix of float, shape (N, K) or (N, J, T); or Equilibrium
        From any solver or scheduler, and feasible or not. Of an Equilibrium the prices are taken too.
    prices : array_like of float, shape (K,) or (J, T), optional
        By default those that the allocation implies or, where these do not prove it optimal, those of a solve if they
        prove more.
    gap : float, optional
        See :func:`equipoise.validation.certificates.certify.certify`.

    Raises
    ------
    InvalidInput
        If something is not an array of numbers of the right shape. Numbers that are not finite are violations, found
        by every property; they are no faults of the call.
    """

    def __init__(self, market: Market, allocation: Any, prices: ArrayLike | None = None, gap: float | None = None):
        if not isinstance(market, Market):
            raise InvalidInput("market", type(market).__name__, "must be a FisherMarket or a VolatileFisherMarket")
        if isinstance(allocation, Equilibrium):
            prices = allocation.prices if prices is None else prices
            allocation = allocation.allocation
        self.market = market
        self.given = _numbers("allocation", allocation, (market.num_buyers, *market.capacities.shape))
        self.shortfall: tuple[float, Any, str] | None = None  # of Nash welfare, once it is known
        self._asked = None if gap is None else as_real("gap", gap, minimum=0.0)
        entries = _entries(self.given)
        self.allocation = self.given
        if np.isfinite(entries).all() and entries.min(initial=0.0) < 0:  # what is not there is of no use
            self.allocation = self.given.copy()
            np.maximum(_entries(self.allocation), 0.0, out=_entries(self.allocation))
        self.implied = prices is None
        self._prices = None if prices is None else _numbers("prices", prices, market.capacities.shape, sparse=False)

    @cached_property
    def trouble(self) -> Witness | None:
        """The first amount that is no finite number; of such an allocation nothing holds."""
        bad = ~np.isfinite(_entries(self.given))
        if bad.any():
            at = np.flatnonzero(bad)[0]
            if isinstance(self.given, np.ndarray):
                buyer, *good = (int(i) for i in np.unravel_index(at, self.given.shape))
            else:
                buyer, good = int(np.searchsorted(self.given.indptr, at, side="right") - 1), [self.given.indices[at]]
            return Witness(buyer=buyer, good=index_of(good), words="the amount is not a finite number")
        return None

    @cached_property
    def raw_prices(self) -> Floats:
        """The prices as they were given or, of an allocation that came without, as they were found."""
        return self._found[0] if self._prices is None else self._prices

    @cached_property
    def implied_prices(self) -> Floats:
        """The prices that the allocation implies, scaled to ``p.c = B``."""
        if self.trouble is not None:
            return self.market.normal_prices(np.ones(self.market.capacities.shape))
        with np.errstate(all="ignore"):
            return self.market.normal_prices(self.market.implied_prices(self.allocation))

    @cached_property
    def _found(self) -> tuple[Floats, str]:
        """Prices for an allocation that came without, and in words where they are from.

        Those that the allocation implies; where they do not prove it optimal, those of a solve, if these prove more:
        the prices of one optimum support every other. What buyers pay for each of several complements does not follow
        from an allocation, and what they pay for other goods follows less exactly than the allocation is known.
        """
        market, words = self.market, "prices implied by the allocation"
        if self.trouble is not None:
            return self.implied_prices, words
        bound = market.bound_at(self.implied_prices)
        if bound - market.welfare(self.utilities) <= self.required_gap * market.total_budget:
            return self.implied_prices, words
        plan = self.optimum.plan if isinstance(self.optimum, Result) else None
        if plan is None or market.proved_bound(plan) >= bound:
            return self.implied_prices, words
        return market.normal_prices(plan.prices), "prices of a solve made here"

    @cached_property
    def optimum(self) -> Result[Any] | EquipoiseError:
        """The result of a solve, to a quarter of the gap required or of the default; or why there can be none."""
        rel_gap = max(min(self.required_gap, DEFAULT_GAP) / 4, FINEST_GAP)
        try:
            return solve(self.market, rel_gap=rel_gap, time_limit=SEARCH_S)
        except EquipoiseError as error:
            return error

    @cached_property
    def price_trouble(self) -> Witness | None:
        """The first price that is no finite number; with such prices nothing holds that prices take part in."""
        bad = ~np.isfinite(self.raw_prices)
        if bad.any():
            return Witness(good=index_of(np.argwhere(bad)[0]), words="the price is not a finite number")
        return None

    @cached_property
    def rounding(self) -> float:
        """What floats may be off by, relative."""
        longest = max(self.market.capacities.size, self.market.num_buyers) + FEW
        return 4.0 * longest * float(np.finfo(np.float64).eps)

    @cached_property
    def shares(self) -> Floats:
        """Each buyer's share of all budgets, q, shape (N,)."""
        return self.market.budgets / self.market.total_budget

    @cached_property
    def prices(self) -> Floats:
        """The prices scaled to ``p.c = B``; a wanted good costs something, and what is priced but unwanted stays so."""
        worth = np.maximum(self.raw_prices, 0.0) * self.market.capacities
        most = worth.max()
        if not 0 < most < math.inf:
            return self.market.normal_prices(self.raw_prices)
        worth = worth / most
        worth = worth / worth.sum()
        worth = np.where(self.market.wanted, np.maximum(worth, LEAST_PRICE / worth.size), worth)
        return np.asarray(self.market.total_budget * (worth / worth.sum()) / self.market.capacities)

    @cached_property
    def used(self) -> Floats:
        """How much of each good is handed out, shape of the prices."""
        with np.errstate(all="ignore"):
            return self.market.used(self.given)

    @cached_property
    def utilities(self) -> Floats:
        """U, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.utilities_at(self.allocation)

    @cached_property
    def unit_costs(self) -> Floats:
        """e(p) at the scaled prices, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.unit_costs(self.prices)

    @cached_property
    def paid(self) -> Floats:
        """t: spending at the scaled prices as a share of the budget, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.spending_at(self.allocation, self.prices) / self.market.budgets

    @cached_property
    def worth(self) -> Floats:
        """r: the least money that buys the utility, as a share of the budget, shape (N,)."""
        with np.errstate(all="ignore"):
            return np.where(self.utilities > 0, self.unit_costs / self.market.budgets * self.utilities, 0.0)

    @cached_property
    def measured_gap(self) -> float:
        """(D - P)/B of this allocation at these prices; infinite if a buyer has no utility."""
        if not ((self.worth > 0) & np.isfinite(self.worth)).all():
            return math.inf
        return -math.fsum(self.shares * np.log(self.worth))

    @cached_property
    def gap(self) -> float:
        """What tolerances derive from: the gap given, or the one measured if `solve` would accept it; and rounding."""
        measured = max(0.0, self.measured_gap)
        return (min(measured, DEFAULT_GAP) if self._asked is None else self._asked) + self.rounding

    @cached_property
    def required_gap(self) -> float:
        """What the gap itself is held to: the gap given, or by default the one that `solve` closes."""
        return (DEFAULT_GAP if self._asked is None else self._asked) + self.rounding

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """(1 - least, most - 1): how far the gap lets r and t be below and above 1, each shape (N,)."""
        return reach(self.shares, self.gap)

    @cached_property
    def whole(self) -> Floats:
        """What all goods together would be worth to each buyer, U_i(C), shape (N,)."""
        market = self.market
        if isinstance(market, FisherMarket):
            return np.asarray(market.utilities @ market.capacities)
        everything = np.broadcast_to(market.capacities, (market.num_buyers, *market.capacities.shape))
        return market.utilities_at(everything)

    def finding(
        self, statement: str, source: str, violation: float, tolerance: float, witness: Witness | None, priced: bool
    ) -> Finding:
        """Return the finding; what is no number is infinite, and a plan with numbers missing fails.

        `priced` says that it is about the prices too.
        """
        if priced and self.implied:
            statement += f" ({self._found[1]})"
        trouble = self.trouble or (self.price_trouble if priced else None)
        if trouble is not None:
            violation, witness = math.inf, trouble
        violation = math.inf if math.isnan(violation) else max(0.0, float(violation))
        return Finding(
            statement=statement,
            source=source,
            holds=bool(violation <= tolerance),
            violation=violation,
            witness=witness if violation > 0 else None,
            tolerance=float(tolerance),
        )


def reach(shares: Floats, gap: float) -> tuple[Floats, Floats]:
    """Return how far below and above 1 the roots of ``KL(q, q r) = gap`` lie, each shape (N,).

    Newton's method from beyond each root, where the function is convex: it never crosses to the unsafe side. It starts
    where ``r - 1 - log r = gap/q``, which bounds KL from below, must have been passed: at ``1 - sqrt(2 y)`` or
    ``exp(-1 - y)``, and at ``1 + y + sqrt(2 y)``, with ``y = gap/q``.

    Parameters
    ----------
    shares : ndarray of float, shape (N,)
        q, greater than 0, at most 1.
    gap : float
        Greater than 0.
    """
    rest = np.maximum(1.0 - shares, 0.0) + 4.0 * np.finfo(np.float64).eps
    y = gap / shares
    below = np.minimum(np.minimum(np.sqrt(2.0 * y), -np.expm1(-1.0 - y)), 1.0 - np.finfo(np.float64).epsneg)
    limit = rest / shares
    above = np.minimum(y + np.sqrt(2.0 * y), limit * (1.0 - 1e-12))
    for _ in range(NEWTON_STEPS):
        excess = -shares * np.log1p(-below) - rest * np.log1p(shares * below / rest) - gap
        slope = shares / (1.0 - below) - shares / (1.0 + shares * below / rest)
        step_below = np.where(slope > 0, excess / np.where(slope > 0, slope, 1.0), 0.0)
        excess = -shares * np.log1p(above) - rest * np.log1p(-shares * above / rest) - gap
        slope = shares / (1.0 - shares * above / rest) - shares / (1.0 + above)
        step_above = np.where(slope > 0, excess / np.where(slope > 0, slope, 1.0), 0.0)
        below, above = below - np.maximum(step_below, 0.0), above - np.maximum(step_above, 0.0)
        if (step_below <= 1e-9 * below).all() and (step_above <= 1e-9 * above).all():
            break
    return below, above


def most_telling(violations: Floats, tolerances: Floats) -> int:
    """Return the index of the violation that is the largest multiple of its tolerance."""
    return int(np.argmax(np.where(np.isnan(violations), np.inf, violations) / tolerances))


def index_of(good: Any) -> int | tuple[int, ...]:
    """Return the index of a good as users write it: k, or (resource, round)."""
    index = tuple(int(i) for i in good)
    return index[0] if len(index) == 1 else index


def _entries(allocation: Any) -> NDArray[np.float64]:
    return allocation if isinstance(allocation, np.ndarray) else allocation.data


def _numbers(name: str, values: Any, shape: tuple[int, ...], sparse: bool = True) -> Any:
    """Return values as an array (or csr_array) of floats, finite or not."""
    if sparse and hasattr(values, "tocsr"):
        from scipy.sparse import csr_array

        if np.dtype(values.dtype).kind not in "iuf":
            raise InvalidInput(name, values.dtype, "must be numbers")
        table: Any = csr_array(values, dtype=np.float64)
        if not table.has_canonical_format:
            table = table.copy()  # the caller's own is left as it is
            table.sum_duplicates()
    else:
        try:
            table = np.asarray(values)
            if table.dtype.kind not in "iufO":
                raise InvalidInput(name, table.dtype, "must be numbers")
            table = table.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(name, type(values).__name__, f"must be an array of numbers ({error})") from None
    if table.shape != shape:
        raise InvalidInput(name, f"array of shape {table.shape}", f"must have shape {shape}")
    return table
