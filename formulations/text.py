"""Format text for people: aligned columns, durations, and the nearest of a list of names."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable


def columns_text(lines: list[tuple[str, ...]]) -> str:
    """Return lines of cells as text in aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def duration_text(seconds: float) -> str:
    """Return a duration in one unit that suits it, such as 12 ms, 45 s, 12.5 min or 3.20 h; a dash if not finite."""
    if not math.isfinite(seconds):
        return "-"
    if 0 < seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def nearest_name(name: object, names: Iterable[str]) -> str | None:
    """Return the name nearest to a misspelt one; None if none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5) if isinstance(name, str) else []
    return near[0] if near else None


def nearest_hint(name: object, names: Iterable[str]) -> str:
    """Return ``"did you mean 'x'? "`` for the name nearest to a misspelt one; empty if none is near."""
    near = nearest_name(name, names)
    return f"did you mean {near!r}? " if near else ""
