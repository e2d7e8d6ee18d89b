"""Exact numbers with a slope: their order is that just after the present value of a parameter."""

from __future__ import annotations

from fractions import Fraction
from functools import total_ordering


@total_ordering
class Dual:
    """A number ``value + slope h`` for a small h > 0, exact; products and quotients keep the terms up to h.

    Attributes
    ----------
    value, slope : Fraction
    """

    __slots__ = ("slope", "value")

    def __init__(self, value: Fraction, slope: Fraction = Fraction(0)) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def __truediv__(self, other: Dual) -> Dual:
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dual) and (self.value, self.slope) == (other.value, other.slope)

    def __lt__(self, other: Dual) -> bool:
        return (self.value, self.slope) < (other.value, other.slope)

    def __hash__(self) -> int:
        return hash((self.value, self.slope))

    def __repr__(self) -> str:
        return f"Dual({self.value}, {self.slope})"
