"""Plots of experiments as SVG: curves, grouped bars, and schedules of jobs over rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...formulations.arrays import Floats
from ...formulations.plotting.svg import Frame, bar, bar_legend, document, job_colour, legend, rule, short, text

# Sizes in pixels.
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 70, 34, 600, 220, 190, 50
_ROW = 6.0


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Named curves over one axis, x and y of each; points that are not finite are left out.

    With `log_x` the axis is logarithmic, and every x positive. With `steps` curves are stairs, as those of
    distribution functions. The reference is a level to mark.
    """

    title: str
    x_axis: str
    y_axis: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log_x: bool = False
    steps: bool = False
    reference: float | None = None

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        curves = {name: self._points(*points) for name, points in self.curves.items()}
        known_x = np.concatenate([x for x, _ in curves.values()] or [np.zeros(0)])
        known_y = np.concatenate([y for _, y in curves.values()] or [np.zeros(0)])
        low, high = (float(known_x.min()), float(known_x.max())) if len(known_x) else (0.0, 1.0)
        frame = _frame(max(float(known_y.max(initial=0.0)), self.reference or 0.0), low, high)
        parts = [_title(self.title, self.y_axis), *frame.y_axis(), *frame.x_axis(self.x_axis, log=self.log_x)]
        if self.reference is not None:
            parts.append(frame.level(self.reference))
        for series, (name, (x, y)) in enumerate(curves.items()):
            if len(x):
                parts += [frame.steps(x, y, series, name)] if self.steps else frame.curve(x, y, series, name)
        return _document(self.title, [*parts, *legend(frame.right + 16, _TOP + 5, _names(self.curves))], frame.bottom)

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> tuple[Floats, Floats]:
        x, y = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
        known = np.isfinite(x) & np.isfinite(y)
        return np.log10(x[known]) if self.log_x else x[known], y[known]


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars side by side in groups, whose labels stand under them.

    A series has one bar for each group; what is not finite has none. The reference is a level to mark, such as 1 for
    what all is relative to.
    """

    title: str
    y_axis: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    reference: float | None = None

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        heights = [value for values in self.series.values() for value in values if math.isfinite(value)]
        frame = _frame(max([*heights, self.reference or 0.0]))
        parts = [_title(self.title, self.y_axis), *frame.y_axis()]
        parts.append(rule(frame.left, frame.bottom, frame.right, frame.bottom, "base"))
        group, wide = _WIDTH / len(self.groups), 0.84 * _WIDTH / len(self.groups) / len(self.series)
        for series, (name, values) in enumerate(self.series.items()):
            for place, (label, value) in enumerate(zip(self.groups, values, strict=True)):
                if math.isfinite(value):
                    x, y = _LEFT + (place + 0.08) * group + series * wide, float(frame.y(max(0.0, value)))
                    tip = f"{name}, {label}: {value:.4g}"
                    parts.append(bar(x, y, 0.92 * wide, frame.bottom - y, series, tip))
        for place, label in enumerate(self.groups):
            parts.append(text(_LEFT + (place + 0.5) * group, frame.bottom + 15, label, "quiet", "middle"))
        if self.reference is not None:
            parts.append(frame.level(self.reference))
        named = bar_legend(frame.right + 16, _TOP + 5, _names(self.series))
        return _document(self.title, [*parts, *named], frame.bottom)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Jobs over rounds: a row for each job in the order given, a bar for each stretch of rounds.

    `rounds` has the GPUs of each job that runs, by round.
    """

    title: str
    rounds: Sequence[Mapping[Any, int]]  # by job
    jobs: Sequence[str | int]

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        row = max(_ROW, min(18.0, 200 / max(1, len(self.jobs))))
        limit = max(1, len(self.rounds))
        frame = Frame(left=_LEFT, top=_TOP, width=_WIDTH, height=row * len(self.jobs), x_limit=limit)
        step, few = _WIDTH / limit, len(self.jobs) <= 20
        parts = [text(_LEFT, _TOP - 12, self.title), *frame.x_axis("round")]
        parts.append(rule(_LEFT, frame.bottom, frame.right, frame.bottom, "base"))
        for place, job in enumerate(self.jobs):
            y = _TOP + place * row
            if few:
                parts.append(text(_LEFT - 6, y + row - 5, short(str(job), 10), "quiet", "end"))
            for start, end, gpus in _stretches(self.rounds, job):
                tip = f"job {job}: rounds {start} to {end - 1} on {gpus} GPUs"
                wide = (end - start) * step - 0.5
                parts.append(bar(_LEFT + start * step, y, wide, 0.85 * row, job_colour(place), tip))
                if few:
                    parts.append(text(_LEFT + (start + end) / 2 * step, y + row - 5, str(gpus), "inside", "middle"))
        return _document(self.title, parts, frame.bottom)


Plot = Curves | Bars | Schedule


def _stretches(rounds: Sequence[Mapping[Any, int]], job: str | int) -> Iterator[tuple[int, int, int]]:
    """Yield (first round, one past the last, GPUs) of each stretch in which the job keeps its number of GPUs."""
    start = 0
    for place in range(1, len(rounds) + 1):
        gpus = rounds[start].get(job, 0)
        if place == len(rounds) or rounds[place].get(job, 0) != gpus:
            if gpus:
                yield start, place, gpus
            start = place


def _frame(y_limit: float, low: float = 0.0, high: float = 1.0) -> Frame:
    x_limit = high if high > low else low + 1.0
    return Frame(left=_LEFT, top=_TOP, width=_WIDTH, height=_HEIGHT, x_start=low, x_limit=x_limit, y_limit=y_limit or 1)


def _title(title: str, y_axis: str) -> str:
    return text(_LEFT, _TOP - 12, f"{title} ({y_axis})")


def _names(series: Mapping[str, Any]) -> list[str]:
    return [short(name) for name in series]


def _document(title: str, parts: Sequence[str], bottom: float) -> str:
    return document(_LEFT + _WIDTH + _RIGHT, bottom + _BOTTOM, title, parts)
