"""Turns that fractions of GPUs take on whole GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...simulation.fluid.policy import Turns

# Shares of a turn that differ by no more end at one time, and fractions of no more count as none.
_SAME = 1e-9
# Fractions that miss a whole GPU by no more make it up.
_SLACK_GPUS = 1e-6


class Rotation:
    """Whole GPUs that go round among the jobs with fractions.

    The fractions lie one after another on a circle, whose length is their sum. The whole GPUs that they make up stand
    on it at even distances and move at one speed; a job holds a GPU while one stands on its fraction. So each job holds
    one for its fraction of the time, and none holds two. The circle begins with the second job.
    """

    def __init__(self) -> None:
        self._whole: dict[int, int] = {}
        self._circle: list[tuple[int, float]] = []
        # Of each GPU that goes round: place in the circle, and the fraction left of the turn there.
        self._places: list[int] = []
        self._left: list[float] = []

    @property
    def turn(self) -> float:
        """Share of the quantum until the first of the present turns ends; infinity if there are none."""
        return min(self._left) if len(self._circle) > 1 and self._left else math.inf

    def begin(self, shares: Mapping[int, float], order: Sequence[int]) -> None:
        """Begin anew with these fractional GPUs by job, in this order."""
        self._whole = {index: math.floor(shares[index] + _SAME) for index in shares}
        fractions = [(index, shares[index] - self._whole[index]) for index in order]
        circle = [(index, fraction) for index, fraction in fractions if fraction > _SAME]
        self._circle = circle[1:] + circle[:1]
        length = sum(fraction for _, fraction in circle)
        whole_gpus = math.floor(length + _SLACK_GPUS)
        self._places, self._left = [], []
        for gpu in range(whole_gpus):
            at, end, place = gpu * (length / whole_gpus), self._circle[0][1], 0
            while end <= at + _SAME and place + 1 < len(circle):
                place += 1
                end += self._circle[place][1]
            self._places.append(place)
            self._left.append(end - at)

    def next_turn(self) -> None:
        """Move all GPUs to the end of the turn that ends first."""
        passed = self.turn
        for gpu, left in enumerate(self._left):
            self._left[gpu] = left - passed
            if self._left[gpu] <= _SAME:
                self._places[gpu] = (self._places[gpu] + 1) % len(self._circle)
                self._left[gpu] = self._circle[self._places[gpu]][1]

    def present(self) -> Turns:
        """Return the turns as they stand."""
        return Turns(dict(self._whole), list(self._circle), list(self._places), list(self._left))

    def gpus(self) -> dict[int, float]:
        """Return the present GPUs of each job, in the order of the shares."""
        on_turn = {self._circle[place][0] for place in self._places}
        return {index: float(whole + (index in on_turn)) for index, whole in self._whole.items()}
