"""A schedule as one picture: a line for each machine or GPU, a coloured bar for each piece of a job's work."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from ..arrays import Floats, Indices
from .allocation import COLOURS

# What one picture can hold; of more, the first lines and the first bars, and it says so.
MOST_LINES, MOST_BARS = 64, 20_000
# Sizes in pixels.
_LEFT, _WIDTH, _RIGHT, _TOP, _FOOT, _HEIGHT = 90, 680, 20, 16, 40, 420
_STYLE = (
    "svg{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:#1b2330;background:#fff}"
    "text{fill:currentColor}.soft{opacity:.65}.in{fill:#fff;pointer-events:none}"
    ".axis{stroke:currentColor;opacity:.3}"
    "@media(prefers-color-scheme:dark){svg{color:#e6ebf2;background:#171e27}}"
)


def gantt(
    *,
    owner: Indices,
    line: Indices,
    start: Floats,
    end: Floats,
    lines: Sequence[str],
    axis: str,
    height: Indices | int = 1,
) -> str:
    """Return an SVG document of bars over time.

    Parameters
    ----------
    owner, line : ndarray of int, shape (P,)
        The job of each bar, which gives its colour and its label, and the line on which it begins.
    start, end : ndarray of float, shape (P,)
    lines : sequence of str
        Names of the lines, from top to bottom.
    axis : str
        What the time is counted in.
    height : ndarray of int, shape (P,), or int
        Lines that each bar covers.
    """
    shown = min(len(lines), MOST_LINES)
    each = max(6.0, min(26.0, _HEIGHT / max(1, shown)))
    bottom = _TOP + shown * each
    last = float(end.max(initial=0.0)) or 1.0
    width, tall = _LEFT + _WIDTH + _RIGHT, bottom + _FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall:g}" width="{width}" role="img">',
        f"<title>Schedule of {len(set(owner.tolist()))} jobs</title><style>{_STYLE}</style>",
    ]
    every = max(1, round(14 / each))
    parts += [_text(_LEFT - 6, _TOP + (k + 0.5) * each + 4, lines[k], "soft", "end") for k in range(0, shown, every)]
    covered = [height] * len(owner) if isinstance(height, int) else height.tolist()
    bars = zip(owner.tolist(), line.tolist(), start.tolist(), end.tolist(), covered, strict=True)
    for number, (who, top, begin, finish, count) in enumerate(bars):
        if number >= MOST_BARS:
            break
        if top < shown and finish > begin:
            box = (_LEFT + _WIDTH * begin / last, _TOP + top * each, _WIDTH * (finish - begin) / last)
            parts += _bar(who, *box, min(count, shown - top) * each, f"job {who}: {begin:.6g} to {finish:.6g}")
    parts += _scale(bottom, last, axis)
    notes = []
    if len(lines) > shown:
        notes.append(f"the first {shown} of {len(lines)} lines")
    if len(owner) > MOST_BARS:
        notes.append(f"the first {MOST_BARS} of {len(owner)} pieces")
    if notes:
        parts.append(_text(_LEFT, bottom + 34, ", ".join(notes), "soft"))
    return "\n".join([*parts, "</svg>", ""])


def _bar(who: int, x: float, y: float, wide: float, tall: float, tip: str) -> Iterator[str]:
    colour = COLOURS[who % len(COLOURS)]
    place = f'x="{x:.2f}" y="{y + 0.5:.2f}" width="{wide:.2f}" height="{max(1.0, tall - 1):.2f}"'
    yield f'<rect {place} fill="{colour}" stroke="#fff" stroke-width=".6"><title>{html.escape(tip)}</title></rect>'
    if wide > 7 * len(str(who)) + 4 and tall > 11:
        yield _text(x + wide / 2, y + tall / 2 + 4, str(who), "in", "middle")


def _scale(y: float, last: float, axis: str) -> Iterator[str]:
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:g}" y2="{y:g}"/>'
    for part in range(5):
        yield _text(_LEFT + _WIDTH * part / 4, y + 16, f"{last * part / 4:.4g}", "soft", "middle")
    yield _text(_LEFT + _WIDTH, y + 32, axis, "soft", "end")


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" class="{kind}" text-anchor="{anchor}">{html.escape(text)}</text>'
