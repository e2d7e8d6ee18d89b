"""Distribution of the service that jobs need, and the Gittins index of a job under it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np

from ...formulations.checks import as_reals
from ...formulations.errors import InvalidInput


class ServiceDistribution:
    """Service S of a job as a discrete distribution.

    Parameters
    ----------
    values : iterable of number
        Service in GPU-seconds, positive, in any order; those of past jobs are their empirical distribution.
    weights : iterable of number, optional
        Weights of the values, positive: probabilities, or counts of jobs. Equal by default.

    Raises
    ------
    InvalidInput
        If there is no value, a number is not positive and finite, or there are not as many weights as values.

    Notes
    -----
    All results are exact for numbers of an exact type (`int`, `Fraction`).
    """

    def __init__(self, values: Iterable[Any], weights: Iterable[Any] | None = None) -> None:
        services = _plain("values", values)
        masses = [1] * len(services) if weights is None else _plain("weights", weights)
        if len(masses) != len(services):
            raise InvalidInput("weights", f"{len(masses)} weights", f"there are {len(services)} values")
        pairs = sorted(zip(services, masses, strict=True))
        self.values = [value for value, _ in pairs]
        self.weights = [weight for _, weight in pairs]
        # Sums over the first k values: of the weights, and of weight times value.
        self._mass = list(accumulate(self.weights, initial=0))
        self._moment = list(accumulate((weight * value for value, weight in pairs), initial=0))

    def completion(self, attained: Any, quantum: Any = inf) -> tuple[Any, Any]:
        """Return two moments of the jobs that need more than the attained service a, for a quantum d > 0.

        These are the weight of those that end within the quantum, S - a <= d, and the service that all of them receive
        in it, the weighted sum of min(S - a, d).
        """
        first = bisect_right(self.values, attained)
        last = bisect_right(self.values, attained + quantum, first)
        return self._completion(attained, first, last, quantum)

    def _completion(self, attained: Any, first: int, last: int, quantum: Any) -> tuple[Any, Any]:
        """Return the moments; the values from `first` on exceed `attained`, those before `last` end in the quantum."""
        ending = self._mass[last] - self._mass[first]
        longer = self._mass[-1] - self._mass[last]
        service = self._moment[last] - self._moment[first] - attained * ending
        return ending, service + quantum * longer if longer else service

    def index(self, attained: Any, quantum: Any = None) -> Any:
        """Return the Gittins index of a job with this attained service, per GPU-second.

        It is P(S - a <= d | S > a) / E[min(S - a, d) | S > a] for the quantum d, or its supremum over all quanta if
        `quantum` is None, which some value of the distribution attains. It is 0 if no value exceeds `attained`.
        """
        if quantum is not None:
            ending, service = self.completion(attained, quantum)
            return ending / service if ending else 0
        first = bisect_right(self.values, attained)
        best: Any = 0
        for last in range(first + 1, len(self.values) + 1):
            ending, service = self._completion(attained, first, last, self.values[last - 1] - attained)
            best = max(best, ending / service)
        return best


def _plain(name: str, numbers: Iterable[Any]) -> list[Any]:
    """Return numbers as a list of Python numbers, after checks."""
    found = numbers.tolist() if isinstance(numbers, np.ndarray) else list(numbers)
    as_reals(name, found, above=0.0)
    return found
