"""Own options of the searches: limits, the size of the front, and what a method adds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput

#: Evaluations of a search that is given neither their number nor a time limit: 19 generations of 70.
DEFAULT_EVALUATIONS = 1330
#: Vectors of a population, or of a batch of a method without one.
POPULATION = 70
#: Options of all searches.
LIMITS = frozenset({"evaluations", "hypervolume", "stall", "front_size", "checkpoint"})


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Own options of one search, checked.

    Attributes
    ----------
    evaluations : int or None
        Number of vectors to score, those of starts and warm start included; None: no limit.
    hypervolume : float
        Hypervolume at which to stop; infinite for none.
    stall : float
        Evaluations without a greater hypervolume after which to stop; infinite for none.
    front_size : int
        Most points of the front.
    population : int
    distances : {"normalised", "raw"}
        Units of the distances between scores.
    checkpoint : path-like or None
    """

    evaluations: int | None
    hypervolume: float = math.inf
    stall: float = math.inf
    front_size: int = 100
    population: int = POPULATION
    distances: str = "normalised"
    checkpoint: Any = None

    @classmethod
    def of(cls, name: str, own: Mapping[str, Any], time_limit: float | None) -> SearchSettings:
        """Return the settings of a backend of this name; InvalidInput, naming the option, for a bad value."""
        checked = dict(own)
        least = {"evaluations": 1, "stall": 1, "front_size": 1, "population": 4}
        for option, value in own.items():
            field = f"backend_options[{name!r}][{option!r}]"
            if option in least:
                checked[option] = as_integer(field, value, minimum=least[option])
            elif option == "hypervolume":
                checked[option] = as_real(field, value, above=0.0, maximum=1.0)
            elif option == "distances" and value not in ("normalised", "raw"):
                raise InvalidInput(field, value, 'must be "normalised" or "raw"')
        checked.setdefault("evaluations", DEFAULT_EVALUATIONS if time_limit is None else None)
        return cls(**checked)
