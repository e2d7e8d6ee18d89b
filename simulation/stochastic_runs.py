"""Monte Carlo runs of a stochastic market under a policy: utilities, and how often capacity is exceeded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..formulations.arrays import Floats, Indices
from ..formulations.checks import as_integer
from ..formulations.errors import InvalidInput
from ..formulations.markets.stochastic.plan import StochasticPlan
from ..formulations.markets.stochastic.process import FITS


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledRuns:
    """R independent runs of N jobs over T rounds.

    Attributes
    ----------
    utilities : ndarray of float, shape (R, N)
        Utility of each job, summed over all rounds.
    use : ndarray of float, shape (R, J, T)
        Amount of each resource in use.
    exceeded : ndarray of bool, shape (R, J, T)
        Whether the use exceeds the capacity.
    """

    utilities: Floats
    use: Floats
    exceeded: NDArray[np.bool_]

    @cached_property
    def mean_utilities(self) -> Floats:
        """Mean utility of each job, shape (N,)."""
        return np.asarray(self.utilities.mean(axis=0))

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard error of `mean_utilities`, shape (N,); nan for a single run."""
        runs = len(self.utilities)
        if runs == 1:
            return np.full(self.utilities.shape[1], math.nan)
        return np.asarray(self.utilities.std(axis=0, ddof=1) / math.sqrt(runs))

    @cached_property
    def exceeded_share(self) -> Floats:
        """Share of the runs in which use exceeds the capacity, by resource and round, shape (J, T)."""
        return np.asarray(self.exceeded.mean(axis=0))

    def __repr__(self) -> str:
        runs, jobs = self.utilities.shape
        over = self.exceeded.any(axis=(1, 2)).mean()
        return f"<SampledRuns: {runs} runs of {jobs} jobs, {over:.1%} of them beyond the capacity in some round>"


def sample_runs(plan: StochasticPlan, runs: int, rng: np.random.Generator) -> SampledRuns:
    """Draw runs of the plan's market under its policy.

    The jobs follow their own chains, one draw per job, round and run; only the policy is taken from the plan.

    Parameters
    ----------
    plan : StochasticPlan
    runs : int
        Number of runs (R), at least 1.
    rng : numpy.random.Generator
        Generator; the same state gives the same runs.

    Raises
    ------
    InvalidInput
        If `runs` is not a whole number of at least 1, or `rng` not a Generator.
    """
    runs = as_integer("runs", runs, minimum=1)
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput("rng", type(rng).__name__, "must be a numpy.random.Generator")
    market = plan.market
    chains, rounds = market.chains, market.rounds
    ladders = [np.cumsum(chain.transitions, axis=2) for chain in chains]
    first = np.zeros(runs, dtype=np.int64)
    states = [_drawn(np.cumsum(chain.initial)[None], first, rng) for chain in chains]
    utilities, use = np.zeros((runs, len(chains))), np.zeros((runs, market.num_resources, rounds))
    for t in range(rounds):
        actions = _actions(plan, t, states, rng)
        for i, (chain, ladder) in enumerate(zip(chains, ladders, strict=True)):
            state, action = states[i], actions[i]
            utilities[:, i] += chain.utilities[action, state]
            use[:, :, t] += chain.demands[action]
            rows = action * chain.num_states + state
            states[i] = _drawn(ladder.reshape(-1, chain.num_states), rows, rng)
    return SampledRuns(utilities=utilities, use=use, exceeded=use > market.capacities * (1.0 + FITS))


def _actions(plan: StochasticPlan, t: int, states: list[Indices], rng: np.random.Generator) -> list[Indices]:
    """Return the action of each job in each run, shape (R,) each."""
    ladders = [np.cumsum(part[t], axis=1) for part in plan.policy]
    if not plan.is_joint:
        return [_drawn(ladder, state, rng) for ladder, state in zip(ladders, states, strict=True)]
    sizes = [chain.num_states for chain in plan.market.chains]
    joint = _drawn(ladders[0], np.ravel_multi_index(states, sizes), rng)
    return list(plan.joint_actions[joint].T)


def _drawn(ladders: Floats, rows: Indices, rng: np.random.Generator) -> Indices:
    """Draw one entry per row from cumulated probabilities, shape (rows, entries)."""
    tops = ladders[rows]
    # The last cumulated probability may differ from 1 by rounding: draws are scaled by it, so no entry of probability
    # 0 is drawn.
    draws = rng.random(len(rows)) * tops[:, -1]
    return np.asarray((tops <= draws[:, None]).sum(axis=1))
