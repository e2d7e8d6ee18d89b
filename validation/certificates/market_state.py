"""The state of a market at an allocation and prices, from which every property of a certificate is computed.

`docs/guarantees.md`, "Tolerances come from the gap", derives the tolerances from a certified gap: the bounds on the
shares r and t of each buyer that :func:`reach` computes, and the rounding that is added to each tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Protocol

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
from .check_result import CheckResult, Witness

EISENBERG_GALE = "Eisenberg and Gale 1959; Shockwave, Theorem C.1"
# The default gap of `solve`: a plan with a larger gap is not called an equilibrium.
DEFAULT_GAP = Options().rel_gap
# Seconds given to a solver that looks for something better, or for prices.
SEARCH_S = 20.0
# No solver is asked for a finer gap.
FINEST_GAP = 1e-9
NEWTON_STEPS = 100
# Logarithms, exponentials and a few products beside each sum.
FEW = 64


class MarketState:
    """An allocation and prices with what the market derives from them: utilities, spending, and the gap.

    The allocation, array or sparse matrix of shape (N, K) or (N, J, T), is from any solver or scheduler, feasible or
    not; an Equilibrium brings its prices. The prices, shape (K,) or (J, T), are by default those that the allocation
    implies or, where these do not prove it optimal, those of a solve if they prove more. For the gap see
    :func:`equipoise.validation.certificates.certify.certify`.

    InvalidInput if an argument is not an array of numbers of the right shape. Numbers that are not finite are
    violations that every property reports, and no error here.
    """

    def __init__(self, market: Market, allocation: Any, prices: ArrayLike | None = None, gap: float | None = None):
        if not isinstance(market, Market):
            raise InvalidInput("market", type(market).__name__, "must be a FisherMarket or a VolatileFisherMarket")
        if isinstance(allocation, Equilibrium):
            prices = allocation.prices if prices is None else prices
            allocation = allocation.allocation
        self.market = market
        self.given = _numbers("allocation", allocation, (market.num_buyers, *market.capacities.shape))
        self._asked = None if gap is None else as_real("gap", gap, minimum=0.0)
        entries = _entries(self.given)
        self.allocation = self.given
        if np.isfinite(entries).all() and entries.min(initial=0.0) < 0:  # a negative amount is worth nothing
            self.allocation = self.given.copy()
            np.maximum(_entries(self.allocation), 0.0, out=_entries(self.allocation))
        self.implied = prices is None
        self._prices = None if prices is None else _numbers("prices", prices, market.capacities.shape, sparse=False)

    @cached_property
    def trouble(self) -> Witness | None:
        """The first amount that is not finite, with which every property fails; None if all are finite."""
        bad = np.flatnonzero(~np.isfinite(_entries(self.given)))
        return self.witness_of(int(bad[0]), "the amount is not a finite number") if len(bad) else None

    def witness_of(self, entry: int, words: str) -> Witness:
        """Return the witness of an entry of the given allocation: its place in C order or, if sparse, in the data."""
        if isinstance(self.given, np.ndarray):
            buyer, *good = np.unravel_index(entry, self.given.shape)
        else:
            buyer, good = np.searchsorted(self.given.indptr, entry, side="right") - 1, [self.given.indices[entry]]
        return Witness(buyer=int(buyer), good=index_of(good), words=words)

    @cached_property
    def raw_prices(self) -> Floats:
        """The prices as given or, for an allocation without prices, as found."""
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
        """Prices for an allocation without prices, and a description of their origin.

        The prices are those that the allocation implies or, where these do not prove it optimal, those of a solve if
        they prove more: the prices of one optimum support every other optimum. An allocation does not determine the
        prices of complements, and determines other prices less exactly than the allocation itself is known.
        """
        market, origin = self.market, "prices implied by the allocation"
        if self.trouble is not None:
            return self.implied_prices, origin
        bound = market.bound_at(self.implied_prices)
        if bound - market.welfare(self.utilities) <= self.required_gap * market.total_budget:
            return self.implied_prices, origin
        plan = self.optimum.plan if isinstance(self.optimum, Result) else None
        if plan is None or market.proved_bound(plan) >= bound:
            return self.implied_prices, origin
        return market.normal_prices(plan.prices), "prices of a solve made here"

    @cached_property
    def optimum(self) -> Result[Any] | EquipoiseError:
        """The result of a solve, to a quarter of the required gap or of the default; or the error that prevented it."""
        rel_gap = max(min(self.required_gap, DEFAULT_GAP) / 4, FINEST_GAP)
        try:
            return solve(self.market, rel_gap=rel_gap, time_limit=SEARCH_S)
        except EquipoiseError as error:
            return error

    @cached_property
    def price_trouble(self) -> Witness | None:
        """The first price that is not finite, with which every property that depends on prices fails; else None."""
        bad = np.argwhere(~np.isfinite(self.raw_prices))
        return Witness(good=index_of(bad[0]), words="the price is not a finite number") if len(bad) else None

    @cached_property
    def rounding(self) -> float:
        """The relative rounding error allowed for sums of floats."""
        longest = max(self.market.capacities.size, self.market.num_buyers) + FEW
        return 4.0 * longest * float(np.finfo(np.float64).eps)

    @cached_property
    def shares(self) -> Floats:
        """Each buyer's share of all budgets, q, shape (N,)."""
        return self.market.budgets / self.market.total_budget

    @cached_property
    def prices(self) -> Floats:
        """The prices scaled to ``p.c = B``, with a positive floor for wanted goods; unwanted goods keep their price."""
        worth = np.maximum(self.raw_prices, 0.0) * self.market.capacities
        most = worth.max()
        if not 0 < most < math.inf:
            return self.market.normal_prices(self.raw_prices)
        worth = worth / most
        worth = worth / worth.sum()
        worth = np.where(self.market.in_demand, np.maximum(worth, LEAST_PRICE / worth.size), worth)
        return np.asarray(self.market.total_budget * (worth / worth.sum()) / self.market.capacities)

    @cached_property
    def used(self) -> Floats:
        """The amount of each good that is allocated, shape of the prices."""
        with np.errstate(all="ignore"):
            return self.market.used(self.given)

    @cached_property
    def utilities(self) -> Floats:
        """The utilities U, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.utilities_at(self.allocation)

    @cached_property
    def unit_costs(self) -> Floats:
        """The cost e(p) of a unit of utility at the scaled prices, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.unit_costs(self.prices)

    @cached_property
    def paid(self) -> Floats:
        """Spending t at the scaled prices as a share of the budget, shape (N,)."""
        with np.errstate(all="ignore"):
            return self.market.spending_at(self.allocation, self.prices) / self.market.budgets

    @cached_property
    def worth(self) -> Floats:
        """The least money r that buys the utility, as a share of the budget, shape (N,)."""
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
        """The gap from which tolerances derive: the given one, or the measured one up to the default; plus rounding."""
        measured = max(0.0, self.measured_gap)
        return (min(measured, DEFAULT_GAP) if self._asked is None else self._asked) + self.rounding

    @cached_property
    def required_gap(self) -> float:
        """The gap that the plan must prove: the given one, or by default the one that `solve` closes; plus rounding."""
        return (DEFAULT_GAP if self._asked is None else self._asked) + self.rounding

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """The distances (1 - least, most - 1) that the gap allows r and t below and above 1, each shape (N,)."""
        return reach(self.shares, self.gap)

    @cached_property
    def shortfall(self) -> tuple[float, Any, str]:
        """The distance to the best Nash welfare per unit of budget, a better allocation if found, and a note."""
        gap = self.measured_gap
        if self.trouble is not None:
            return math.inf, None, ""
        if gap <= self.required_gap:
            return max(0.0, gap), None, ""
        result = self.optimum
        if isinstance(result, EquipoiseError):
            return gap, None, f"no solver could look for a better one: {result}"
        welfare = self.market.welfare(self.utilities)
        proved = (result.bound - welfare) / self.market.total_budget
        if result.plan is None or result.objective is None:
            return min(gap, proved), None, "no better one found"
        gain = (result.objective - welfare) / self.market.total_budget
        if gain <= self.required_gap:
            return min(gap, proved), None, "no better one found"
        words = "another gives everybody something"
        if gain < 700:
            words = f"another has {math.exp(gain):.6g} times the mean utility"
        return min(gap, proved), result.plan.allocation, words

    @cached_property
    def whole(self) -> Floats:
        """The utility U_i(C) of all goods together to each buyer, shape (N,)."""
        market = self.market
        if isinstance(market, FisherMarket):
            return np.asarray(market.utilities @ market.capacities)
        everything = np.broadcast_to(market.capacities, (market.num_buyers, *market.capacities.shape))
        return market.utilities_at(everything)

    def check_result(
        self, statement: str, source: str, violation: float, tolerance: float, witness: Witness | None, priced: bool
    ) -> CheckResult:
        """Return a CheckResult: a violation that is not a number becomes infinite, and missing numbers fail.

        `priced` is whether the property depends on the prices too.
        """
        if priced and self.implied:
            statement += f" ({self._found[1]})"
        trouble = self.trouble or (self.price_trouble if priced else None)
        if trouble is not None:
            violation, witness = math.inf, trouble
        violation = math.inf if math.isnan(violation) else max(0.0, float(violation))
        return CheckResult(
            statement=statement, source=source, holds=bool(violation <= tolerance), violation=violation,
            witness=witness if violation > 0 else None, tolerance=float(tolerance),
        )  # fmt: skip


