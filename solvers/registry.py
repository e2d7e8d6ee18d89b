"""The backends by name, and the table of what each can do here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..formulations.errors import BackendNotFound, UnsupportedProblem
from .backend import Availability, Backend

# In order of preference for backend="auto": special backends first. Each module holds one object named BACKEND.
BACKENDS = {
    "marginal": "marginal",
    "highs": "highs",
    "scipy": "scipy_milp",
}


def find_backend(name: str) -> Backend:
    """Return the backend of this name; BackendNotFound, naming the nearest, if there is none."""
    if not isinstance(name, str) or name not in BACKENDS:
        near = difflib.get_close_matches(str(name), BACKENDS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BackendNotFound(f"no backend {name!r}: {hint}there are {', '.join(BACKENDS)}")
    backend: Backend = import_module(f".{BACKENDS[name]}", __package__).BACKEND
    return backend


def accepts(backend: Backend, problem: Any) -> bool:
    """Whether the backend can state this problem, installed or not."""
    if type(problem).__name__ in backend.formulations:
        return True
    return problem_class(problem) in backend.classes


def problem_class(problem: Any) -> Any:
    """Return the class of the problem's program, without building it where the formulation declares it."""
    if not hasattr(problem, "program"):
        raise UnsupportedProblem(f"cannot solve a {type(problem).__name__}: give a formulation or a Program")
    return problem.problem_class if hasattr(problem, "problem_class") else problem.program().problem_class


@dataclass(frozen=True, kw_only=True)
class BackendRow:
    """One line of the table of backends.

    Attributes
    ----------
    name, version, licence, reason : str
        `reason` says why it is not usable, and is empty when it is.
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
            head,
            *(
                (r.name, r.version or "-", "yes" if r.usable else "no", ", ".join(r.classes), r.licence, r.reason)
                for r in self
            ),
        ]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    __repr__ = __str__


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
        found: Availability = backend.probe()
        if usable is None or found.usable is usable:
            yield BackendRow(
                name=name,
                version=found.version,
                usable=found.usable,
                licence=backend.licence,
                reason=found.reason,
                classes=(*sorted(c.value for c in backend.classes), *sorted(backend.formulations)),
            )
