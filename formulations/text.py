"""Format text for people: aligned columns, durations, the nearest of a list of names, figures with few digits."""

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


def figure_text(value: float, digits: int = 4) -> str:
    """Return a number with so many digits; a dash for NaN, a sign for infinity."""
    if not math.isfinite(value):
        return "\N{EN DASH}" if math.isnan(value) else ("∞" if value > 0 else "\N{MINUS SIGN}∞")
    return f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}")


def gap_text(value: float) -> str:
    """Return a gap: in percent from 1e-4 on, as a power of ten below."""
    if value == 0 or not math.isfinite(value):
        return figure_text(value)
    if abs(value) >= 1e-4:
        return f"{100 * value:.2g}%"
    return f"{value:.1e}".replace("e-0", "e-").replace("-", "\N{MINUS SIGN}")


def distinguishing_digits(objective: float, bound: float | None) -> int:
    """Return how many digits, of 4 to 8, distinguish objective and bound; 5 where none does."""
    return next((n for n in range(4, 9) if bound is None or f"{objective:.{n}g}" != f"{bound:.{n}g}"), 5)
