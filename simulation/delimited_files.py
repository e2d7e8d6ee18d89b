"""Typed reading of delimited text files; errors name file, line and column."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    try:
        data = path.read_bytes()
        # utf-8-sig drops the byte-order mark that spreadsheets write before the first column's name.
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig").splitlines()
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
    for index, row in enumerate(rows):
        value = as_id(row.text(column))
        if first.setdefault(value, row.line) != row.line:
            raise InvalidInput(column, value, f"the same id as on line {first[value]} ({row.location})", index=index)
    return list(first)


def as_id(text: str) -> str | int:
    """Return the integer that the text is the canonical form of (no leading zeros), otherwise the text."""
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]*", text) else text
