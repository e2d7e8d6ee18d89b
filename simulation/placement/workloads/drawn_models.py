"""Models and batch sizes drawn by seed for jobs of which only GPUs and durations are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ....formulations.checks import as_generator
from ....formulations.errors import InvalidInput
from ...traces.trace import Trace
from ..model_table import ModelRow, ModelTable


class ModelClass(NamedTuple):
    """Models of the jobs below so many GPU-hours that belong to no class before."""

    below_gpu_hours: float
    models: tuple[str, ...]


#: Classes of the six models of the built-in table by GPU-hours.
MODEL_CLASSES = (
    ModelClass(1.0, ("cifar10", "ncf")),
    ModelClass(10.0, ("deepspeech2", "bert")),
    ModelClass(100.0, ("yolov3",)),
    ModelClass(math.inf, ("imagenet",)),
)


def draw_models(
    rng: np.random.Generator,
    trace: Trace,
    table: ModelTable | None = None,
    classes: Sequence[ModelClass] = MODEL_CLASSES,
) -> Trace:
    """Return the trace with a model and a batch size for each job; durations, GPUs and arrivals stay as they are.

    The model is drawn evenly from the class of the job's GPU-hours, the batch size evenly from `gpu_batches`. Two draws
    are used for each job. Under `ModelSpeeds` a job makes as many iterations as it can alone in its duration.

    Parameters
    ----------
    rng : numpy.random.Generator
    trace : Trace
        Jobs with `duration_s`.
    table : ModelTable, optional
        Built-in by default; it must have the models of the classes.
    classes : sequence of ModelClass
        In ascending order of their bounds, of which the last is infinite.

    Raises
    ------
    InvalidInput
        If the trace has no durations, bounds do not ascend to infinity, or a class has no model, or one that is not in
        the table.
    """
    as_generator(rng)
    if trace.duration_s is None:
        raise InvalidInput("duration_s", None, "the trace must have durations")
    bounds = np.array([each.below_gpu_hours for each in classes])
    if not len(bounds) or bounds[-1] != math.inf or not (bounds[1:] > bounds[:-1]).all():
        raise InvalidInput("classes", bounds.tolist(), "bounds must ascend, and the last must be infinite")
    for index, each in enumerate(classes):
        if not each.models:
            raise InvalidInput("classes", each.below_gpu_hours, "has no model", index=index)
    table = ModelTable.builtin() if table is None else table
    rows = [[table.row(model) for model in each.models] for each in classes]
    gpu_hours = trace.duration_s * trace.gang_gpus / 3600.0
    drawn = rng.random((len(trace), 2))
    models, sizes = [], []
    for place, gpus, (which, size) in zip(
        np.searchsorted(bounds, gpu_hours, side="right").tolist(), trace.gang_gpus.tolist(), drawn.tolist(), strict=True
    ):
        row = rows[place][int(which * len(rows[place]))]
        batches = gpu_batches(row, gpus)
        models.append(row.model)
        sizes.append(batches[int(size * len(batches))])
    return replace(trace, model=models, batch_size=np.array(sizes), total_epochs=None, schedule=None)


def gpu_batches(row: ModelRow, gpus: int) -> list[int]:
    """Return batch sizes per GPU of a model on so many GPUs: its largest per GPU, halved as often as its least allows.

    Those whose total over the GPUs is below the model's first batch or above its largest are left out; if that leaves
    none, the least one per GPU remains.
    """
    sizes = [row.max_gpu_batch]
    while (half := -(-sizes[-1] // 2)) >= row.min_gpu_batch and half < sizes[-1]:
        sizes.append(half)
    return [size for size in sizes if row.first_batch <= gpus * size <= row.max_batch] or sizes[-1:]
