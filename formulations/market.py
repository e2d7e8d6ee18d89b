"""What all markets share: Nash welfare, the bound that prices prove, and the making of a sound equilibrium."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .checks import as_reals
from .equilibrium import Equilibrium
from .errors import InvalidInput
from .program import Floats, Residuals

# A wanted good that costs nothing proves nothing: this share of the mean worth of a good is the least price taken.
LEAST_PRICE = 1e-12


class Market(ABC):
    """Buyers with budgets share goods: maximise ``sum_i B_i log U_i`` over what the capacities allow.

    Every ``U_i`` is concave and homogeneous of degree one, so that the optimum is a market equilibrium and the prices
    are the duals of the capacities (Eisenberg and Gale, 1959; Shockwave, Theorem C.1).

    Attributes
    ----------
    budgets : ndarray of float, shape (N,)
    capacities : ndarray of float, shape of the prices
    """

    budgets: Floats
    capacities: Floats

    sense: ClassVar[str] = "max"

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name by which backends list it."""

    @property
    @abstractmethod
    def wanted(self) -> Any:
        """Whether any buyer wants a good, shape of the prices, bool."""

    @abstractmethod
    def utilities_at(self, allocation: Any) -> Floats:
        """Return every buyer's utility, shape (N,)."""

    @abstractmethod
    def unit_costs(self, prices: Floats) -> Floats:
        """Return the least money that buys each buyer one unit of utility, shape (N,)."""

    @abstractmethod
    def implied_prices(self, allocation: Any) -> Floats:
        """Return prices that the allocation alone suggests: those of the equilibrium if it is one."""

    @property
    def num_buyers(self) -> int:
        """N."""
        return len(self.budgets)

    @property
    def total_budget(self) -> float:
        """Return the sum of the budgets, B."""
        return math.fsum(self.budgets)

    def used(self, allocation: Any) -> Floats:
        """Return how much of each good is handed out, shape of the prices."""
        return np.asarray(allocation.sum(axis=0), dtype=np.float64)

    def spending_at(self, allocation: Any, prices: Floats) -> Floats:
        """Return what each buyer's goods cost, shape (N,)."""
        flat = allocation if allocation.ndim == 2 else allocation.reshape(len(allocation), -1)
        return np.asarray(flat @ prices.ravel())

    def welfare(self, utilities: Floats) -> float:
        """Return ``sum_i B_i log U_i`` for utilities, shape (N,); -inf if one of them is not positive."""
        if not (utilities > 0).all():
            return -math.inf
        return math.fsum(self.budgets * np.log(utilities))

    def normal_prices(self, prices: Floats) -> Floats:
        """Return the prices scaled so that all goods cost the sum of the budgets, none that is wanted for nothing."""
        prices = np.where(np.isfinite(prices) & (prices > 0), prices, 0.0) * self.wanted
        worth = prices * self.capacities
        most = worth.max(initial=0.0)
        shares = worth / most if most > 0 else np.zeros_like(worth)  # two steps: their sum cannot overflow
        total = shares.sum()
        if not total > 0:
            shares = np.where(self.wanted, 1.0, 0.0)
            total = shares.sum()
        shares = np.where(self.wanted, np.maximum(shares, LEAST_PRICE * total / shares.size), 0.0)
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
        """Return allocation and prices made sound: nothing negative, nothing beyond capacity, prices normal.

        Parameters
        ----------
        allocation : ndarray or csr_array of float, shape (N, K) or (N, J, T)
            Columns handed out beyond their capacity are scaled down to it.
        prices : ndarray of float, shape (K,) or (J, T), optional
            In any one unit; without them, those that the allocation implies.
        """
        entries = allocation if isinstance(allocation, np.ndarray) else allocation.data
        if entries.min(initial=0.0) < 0:
            allocation = allocation.copy()
            entries = allocation if isinstance(allocation, np.ndarray) else allocation.data
            np.maximum(entries, 0.0, out=entries)
        used = self.used(allocation)
        if (used > self.capacities).any():
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(used > self.capacities, self.capacities / used, 1.0)
            allocation = allocation * share if isinstance(allocation, np.ndarray) else (allocation * share).tocsr()
        prices = self.normal_prices(self.implied_prices(allocation) if prices is None else prices)
        return Equilibrium(
            allocation=allocation,
            prices=prices,
            spending=self.spending_at(allocation, prices),
            utilities=self.utilities_at(allocation),
        )

    def evaluate(self, plan: Equilibrium) -> tuple[float, Residuals]:
        """Return the allocation's Nash welfare and its worst violations, as shares of the capacities."""
        allocation = plan.allocation
        if allocation.shape != (self.num_buyers, *self.capacities.shape):
            raise InvalidInput("plan.allocation", allocation.shape, f"must have shape {self._shape_text()}")
        excess = (self.used(allocation) - self.capacities) / self.capacities
        entries = allocation if isinstance(allocation, np.ndarray) else allocation.data
        # The smallest entry, and only if that is negative by how much of its good's capacity.
        low = entries.min(initial=0.0)
        short = 0.0 if low >= 0 else float(-low / self.capacities.min())
        row = float(excess.max())
        worst = math.inf if math.isnan(low) or math.isnan(row) else 0.0
        return self.welfare(self.utilities_at(allocation)), Residuals(bound=max(short, worst), row=max(row, worst))

    def bound_of(self, plan: Equilibrium) -> float:
        """Return the bound that the plan's own prices prove (see `bound_at`)."""
        return self.bound_at(np.asarray(plan.prices, dtype=np.float64))

    def gap_scale(self, objective: float) -> float:
        """Return the sum of the budgets: at a gap g the geometric mean utility is within exp(-g) of the best."""
        return self.total_budget

    def _shape_text(self) -> str:
        return str((self.num_buyers, *self.capacities.shape))

    def _set_budgets(
        self, budgets: ArrayLike, capacities: ArrayLike | None, count: int, goods: tuple[int, ...]
    ) -> None:
        """Check budgets and capacities, and store them read-only."""
        checked = as_reals("budgets", budgets, above=0.0)
        if len(checked) != count:
            raise InvalidInput("budgets", f"{len(checked)} values", f"there are {count} buyers in the first dimension")
        if not math.isfinite(float(checked.sum())):
            raise InvalidInput("budgets", float(checked.max()), "their sum must be finite")
        object.__setattr__(self, "budgets", checked)
        if capacities is None:
            units = np.ones(goods)
            units.setflags(write=False)
        else:
            units = as_reals("capacities", capacities, above=0.0, shape=goods, ndim=len(goods))
        object.__setattr__(self, "capacities", units)
