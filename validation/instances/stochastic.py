"""Random stochastic markets of any size, for benchmarks: the same seed draws the same market."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...formulations.errors import InvalidInput
from ...formulations.markets.stochastic.chain import JobChain
from ...formulations.markets.stochastic.market import StochasticMarket


def random_stochastic_market(
    kind: Literal["ladder", "dense"], jobs: int, states: int = 10, actions: int = 3, rounds: int = 20, seed: int = 0
) -> StochasticMarket:
    """Return a market whose action a takes a GPUs, with budgets of 1 and six GPUs to ten jobs, rounded up.

    Parameters
    ----------
    kind : {"ladder", "dense"}
        "ladder": a state stays or gives way to the next one, as batch sizes and epochs do, and idling changes nothing.
        "dense": every state may follow every other, by probabilities uniform on the simplex.
    jobs, states, actions, rounds : int
        Sizes; at least two actions.
    seed : int

    Returns
    -------
    StochasticMarket
        Every GPU more is worth between 0.5 and 1.5 more, in each state anew.
    """
    if kind not in ("ladder", "dense"):
        raise InvalidInput("kind", kind, "must be one of ladder, dense")
    rng = np.random.default_rng(seed)
    chains = []
    for _ in range(jobs):
        if kind == "dense":
            transitions = rng.dirichlet(np.ones(states), size=(actions, states))
        else:
            steps = rng.uniform(0.1, 0.9, size=(actions, states))
            steps[0], steps[:, -1] = 0.0, 0.0
            stay, on = np.eye(states), np.eye(states, k=1)
            transitions = (1.0 - steps)[:, :, None] * stay + steps[:, :, None] * on
        gains = rng.uniform(0.5, 1.5, size=(actions - 1, states)).cumsum(axis=0)
        chain = JobChain(
            initial=np.eye(states)[0],
            transitions=transitions,
            utilities=np.vstack([np.zeros((1, states)), gains]),
            demands=np.arange(actions, dtype=np.float64),
        )
        chains.append(chain)
    return StochasticMarket(
        chains=tuple(chains), budgets=np.ones(jobs), capacities=np.full(rounds, np.ceil(0.6 * jobs)), rounds=rounds
    )
