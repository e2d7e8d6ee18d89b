"""The decorator `property_check`: it turns a check of a MarketState into a function of market, allocation, prices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.markets.market import Market
from .check_result import CheckResult
from .market_state import MarketState

EISENBERG_GALE = "Eisenberg and Gale 1959; Shockwave, Theorem C.1"


class Property(Protocol):
    """A property of an equilibrium that can be checked on any allocation."""

    __name__: str

    def __call__(
        self, market: Market, allocation: Any, prices: ArrayLike | None = None, *, gap: float | None = None
    ) -> CheckResult:
        """Check an allocation, with the parameters of :class:`.market_state.MarketState`."""
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
