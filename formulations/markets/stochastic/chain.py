"""JobChain: one job as a finite Markov chain controlled by its own allocation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Floats
from ...checks import as_integer, as_real, as_reals, refuse
from ...errors import InvalidInput

# Tolerance on sums of probabilities, which must be 1.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class JobChain:
    """A job whose state (batch size, epoch) changes at random, with probabilities that depend on its allocation.

    Parameters
    ----------
    initial : array_like of float, shape (S,)
        Probability of each state in the first round.
    transitions : array_like of float, shape (A, S, S)
        ``transitions[a, s, z]``: probability that a round of action a takes the job from state s to state z.
    utilities : array_like of float, shape (A, S)
        Utility of a round of action a in state s, at least 0; the unit may differ between jobs.
    demands : array_like of float, shape (A,) or (A, J)
        Amount of each of J resources that each action takes for the round, at least 0; no two actions are equal and the
        first takes nothing. Stored with shape (A, J).

    Raises
    ------
    InvalidInput
        Naming the field, the index and the value.

    Examples
    --------
    A job that trains faster once its batch size has grown, which happens in one round of training in four:

    >>> import equipoise as eq
    >>> chain = eq.JobChain(
    ...     initial=[1.0, 0.0],
    ...     transitions=[[[1.0, 0.0], [0.0, 1.0]], [[0.75, 0.25], [0.0, 1.0]]],
    ...     utilities=[[0.0, 0.0], [1.0, 2.0]],
    ...     demands=[0, 1],
    ... )
    >>> chain
    <JobChain: 2 states, 2 actions>
    """

    initial: Floats
    transitions: Floats
    utilities: Floats
    demands: Floats

    def __post_init__(self) -> None:
        demands = _checked_demands(self.demands)
        initial = as_reals("initial", self.initial, minimum=0.0)
        actions, states = len(demands), len(initial)
        transitions = as_reals("transitions", self.transitions, minimum=0.0, shape=(actions, states, states), ndim=3)
        utilities = as_reals("utilities", self.utilities, minimum=0.0, shape=(actions, states), ndim=2)
        if not abs(initial.sum() - 1.0) <= SUM_TOLERANCE:
            raise InvalidInput("initial", float(initial.sum()), "the probabilities must sum to 1")
        sums = transitions.sum(axis=2)
        wrong = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE)
        refuse("transitions", wrong, sums, "the probabilities of a row must sum to 1")
        exact = {
            "initial": initial / initial.sum(),
            "transitions": transitions / sums[:, :, None],
            "utilities": utilities,
            "demands": demands,
        }
        for name, array in exact.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def from_regimes(
        cls,
        *,
        epochs: int,
        epochs_per_round: ArrayLike,
        change_probability: ArrayLike,
        demands: ArrayLike,
        finished_epochs: int = 0,
        regime: int = 0,
    ) -> JobChain:
        """Build the chain of a job that passes through regimes (batch sizes) at epochs that are not known in advance.

        State ``k * epochs + e`` is regime k with e epochs done; in the last state the job has ended. A round trains
        whole epochs: at 2.25 epochs per round, 2 always and a third one with probability 0.25. After every epoch the
        regime ends with its probability of change; the new regime applies from the next round on. The utility of a
        round is the number of epochs trained in it.

        Parameters
        ----------
        epochs : int
            Epochs of the whole job, at least 1.
        epochs_per_round : array_like of float, shape (K, A)
            Epochs that a round trains in each of K regimes under each action; 0 under the first.
        change_probability : float or array_like of float, shape (K - 1,)
            Probability, after each epoch, that the next regime begins; the last regime has no successor.
        demands : array_like of float, shape (A,) or (A, J)
            As in the class.
        finished_epochs, regime : int
            State of the job in the first round.

        Examples
        --------
        A batch size of 32 that becomes 64 at some epoch, on none, one or two GPUs:

        >>> import equipoise as eq
        >>> eq.JobChain.from_regimes(
        ...     epochs=10, epochs_per_round=[[0, 1.0, 1.8], [0, 1.5, 3.0]], change_probability=0.2, demands=[0, 1, 2]
        ... )
        <JobChain: 21 states, 3 actions>
        """
        epochs = as_integer("epochs", epochs, minimum=1)
        speeds = as_reals("epochs_per_round", epochs_per_round, minimum=0.0, ndim=2)
        regimes, actions = speeds.shape
        refuse("epochs_per_round", speeds[:, :1] != 0, speeds, "the first action trains nothing")
        ends = _checked_ends(change_probability, regimes - 1)
        finished_epochs = as_integer("finished_epochs", finished_epochs, minimum=0, maximum=epochs)
        regime = as_integer("regime", regime, minimum=0, maximum=regimes - 1)

        end = regimes * epochs
        transitions, utilities = np.zeros((actions, end + 1, end + 1)), np.zeros((actions, end + 1))
        transitions[:, end, end] = 1.0
        done = np.arange(epochs)
        for k, a in np.ndindex(regimes, actions):
            here = k * epochs + done
            speed = min(float(speeds[k, a]), float(epochs))
            fewest = int(speed)
            chance_of_one_more = speed - fewest
            for trained, chance in ((fewest, 1.0 - chance_of_one_more), (fewest + 1, chance_of_one_more)):
                after = np.minimum(done + trained, epochs)
                utilities[a, here] += chance * (after - done)
                stays = (1.0 - ends[k]) ** trained if k + 1 < regimes else 1.0
                going = after < epochs
                np.add.at(transitions, (a, here[~going], end), chance)
                np.add.at(transitions, (a, here[going], k * epochs + after[going]), chance * stays)
                if stays < 1.0:
                    np.add.at(transitions, (a, here[going], (k + 1) * epochs + after[going]), chance * (1.0 - stays))
        initial = np.zeros(end + 1)
        initial[end if finished_epochs == epochs else regime * epochs + finished_epochs] = 1.0
        return cls(initial=initial, transitions=transitions, utilities=utilities, demands=demands)  # type: ignore[arg-type]

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.initial)

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.demands)

    def __repr__(self) -> str:
        return f"<JobChain: {self.num_states} states, {self.num_actions} actions>"


def _checked_ends(change_probability: ArrayLike, count: int) -> Floats:
    """Return the probability that each regime but the last ends with an epoch, shape (K - 1,)."""
    name = "change_probability"
    if np.ndim(change_probability) == 0:
        return np.full(count, as_real(name, change_probability, minimum=0.0, maximum=1.0))
    return as_reals(name, change_probability, minimum=0.0, maximum=1.0, shape=(count,), empty=True)


def _checked_demands(demands: ArrayLike) -> Floats:
    """Return the amount of each resource that each action takes, shape (A, J)."""
    one = np.ndim(demands) == 1 if not isinstance(demands, str | bytes) else True
    table = as_reals("demands", demands, minimum=0.0, ndim=1 if one else 2)
    table = table.reshape(len(table), -1)
    if table[0].any():
        at = int(np.flatnonzero(table[0])[0])
        place = (0,) if one else (0, at)
        raise InvalidInput("demands", float(table[0, at]), "the first action must take nothing", index=place)
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which.ravel()] != np.arange(len(table)))
    if len(again):
        at = int(again[0])
        twin = int(first[which.ravel()[at]])
        raise InvalidInput("demands", table[at].tolist(), f"the same amounts as action {twin}", index=at)
    return table
