"""Data of a stochastic market: chains, budgets, capacities, and their decision processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Floats
from ...checks import as_integer, as_real, as_reals, store_checked
from ...errors import InvalidInput
from ..market import checked_budgets, nash_welfare
from .chain import JobChain
from .process import Process, joint_process, own_process

MOST_ROUNDS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class StochasticData:
    """N jobs that are finite Markov chains, with budgets, and the capacities that they share over T rounds.

    The fields are those of :class:`StochasticMarket`, which describes them.
    """

    chains: tuple[JobChain, ...]
    budgets: Floats
    capacities: Floats
    rounds: int

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "chains", _checked_chains(self.chains))
        store_checked(self, as_integer, "rounds", minimum=1, maximum=MOST_ROUNDS)
        count = len(self.chains)
        put(self, "budgets", checked_budgets(self.budgets, count, f"there are {count} chains"))
        put(self, "capacities", _checked_capacities(self.capacities, self.num_resources, self.rounds))
        with np.errstate(over="ignore", invalid="ignore"):
            alone = self.best_alone
        for job in np.flatnonzero(~((alone > 0) & np.isfinite(alone))):
            none = not alone[job] > 0
            why = "has no positive utility even without other jobs" if none else "its utilities are too large"
            raise InvalidInput("chains", self.chains[job], why, index=int(job))

    @property
    def num_resources(self) -> int:
        """J."""
        return int(self.chains[0].demands.shape[1])

    @property
    def total_budget(self) -> float:
        """Return the sum of the budgets, B."""
        return math.fsum(self.budgets)

    @property
    def capacity_units(self) -> Floats:
        """The unit of use beyond capacity: the capacity, or 1 if the capacity is 0; shape (J, T)."""
        return np.where(self.capacities > 0, self.capacities, 1.0)

    @cached_property
    def best_alone(self) -> Floats:
        """Greatest expected utility of each job without the others, shape (N,)."""
        return np.array([process.best_alone() for process in self._own_processes])

    @cached_property
    def _own_processes(self) -> tuple[Process, ...]:
        return tuple(own_process(chain, job, self.capacities) for job, chain in enumerate(self.chains))

    @cached_property
    def _joint_processes(self) -> tuple[Process, ...]:
        return (joint_process(self.chains, self.capacities),)

    def processes(self, form: str = "decoupled") -> tuple[Process, ...]:
        """Return the processes of a form, one for each job or a joint one; UnsupportedProblem if that is too large."""
        return self._joint_processes if form.startswith("joint") else self._own_processes

    def welfare(self, utilities: Floats) -> float:
        """Return ``sum_i B_i log U_i`` for utilities, shape (N,); -inf if one of them is not positive."""
        return nash_welfare(self.budgets, utilities)


def _checked_chains(chains: Sequence[JobChain]) -> tuple[JobChain, ...]:
    if not isinstance(chains, Iterable):
        raise InvalidInput("chains", chains, "must be a sequence of JobChain")
    kept = tuple(chains)
    if not kept:
        raise InvalidInput("chains", "[]", "must not be empty")
    for index, chain in enumerate(kept):
        if not isinstance(chain, JobChain):
            raise InvalidInput("chains", type(chain).__name__, "must be a JobChain", index=index)
        count, first = chain.demands.shape[1], kept[0].demands.shape[1]
        if count != first:
            raise InvalidInput("chains", chain, f"takes of {count} resources, chains[0] of {first}", index=index)
    return kept


def _checked_capacities(capacities: ArrayLike, resources: int, rounds: int) -> Floats:
    """Return the capacities with shape (J, T)."""
    dimensions = np.ndim(capacities)
    if resources == 1 and dimensions == 0:
        capacities = [as_real("capacities", capacities, minimum=0.0)] * rounds
    if resources == 1 and dimensions < 2:
        return as_reals("capacities", capacities, minimum=0.0, shape=(rounds,)).reshape(1, rounds)
    return as_reals("capacities", capacities, minimum=0.0, shape=(resources, rounds), ndim=2)
