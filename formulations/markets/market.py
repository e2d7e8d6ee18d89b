"""Base class of the markets: Nash welfare, the bound that prices prove, and feasible equilibria."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats
from ..checks import as_reals, refuse
from ..errors import InvalidInput
from ..former_names import FormerName
from ..program.data import Residuals
from ..program.formulation import Formulation
from .equilibrium import Equilibrium

# Price floor, as a share of the mean value of a good: a price of 0 for a good in demand makes the dual bound infinite.
LEAST_PRICE = 1e-12
# Share of every good that is split in proportion to the budgets if a solver allocates nothing to a buyer. It costs a
# relative gap of the same size.
TRACE = 1e-12


class Market(Formulation[Equilibrium], ABC):
    """Buyers with budgets share goods: maximise ``sum_i B_i log U_i`` within the capacities.

    Every ``U_i`` is concave and homogeneous of degree one, so that the optimum is a market equilibrium and the prices
    are the duals of the capacities (Eisenberg and Gale, 1959; Shockwave, Theorem C.1). Budgets have shape (N,);
    capacities have the shape of the prices.
    """

    budgets: Floats
    capacities: Floats

    sense = "max"
    proves_bounds = True

    @property
    @abstractmethod
    def in_demand(self) -> Any:
        """Whether any buyer has demand for a good, shape of the prices, bool."""

    wanted = FormerName("in_demand")

    @abstractmethod
    def utilities_at(self, allocation: Any) -> Floats:
        """Return every buyer's utility, shape (N,)."""

    @abstractmethod
    def unit_costs(self, prices: Floats) -> Floats:
        """Return the least money that buys each buyer one unit of utility, shape (N,)."""

    @abstractmethod
    def implied_prices(self, allocation: Any) -> Floats:
        """Return prices computed from the allocation alone; at an equilibrium they are its prices."""

    @property
    def num_buyers(self) -> int:
        """N."""
        return len(self.budgets)

    @cached_property
    def total_budget(self) -> float:
        """Return the sum of the budgets, B."""
        return math.fsum(self.budgets)

    def used(self, allocation: Any) -> Floats:
        """Return the allocated amount of each good, shape of the prices."""
        return np.asarray(allocation.sum(axis=0), dtype=np.float64)

    def spending_at(self, allocation: Any, prices: Floats) -> Floats:
        """Return the cost of each buyer's goods, shape (N,)."""
        flat = allocation if allocation.ndim == 2 else allocation.reshape(len(allocation), -1)
        return np.asarray(flat @ prices.ravel())

    def welfare(self, utilities: Floats) -> float:
        """Return ``sum_i B_i log U_i`` for utilities, shape (N,); -inf if one of them is not positive."""
        return nash_welfare(self.budgets, utilities)

    def normal_prices(self, prices: Floats) -> Floats:
        """Return the prices scaled so that all goods cost the sum of the budgets; goods in demand have positive prices.

        NaN counts as 0, an infinite price as the largest double.
        """
        prices = np.nan_to_num(np.maximum(prices, 0.0), nan=0.0) * self.in_demand
        shares = _by_largest(_by_largest(prices) * _by_largest(self.capacities))  # scaled in steps against overflow
        total = shares.sum()
        if not total > 0:
            shares = np.where(self.in_demand, 1.0, 0.0)
            total = shares.sum()
        shares = np.where(self.in_demand, np.maximum(shares, LEAST_PRICE * total / shares.size), 0.0)
        return np.asarray(self.total_budget * (shares / shares.sum()) / self.capacities)

    def bound_at(self, prices: Floats) -> float:
        """Return the bound on Nash welfare that prices prove: no allocation within the capacities is better.

        Weak duality: with the prices scaled so that all goods cost ``B``, the dual objective is
        ``sum_i B_i log(B_i / e_i(p))``, with ``e_i`` the least cost of one unit of utility (`unit_costs`).
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
            terms = self.budgets * (np.log(self.budgets) - np.log(self.unit_costs(self.normal_prices(prices))))
        return math.fsum(terms) if np.isfinite(terms).all() else math.inf

    def equilibrium(self, allocation: Any, prices: Floats | None = None) -> Equilibrium:
        """Return a feasible allocation with normalised prices: negative amounts and excess over capacity are removed.

        Parameters
        ----------
        allocation : ndarray or csr_array of float, shape (N, K) or (N, J, T)
            Goods allocated beyond their capacity are scaled down to it. An array that needs no change is kept as it is.
        prices : ndarray of float, shape (K,) or (J, T), optional
            Prices in any one unit; by default those that the allocation implies.

        Raises
        ------
        InvalidInput
            If a shape is wrong, or the allocation has an entry that is not finite.
        """
        allocation = self._checked_allocation(allocation)
        entries = _entries(allocation)
        if entries.min(initial=0.0) < 0:
            allocation = allocation.copy()
            entries = _entries(allocation)
            np.maximum(entries, 0.0, out=entries)
        with np.errstate(over="ignore"):
            used = self.used(allocation)
        if not np.isfinite(used).all():
            raise InvalidInput("allocation", float(entries.max()), "must be finite, and its sums too")
        if (used > self.capacities).any():
            share = self.capacities / np.maximum(used, self.capacities)
            allocation = allocation * share if isinstance(allocation, np.ndarray) else (allocation * share).tocsr()
        if prices is None:
            prices = self.implied_prices(allocation)
        elif np.shape(prices) != self.capacities.shape:
            raise InvalidInput("prices", np.shape(prices), f"must have shape {self.capacities.shape}")
        return self._stated(allocation, prices)

    def _floor_allocations(self, values: Floats, buyer: Any) -> Floats:
        """Return a solver's shares by column, mixed with `TRACE` of the split by budgets if a buyer has no share.

        A solver's tolerance can hide a buyer with a millionth of the budgets, whose zero utility makes welfare -inf.
        """
        held = np.bincount(buyer, weights=np.maximum(values, 0.0), minlength=self.num_buyers)
        if (held > 0).all():
            return values
        return np.asarray((1.0 - TRACE) * values + TRACE * (self.budgets / self.total_budget)[buyer])

    def _improve_prices(self, allocation: Any, prices: Floats | None) -> Equilibrium:
        """Return the equilibrium at a solver's duals or at the implied prices, whichever prove the better bound.

        A solver may attribute the value of a capacity to the bound of a column; the dual of the capacity is then 0.
        """
        implied = self.equilibrium(allocation)
        return implied if prices is None else min(self.equilibrium(allocation, prices), implied, key=self.proved_bound)

    def evaluate(self, plan: Equilibrium) -> tuple[float, Residuals]:
        """Return the allocation's Nash welfare and its worst violations, as shares of the capacities."""
        self.check_plan(plan)
        allocation = plan.allocation
        excess = (self.used(allocation) - self.capacities) / self.capacities
        entries = _entries(allocation)
        # The violation of x >= 0, at most: the most negative entry as a share of the least capacity.
        low = entries.min(initial=0.0)
        short = 0.0 if low >= 0 else float(-low / self.capacities.min())
        row = float(excess.max())
        worst = math.inf if math.isnan(low) or math.isnan(row) else 0.0
        return self.welfare(self.utilities_at(allocation)), Residuals(bound=max(worst, short), row=max(worst, row))

    def check_plan(self, plan: Equilibrium, field: str = "plan") -> None:
        """Raise InvalidInput, naming `field`, unless the plan is an Equilibrium of this market's shapes."""
        if not isinstance(plan, Equilibrium):
            raise InvalidInput(field, type(plan).__name__, "must be an Equilibrium of this market")
        allocation, prices = getattr(plan.allocation, "shape", type(plan.allocation).__name__), np.shape(plan.prices)
        if allocation != self._shape:
            raise InvalidInput(f"{field}.allocation", allocation, f"must have shape {self._shape}")
        if prices != self.capacities.shape:
            raise InvalidInput(f"{field}.prices", prices, f"must have shape {self.capacities.shape}")

    def normalized(self, plan: Equilibrium) -> Equilibrium:
        """Return the plan with normalised prices, and with spending and utilities recomputed."""
        return self._stated(plan.allocation, plan.prices)

    def _stated(self, allocation: Any, prices: Any) -> Equilibrium:
        prices = self.normal_prices(np.asarray(prices, dtype=np.float64))
        return Equilibrium(
            allocation=allocation,
            prices=prices,
            spending=self.spending_at(allocation, prices),
            utilities=self.utilities_at(allocation),
        )

    def improve(self, plan: Equilibrium, other: Equilibrium) -> Equilibrium:
        """Return the plan with the other plan's prices if they prove a better bound."""
        if self.proved_bound(other) < self.proved_bound(plan):
            return self._stated(plan.allocation, other.prices)
        return plan

    def proved_bound(self, plan: Equilibrium) -> float:
        """Return the bound that the plan's own prices prove (see `bound_at`)."""
        return self.bound_at(np.asarray(plan.prices, dtype=np.float64))

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the budgets: at a gap g the geometric mean utility is within exp(-g) of the best."""
        return self.total_budget

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():  # copies and pickles of a read-only array are writable
            for array in (getattr(value, name, None) for name in ("data", "indices", "indptr")):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def _shape(self) -> tuple[int, ...]:
        """The shape of an allocation."""
        return self.num_buyers, *self.capacities.shape

    def _checked_allocation(self, allocation: Any) -> Any:
        """Return an allocation as an array or a csr_array of floats, of the market's shape."""
        if hasattr(allocation, "tocsr"):
            from scipy.sparse import csr_array

            allocation = csr_array(allocation, dtype=np.float64)
        elif not isinstance(allocation, np.ndarray) or allocation.dtype != np.float64:
            allocation = as_reals("allocation", allocation, ndim=len(self._shape))
        if allocation.shape != self._shape:
            raise InvalidInput("allocation", allocation.shape, f"must have shape {self._shape}")
        return allocation

    def _set_budgets(
        self, budgets: ArrayLike, capacities: ArrayLike | None, count: int, goods: tuple[int, ...]
    ) -> None:
        """Check budgets and capacities, and store them read-only."""
        budgets = checked_budgets(budgets, count, f"there are {count} buyers in the first dimension")
        object.__setattr__(self, "budgets", budgets)
        given = np.ones(goods) if capacities is None else capacities
        units = as_reals("capacities", given, above=0.0, shape=goods, ndim=len(goods))
        with np.errstate(over="ignore"):
            overflow = ~np.isfinite(budgets.sum() / units)
        refuse("capacities", overflow, units, "too small: its price would be infinite")
        object.__setattr__(self, "capacities", units)


def checked_budgets(budgets: ArrayLike, count: int, why: str) -> Floats:
    """Return positive budgets, shape (count,), of a finite sum; `why` states the count."""
    checked = as_reals("budgets", budgets, above=0.0)
    if len(checked) != count:
        raise InvalidInput("budgets", f"{len(checked)} values", why)
    with np.errstate(over="ignore"):
        if not math.isfinite(checked.sum()):
            raise InvalidInput("budgets", float(checked.max()), "their sum must be finite")
    return checked


def nash_welfare(budgets: Floats, utilities: Floats) -> float:
    """Return ``sum_i B_i log U_i``, both of shape (N,); -inf if a utility is not positive."""
    return math.fsum(budgets * np.log(utilities)) if (utilities > 0).all() else -math.inf


def _entries(allocation: Any) -> Floats:
    """Return a view of the entries of an array, or of the stored entries of a sparse array."""
    return np.asarray(allocation if isinstance(allocation, np.ndarray) else allocation.data)


def _by_largest(values: Floats) -> Floats:
    """Return values divided by the largest, if that is positive."""
    most = values.max(initial=0.0)
    return np.asarray(values / most if most > 0 else values)
