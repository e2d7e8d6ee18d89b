"""Interface between the fluid engine and its policies, and the code by which compiled loops know a policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from .job import FluidJob
    from .state import FluidState


class FluidCode(IntEnum):
    """Allocation rules that the compiled loops have."""

    FIFO = 0
    SRSF = 1
    SRTF = 2
    LAS = 3
    FS = 4
    AFS = 5
    AFS_L = 6
    THEMIS = 7
    WFQ = 8
    WFQ_INTEGRAL = 9


class Turns(NamedTuple):
    """Turns of jobs with fractions on whole GPUs, as they stand; jobs are trace indices.

    Attributes
    ----------
    whole : mapping of int to int
        Whole GPUs that each job keeps.
    circle : sequence of (int, float)
        Jobs with fractions, and their fractions.
    places : sequence of int
        Place in the circle of each GPU that goes round.
    left : sequence of float
        Fraction of its turn that is left to each of these GPUs.
    """

    whole: Mapping[int, int] = MappingProxyType({})
    circle: Sequence[tuple[int, float]] = ()
    places: Sequence[int] = ()
    left: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class FluidRule:
    """Allocation rule of a policy as the compiled loops read it.

    Attributes
    ----------
    code : FluidCode
    timer_s : float
        Lease of Themis, or quantum of the integral WFQ.
    thresholds : tuple of float, length Q
        Largest size of each queue of WFQ, the last one infinite.
    weights : tuple of Fraction, length Q
        Weights of these queues.
    caps : tuple of float, length K
        Cap levels of WFQ in the order in which they are tried; the last one caps nothing.
    turns : Turns or None
        Present turns of the integral WFQ.
    """

    code: FluidCode
    timer_s: float = math.inf
    thresholds: tuple[float, ...] = (math.inf,)
    weights: tuple[Fraction, ...] = (Fraction(1),)
    caps: tuple[float, ...] = (0.0,)
    turns: Turns | None = None


class FluidPolicy(Protocol):
    """Policy of the fluid engine.

    Attributes
    ----------
    name : str
    rule : FluidRule or None
        Rule that the compiled loops follow instead of the methods; None: only the reference runs this policy.
    """

    name: str

    @property
    def rule(self) -> FluidRule | None:
        """Rule that the compiled loops follow; a subclass that changes the methods below changes it too."""
        ...

    def allocate(self, state: FluidState) -> Mapping[int, float]:
        """Return the GPUs of jobs by trace index; jobs that it leaves out get none.

        The engine calls it at each arrival, end and timer. No job may get more than its `max_gpus`, and all together no
        more than `state.gpus`. The order of the mapping becomes the order of `state.jobs`: of several jobs that end at
        one time, the first in it ends first.
        """
        ...

    def timer_s(self, state: FluidState) -> float:
        """Return the seconds until the next timer, asked after each call of `allocate`; infinity: none.

        A timer that has not run out at the next event is dropped.
        """
        ...

    def guaranteed_s(self, state: FluidState, job: FluidJob) -> float:
        """Return the time by which a job ends whatever arrives later, asked when it has arrived; nan: no guarantee."""
        ...
