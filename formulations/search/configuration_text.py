"""Reading of configurations: the text of a file, and the object of JSON in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import InvalidInput


def file_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file in UTF-8, or raise InvalidInput."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is not a text file in UTF-8"
        raise InvalidInput("path", str(path), why) from None


def json_object(text: str) -> dict[str, Any]:
    """Return the object of JSON in a text, or raise InvalidInput."""
    try:
        content = json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise InvalidInput("text", text[:40] if isinstance(text, str) else text, f"is no JSON ({error})") from None
    if not isinstance(content, dict):
        raise InvalidInput("text", type(content).__name__, "must be an object of JSON")
    return content
