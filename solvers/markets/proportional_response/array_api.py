"""Proportional response on arrays of any library (numpy, cupy, torch, jax), for markets too large for a table.

The array API standard gives the functions used (https://data-apis.org/array-api); torch, which does not offer its
namespace under the standard's name, has a small one here. Utilities stay where they are, on a GPU or not, and are read
in blocks of rows; prices, of which there are only as many as goods, come to the host after every round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_integer, as_real
from ....formulations.errors import InvalidInput
from ...backend import ignore_progress
from ...deadline import Deadline
from ...options import Options
from .bids import State
from .linear import VARIANTS, Variant, respond

# The logarithm of a utility of 0: finite in single precision too.
LOG_OF_ZERO = -1e30
# Rows are read in blocks of about this many entries: 0.5 GB for each of the few temporary arrays in double precision.
BLOCK_ENTRIES = 1 << 26


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayResponse:
    """Prices and utilities of a market, and the gap that they prove; the allocation is computed on request, row by row.

    Attributes
    ----------
    prices : array, shape (K,)
        Money per unit of a good; all goods together cost the sum of the budgets.
    utilities : array, shape (N,)
        Utility of each buyer at `allocation`.
    objective, bound : float
        ``sum_i B_i log U_i``, and the bound on it that the prices prove.
    gap : float
        (bound - objective) / sum B, in the precision of the arrays.
    rounds : int
    """

    prices: Any
    utilities: Any
    objective: float
    bound: float
    gap: float
    rounds: int
    _blocks: Blocks = field(repr=False)
    _state: State = field(repr=False)
    _sold: Floats = field(repr=False)

    def allocation(self, rows: slice | None = None) -> Any:
        """Return the allocation of these buyers, shape (rows, K); of all buyers by default."""
        start, stop, step = (rows or slice(None)).indices(self._blocks.count)
        if step != 1:
            raise InvalidInput("rows", rows, "must be a slice of step 1")
        return self._blocks.amounts(slice(start, stop), self._state, self._sold)


def proportional_response(
    utilities: Any,
    budgets: Any,
    capacities: Any = None,
    *,
    rel_gap: float = 1e-3,
    max_rounds: int = 5_000,
    time_limit: float | None = None,
    variant: Variant = "accelerated",
    block_entries: int = BLOCK_ENTRIES,
) -> ArrayResponse:
    """Solve a linear Fisher market given as arrays of one library, on any device.

    Parameters
    ----------
    utilities : array, shape (N, K), or pair of arrays, shapes (N, R) and (R, K)
        At least 0; every buyer wants something. A pair (F, G) stands for ``F @ G``, whose rows are computed when they
        are needed. Sparse matrices are not taken: the standard has no sum by index (`solve` takes scipy's).
    budgets : array, shape (N,)
        Greater than 0.
    capacities : array, shape (K,), optional
        Greater than 0; 1 by default.
    rel_gap : float
        Stop at this gap. Single precision ends near 1e-6.
    max_rounds : int
        Stop after so many rounds, each of which reads all utilities.
    time_limit : float or None
        Seconds; the last round is ended.
    variant : {"accelerated", "plain"}
        As in the backend.
    block_entries : int
        Utilities read at once; a few temporary arrays have this size.

    Returns
    -------
    ArrayResponse

    Raises
    ------
    InvalidInput
        If shapes do not fit, a number is out of range, or a buyer wants nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.solvers.markets.proportional_response.array_api import proportional_response
    >>> found = proportional_response(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 1.0]), rel_gap=1e-6)
    >>> found.prices.round(3).tolist(), found.gap <= 1e-6
    ([1.0, 1.0], True)
    """
    if variant not in VARIANTS:
        raise InvalidInput("variant", variant, f"must be one of {', '.join(VARIANTS)}")
    as_real("rel_gap", rel_gap, minimum=0.0)
    as_integer("max_rounds", max_rounds, minimum=0)
    deadline = Deadline.of(Options(time_limit=time_limit))
    blocks = Blocks(utilities, budgets, capacities, as_integer("block_entries", block_entries, minimum=1))
    outcome = respond(
        blocks, State(1.0, np.zeros(blocks.goods)), variant=variant, gap=rel_gap, deadline=deadline,
        max_rounds=max_rounds, report=ignore_progress,
    )  # fmt: skip
    state, sold = outcome.shares
    return ArrayResponse(
        prices=blocks.there(outcome.prices * blocks.total) / blocks.capacities,
        utilities=blocks.utilities_at(state, sold),
        objective=blocks.total * outcome.welfare + blocks.offset,
        bound=blocks.total * outcome.bound + blocks.offset,
        gap=max(0.0, outcome.gap),
        rounds=outcome.rounds,
        _blocks=blocks,
        _state=state,
        _sold=sold,
    )


class Blocks:
    """All goods of a market, in blocks of rows: the operations of `respond`, on arrays of any library."""

    def __init__(self, utilities: Any, budgets: Any, capacities: Any, block_entries: int) -> None:
        self.factors = utilities if isinstance(utilities, tuple) else None
        first, last = self.factors if self.factors else (utilities, utilities)
        self.xp: Any = namespace_of(first)
        if len(first.shape) != 2 or len(last.shape) != 2 or 0 in (*first.shape, *last.shape):
            raise InvalidInput("utilities", tuple(first.shape), "must have two dimensions, and entries")
        if self.factors and first.shape[1] != last.shape[0]:
            raise InvalidInput("utilities", (tuple(first.shape), tuple(last.shape)), "the factors do not fit")
        for each in (first, last):
            if "float" not in str(each.dtype):  # the name of the data type in all of these libraries
                raise InvalidInput("utilities", str(each.dtype), "must be an array of floats")
        self.table, self.count, self.goods = utilities, int(first.shape[0]), int(last.shape[1])
        self.step = max(1, block_entries // self.goods)
        self._like = last[0, :]
        self.capacities = self.there(np.ones(self.goods)) if capacities is None else capacities
        for name, given, size in (("budgets", budgets, self.count), ("capacities", self.capacities, self.goods)):
            shape = getattr(given, "shape", type(given).__name__)
            if shape != (size,):
                raise InvalidInput(name, shape, f"must be an array of shape {(size,)}")
        for name, given in (("budgets", budgets), ("capacities", self.capacities)):
            values = host(given)
            bad = ~((values > 0) & np.isfinite(values))
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                raise InvalidInput(name, float(values[at]), "must be finite and greater than 0", index=at)
        money = host(budgets).astype(np.float64)
        self.total = math.fsum(money)
        self.budgets = self.there(money / self.total)
        self.largest = self._checked_largest()
        self.offset = math.fsum(money * (np.log(host(self.largest).astype(np.float64)) + np.log(money / self.total)))

    def there(self, values: Floats) -> Any:
        """Return numbers of the host as an array of the utilities' library, device and precision."""
        made = self.xp.asarray(np.ascontiguousarray(values), dtype=self._like.dtype)
        device = getattr(self._like, "device", None)
        return made if device is None or getattr(made, "device", device) == device else made.to(device)

    def rows(self) -> Iterator[slice]:
        """Yield the blocks of rows."""
        for start in range(0, self.count, self.step):
            yield slice(start, min(self.count, start + self.step))

    def worth(self, rows: slice) -> Any:
        """Return the utility of each good's capacity to some buyers, shape (rows, K)."""
        if self.factors:
            return (self.factors[0][rows, :] @ self.factors[1]) * self.capacities
        return self.table[rows, :] * self.capacities

    def _checked_largest(self) -> Any:
        xp, found = self.xp, []
        for rows in self.rows():
            worth = self.worth(rows)
            best = host(xp.max(worth, axis=1))
            if not bool(xp.all(worth >= 0)) or not np.isfinite(best).all():
                raise InvalidInput("utilities", f"rows {rows.start} to {rows.stop}", "must be finite and at least 0")
            if not (best > 0).all():
                index = rows.start + int(np.flatnonzero(~(best > 0))[0])
                raise InvalidInput("utilities", 0.0, "the buyer wants nothing", index=index)
            found.append(best)
        return self.there(np.concatenate(found))

    def _logs(self, rows: slice) -> Any:
        """Return logarithms of utilities over each buyer's best."""
        xp = self.xp
        worth = self.worth(rows) / self.largest[rows, None]
        wanted = worth > 0
        return xp.where(wanted, xp.log(xp.where(wanted, worth, worth * 0 + 1)), worth * 0 + LOG_OF_ZERO)

    def _bids(self, logs: Any, rows: slice, state: State) -> Any:
        """Return bids, shape (rows, K)."""
        xp = self.xp
        powers = state.theta * logs - self.there(state.weights)
        powers = xp.exp(powers - xp.max(powers, axis=1, keepdims=True))
        return powers * (self.budgets[rows] / xp.sum(powers, axis=1))[:, None]

    def respond(self, state: State) -> tuple[Floats, float]:
        """Let every buyer bid; return the prices on the host, and ``sum b log u``."""
        prices, linear = np.zeros(self.goods), 0.0
        for rows in self.rows():
            logs = self._logs(rows)
            bids = self._bids(logs, rows, state)
            prices += host(self.xp.sum(bids, axis=0))
            linear += float(self.xp.sum(bids * logs))
        return prices, linear

    def bound_and_welfare(self, state: State, log_prices: Floats) -> tuple[float, float]:
        """Return (bound, welfare) of the bids at the prices that they make."""
        xp, bound, welfare = self.xp, 0.0, 0.0
        there = self.there(log_prices)
        for rows in self.rows():
            logs = self._logs(rows)
            gains = logs - there
            best = xp.max(gains, axis=1)
            parts = xp.sum(self._bids(logs, rows, state) * xp.exp(gains - best[:, None]), axis=1)
            budgets = self.budgets[rows]
            bound += float(xp.sum(budgets * best))
            welfare += float(xp.sum(budgets * (best + xp.log(parts / budgets))))
        return bound, welfare

    def bound(self, log_prices: Floats) -> float:
        """Return the bound that prices prove."""
        there = self.there(log_prices)
        return math.fsum(
            float(self.xp.sum(self.budgets[rows] * self.xp.max(self._logs(rows) - there, axis=1)))
            for rows in self.rows()
        )

    def narrowed(self, state: State, log_prices: Floats, most: float) -> None:
        """Return None: lists need sums by index, which the standard lacks."""

    def shares(self, state: State, prices: Floats) -> tuple[State, Floats]:
        """Return the state that the shares follow from."""
        return state, prices

    def amounts(self, rows: slice, state: State, sold: Floats) -> Any:
        """Return the allocation of some buyers, shape (rows, K)."""
        return self._bids(self._logs(rows), rows, state) * (self.capacities / self.there(sold))

    def utilities_at(self, state: State, sold: Floats) -> Any:
        """Return every buyer's utility, shape (N,)."""
        shares = 1.0 / self.there(sold)
        found = []
        for rows in self.rows():
            logs = self._logs(rows)
            bids = self._bids(logs, rows, state) * shares
            found.append(host(self.xp.sum(bids * self.worth(rows), axis=1)))
        return self.there(np.concatenate(found))


def namespace_of(array: Any) -> Any:
    """Return the functions of an array's library under the names of the array API standard."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    if isinstance(array, np.ndarray):
        return np  # before numpy 2: the functions used here have the standard's names already
    if type(array).__module__.partition(".")[0] == "torch":
        return _Torch()
    raise InvalidInput("utilities", type(array).__name__, "must be an array of the array API standard, or of torch")


def host(array: Any) -> Floats:
    """Return an array as one of numpy, fetched from its device."""
    if hasattr(array, "get"):  # cupy
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


class _Torch:
    """The functions of torch under the names of the standard; most have the same."""

    def __init__(self) -> None:
        self._torch: Any = import_module("torch")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)

    def max(self, array: Any, axis: int, keepdims: bool = False) -> Any:
        return self._torch.amax(array, dim=axis, keepdim=keepdims)

    def sum(self, array: Any, axis: int | None = None) -> Any:
        return self._torch.sum(array) if axis is None else self._torch.sum(array, dim=axis)
