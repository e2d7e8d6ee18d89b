"""StochasticPlan: a policy of a stochastic market, and its expected utilities and amounts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Floats, Indices
from ...errors import InvalidInput
from .data import StochasticData
from .process import Process

if TYPE_CHECKING:
    from os import PathLike


@dataclass(frozen=True, kw_only=True, eq=False)
class StochasticPlan:
    """A policy of a stochastic market; all else is recomputed from it and the market's data.

    Attributes
    ----------
    market : StochasticMarket
    form : str
        Form of the program that the plan belongs to (see :class:`StochasticMarket`). A "decoupled" plan keeps the
        capacity in expectation only, a "joint" plan on every path.
    policy : tuple of ndarray of float
        Probability of each action, given round and state. Decoupled: one array per job, shape (T, S, A). Joint: one
        array, shape (T, product states, joint actions); the last job's state runs fastest, and `joint_actions` has
        each job's own action. In a state that the plan never reaches, the first action, which takes nothing, has
        probability 1.
    prices : ndarray of float, shape (J, T), or None
        Marginal value of expected capacity, per unit, in a "decoupled" plan whose solver gave duals. They are not
        equilibrium prices: jobs need not spend their budgets.
    """

    market: StochasticData
    form: str
    policy: tuple[Floats, ...]
    prices: Floats | None = None

    @property
    def is_joint(self) -> bool:
        """Whether one policy depends on the states of all jobs, and keeps the capacity on every path."""
        return self.form.startswith("joint")

    @property
    def is_deterministic(self) -> bool:
        """Whether every action has probability 0 or 1."""
        return all(bool(((part == 0) | (part == 1)).all()) for part in self.policy)

    @property
    def joint_actions(self) -> Indices:
        """Each job's own action in each joint action, shape (joint actions, N); only a joint plan has them."""
        if not self.is_joint:
            raise InvalidInput("form", self.form, "only a joint plan has joint actions")
        return self.processes[0].actions

    @property
    def processes(self) -> tuple[Process, ...]:
        """The decision processes of the arrays of the policy: one for each job, or the joint one."""
        return self.market.processes(self.form)

    @cached_property
    def occupancy(self) -> tuple[Floats, ...]:
        """Probability of each round's state and action under the policy, by forward propagation; as `policy`."""
        pairs = zip(self.processes, self.policy, strict=True)
        return tuple(process.propagated(part) for process, part in pairs)

    @cached_property
    def utilities(self) -> Floats:
        """Expected utility of each job (E[U_i]), shape (N,)."""
        expected = np.zeros(len(self.market.chains))
        for process, part in zip(self.processes, self.occupancy, strict=True):
            expected[process.jobs] = np.einsum("tsa,nas->n", part, process.utilities)
        return expected

    @cached_property
    def shares(self) -> Floats:
        """Expected utility as a share of the job's greatest expected utility without the others, shape (N,)."""
        return np.asarray(self.utilities / self.market.best_alone)

    @cached_property
    def expected_use(self) -> Floats:
        """Expected amount of each resource in use in each round, shape (J, T)."""
        parts = zip(self.processes, self.occupancy, strict=True)
        return np.asarray(sum((part.sum(axis=1) @ process.demands).T for process, part in parts))

    @cached_property
    def expected_amounts(self) -> Floats:
        """Expected amount of each resource that each job holds in each round, shape (N, J, T)."""
        jobs = enumerate(self.market.chains)
        return np.stack([(self.job_occupancy(i).sum(axis=1) @ chain.demands).T for i, chain in jobs])

    def to_svg(self, path: str | PathLike[str] | None = None) -> str:
        """Return expected amounts over rounds, with the prices if there are any, as a picture; write it to `path`."""
        from ...files import written
        from ...plotting.allocation import picture

        amounts = self.expected_amounts
        return written(picture(amounts, self.prices, amounts.sum(axis=(1, 2)), buyer="job"), path)

    def job_occupancy(self, job: int) -> Floats:
        """Return the probability of each round's state and action of one job, shape (T, S, A)."""
        if not self.is_joint:
            return self.occupancy[job]
        chains, (process,) = self.market.chains, self.processes
        sizes = [chain.num_states for chain in chains]
        state = np.unravel_index(np.arange(len(process.initial)), sizes)[job]
        own = np.zeros((self.market.rounds, sizes[job], chains[job].num_actions))
        by_cell = own.transpose(1, 2, 0)  # a view with states and actions as the first axes
        np.add.at(by_cell, (state[:, None], process.actions[:, job]), self.occupancy[0].transpose(1, 2, 0))
        return own

    def __repr__(self) -> str:
        chosen = "deterministic" if self.is_deterministic else "randomised"
        kept = "always" if self.is_joint else "in expectation"
        return f"<StochasticPlan: {len(self.market.chains)} jobs, {chosen}, capacity kept {kept}>"
