"""Format text for people: aligned columns, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def columns_text(lines: list[tuple[str, ...]]) -> str:
    """Return lines of cells as text in aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def nearest_hint(name: object, names: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? "`` for the name nearest to a misspelt one; the empty string if none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5) if isinstance(name, str) else []
    return f"did you mean {near[0]!r}? " if near else ""
