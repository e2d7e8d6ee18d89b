"""Computer algebra of the proofs: sympy, imported when it is first used, and families of indexed symbols."""

from __future__ import annotations

from typing import Any

from ...formulations.errors import EquipoiseError


class TheoryMissing(EquipoiseError):  # noqa: N818
    """A package of the `theory` extra is not installed; the message names it and its installation."""


def load_sympy() -> Any:
    """Return the module sympy, which only proofs load; TheoryMissing if it is not installed."""
    try:
        import sympy
    except ImportError:
        raise TheoryMissing("proofs need sympy, which is not installed: pip install 'equipoise[theory]'") from None
    return sympy


class _Sympy:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a look at the object, as by doctest, and no use of sympy
            raise AttributeError(name)
        return getattr(load_sympy(), name)


#: Stands for the module sympy.
sp: Any = _Sympy()


def integers(names: str) -> Any:
    """Return positive integer symbols by their names, separated by spaces: indices and their ends."""
    return sp.symbols(names, integer=True, positive=True)


def positive(names: str) -> Any:
    """Return positive indexed symbols by their names, separated by spaces; one alone for one name."""
    return _indexed(names, positive=True)


def nonnegative(names: str) -> Any:
    """Return nonnegative indexed symbols by their names, separated by spaces; one alone for one name."""
    return _indexed(names, nonnegative=True)


def _indexed(names: str, **sign: bool) -> Any:
    made = [sp.IndexedBase(name, **sign) for name in names.split()]
    return made if len(made) > 1 else made[0]
