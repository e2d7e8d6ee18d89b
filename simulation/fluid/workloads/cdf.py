"""Distributions of sizes and demands, as tables of their cumulative distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_integer, as_reals, refuse, same_length, store_checked
from ....formulations.errors import InvalidInput
from ....formulations.text import nearest_hint
from ...delimited_files import read_rows

#: Seconds in each unit of time.
TIMES = {"secs": 1.0, "minutes": 60.0, "hours": 3600.0}
#: Units of what is counted.
COUNTS = ("gpus-per-job", "jobs")
_UNITS = (*TIMES, *COUNTS)

# Files round their shares.
_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Cdf:
    """Cumulative distribution function as a table: so large a share of the values is at most this.

    Parameters
    ----------
    values : array_like of float, shape (R,)
        Values in `unit`, at least 0, ascending; equal neighbours make a step.
    cdf : array_like of float, shape (R,)
        Share of each value, from 0 to 1, ascending, the last one 1.
    unit : str
        "secs", "minutes" or "hours" of times; "gpus-per-job" or "jobs" of counts.

    Raises
    ------
    InvalidInput
        If a column falls or is out of range, the last share is not 1, or the unit is unknown.
    """

    values: Floats
    cdf: Floats
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise InvalidInput("unit", self.unit, f"{nearest_hint(self.unit, _UNITS)}the units are {', '.join(_UNITS)}")
        store_checked(self, as_reals, "values", minimum=0.0)
        store_checked(self, as_reals, "cdf", minimum=0.0, maximum=1.0)
        same_length(values=self.values, cdf=self.cdf)
        for name in ("values", "cdf"):
            column: Floats = getattr(self, name)
            fallen = np.append(False, np.diff(column) < 0.0)
            refuse(name, fallen, column, "must ascend: it is less than the one before it")
        if self.cdf[-1] < 1.0 - _TOLERANCE:
            raise InvalidInput("cdf", float(self.cdf[-1]), "the last one must be 1", index=len(self.cdf) - 1)

    @classmethod
    def read(cls, path: str | Path) -> Cdf:
        """Read a CSV of two columns, value and cdf, whose header is the unit after a # and cdf, such as "#minutes,cdf".

        Raises
        ------
        InvalidInput
            If the file cannot be read, its unit is unknown, or the table is no distribution; the message names file and
            line.
        """
        path = Path(path)
        rows = list(read_rows(path, ("cdf",)))
        if not rows:
            raise InvalidInput("path", str(path), "the file holds no row")
        header = list(rows[0].cells)
        if len(header) != 2 or header[1] != "cdf":
            raise InvalidInput("header", ",".join(header), f'must be such as "#minutes,cdf" ({path.name})')
        values = [row.real(header[0], minimum=0.0) for row in rows]
        shares = [row.real("cdf", minimum=0.0) for row in rows]
        try:
            return cls(values=np.array(values), cdf=np.array(shares), unit=header[0].removeprefix("#").strip())
        except InvalidInput as error:
            place = path.name if error.index is None else rows[error.index[0]].location
            raise InvalidInput(error.field, error.value, f"{error.why} ({place})") from None

    @property
    def is_time(self) -> bool:
        """Whether the values are times."""
        return self.unit in TIMES

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw values, times in seconds, shape (count,).

        Each takes u, v ~ U(0, 1): the first row with u <= cdf, then, from the value of the row before (for the first
        row, its own) to that of the row, the fraction v of the way, rounded down to a whole number of the unit, at
        least 1. Source: the generator of PCS (A. Bin Faisal et al., OSDI 2024).
        """
        number = as_integer("count", count, minimum=0)
        row = np.searchsorted(self.cdf, rng.random(number), side="left")
        # Above a last share of slightly less than 1 there is no other row.
        row = np.minimum(row, len(self.cdf) - 1)
        low, high = self.values[np.maximum(row - 1, 0)], self.values[row]
        low = np.where(row == 0, high, low)
        whole = np.maximum(1.0, np.floor(low + rng.random(number) * (high - low)))
        return np.asarray(whole * TIMES.get(self.unit, 1.0))
