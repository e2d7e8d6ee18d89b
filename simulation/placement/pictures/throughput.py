"""Throughput against the batch size, for several numbers of GPUs, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from os import PathLike

import numpy as np

from ....formulations.checks import as_integer, as_integers
from ....formulations.errors import InvalidInput
from ....formulations.files import written
from ....formulations.plotting.svg import Frame, document, legend, rule, text
from ..time_model import TimeModel

_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _FOOT = 76, 30, 464, 240, 20, 52
# Space above the highest curve, as a share of its height.
_MARGIN = 0.06


def throughput_picture(
    time: TimeModel,
    *,
    gpus: Sequence[int],
    batch_sizes: Sequence[int],
    gpus_per_machine: int | None = None,
    sub_batch: int | None = None,
    title: str = "Throughput",
    path: str | PathLike[str] | None = None,
) -> str:
    """Return the samples per second against the batch size per GPU, a curve for each number of GPUs, as SVG.

    Parameters
    ----------
    time : TimeModel
    gpus : sequence of int
        Numbers of GPUs, each at least 1, on as few machines as possible.
    batch_sizes : sequence of int
        Samples per GPU and iteration, at least 1, ascending, two or more.
    gpus_per_machine : int, optional
        By default all GPUs are on one machine.
    sub_batch : int, optional
        Most samples that a GPU computes at once; by default the whole batch.
    title : str
    path : path, optional
        File to write as well.

    Raises
    ------
    InvalidInput
        If a number is out of range, or `gpus` is empty.
    """
    counts, sizes = as_integers("gpus", gpus, minimum=1), as_integers("batch_sizes", batch_sizes, minimum=1)
    if not len(counts):
        raise InvalidInput("gpus", "[]", "must not be empty")
    if len(sizes) < 2 or (np.diff(sizes) <= 0).any():
        raise InvalidInput("batch_sizes", sizes.tolist(), "must be two or more, ascending")
    machine = as_integer("gpus_per_machine", gpus_per_machine or counts.max(), minimum=1)
    part = None if sub_batch is None else as_integer("sub_batch", sub_batch, minimum=1)
    rates = np.array(
        [
            [
                count * size / time.iteration(count, size, sub_batch=part, machines=ceil(count / machine)).total_s
                for size in sizes.tolist()
            ]
            for count in counts.tolist()
        ]
    )
    across = np.log10(sizes)
    frame = Frame(
        left=_LEFT,
        top=_TOP,
        width=_WIDTH,
        height=_HEIGHT,
        x_start=float(across[0]),
        x_limit=float(across[-1]),
        y_limit=float(rates.max()) * (1.0 + _MARGIN),
    )
    names = [f"{count} GPU" + "s" * (count > 1) for count in counts.tolist()]
    parts = [
        text(_LEFT, 16, f"{title}: samples per second"),
        *frame.y_axis("{:,.6g}"),
        *frame.x_axis("samples per GPU and iteration", log=True),
        rule(frame.left, frame.bottom, frame.right, frame.bottom, "base"),
    ]
    for series, (name, row) in enumerate(zip(names, rates, strict=True)):
        parts += frame.curve(across, row, series, name)
    parts += legend(_LEFT, frame.bottom + _FOOT, names)
    height = frame.bottom + _FOOT + 18 * len(names)
    return written(document(_LEFT + _WIDTH + _RIGHT, height, title, parts), path)
