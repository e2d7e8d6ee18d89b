"""The interface of every backend: what it declares, what it is given, what it answers."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..formulations.errors import InvalidInput
from ..formulations.program.data import ProblemClass
from ..formulations.program.model import Program
from .options import Options
from .result import Limit

#: Common options that a backend may be unable to honour; one that is set and not honoured is refused.
OPTIONAL = ("threads", "seed", "warm_start", "log")
#: All common options.
COMMON = frozenset(each.name for each in fields(Options))
#: Members of a Backend by their former names.
RENAMED = {
    "honours": "supported_options",
    "uses": "delegates_to",
    "takes_tangents": "supports_outer_approximation",
    "defers": "skip_reason",
}


class Progress(Protocol):
    """Called by a backend as its incumbent or its bound improves."""

    def __call__(self, objective: float | None, bound: float, incumbent: Any = None) -> None:
        """Report the incumbent's objective (None: none yet), the bound, and the incumbent itself.

        The incumbent is a vector of values by column, or for a special backend a plan. What is reported survives
        whatever becomes of the backend afterwards.
        """
        ...


def ignore_progress(*report: Any, **more: Any) -> None:
    """Ignore a report: of a solve inside another, whose progress is not that of the problem at hand."""


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


class Backend(ABC):
    """The base of every backend: a subclass declares what it is, and says how it solves.

    Attributes
    ----------
    name : str
    licence : str
        Of the solver behind it.
    version : str
        Of a method that is written here; by default that of the first package in `requires`.
    requires : tuple of str
        Packages that must be importable, with the oldest version where one is asked for: "ortools>=9.15".
    extra : str
        The extra of equipoise that installs them; empty for none.
    classes : frozenset of ProblemClass
        Programs it reads (general backends). Programs with log terms reach one that does not read them as tangent
        cuts, so LP gives LOG and MILP gives MILOG as well.
    formulations : frozenset of str
        Formulations it reads directly (special backends), by the name of the type or by their own `kind`.
    supported_options : frozenset of str
        Which of the `OPTIONAL` common options it honours. The others are honoured by all.
    covered_options : mapping of str to str
        Options of the solver that a common option states already, with the name of that.
    known_options : frozenset of str or None
        The options of its own that it takes, none by default; None if the solver itself knows them.
    delegates_to : frozenset of str
        Backends it may hand work to; their `backend_options` are passed on.
    isolated : bool
        Whether it always runs in a process of its own.
    supports_outer_approximation : bool
        Whether programs with log terms may be handed to it as tangent cuts.
    """

    name: str
    licence: str
    version: str = ""
    requires: tuple[str, ...] = ()
    extra: str = ""
    classes: frozenset[ProblemClass] = frozenset()
    formulations: frozenset[str] = frozenset()
    supported_options: frozenset[str] = frozenset()
    covered_options: ClassVar[Mapping[str, str]] = {}
    known_options: frozenset[str] | None = frozenset()
    delegates_to: frozenset[str] = frozenset()
    isolated: bool = False
    supports_outer_approximation: bool = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for old, new in RENAMED.items():
            if old in cls.__dict__:
                message = f"{cls.__name__}.{old} of a Backend is called {new} now"
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                setattr(cls, new, cls.__dict__[old])

    def probe(self) -> Availability:
        """Return whether it can run here, without importing what it requires; never raise."""
        stated = self.version
        for each in self.requires:
            package, _, oldest = each.partition(">=")
            install = f"pip install 'equipoise[{self.extra}]'" if self.extra else f"pip install {package}"
            if find_spec(package) is None:
                return Availability(False, stated, f"{package} is not installed: {install}")
            if stated and not oldest:
                continue
            found = _installed(package)
            if not found:
                return Availability(False, stated, f"{package} is not installed completely: {install}")
            if _numbers(found) < _numbers(oldest):
                return Availability(False, found, f"{package} {found} is too old: pip install '{each}'")
            stated = stated or found
        return Availability(True, stated)

    def skip_reason(self, problem: Any, options: Options) -> str:
        """Return why "auto" should leave this problem to a later backend that can take it; empty if it should not."""
        return ""

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return the options meant for this backend alone, checked.

        Raises
        ------
        InvalidInput
            For an option that a common option states already, by its name or by the solver's, or that is not in
            `known_options`.
        """
        own = dict(options.backend_options.get(self.name, {}))
        for name, value in own.items():
            field = f"backend_options[{self.name!r}][{name!r}]"
            unknown = self.known_options is not None and name not in self.known_options
            common = self.covered_options.get(name, name if unknown else "")
            if common in COMMON:
                raise InvalidInput(field, value, f"use {common}= instead")
            if unknown:
                known = ", ".join(sorted(self.known_options or ()))
                raise InvalidInput(field, value, f"its options are {known}" if known else "it has no options")
        return own

    @abstractmethod
    def solve(self, task: Task, options: Options, on_progress: Progress) -> Answer:
        """Solve the task within the options, honouring every one of them.

        Raise InvalidInput for an own option that is wrong and LicenseLimit for a program too large; an ordinary
        outcome is an Answer.
        """


@cache
def _installed(package: str) -> str:
    """Return the version of a package, empty without one; it is read once, as that takes as long as a small solve."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", release)))


def gaps(program: Program, options: Options) -> tuple[float, float]:
    """Return the (relative, absolute) gap to ask of a solver whose relative gap is in max(|objective|, 1e-9).

    A gap in the program's own unit is an absolute one to a solver.
    """
    if program.gap_unit is None:
        return options.rel_gap, options.abs_gap
    return 0.0, max(options.abs_gap, options.rel_gap * program.gap_unit)
