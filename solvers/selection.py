"""Which backend takes a problem: for "auto" the first that can, with a reason for every one passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..formulations.errors import BackendUnavailable, InvalidInput, UnsupportedProblem
from ..formulations.program.model import ProblemClass, Program
from .backend import OPTIONAL, Backend
from .options import Options
from .registry import BACKENDS, accepts, columns_text, find_backend, kind_of, problem_class, reads

# Log terms go to a conic interior-point method while the program has at most this many entries; beyond that, tangent
# cuts on a linear solver are faster (docs/backends/clarabel.md has the measurement).
CONIC_ENTRIES = 200_000
# The finest gap that a conic method reaches reliably.
CONIC_GAP = 1e-8


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


def candidates(problem: Any, *, form: str | None = None, **options: Any) -> CandidateTable:
    """Return what backend="auto" makes of every backend for this problem.

    Parameters
    ----------
    problem : formulation or Program
    form : str, optional
        As in :func:`solve`.
    **options
        The fields of :class:`Options`: an option that a backend cannot honour rules it out.

    Examples
    --------
    >>> import equipoise as eq
    >>> build = eq.ProgramBuilder(sense="max")
    >>> x = build.add_columns("x", shape=(1,), upper=1.0)
    >>> [row.reason for row in eq.candidates(build.program()) if row.name == "marginal"]
    ['reads ScheduleWindow only']
    """
    chosen = Options(**options)
    check_form(problem, form)
    return CandidateTable(weigh(problem, form, chosen, lambda: problem.program(form or problem.forms[0])))


def weigh(problem: Any, form: str | None, options: Options, build: Callable[[], Program]) -> Iterator[Candidate]:
    """Yield the candidates in order of preference, lazily; exactly one is taken, unless none can.

    `build` gives the program that a general backend would read; it is asked only where its size matters.
    """
    wanted = problem_class(problem, form)
    special = [name for name in BACKENDS if not find_backend(name).classes]
    why: dict[str, str] = {}
    taken = ""
    for name in chain(special, _general(problem, wanted, options, build, why)):
        backend = find_backend(name)
        version, reason = "", _obstacle(backend, problem, wanted, form, options)
        reason = reason or backend.skip_reason(problem, options)
        if not reason and taken:
            reason = f"{taken} comes first" + why.get(name, "")
        if not reason:
            found = backend.probe()
            version = found.version
            if not found.usable:
                reason = found.reason
            elif found.limit:
                reason = f"its licence is limited to {found.limit}: used by name only"
        if not reason:
            taken = name
        yield Candidate(name=name, taken=not reason, reason=reason or _merit(backend, problem, wanted), version=version)


def choose(problem: Any, form: str | None, options: Options, build: Callable[[], Program]) -> tuple[Backend, str]:
    """Return the backend that "auto" takes and its version; raise, with every reason, where none can be taken."""
    passed = []
    for candidate in weigh(problem, form, options, build):
        if candidate.taken:
            return find_backend(candidate.name), candidate.version
        passed.append(f"{candidate.name}: {candidate.reason}")
    raise BackendUnavailable(f"no backend can solve this {_described(problem)} here: " + "; ".join(passed))


def check_named(backend: Backend, problem: Any, form: str | None, options: Options) -> str:
    """Return the version of a backend chosen by name; raise what stands in its way."""
    name = backend.name
    if not accepts(backend, problem, form):
        able = _usable_first(row for row in BACKENDS if accepts(find_backend(row), problem, form))
        raise UnsupportedProblem(
            f"{name} cannot state this {_described(problem)}: it reads {_readable(backend)}; "
            + (f"use backend={able[0]!r}" if able else "no backend can")
        )
    if form is not None and not backend.classes:
        raise InvalidInput("form", form, f"{name} reads the problem itself; name a general backend instead")
    for other in options.backend_options:
        if other != name and other not in backend.delegates_to:
            raise InvalidInput("backend_options", other, f"the chosen backend is {name!r}: these would be ignored")
    for option in _dishonoured(backend, options):
        able = _usable_first(
            row
            for row, other in ((row, find_backend(row)) for row in BACKENDS)
            if option in other.supported_options and accepts(other, problem, form) and (form is None or other.classes)
        )
        advice = f"; use backend={able[0]!r} or leave it out" if able else "; leave it out"
        raise InvalidInput(option, getattr(options, option), f"the {name} backend cannot honour it{advice}")
    found = backend.probe()
    if not found.usable:
        raise BackendUnavailable(f"backend {name!r} cannot run here: {found.reason}")
    return found.version


def _usable_first(names: Iterable[str]) -> list[str]:
    """Return the names in order, those that "auto" would not pass over first."""
    found = {name: find_backend(name).probe() for name in names}
    return sorted(found, key=lambda name: not found[name].usable or bool(found[name].limit))


def check_form(problem: Any, form: str | None) -> None:
    """Raise InvalidInput for a form that the problem does not have."""
    forms = getattr(problem, "forms", ())
    if form is not None and form not in forms:
        why = f"must be one of {', '.join(forms)}" if forms else f"a {kind_of(problem)} has no program: leave it out"
        raise InvalidInput("form", form, why)


def _general(
    problem: Any, wanted: ProblemClass | None, options: Options, build: Callable[[], Program], why: dict[str, str]
) -> Iterator[str]:
    """Yield the general backends in order of preference; put into `why` what moves one down."""
    names = [name for name in BACKENDS if find_backend(name).classes]
    if wanted is ProblemClass.LOG and "clarabel" in names:
        entries = getattr(problem, "program_entries", None)
        if entries is None:
            program = build()
            entries = len(program.matrix.values) + len(program.log_matrix.values)
        if entries > CONIC_ENTRIES:
            why["clarabel"] = f": tangent cuts are faster beyond {CONIC_ENTRIES:,} entries, here {entries:,}"
        elif options.rel_gap < CONIC_GAP:
            why["clarabel"] = f": a conic method reaches gaps of {CONIC_GAP:g}, asked {options.rel_gap:g}"
        else:
            names.remove("clarabel")
            names.insert(names.index("highs"), "clarabel")
    yield from names


def _obstacle(backend: Backend, problem: Any, wanted: ProblemClass | None, form: str | None, options: Options) -> str:
    """Return what rules the backend out for this problem anywhere, installed or not."""
    special = kind_of(problem) in backend.formulations
    if not special and not backend.classes:
        return f"reads {_readable(backend)} only"
    if special and form is not None and not backend.classes:
        return f"reads the problem itself, not its program {form!r}"
    if not special and not reads(backend, wanted):
        return f"cannot state {wanted.value} programs" if wanted else f"cannot state a {kind_of(problem)}"
    missed = _dishonoured(backend, options)
    return f"cannot honour {', '.join(missed)}" if missed else ""


def _dishonoured(backend: Backend, options: Options) -> list[str]:
    """Return the options that are set and that the backend cannot honour."""
    plain = Options()
    return [
        name
        for name in OPTIONAL
        if name not in backend.supported_options
        and (value := getattr(options, name)) is not getattr(plain, name)
        and (name == "warm_start" or value != getattr(plain, name))
    ]


def _merit(backend: Backend, problem: Any, wanted: ProblemClass | None) -> str:
    if wanted is None or kind_of(problem) in backend.formulations:
        return f"made for {kind_of(problem)}"
    if wanted in backend.classes:
        return f"reads {wanted.value} programs"
    return f"solves {wanted.value} programs by tangent cuts"


def _readable(backend: Backend) -> str:
    programs = [each.value for each in ProblemClass if reads(backend, each)]
    parts = [", ".join(sorted(backend.formulations)), f"{', '.join(programs)} programs" if programs else ""]
    return " and ".join(part for part in parts if part)


def _described(problem: Any) -> str:
    return f"{problem.problem_class.value} program" if isinstance(problem, Program) else kind_of(problem)
