"""Reader of traces of durations: a CSV of the run time of each job, in our columns or in those of Helios."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...formulations.checks import LARGEST_INTEGER
from ...formulations.errors import InvalidInput
from ..delimited_files import Row, header_names, read_rows, unique_ids
from ..profiles.table import Profiles
from .helios import helios_columns, is_helios_trace
from .source import TraceSource

_REQUIRED = ("job_id", "submit_time_s", "duration_s", "num_gpus", "model")
# Columns of the file for the fields of a trace, where the names differ.
_NAMES = {"gang_gpus": "num_gpus", "arrival_s": "submit_time_s", "total_steps": "duration_s"}
# Files round durations and GPU-seconds separately. Tolerances: relative, and in seconds per GPU.
_WORK_REL, _WORK_S = 1e-3, 1.0


class TimedModels(Protocol):
    """Models with ranges of batch sizes and throughputs by formula, such as `simulation.placement.ModelTable`."""

    def gpu_batch_range(self, model: str) -> tuple[int, int]:
        """Return the least and the largest batch size per GPU; InvalidInput if the model is unknown."""
        ...

    def profiles(self, configurations: Iterable[tuple[str, int, int]]) -> Profiles:
        """Return profiles of these (model, batch size per GPU, GPUs)."""
        ...


def duration_columns(
    path: str | Path, profiles: Profiles | None = None, models: TimedModels | None = None
) -> tuple[dict[str, Any], Profiles | None]:
    """Return the fields of `Trace` from a trace of durations, and the profiles; see `readers.read_durations`.

    Without `profiles` and `models` there are none, and models and batch sizes are as in the file; see `own_profiles`.
    """
    if profiles is not None and models is not None:
        raise InvalidInput("models", type(models).__name__, "must be left out with profiles")
    path = Path(path)
    if is_helios_trace(path):
        for name, given in (("profiles", profiles), ("models", models)):
            if given is not None:
                raise InvalidInput(name, type(given).__name__, f"must be left out: {path.name} names no models")
        return helios_columns(path), None
    rows = list(read_rows(path, _REQUIRED))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    ids = unique_ids(rows)
    source = TraceSource(path.name, [row.line for row in rows], _NAMES)
    names = [row.text("model") for row in rows]
    gang_gpus = [row.integer("num_gpus", 1) for row in rows]
    durations = [_duration(row, gpus) for row, gpus in zip(rows, gang_gpus, strict=True)]
    stated: Sequence[int | None] = [row.optional_integer("batch_size", 1) for row in rows]
    arrivals = [row.real("submit_time_s", minimum=0.0) for row in rows]
    if models is not None:
        per_gpu = _per_gpu(models, names, stated, gang_gpus, source)
        stated, profiles = per_gpu, models.profiles(set(zip(names, per_gpu, gang_gpus, strict=True)))
    if profiles is None:
        sizes, epochs = [1 if size is None else size for size in stated], None
        steps = [gpus * max(1, round(seconds)) for gpus, seconds in zip(gang_gpus, durations, strict=True)]
    else:
        sizes, steps, epochs = _measured(profiles, names, stated, gang_gpus, durations, source)
    for row, count in zip(rows, steps, strict=True):
        if count > LARGEST_INTEGER:
            raise InvalidInput("duration_s", row.cells["duration_s"], f"more than 2^53 steps ({row.location})")
    columns = {
        "job_id": ids,
        "model": names,
        "batch_size": np.array(sizes),
        "gang_gpus": np.array(gang_gpus),
        "min_gpus": np.array([row.optional_integer("min_gpus", 1) or 1 for row in rows]),
        "mode": ["static"] * len(rows),
        "total_steps": np.array(steps),
        "duration_s": np.array(durations),
        "arrival_s": np.array(arrivals),
        "total_epochs": None if epochs is None else np.array(epochs),
        "source": source,
    }
    return columns, profiles


def is_duration_trace(path: str | Path) -> bool:
    """Return whether the file's first line that is not blank is the header of a CSV of durations, or of Helios."""
    columns = header_names(Path(path))
    # One of the two is enough: the other may be the missing column.
    timed = "total_steps" not in columns and bool(columns & {"duration_s", "submit_time_s"})
    return timed or is_helios_trace(path)


def virtual_clusters(path: str | Path) -> list[str]:
    """Return the virtual cluster of each job of a trace of durations: Helios's column vc, otherwise the model."""
    path = Path(path)
    if is_helios_trace(path):
        return list(helios_columns(path, warn=False)["model"])
    return [row.text("model") for row in read_rows(path, ("model",))]


