"""JSON documents as text: one top-level field a line, one row a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any


def json_text(document: Mapping[str, Any]) -> str:
    """Return `document` as JSON, ASCII only, ending in a newline; a list of objects gets a line for each.

    A NaN or an infinity, which JSON cannot write, is a ValueError.
    """
    fields = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inside = ",\n".join(f"  {_line(each)}" for each in value)
            fields.append(f" {_line(key)}: [\n{inside}\n ]")
        else:
            fields.append(f" {_line(key)}: {_line(value)}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def json_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their values as JSON can write them."""
    return [{key: json_value(value) for key, value in row.items()} for row in rows]


def json_value(value: Any) -> Any:
    """Return a number of numpy as one of Python, and None for a number that is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_option(value: Any) -> Any:
    """Return a value of an option, infinity as "inf": JSON cannot write it, and null is an option of its own."""
    return "inf" if value == math.inf else value
