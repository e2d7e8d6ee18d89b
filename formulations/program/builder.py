"""ProgramBuilder: columns by name and shape, rows as (row, column, coefficient) arrays that broadcast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Floats, Indices
from ..checks import as_real, refuse
from ..errors import InvalidInput
from .data import NO_ROWS, Csr, Sense
from .model import Program

Term = tuple[ArrayLike, ArrayLike, ArrayLike]


class ProgramBuilder:
    """Collect columns, rows and an objective; :meth:`program` checks them once.

    Parameters
    ----------
    sense : {"max", "min"}

    Examples
    --------
    >>> import numpy as np
    >>> import equipoise as eq
    >>> build = eq.ProgramBuilder(sense="max")
    >>> admit = build.add_binaries("admit", shape=(3,))
    >>> capacity = build.add_rows("capacity", shape=(1,), terms=[(0, admit, [4, 2, 2])], upper=5)
    >>> build.set_objective([(admit, [5.0, 3.0, 3.0])])
    >>> build.program()
    <Program MILP (max): 3 columns (3 integer), 1 rows, 3 entries>
    """

    def __init__(self, sense: Sense) -> None:
        if sense not in ("max", "min"):
            raise InvalidInput("sense", sense, "must be 'max' or 'min'")
        self._sense: Sense = sense
        self._num_columns = 0
        self._num_rows = 0
        self._num_logs = 0
        self._columns: dict[str, Indices] = {}
        self._rows: dict[str, Indices] = {}
        self._column_data: list[tuple[Floats, Floats, np.ndarray]] = []
        self._row_data: list[tuple[Floats, Floats]] = []
        self._entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._log_data: list[tuple[Floats, Floats]] = []
        self._log_entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._costs: list[tuple[np.ndarray, np.ndarray]] = []
        self._offset = 0.0

    def add_columns(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: ArrayLike = False,
    ) -> Indices:
        """Add a block of columns; return their indices, of the given shape. `lower` and `upper` broadcast."""
        index = self._new_block(self._columns, name, shape, self._num_columns)
        low, high = _interval(name, lower, upper, shape)
        whole = _spread(f"{name}.integer", integer, shape).astype(bool)
        self._column_data.append((low, high, whole))
        self._num_columns += index.size
        self._columns[name] = index
        return index

    def add_binaries(self, name: str, shape: tuple[int, ...], *, upper: ArrayLike = 1.0) -> Indices:
        """Add a block of 0/1 columns; an `upper` of 0 fixes a column to 0."""
        return self.add_columns(name, shape, lower=0.0, upper=upper, integer=True)

    def add_rows(
        self,
        name: str,
        shape: tuple[int, ...],
        *,
        terms: Iterable[Term],
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
    ) -> Indices:
        """Add a block of rows ``lower <= sum of terms <= upper``; return their indices, of the given shape.

        Parameters
        ----------
        terms : iterable of (row, column, coefficient)
            Arrays that broadcast against each other. `row` is the index within the block, in C order; `column` holds
            indices returned by `add_columns`. Entries of the same row and column add up.
        """
        index = self._new_block(self._rows, name, shape, self._num_rows)
        low, high = _interval(name, lower, upper, shape)
        self._entries += [self._entry(name, term, index.size, self._num_rows) for term in terms]
        self._num_rows += index.size
        self._row_data.append((low, high))
        self._rows[name] = index
        return index

    def add_logs(self, weights: ArrayLike, *, terms: Iterable[Term], offsets: ArrayLike = 0.0) -> None:
        """Add ``sum_k weights[k] * log(a_k @ x + offsets[k])`` to a maximised objective; terms as in `add_rows`."""
        if self._sense != "max":
            raise InvalidInput("sense", self._sense, "log terms are concave: sense must be 'max'")
        weight = np.atleast_1d(np.asarray(weights, dtype=np.float64)).ravel()
        refuse("weights", ~(weight >= 0) | np.isinf(weight), weight, "log weights must be finite and at least 0")
        offset = _spread("offsets", offsets, weight.shape)
        refuse("offsets", ~np.isfinite(offset), offset, "must be finite")
        self._log_entries += [self._entry("logs", term, weight.size, self._num_logs) for term in terms]
        self._num_logs += weight.size
        self._log_data.append((weight, offset))

    def set_objective(self, terms: Iterable[tuple[ArrayLike, ArrayLike]], offset: float = 0.0) -> None:
        """Set the linear objective from (column, coefficient) arrays that broadcast; replaces any earlier one."""
        entries = [self._entry("objective", (0, columns, coefficients), 1, 0) for columns, coefficients in terms]
        self._offset = as_real("offset", offset)
        self._costs = [(columns, coefficients) for _, columns, coefficients in entries]

    def program(self, gap_unit: float | None = None) -> Program:
        """Return the checked, immutable program; `gap_unit` as in :class:`Program`."""
        if gap_unit is not None:
            gap_unit = as_real("gap_unit", gap_unit, above=0.0)
        lower, upper, integer = _joined(self._column_data, 3)
        row_lower, row_upper = _joined(self._row_data, 2)
        log_weights, log_offsets = _joined(self._log_data, 2)
        columns, costs = _joined(self._costs, 2)
        costs = np.bincount(columns.astype(np.int64), weights=costs, minlength=self._num_columns)
        arrays: dict[str, Any] = {
            "objective": costs.astype(np.float64),
            "lower": lower,
            "upper": upper,
            "integer": integer.astype(bool),
            "row_lower": row_lower,
            "row_upper": row_upper,
            "log_weights": log_weights,
            "log_offsets": log_offsets,
        }
        matrix, log_matrix = self._csr(self._entries, self._num_rows), self._csr(self._log_entries, self._num_logs)
        for array in [*arrays.values(), *vars(matrix).values(), *vars(log_matrix).values()]:
            array.setflags(write=False)
        return Program(
            sense=self._sense,
            **arrays,
            matrix=matrix,
            offset=self._offset,
            log_matrix=log_matrix,
            columns=dict(self._columns),
            rows=dict(self._rows),
            gap_unit=gap_unit,
        )

    def _new_block(self, blocks: dict[str, Indices], name: str, shape: tuple[int, ...], start: int) -> Indices:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput("name", name, "a block's name must be an identifier")
        if name in blocks:
            raise InvalidInput("name", name, "a block of this name exists already: choose another name")
        if any(size < 0 for size in shape):
            raise InvalidInput(f"{name}.shape", shape, "sizes must be at least 0")
        index = np.arange(start, start + int(np.prod(shape)), dtype=np.int64).reshape(shape)
        index.setflags(write=False)
        return index

    def _entry(self, name: str, term: Term, rows: int, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        row, column, value = (np.asarray(part) for part in term)
        try:
            row, column, value = np.broadcast_arrays(row, column, value)
        except ValueError:
            raise InvalidInput(name, (row.shape, column.shape, value.shape), "terms do not broadcast") from None
        value = value.ravel().astype(np.float64)
        refuse(name, ~np.isfinite(value), value, "coefficients must be finite")
        for part, count, what in ((row, rows, "row"), (column, self._num_columns, "column")):
            if part.size and (part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= count):
                raise InvalidInput(name, what, f"{what} indices must be whole numbers in [0, {count})")
        return row.ravel() + start, column.ravel(), value

    def _csr(self, entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]], rows: int) -> Csr:
        if not entries:
            return Csr(np.zeros(rows + 1, dtype=np.int64), NO_ROWS.columns, NO_ROWS.values) if rows else NO_ROWS
        from scipy.sparse import coo_array

        row, column, value = _joined(entries, 3)
        matrix = coo_array((value, (row, column)), shape=(rows, self._num_columns)).tocsr()
        matrix.sum_duplicates()
        return Csr(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)


def _joined(parts: list, count: int) -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    if not parts:
        return tuple(np.zeros(0) for _ in range(count))
    return tuple(np.concatenate([part[i] for part in parts]) for i in range(count))


def _spread(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), shape).ravel()
    except (ValueError, TypeError):
        raise InvalidInput(name, value, f"must be numbers that broadcast to shape {shape}") from None


def _interval(name: str, lower: ArrayLike, upper: ArrayLike, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    low, high = _spread(f"{name}.lower", lower, shape), _spread(f"{name}.upper", upper, shape)
    bad = ~(low <= high) | (low == np.inf) | (high == -np.inf)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InvalidInput(name, (float(low[at]), float(high[at])), "lower must not exceed upper", index=at)
    return low, high
