"""Trace files: Shockwave's CSV and Gavel's tab-separated format, read with every fault named by line."""

from __future__ import annotations

import csv
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ...formulations.errors import InvalidInput
from ..delimited_files import Row, as_id, read_lines, read_rows, unique_ids
from ..profiles.modes import MODES, Runs
from .durations import is_duration_trace, read_durations
from .source import TraceSource
from .trace import Trace, schedule_text

_REQUIRED = ("job_id", "model", "batch_size", "scale_factor", "mode", "total_steps", "arrival_time_s")

_GAVEL = ("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor")
_GAVEL_COLUMNS = {
    10: (*_GAVEL, "priority_weight", "SLO", "arrival_time"),
    12: (*_GAVEL, "mode", "priority_weight", "SLO", "duration", "arrival_time"),
}
_JOB_TYPE = re.compile(r"(?P<model>\S+)(?: \(batch size (?P<batch_size>\d+)\))?")
# What the files call the fields of a trace, where they differ.
_SHOCKWAVE_NAMES = {
    "num_gpus": "scale_factor",
    "arrival_s": "arrival_time_s",
    "weight": "priority_weight",
    "total_epochs": "num_epochs",
    "schedule": "profile_bs_schedule_rle",
}
_GAVEL_NAMES = {
    "model": "job_type",
    "batch_size": "job_type",
    "num_gpus": "scale_factor",
    "arrival_s": "arrival_time",
    "weight": "priority_weight",
}
# Gavel's job types name no batch size for these two; the published throughput tables list both at 4.
_UNSTATED_BATCH_SIZE = {"A3C": 4, "CycleGAN": 4}


def read_trace(path: str | Path) -> Trace:
    """Read a trace in any format: a tab in the first line that is not blank means Gavel's, duration_s in it durations.

    Of a trace of durations this is the one without measured rates: it goes with the profiles that `read_durations`
    returns beside it, and with no others.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is empty, or holds a fault (see the three readers).
    """
    path = Path(path)
    first = next((line for line in read_lines(path) if line.strip()), None)
    if first is None:
        raise InvalidInput("path", str(path), "the file is empty")
    if is_duration_trace(path):
        return read_durations(path)[0]
    return read_gavel(path) if "\t" in first else read_shockwave(path)


def read_shockwave(path: str | Path) -> Trace:
    """Read a CSV trace with a header line.

    Columns needed: job_id, model, batch_size, scale_factor (GPUs), mode, total_steps (at that batch size) and
    arrival_time_s. Used where present: num_epochs, steps_per_epoch (must agree with the two others),
    priority_weight, and profile_bs_schedule_rle ("32x28 256x64": 28 epochs at 32, then 64 at 256). Other columns do
    not describe the job and are not read.

    Raises
    ------
    InvalidInput
        Naming column, value, file and line.
    """
    path = Path(path)
    rows = list(read_rows(path, _REQUIRED))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    epochs = np.array([_epochs(row) for row in rows]) if "num_epochs" in rows[0].cells else None
    schedule = [_schedule(row) for row in rows] if "profile_bs_schedule_rle" in rows[0].cells else None
    weighted = "priority_weight" in rows[0].cells
    return _trace(
        TraceSource(path.name, [row.line for row in rows], _SHOCKWAVE_NAMES),
        job_id=unique_ids(rows),
        model=[row.text("model") for row in rows],
        batch_size=np.array([row.integer("batch_size", 1) for row in rows]),
        num_gpus=np.array([row.integer("scale_factor", 1) for row in rows]),
        mode=[_mode(row) for row in rows],
        total_steps=np.array([row.integer("total_steps", 1) for row in rows]),
        arrival_s=np.array([row.real("arrival_time_s", minimum=0.0) for row in rows]),
        weight=np.array([row.real("priority_weight", above=0.0) if weighted else 1.0 for row in rows]),
        total_epochs=epochs,
        schedule=schedule,
    )


