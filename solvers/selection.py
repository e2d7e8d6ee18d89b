"""The choice of a backend for a problem: the backends that accept it, and the one that "auto" takes, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Never, cast

from ..formulations.errors import BackendUnavailable, InvalidInput, UnsupportedProblem
from ..formulations.program.data import ProblemClass
from ..formulations.program.formulation import Formulation
from ..formulations.program.model import Program
from ..formulations.text import columns_text
from .backend import OPTIONAL, Availability, Backend
from .options import DEFAULTS, Options, refuse_unknown
from .registry import all_backends

# Log terms go to a conic interior-point method while the program has at most this many entries; beyond that, tangent
# cuts on a linear solver are faster (docs/backends/clarabel.md has the measurement).
CONIC_ENTRIES = 200_000
# The finest gap that a conic method reaches reliably.
CONIC_GAP = 1e-8


@dataclass(frozen=True)
class ProblemInfo:
    """A problem and its requested form, with the derived data on which the choice of a backend depends.

    Attributes
    ----------
    problem : formulation or Program
    asked_form : str or None
        Form requested by the caller; None for the default.

    Raises
    ------
    UnsupportedProblem
        If the problem is no formulation.
    InvalidInput
        If it does not have this form.
    """

    problem: Formulation[Any]
    asked_form: str | None = None

    def __post_init__(self) -> None:
        checked_problem(self.problem)
        if self.asked_form is not None:
            self.problem.check_form(self.asked_form)

    @cached_property
    def kind(self) -> str:
        """The name of the formulation in the lists of special backends."""
        return self.problem.kind

    @cached_property
    def problem_class(self) -> ProblemClass | None:
        """The class of the program that a general backend would read; None for a problem without a program."""
        return self.problem.class_of(self.asked_form)

    @cached_property
    def form(self) -> str:
        """The form that a general backend would read: the first, if none is requested."""
        return self.problem.check_form(self.asked_form)

    @cached_property
    def program(self) -> Program:
        """The program in that form, built when it is first needed."""
        # Every formulation narrows its program to one; the interface cannot, as a Program is a formulation itself.
        return cast(Program, self.problem.program(self.form))

    @cached_property
    def program_size(self) -> int:
        """The number of entries of the program; it is built only if the formulation cannot give the number."""
        known = self.problem.program_size(self.form)
        return len(self.program.matrix.values) + len(self.program.log_matrix.values) if known is None else known

    def __str__(self) -> str:
        return f"{self.problem.problem_class.value} program" if isinstance(self.problem, Program) else self.kind


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One backend that "auto" considered: whether it was taken, and why."""

    name: str
    taken: bool
    reason: str
    version: str = ""


