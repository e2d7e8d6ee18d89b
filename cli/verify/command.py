"""`equipoise verify`: prove the theory, try what it promises on random problems, print a table, write a page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FAILED, NO_BACKEND, OK, CommandError
from ..files import check_target, print_text, write_text
from ..json_text import json_text

if TYPE_CHECKING:
    from ...validation.statements.verify import Verdict

PAGE = Path("verify.html")
LONGEST_WITNESS = 160
#: What each subject is about, above its rows.
HEADINGS = {
    "theorems": "Theorems, proved step by step",
    "market": "Markets: what every equilibrium promises",
    "stochastic": "Markets of random jobs: joint and decoupled programs",
    "window": "The window program: no equilibrium, so market properties are only reported",
}


def verify_command(*, subjects: Sequence[str], examples: int, seed: int, html: Path | None, as_json: bool) -> int:
    """Verify, print the table or the JSON, write the page, and return the exit code: 1 if anything fails."""
    from ...validation.statements.verify import SUBJECTS, verify
    from ...validation.theorems.proof import TheoryMissing
    from ..progress import Counted

    for subject in subjects:
        if subject not in SUBJECTS:
            raise CommandError(f"nothing to verify is called {subject!r}", f"there are {', '.join(SUBJECTS)}.")
    page = PAGE if html is None and not as_json else html
    check_target("--html", page)
    try:
        with Counted("proofs and problems") as counted:
            verdicts = verify(subjects, examples=examples, seed=seed, on_progress=counted)
    except TheoryMissing as missing:
        raise CommandError(
            str(missing), "theorems need sympy; market, stochastic and window need hypothesis.", code=NO_BACKEND
        ) from None
    failures = [verdict for verdict in verdicts if verdict.fails]
    if page is not None:
        from .page import render

        write_text(page, render(verdicts, _repeat(subjects, examples, seed)))
    if as_json:
        print_text(_document(verdicts, subjects, examples, seed))
    else:
        _print_table(verdicts)
    if page is not None:
        sys.stderr.write(f"equipoise: wrote the page to {page}\n")
    return FAILED if failures else OK


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return one sentence that says what holds and what does not."""
    counts = {name: sum(verdict.verdict == name for verdict in verdicts) for name in _WORDS}
    parts = [f"{count} {_WORDS[name]}" for name, count in counts.items() if count]
    return f"{len(verdicts)} statements: {', '.join(parts)}."


_WORDS = {
    "fails": "FAIL",
    "proved": "proved",
    "held": "held on every example",
    "reported": "not promised and only reported",
    "not checked": "not checked",
}


def _repeat(subjects: Sequence[str], examples: int, seed: int) -> str:
    return " ".join(["equipoise verify", *subjects, f"--examples {examples} --seed {seed}"])


def _document(verdicts: Sequence[Verdict], subjects: Sequence[str], examples: int, seed: int) -> str:
    rows = [
        {
            "subject": verdict.subject,
            "statement": verdict.statement,
            "source": verdict.source,
            "verdict": verdict.verdict,
            "examples": verdict.examples,
            "held": verdict.held,
            "witness": verdict.witness,
            "problem": verdict.problem,
            "steps": list(verdict.steps),
        }
        for verdict in verdicts
    ]
    document = {
        "format": "equipoise.verify/1",
        "subjects": list(subjects) or list(dict.fromkeys(verdict.subject for verdict in verdicts)),
        "examples": examples,
        "seed": seed,
        "fails": sum(verdict.fails for verdict in verdicts),
        "verdicts": rows,
    }
    return json_text(document)


def _print_table(verdicts: Sequence[Verdict]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from ..plan.summary import console

    out = console()
    for subject in dict.fromkeys(verdict.subject for verdict in verdicts):
        out.print(Text(HEADINGS[subject], style="bold"))
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
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
            out.print(Text(f"    {_plain(verdict.problem)}"), soft_wrap=True)
    out.print(Text(summary(verdicts), style="bold"), soft_wrap=True)


def _plain(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]


def _short(text: str) -> str:
    text = _plain(text)
    return text if len(text) <= LONGEST_WITNESS else text[: LONGEST_WITNESS - 3] + "..."
