"""A schedule as one picture: a line for each machine or GPU, a coloured bar for each piece of a job's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..arrays import Floats, Indices
from .svg import Frame, bar, document, job_colour, rule, text

# Limits of one picture: beyond them it shows the first lines and the first bars, and how many there are.
MOST_LINES, MOST_BARS = 64, 20_000
# Sizes in pixels.
_LEFT, _WIDTH, _RIGHT, _TOP, _FOOT, _HEIGHT = 90, 680, 20, 16, 40, 420


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
        The unit of time.
    height : ndarray of int, shape (P,), or int
        Lines that each bar covers.
    """
    shown = min(len(lines), MOST_LINES)
    each = max(6.0, min(26.0, _HEIGHT / max(1, shown)))
    last = float(end.max(initial=0.0)) or 1.0
    frame = Frame(left=_LEFT, top=_TOP, width=_WIDTH, height=shown * each, x_limit=last)
    parts = [rule(_LEFT, frame.bottom, frame.right, frame.bottom, "base"), *frame.x_axis(axis)]
    every = max(1, round(14 / each))
    parts += [text(_LEFT - 6, _TOP + (k + 0.5) * each + 4, lines[k], "quiet", "end") for k in range(0, shown, every)]
    covered = [height] * len(owner) if isinstance(height, int) else height.tolist()
    bars = zip(owner.tolist(), line.tolist(), start.tolist(), end.tolist(), covered, strict=True)
    for number, (job, top, begin, finish, count) in enumerate(bars):
        if number >= MOST_BARS:
            break
        if top < shown and finish > begin:
            box = (_LEFT + _WIDTH * begin / last, _TOP + top * each, _WIDTH * (finish - begin) / last)
            parts += _piece(job, *box, min(count, shown - top) * each, f"job {job}: {begin:.6g} to {finish:.6g}")
    notes = []
    if len(lines) > shown:
        notes.append(f"the first {shown} of {len(lines)} lines")
    if len(owner) > MOST_BARS:
        notes.append(f"the first {MOST_BARS} of {len(owner)} pieces")
    if notes:
        parts.append(text(_LEFT, frame.bottom + 34, ", ".join(notes), "quiet"))
    title = f"Schedule of {len(set(owner.tolist()))} jobs"
    return document(_LEFT + _WIDTH + _RIGHT, frame.bottom + _FOOT, title, parts)


def _piece(job: int, x: float, y: float, width: float, height: float, tip: str) -> Iterator[str]:
    yield bar(x, y + 0.5, width, max(1.0, height - 1), job_colour(job), tip)
    if width > 7 * len(str(job)) + 4 and height > 11:
        yield text(x + width / 2, y + height / 2 + 4, str(job), "inside", "middle")
