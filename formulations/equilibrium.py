"""Equilibrium: what every buyer of a market gets, and the prices at which nobody wants anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .program import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True, eq=False)
class Equilibrium:
    """Allocation and prices of a market; how near to an equilibrium they are is what `bound` and `certify` say.

    Attributes
    ----------
    allocation : ndarray of float, shape (N, K) or (N, J, T); csr_array, shape (N, K), for a sparse market
        Amount of each good that each buyer gets, in the unit of the capacities.
    prices : ndarray of float, shape (K,) or (J, T)
        Money per unit of a good, scaled so that all goods together cost what all budgets hold.
    spending : ndarray of float, shape (N,)
        What each buyer's goods cost at the prices.
    utilities : ndarray of float, shape (N,)
        Recomputed from the allocation and the market's data.
    """

    allocation: Floats | csr_array
    prices: Floats
    spending: Floats
    utilities: Floats

    def __repr__(self) -> str:
        return f"<Equilibrium: {len(self.spending)} buyers, {self.prices.size} goods>"
