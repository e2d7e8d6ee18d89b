"""Variables and objectives of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..checks import as_real
from ..errors import InvalidInput
from ..text import duration_text, figure_text

#: Metrics in seconds, and what turns others into percent.
SECONDS = ("jct", "waited", "communication", "makespan")
PERCENT = {"pred_error": 1.0, "unfairness": 100.0}


@dataclass(frozen=True)
class Variable:
    """A real variable of a search and its bounds.

    Raises
    ------
    InvalidInput
        If the name is empty, or the bounds are not finite and ascending.
    """

    name: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        lower, upper = as_real("lower", self.lower), as_real("upper", self.upper)
        if lower >= upper:
            raise InvalidInput("upper", upper, f"must be greater than lower = {lower:g}")


@dataclass(frozen=True)
class Objective:
    """A quantity that a search makes small: a metric of jobs and its measure.

    Attributes
    ----------
    metric : str
        Name of the quantity, "jct" for instance.
    measure : str
        "avg", or a percentile such as "p99" or "p99.9"; empty for a quantity that is one number.

    Raises
    ------
    InvalidInput
        If the metric has no name, or there is no such measure.

    Examples
    --------
    >>> Objective("jct", "p50").of([1.0, 2.0, 9.0])
    2.0
    >>> str(Objective("pred_error", "p99"))
    'pred_error:p99'
    """

    metric: str
    measure: str = ""

    def __post_init__(self) -> None:
        _check_name("metric", self.metric)
        if ":" in self.metric:
            raise InvalidInput("metric", self.metric, "must have no colon")
        if self.measure not in ("", "avg") and self.percentile is None:
            raise InvalidInput("measure", self.measure, 'must be "avg" or a percentile from "p0" to "p100"')

    @property
    def percentile(self) -> float | None:
        """The percentile of the measure, within [0, 100]; None if it is no percentile."""
        if not isinstance(self.measure, str) or self.measure[:1] != "p":
            return None
        digits = self.measure[1:]
        number = float(digits) if digits.replace(".", "", 1).isdecimal() else -1.0
        return number if 0.0 <= number <= 100.0 else None

    def of(self, values: Sequence[float] | Floats) -> float:
        """Return the measure of the metric's values by job."""
        if self.percentile is None:
            return float(np.mean(values))
        return float(np.percentile(values, self.percentile))

    def text(self, score: float) -> str:
        """Return a score with its unit: a duration, percent without rounding errors, or the number."""
        if self.metric in SECONDS:
            return duration_text(score)
        if self.metric in PERCENT:
            return f"{figure_text(round(PERCENT[self.metric] * score, 6))}%"
        return figure_text(score)

    def __str__(self) -> str:
        return f"{self.metric}:{self.measure}" if self.measure else self.metric


def as_objectives(
    name: str, values: Any, metrics: Sequence[str] | None = None, single_metrics: Sequence[str] = ()
) -> tuple[Objective, ...]:
    """Return distinct objectives, given as such, as pairs ("jct", "avg") or as text "jct:avg".

    Parameters
    ----------
    name : str
        Name of the field, for errors.
    values : sequence
    metrics : sequence of str, optional
        The metrics that exist; by default any.
    single_metrics : sequence of str
        Those of them that are one number and take no measure.

    Raises
    ------
    InvalidInput
        If there is none, one is no objective or of another metric, or two are equal.
    """
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InvalidInput(name, values, 'must be a sequence of objectives such as ("jct", "avg") or "jct:avg"')
    found: list[Objective] = []
    for index, value in enumerate(values):
        parts = value.split(":") if isinstance(value, str) else value
        if not isinstance(value, Objective):
            if not isinstance(parts, Sequence) or not 1 <= len(parts) <= 2:
                raise InvalidInput(name, value, 'must be such as ("jct", "avg") or "jct:avg"', index=index)
            try:
                value = Objective(*parts)
            except InvalidInput as error:
                raise InvalidInput(name, error.value, error.why, index=index) from None
        if metrics is not None and value.metric not in metrics:
            raise InvalidInput(name, value.metric, f"the metrics are {', '.join(metrics)}", index=index)
        if value.metric in single_metrics:
            if value.measure:
                raise InvalidInput(name, str(value), f"{value.metric} is one number: it takes no measure", index=index)
        elif metrics is not None and not value.measure:
            raise InvalidInput(name, str(value), f'needs a measure, such as "{value}:avg"', index=index)
        if value in found:
            raise InvalidInput(name, str(value), "the same objective twice", index=index)
        found.append(value)
    return tuple(found)


def _check_name(field: str, name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInput(field, name, "must be a name")
