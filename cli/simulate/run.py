"""Run one policy, measure its time, and make a JSON document of the finished run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..json_text import json_option, json_value
from .config import SimulationConfig
from .policy_spec import PolicySpec

if TYPE_CHECKING:
    from ...simulation import SimulationResult
    from ...simulation.results.interrupt import OnStep


JOB_FIELDS = ("job_id", "start_s", "end_s", "jct_s", "ftf")


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """The run of one policy that came to its end, with its seconds on the clock and of the processor."""

    spec: PolicySpec
    result: SimulationResult
    wall_s: float
    cpu_s: float


def run_policy(config: SimulationConfig, spec: PolicySpec, on_step: OnStep | None = None) -> FinishedRun:
    """Run one policy; EquipoiseError if it fails, or names column and line of a trace that cannot run."""
    from ...simulation import simulate

    start, cpu = time.perf_counter(), time.process_time()
    result = simulate(
        config.trace,
        spec.make(config.policy_defaults),
        engine=config.engine_name,
        cluster=config.own.cluster(config.gpus),
        speeds=config.speeds,
        rules=config.rules,
        on_step=on_step,
    )
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    return FinishedRun(spec=spec, result=result, wall_s=wall_s, cpu_s=cpu_s)


def document(config: SimulationConfig, run: FinishedRun, *, per_job: bool = False) -> dict[str, Any]:
    """Return one object: the configuration, every metric of the result, and the jobs if asked for."""
    from ... import __version__

    fields: dict[str, Any] = {
        "format": "equipoise.simulation/1",
        "version": __version__,
        "policy": run.spec.name,
        "options": {name: json_option(value) for name, value in run.spec.options.items()},
        **config.metadata(),
        **{key: json_value(value) for key, value in run.result.metrics.items()},
        "wall_s": round(run.wall_s, 6),
        "cpu_s": round(run.cpu_s, 6),
    }
    if config.split_gpus is not None:
        fields["split_gpus"] = config.split_gpus
        fields["by_gpus"] = {
            name: {key: json_value(value) for key, value in metrics.items()}
            for name, metrics in by_gpus(run.result, config.split_gpus).items()
        }
    if per_job:
        fields["jobs"] = job_rows(run.result, config.engine.job_fields)
    return fields


def by_gpus(result: SimulationResult, most: int) -> dict[str, Mapping[str, float]]:
    """Return the metrics of the jobs of more GPUs ("more"), and of at most so many ("at_most"); empty without any."""
    wide = result.trace.gang_gpus > most
    return {name: result.of(mask) if mask.any() else {} for name, mask in (("more", wide), ("at_most", ~wide))}


def job_rows(result: SimulationResult, more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return id, start, end, JCT, FTF and more columns of every job, in the order of the trace."""
    names = (*JOB_FIELDS, *more)
    columns = [[json_value(value) for value in result.jobs[name].tolist()] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
