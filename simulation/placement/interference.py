"""Interference of jobs that share GPUs: the protocol, none, and one ratio for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...formulations.checks import as_real
from .speeds import Running, Speeds


class Interference(Protocol):
    """Slowdown of a job by the jobs that share any of its GPUs."""

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the factor on the job's iteration time beside the others (at least one), at least 1."""
        ...


class ConstantInterference:
    """One ratio for every job that shares GPUs, however many share them.

    Parameters
    ----------
    value : float
        Factor on the iteration time, at least 1.
    """

    def __init__(self, value: float) -> None:
        self.value = as_real("interference", value, minimum=1.0)

    def ratio(self, mine: Running, others: Sequence[Running]) -> float:
        """Return the constant."""
        return self.value


class SharedSpeeds(NamedTuple):
    """Speeds of jobs alone, and the interference of jobs that share GPUs: one argument `speeds` for `simulate`."""

    speeds: Speeds
    interference: Interference
