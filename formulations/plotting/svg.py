"""The parts that pictures of results are drawn from: a frame with axes, step lines, bars, words; all of it SVG text."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats

# Okabe and Ito's colours, which stay apart under all common kinds of colour blindness, for light and dark backgrounds.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a7d00", "#7d7d87")
DARK = ("#4ba3dc", "#e8743b", "#1fb58a", "#d68cb5", "#e9a820", "#8fd0f5", "#e4d64a", "#a5a5b0")
_HOUR_S, _DAY_S = 3600.0, 86400.0


def _rules(colours: Sequence[str]) -> str:
    return "".join(f".l{k}{{stroke:{colour}}}.f{k}{{fill:{colour}}}" for k, colour in enumerate(colours))


STYLE = (
    ".chart{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:#1b2330;background:#fff}"
    ".chart text{fill:currentColor}.chart .quiet{opacity:.65}.chart .rule{stroke:currentColor;opacity:.12}"
    ".chart .base{stroke:currentColor;opacity:.45}.chart .idle{fill:currentColor;opacity:.06}"
    ".chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round}.chart .second{stroke-dasharray:5 3}"
    + _rules(LIGHT)
    + "@media(prefers-color-scheme:dark){.chart{color:#e6ebf2;background:#171e27}"
    + _rules(DARK)
    + "}"
)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A plot's rectangle in pixels, and the values that its axes end at; both axes start at 0.

    Parameters
    ----------
    left, top, width, height : float
    x_limit, y_limit : float
        Positive.
    """

    left: float
    top: float
    width: float
    height: float
    x_limit: float
    y_limit: float = 1.0

    @property
    def bottom(self) -> float:
        """Where the horizontal axis lies."""
        return self.top + self.height

    def x(self, value: Floats | float) -> Floats:
        """Return pixels for values of the horizontal axis."""
        return self.left + self.width * np.asarray(value, dtype=np.float64) / self.x_limit

    def y(self, value: Floats | float) -> Floats:
        """Return pixels for values of the vertical axis."""
        return self.bottom - self.height * np.asarray(value, dtype=np.float64) / self.y_limit

    def axes(self, x_name: str, *, x_unit: float = 1.0, percent: bool = True) -> Iterator[str]:
        """Yield rules and numbers; `x_unit` is what one of the horizontal axis's numbers stands for."""
        for value in ticks(self.x_limit / x_unit, 7 if self.width > 300 else 4):
            x = float(self.x(value * x_unit))
            yield f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{self.top:g}" y2="{self.bottom:g}"/>'
            yield words(x, self.bottom + 15, f"{value:g}", "quiet", "middle")
        for value in ticks(self.y_limit, 4):
            y = float(self.y(value))
            yield f'<line class="rule" x1="{self.left:g}" x2="{self.left + self.width:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield words(self.left - 6, y + 4, f"{value:.0%}" if percent else f"{value:g}", "quiet", "end")
        yield words(self.left + self.width, self.bottom + 30, x_name, "quiet", "end")

    def steps(self, x: Floats, y: Floats, series: int, tip: str) -> str:
        """Return a line that keeps each y until the next x; `tip` shows when pointed at.

        Parameters
        ----------
        x, y : ndarray of float, shape (n,)
        series : int
            Which colour; beyond the eighth, dashed.
        tip : str
        """
        across, up = self.x(np.minimum(x, self.x_limit)), self.y(y)
        path = [f"M{across[0]:.1f} {up[0]:.1f}"]
        path += [f"H{right:.1f}V{level:.1f}" for right, level in zip(across[1:], up[1:], strict=True)]
        return f'<path class="line {line_class(series)}" d="{"".join(path)}"><title>{escape(tip)}</title></path>'


def line_class(series: int) -> str:
    """Return the class of a line of the n-th series: its colour, and dashes beyond the eighth."""
    return f"l{series % len(LIGHT)}" + (" second" if series >= len(LIGHT) else "")


def legend(x: float, y: float, names: Sequence[str]) -> Iterator[str]:
    """Yield a short line and a name for each series, one under the other."""
    for series, name in enumerate(names):
        at = y + 18 * series
        yield f'<path class="line {line_class(series)}" d="M{x:g} {at:g}h18"/>'
        yield words(x + 24, at + 4, name)


def document(width: float, height: float, title: str, parts: Iterator[str] | Sequence[str]) -> str:
    """Return the SVG document of some shapes."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def words(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """Return text at a place; `kind` is a class, `anchor` start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def escape(text: str) -> str:
    """Return text that can stand in SVG or HTML: markup escaped, ASCII only."""
    # Character references also carry lone surrogates, which UTF-8 could not; XML knows no control characters.
    printable = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(printable).encode("ascii", "xmlcharrefreplace").decode("ascii")


def ticks(limit: float, most: int) -> list[float]:
    """Return round numbers from 0 to `limit`, about `most` of them at the most."""
    rough = limit / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if power * factor >= rough * (1 - 1e-9))
    return [round(k * step, 12) for k in range(int(limit / step * (1 + 1e-9)) + 1)]


def time_unit(limit_s: float) -> tuple[str, float]:
    """Return the unit that a time axis of this length reads best in, and its seconds."""
    if limit_s > 5 * _DAY_S:
        return "days", _DAY_S
    return ("hours", _HOUR_S) if limit_s > 2 * _HOUR_S else ("minutes", 60.0)
