"""A finished run as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..json_text import json_value
from .config import SimulationConfig
from .run import FinishedRun

if TYPE_CHECKING:
    from ...simulation import SimulationResult

JOB_FIELDS = ("job_id", "start_s", "end_s", "jct_s", "ftf")


def document(config: SimulationConfig, run: FinishedRun, *, per_job: bool = False) -> dict[str, Any]:
    """Return one object: the configuration, every metric of the result, and the jobs if asked for."""
    from ... import __version__

    fields: dict[str, Any] = {
        "format": "equipoise.simulation/1",
        "version": __version__,
        "policy": run.spec.name,
        "options": dict(run.spec.options),
        **config.metadata(),
        **{key: json_value(value) for key, value in run.result.metrics.items()},
        "wall_s": round(run.wall_s, 6),
        "cpu_s": round(run.cpu_s, 6),
    }
    if per_job:
        fields["jobs"] = job_rows(run.result)
    return fields


def job_rows(result: SimulationResult) -> list[dict[str, Any]]:
    """Return id, start, end, JCT and FTF of every job, in the order of the trace."""
    columns = [[json_value(value) for value in result.jobs[name].tolist()] for name in JOB_FIELDS]
    return [dict(zip(JOB_FIELDS, row, strict=True)) for row in zip(*columns, strict=True)]
