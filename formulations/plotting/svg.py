"""The SVG writer of every picture: one palette, one style, a frame with axes, and the shapes drawn in it."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats

# Okabe and Ito's colours, which stay apart under all common kinds of colour blindness, for light and dark backgrounds;
# the last, a grey, is for all series that have no colour of their own.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7d00", "#7d7d87")
DARK = ("#4ba3dc", "#e8743b", "#1fb58a", "#d68cb5", "#e9a820", "#8fd0f5", "#e4d64a", "#a5a5b0")
GREY = len(LIGHT) - 1
#: Text and background, light and dark.
INK, CARD = ("#1b2330", "#e6ebf2"), ("#fff", "#171e27")
_HOUR_S, _DAY_S = 3600.0, 86400.0
# Turning by the golden angle keeps the colours of neighbours apart, however many there are.
_GOLDEN_ANGLE = 137.50776


def _rules(colours: Sequence[str]) -> str:
    return "".join(f".chart .l{k}{{stroke:{colour}}}.chart .f{k}{{fill:{colour}}}" for k, colour in enumerate(colours))


STYLE = (
    f".chart{{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:{INK[0]};background:{CARD[0]}}}"
    ".chart text{fill:currentColor}.chart .quiet{opacity:.65}.chart .rule{stroke:currentColor;opacity:.12}"
    ".chart .base{stroke:currentColor;opacity:.45}.chart .idle{fill:currentColor;opacity:.06}"
    ".chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round}.chart .second{stroke-dasharray:5 3}"
    ".chart .inside{fill:#10151c;pointer-events:none}"
    + _rules(LIGHT)
    + f"@media(prefers-color-scheme:dark){{.chart{{color:{INK[1]};background:{CARD[1]}}}"
    + _rules(DARK)
    + "}"
)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A plot's rectangle in pixels; the axes end at the limits (right, top) and begin at the starts (left, bottom)."""

    left: float
    top: float
    width: float
    height: float
    x_limit: float = 1.0
    y_limit: float = 1.0
    x_start: float = 0.0
    y_start: float = 0.0

    @property
    def bottom(self) -> float:
        """Where the horizontal axis lies."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """Where the horizontal axis ends."""
        return self.left + self.width

    def x(self, value: Floats | float) -> Floats:
        """Return pixels for values of the horizontal axis."""
        share = (np.asarray(value, dtype=np.float64) - self.x_start) / (self.x_limit - self.x_start)
        return self.left + self.width * share

    def y(self, value: Floats | float) -> Floats:
        """Return pixels for values of the vertical axis."""
        share = (np.asarray(value, dtype=np.float64) - self.y_start) / (self.y_limit - self.y_start)
        return self.bottom - self.height * share

    def x_axis(self, name: str, *, unit: float = 1.0, log: bool = False) -> Iterator[str]:
        """Yield rules, numbers and the name of the horizontal axis.

        Its numbers count `unit`s. With `log`, its values are decimal logarithms of the numbers that are written.
        """
        most = 7 if self.width > 300 else 4
        if log:
            values, shown = _log_marks(self.x_limit, self.x_start)
        else:
            values = [value * unit for value in ticks(self.x_limit / unit, most, self.x_start / unit)]
            shown = [f"{value / unit:g}" for value in values]
        for value, number in zip(values, shown, strict=True):
            x = float(self.x(value))
            yield rule(x, self.top, x, self.bottom)
            yield text(x, self.bottom + 15, number, "quiet", "middle")
        yield text(self.right, self.bottom + 30, name, "quiet", "end")

    def y_axis(self, form: str = "{:g}", *, log: bool = False) -> Iterator[str]:
        """Yield rules and numbers of the vertical axis; `form` is their format, `log` as of `x_axis`."""
        if log:
            values, shown = _log_marks(self.y_limit, self.y_start)
        else:
            values = ticks(self.y_limit, 4, self.y_start)
            shown = [form.format(value) for value in values]
        for value, number in zip(values, shown, strict=True):
            y = float(self.y(value))
            yield rule(self.left, y, self.right, y)
            yield text(self.left - 6, y + 4, number, "quiet", "end")

    def level(self, value: float) -> str:
        """Return a dashed line that marks a value of the vertical axis."""
        y = float(self.y(value))
        return rule(self.left, y, self.right, y, "base second")

    def steps(self, x: Floats, y: Floats, series: int, tip: str) -> str:
        """Return a line that keeps each y until the next x, both of shape (n,); `tip` shows when pointed at.

        The number of the `series` gives the colour; from the ninth on, the line is dashed.
        """
        across, up = self.x(np.minimum(x, self.x_limit)), self.y(y)
        path = [f"M{across[0]:.1f} {up[0]:.1f}"]
        path += [f"H{right:.1f}V{level:.1f}" for right, level in zip(across[1:], up[1:], strict=True)]
        return _path("".join(path), series, tip)

    def curve(self, x: Floats, y: Floats, series: int, tip: str) -> Iterator[str]:
        """Yield straight lines between points and a dot on each; parameters as of `steps`."""
        points = list(zip(self.x(x).tolist(), self.y(y).tolist(), strict=True))
        yield _path("M" + "L".join(f"{across:.1f} {up:.1f}" for across, up in points), series, tip)
        for across, up in points:
            yield f'<circle class="{fill_class(series)}" cx="{across:.1f}" cy="{up:.1f}" r="2.6"/>'


def line_class(series: int) -> str:
    """Return the class of a line of the n-th series: its colour, and dashes beyond the eighth."""
    return f"l{series % len(LIGHT)}" + (" second" if series >= len(LIGHT) else "")


def fill_class(series: int) -> str:
    """Return the class of a filled shape of the n-th series."""
    return f"f{series % len(LIGHT)}"


def job_colour(place: int) -> str:
    """Return the colour of the job at a place of the trace: the same in all pictures of its schedules."""
    return f"hsl({place * _GOLDEN_ANGLE % 360:.0f},58%,{(55, 63, 71)[place % 3]}%)"


def legend(x: float, y: float, names: Sequence[str]) -> Iterator[str]:
    """Yield a short line and a name for each series of lines, one under the other."""
    for series, name in enumerate(names):
        at = y + 18 * series
        yield f'<path class="line {line_class(series)}" d="M{x:g} {at:g}h18"/>'
        yield text(x + 24, at + 4, name)


def bar_legend(x: float, y: float, names: Sequence[str], series: Sequence[int] | None = None) -> Iterator[str]:
    """Yield a square and a name for each series of bars, one under the other; `series` are 0, 1, 2 ... by default."""
    for row, name in enumerate(names):
        at = y + 18 * row
        yield bar(x, at - 6, 10, 10, row if series is None else series[row], name)
        yield text(x + 16, at + 4, name)


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return the SVG document of some shapes."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return text at a place; `kind` is a class, `anchor` start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> str:
    """Return a straight line from one place to another; `kind` is its class."""
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def bar(x: float, y: float, width: float, height: float, fill: int | str, tip: str) -> str:
    """Return a rectangle below and to the right of a place, in pixels; `tip` shows when pointed at.

    `fill` is the number of a series, or a colour.
    """
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f"<rect {filled(fill)} {place}><title>{escape(tip)}</title></rect>"


def filled(fill: int | str) -> str:
    """Return the attribute that fills a shape with the colour of a series, or with the colour given."""
    return f'class="{fill_class(fill)}"' if isinstance(fill, int) else f'fill="{fill}"'


def escape(content: str) -> str:
    """Return text that can stand in SVG or HTML: markup escaped, ASCII only."""
    # Character references also carry lone surrogates, which UTF-8 could not; XML knows no control characters.
    printable = "".join(c if c.isprintable() else " " for c in content)
    return html.escape(printable).encode("ascii", "xmlcharrefreplace").decode("ascii")


def short(content: str, longest: int = 26) -> str:
    """Return text that is cut, with an ellipsis, to so many characters."""
    return content if len(content) <= longest else content[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"


def ticks(limit: float, most: int, start: float = 0.0) -> list[float]:
    """Return round numbers from `start` to `limit`, about `most` of them at the most."""
    rough = (limit - start) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(start / step - 1e-9), math.floor(limit / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def log_ticks(limit: float, start: float) -> list[float]:
    """Return decimal logarithms of round numbers between two: whole decades, or 1, 2 and 5 of each if these are few."""
    factors = (1, 2, 5) if limit - start < 2 else (1,)
    decades = range(math.floor(start), math.floor(limit) + 1)
    values = [decade + math.log10(factor) for decade in decades for factor in factors]
    return [value for value in values if start - 1e-9 <= value <= limit + 1e-9]


def _log_marks(limit: float, start: float) -> tuple[list[float], list[str]]:
    """Return the values of `log_ticks`, and the numbers of which they are the logarithms."""
    values = log_ticks(limit, start)
    return values, [f"{10**value:.6g}" for value in values]


def time_unit(limit_s: float) -> tuple[str, float]:
    """Return the unit that a time axis of this length reads best in, and its seconds."""
    if limit_s > 5 * _DAY_S:
        return "days", _DAY_S
    return ("hours", _HOUR_S) if limit_s > 2 * _HOUR_S else ("minutes", 60.0)


def _path(shape: str, series: int, tip: str) -> str:
    return f'<path class="line {line_class(series)}" d="{shape}"><title>{escape(tip)}</title></path>'
