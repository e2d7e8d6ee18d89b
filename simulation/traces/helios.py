"""Reader of SenseTime's Helios traces: a CSV of the jobs of a Slurm cluster, with times as dates."""

from __future__ import annotations

import re
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...formulations.errors import InvalidInput
from ..delimited_files import Row, header_names, read_rows, unique_id
from .source import TraceSource

HELIOS_COLUMNS = (
    "job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state",
    "submit_time", "start_time", "end_time", "duration", "queue",
)  # fmt: skip
HELIOS_STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "SUSPENDED")
# Columns of the file for the fields of a trace, where the names differ.
_NAMES = {
    "model": "vc",
    "gang_gpus": "gpu_num",
    "arrival_s": "submit_time",
    "duration_s": "duration",
    "total_steps": "duration",
}
# Columns that no other format has; two are enough, since one may be missing.
_OWN = frozenset({"vc", "gpu_num", "cpu_num", "node_num"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:?\d\d)?")
# Durations and queueing times are differences of dates in whole seconds.
_ROUNDING_S = 1.0


class _Job(NamedTuple):
    job_id: str | int
    vc: str
    gpus: int
    submitted: datetime
    duration_s: float
    line: int


def is_helios_trace(path: str | Path) -> bool:
    """Return whether the file's first line that is not blank is the header of a Helios trace."""
    return len(_OWN & header_names(Path(path))) >= 2


def helios_columns(path: str | Path, *, warn: bool = True) -> dict[str, Any]:
    """Return the fields of `Trace` from a Helios trace, and warn of the jobs that are left out; see `read_helios`."""
    path = Path(path)
    first: dict[str | int, int] = {}
    jobs: list[_Job] = []
    without_gpus = without_time = 0
    zoned: bool | None = None
    for row in read_rows(path, HELIOS_COLUMNS):
        job = _job(row, first)
        zone = job.submitted.tzinfo is not None
        if zone != (zoned := zone if zoned is None else zoned):
            why = f"has {'a' if zone else 'no'} time zone, unlike the lines above ({row.location})"
            raise InvalidInput("submit_time", row.cells["submit_time"], why)
        if not job.gpus:
            without_gpus += 1
        elif not job.duration_s:
            without_time += 1
        else:
            jobs.append(job)
    if not jobs:
        raise InvalidInput("path", str(path), f"of the {len(first)} jobs of the file none ran on GPUs")
    if warn and (without_gpus or without_time):
        left = f"{without_gpus} job(s) without GPUs, and {without_time} with GPUs that never ran (duration 0)"
        warnings.warn(f"{path.name}: left out {left}", UserWarning, stacklevel=4)
    start = min(job.submitted for job in jobs)
    return {
        "source": TraceSource(path.name, [job.line for job in jobs], _NAMES),
        "job_id": [job.job_id for job in jobs],
        "model": [job.vc for job in jobs],
        "gang_gpus": np.array([job.gpus for job in jobs]),
        "arrival_s": np.array([(job.submitted - start).total_seconds() for job in jobs]),
        "duration_s": np.array([job.duration_s for job in jobs]),
    }


def _job(row: Row, first: dict[str | int, int]) -> _Job:
    """Return the job of a line, all of whose columns are checked."""
    row.text("user")
    for column in ("cpu_num", "node_num"):
        row.integer(column, 0)
    if row.text("state") not in HELIOS_STATES:
        raise InvalidInput("state", row.cells["state"], f"must be one of {', '.join(HELIOS_STATES)} ({row.location})")
    job = _Job(
        unique_id(row, "job_id", first),
        row.text("vc"),
        row.integer("gpu_num", 0),
        _date(row, "submit_time"),
        row.real("duration", minimum=0.0),
        row.line,
    )
    _check_times(row, job)
    return job


def _check_times(row: Row, job: _Job) -> None:
    """Raise InvalidInput unless start and end follow from submission, queueing time and duration."""
    queued_s = row.real("queue", minimum=0.0)
    if not job.duration_s and not row.cells["start_time"]:
        return  # cancelled before its start
    started, ended = _date(row, "start_time"), _date(row, "end_time")
    if {each.tzinfo is None for each in (started, ended)} != {job.submitted.tzinfo is None}:
        why = f"start_time and end_time must have a time zone, or none, as submit_time has ({row.location})"
        raise InvalidInput("start_time", row.cells["start_time"], why)
    # A suspended job runs for less than the time from start to end.
    spans = [("queue", queued_s, "start_time - submit_time", (started - job.submitted).total_seconds())]
    if row.cells["state"] != "SUSPENDED":
        spans.append(("duration", job.duration_s, "end_time - start_time", (ended - started).total_seconds()))
    for column, stated_s, difference, found_s in spans:
        if abs(stated_s - found_s) > _ROUNDING_S:
            raise InvalidInput(column, stated_s, f"must be {difference}, {found_s:g} s ({row.location})")


def _date(row: Row, column: str) -> datetime:
    text = row.text(column)
    try:
        if _DATE.fullmatch(text) is None:
            raise ValueError
        return datetime.fromisoformat(text)
    except ValueError:
        why = f"must be a date and time such as 2020-06-09 18:41:01 or 2020-06-09 18:41:01+08:00 ({row.location})"
        raise InvalidInput(column, text, why) from None
