"""Exposed communication of a job over time, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import NamedTuple

import numpy as np

from ....formulations.arrays import Floats
from ....formulations.checks import as_integer
from ....formulations.errors import InvalidInput
from ....formulations.files import written
from ....formulations.plotting.svg import Frame, document, legend, short, text, time_unit
from ..interference import ConstantInterference
from ..job import PlacementJob
from ..policy import PlacementState
from ..result import PlacementResult
from ..speeds import Speeds

_LEFT, _TOP, _HEIGHT, _RIGHT = 46, 26, 150, 10
# Space above the highest line, as a share of its height.
_MARGIN = 0.06


class ExposedShares(NamedTuple):
    """Stretches of time in which a job ran, and the share of each that is exposed communication, of shape (S,)."""

    start_s: Floats
    end_s: Floats
    share: Floats


def exposed_shares(result: PlacementResult, trace_index: int, speeds: Speeds) -> ExposedShares:
    """Return the share of exposed communication of a job along its stretches, under these speeds.

    The stretches are those of the run, whatever speeds it had. The job is alone on its GPUs, with the batch size of the
    trace.

    Parameters
    ----------
    result : PlacementResult
        With recorded stretches.
    trace_index : int
        Index of the job in the trace.
    speeds : Speeds

    Raises
    ------
    InvalidInput
        If there is no such job, the result was not recorded, or the speeds do not know the job.
    """
    index = as_integer("trace_index", trace_index, minimum=0, maximum=len(result.trace) - 1)
    if result.stretches is None:
        raise InvalidInput("record", False, "the GPUs of the jobs were not recorded; simulate with record=True")
    state = PlacementState(result.cluster, 1, speeds, ConstantInterference(1.0), frozenset())
    job = PlacementJob(state, result.trace, index, 1.0, 1.0)
    own = np.flatnonzero(result.stretches.trace_index == index)
    ids = result.stretches.ids()
    runs = [state.run_on(job, ids[stretch].tolist(), job.batch_size, job.batch_size) for stretch in own.tolist()]
    return ExposedShares(
        result.stretches.start_s[own],
        result.stretches.end_s[own],
        np.array([float(speeds.exposed(run)) for run in runs]),
    )


def communication_picture(
    result: PlacementResult,
    trace_index: int,
    speeds: Mapping[str, Speeds],
    *,
    width: int = 540,
    path: str | PathLike[str] | None = None,
) -> str:
    """Return the share of exposed communication of a job over time, as SVG: one line for each of some speeds.

    A line has a gap where the job waits. The legend states the mean over the time in which the job runs.

    Parameters
    ----------
    result : PlacementResult
        With recorded stretches.
    trace_index : int
        Index of the job in the trace.
    speeds : mapping of str to Speeds
        Speeds by the names of the lines, at least one.
    width : int
        Width of the picture, in pixels.
    path : path, optional
        File to write as well.

    Raises
    ------
    InvalidInput
        As of `exposed_shares`, or if there are no speeds or the job never ran.

    Notes
    -----
    After Figure 6 of Dally's paper, which compares the communication of a job under penalties and under a model.
    """
    if not speeds:
        raise InvalidInput("speeds", "{}", "must not be empty")
    found = {name: exposed_shares(result, trace_index, each) for name, each in speeds.items()}
    stretches = next(iter(found.values()))
    name = str(result.trace.job_id[trace_index])
    if not len(stretches.start_s):
        raise InvalidInput("trace_index", trace_index, f"job {name} never ran")
    most = max(float(each.share.max()) for each in found.values())
    frame = Frame(
        left=_LEFT,
        top=_TOP,
        width=width - _LEFT - _RIGHT,
        height=_HEIGHT,
        x_start=float(result.trace.arrival_s[trace_index]),
        x_limit=float(stretches.end_s.max()),
        y_limit=min(1.0, most * (1.0 + _MARGIN)) or 1.0,
    )
    unit, seconds = time_unit(frame.x_limit)
    title = f"Exposed communication of job {short(name)}"
    heading = f"{title}, {result.trace.model[trace_index]}, {result.trace.gang_gpus[trace_index]} GPUs"
    parts = [text(_LEFT, 15, heading), *frame.x_axis(unit, unit=seconds), *frame.y_axis("{:.3g}")]
    labels = []
    for series, (label, each) in enumerate(found.items()):
        lengths = each.end_s - each.start_s
        labels.append(f"{short(label, 40)}: {float(each.share @ lengths) / float(lengths.sum()):.1%} of the run time")
        for first, last in _unbroken(each):
            edges = np.append(each.start_s[first:last], each.end_s[last - 1])
            share = each.share[first:last]
            parts.append(frame.steps(edges, np.append(share, share[-1]), series, labels[-1]))
    parts += legend(_LEFT, frame.bottom + 50, labels)
    return written(document(width, frame.bottom + 44 + 18 * len(labels), title, parts), path)


def _unbroken(shares: ExposedShares) -> list[tuple[int, int]]:
    """Return first and one past the last of the stretches between which the job does not wait."""
    begins = np.flatnonzero(np.append(True, shares.start_s[1:] > shares.end_s[:-1])).tolist()
    return list(zip(begins, [*begins[1:], len(shares.start_s)], strict=True))
