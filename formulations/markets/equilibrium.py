"""Equilibrium: allocation and prices of a market, with each buyer's spending and utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd
    from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True, eq=False)
class Equilibrium:
    """Allocation and prices of a market; `bound` and `certify` measure how near to an equilibrium they are.

    Attributes
    ----------
    allocation : ndarray of float, shape (N, K) or (N, J, T); csr_array, shape (N, K), for a sparse market
        Amount of each good that each buyer gets, in the unit of the capacities.
    prices : ndarray of float, shape (K,) or (J, T)
        Money per unit of a good, scaled so that all goods together cost the sum of the budgets.
    spending : ndarray of float, shape (N,)
        Cost of each buyer's goods at the prices.
    utilities : ndarray of float, shape (N,)
        Utility of each buyer, recomputed from the allocation and the market's data.
    """

    allocation: Floats | csr_array
    prices: Floats
    spending: Floats
    utilities: Floats

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each positive amount of a good: buyer, good (or resource, round), amount, cost."""
        import pandas as pd

        allocation: Any = self.allocation
        index = allocation.nonzero()
        amount = np.asarray(allocation[index]).ravel()
        names = ("buyer", "good") if self.prices.ndim == 1 else ("buyer", "resource", "round")
        columns = {**dict(zip(names, index, strict=True)), "amount": amount, "cost": amount * self.prices[index[1:]]}
        return pd.DataFrame(columns)

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return prices and allocation as one picture (SVG), over rounds or over goods; write it to `path` if given."""
        from ..files import written
        from ..plotting.allocation import picture

        return written(picture(self.allocation, self.prices, self.spending), path)

    def _repr_svg_(self) -> str:
        return self.to_svg()  # notebooks display it

    def __repr__(self) -> str:
        return f"<Equilibrium: {len(self.spending)} buyers, {self.prices.size} goods>"
