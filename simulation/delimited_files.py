"""Typed reading of delimited text files; errors name file, line and column."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from ..formulations.checks import as_integer, as_real
from ..formulations.errors import InvalidInput


@dataclass(frozen=True)
class Row:
    """One line of a table: its cells by column name, its file and line for messages, and the line's number from 1."""

    cells: dict[str, str]
    location: str
    line: int

    def text(self, column: str) -> str:
        """Return a cell that must not be empty."""
        value = self.cells[column]
        if not value:
            raise InvalidInput(column, value, f"must not be empty ({self.location})")
        return value

    def integer(self, column: str, minimum: int) -> int:
        """Return a cell as a whole number of at least `minimum`."""
        return int(self._checked(column, int, "must be a whole number", as_integer, minimum=minimum))

    def optional_integer(self, column: str, minimum: int) -> int | None:
        """Return a cell as `integer` does; None if it is empty or the table has no such column."""
        return self.integer(column, minimum) if self.cells.get(column) else None

    def real(self, column: str, *, minimum: float | None = None, above: float | None = None) -> float:
        """Return a cell as a finite number, at least `minimum` and greater than `above`."""
        return float(self._checked(column, float, "must be a number", as_real, minimum=minimum, above=above))

    def _checked(self, column: str, read: Any, kind: str, check: Any, **limits: float | None) -> Any:
        value = self.cells[column]
        try:
            return check(column, read(value), **limits)
        except ValueError as error:  # InvalidInput is one
            value, why = (error.value, error.why) if isinstance(error, InvalidInput) else (value, kind)
            raise InvalidInput(column, value, f"{why} ({self.location})") from None


def read_lines(path: Path) -> list[str]:
    """Return a text file's lines, unpacked if it ends in .gz; raise InvalidInput if it cannot be read as UTF-8."""
    with _opened(path) as file:
        return file.read().splitlines()


def header_names(path: Path) -> frozenset[str]:
    """Return the names in a file's first line that is not blank; none if the line is separated by tabs.

    No more of the file is read. InvalidInput as of `read_lines`.
    """
    with _opened(path) as file:
        first = next((line for line in file if line.strip()), "")
    return frozenset() if "\t" in first else frozenset(name.strip().strip('"') for name in first.split(","))


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a text file, unpacked if it ends in .gz; faults of the file become InvalidInput."""
    try:
        # utf-8-sig drops the byte-order mark that spreadsheets write before the first column's name.
        with (
            open(path, "rb") as raw,
            gzip.open(raw) if path.suffix == ".gz" else raw as data,
            TextIOWrapper(data, encoding="utf-8-sig") as file,
        ):
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInput("path", str(path), "is not a whole gzip file") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is not a text file in UTF-8"
        raise InvalidInput("path", str(path), why) from None


def read_rows(path: Path, required: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a CSV file with a header line; every column in `required` must be present.

    Blank lines are skipped. A line with more or fewer cells than the header is an error: it was cut or shifted. The
    message of InvalidInput names file and line, and the column where one is at fault.
    """
    lines = read_lines(path)
    reader = csv.reader(lines)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in required:
            if name not in header:
                raise InvalidInput(name, ",".join(header), f"column missing from the header of {path.name}")
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise InvalidInput(twice, ",".join(header), f"column given twice in the header of {path.name}")
        for cells in reader:
            if not cells:
                continue
            location = f"{path.name}, line {reader.line_num}"
            if len(cells) != len(header):
                why = f"{len(cells)} cells, the header has {len(header)} ({location})"
                raise InvalidInput("line", ",".join(cells), why)
            yield Row(dict(zip(header, (cell.strip() for cell in cells), strict=True)), location, reader.line_num)
    except csv.Error as error:
        raise InvalidInput("line", str(error), f"not CSV ({path.name}, line {reader.line_num})") from None


def unique_ids(rows: Sequence[Row], column: str = "job_id") -> list[str | int]:
    """Return the ids of a column, integers where they are written as such; raise InvalidInput on a duplicate."""
    first: dict[str | int, int] = {}
    return [unique_id(row, column, first) for row in rows]


def unique_id(row: Row, column: str, first: dict[str | int, int]) -> str | int:
    """Return the id of one row as `unique_ids` does; `first` has the lines of the ids so far, and gets this one."""
    value = as_id(row.text(column))
    if first.setdefault(value, row.line) != row.line:
        why = f"the same id as on line {first[value]} ({row.location})"
        raise InvalidInput(column, value, why, index=len(first))
    return value


def as_id(text: str) -> str | int:
    """Return the integer that the text is the canonical form of (no leading zeros), otherwise the text."""
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]*", text) else text
