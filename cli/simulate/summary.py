"""Readable summary of a run: makespan, completion times, fairness, utilisation, decisions."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formulations.text import duration_text
from ...simulation.engines import HEADLINES
from ..console import console, new_table, printable, usage_bars
from .config import SimulationConfig
from .run import FinishedRun, by_gpus, job_rows

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


def print_summary(config: SimulationConfig, run: FinishedRun, *, per_job: bool) -> None:
    """Print the headline figures, and the jobs if asked for, on standard output."""
    from rich.text import Text

    from ...simulation.results.plots import gpu_shares

    out = console()
    result = run.result
    metrics, steps = result.metrics, f"{len(result.levels):,} {result.step_name}s"
    head = f"{run.spec.label} on {config.total_gpus:,} GPUs: {len(config.trace):,} jobs, {steps}"
    out.print(Text(head, style="bold"), soft_wrap=True)
    shares = gpu_shares(result, float(metrics["makespan_s"]), bins=40)[1]
    heights = [round(float(share) * 1000) for share in shares]
    bars = usage_bars(heights, 1000, unicode=out.encoding.lower().startswith("utf"))
    lines = {
        "makespan": _seconds(metrics["makespan_s"]),
        "average JCT": _seconds(metrics["avg_jct_s"]),
        "worst FTF": f"{metrics['worst_ftf']:.3f}, and {metrics['unfair_pct']:.1f}% of the jobs unfair (above 1.05)",
        "utilisation": f"{bars} {metrics['utilisation']:.1%}",
        "policy": solves_text(metrics, result.solves),
        "run": f"{run.wall_s:.2f} s, seed {config.seed}",
    }
    own = [headline for headline in config.engine.headlines if headline not in HEADLINES]
    shown = [each for each in own if each.metric in metrics and (each.zeros or metrics[each.metric])]
    lines |= {each.title: each.form.format(metrics[each.metric]) for each in shown}
    if config.split_gpus is not None:
        titles = {"more": f"> {config.split_gpus} GPUs", "at_most": f"<= {config.split_gpus} GPUs"}
        for name, some in by_gpus(result, config.split_gpus).items():
            lines[titles[name]] = _group(some)
    for name, text in lines.items():
        out.print(f"{name:<14}{text}", soft_wrap=True)
    if per_job:
        out.print()
        _print_jobs(out, run, config.engine.job_fields)
    sys.stdout.flush()


def _group(metrics: Mapping[str, float]) -> str:
    if not metrics:
        return "no jobs"
    times = f"average JCT {_seconds(metrics['avg_jct_s'])}, queueing {metrics['avg_queue_s']:,.0f} s"
    return f"{metrics['jobs']:,} jobs, {times}, worst FTF {metrics['worst_ftf']:.3f}"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s ({duration_text(value)})"


def _print_jobs(out: Console, run: FinishedRun, more: Sequence[str]) -> None:
    from rich.text import Text

    table = new_table()
    for name in ("job", "start s", "end s", "JCT s", "FTF", *map(_title, more)):
        table.add_column(name, justify="left" if name == "job" else "right")
    for row in job_rows(run.result, more):
        seconds = [f"{row[key]:,.0f}" if row[key] is not None else "-" for key in ("start_s", "end_s", "jct_s")]
        fairness = "-" if row["ftf"] is None else f"{row['ftf']:.3f}"
        own = [_number(row[name]) for name in more]
        table.add_row(Text(printable(str(row["job_id"]))), *seconds, fairness, *own)
    out.print(table)


def _title(column: str) -> str:
    """Return the heading of a column such as predicted_end_s or error_pct."""
    name, _, unit = column.rpartition("_")
    return f"{name.replace('_', ' ')} {'%' if unit == 'pct' else unit}" if unit in ("s", "pct") else column


def _number(value: float | None) -> str:
    """Return a number, in whole seconds if it is large; a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:,.3f}"


def solves_text(metrics: Mapping[str, Any], solves: pd.DataFrame) -> str:
    """Return how the decisions were made: their number, their time, and the worst gap that was proved."""
    calls, spent = len(solves), f"{float(metrics['solve_s']):.2f} s"
    reasons = solves["reason"].tolist()
    if not reasons:
        return "decisions by rule in compiled loops"
    if set(reasons) <= {"rule"}:
        return f"{calls:,} decisions by rule in {spent}"
    gaps = [gap for gap in solves["gap"].tolist() if gap is not None and math.isfinite(gap)]
    proved = f", worst gap {max(gaps):.2g}" if gaps else ""
    counts = ", ".join(f"{reasons.count(reason):,} {reason}" for reason in dict.fromkeys(reasons))
    return f"{calls:,} decisions in {spent} ({counts}{proved})"
