"""Delay timers over time, as a picture."""

from __future__ import annotations

from itertools import pairwise
from os import PathLike

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.errors import InvalidInput
from ....formulations.files import written
from ....formulations.plotting.svg import Frame, document, legend, text, time_unit
from ..result import PlacementResult, TimerLog

_LEFT, _TOP, _HEIGHT, _RIGHT, _GAP = 46, 26, 110, 10, 66
_PANELS = ("Timer of a machine", "Timer of a rack")
# A line of more changes is drawn through so many of them.
_MOST_STEPS = 400
# Space above the highest timer, as a share of its height.
_MARGIN = 0.06


def timers_picture(
    result: PlacementResult,
    *,
    until_s: float | None = None,
    width: int = 540,
    path: str | PathLike[str] | None = None,
) -> str:
    """Return the timers that a policy tuned, over time, as SVG: one panel for each tier, one line for each demand.

    A line has a gap where its timer is infinite. Timers that the policy does not consult, of demands wider than a
    machine or a rack, are left out.

    Parameters
    ----------
    result : PlacementResult
        With `timers`.
    until_s : float, optional
        End of the time axis; by default the end of the run.
    width : int
        Width of the picture, in pixels.
    path : path, optional
        File to write as well.

    Raises
    ------
    InvalidInput
        If the policy tuned no timers.
    """
    log = result.timers
    if log is None:
        raise InvalidInput("timers", None, f"policy {result.policy} tunes no timers")
    end_s = float(result.end_s.max()) if until_s is None else until_s
    lines = _lines(log, result)
    demands = sorted({demand for _, demand in lines})
    finite = log.timer_s[np.isfinite(log.timer_s)]
    across, across_s = time_unit(end_s)
    upward, upward_s = time_unit(float(finite.max(initial=1.0)))
    most = max([float(values[np.isfinite(values)].max(initial=0.0)) for _, values in lines.values()], default=0.0)
    parts: list[str] = []
    for tier, title in enumerate(_PANELS):
        frame = Frame(
            left=_LEFT,
            top=_TOP + tier * (_HEIGHT + _GAP),
            width=width - _LEFT - _RIGHT,
            height=_HEIGHT,
            x_limit=end_s,
            y_limit=most / upward_s * (1.0 + _MARGIN) or 1.0,
        )
        parts += [text(_LEFT, frame.top - 11, f"{title}, {upward}"), *frame.x_axis(across, unit=across_s)]
        parts += frame.y_axis()
        for series, demand in enumerate(demands):
            if (tier, demand) in lines:
                parts += _drawn(frame, *lines[tier, demand], upward_s, series, f"{_gpus(demand)}: {title.lower()}")
    bottom = frame.bottom + 50
    parts += legend(_LEFT, bottom, [_gpus(demand) for demand in demands])
    return written(document(width, bottom + 18 * len(demands), f"Delay timers of {result.policy}", parts), path)


def _lines(log: TimerLog, result: PlacementResult) -> dict[tuple[int, int], tuple[Floats, Floats]]:
    """Return times and values of the timers that are consulted, by tier and demand."""
    cluster = result.cluster
    widest = (cluster.gpus_per_machine or cluster.gpus, cluster.gpus // (cluster.racks or 1))
    lines = {}
    for tier, demand in sorted(set(zip(log.tier.tolist(), log.demand.tolist(), strict=True))):
        if demand <= widest[tier]:
            of = (log.tier == tier) & (log.demand == demand)
            lines[tier, demand] = log.time_s[of], log.timer_s[of]
    return lines


def _drawn(frame: Frame, time_s: Floats, timer_s: Floats, unit_s: float, series: int, tip: str) -> list[str]:
    """Return the finite stretches of a line."""
    time_s, timer_s = time_s[time_s < frame.x_limit], timer_s[time_s < frame.x_limit]
    if len(time_s) > _MOST_STEPS:
        kept = np.unique(np.linspace(0, len(time_s) - 1, _MOST_STEPS).round().astype(np.intp))
        time_s, timer_s = time_s[kept], timer_s[kept]
    infinite = ~np.isfinite(timer_s)
    edges = np.append(time_s, frame.x_limit)
    bounds = np.flatnonzero(np.diff(infinite, prepend=True, append=True)).tolist()
    paths = []
    for first, last in list(pairwise(bounds))[::2]:
        values = timer_s[first:last] / unit_s
        paths.append(frame.steps(edges[first : last + 1], np.append(values, values[-1]), series, tip))
    return paths


def _gpus(demand: int) -> str:
    return f"{demand} GPU" + "s" * (demand > 1)
