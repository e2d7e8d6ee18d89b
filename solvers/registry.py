"""The backends by name, and the table of what each can do here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..formulations.errors import BackendNotFound, UnsupportedProblem
from ..formulations.program.model import ProblemClass
from .backend import Backend

# In order of preference for backend="auto": special backends first. Each module holds one object named BACKEND, or,
# for a family ("pyomo:glpk"), a function `backend(name)` that makes the member of any name.
BACKENDS = {
    "marginal": "window.backend",
    "proportional_response": "markets.proportional_response.backend",
    "interior_point": "markets.interior_point.backend",
    "share_prices": "shares.backend",
    "finish_time": "shares.finish_time.backend",
    "matching": "assignment.matching.backend",
    "goodput": "assignment.goodput.backend",
    "birkhoff": "makespan.birkhoff",
    "cp_sat_schedule": "external.ortools.schedule",
    "gang_packing": "makespan.gang_packing",
    "gurobi": "external.gurobi.backend",
    "highs": "external.highs",
    "clarabel": "external.clarabel.backend",
    "scip": "external.scip.backend",
    "pyomo:highs": "external.pyomo.backend",
    "pyomo:cbc": "external.pyomo.backend",
    "pyomo:glpk": "external.pyomo.backend",
    "pyomo:ipopt": "external.pyomo.backend",
    "scipy": "external.scipy_milp",
    "ortools": "external.ortools.backend",
}
FAMILIES = {"pyomo": "external.pyomo.backend"}


def find_backend(name: Any) -> Backend:
    """Return the backend of this name; BackendNotFound, naming the nearest, if there is none."""
    family, _, member = name.partition(":") if isinstance(name, str) else ("", "", "")
    if family in FAMILIES and member:
        made: Backend = import_module(f".{FAMILIES[family]}", __package__).backend(name)
        return made
    if not isinstance(name, str) or name not in BACKENDS:
        near = difflib.get_close_matches(name, BACKENDS, n=1, cutoff=0.5) if isinstance(name, str) else []
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BackendNotFound(f"no backend {name!r}: {hint}there are {', '.join(BACKENDS)}")
    backend: Backend = import_module(f".{BACKENDS[name]}", __package__).BACKEND
    return backend


def reads(backend: Backend, wanted: ProblemClass | None) -> bool:
    """Whether the backend reads programs of this class: itself, or as tangent cuts on its logarithms."""
    if wanted is None:
        return False
    linear = {ProblemClass.LOG: ProblemClass.LP, ProblemClass.MILOG: ProblemClass.MILP}.get(wanted, wanted)
    return wanted in backend.classes or (backend.supports_outer_approximation and linear in backend.classes)


def accepts(backend: Backend, problem: Any, form: str | None = None) -> bool:
    """Whether the backend can state this problem, in this form of it if one is given, installed or not."""
    if kind_of(problem) in backend.formulations:
        return True
    return reads(backend, problem_class(problem, form))


def kind_of(problem: Any) -> str:
    """Return the name by which backends list the formulation: its type's, or its own `kind`."""
    kind: str = getattr(problem, "kind", type(problem).__name__)
    return kind


def problem_class(problem: Any, form: str | None = None) -> ProblemClass | None:
    """Return the class of the problem's program, without building it where the formulation declares it.

    `form` matters to a formulation whose programs are of several classes; it declares `form_classes`. None for a
    problem that no program states.
    """
    if not hasattr(problem, "program"):
        raise UnsupportedProblem(f"cannot solve a {type(problem).__name__}: give a formulation or a Program")
    if hasattr(problem, "form_classes"):
        by_form: ProblemClass = problem.form_classes[form or problem.forms[0]]
        return by_form
    declared: ProblemClass | None = (
        problem.problem_class if hasattr(problem, "problem_class") else problem.program().problem_class
    )
    return declared


@dataclass(frozen=True, kw_only=True)
class BackendRow:
    """One line of the table of backends.

    Attributes
    ----------
    name, version, licence, reason : str
        `reason` says why it is not usable, or what its licence limits; empty otherwise.
    usable : bool
    classes : tuple of str
        Problem classes and formulations it accepts.
    """

    name: str
    version: str
    usable: bool
    classes: tuple[str, ...]
    licence: str
    reason: str


class BackendTable(tuple[BackendRow, ...]):
    """Rows of `backends()`; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        head = ("name", "version", "usable", "accepts", "licence", "reason")
        lines = [
            (r.name, r.version or "-", "yes" if r.usable else "no", ", ".join(r.classes), r.licence, r.reason)
            for r in self
        ]
        return columns_text([head, *lines])

    __repr__ = __str__


def columns_text(lines: list[tuple[str, ...]]) -> str:
    """Return lines of cells as text in aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def backends(problem: Any = None, usable: bool | None = None) -> BackendTable:
    """Return the table of backends, in the order in which "auto" prefers them.

    Parameters
    ----------
    problem : formulation or Program, optional
        List only backends that can state it.
    usable : bool, optional
        List only backends that are (or are not) usable here.

    Examples
    --------
    >>> import equipoise as eq
    >>> [row.name for row in eq.backends() if row.name == "highs" and row.usable]
    ['highs']
    """
    return BackendTable(_rows(problem, usable))


def _rows(problem: Any, usable: bool | None) -> Iterable[BackendRow]:
    for name in BACKENDS:
        backend = find_backend(name)
        if problem is not None and not accepts(backend, problem):
            continue
        found = backend.probe()
        if usable is None or found.usable is usable:
            yield BackendRow(
                name=name,
                version=found.version,
                usable=found.usable,
                licence=backend.licence,
                reason=found.reason or (f"licence limited to {found.limit}" if found.limit else ""),
                classes=(*(c.value for c in ProblemClass if reads(backend, c)), *sorted(backend.formulations)),
            )
