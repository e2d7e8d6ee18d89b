"""Checks of claims: what is measured, by label, against a bound or a rival; nothing passes that is not a number."""

from __future__ import annotations

from collections.abc import Mapping

from .experiment import PaperClaim

# Sums of floats differ by so much from what they stand for.
_ROUNDING = 1e-12


def at_most(
    statement: str, values: Mapping[str, float], limit: float, *, unit: str = "", printed: str = ""
) -> PaperClaim:
    """Claim that there are values, and that each is at most the limit."""
    holds = bool(values) and all(value <= limit for value in values.values())
    return PaperClaim(statement=statement, holds=holds, numbers=_listed(values, unit, printed))


def at_least(
    statement: str, values: Mapping[str, float], limit: float, *, unit: str = "", printed: str = ""
) -> PaperClaim:
    """Claim that there are values, and that each is at least the limit."""
    holds = bool(values) and all(value >= limit for value in values.values())
    return PaperClaim(statement=statement, holds=holds, numbers=_listed(values, unit, printed))


def below(
    statement: str, pairs: Mapping[str, tuple[float, float]], *, unit: str = "", printed: str = "", equal: bool = False
) -> PaperClaim:
    """Claim that the first of each pair is below the second, or with `equal` no greater."""
    holds = bool(pairs) and all(ours < theirs or (equal and ours == theirs) for ours, theirs in pairs.values())
    numbers = ", ".join(
        f"{label} {_short(ours)} against {_short(theirs)}{unit}" for label, (ours, theirs) in pairs.items()
    )
    return PaperClaim(statement=statement, holds=holds, numbers=_with_printed(numbers, printed))


def agrees(
    statement: str, pairs: Mapping[str, tuple[float, float]], *, within: float, unit: str = "", printed: str = ""
) -> PaperClaim:
    """Claim that the first of each pair differs from the second, a printed number, by at most `within`."""
    holds = bool(pairs) and all(abs(ours - theirs) <= within for ours, theirs in pairs.values())
    numbers = ", ".join(f"{label} {_short(ours)}{unit} (printed {theirs:g})" for label, (ours, theirs) in pairs.items())
    return PaperClaim(statement=statement, holds=holds, numbers=_with_printed(numbers, printed))


def somewhere(
    statement: str, pairs: Mapping[str, tuple[float, float]], *, start: float, goal: float, unit: str, printed: str
) -> PaperClaim:
    """Claim that at some label the first number is at least `start` and the second at most `goal`."""
    holds = any(before >= start and after <= goal for before, after in pairs.values())
    numbers = ", ".join(
        f"{label} from {_short(before)} to {_short(after)}{unit}" for label, (before, after) in pairs.items()
    )
    return PaperClaim(statement=statement, holds=holds, numbers=_with_printed(numbers, printed))


def _listed(values: Mapping[str, float], unit: str, printed: str) -> str:
    numbers = ", ".join(f"{label} {_short(value)}{unit}" for label, value in values.items())
    return _with_printed(numbers, printed)


def _short(value: float) -> str:
    """Return four digits; what is only a rounding error is 0."""
    return "0" if abs(value) < _ROUNDING else f"{value:.4g}"


def _with_printed(numbers: str, printed: str) -> str:
    return f"{numbers}; printed {printed}" if printed else numbers
