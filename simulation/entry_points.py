"""Tables whose rows come from this package and, by entry points, from other installed distributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


class LazyTable(Mapping[_Key, _Row]):
    """Mapping that is built on first access.

    Other distributions' modules import this package, so their rows cannot be read during its import.
    """

    def __init__(self, make: Callable[[], Mapping[_Key, _Row]]) -> None:
        self._make = make

    @cached_property
    def _rows(self) -> Mapping[_Key, _Row]:
        return self._make()

    def __getitem__(self, key: _Key) -> _Row:
        return self._rows[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(dict(self._rows))


def with_installed(
    own: Iterable[_Row], group: str, row_type: type[_Row], key: Callable[[_Row], _Key]
) -> dict[_Key, _Row]:
    """Return a table's own rows, by `key`, and those that installed distributions add by entry points of a group.

    A row that does not load, is of another type or repeats a key is left out with a warning.
    """
    from importlib.metadata import entry_points

    rows = {key(row): row for row in own}
    for entry in entry_points(group=group):
        try:
            row = entry.load()
        except Exception as error:
            warnings.warn(f"{group}: {entry.value} does not load: {type(error).__name__}: {error}", stacklevel=2)
            continue
        if not isinstance(row, row_type):
            warnings.warn(f"{group}: {entry.value} is no {row_type.__name__}", stacklevel=2)
        elif key(row) in rows:
            warnings.warn(f"{group}: {entry.value} repeats {key(row)!r}", stacklevel=2)
        else:
            rows[key(row)] = row
    return rows
