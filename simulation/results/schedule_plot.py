"""The picture of a schedule: time across, GPUs upward, a colour for each job (Shockwave, Fig. 8)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.errors import InvalidInput
from ...formulations.plotting.svg import Frame, document, escape, filled, job_colour, text, time_unit
from .timeline import Stretches

if TYPE_CHECKING:
    from .result import SimulationResult

# Limits of one picture: beyond them it shows evenly chosen steps and GPUs, and how many there are.
MOST_COLUMNS, MOST_ROWS = 600, 160
_HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 270, 46, 26, 10, 42


def schedule_picture(result: SimulationResult, *, until_s: float | None = None, width: int = 540) -> str:
    """Return an SVG document of the GPUs that each job held over time; a job's id shows when pointed at.

    A job's colour depends on its position in the trace alone, so that schedules of one trace can be compared. Where the
    engine records which GPUs a job held, a row is a GPU. Where it records their number, the GPUs are stacked in the
    order of the trace. The time axis ends at `until_s`, by default the makespan; `width` is that of the whole picture,
    in pixels. Raises InvalidInput if the result was not recorded. Source: Shockwave (NSDI 2023), Fig. 8.
    """
    if result.stretches is None:
        raise InvalidInput("record", False, "who held which GPUs was not recorded; simulate with record=True")
    gpus, levels = result.gpus, result.levels
    end_s = float(levels.end_s[-1]) if len(levels) else 1.0
    frame = Frame(
        left=_LEFT,
        top=_TOP,
        width=width - _LEFT - _RIGHT,
        height=_HEIGHT - _TOP - _BELOW,
        x_limit=end_s if until_s is None else until_s,
        y_limit=gpus,
    )
    columns = _chosen(len(levels), MOST_COLUMNS)
    starts = levels.start_s[columns]
    ends = np.append(starts[1:], end_s) if len(columns) < len(levels) else levels.end_s
    limits = [(columns, len(levels), result.step_name)]
    if result.stretches.gpu_ids is None:
        rectangles = _bands(result.stretches, starts)
    else:
        lanes = _chosen(gpus, MOST_ROWS)
        limits.append((lanes, gpus, "GPU"))
        job, first, last, low, high = _rectangles(held_gpus(result.stretches, gpus, starts)[:, lanes])
        lane = gpus / len(lanes)
        rectangles = job, first, last, lane * low.astype(np.float64), lane * high.astype(np.float64)
    unit, seconds = time_unit(frame.x_limit)
    background = f'<rect class="idle" x="{frame.left}" y="{frame.top}" width="{frame.width}" height="{frame.height}"/>'
    parts = [text(_LEFT, 15, f"{gpus} GPUs"), background, *frame.x_axis(unit, unit=seconds), *frame.y_axis()]
    parts += _jobs(frame, rectangles, starts, ends, result.trace.job_id)
    notes = [
        f"every {whole // len(few)}th {what}" if whole % len(few) == 0 else f"{len(few)} of {whole} {what}s"
        for few, whole, what in limits
        if len(few) < whole
    ]
    if notes:
        parts.append(text(_LEFT, _HEIGHT - 8, f"Drawn: {', '.join(notes)}", "quiet"))
    return document(width, _HEIGHT, f"Schedule of {result.policy}", parts)


def held_gpus(stretches: Stretches, gpus: int, at_s: Floats) -> NDArray[np.int32]:
    """Return the job, by its position in the trace, that holds each GPU at each moment, shape (n, gpus); -1: idle.

    The stretches need the numbers of their GPUs; the moments, shape (n,), ascend.
    """
    table = np.full((len(at_s), gpus), -1, dtype=np.int32)
    first, last = np.searchsorted(at_s, stretches.start_s), np.searchsorted(at_s, stretches.end_s)
    spans = zip(stretches.trace_index.tolist(), stretches.ids(), first.tolist(), last.tolist(), strict=True)
    for job, held, begin, end in spans:
        table[begin:end, held] = job
    return table


def _bands(stretches: Stretches, at_s: Floats) -> tuple[Indices, Indices, Indices, Floats, Floats]:
    """Return job, first and last column, lower and upper edge of each band, by job; jobs are stacked by position."""
    first, last = np.searchsorted(at_s, stretches.start_s), np.searchsorted(at_s, stretches.end_s)
    by_place = np.argsort(stretches.trace_index, kind="stable")
    pieces: list[tuple[int, int, float, float]] = []
    for column in range(len(at_s)):
        held = by_place[(first[by_place] <= column) & (column < last[by_place])]
        edges = np.concatenate([[0.0], np.cumsum(stretches.gpus[held])]).tolist()
        jobs = stretches.trace_index[held].tolist()
        pieces += [(job, column, *edge) for job, edge in zip(jobs, itertools.pairwise(edges), strict=True)]
    bands: list[tuple[int, int, int, float, float]] = []
    for job, column, low, high in sorted(pieces):
        if bands and (bands[-1][0], *bands[-1][2:]) == (job, column - 1, low, high):
            bands[-1] = (job, bands[-1][1], column, low, high)
        else:
            bands.append((job, column, column, low, high))
    table = np.array(bands, dtype=np.float64).reshape(-1, 5)
    job, begin, end = table[:, :3].T.astype(np.int64)
    return job, begin, end, table[:, 3], table[:, 4]


def _chosen(count: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _jobs(
    frame: Frame,
    rectangles: tuple[Indices, Indices, Indices, Floats, Floats],
    starts: Floats,
    ends: Floats,
    names: Sequence[str | int],
) -> Iterator[str]:
    """Yield one path for each job: all its rectangles, from the first column of a stretch to its last."""
    job, first, last, low, high = rectangles
    x0, x1 = frame.x(np.minimum(starts[first], frame.x_limit)), frame.x(np.minimum(ends[last], frame.x_limit))
    y0, y1 = frame.y(high), frame.y(low)
    pieces = [
        f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z"
        for left, top, right, bottom in zip(x0, y0, x1, y1, strict=True)
    ]
    bounds = np.flatnonzero(np.diff(job, prepend=-1, append=-1)).tolist() if len(job) else []
    for begin, end in itertools.pairwise(bounds):
        index = int(job[begin])
        yield (
            f'<path {filled(job_colour(index))} d="{"".join(pieces[begin:end])}">'
            f"<title>job {escape(str(names[index]))}</title></path>"
        )


def _rectangles(table: NDArray[np.int32]) -> tuple[Indices, ...]:
    """Return job, first and last column, lowest row and one past the highest of each rectangle, by job."""
    columns, rows = table.shape
    edges = np.ones((columns + 1, rows), dtype=bool)
    edges[1:-1] = table[1:] != table[:-1]
    # Transposed, so that a row's starts and ends come in the same order.
    row, first = np.nonzero(edges[:-1].T)
    last = np.nonzero(edges[1:].T)[1]
    runs = np.column_stack([table[first, row], first, last, row]).astype(np.int64)
    runs = runs[runs[:, 0] >= 0]
    job, first, last, row = runs[np.lexsort((runs[:, 3], runs[:, 2], runs[:, 1], runs[:, 0]))].T
    if not len(job):
        return job, first, last, row, row
    # What stands on a run of the same job and columns belongs to its rectangle.
    same = (np.diff(job) == 0) & (np.diff(first) == 0) & (np.diff(last) == 0) & (np.diff(row) == 1)
    begin = np.flatnonzero(np.append(True, ~same))
    end = np.append(begin[1:], len(job)) - 1
    return job[begin], first[begin], last[begin], row[begin], row[end] + 1
