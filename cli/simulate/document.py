"""A simulation's result as a document for programs, as files in a folder, and as a summary for people."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FAILED, CommandError
from ..files import write_text
from ..json_text import json_text
from .policy_spec import PolicySpec
from .setting import Setting

if TYPE_CHECKING:
    import pandas as pd

    from ...simulation import SimulationInterrupted, SimulationResult
    from ...simulation.results.interrupt import OnStep

JOB_FIELDS = ("job_id", "start_s", "end_s", "jct_s", "ftf")


@dataclass(frozen=True)
class Finished:
    """One policy's run that came to its end.

    Attributes
    ----------
    spec : PolicySpec
    result : SimulationResult
    wall_s, cpu_s : float
        Seconds of the whole run, on the clock and of the processor.
    """

    spec: PolicySpec
    result: SimulationResult
    wall_s: float
    cpu_s: float


def run_policy(setting: Setting, spec: PolicySpec, on_step: OnStep | None = None) -> Finished:
    """Run one policy.

    Raises
    ------
    EquipoiseError
        If the trace cannot run on the cluster, naming column and line, or the policy fails.
    """
    from ...simulation import Cluster, simulate

    start, cpu = time.perf_counter(), time.process_time()
    result = simulate(
        setting.trace,
        spec.make(setting.seed),
        engine=setting.engine_name,
        cluster=Cluster.of(setting.gpus),
        speeds=setting.profiles,
        rules=setting.rules,
        on_step=on_step,
    )
    return Finished(spec, result, time.perf_counter() - start, time.process_time() - cpu)


def document(setting: Setting, finished: Finished, *, per_job: bool = False) -> dict[str, Any]:
    """Return one object: what ran, every metric of the result, and the jobs if asked for."""
    from ... import __version__

    facts = setting.facts()
    fields: dict[str, Any] = {
        "format": "equipoise.simulation/1",
        "version": __version__,
        "policy": finished.spec.name,
        "options": dict(finished.spec.options),
        **facts,
        **{key: plain(value) for key, value in finished.result.metrics.items()},
        "wall_s": round(finished.wall_s, 6),
        "cpu_s": round(finished.cpu_s, 6),
    }
    if per_job:
        fields["jobs"] = job_rows(finished.result)
    return fields


def job_rows(result: SimulationResult) -> list[dict[str, Any]]:
    """Return id, start, end, JCT and FTF of every job, in the order of the trace."""
    columns = [[plain(value) for value in result.jobs[name].tolist()] for name in JOB_FIELDS]
    return [dict(zip(JOB_FIELDS, row, strict=True)) for row in zip(*columns, strict=True)]


def plain(value: Any) -> Any:
    """Return a number as JSON holds it; None where it is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_folder(folder: Path | None) -> None:
    """Make the folder for results, before any work is done for it.

    Raises
    ------
    CommandError
        If it cannot be made or written.
    """
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".equipoise.tmp"
        probe.touch()
        probe.unlink()
    except FileExistsError:
        raise CommandError(f"--out {folder}: is a file, not a folder", "name a folder.") from None
    except OSError as error:
        raise CommandError(
            f"--out {folder}: cannot be written ({error.strerror})", "choose another folder.", code=FAILED
        ) from None


def write_folder(folder: Path, setting: Setting, finished: Finished, page: str | None) -> None:
    """Write the tables, the page and last the summary, so that a folder with a summary is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = finished.result.tables()
    for name, table in tables.items():
        write_text(folder / f"{name}.csv", _csv(table))
    if page is not None:
        write_text(folder / "page.html", page)
    write_text(folder / "summary.json", json_text(document(setting, finished)))
    for name in tables:  # of an earlier run here that was interrupted
        (folder / f"{name}.partial.csv").unlink(missing_ok=True)


def write_partial(folder: Path, interrupt: SimulationInterrupted) -> list[str]:
    """Write what an interrupted run had found, and return the files' names.

    They are names of their own: complete results there stay as they are.
    """
    for name, table in interrupt.tables.items():
        write_text(folder / f"{name}.partial.csv", _csv(table))
    return [f"{name}.partial.csv" for name in interrupt.tables]


def _csv(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, lineterminator="\n")


def span(seconds: float) -> str:
    """Return a duration in words that are short: 45 s, 12.5 min, 3.2 h."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def solves_line(metrics: Mapping[str, Any], solves: pd.DataFrame) -> str:
    """Return how the decisions were made: how many, how long, and how well they are proved."""
    calls, spent = len(solves), f"{float(metrics['solve_s']):.2f} s"
    reasons = solves["reason"].tolist()
    if set(reasons) <= {"rule"}:
        return f"{calls:,} decisions by rule in {spent}"
    gaps = [gap for gap in solves["gap"].tolist() if gap is not None and math.isfinite(gap)]
    proved = f", worst gap {max(gaps):.2g}" if gaps else ""
    counts = ", ".join(f"{reasons.count(reason):,} {reason}" for reason in dict.fromkeys(reasons))
    return f"{calls:,} decisions in {spent} ({counts}{proved})"