class CandidateTable(tuple[Candidate, ...]):
    """Rows of `candidates()`, in the order of preference; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [(row.name, "taken" if row.taken else "passed over", row.reason) for row in self]
        return columns_text([("name", "verdict", "reason"), *lines])

    __repr__ = __str__


def candidates(
    problem: Formulation[Any],
    *,
    form: str | None = None,
    time_limit: float | None = DEFAULTS.time_limit,
    rel_gap: float = DEFAULTS.rel_gap,
    abs_gap: float = DEFAULTS.abs_gap,
    feasibility_tol: float = DEFAULTS.feasibility_tol,
    threads: int = DEFAULTS.threads,
    seed: int = DEFAULTS.seed,
    warm_start: Any = DEFAULTS.warm_start,
    log: bool = DEFAULTS.log,
    backend_options: Mapping[str, Mapping[str, Any]] = DEFAULTS.backend_options,
    **unknown: Never,
) -> CandidateTable:
    """Return the decision of backend="auto" on every backend for this problem.

    Parameters
    ----------
    problem : formulation or Program
    form : str, optional
        As in :func:`solve`.
    time_limit, rel_gap, abs_gap, feasibility_tol, threads, seed, warm_start, log, backend_options
        As in :func:`solve` (see :class:`Options`): an option that a backend cannot honour rules it out.

    Raises
    ------
    UnsupportedProblem, InvalidInput

    Examples
    --------
    >>> import equipoise as eq
    >>> build = eq.ProgramBuilder(sense="max")
    >>> x = build.add_columns("x", shape=(1,), upper=1.0)
    >>> [row.reason for row in eq.candidates(build.program()) if row.name == "lagrangian"]
    ['reads ScheduleWindow only']
    """
    refuse_unknown(unknown, "form")
    options = Options(
        time_limit=time_limit, rel_gap=rel_gap, abs_gap=abs_gap, feasibility_tol=feasibility_tol, threads=threads,
        seed=seed, warm_start=warm_start, log=log, backend_options=backend_options,
    )  # fmt: skip
    return Selection(ProblemInfo(problem, form), options).table()


class Selection:
    """The choice of one backend for one solve; every backend is probed at most once."""

    def __init__(self, info: ProblemInfo, options: Options) -> None:
        self.info, self.options = info, options
        self._probe: Callable[[Backend], Availability] = cache(lambda backend: backend.probe())
        self._weighed: list[Candidate] = []
        self._unweighed = self._weigh()

    def choose(self) -> tuple[Backend, str]:
        """Return the backend that "auto" takes and its version; raise, with every reason, if none can be taken."""
        for backend, candidate in self._unweighed:
            self._weighed.append(candidate)
            if candidate.taken:
                return backend, candidate.version
        reasons = "; ".join(f"{candidate.name}: {candidate.reason}" for candidate in self._weighed)
        raise BackendUnavailable(f"no backend can solve this {self.info} here: {reasons}")

    def table(self) -> CandidateTable:
        """Return the candidates in the order of preference, those that `choose` did not reach included."""
        self._weighed.extend(candidate for _, candidate in self._unweighed)
        return CandidateTable(self._weighed)

    def check_named(self, backend: Backend) -> str:
        """Return the version of a backend chosen by name; raise if it cannot solve the problem here."""
        info, name = self.info, backend.name
        if not accepts(backend, info):
            able = self._first_usable(other for other in self._backends if accepts(other, info))
            advice = f"use backend={able!r}" if able else "no backend can"
            raise UnsupportedProblem(f"{name} cannot state this {info}: it reads {_readable(backend)}; {advice}")
        if info.asked_form is not None and not backend.classes:
            why = f"{name} reads the problem itself; name a general backend instead"
            raise InvalidInput("form", info.asked_form, why)
        self._check_options(backend)
        found = self._probe(backend)
        if not found.usable:
            raise BackendUnavailable(f"backend {name!r} cannot run here: {found.reason}")
        return found.version

    def _check_options(self, backend: Backend) -> None:
        """Raise InvalidInput for an option that the named backend would ignore, naming a backend that honours it."""
        options, name, info = self.options, backend.name, self.info
        for other in options.backend_options:
            if other != name and other not in backend.delegates_to:
                raise InvalidInput("backend_options", other, f"the chosen backend is {name!r}: these would be ignored")
        for option in _unsupported_options(backend, options):
            supporting = [other for other in self._backends if option in other.supported_options]
            formed = [other for other in supporting if info.asked_form is None or other.classes]
            able = self._first_usable(other for other in formed if accepts(other, info))
            advice = f"; use backend={able!r} or leave it out" if able else "; leave it out"
            raise InvalidInput(option, getattr(options, option), f"the {name} backend cannot honour it{advice}")

    @cached_property
    def _backends(self) -> list[Backend]:
        return all_backends()

    def _first_usable(self, backends: Iterable[Backend]) -> str:
        """Return the name of the first that can run here, preferring unlimited licences."""
        able = sorted(backends, key=lambda each: not self._probe(each).usable or bool(self._probe(each).limit))
        return able[0].name if able else ""

    def _weigh(self) -> Iterator[tuple[Backend, Candidate]]:
        """Yield the candidates in order of preference; exactly one is taken, unless none can be."""
        taken = ""
        for backend, why_later in self._ordered():
            version, reason = "", self._obstacle(backend)
            reason = reason or backend.skip_reason(self.info.problem, self.options)
            if not reason and taken:
                reason = f"{taken} comes first{why_later}"
            if not reason:
                found = self._probe(backend)
                version = found.version
                if not found.usable:
                    reason = found.reason
                elif found.limit:
                    reason = f"its licence is limited to {found.limit}: used by name only"
            if not reason:
                taken = backend.name
            merit = reason or _merit(backend, self.info)
            yield backend, Candidate(name=backend.name, taken=not reason, reason=merit, version=version)

    def _ordered(self) -> Iterator[tuple[Backend, str]]:
        """Yield the backends in order of preference, special ones first, each with the reason for its place."""
        yield from ((each, "") for each in self._backends if not each.classes)
        general = {each.name: each for each in self._backends if each.classes}
        names, why_later = list(general), ""
        if self.info.problem_class is ProblemClass.LOG and "clarabel" in general:
            why_later = self._why_not_conic()
            if not why_later:
                names.remove("clarabel")
                names.insert(names.index("highs"), "clarabel")
        yield from ((general[name], why_later if name == "clarabel" else "") for name in names)

    def _why_not_conic(self) -> str:
        """Return why tangent cuts precede the conic method for this program with logarithms; empty if they do not."""
        if self.info.program_size > CONIC_ENTRIES:
            return f": tangent cuts are faster beyond {CONIC_ENTRIES:,} entries, here {self.info.program_size:,}"
        if self.options.rel_gap < CONIC_GAP:
            return f": a conic method reaches gaps of {CONIC_GAP:g}, asked {self.options.rel_gap:g}"
        return ""

    def _obstacle(self, backend: Backend) -> str:
        """Return why the backend cannot solve this problem anywhere, installed or not; empty if it can."""
        info = self.info
        special = info.kind in backend.formulations
        if not special and not backend.classes:
            return f"reads {_readable(backend)} only"
        if special and info.asked_form is not None and not backend.classes:
            return f"reads the problem itself, not its program {info.asked_form!r}"
        if not special and not reads(backend, info.problem_class):
            what = f"{info.problem_class.value} programs" if info.problem_class else f"a {info.kind}"
            return f"cannot state {what}"
        missed = _unsupported_options(backend, self.options)
        return f"cannot honour {', '.join(missed)}" if missed else ""


def checked_problem(problem: object) -> Formulation[Any]:
    """Return the problem; UnsupportedProblem unless it is a formulation, as a Program is one."""
    if not isinstance(problem, Formulation):
        raise UnsupportedProblem(f"cannot solve a {type(problem).__name__}: give a formulation or a Program")
    return problem


def reads(backend: Backend, wanted: ProblemClass | None) -> bool:
    """Whether the backend reads programs of this class: itself, or as tangent cuts on its logarithms."""
    if wanted is None:
        return False
    linear = {ProblemClass.LOG: ProblemClass.LP, ProblemClass.MILOG: ProblemClass.MILP}.get(wanted, wanted)
    return wanted in backend.classes or (backend.supports_outer_approximation and linear in backend.classes)


def accepts(backend: Backend, info: ProblemInfo) -> bool:
    """Whether the backend can state this problem in the requested form, installed or not."""
    return info.kind in backend.formulations or reads(backend, info.problem_class)


def _unsupported_options(backend: Backend, options: Options) -> list[str]:
    """Return the options that are set and that the backend cannot honour."""
    return [
        name
        for name in OPTIONAL
        if name not in backend.supported_options
        and (value := getattr(options, name)) is not getattr(DEFAULTS, name)
        and (name == "warm_start" or value != getattr(DEFAULTS, name))
    ]


def _merit(backend: Backend, info: ProblemInfo) -> str:
    wanted = info.problem_class
    if wanted is None or info.kind in backend.formulations:
        return f"made for {info.kind}"
    if wanted in backend.classes:
        return f"reads {wanted.value} programs"
    return f"solves {wanted.value} programs by tangent cuts"


def _readable(backend: Backend) -> str:
    programs = [each.value for each in ProblemClass if reads(backend, each)]
    parts = [", ".join(sorted(backend.formulations)), f"{', '.join(programs)} programs" if programs else ""]
    return " and ".join(part for part in parts if part)
