"""Plots of the Shockwave experiments as SVG: curves, grouped bars, and schedules of jobs over rounds."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....formulations.plotting.allocation import COLOURS

# Sizes in pixels.
_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BOTTOM = 70, 34, 600, 220, 170, 50
_ROW = 6.0
_STYLE = (
    "svg{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:#1b2330;background:#fff}"
    "text{fill:currentColor}.soft{opacity:.65}.axis{stroke:currentColor;opacity:.25}"
    "@media(prefers-color-scheme:dark){svg{color:#e6ebf2;background:#171e27}}"
)


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Named curves over one axis.

    Attributes
    ----------
    title, x_axis, y_axis : str
    curves : mapping of str to (sequence of float, sequence of float)
        x and y of each; points that are not finite are left out.
    log_x : bool
        A logarithmic axis; every x is then positive.
    steps : bool
        Draw as stairs, as distribution functions are.
    reference : float or None
        A level to mark.
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
        places = [
            (self._x(x), y)
            for xs, ys in self.curves.values()
            for x, y in zip(xs, ys, strict=True)
            if math.isfinite(x) and math.isfinite(y)
        ]
        low, high = min((x for x, _ in places), default=0.0), max((x for x, _ in places), default=1.0)
        top = max([y for _, y in places] + [self.reference or 0.0]) or 1.0
        wide = high - low or 1.0
        parts = list(_frame(self.title, self.y_axis, top, list(self.curves), _HEIGHT))
        for value in _ticks(low, high, self.log_x):
            x, label = _LEFT + _WIDTH * (value - low) / wide, f"{10**value if self.log_x else value:.6g}"
            parts.append(_text(x, _TOP + _HEIGHT + 16, label, "soft", "middle"))
        parts.append(_text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 34, self.x_axis, "soft", "middle"))
        parts += _level(self.reference, top)
        for row, (name, (xs, ys)) in enumerate(self.curves.items()):
            points: list[tuple[float, float]] = []
            for x, y in zip(xs, ys, strict=True):
                if math.isfinite(x) and math.isfinite(y):
                    at = _LEFT + _WIDTH * (self._x(x) - low) / wide, _TOP + _HEIGHT * (1 - y / top)
                    points += [(at[0], points[-1][1]), at] if self.steps and points else [at]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{_colour(row)}" stroke-width="1.8">'
                f"<title>{html.escape(name)}</title></polyline>"
            )
            if not self.steps:
                parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{_colour(row)}"/>' for x, y in points]
        return _document(parts, _TOP + _HEIGHT + _BOTTOM)

    def _x(self, x: float) -> float:
        return math.log10(x) if self.log_x else x


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars side by side in groups.

    Attributes
    ----------
    title, y_axis : str
    groups : sequence of str
        Labels under the groups.
    series : mapping of str to sequence of float
        One bar for each group; what is not finite has none.
    reference : float or None
        A level to mark, such as 1 for what all is relative to.
    """

    title: str
    y_axis: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    reference: float | None = None

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        heights = [value for values in self.series.values() for value in values if math.isfinite(value)]
        top = max([*heights, self.reference or 0.0]) or 1.0
        parts = list(_frame(self.title, self.y_axis, top, list(self.series), _HEIGHT))
        group, bar = _WIDTH / len(self.groups), 0.84 * _WIDTH / len(self.groups) / len(self.series)
        for row, (name, values) in enumerate(self.series.items()):
            for place, (label, value) in enumerate(zip(self.groups, values, strict=True)):
                if math.isfinite(value):
                    x, tall = _LEFT + (place + 0.08) * group + row * bar, _HEIGHT * max(0.0, value) / top
                    tip = f"{name}, {label}: {value:.4g}"
                    parts.append(_bar(x, _TOP + _HEIGHT - tall, 0.92 * bar, tall, _colour(row), tip))
        for place, label in enumerate(self.groups):
            parts.append(_text(_LEFT + (place + 0.5) * group, _TOP + _HEIGHT + 16, label, "soft", "middle"))
        parts += _level(self.reference, top)
        return _document(parts, _TOP + _HEIGHT + _BOTTOM)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Who runs in which round: a row for each job in the order given, a bar for each stretch of rounds.

    Attributes
    ----------
    title : str
    rounds : sequence of mapping
        GPUs of each job that runs, by round.
    jobs : sequence
        Rows from the top.
    """

    title: str
    rounds: Sequence[Mapping[Any, int]]  # by job
    jobs: Sequence[str | int]

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        row = max(_ROW, min(18.0, 200 / max(1, len(self.jobs))))
        tall = row * len(self.jobs)
        step = _WIDTH / max(1, len(self.rounds))
        parts = [_text(_LEFT, _TOP - 12, self.title)]
        for place, job in enumerate(self.jobs):
            y = _TOP + place * row
            if len(self.jobs) <= 20:
                parts.append(_text(_LEFT - 6, y + row - 4, str(job), "soft", "end"))
            for start, end, gpus in _stretches(self.rounds, job):
                tip = f"job {job}: rounds {start} to {end - 1} on {gpus} GPUs"
                wide = (end - start) * step
                parts.append(_bar(_LEFT + start * step, y, wide - 0.5, 0.85 * row, _colour(place % 7), tip))
                if len(self.jobs) <= 20:
                    parts.append(_text(_LEFT + (start + end) / 2 * step, y + row - 5, str(gpus), "", "middle"))
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{_TOP + tall:g}" y2="{_TOP + tall:g}"/>'
        )
        parts += [
            _text(_LEFT + value * step, _TOP + tall + 16, f"{value:g}", "soft", "middle")
            for value in _ticks(0.0, float(len(self.rounds)), False)
        ]
        parts.append(_text(_LEFT + _WIDTH / 2, _TOP + tall + 34, "round", "soft", "middle"))
        return _document(parts, _TOP + tall + _BOTTOM)


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


def _ticks(low: float, high: float, log: bool) -> list[float]:
    """Return at most about seven round values within the range; whole decades on a logarithmic axis of two or more."""
    if log and high - low >= 2:
        return [float(place) for place in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    if not high > low:
        return [low]
    unit = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if (high - low) / (unit * factor) <= 7)
    return [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _frame(title: str, y_axis: str, top: float, names: Sequence[str], height: float) -> Iterator[str]:
    yield _text(_LEFT, _TOP - 12, f"{title} ({y_axis})")
    for value in _ticks(0.0, top, False):
        y = _TOP + height * (1 - value / top)
        yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 6, y + 4, f"{value:.6g}", "soft", "end")
    for row, name in enumerate(names):
        y = _TOP + 18 * row
        yield _bar(_LEFT + _WIDTH + 16, y, 10, 10, _colour(row), name)
        yield _text(_LEFT + _WIDTH + 32, y + 10, name)


def _level(reference: float | None, top: float) -> list[str]:
    if reference is None:
        return []
    y = _TOP + _HEIGHT * (1 - reference / top)
    return [
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor"'
        ' stroke-dasharray="5 4" opacity=".6"/>'
    ]


def _colour(row: int) -> str:
    return COLOURS[row % len(COLOURS)]


def _bar(x: float, y: float, width: float, height: float, colour: str, tip: str) -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect {place} fill="{colour}"><title>{html.escape(tip)}</title></rect>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" class="{kind}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _document(parts: Sequence[str], height: float) -> str:
    width = _LEFT + _WIDTH + _RIGHT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" role="img">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])
