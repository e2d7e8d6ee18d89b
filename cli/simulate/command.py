"""`equipoise simulate`: run one policy on a trace, print what came of it, and write it down."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OK
from ..files import print_text
from ..json_text import json_text
from ..progress import QUIET_S, Counted
from .document import (
    Finished,
    check_folder,
    document,
    job_rows,
    run_policy,
    solves_line,
    span,
    write_folder,
    write_partial,
)
from .policy_spec import PolicySpec, read_policies
from .setting import Setting, check_engine, read_setting, tell

if TYPE_CHECKING:
    from rich.console import Console


def simulate_command(
    trace: str,
    *,
    policy: str,
    engine: str | None,
    seed: int,
    out: Path | None,
    per_job: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Simulate, print the summary or the JSON, write the folder, and return the exit code.

    Parameters
    ----------
    trace : str
        A file, or "generated".
    policy : str
        A name, with options after a colon.
    engine : str or None
        None: the policy's.
    seed : int
    out : Path or None
        Folder for the results.
    per_job, as_json : bool
    **options
        The others of `read_setting`.

    Raises
    ------
    EquipoiseError
        For bad input, or a policy that fails.
    KeyboardInterrupt
        After writing what had come to its end, and saying so.
    """
    check_engine(engine)
    spec = read_one_policy(policy, seed, engine)
    setting = read_setting(trace, engine=str(spec.engine), seed=seed, **options)
    check_folder(out)
    with Counted(spec.label, QUIET_S) as counted:

        def on_step(number: int, time_s: float, completed: int, total: int) -> None:
            counted(completed, total)

        try:
            finished = run_policy(setting, spec, on_step)
        except KeyboardInterrupt as interrupt:
            tell_interrupted(interrupt, out)
            raise
    if out is not None:
        from .page import render

        write_folder(out, setting, finished, render(setting, finished))
    if as_json:
        print_text(json_text(document(setting, finished, per_job=per_job)))
    else:
        print_summary(setting, finished, per_job=per_job)
    if out is not None:
        names = ", ".join(f"{name}.csv" for name in finished.result.tables())
        tell(f"wrote {names}, page.html and summary.json to {out}")
    return OK


def tell_interrupted(interrupt: KeyboardInterrupt, out: Path | None) -> None:
    """Write the jobs that had ended before Ctrl-C and the steps so far, and say which and where."""
    from ...simulation import SimulationInterrupted

    if not isinstance(interrupt, SimulationInterrupted):
        return
    if out is None:
        tell(f"{interrupt}; nothing was written (no --out)")
        return
    tell(f"{interrupt}; wrote {', '.join(write_partial(out, interrupt))} to {out}")


def read_one_policy(text: str, seed: int, engine: str | None) -> PolicySpec:
    """Return the policy of `--policy`; several are for `compare`."""
    from ..errors import CommandError

    specs = read_policies([text], seed, engine)
    if len(specs) > 1:
        raise CommandError(f"--policy {text}: names {len(specs)} policies", "`equipoise compare` runs several.")
    return specs[0]


def print_summary(setting: Setting, finished: Finished, *, per_job: bool) -> None:
    """Print the headline figures, and the jobs if asked for, on standard output."""
    from rich.text import Text

    from ..plan.summary import console, usage_bars

    out = console()
    result = finished.result
    metrics, steps = result.metrics, f"{len(result.levels):,} {result.step_name}s"
    head = f"{finished.spec.label} on {setting.total_gpus:,} GPUs: {len(setting.trace):,} jobs, {steps}"
    out.print(Text(head, style="bold"), soft_wrap=True)
    out.print(_seconds("makespan", metrics["makespan_s"]), soft_wrap=True)
    out.print(_seconds("average JCT", metrics["avg_jct_s"]), soft_wrap=True)
    out.print(
        f"worst FTF     {metrics['worst_ftf']:.3f}, and {metrics['unfair_pct']:.1f}% of the jobs unfair (above 1.05)",
        soft_wrap=True,
    )
    from ...simulation.results.plots import gpu_shares

    shares = gpu_shares(finished.result, float(metrics["makespan_s"]), bins=40)[1]
    heights = [round(float(share) * 1000) for share in shares]
    bars = usage_bars(heights, 1000, unicode=out.encoding.lower().startswith("utf"))
    out.print(f"utilisation   {bars} {metrics['utilisation']:.1%}", soft_wrap=True)
    out.print(f"policy        {solves_line(metrics, finished.result.solves)}", soft_wrap=True)
    out.print(f"run           {finished.wall_s:.2f} s, seed {setting.seed}", soft_wrap=True)
    if per_job:
        out.print()
        _print_jobs(out, finished)
    sys.stdout.flush()


def _seconds(name: str, value: float) -> str:
    return f"{name:<14}{value:,.0f} s ({span(value)})"


def _print_jobs(out: Console, finished: Finished) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("job", "start s", "end s", "JCT s", "FTF"):
        table.add_column(name, justify="left" if name == "job" else "right")
    for row in job_rows(finished.result):
        name = str(row["job_id"])
        seconds = [f"{row[key]:,.0f}" if row[key] is not None else "-" for key in ("start_s", "end_s", "jct_s")]
        fairness = "-" if row["ftf"] is None else f"{row['ftf']:.3f}"
        table.add_row(Text(name if name.isprintable() else ascii(name)[1:-1]), *seconds, fairness)
    out.print(table)
