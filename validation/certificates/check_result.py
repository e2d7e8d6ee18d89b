"""Results of property checks: `CheckResult` for one property of a plan, `Certificate` for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...formulations.errors import EquipoiseError
from ...formulations.former_names import FormerName
from ...formulations.text import columns_text


class PropertyFails(EquipoiseError):  # noqa: N818 - the name users read
    """A required property does not hold.

    Attributes
    ----------
    failures : tuple of CheckResult
        The checks that fail.
    """

    def __init__(self, failures: tuple[CheckResult, ...]) -> None:
        self.failures = failures
        super().__init__("; ".join(str(failure) for failure in failures) or "the certificate is empty")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failures,)

    findings = FormerName("failures")


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The place where a property fails, or comes nearest to failing; prints as text.

    Attributes
    ----------
    buyer : int or None
    other : int or None
        The second buyer of a pair: the one that is envied.
    good : int or tuple of int or None
        Index of the good among the prices: k, or (resource, round).
    words : str
        The size of the violation as text, or what was proved.
    allocation : ndarray or csr_array or None
        A better allocation, which shows the failure.
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
class CheckResult:
    """The result of checking one property; prints as one line, and is true if the property holds.

    Attributes
    ----------
    statement : str
        The property as a sentence.
    source : str
        Paper, equation or theorem.
    holds : bool
        Whether the violation is within the tolerance.
    violation : float
        0 if there is none, infinite if a number is missing; each property documents its unit.
    witness : object
        The place of the violation: a :class:`Witness`, or another object with a text; None if there is none.
    tolerance : float
        The violation that the certified gap and the rounding of floats allow, in the same unit.
    """

    statement: str
    source: str
    holds: bool
    violation: float
    witness: Any = None
    tolerance: float = 0.0

    def __bool__(self) -> bool:
        """Whether the property holds: ``assert envy_freeness(...)`` tests the property."""
        return self.holds

    def __str__(self) -> str:
        where = f" ({self.witness})" if str(self.witness or "") else ""
        verdict = "holds" if self.holds else "FAILS"
        size = f"off by {size_text(self.violation)}, {size_text(self.tolerance)} allowed"
        return f"{self.statement}: {verdict}, {size}{where}"

    def require(self) -> CheckResult:
        """Return the result if the property holds; raise PropertyFails otherwise."""
        if not self.holds:
            raise PropertyFails((self,))
        return self


class Certificate(tuple[CheckResult, ...]):
    """The results of all checks of one plan; prints as a table.

    Unlike other tuples, a certificate is true if it is not empty and all its properties hold.
    """

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Whether every property holds."""
        return len(self) > 0 and all(result.holds for result in self)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The properties that do not hold."""
        return tuple(result for result in self if not result.holds)

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
                result.statement,
                "yes" if result.holds else "NO",
                size_text(result.violation),
                size_text(result.tolerance),
                str(result.witness or "-"),
            )
            for result in self
        ]
        return columns_text([("statement", "holds", "violation", "tolerance", "witness"), *rows])

    __repr__ = __str__


def size_text(size: float) -> str:
    """Return a violation or a tolerance in two digits."""
    return "inf" if math.isinf(size) else f"{size:.1e}" if size else "0"
