"""Write to the terminal: text and tables on standard output, status and errors on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PLAIN_WIDTH = 120
_PIECE = 1 << 16


def console() -> Console:
    """Return a console for standard output, wide enough for tables where that is not a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def new_table() -> Table:
    """Return an empty table with a line under its headings and no frame."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)


def printable(text: str) -> str:
    """Return the text with its control characters, if it has any, written as escape sequences."""
    return text if text.isprintable() else ascii(text)[1:-1]


def usage_bars(in_use: list[int], gpus: int, *, unicode: bool) -> str:
    """Return one character a round, its height the share of GPUs in use; full is full only when none is idle."""
    levels = " ▁▂▃▄▅▆▇█" if unicode else " 12345678#"
    top = len(levels) - 1
    return "".join(
        levels[top] if used >= gpus else levels[0] if used == 0 else levels[1 + used * (top - 1) // gpus]
        for used in in_use
    )


def print_text(text: str) -> None:
    """Write `text` to standard output in pieces of a pipe's size.

    An unbuffered stream takes a part of a longer text where the reader has left, and reports nothing. Written in
    pieces, the next one raises BrokenPipeError.
    """
    for start in range(0, len(text), _PIECE):
        sys.stdout.write(text[start : start + _PIECE])
    sys.stdout.flush()


def print_status(message: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"equipoise: {message}\n")


def print_error(text: str) -> None:
    """Write text to standard error; where that is closed, the exit code alone reports the failure."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, AttributeError):
        pass
