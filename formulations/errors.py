"""Errors that the library raises on purpose, all subclasses of EquipoiseError."""

from __future__ import annotations

from typing import Any


class EquipoiseError(Exception):
    """Root of the library's errors."""


class InvalidInput(EquipoiseError, ValueError):  # noqa: N818 - the name users read
    """The caller's data is wrong; nothing has run.

    Attributes
    ----------
    field : str
        Name of the offending field, as the caller wrote it.
    index : tuple of int or None
        Position within the field, None for a scalar or for the field as a whole.
    value : object
        The offending value.
    """

    def __init__(self, field: str, value: Any, why: str, index: tuple[int, ...] | int | None = None) -> None:
        self.field = field
        self.index = (index,) if isinstance(index, int) else index
        self.value = value
        self.why = why
        place = "" if self.index is None else "[" + ", ".join(str(i) for i in self.index) + "]"
        shown = repr(value) if isinstance(value, str) else str(value)
        super().__init__(f"{field}{place} = {shown[:80]}: {why}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.value, self.why, self.index)


class UnknownOption(InvalidInput, TypeError):  # noqa: N818
    """A keyword is no option; the message gives the nearest one."""


class BackendNotFound(EquipoiseError, LookupError):  # noqa: N818
    """No backend has this name; the message gives the nearest one."""


class BackendUnavailable(EquipoiseError):  # noqa: N818
    """The backend is registered but cannot run here; the message gives the reason and the way to install it."""


class LicenseLimit(BackendUnavailable):
    """The backend's licence does not cover a problem of this size."""


class UnsupportedProblem(EquipoiseError, TypeError):  # noqa: N818
    """The backend cannot state this problem; the message names a backend that can."""


class NoSolution(EquipoiseError):  # noqa: N818
    """A plan was required and there is none.

    Attributes
    ----------
    result : Result
        The result of the solve: termination, bound, history.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.result)
