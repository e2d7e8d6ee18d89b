"""The picture of a front: its points by two objectives, coloured by a third one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..arrays import Floats
from ..errors import InvalidInput
from ..plotting.svg import GREY, Frame, bar, document, escape, fill_class, filled, text, time_unit
from .front_point import FrontPoint
from .objective import PERCENT, SECONDS, Objective

# An axis is logarithmic where the largest value is so many times the least; beyond, the least is all but 0.
_LOG_FROM, _LOG_UP_TO = 20.0, 1e5
# Ends and middle of the colours of a third objective, which stand out on light and dark.
_RAMP = ((0x2F, 0x7F, 0xD6), (0xB0, 0x54, 0xA8), (0xF0, 0x8A, 0x24))


class Front(Protocol):
    """The members of a front that its picture and its page read; :class:`~.front.ParetoFront` describes them."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Quantities of which less is better."""

    @property
    def scores(self) -> Floats:
        """Scores, shape (P, m)."""

    @property
    def held_out(self) -> Floats | None:
        """Scores on other workloads, shape (P, m)."""

    @property
    def hypervolume(self) -> float:
        """Share of the box that the points dominate."""

    @property
    def named_picks(self) -> dict[str, FrontPoint]:
        """Picks by name."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> FrontPoint: ...


@dataclass(frozen=True)
class _Axis:
    """An axis with the places of all points on it, of shape (P,); on a logarithmic one, places are logarithms."""

    name: str
    log: bool
    places: Floats

    @property
    def ends(self) -> tuple[float, float]:
        """Start and limit, a little beyond the points."""
        low, high = float(self.places.min()), float(self.places.max())
        margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
        return low - margin, high + margin


def front_picture(front: Front, across: int = 0, up: int = 1, *, held_out: bool = False) -> str:
    """Return an SVG document of the points by two objectives, given by index.

    Each point is a group of class "point" with its index in `data-point`. Of more than two objectives, the first other
    one gives the colour. With `held_out`, the scores are those on held-out workloads.

    Raises
    ------
    InvalidInput
        If the front has one objective only, or no held-out scores.
    """
    if len(front.objectives) < 2:
        raise InvalidInput("objectives", str(front.objectives[0]), "a picture needs two objectives")
    scores = front.held_out if held_out else front.scores
    if scores is None:
        raise InvalidInput("held_out", held_out, "the front has no held-out scores")
    objectives = front.objectives
    x, y = (_axis(objectives[column], scores[:, column], held_out) for column in (across, up))
    (x_start, x_limit), (y_start, y_limit) = x.ends, y.ends
    frame = Frame(
        left=64, top=34, width=540, height=330, x_start=x_start, x_limit=x_limit, y_start=y_start, y_limit=y_limit
    )
    parts = [text(10, 18, y.name, "quiet"), *frame.y_axis(log=y.log), *frame.x_axis(x.name, log=x.log)]
    other = next((column for column in range(len(objectives)) if column not in (across, up)), None)
    colours: list[int | str] = [0] * len(front)
    if other is not None:
        colours = list(map(_ramp, _shares(scores[:, other])))
        parts += _colour_legend(objectives[other], scores[:, other], frame)
    elif not held_out:
        order = np.argsort(x.places, kind="stable")
        parts.append(frame.steps(x.places[order], y.places[order], GREY, "edge of what the points dominate"))
    names = picks_by_index(front)
    for index, (left, top) in enumerate(zip(frame.x(x.places).tolist(), frame.y(y.places).tolist(), strict=True)):
        parts.append(f'<g class="point" data-point="{index}"><title>{escape(point_text(front, index))}</title>')
        if index in names:
            parts += _pick(left, top, ", ".join(names[index]), frame)
        parts.append(f'<circle {_dot(colours[index])} cx="{left:.1f}" cy="{top:.1f}" r="5"/></g>')
    title = f"{len(front)} points by {objectives[across]} and {objectives[up]}" + (", held out" if held_out else "")
    return document(620, frame.bottom + (42 if other is None else 66), title, parts)


def picks_by_index(front: Front) -> dict[int, list[str]]:
    """Return the names of the picks at each index that has any."""
    found: dict[int, list[str]] = {}
    for name, point in front.named_picks.items():
        found.setdefault(point.index, []).append(name)
    return found


def point_text(front: Front, index: int) -> str:
    """Return index, scores and variables of a point in one line."""
    point = front[index]
    scores = [f"{each} {each.text(score)}" for each, score in zip(front.objectives, point.scores.values(), strict=True)]
    return f"point {index}: {', '.join(scores)}; {values_text(point.vector)}"


def values_text(values: Mapping[str, float]) -> str:
    """Return named numbers in one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _axis(objective: Objective, scores: Floats, held_out: bool) -> _Axis:
    least, most = float(scores.min()), float(scores.max())
    unit, size = "", 1.0
    if objective.metric in SECONDS:
        unit, size = time_unit(most)
    elif objective.metric in PERCENT:
        unit, size = "%", 1.0 / PERCENT[objective.metric]
    log = least > 0.0 and _LOG_FROM * least <= most <= _LOG_UP_TO * least
    name = f"{objective}{' held out' if held_out else ''}{f' ({unit})' if unit else ''}"
    return _Axis(name, log, np.log10(scores / size) if log else scores / size)


def _pick(left: float, top: float, names: str, frame: Frame) -> Iterator[str]:
    yield f'<circle class="base" fill="none" cx="{left:.1f}" cy="{top:.1f}" r="9"/>'
    side, anchor = (11.0, "start") if left < frame.right - 110 else (-11.0, "end")
    yield text(left + side, top - 9, names, "pick", anchor)


def _dot(colour: int | str) -> str:
    if isinstance(colour, str):
        return f'class="dot" {filled(colour)}'
    return f'class="dot {fill_class(colour)}"'


def _shares(scores: Floats) -> list[float]:
    """Return the scores from 0, the least, to 1, the largest."""
    span = float(np.ptp(scores))
    found: list[float] = ((scores - scores.min()) / (span or 1.0)).tolist()
    return found


def _ramp(share: float) -> str:
    """Return the colour of a share from 0 to 1."""
    low, high, part = (*_RAMP[:2], 2 * share) if share < 0.5 else (*_RAMP[1:], 2 * share - 1)
    mixed = [round(a + (b - a) * part) for a, b in zip(low, high, strict=True)]
    return f"#{mixed[0]:02x}{mixed[1]:02x}{mixed[2]:02x}"


def _colour_legend(objective: Objective, scores: Floats, frame: Frame) -> Iterator[str]:
    top = frame.bottom + 46
    least = f"{objective}: {objective.text(float(scores.min()))}"
    yield text(frame.left, top + 9, least)
    left = frame.left + 7.5 * len(least)
    for step in range(24):
        yield bar(left + 5 * step, top, 5, 10, _ramp(step / 23), str(objective))
    yield text(left + 128, top + 9, objective.text(float(scores.max())))