def _duration(row: Row, gpus: int) -> float:
    seconds = row.real("duration_s", above=0.0)
    if row.cells.get("work_gpu_s"):
        work = row.real("work_gpu_s", above=0.0)
        if not math.isclose(work, seconds * gpus, rel_tol=_WORK_REL, abs_tol=_WORK_S * gpus):
            why = f"must be duration_s x num_gpus, {seconds * gpus:g} ({row.location})"
            raise InvalidInput("work_gpu_s", work, why)
    return seconds


def _per_gpu(
    models: TimedModels,
    names: Sequence[str],
    totals: Sequence[int | None],
    gang_gpus: Sequence[int],
    source: TraceSource,
) -> list[int]:
    """Return each job's batch size per GPU, from its total; warn of the number of jobs whose total changes."""
    sizes: list[int] = []
    rounded = moved = 0
    for index, (model, total, gpus) in enumerate(zip(names, totals, gang_gpus, strict=True)):
        try:
            least, largest = models.gpu_batch_range(model)
            if total is None:
                raise InvalidInput("batch_size", "", "must not be empty: it is the total over the GPUs of the job")
        except InvalidInput as error:
            raise source.locate(InvalidInput(error.field, error.value, error.why, index=index)) from None
        nearest = (2 * total + gpus) // (2 * gpus)  # halves up
        sizes.append(min(max(nearest, least), largest))
        moved += sizes[-1] != nearest
        rounded += sizes[-1] == nearest and nearest * gpus != total
    if rounded or moved:
        text = (
            f"{source.file}: of {len(sizes)} jobs, {rounded} have a batch size that their GPUs do not divide (rounded "
            f"to the nearest per GPU), and {moved} one outside their model's range per GPU (moved to its end)"
        )
        warnings.warn(text, UserWarning, stacklevel=4)
    return sizes


def own_profiles(columns: Mapping[str, Any], name: str) -> tuple[dict[str, Any], Profiles]:
    """Return the fields of a trace that was read without profiles, and profiles under which it runs its durations.

    An epoch of g steps takes a gang of g GPUs one second. Each pair of model and GPUs is a model of its own, with the
    batch size 1.
    """
    gang_gpus = columns["gang_gpus"].tolist()
    names = [
        f"{model} on {gpus} GPU{'s' if gpus > 1 else ''}"
        for model, gpus in zip(columns["model"], gang_gpus, strict=True)
    ]
    gangs = dict(zip(names, gang_gpus, strict=True))
    rates = {(model, 1, gpus): float(gpus) for model, gpus in gangs.items()}
    profiles = Profiles(name=name, rates=rates, dataset_sizes=gangs, max_batch_sizes={})
    return {**columns, "model": names, "batch_size": np.ones(len(names), dtype=np.int64)}, profiles


def _measured(
    profiles: Profiles,
    models: Sequence[str],
    stated: Sequence[int | None],
    gang_gpus: Sequence[int],
    durations: Sequence[float],
    source: TraceSource,
) -> tuple[list[int], list[int], list[int]]:
    """Return each job's batch size, and its steps and epochs at the profiles' rate."""
    sizes: list[int] = []
    steps: list[int] = []
    epochs: list[int] = []
    for index, (model, size, gpus, seconds) in enumerate(zip(models, stated, gang_gpus, durations, strict=True)):
        try:
            sizes.append(_only_size(profiles, model, gpus) if size is None else size)
            rate = profiles.steps_per_s(model, sizes[-1], gpus)
            epoch_s = profiles.epoch_s(model, sizes[-1], gpus)
        except InvalidInput as error:
            raise source.locate(InvalidInput(error.field, error.value, error.why, index=index)) from None
        # The caller refuses numbers of steps beyond the integers that floats hold, infinity included.
        steps.append(max(1, round(min(seconds * rate, 2.0 * LARGEST_INTEGER))))
        epochs.append(max(1, round(min(seconds / epoch_s, LARGEST_INTEGER))))
    return sizes, steps, epochs


def _only_size(profiles: Profiles, model: str, gpus: int) -> int:
    known = [size for name, size in profiles.configurations(gpus) if name == model]
    if len(known) == 1 or model not in profiles.models:
        return known[0] if known else 1  # the lookup of the rate reports an unknown model
    have = ", ".join(map(str, known)) or "none"
    why = f"must not be empty: {model} on {gpus} GPUs has no single batch size in profiles '{profiles.name}' ({have})"
    raise InvalidInput("batch_size", "", why)
