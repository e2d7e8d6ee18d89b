"""The interface of every backend: its declaration, its task, its answer."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
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
    """Callback of a backend whose incumbent or bound improves."""

    def __call__(
        self, objective: float | None, bound: float, incumbent: Any = None, measures: Mapping[str, float] | None = None
    ) -> None:
        """Report the incumbent's objective (None: none yet), the bound, the incumbent itself, and further figures.

        The incumbent is a vector of values by column, or for a special backend a plan. A report is kept even if the
        backend fails afterwards.
        """


def ignore_progress(*report: Any, **more: Any) -> None:
    """Ignore progress: the report comes from an inner solve and does not concern the caller's problem."""


@dataclass(frozen=True)
class Availability:
    """Whether a backend can run here.

    Attributes
    ----------
    reason : str
        Cause and remedy, if the backend is not usable.
    limit : str
        Limit of its licence ("2,000 variables and rows"); empty if there is none. "auto" passes over a backend
        whose licence is limited.
    """

    usable: bool
    version: str = ""
    reason: str = ""
    limit: str = ""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One problem in the form that a backend receives.

    Attributes
    ----------
    problem : the formulation
        The problem itself; for a general backend it may be the program.
    form : str
        Name of one of its programs.
    program : Program or None
        The program in that form; None for a special backend, which reads the formulation.
    start : ndarray of float or None
        Warm start by column of the program (nan: not given); for a special backend see `options.warm_start`.
    objective_factor : float
        Factor by which the caller's objective has been multiplied; own options that are values of the objective
        have to be multiplied by it, too.
    """

    problem: Any
    form: str
    program: Program | None = None
    start: NDArray[np.float64] | None = None
    objective_factor: float = 1.0

    @property
    def stated_program(self) -> Program:
        """The program, which every task of a general backend has."""
        assert self.program is not None
        return self.program


class Claim(Enum):
    """A backend's claim about its own run; `solve` concludes the `Termination` from it."""

    SOLVED = "solved"  #: the run finished, and the answer is optimal within the requested gap
    STOPPED = "stopped"  #: a limit ended the run, with or without a plan
    INFEASIBLE = "infeasible"  #: the run proved that there is no plan
    UNBOUNDED = "unbounded"  #: plans exist, and their objectives have no bound
    INFEASIBLE_OR_UNBOUNDED = "infeasible or unbounded"  #: one of the two; the run did not decide which
    FAILED = "failed"  #: the run failed; the message gives the cause


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A backend's claims; `solve` verifies them.

    Attributes
    ----------
    claim : Claim
        Outcome of the run. `solve` concludes OPTIMAL, FEASIBLE or NO_SOLUTION_FOUND from the verified plan and bound
        of a SOLVED or STOPPED run.
    limit : Limit or None
        The limit that ended a STOPPED run; None otherwise.
    values : ndarray of float or None
        Values by column of the program (general backends).
    plan : object or None
        The plan itself (special backends).
    bound : float or None
        The backend's bound; None if there is none. It is ignored beside `duals`, which prove a bound, and for a
        formulation with `proves_bounds`, whose plan proves one.
    duals, reduced_costs : ndarray of float or None
        Change of the optimal objective per unit, by row and by column of an LP or LOG program.
    slopes : ndarray of float or None
        Change of the optimal objective per unit of the log argument, by log term; by default the derivative at
        `values`.
    ray : ndarray of float or None
        Multipliers by row that prove a linear program infeasible (Farkas).
    notes : tuple of str
        Facts for the reader of the result.
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

    @classmethod
    def ended(cls, limit: Limit | None, **fields: Any) -> Answer:
        """Return the answer of a run that the limit ended: STOPPED, or SOLVED without a limit."""
        return cls(claim=Claim.STOPPED if limit else Claim.SOLVED, limit=limit, **fields)


class Backend(ABC):
    """The base class of every backend: a subclass declares its properties and implements `solve`.

    Attributes
    ----------
    name : str
    licence : str
        Licence of the underlying solver.
    version : str
        Version of a method of this library; by default that of the first package in `requires`.
    requires : tuple of str
        Packages that must be importable, with the oldest version where one is asked for: "ortools>=9.15".
    extra : str
        The extra of equipoise that installs them; empty for none.
    classes : frozenset of ProblemClass
        Classes of programs it reads (general backends). A backend that does not read log terms gets tangent cuts
        instead, so LP implies LOG and MILP implies MILOG.
    formulations : frozenset of str
        Formulations it reads directly (special backends), as names of types or as their `kind`.
    supported_options : frozenset of str
        The `OPTIONAL` common options that it honours. All backends honour the others.
    covered_options : mapping of str to str
        Options of the solver that a common option covers, with the name of the common option.
    known_options : frozenset of str or None
        Names of its own options, none by default; None if the solver itself checks them.
    delegates_to : frozenset of str
        Backends it may call; their `backend_options` are passed on.
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
        """Return whether the backend can run here, without importing its requirements; never raise."""
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
        """Return why "auto" should leave this problem to a later backend; empty if it should not."""
        return ""

    def backend_options(self, options: Options) -> dict[str, Any]:
        """Return the options meant for this backend alone, checked.

        Raises
        ------
        InvalidInput
            If a common option covers the option, under its own name or the solver's, or if the option is not in
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
        """Solve the task within the options; honour every one of them.

        Raise InvalidInput for a wrong own option and LicenseLimit for a program that is too large; any ordinary
        outcome is an Answer.
        """


class OwnMethod(Backend):
    """A method of this library, which by default needs numba for its compiled loops."""

    licence = "Apache-2.0"
    version = "1"
    requires: tuple[str, ...] = ("numba",)


@cache
def _installed(package: str) -> str:
    """Return the version of a package, empty without one; cached, as reading it takes as long as a small solve."""
    from importlib.metadata import PackageNotFoundError, version  # takes a tenth of `import equipoise`

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