def read_gavel(path: str | Path) -> Trace:
    """Read a tab-separated trace without a header, in Gavel's form or Shockwave's.

    Gavel's 10 columns: job_type, command, working_directory, num_steps_arg, needs_data_dir, total_steps,
    scale_factor, priority_weight, SLO, arrival_time; every job is static. Shockwave's 12 put mode before
    priority_weight and duration before arrival_time. job_type is such as "ResNet-18 (batch size 64)". Job ids count
    lines from 0. Command, data paths, SLO and duration do not describe the work and are not kept; epochs and
    batch-size schedules follow from the profiles.

    Raises
    ------
    InvalidInput
        Naming column, value, file and line; a line with another number of columns is refused.
    """
    path = Path(path)
    rows = []
    width = None
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        cells = line.split("\t")
        place = f"{path.name}, line {number}"
        if len(cells) not in _GAVEL_COLUMNS:
            raise InvalidInput("line", line, f"{len(cells)} columns, a trace has 10 or 12 ({place})")
        width = len(cells) if width is None else width
        if len(cells) != width:
            raise InvalidInput("line", line, f"{len(cells)} columns, the lines above have {width} ({place})")
        named = dict(zip(_GAVEL_COLUMNS[width], (cell.strip() for cell in cells), strict=True))
        rows.append(Row(named, place, number))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    kinds = [_job_type(row) for row in rows]
    return _trace(
        TraceSource(path.name, [row.line for row in rows], _GAVEL_NAMES),
        job_id=range(len(rows)),
        model=[model for model, _ in kinds],
        batch_size=np.array([batch_size for _, batch_size in kinds]),
        num_gpus=np.array([row.integer("scale_factor", 1) for row in rows]),
        mode=[_mode(row) for row in rows] if width == 12 else ["static"] * len(rows),
        total_steps=np.array([row.integer("total_steps", 1) for row in rows]),
        arrival_s=np.array([row.real("arrival_time", minimum=0.0) for row in rows]),
        weight=np.array([row.real("priority_weight", above=0.0) for row in rows]),
    )


def write_shockwave(trace: Trace, path: str | Path) -> None:
    """Write a trace as the CSV that `read_shockwave` reads, whole or not at all.

    Raises
    ------
    InvalidInput
        If an id is text that reads back as a number or loses its blanks ("7", " a").
    """
    for index, value in enumerate(trace.job_id):
        if as_id(str(value).strip()) != value:
            raise InvalidInput("job_id", value, "would read back as another id", index=index)
    path = Path(path)
    columns: dict[str, list[object]] = {
        "job_id": list(trace.job_id),
        "model": list(trace.model),
        "batch_size": trace.batch_size.tolist(),
        "scale_factor": trace.num_gpus.tolist(),
        "mode": list(trace.mode),
        "total_steps": trace.total_steps.tolist(),
        "arrival_time_s": trace.arrival_s.tolist(),
        "priority_weight": trace.weight.tolist(),
    }
    if trace.total_epochs is not None:
        columns["num_epochs"] = trace.total_epochs.tolist()
    if trace.schedule is not None:
        columns["profile_bs_schedule_rle"] = [schedule_text(runs) for runs in trace.schedule]
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _trace(source: TraceSource, **columns: Any) -> Trace:
    try:
        return Trace(**columns, source=source)
    except InvalidInput as error:
        raise source.locate(error) from None


def _mode(row: Row) -> str:
    if row.cells["mode"] not in MODES:
        raise InvalidInput("mode", row.cells["mode"], f"must be one of {', '.join(MODES)} ({row.place})")
    return row.cells["mode"]


def _epochs(row: Row) -> int:
    epochs = row.integer("num_epochs", 1)
    if row.cells.get("steps_per_epoch"):
        steps, per_epoch = row.integer("total_steps", 1), row.integer("steps_per_epoch", 1)
        if epochs != -(-steps // per_epoch):
            why = f"{steps} steps at {per_epoch} per epoch are {-(-steps // per_epoch)} epochs ({row.place})"
            raise InvalidInput("num_epochs", epochs, why)
    return epochs


def _schedule(row: Row) -> Runs:
    text = row.text("profile_bs_schedule_rle")
    runs = []
    for piece in text.split():
        match = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", piece)
        if match is None:
            raise InvalidInput("profile_bs_schedule_rle", piece, f"must be such as 32x28 ({row.place})")
        runs.append((int(match[1]), int(match[2])))
    batch_size = row.integer("batch_size", 1)
    if runs[0][0] != batch_size:
        raise InvalidInput("profile_bs_schedule_rle", text, f"must start at batch size {batch_size} ({row.place})")
    if "num_epochs" in row.cells and sum(epochs for _, epochs in runs) != row.integer("num_epochs", 1):
        why = f"its epochs must add up to num_epochs, {row.cells['num_epochs']} ({row.place})"
        raise InvalidInput("profile_bs_schedule_rle", text, why)
    return tuple(runs)


def _job_type(row: Row) -> tuple[str, int]:
    text = row.text("job_type")
    match = _JOB_TYPE.fullmatch(text)
    if match is None:
        raise InvalidInput("job_type", text, f'must be such as "ResNet-18 (batch size 64)" ({row.place})')
    model = match["model"]
    batch_size = _UNSTATED_BATCH_SIZE.get(model, 0) if match["batch_size"] is None else int(match["batch_size"])
    if batch_size < 1:
        raise InvalidInput("job_type", text, f"names no batch size of at least 1 ({row.place})")
    return model, batch_size
