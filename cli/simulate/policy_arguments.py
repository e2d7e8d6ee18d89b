"""Values of options as text: numbers, sequences and mappings of numbers, and files of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...formulations.errors import InvalidInput
from ...simulation.delimited_files import Row, read_rows


def read_value(text: str) -> Any:
    """Return text as a whole number, a number, a Boolean or None where it can be read as one, else the text."""
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_argument(option: str, value: Any, kind: str) -> Any:
    """Return the value of an option as the policy takes it.

    Parameters
    ----------
    option : str
    value : object
        As `read_value` returns it.
    kind : str
        Annotation of the option. If it allows a Sequence, the value is numbers separated by "/", or a CSV file with a
        column named as the option. If it allows a Mapping, it is "NAME:NUMBER" separated by "/", or a CSV file with
        the names in its first column and the numbers in the column named as the option. If it is a Collection of str,
        the value is names separated by "/". Values of all other options, None, and a number that the annotation allows,
        remain as they are.

    Raises
    ------
    InvalidInput
        If the value is neither; for a malformed file the message names column, value, file and line.
    """
    if value is not None and "Collection[str]" in kind:
        return [name.strip() for name in str(value).split("/")]
    if value is None or not ("Mapping[" in kind or "Sequence[" in kind):
        return value
    if kind.startswith("float |") and type(value) in (int, float):
        return value
    text, mapping = str(value), "Mapping[" in kind
    found = _mapping(option, text) if mapping else _sequence(text)
    if found is not None:
        return found
    if Path(text).is_file():
        return _mapping_of_file(option, Path(text)) if mapping else _sequence_of_file(option, Path(text))
    form, column = ("NAME:NUMBER", "the names and a column") if mapping else ("NUMBER", "a column")
    raise InvalidInput(option, text, f"must be {form}/{form}/..., or a CSV file with {column} {option}")


def _sequence(text: str) -> Sequence[float] | None:
    """Return numbers separated by "/"; None if the text is anything else."""
    numbers = [_number(part) for part in text.split("/")]
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else None


def _mapping(option: str, text: str) -> Mapping[str, float] | None:
    """Return "NAME:NUMBER" separated by "/" as a mapping; None if the text is anything else."""
    found: dict[str, float] = {}
    for part in text.split("/"):
        name, _, written = part.rpartition(":")
        number = _number(written)
        if not name.strip() or number is None:
            return None
        _store(found, name.strip(), number, option)
    return found


def _sequence_of_file(option: str, path: Path) -> Sequence[float]:
    return [_cell(row, option) for row in read_rows(path, (option,))]


def _mapping_of_file(option: str, path: Path) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for row in read_rows(path, (option,)):
        names = next(iter(row.cells))
        if names == option:
            raise InvalidInput(option, ",".join(row.cells), f"the first column must hold the names ({path.name})")
        _store(found, row.text(names), _cell(row, option), option, f" ({row.location})")
    return found


def _store(found: dict[str, float], name: str, number: float, option: str, where: str = "") -> None:
    if name in found:
        raise InvalidInput(option, name, f"is given twice{where}")
    found[name] = number


def _cell(row: Row, column: str) -> float:
    number = _number(row.text(column))
    if number is None:
        raise InvalidInput(column, row.text(column), f"must be a number ({row.location})")
    return number


def _number(text: str) -> float | None:
    value = read_value(text)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
