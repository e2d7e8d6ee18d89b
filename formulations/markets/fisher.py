"""FisherMarket: buyers with budgets and linear utilities who share divisible goods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..checks import as_reals, refuse
from ..errors import InvalidInput
from ..program.builder import ProgramBuilder
from ..program.data import ProblemClass
from ..program.model import Program
from .equilibrium import Equilibrium
from .market import Market

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Entries per block in which the rows of a dense market are read: a block fits the processor's cache.
BLOCK_ENTRIES = 1 << 16


@dataclass(frozen=True, eq=False)
class FisherMarket(Market):
    """A Fisher market with linear utilities: maximise ``sum_i B_i log(sum_k u_ik x_ik)`` within the capacities.

    Parameters
    ----------
    utilities : array_like or scipy.sparse matrix of float, shape (N, K)
        Utility of one unit of each good to each buyer, at least 0; the unit may differ between buyers. Every buyer
        needs one positive entry. A read-only float array is kept as it is; anything else is copied.
    budgets : array_like of float, shape (N,)
        Money of each buyer, greater than 0.
    capacities : array_like of float, shape (K,), optional
        Units of each good, greater than 0; 1 by default.

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Notes
    -----
    The convex program of E. Eisenberg and D. Gale ("Consensus of subjective probabilities: the pari-mutuel method",
    Annals of Mathematical Statistics 30, 1959), and Eq. 4 of P. Zheng et al. ("Shockwave: Fair and Efficient Cluster
    Scheduling for Dynamic Adaptation in Machine Learning", NSDI 2023). At its optimum every buyer spends the whole
    budget, and only on goods of the most utility per money; every good in demand is sold out.

    Examples
    --------
    >>> import equipoise as eq
    >>> market = eq.FisherMarket(utilities=[[2.0, 1.0], [1.0, 3.0]], budgets=[1.0, 1.0])
    >>> plan = eq.solve(market, rel_gap=1e-8).require_optimal()
    >>> plan.allocation.round(3).tolist(), plan.prices.round(3).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    """

    utilities: Floats | csr_array
    budgets: Floats
    capacities: Floats = None  # type: ignore[assignment]  # ones, of the shape of a row

    reference: ClassVar[str] = "Eisenberg and Gale 1959; Shockwave, Eq. 4"
    forms = ("shares",)
    _declared_class = ProblemClass.LOG

    def __post_init__(self) -> None:
        utilities = _checked(self.utilities)
        object.__setattr__(self, "utilities", utilities)
        count, goods = utilities.shape
        self._set_budgets(self.budgets, self.capacities, count, (goods,))
        most = self.largest
        refuse("utilities", ~(most > 0), most, "the buyer needs a good of positive utility")
        with np.errstate(over="ignore"):
            all_goods = self._table @ self.capacities
        refuse("utilities", ~np.isfinite(all_goods), all_goods, "worth of all goods must be finite")

    @property
    def _table(self) -> Any:
        return self.utilities  # an array or a csr_array: no static type covers both

    @property
    def num_goods(self) -> int:
        """K."""
        return int(self._table.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether utilities, and with them allocations, are scipy.sparse.csr_array."""
        return not isinstance(self.utilities, np.ndarray)

    def program_size(self, form: str | None = None) -> int:
        """Return the number of entries of the program, without building it."""
        return 2 * (self._table.nnz if self.is_sparse else int(np.count_nonzero(self._table)))

    @cached_property
    def largest(self) -> Floats:
        """Each buyer's utility of the whole capacity of the buyer's best good, shape (N,)."""
        return self.best(self.capacities)

    @cached_property
    def in_demand(self) -> NDArray[np.bool_]:
        """Whether any buyer has demand for a good, shape (K,)."""
        if self.is_sparse:
            return np.bincount(self._table.indices, minlength=self.num_goods) > 0
        return np.asarray(self._table.max(axis=0) > 0)

    def best(self, factors: Floats) -> Floats:
        """Return ``max_k u_ik factors_k`` for finite factors, shape (N,)."""
        with np.errstate(over="ignore"):
            if self.is_sparse:
                entries = self._table.data * factors[self._table.indices]
                return _row_maxima(entries, self._table.indptr)
            return np.concatenate([(self._table[rows] * factors).max(axis=1) for rows in self.row_blocks()])

    def row_blocks(self) -> Iterator[slice]:
        """Yield the rows of a dense market in blocks that stay in the cache."""
        step = max(1, BLOCK_ENTRIES // max(1, self.num_goods))
        for start in range(0, self.num_buyers, step):
            yield slice(start, min(self.num_buyers, start + step))

    def utilities_at(self, allocation: Any) -> Floats:
        """Return every buyer's utility, shape (N,)."""
        if self.is_sparse or not isinstance(allocation, np.ndarray):
            product = self._table.multiply(allocation) if self.is_sparse else allocation.multiply(self._table)
            return np.asarray(product.sum(axis=1)).ravel()
        return np.asarray(np.einsum("ik,ik->i", self._table, allocation))

    def unit_costs(self, prices: Floats) -> Floats:
        """Return the least money that buys each buyer one unit of utility, ``min_k p_k / u_ik``, shape (N,)."""
        with np.errstate(divide="ignore", over="ignore"):
            amounts = np.where(self.in_demand, 1.0 / prices, 0.0)  # amounts that one unit of money buys
            free = np.isinf(amounts)
            costs = np.asarray(1.0 / self.best(np.where(free, 0.0, amounts)))
        return np.where(self.best(free.astype(np.float64)) > 0, 0.0, costs) if free.any() else costs

    def implied_prices(self, allocation: Any) -> Floats:
        """Return the better of two price vectors: ``max_i B_i u_ik / U_i``, or its mean over the holders of the good.

        At the first, buyers with these utilities gain nothing by buying more of any good. The second, ``sum_i
        (x_ik/c_k) B_i u_ik / U_i``, is robust to a small buyer whose utility is far from that of the equilibrium.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            rates = self.budgets / self.utilities_at(allocation)
        rates = np.where(np.isfinite(rates), rates, 0.0)
        highest, spent = np.zeros(self.num_goods), np.zeros(self.num_goods)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_sparse:
                slopes = self._table.multiply(rates[:, None]).tocsr()
                np.maximum.at(highest, slopes.indices, slopes.data)
                spent += np.asarray(slopes.multiply(allocation).sum(axis=0)).ravel()
            else:
                for rows in self.row_blocks():
                    block, got = self._table[rows] * rates[rows, None], allocation[rows]
                    np.maximum(highest, block.max(axis=0), out=highest)
                    spent += (block * (got if isinstance(got, np.ndarray) else got.toarray())).sum(axis=0)
        return min(highest, spent / self.capacities, key=self.bound_at)

    def program(self, form: str = "shares") -> Program:
        """Return the program of Eisenberg and Gale over the share of each good's capacity that each buyer gets.

        Only pairs of positive utility have a column. Inside the logarithms, utilities are divided by `largest`.
        """
        self.check_form(form)
        buyer, good, worth = self._pairs()
        build = ProgramBuilder(sense="max")
        share = build.add_columns("share", (len(buyer),))
        build.add_rows("capacity", (self.num_goods,), terms=[(good, share, 1.0)], upper=1.0)
        build.add_logs(self.budgets, terms=[(buyer, share, worth)])
        build.set_objective([], offset=math.fsum(self.budgets * np.log(self.largest)))
        return build.program(gap_unit=self.total_budget)

    def decode(self, values: Floats, duals: Floats | None = None, form: str = "shares") -> Equilibrium:
        """Turn column values of the program into an equilibrium, its prices the duals of the capacities."""
        self.check_form(form)
        return self._improve_prices(self.allocation_of(values), None if duals is None else duals / self.capacities)

    def encode(self, plan: Equilibrium, form: str = "shares") -> Floats:
        """Turn an equilibrium into column values of the program, for a warm start."""
        self.check_form(form)
        self.evaluate(plan)  # checks the shape
        return self.shares_of(plan.allocation)

    def allocation_of(self, values: Floats) -> Any:
        """Return column values of the program, shares of the capacities, as an allocation, shape (N, K)."""
        buyer, good, _ = self._pairs()
        amounts = self._floor_allocations(values, buyer) * self.capacities[good]
        if self.is_sparse:
            allocation = self._table.copy()
            allocation.data = amounts
        else:
            allocation = np.zeros(self._table.shape)
            allocation[buyer, good] = amounts
        return allocation

    def shares_of(self, allocation: Any) -> Floats:
        """Return an allocation, shape (N, K), as column values of the program."""
        buyer, good, _ = self._pairs()
        return np.asarray(allocation[buyer, good]).ravel() / self.capacities[good]

    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return, for each pair of positive utility: buyer, good, and utility of the capacity divided by `largest`."""
        if self.is_sparse:
            buyer = np.repeat(np.arange(self.num_buyers), np.diff(self._table.indptr))
            good, value = self._table.indices.astype(np.int64), self._table.data
        else:
            buyer, good = np.nonzero(self._table)
            value = self._table[buyer, good]
        return buyer, good, value * self.capacities[good] / self.largest[buyer]

    def __repr__(self) -> str:
        entries = f", {self._table.nnz} wanted pairs" if self.is_sparse else ""
        return f"<FisherMarket: {self.num_buyers} buyers, {self.num_goods} goods{entries}>"


def _checked(utilities: Any) -> Any:
    """Return utilities as a read-only array of floats or, if sparse, as a csr_array without stored zeros."""
    if hasattr(utilities, "tocsr"):
        from scipy.sparse import csr_array

        if np.dtype(utilities.dtype).kind not in "iuf":
            raise InvalidInput("utilities", utilities.dtype, "must be numbers")
        if len(utilities.shape) != 2:
            raise InvalidInput("utilities", f"array of shape {utilities.shape}", "must have 2 dimension(s)")
        sparse = csr_array(utilities, dtype=np.float64, copy=True)
        sparse.sum_duplicates()
        if not sparse.shape[0] or not sparse.shape[1]:
            raise InvalidInput("utilities", sparse.shape, "must not be empty")
        bad = ~(np.isfinite(sparse.data) & (sparse.data >= 0))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            row = int(np.searchsorted(sparse.indptr, at, side="right") - 1)
            why = "at least 0" if np.isfinite(sparse.data[at]) else "must be finite"
            raise InvalidInput("utilities", float(sparse.data[at]), why, index=(row, int(sparse.indices[at])))
        sparse.eliminate_zeros()
        for array in (sparse.data, sparse.indices, sparse.indptr):
            array.setflags(write=False)
        return sparse
    kept = isinstance(utilities, np.ndarray) and utilities.dtype == np.float64 and not utilities.flags.writeable
    if kept and utilities.ndim == 2 and utilities.size and utilities.min() >= 0 and utilities.max() < np.inf:
        return np.asarray(utilities)  # without a copy; a subclass of ndarray becomes an ndarray
    return as_reals("utilities", utilities, minimum=0.0, ndim=2)


def _row_maxima(entries: Floats, starts: NDArray[Any]) -> Floats:
    """Return the largest entry of each row of a CSR matrix, 0 where a row is empty."""
    if not len(entries):
        return np.zeros(len(starts) - 1)
    maxima = np.maximum.reduceat(np.append(entries, 0.0), starts[:-1])
    maxima[starts[:-1] == starts[1:]] = 0.0
    return np.asarray(maxima)
