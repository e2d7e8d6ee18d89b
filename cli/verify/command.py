"""`equipoise verify`: prove the theorems, test the properties on random problems, print a table, write a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import print_status, print_text
from ..errors import FAILED, NO_BACKEND, OK, CommandError
from ..files import check_target, write_text
from ..json_text import json_text
from ..options import Json, deferred
from ..progress import CountProgress
from .summary import print_table

if TYPE_CHECKING:
    from ...validation.statements.verify import Verdict

PAGE = Path("verify.html")


@deferred
def verify_command(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[theorems|market|stochastic|window|gpu-sharing]...", help="What to verify; everything by default."
        ),
    ] = None,
    examples: Annotated[int, typer.Option(help="Random problems of each kind.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the problems.")] = 0,
    interference: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Table of measured pairs for gpu-sharing: columns gpu, xi_a, xi_b (CSV)."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page to write [verify.html; none with --json].")
    ] = None,
    as_json: Json = False,
) -> int:
    """Prove what can be proved, test the rest on random problems, and write a page; exit code 1 if anything fails.

    An unknown subject, a target that cannot be written and a missing package are a CommandError.
    """
    from ...validation.statements.verify import SUBJECTS, verify
    from ...validation.theorems.symbols import TheoryMissing

    chosen = subjects or []
    for subject in chosen:
        if subject not in SUBJECTS:
            raise CommandError(f"nothing to verify is called {subject!r}", f"there are {', '.join(SUBJECTS)}.")
    page = PAGE if html is None and not as_json else html
    check_target("--html", page)
    if interference is not None and not interference.is_file():
        raise CommandError(f"--interference {interference}: no such file", "give the path of a CSV file.")
    try:
        with CountProgress("proofs and problems") as counted:
            verdicts = verify(chosen, examples=examples, seed=seed, interference=interference, on_progress=counted)
    except TheoryMissing as missing:
        raise CommandError(
            str(missing), "theorems need sympy; market, stochastic and window need hypothesis.", code=NO_BACKEND
        ) from None
    if page is not None:
        from .page import render

        command = " ".join(["equipoise verify", *chosen, f"--examples {examples} --seed {seed}"])
        write_text(page, render(verdicts, command))
    if as_json:
        print_text(_document(verdicts, chosen, examples, seed))
    else:
        print_table(verdicts)
    if page is not None:
        print_status(f"wrote the page to {page}")
    return FAILED if any(verdict.fails for verdict in verdicts) else OK


def _document(verdicts: Sequence[Verdict], subjects: Sequence[str], examples: int, seed: int) -> str:
    document = {
        "format": "equipoise.verify/1",
        "subjects": list(subjects) or list(dict.fromkeys(verdict.subject for verdict in verdicts)),
        "examples": examples,
        "seed": seed,
        "fails": sum(verdict.fails for verdict in verdicts),
        "verdicts": [asdict(verdict) for verdict in verdicts],
    }
    return json_text(document)
