"""The table of backends: the problems that each accepts, and whether it can run here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..formulations.program.data import ProblemClass
from ..formulations.program.formulation import Formulation
from ..formulations.text import columns_text
from .registry import all_backends
from .selection import ProblemInfo, accepts, reads


@dataclass(frozen=True, kw_only=True)
class BackendRow:
    """One line of the table of backends.

    Attributes
    ----------
    name, version, licence, reason : str
        `reason` is the cause if the backend is not usable, or the limit of its licence; empty otherwise.
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
    """The rows of `backends()`; it prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        head = ("name", "version", "usable", "accepts", "licence", "reason")
        lines = [
            (r.name, r.version or "-", "yes" if r.usable else "no", ", ".join(r.classes), r.licence, r.reason)
            for r in self
        ]
        return columns_text([head, *lines])

    __repr__ = __str__


def backends(problem: Formulation[Any] | None = None, usable: bool | None = None) -> BackendTable:
    """Return the table of backends, in the order in which "auto" prefers them.

    Parameters
    ----------
    problem : formulation or Program, optional
        List only backends that can solve it.
    usable : bool, optional
        List only backends that are (or are not) usable here.

    Examples
    --------
    >>> import equipoise as eq
    >>> [row.name for row in eq.backends() if row.name == "highs" and row.usable]
    ['highs']
    """
    return BackendTable(_rows(None if problem is None else ProblemInfo(problem), usable))


def _rows(info: ProblemInfo | None, usable: bool | None) -> Iterable[BackendRow]:
    for backend in all_backends():
        if info is not None and not accepts(backend, info):
            continue
        found = backend.probe()
        if usable is None or found.usable is usable:
            yield BackendRow(
                name=backend.name,
                version=found.version,
                usable=found.usable,
                licence=backend.licence,
                reason=found.reason or (f"licence limited to {found.limit}" if found.limit else ""),
                classes=(*(c.value for c in ProblemClass if reads(backend, c)), *sorted(backend.formulations)),
            )
