"""Reader of the columns of trace files: Shockwave's CSV, Gavel's tab-separated lines and PCS's CSV."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ...formulations.errors import InvalidInput
from ..delimited_files import Row, header_names, read_lines, read_rows, unique_ids
from ..profiles.rules import MODES, Runs
from .durations import duration_columns, is_duration_trace
from .source import TraceSource

_REQUIRED = ("job_id", "model", "batch_size", "scale_factor", "mode", "total_steps", "arrival_time_s")

_GAVEL = ("job_type", "command", "working_directory", "num_steps_arg", "needs_data_dir", "total_steps", "scale_factor")
_GAVEL_COLUMNS = {
    10: (*_GAVEL, "priority_weight", "SLO", "arrival_time"),
    12: (*_GAVEL, "mode", "priority_weight", "SLO", "duration", "arrival_time"),
}
_JOB_TYPE = re.compile(r"(?P<model>\S+)(?: \(batch size (?P<batch_size>\d+)\))?")
# Columns of the files for the fields of a trace, where the names differ.
_SHOCKWAVE_NAMES = {
    "gang_gpus": "scale_factor",
    "arrival_s": "arrival_time_s",
    "weight": "priority_weight",
    "total_epochs": "num_epochs",
    "schedule": "profile_bs_schedule_rle",
}
_GAVEL_NAMES = {
    "model": "job_type",
    "batch_size": "job_type",
    "gang_gpus": "scale_factor",
    "arrival_s": "arrival_time",
    "weight": "priority_weight",
}
_PCS_NAMES = {
    "job_id": "app_id",
    "model": "model_name",
    "gang_gpus": "num_jobs",
    "arrival_s": "submit_time",
    "size_s": "service",
}
# Gavel's job types state no batch size for these two models; the published throughput tables list both at 4.
_UNSTATED_BATCH_SIZE = {"A3C": 4, "CycleGAN": 4}


def trace_columns(path: str | Path) -> dict[str, Any]:
    """Return the fields of `Trace` from a file in any of the formats; see `readers.read_trace`."""
    path = Path(path)
    first = next((line for line in read_lines(path) if line.strip()), None)
    if first is None:
        raise InvalidInput("path", str(path), "the file is empty")
    if is_duration_trace(path):
        return duration_columns(path)[0]
    if {"app_id", "service"} <= header_names(path):
        return pcs_columns(path)
    return gavel_columns(path) if "\t" in first else shockwave_columns(path)


def shockwave_columns(path: str | Path) -> dict[str, Any]:
    """Return the fields of `Trace` from a CSV with a header line; see `readers.read_shockwave`."""
    path = Path(path)
    rows = list(read_rows(path, _REQUIRED))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    epochs = np.array([_epochs(row) for row in rows]) if "num_epochs" in rows[0].cells else None
    schedule = [_schedule(row) for row in rows] if "profile_bs_schedule_rle" in rows[0].cells else None
    weighted = "priority_weight" in rows[0].cells
    return {
        "source": TraceSource(path.name, [row.line for row in rows], _SHOCKWAVE_NAMES),
        "job_id": unique_ids(rows),
        "model": [row.text("model") for row in rows],
        "batch_size": np.array([row.integer("batch_size", 1) for row in rows]),
        "gang_gpus": np.array([row.integer("scale_factor", 1) for row in rows]),
        "mode": [_mode(row) for row in rows],
        "total_steps": np.array([row.integer("total_steps", 1) for row in rows]),
        "arrival_s": np.array([row.real("arrival_time_s", minimum=0.0) for row in rows]),
        "weight": np.array([row.real("priority_weight", above=0.0) if weighted else 1.0 for row in rows]),
        "total_epochs": epochs,
        "schedule": schedule,
    }


def gavel_columns(path: str | Path) -> dict[str, Any]:
    """Return the fields of `Trace` from lines without a header; see `readers.read_gavel`."""
    path = Path(path)
    rows = []
    num_columns = None
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        cells = line.split("\t")
        location = f"{path.name}, line {number}"
        if len(cells) not in _GAVEL_COLUMNS:
            raise InvalidInput("line", line, f"{len(cells)} columns, a trace has 10 or 12 ({location})")
        num_columns = len(cells) if num_columns is None else num_columns
        if len(cells) != num_columns:
            raise InvalidInput("line", line, f"{len(cells)} columns, the lines above have {num_columns} ({location})")
        named = dict(zip(_GAVEL_COLUMNS[num_columns], (cell.strip() for cell in cells), strict=True))
        rows.append(Row(named, location, number))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    job_types = [_job_type(row) for row in rows]
    return {
        "source": TraceSource(path.name, [row.line for row in rows], _GAVEL_NAMES),
        "job_id": range(len(rows)),
        "model": [model for model, _ in job_types],
        "batch_size": np.array([batch_size for _, batch_size in job_types]),
        "gang_gpus": np.array([row.integer("scale_factor", 1) for row in rows]),
        "mode": [_mode(row) for row in rows] if num_columns == 12 else ["static"] * len(rows),
        "total_steps": np.array([row.integer("total_steps", 1) for row in rows]),
        "arrival_s": np.array([row.real("arrival_time", minimum=0.0) for row in rows]),
        "weight": np.array([row.real("priority_weight", above=0.0) for row in rows]),
    }


def pcs_columns(path: str | Path) -> dict[str, Any]:
    """Return the fields of `Trace` from PCS's CSV; see `readers.read_pcs`."""
    path = Path(path)
    rows = list(read_rows(path, tuple(_PCS_NAMES.values())))
    if not rows:
        raise InvalidInput("path", str(path), "the file holds no job")
    return {
        "source": TraceSource(path.name, [row.line for row in rows], _PCS_NAMES),
        "job_id": unique_ids(rows, "app_id"),
        "model": [row.text("model_name") for row in rows],
        "gang_gpus": np.array([row.integer("num_jobs", 1) for row in rows]),
        "min_gpus": np.array([row.optional_integer("min_gpus", 1) or 1 for row in rows]),
        "arrival_s": np.array([row.real("submit_time", minimum=0.0) for row in rows]),
        "size_s": np.array([row.real("service", above=0.0) for row in rows]),
    }


