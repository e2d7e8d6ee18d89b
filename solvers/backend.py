"""The door every backend comes through: what it declares, what it is given, what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..formulations.program.data import ProblemClass
from ..formulations.program.model import Program
from .options import Options
from .result import Limit

#: Common options that a backend may be unable to honour; one that is set and not honoured is refused.
OPTIONAL = ("threads", "seed", "warm_start", "log")


class Progress(Protocol):
    """Called by a backend as its incumbent or its bound improves."""

    def __call__(self, objective: float | None, bound: float, incumbent: Any = None) -> None:
        """Report the incumbent's objective (None: none yet), the bound, and the incumbent itself.

        The incumbent is a vector of values by column, or for a special backend a plan. What is reported survives
        whatever becomes of the backend afterwards.
        """
        ...


def unheard(objective: float | None, bound: float, incumbent: Any = None) -> None:
    """Take the progress of a solve inside another, which is not that of the problem at hand."""


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run here.

    Attributes
    ----------
    reason : str
        Why it is not usable, and how to change that.
    limit : str
        What its licence limits ("2,000 variables and rows"); empty if nothing. "auto" passes a limited one over.
    """

    usable: bool
    version: str = ""
    reason: str = ""
    limit: str = ""

    @staticmethod
    def with_numba(version: str) -> Availability:
        """Return whether numba is installed, all that most of our own methods need."""
        if find_spec("numba") is None:
            return Availability(False, reason="numba is not installed: pip install numba")
        return Availability(True, version)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One problem as a backend is given it.

    Attributes
    ----------
    problem : the formulation
        For a general backend the program may stand here as well.
    form : str
        Which of its programs.
    program : Program or None
        The program in that form; None for a special backend, which reads the formulation.
    start : ndarray of float or None
        Warm start by column of the program (nan: not given); for a special backend see `options.warm_start`.
    objective_factor : float
        What the objective was multiplied by since the caller stated it; own options that are values of the objective
        have to be, too.
    """

    problem: Any
    form: str
    program: Program | None = None
    start: NDArray[np.float64] | None = None
    objective_factor: float = 1.0


class Claim(Enum):
    """What a backend claims about its own run; `Termination` is what `solve` concludes from it."""

    SOLVED = "solved"  #: it ran to its end and calls its answer optimal within the gap asked for
    STOPPED = "stopped"  #: a limit ended it, with or without a plan
    INFEASIBLE = "infeasible"  #: it proved that there is no plan
    UNBOUNDED = "unbounded"  #: there are plans, and their objectives have no bound
    INFEASIBLE_OR_UNBOUNDED = "infeasible or unbounded"  #: one of the two, and it did not find out which
    FAILED = "failed"  #: it failed; its message says how


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a backend claims; `solve` verifies it.

    Attributes
    ----------
    claim : Claim
        Whether a SOLVED or STOPPED run ends as OPTIMAL, FEASIBLE or NO_SOLUTION_FOUND is concluded from the verified
        plan and bound.
    limit : Limit or None
        The limit that ended a STOPPED run; None otherwise.
    values : ndarray of float or None
        By column of the program (general backends).
    plan : object or None
        The answer itself (special backends).
    bound : float or None
        The backend's bound; None if there is none. With `duals` it is not used: they prove one. Nor is it for a
        formulation with `proves_bounds`: the plan proves its own.
    duals, reduced_costs : ndarray of float or None
        By row and column of an LP or LOG program: change of the optimal objective per unit.
    slopes : ndarray of float or None
        By log term: change of the optimal objective per unit inside the logarithm; by default its derivative at
        `values`.
    ray : ndarray of float or None
        By row: multipliers that prove a linear program infeasible (Farkas).
    notes : tuple of str
        What a reader of the result should know.
    """

    claim: Claim
    limit: Limit | None = None
    message: str = ""
    values: NDArray[np.float64] | None = None
    plan: Any = None
    bound: float | None = None
    duals: NDArray[np.float64] | None = None
    reduced_costs: NDArray[np.float64] | None = None
    slopes: NDArray[np.float64] | None = None
    ray: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        stopped = self.claim is Claim.STOPPED
        # `well_formed` reports a claim of another type.
        if isinstance(self.claim, Claim) and stopped != (self.limit is not None):
            raise ValueError(f"an answer {self.claim.name} {'needs' if stopped else 'has no'} limit")


class Backend(Protocol):
    """A solver behind the common door; subclass it for the defaults.

    Attributes
    ----------
    name : str
    licence : str
        Of the solver behind it.
    classes : frozenset of ProblemClass
        Programs it reads (general backends). Programs with log terms reach one that does not read them as tangent
        cuts, so LP gives LOG and MILP gives MILOG as well.
    formulations : frozenset of str
        Formulations it reads directly (special backends), by the name of the type or by their own `kind`.
    honours : frozenset of str
        Which of the `OPTIONAL` common options it honours. The others are honoured by all.
    uses : frozenset of str
        Backends it may hand work to; their `backend_options` are passed on.
    isolated : bool
        Whether it always runs in a process of its own.
    takes_tangents : bool
        Whether programs with log terms may be handed to it as tangent cuts.
    """

    name: str
    licence: str
    classes: frozenset[ProblemClass] = frozenset()
    formulations: frozenset[str] = frozenset()
    honours: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    isolated: bool = False
    takes_tangents: bool = True

    def probe(self) -> Availability:
        """Say whether it can run here; never raise."""
        ...

    def defers(self, problem: Any, options: Options) -> str:
        """Say why "auto" should leave this problem to a later backend that can take it; empty if it should not."""
        return ""

    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the task within the options, honouring every one of them.

        Raise InvalidInput for an own option that is wrong and LicenseLimit for a program too large; an ordinary
        outcome is an Answer.
        """
        ...


def gaps(program: Program, options: Options) -> tuple[float, float]:
    """Return the (relative, absolute) gap to ask of a solver whose relative gap is in max(|objective|, 1e-9).

    A gap in the program's own unit is an absolute one to a solver.
    """
    if program.gap_unit is None:
        return options.rel_gap, options.abs_gap
    return 0.0, max(options.abs_gap, options.rel_gap * program.gap_unit)
