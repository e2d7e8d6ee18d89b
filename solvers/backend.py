"""The door every backend comes through: what it declares, what it is given, what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..formulations.program import ProblemClass, Program
from .options import Options
from .result import Limit, Reason

#: on_progress(objective or None, bound): called as the incumbent or the bound improves.
Progress = Callable[[float | None, float], None]


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run here: `reason` says why not, and how to change it."""

    usable: bool
    version: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One problem as a backend is given it.

    Attributes
    ----------
    problem : the formulation
    form : str
        Which of its programs.
    program : Program or None
        The program in that form; None for a special backend, which reads the formulation.
    start : ndarray of float or None
        Warm start by column of the program (nan: not given); for a special backend see `options.warm_start`.
    """

    problem: Any
    form: str
    program: Program | None = None
    start: NDArray[np.float64] | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a backend claims; `solve` verifies it.

    Attributes
    ----------
    claim : Reason
        OPTIMAL, FEASIBLE and NO_SOLUTION_FOUND are re-derived from what is verified.
    limit : Limit or None
        What stopped it, if it did not finish.
    values : ndarray of float or None
        By column of the program (general backends).
    plan : object or None
        The answer itself (special backends).
    bound : float or None
        A proven bound; None if there is none.
    duals, reduced_costs : ndarray of float or None
        By row and column; change of the optimal objective per unit.
    """

    claim: Reason
    limit: Limit | None = None
    message: str = ""
    values: NDArray[np.float64] | None = None
    plan: Any = None
    bound: float | None = None
    duals: NDArray[np.float64] | None = None
    reduced_costs: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """A solver behind the common door.

    Attributes
    ----------
    name : str
    classes : frozenset of ProblemClass
        Programs it accepts (general backends), or empty.
    formulations : frozenset of str
        Names of formulations it reads directly (special backends), or empty.
    licence : str
        Of the solver behind it.
    uses : frozenset of str
        Backends it may hand work to; their `backend_options` are passed on.
    """

    name: str
    classes: frozenset[ProblemClass]
    formulations: frozenset[str]
    licence: str
    uses: frozenset[str]

    def probe(self) -> Availability:
        """Say whether it can run here; never raise."""
        ...

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the task within the options, honouring every one of them or refusing it."""
        ...
