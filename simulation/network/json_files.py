"""Reading of JSON files of a network: an object, its required and optional members, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...formulations.errors import InvalidInput
from ...formulations.text import nearest_hint
from ..delimited_files import read_lines


def read_object(path: str | Path) -> dict[str, Any]:
    """Return the object of a JSON file; InvalidInput if it is none, or an object in it has a member twice."""
    path = Path(path)
    try:
        content = json.loads("\n".join(read_lines(path)), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise InvalidInput("path", str(path), f"is no JSON: {error}") from None
    _require_object(content, path.name)
    return dict(content)


def members(content: Any, name: str, *, known: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """Return an object of JSON; InvalidInput names a required member that is missing, or one that is not known."""
    _require_object(content, name)
    for member in required:
        if member not in content:
            raise InvalidInput(f"{name}.{member}", None, "is missing")
    for member in content:
        if member not in known:
            hint = nearest_hint(member, known)
            raise InvalidInput(name, member, f"no such member; {hint}there are {', '.join(known)}")
    return dict(content)


def _require_object(content: Any, name: str) -> None:
    if not isinstance(content, dict):
        raise InvalidInput(name, type(content).__name__, "must be an object of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidInput(name, value, "is given twice in one object of JSON")
        found[name] = value
    return found
