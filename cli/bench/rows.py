"""Rows of a benchmark, printed as a table or as JSON, and lists of names as options."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..console import console, new_table
from ..errors import OK, CommandError
from ..json_text import json_rows

# Characters in a line; a table is as wide as its columns need.
WIDEST = 1000


def split_names(given: list[str] | None, option: str = "--backends") -> list[str] | None:
    """Return names given once each or several in one, separated by commas; None when none are given."""
    if not given:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    if not all(names):
        raise CommandError(f"{option} {','.join(given)}: an empty name", "separate names by commas.")
    return names


def print_rows(rows: Iterable[Mapping[str, Any]], *, as_json: bool) -> int:
    """Print rows as a table, or as JSON, one row a line."""
    plain = json_rows(rows)
    if as_json:
        lines = ",\n".join(f" {json.dumps(row, allow_nan=False)}" for row in plain)
        sys.stdout.write(f"[\n{lines}\n]\n" if plain else "[]\n")
        return OK
    from rich.text import Text

    columns = list(dict.fromkeys(key for row in plain for key in row))
    table = new_table()
    for name in columns:
        numbers = all(not isinstance(row.get(name), str) for row in plain)
        table.add_column(name, justify="right" if numbers else "left", no_wrap=True)
    for row in plain:
        table.add_row(*(Text(_cell(row.get(name))) for name in columns))
    out = console()
    out.width = max(out.width, WIDEST)  # a narrower table would cut numbers short
    out.print(table)
    return OK


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