def _mode(row: Row) -> str:
    if row.cells["mode"] not in MODES:
        raise InvalidInput("mode", row.cells["mode"], f"must be one of {', '.join(MODES)} ({row.location})")
    return row.cells["mode"]


def _epochs(row: Row) -> int:
    epochs = row.integer("num_epochs", 1)
    if row.cells.get("steps_per_epoch"):
        steps, per_epoch = row.integer("total_steps", 1), row.integer("steps_per_epoch", 1)
        if epochs != -(-steps // per_epoch):
            why = f"{steps} steps at {per_epoch} per epoch are {-(-steps // per_epoch)} epochs ({row.location})"
            raise InvalidInput("num_epochs", epochs, why)
    return epochs


def _schedule(row: Row) -> Runs:
    text = row.text("profile_bs_schedule_rle")
    runs = []
    for piece in text.split():
        match = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", piece)
        if match is None:
            raise InvalidInput("profile_bs_schedule_rle", piece, f"must be such as 32x28 ({row.location})")
        runs.append((int(match[1]), int(match[2])))
    batch_size = row.integer("batch_size", 1)
    if runs[0][0] != batch_size:
        raise InvalidInput("profile_bs_schedule_rle", text, f"must start at batch size {batch_size} ({row.location})")
    if "num_epochs" in row.cells and sum(epochs for _, epochs in runs) != row.integer("num_epochs", 1):
        why = f"its epochs must add up to num_epochs, {row.cells['num_epochs']} ({row.location})"
        raise InvalidInput("profile_bs_schedule_rle", text, why)
    return tuple(runs)


def _job_type(row: Row) -> tuple[str, int]:
    text = row.text("job_type")
    match = _JOB_TYPE.fullmatch(text)
    if match is None:
        raise InvalidInput("job_type", text, f'must be such as "ResNet-18 (batch size 64)" ({row.location})')
    model = match["model"]
    batch_size = _UNSTATED_BATCH_SIZE.get(model, 0) if match["batch_size"] is None else int(match["batch_size"])
    if batch_size < 1:
        raise InvalidInput("job_type", text, f"names no batch size of at least 1 ({row.location})")
    return model, batch_size
