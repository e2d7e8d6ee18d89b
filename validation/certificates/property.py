"""Properties as functions of (market, allocation, prices): each is written once, for a Reading of the three."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ...formulations.markets.market import Market
from .finding import Finding
from .market_state import Reading

EISENBERG_GALE = "Eisenberg and Gale 1959; Shockwave, Theorem C.1"


class Property(Protocol):
    """A property of a market's plan, to be asked of any allocation."""

    __name__: str

    def __call__(
        self, market: Market, allocation: Any, prices: ArrayLike | None = None, *, gap: float | None = None
    ) -> Finding:
        """Judge an allocation; parameters as of :class:`~equipoise.validation.certificates.market_state.Reading`."""
        ...


def judged(judge: Callable[[Reading], Finding]) -> Property:
    """Turn a judge of a Reading into a function of market, allocation and prices."""

    @wraps(judge, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def ask(market: Market, allocation: Any, prices: ArrayLike | None = None, *, gap: float | None = None) -> Finding:
        with np.errstate(all="ignore"):  # what absurd numbers come to is a violation, not a warning
            return judge(allocation if isinstance(allocation, Reading) else Reading(market, allocation, prices, gap))

    del ask.__wrapped__  # so that help() shows the parameters above
    return ask