class Property(Protocol):
    """A property of an equilibrium that can be checked on any allocation."""

    __name__: str

    def __call__(
        self, market: Market, allocation: Any, prices: ArrayLike | None = None, *, gap: float | None = None
    ) -> CheckResult:
        """Check an allocation, with the parameters of :class:`MarketState`."""
        ...


def property_check(check: Callable[[MarketState], CheckResult]) -> Property:
    """Turn a check of a MarketState into a function of market, allocation and prices."""

    @wraps(check, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def checked(
        market: Market, allocation: Any, prices: ArrayLike | None = None, *, gap: float | None = None
    ) -> CheckResult:
        with np.errstate(all="ignore"):  # overflow shows as a violation, not as a warning
            state = allocation if isinstance(allocation, MarketState) else MarketState(market, allocation, prices, gap)
            return check(state)

    del checked.__wrapped__  # so that help() shows the parameters above
    return checked


def reach(shares: Floats, gap: float) -> tuple[Floats, Floats]:
    """Return how far below and above 1 the roots of ``KL(q, q r) = gap`` lie, each shape (N,).

    The shares q, shape (N,), are in (0, 1], and the gap is greater than 0. Newton's method from beyond each root, where
    the function is convex: it never crosses to the unsafe side. It starts where ``r - 1 - log r = gap/q``, which bounds
    KL from below, must have been passed: at ``1 - sqrt(2 y)`` or ``exp(-1 - y)``, and at ``1 + y + sqrt(2 y)``, with
    ``y = gap/q``.
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


def largest_relative(violations: Floats, tolerances: Floats) -> int:
    """Return the index of the violation that is the largest multiple of its tolerance."""
    return int(np.argmax(np.where(np.isnan(violations), np.inf, violations) / tolerances))


def place_of_most(values: Floats) -> tuple[np.intp, ...]:
    """Return the index of the largest value."""
    return np.unravel_index(int(np.argmax(values)), values.shape)


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
            table = table.copy()  # the caller's matrix must not change
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
