"""Readable summary of a plan: termination, bound and gap, the rounds of each job, the GPUs in use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from ...formulations.text import duration_text
from ..console import console, new_table, printable, usage_bars

if TYPE_CHECKING:
    from rich.table import Table

    from ...formulations.window.plan import WindowPlan
    from ...formulations.window.problem import ScheduleWindow
    from ...solvers.result import Result

MOST_JOBS = 40
WIDEST_STRIP = 60


def print_summary(window: ScheduleWindow, result: Result[WindowPlan]) -> None:
    """Print the readable summary of a result, with or without a plan, on standard output."""
    out = console()
    line = partial(out.print, soft_wrap=True)
    line(str(result.termination), style="bold")
    line(f"backend     {result.backend}, form {result.form}, {duration_text(result.wall_time)}")
    objective = "none" if result.objective is None else f"{result.objective:.9g}"
    line(f"objective   {objective}   bound {result.bound:.9g}   gap {result.gap:.3g}")
    if (residuals := result.residuals) is not None:
        bounds = f"bound {residuals.bound:.2g}   row {residuals.row:.2g}   integrality {residuals.integrality:.2g}"
        line(f"residuals   {bounds}")
    for note in result.notes:
        line(f"note        {note}")
    plan = result.plan
    if plan is None:
        return
    line(f"after it    makespan at least {plan.makespan_bound_s:,.0f} s   {plan.restarts} restarts")
    unicode = out.encoding.lower().startswith("utf")
    in_use = plan.gpus_in_use
    share = float(in_use.mean()) / window.gpus
    bars = usage_bars(in_use.tolist(), window.gpus, unicode=unicode)
    line(f"GPUs in use {bars} {share:.1%} of {window.gpus:,} over {window.rounds} rounds")
    rows = _rows_shown(plan)
    out.print(_job_table(plan, rows, unicode=unicode))
    hidden = len(window.ids) - len(rows)
    if hidden > 0:
        run = int((plan.rounds_granted > 0).sum())
        line(f"... {hidden:,} of {len(window.ids):,} jobs not shown ({run:,} run): see --json, --out or --html.")


def _rows_shown(plan: WindowPlan) -> list[int]:
    """Return the rows to print: all jobs where they are few, else the first that run, then the first that wait."""
    granted = plan.rounds_granted
    return sorted(sorted(range(len(granted)), key=lambda row: granted[row] == 0)[:MOST_JOBS])


def _job_table(plan: WindowPlan, rows: list[int], *, unicode: bool) -> Table:
    window = plan.window
    strips = window.rounds <= WIDEST_STRIP
    table = new_table()
    table.add_column("job", no_wrap=True, max_width=24)
    for name in ("GPUs", "rounds"):
        table.add_column(name, justify="right")
    table.add_column("regime in each round" if strips else "rounds held", no_wrap=strips)
    for name in ("done before", "after", "left"):
        table.add_column(name, justify="right")
    for row in rows:
        held = plan.grants[row].nonzero()[0].tolist()
        when = regime_strip(plan.regime_of[row].tolist(), unicode=unicode) if strips else ranges(held)
        table.add_row(
            Text(printable(str(window.ids[row]))),
            f"{window.gang_gpus[row]:,}",
            f"{len(held)}",
            Text(when),
            f"{window.finished_epochs[row] / window.total_epochs[row]:.1%}",
            f"{plan.utilities[row]:.1%}",
            f"{plan.remaining_s[row]:,.0f} s",
        )
    return table


def regime_strip(regime_of: list[int], *, unicode: bool) -> str:
    """Return one character a round: the regime's place (0-9, then letters, then +), or a dot while the job waits."""
    places = "0123456789abcdefghijklmnopqrstuvwxyz"
    waits = "·" if unicode else "."
    return "".join(waits if place < 0 else places[place] if place < len(places) else "+" for place in regime_of)


def ranges(rounds: list[int]) -> str:
    """Return ascending rounds as ranges: [0, 1, 2, 5] is "0-2 5"."""
    spans: list[list[int]] = []
    for each in rounds:
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)
