"""The objective against the delay, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..plotting.svg import Frame, document, rule, text

_LEFT, _WIDTH, _RIGHT, _TOP, _HEIGHT, _FOOT = 70, 560, 20, 24, 220, 40
# Room above and below the curve, as a share of its height.
_MARGIN = 0.08


def delay_curve(delays_s: Sequence[float], values: Sequence[float], name: str) -> str:
    """Return an SVG document of a piecewise linear objective, with a dot at each end of a piece.

    Parameters
    ----------
    delays_s, values : sequence of float, shape (P,)
        The ends of the pieces, and the objective there; the least one is marked.
    name : str
        Name of the objective.
    """
    x, y = np.asarray(delays_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    margin = _MARGIN * float(np.ptp(y)) or 1.0
    frame = Frame(
        left=_LEFT,
        top=_TOP,
        width=_WIDTH,
        height=_HEIGHT,
        x_limit=float(x[-1]),
        y_start=float(y.min()) - margin,
        y_limit=float(y.max()) + margin,
    )
    best = int(y.argmin())
    parts = [
        *frame.y_axis("{:.6g}"),
        *frame.x_axis("delay of the waiting job, seconds"),
        rule(frame.left, frame.bottom, frame.right, frame.bottom, "base"),
        frame.level(float(y[best])),
        *frame.curve(x, y, 0, name),
        text(frame.left, frame.top - 8, f"{name}, least at {x[best]:.6g} s: {y[best]:.6g}"),
    ]
    return document(_LEFT + _WIDTH + _RIGHT, frame.bottom + _FOOT, f"{name} against the delay", parts)
