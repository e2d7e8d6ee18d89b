"""Readable summary of a verification: a table for each subject, and one sentence over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..console import console, new_table, printable

if TYPE_CHECKING:
    from ...validation.statements.verify import Verdict

LONGEST_WITNESS = 160
#: Headings of the subjects.
HEADINGS = {
    "theorems": "Theorems, proved step by step",
    "market": "Markets: what every equilibrium promises",
    "stochastic": "Markets of random jobs: joint and decoupled programs",
    "window": "The window program: no equilibrium, so market properties are only reported",
    "gpu-sharing": "Jobs that share GPUs: when a waiting job starts beside running ones",
}
#: How the summary counts each verdict.
VERDICT_TEXTS = {
    "fails": "FAIL",
    "proved": "proved",
    "held": "held on every example",
    "reported": "not promised and only reported",
    "not checked": "not checked",
    "skipped": "skipped for want of data",
}


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return one sentence that counts the verdicts."""
    counts = {name: sum(verdict.verdict == name for verdict in verdicts) for name in VERDICT_TEXTS}
    parts = [f"{count} {VERDICT_TEXTS[name]}" for name, count in counts.items() if count]
    return f"{len(verdicts)} statements: {', '.join(parts)}."


def print_table(verdicts: Sequence[Verdict]) -> None:
    """Print a table for each subject, the problems on which statements fail, and the sentence of `summary`."""
    from rich.text import Text

    out = console()
    for subject in dict.fromkeys(verdict.subject for verdict in verdicts):
        out.print(Text(HEADINGS[subject], style="bold"))
        table = new_table()
        table.add_column("statement", ratio=5)
        table.add_column("source", ratio=3)
        table.add_column("verdict", ratio=2, min_width=12)
        rows = [verdict for verdict in verdicts if verdict.subject == subject]
        witnessed = any(verdict.witness for verdict in rows)
        if witnessed:
            table.add_column("witness", ratio=4)
        for verdict in rows:
            style = {"fails": "bold red", "proved": "green", "held": "green"}.get(verdict.verdict, "yellow")
            cells = [Text(verdict.statement), Text(verdict.source), Text(verdict.text, style=style)]
            table.add_row(*cells, *([Text(_short(verdict.witness))] if witnessed else []))
        out.print(table)
        out.print()
    for verdict in verdicts:
        if verdict.fails and verdict.problem:
            out.print(Text(f"{verdict.statement}: fails on"), soft_wrap=True)
            out.print(Text(f"    {printable(verdict.problem)}"), soft_wrap=True)
    out.print(Text(summary(verdicts), style="bold"), soft_wrap=True)


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST_WITNESS else text[: LONGEST_WITNESS - 3] + "..."
