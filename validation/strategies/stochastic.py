"""Hypothesis strategies: stochastic markets small enough to state over the product of their chains."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ...formulations.arrays import Floats
from ...formulations.markets.stochastic.chain import JobChain
from ...formulations.markets.stochastic.market import StochasticMarket


@st.composite
def job_chains(
    draw: DrawFn, max_states: int = 2, max_actions: int = 3, *, resources: int = 1, certain_start: bool = False
) -> JobChain:
    """Draw a chain whose action a takes a units of the first resource, its probabilities in quarters.

    Action 1 takes at most one unit of any resource and is worth something in every state, so that a job gains in any
    round with a unit of each. Anything else may be worth nothing.

    Parameters
    ----------
    max_states, max_actions : int
        At least 1 and 2.
    resources : int
        J.
    certain_start : bool
        Whether the first state is certain.

    Returns
    -------
    SearchStrategy of JobChain
    """
    states, actions = draw(st.integers(1, max_states)), draw(st.integers(2, max_actions))
    transitions = [[_probabilities(draw, states) for _ in range(states)] for _ in range(actions)]
    utilities = np.array([[draw(st.integers(0, 3)) for _ in range(states)] for _ in range(actions)], dtype=np.float64)
    utilities[1] = np.maximum(utilities[1], 1.0)
    demands = np.array([[a, *(draw(st.integers(0, a)) for _ in range(resources - 1))] for a in range(actions)])
    initial = np.eye(states)[0] if certain_start else _probabilities(draw, states)
    return JobChain(initial=initial, transitions=np.array(transitions), utilities=utilities, demands=demands)


@st.composite
def stochastic_markets(
    draw: DrawFn, max_jobs: int = 2, max_states: int = 2, max_actions: int = 3, max_rounds: int = 2, *,
    max_resources: int = 1, certain_start: bool = False,
) -> StochasticMarket:  # fmt: skip
    """Draw a market small enough for its joint program; every job can gain in the first round.

    Parameters
    ----------
    max_jobs, max_states, max_actions, max_rounds, max_resources : int
        Most jobs, states and actions of one job (at least 2 actions), rounds and resources; at least one of each.
    certain_start : bool
        Whether the first state of every job is certain: with it, two jobs of two states and two actions over two rounds
        are few enough policies to enumerate.

    Returns
    -------
    SearchStrategy of StochasticMarket
        Later rounds may have no capacity at all.
    """
    resources, rounds = draw(st.integers(1, max_resources)), draw(st.integers(1, max_rounds))
    chain = job_chains(max_states, max_actions, resources=resources, certain_start=certain_start)
    chains = draw(st.lists(chain, min_size=1, max_size=max_jobs))
    capacities = [[draw(st.integers(0 if t else 1, 3)) for t in range(rounds)] for _ in range(resources)]
    budgets = draw(st.lists(st.integers(1, 3), min_size=len(chains), max_size=len(chains)))
    return StochasticMarket(
        chains=tuple(chains),
        budgets=np.array(budgets, dtype=np.float64),
        capacities=np.array(capacities, dtype=np.float64),
        rounds=rounds,
    )


def _probabilities(draw: DrawFn, states: int) -> Floats:
    """Return probabilities in quarters, drawn as where each of four parts goes."""
    parts = draw(st.lists(st.integers(0, states - 1), min_size=4, max_size=4))
    return np.bincount(parts, minlength=states) / 4.0
