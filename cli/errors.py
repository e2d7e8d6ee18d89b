"""Failures of the command as text: one line, one hint, one exit code."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..formulations.errors import (
    BackendNotFound,
    BackendUnavailable,
    EquipoiseError,
    InvalidInput,
    NoSolution,
    UnsupportedProblem,
)

OK = 0
FAILED = 1  # not the user's fault: a full disk, a defect
BAD_INPUT = 2
NO_PLAN = 3
NO_BACKEND = 4
INTERRUPTED = 130
BROKEN_PIPE = 141

TRACEBACK_VARIABLE = "EQUIPOISE_TRACEBACK"

SCHEMA_HINT = "`equipoise schema instance` prints the instance format."
# Commands that read no instance, where a hint at its format would mislead.
WITHOUT_INSTANCE = ("verify", "bench", "simulate", "compare", "tune", "front")


class CommandError(EquipoiseError):
    """A failure with a hint, which is advice to the user, and an exit code of its own."""

    def __init__(self, message: str, hint: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.hint, self.code = hint, code


@dataclass(frozen=True)
class Failure:
    """Exit code, line and hint of one failure."""

    code: int
    line: str
    hint: str


def explain(error: BaseException, command: str = "") -> Failure:
    """Return exit code, line and hint for any exception of a command; both texts are single lines."""
    failure = _explain(error, command)
    return Failure(failure.code, _one_line(failure.line), _one_line(failure.hint))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    # Escape sequences in an id or a file name must not reach the terminal.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _explain(error: BaseException, command: str) -> Failure:
    if isinstance(error, CommandError):
        return Failure(error.code, str(error), error.hint)
    if isinstance(error, InvalidInput) and command in WITHOUT_INSTANCE:
        return Failure(BAD_INPUT, str(error), f"`equipoise {command} --help` shows what it takes.")
    if isinstance(error, InvalidInput):
        return Failure(BAD_INPUT, str(error), f"{SCHEMA_HINT} `equipoise COMMAND --help` lists the options.")
    if isinstance(error, BackendNotFound | BackendUnavailable | UnsupportedProblem):
        return Failure(NO_BACKEND, str(error), "`equipoise backends` lists what can run here; the default is auto.")
    if isinstance(error, NoSolution):
        return Failure(NO_PLAN, str(error), "give it longer with --time-limit.")
    if isinstance(error, EquipoiseError):
        return Failure(FAILED, str(error), f"re-run with {TRACEBACK_VARIABLE}=1 to see where.")
    if isinstance(error, OSError):
        if error.filename is None:  # no file that the user named: standard output, as on a full disk
            return Failure(FAILED, f"output: {error.strerror or error}", "check where the output goes.")
        return Failure(
            BAD_INPUT, f"{error.filename}: {error.strerror or error}", "check that the path exists and may be used."
        )
    if isinstance(error, MemoryError):
        return Failure(FAILED, "out of memory", "try fewer jobs or rounds, or --backend lagrangian.")
    message = getattr(error, "format_message", None)
    if callable(message):  # a usage error of typer, whichever version of click it contains
        context = getattr(error, "ctx", None)
        command = getattr(context, "command_path", None) or "equipoise"
        return Failure(BAD_INPUT, str(message()).rstrip("."), f"`{command} --help` shows what it takes.")
    return Failure(
        FAILED,
        f"unexpected {type(error).__name__}: {error}",
        f"this is a defect; re-run with {TRACEBACK_VARIABLE}=1 for the traceback and report it.",
    )


def traceback_wanted() -> bool:
    """Whether the environment asks for tracebacks."""
    return os.environ.get(TRACEBACK_VARIABLE, "") not in ("", "0")
