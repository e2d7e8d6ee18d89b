"""A schedule as one picture: rounds across, GPUs upward, each job in a colour of its own (Shockwave, Fig. 8)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...formulations.arrays import Floats, Indices
from ...formulations.plotting.svg import Frame, document, escape, time_unit, words
from .result import RUN_COLUMNS

if TYPE_CHECKING:
    from .result import SimulationResult

# What one picture can hold; of more, evenly chosen rounds and GPUs are drawn, and the picture says so.
MOST_COLUMNS, MOST_ROWS = 600, 160
_HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 270, 46, 26, 10, 42
# Turning by the golden angle keeps neighbours in the trace apart, however many there are.
_GOLDEN_ANGLE = 137.50776
_ROUND, _PLACE, _TYPE, _GPU_IDS = (RUN_COLUMNS.index(name) for name in ("round", "place", "gpu_type", "gpu_ids"))


def schedule_picture(result: SimulationResult, *, until_s: float | None = None, width: int = 540) -> str:
    """Return an SVG document of who ran when; pointing at a job says which it is.

    A job's colour depends on its position in the trace alone, so that schedules of one trace can be compared.

    Parameters
    ----------
    result : SimulationResult
    until_s : float, optional
        Where the time axis ends; the makespan by default.
    width : int
        Of the whole picture, in pixels.

    Source: Shockwave (NSDI 2023), Fig. 8.
    """
    gpus = result.gpus
    starts, ends = (result.rounds[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    end_s = float(ends[-1]) if len(ends) else 1.0
    frame = Frame(
        left=_LEFT,
        top=_TOP,
        width=width - _LEFT - _RIGHT,
        height=_HEIGHT - _TOP - _BELOW,
        x_limit=end_s if until_s is None else until_s,
        y_limit=gpus,
    )
    rows = gpu_rows(result)
    columns = _chosen(len(rows), MOST_COLUMNS)
    lanes = _chosen(gpus, MOST_ROWS)
    ends = np.append(starts[columns[1:]], end_s) if len(columns) < len(rows) else ends[columns]
    unit, seconds = time_unit(frame.x_limit)
    background = f'<rect class="idle" x="{frame.left}" y="{frame.top}" width="{frame.width}" height="{frame.height}"/>'
    parts = [words(_LEFT, 15, f"{gpus} GPUs"), background, *frame.axes(unit, x_unit=seconds, percent=False)]
    parts += _jobs(frame, rows[np.ix_(columns, lanes)], starts[columns], ends, gpus / len(lanes), result.trace.job_id)
    notes = [
        f"every {whole // len(few)}th {what}" if whole % len(few) == 0 else f"{len(few)} of {whole} {what}s"
        for few, whole, what in ((columns, len(rows), "round"), (lanes, gpus, "GPU"))
        if len(few) < whole
    ]
    if notes:
        parts.append(words(_LEFT, _HEIGHT - 8, f"Drawn: {', '.join(notes)}", "quiet"))
    return document(width, _HEIGHT, f"Schedule of {result.policy}", parts)


def gpu_rows(result: SimulationResult) -> NDArray[np.int32]:
    """Return the job, by its position in the trace, that each GPU ran in each round; -1: idle.

    Returns
    -------
    ndarray of int, shape (rounds, GPUs)
        The GPUs of the first type come first.
    """
    table = np.full((len(result.round_rows), result.gpus), -1, dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(list(result.gpus_by_type.values()))])
    held = [len(row[_GPU_IDS]) for row in result.run_rows]
    gpu = np.fromiter(itertools.chain.from_iterable(row[_GPU_IDS] for row in result.run_rows), np.intp, sum(held))
    number, place, kind = (np.repeat([row[k] for row in result.run_rows], held) for k in (_ROUND, _PLACE, _TYPE))
    table[number, first[kind] + gpu] = place
    return table


def _chosen(count: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _jobs(
    frame: Frame,
    table: NDArray[np.int32],
    starts: Floats,
    ends: Floats,
    gpus_per_row: float,
    names: Sequence[str | int],
) -> Iterator[str]:
    """Yield one path for each job: all its rectangles, from the first column of a stretch to its last."""
    job, first, last, low, high = _rectangles(table)
    x0, x1 = frame.x(np.minimum(starts[first], frame.x_limit)), frame.x(np.minimum(ends[last], frame.x_limit))
    y0, y1 = frame.y(gpus_per_row * high.astype(np.float64)), frame.y(gpus_per_row * low.astype(np.float64))
    pieces = [
        f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z"
        for left, top, right, bottom in zip(x0, y0, x1, y1, strict=True)
    ]
    bounds = np.flatnonzero(np.diff(job, prepend=-1, append=-1)).tolist() if len(job) else []
    for begin, end in itertools.pairwise(bounds):
        index = int(job[begin])
        hue, light = index * _GOLDEN_ANGLE % 360, (46, 60, 70)[index % 3]
        yield (
            f'<path fill="hsl({hue:.0f},58%,{light}%)" d="{"".join(pieces[begin:end])}">'
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
