"""Markov decision processes of a stochastic market: the chain of one job, or the product of all chains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import Floats, Indices
from ...errors import UnsupportedProblem
from .chain import JobChain

# Relative tolerance on capacities: amounts such as .1 + .2 fit a capacity of .3.
FITS = 1e-9
# Limits of the joint program: cells (round, product state, joint action), and entries of its transitions.
MOST_JOINT_CELLS = 200_000
MOST_JOINT_ENTRIES = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """States, actions and probabilities of a process over T rounds, for n jobs at once.

    Attributes
    ----------
    jobs : ndarray of int, shape (n,)
        Indices of the process's jobs in the market.
    actions : ndarray of int, shape (A, n)
        Each job's own action in each action of the process.
    demands : ndarray of float, shape (A, J)
        Amount of each resource that an action takes.
    allowed : ndarray of bool, shape (T, A)
        Whether the action by itself fits the capacity of the round.
    initial, utilities : ndarray of float, shape (S,) and (n, A, S)
        Probability of each state in the first round; utility of a round of each action in each state, by job.
    action, origin, target, chance : ndarray, shape (E,)
        Action, old state, new state and probability of each possible transition.
    """

    jobs: Indices
    actions: Indices
    demands: Floats
    allowed: NDArray[np.bool_]
    initial: Floats
    utilities: Floats
    action: Indices
    origin: Indices
    target: Indices
    chance: Floats

    @property
    def shape(self) -> tuple[int, int, int]:
        """(T, S, A)."""
        return (len(self.allowed), len(self.initial), len(self.demands))

    @cached_property
    def reach(self) -> Floats:
        """An upper bound on the probability of each state in each round, shape (T, S)."""
        rounds, states, _ = self.shape
        pairs, which = np.unique(self.origin * states + self.target, return_inverse=True)
        origin, target = pairs // states, pairs % states
        reach = np.zeros((rounds, states))
        reach[0] = self.initial
        best = np.zeros(len(pairs))
        for t in range(rounds - 1):
            if t == 0 or (self.allowed[t] != self.allowed[t - 1]).any():
                best[:] = 0.0
                np.maximum.at(best, which, np.where(self.allowed[t, self.action], self.chance, 0.0))
            arriving = np.bincount(target, weights=reach[t, origin] * best, minlength=states)
            reach[t + 1] = np.minimum(1.0, arriving)
        return reach

    @cached_property
    def cells(self) -> tuple[Indices, Indices, Indices]:
        """Round, state and action of every cell that can be occupied, each of shape (cells,), in order."""
        rounds, states, actions = np.nonzero((self.reach > 0)[:, :, None] & self.allowed[:, None, :])
        return rounds, states, actions

    def propagated(self, policy: Floats) -> Floats:
        """Return the probability of every round, state and action under a policy, both of shape (T, S, A)."""
        occupancy = np.zeros(self.shape)
        here = self.initial
        for t, choice in enumerate(policy):
            occupancy[t] = here[:, None] * choice
            flow = occupancy[t, self.origin, self.action] * self.chance
            here = np.bincount(self.target, weights=flow, minlength=len(here)).astype(np.float64)
        return occupancy

    def best_alone(self) -> float:
        """Return the greatest expected utility of the process without other jobs, summed over its jobs."""
        _, states, actions = self.shape
        worth = self.utilities.sum(axis=0)
        value = np.zeros(states)
        for allowed in self.allowed[::-1]:
            later = np.bincount(
                self.action * states + self.origin, weights=self.chance * value[self.target], minlength=actions * states
            )
            value = (worth + later.reshape(actions, states))[allowed].max(axis=0)
        return float(self.initial @ value)


def own_process(chain: JobChain, job: int, capacities: Floats) -> Process:
    """Return the process of one job alone; capacities of shape (J, T)."""
    action, origin, target = np.nonzero(chain.transitions)
    return Process(
        jobs=np.array([job]),
        actions=np.arange(chain.num_actions)[:, None],
        demands=chain.demands,
        allowed=_fitting(chain.demands, capacities),
        initial=chain.initial,
        utilities=chain.utilities[None],
        action=action,
        origin=origin,
        target=target,
        chance=chain.transitions[action, origin, target],
    )


def joint_process(chains: Sequence[JobChain], capacities: Floats) -> Process:
    """Return the product of all jobs: its states and the joint actions that fit some round's capacity.

    States count in C order: the last job's state runs fastest. Raises UnsupportedProblem if the product is too large.
    """
    rounds = capacities.shape[1]
    states = math.prod(chain.num_states for chain in chains)
    grid = math.prod(chain.num_actions for chain in chains)
    if rounds * states * grid > MOST_JOINT_CELLS:
        raise UnsupportedProblem(
            f"the joint program is for tiny instances: {states} product states x {grid} joint actions x {rounds} "
            f"rounds exceed {MOST_JOINT_CELLS:,} cells; use form='decoupled', which relaxes it"
        )
    actions = np.array(list(itertools.product(*(range(chain.num_actions) for chain in chains))))
    demands = np.zeros((grid, len(capacities)))
    for i, chain in enumerate(chains):
        demands += chain.demands[actions[:, i]]
    fitting = _fitting(demands, capacities)
    kept = fitting.any(axis=0)
    actions, demands = actions[kept], demands[kept]
    counts = [np.count_nonzero(chain.transitions, axis=(1, 2))[actions[:, i]] for i, chain in enumerate(chains)]
    entries = rounds * int(np.prod(counts, axis=0).sum())
    if entries > MOST_JOINT_ENTRIES:
        raise UnsupportedProblem(
            f"the joint program is for tiny instances: {states} product states have {entries:,} transitions over "
            f"{rounds} rounds, more than {MOST_JOINT_ENTRIES:,}; use form='decoupled', which relaxes it"
        )
    moves = [_product([chain.transitions[a] for chain, a in zip(chains, row, strict=True)]) for row in actions]
    parts = np.unravel_index(np.arange(states), [chain.num_states for chain in chains])
    initial = np.ones(states)
    for chain, part in zip(chains, parts, strict=True):
        initial = initial * chain.initial[part]
    return Process(
        jobs=np.arange(len(chains)),
        actions=actions,
        demands=demands,
        allowed=fitting[:, kept],
        initial=initial,
        utilities=np.array([chain.utilities[actions[:, i][:, None], parts[i]] for i, chain in enumerate(chains)]),
        action=np.repeat(np.arange(len(actions)), [len(move[0]) for move in moves]),
        origin=np.concatenate([move[0] for move in moves]),
        target=np.concatenate([move[1] for move in moves]),
        chance=np.concatenate([move[2] for move in moves]),
    )


def _fitting(demands: Floats, capacities: Floats) -> NDArray[np.bool_]:
    """Return whether each action fits each round, shape (T, A)."""
    return np.asarray((demands[None] <= capacities.T[:, None] * (1.0 + FITS)).all(axis=2))


def _product(matrices: list[Floats]) -> tuple[Indices, Indices, Floats]:
    """Return origin, target and probability of the independent product of transition matrices."""
    origin, target, chance = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1)
    for matrix in matrices:
        here, there = np.nonzero(matrix)
        origin = (origin[:, None] * len(matrix) + here).ravel()
        target = (target[:, None] * len(matrix) + there).ravel()
        chance = (chance[:, None] * matrix[here, there]).ravel()
    return origin, target, chance
