"""Finding: whether one property holds of an answer, by how much it fails, where, and what was tolerated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...formulations.errors import EquipoiseError
from ...formulations.text import columns_text


class PropertyFails(EquipoiseError):  # noqa: N818 - the name users read
    """A property was required and does not hold.

    Attributes
    ----------
    findings : tuple of Finding
        Those that fail.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(str(finding) for finding in findings) or "nothing was found")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.findings,)


@dataclass(frozen=True, kw_only=True)
class Witness:
    """Where a property fails, or comes nearest to it; prints as words.

    Attributes
    ----------
    buyer : int or None
    other : int or None
        The second buyer of a pair: the one who is envied.
    good : int or tuple of int or None
        Index of the good among the prices: k, or (resource, round).
    words : str
        The size in words, or what was proved.
    allocation : ndarray or csr_array or None
        An allocation that shows the failure: one that is better.
    """

    buyer: int | None = None
    other: int | None = None
    good: int | tuple[int, ...] | None = None
    words: str = ""
    allocation: Any = None

    def __str__(self) -> str:
        places = [
            "" if self.buyer is None else f"buyer {self.buyer}",
            "" if self.other is None else f"against buyer {self.other}",
            "" if self.good is None else f"good {self.good}",
        ]
        return ": ".join(part for part in (" ".join(place for place in places if place), self.words) if part)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One property, judged; prints as one line, and is true if the property holds.

    Attributes
    ----------
    statement : str
        The property, in words.
    source : str
        Paper, equation or theorem.
    holds : bool
        Whether the violation is within the tolerance.
    violation : float
        0 if there is none, infinite if a number is missing; each property says in which unit.
    witness : object
        Where: a :class:`Witness`, or whatever else prints as words; None if there is nothing to show.
    tolerance : float
        What the certified gap and the rounding of floats explain, in the unit of the violation.
    """

    statement: str
    source: str
    holds: bool
    violation: float
    witness: Any = None
    tolerance: float = 0.0

    def __bool__(self) -> bool:
        """Whether the property holds: ``assert envy_freeness(...)`` means what it says."""
        return self.holds

    def __str__(self) -> str:
        where = f" ({self.witness})" if str(self.witness or "") else ""
        verdict = "holds" if self.holds else "FAILS"
        size = f"off by {size_text(self.violation)}, {size_text(self.tolerance)} allowed"
        return f"{self.statement}: {verdict}, {size}{where}"

    def require(self) -> Finding:
        """Return the finding if the property holds; raise PropertyFails otherwise."""
        if not self.holds:
            raise PropertyFails((self,))
        return self


class Certificate(tuple[Finding, ...]):
    """Findings about one answer; prints as a table.

    Unlike other tuples, one is true if all findings hold (and there is one).
    """

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Whether every property holds."""
        return len(self) > 0 and all(finding.holds for finding in self)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The properties that do not hold."""
        return tuple(finding for finding in self if not finding.holds)

    def require(self) -> Certificate:
        """Return the certificate if every property holds; raise PropertyFails, carrying the failures, otherwise."""
        if not self.holds:
            raise PropertyFails(self.failures)
        return self

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        rows = [
            (
                finding.statement,
                "yes" if finding.holds else "NO",
                size_text(finding.violation),
                size_text(finding.tolerance),
                str(finding.witness or "-"),
            )
            for finding in self
        ]
        return columns_text([("statement", "holds", "violation", "tolerance", "witness"), *rows])

    __repr__ = __str__


def size_text(size: float) -> str:
    """Return a violation or a tolerance in two digits."""
    return "inf" if math.isinf(size) else f"{size:.1e}" if size else "0"
