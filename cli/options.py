"""Options that several commands share, and the decorator that defers a command's work until typer has returned."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, ParamSpec

import typer

from ..solvers.registry import BACKENDS

#: The work of a command with its arguments bound; it returns the exit code.
Action = Callable[[], int]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and only JSON, on standard output.")]
SkipWide = Annotated[bool, typer.Option("--skip-wide", help="Skip jobs wider than the cluster, with a warning.")]
BackendName = Annotated[str, typer.Option(metavar="NAME", help=f"One of auto, {', '.join(BACKENDS)}.")]
Cluster = Annotated[str | None, typer.Option(help="Cluster whose throughputs to read [tacc].")]

_P = ParamSpec("_P")


def deferred(work: Callable[_P, int]) -> Callable[_P, Action]:
    """Make a command for typer of the function that does its work.

    Typer reads the options from the signature of `work`, which `functools.wraps` leads it to, and the help from the
    first paragraph of its docstring. The command only binds them, and `main.run` does the work outside typer, whose own
    handling of errors would interfere.
    """

    @wraps(work)
    def bind(*args: _P.args, **kwargs: _P.kwargs) -> Action:
        return partial(work, *args, **kwargs)

    bind.__doc__ = inspect.getdoc(work).partition("\n\n")[0]  # type: ignore[union-attr]
    return bind
