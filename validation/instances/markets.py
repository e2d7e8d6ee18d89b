"""Random markets of any size, for benchmarks and for tests at scale: the same seed gives the same bits."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ...formulations.markets.fisher import FisherMarket
from ...formulations.markets.volatile import VolatileFisherMarket

MarketKind = Literal["uniform", "low_rank", "lognormal"]
KINDS: tuple[MarketKind, ...] = get_args(MarketKind)
# Low-rank utilities: few tastes that all buyers mix, so that many goods are nearly as good as the best.
TASTES = 3


def random_fisher_market(kind: MarketKind, buyers: int, goods: int, seed: int = 0) -> FisherMarket:
    """Return a linear market with dense utilities.

    Parameters
    ----------
    kind : {"uniform", "low_rank", "lognormal"}
        "uniform": utilities from (0, 1). "low_rank": products of three uniform tastes, with many near ties.
        "lognormal": exponentials of normal deviates.
    buyers, goods : int
    seed : int
    """
    if kind not in KINDS:
        raise InvalidInput("kind", kind, f"must be one of {', '.join(KINDS)}")
    buyers, goods = as_integer("buyers", buyers, minimum=1), as_integer("goods", goods, minimum=1)
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        utilities = rng.random((buyers, goods))
        np.subtract(1.0, utilities, out=utilities)
    elif kind == "low_rank":
        utilities = (1.0 - rng.random((buyers, TASTES))) @ (1.0 - rng.random((TASTES, goods)))
    else:
        utilities = rng.normal(size=(buyers, goods))
        np.exp(utilities, out=utilities)
    utilities.setflags(write=False)
    return FisherMarket(utilities, np.exp(0.5 * rng.normal(size=buyers)))


def random_leontief_market(buyers: int, resources: int, rounds: int, seed: int = 0) -> VolatileFisherMarket:
    """Return a Leontief market over rounds: needs are lognormal, and a fifth of them 0."""
    shape = tuple(
        as_integer(name, value, minimum=1)
        for name, value in (("buyers", buyers), ("resources", resources), ("rounds", rounds))
    )
    rng = np.random.default_rng(seed)
    requirements = np.exp(rng.normal(size=shape)) * (rng.random(shape) >= 0.2)
    unserved = ~requirements.any(axis=(1, 2))
    requirements[unserved, 0, 0] = 1.0
    return VolatileFisherMarket(
        requirements=requirements,
        budgets=np.exp(0.5 * rng.normal(size=buyers)),
        capacities=np.exp(0.5 * rng.normal(size=shape[1:])) * buyers / (resources * rounds),
        family="leontief",
    )
