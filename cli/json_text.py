"""Lay a JSON document out for people and programs: one top-level field a line, one job a line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(document: Mapping[str, Any]) -> str:
    """Return `document` as JSON, ASCII only, ending in a newline; a list of objects gets a line for each.

    Raises
    ------
    ValueError
        If it holds a NaN or an infinity, which JSON has no word for.
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


def finite(number: float | None) -> float | None:
    """Return the number, or None where JSON has no word for it."""
    return float(number) if number is not None and math.isfinite(number) else None
