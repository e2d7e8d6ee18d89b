"""`equipoise bench shockwave`: run the paper's experiments, print their tables, and write their plots as a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OK
from ..files import check_target, write_text
from ..json_text import json_rows
from ..options import Json, deferred
from ..progress import CountProgress
from .rows import print_rows

if TYPE_CHECKING:
    from ...validation.experiments.shockwave.run import Outcome


@deferred
def bench_shockwave(
    figure: Annotated[
        str | None, typer.Option(metavar="NAME", help="A figure from the list, or all; without it, the list.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Jobs of a generated workload.")] = 120,
    gpus: Annotated[int | None, typer.Option(help="GPUs [as many per job as in the paper].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first workload.")] = 0,
    repeats: Annotated[int, typer.Option(help="Workloads to average over.")] = 3,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Data sets, for Figure 17: a folder with pollux/.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write tables and plots as a page.")] = None,
    as_json: Json = False,
) -> int:
    """Run the experiments of the Shockwave paper, and report which results agree with the paper's."""
    from ...validation.experiments.shockwave.catalogue import FIGURES, find_figure, outcome_page
    from ...validation.experiments.shockwave.run import Setup

    if figure is None:
        return _print_list(as_json)
    check_target("--html", html)
    names = list(FIGURES) if figure == "all" else [find_figure(figure).name]
    outcomes: dict[str, Outcome] = {}
    for name in names:
        with CountProgress(f"figure {name}" if name.isdigit() else name) as counted:
            setup = Setup(jobs=jobs, gpus=gpus, seed=seed, repeats=repeats, data=data, on_step=counted)
            outcomes[name] = FIGURES[name].run(setup)
        if not as_json:
            _print_outcome(name, outcomes[name])
    if as_json:
        sys.stdout.write(json.dumps({name: _fields(outcome) for name, outcome in outcomes.items()}, indent=1) + "\n")
    if html is not None:
        write_text(html, outcome_page(outcomes, setup))
    return OK


def _print_list(as_json: bool) -> int:
    from ...validation.experiments.shockwave.catalogue import FIGURES

    return print_rows([{"figure": name, "of": entry.title} for name, entry in FIGURES.items()], as_json=as_json)


def _print_outcome(name: str, outcome: Outcome) -> None:
    from ...validation.experiments.shockwave.catalogue import FIGURES

    write = sys.stdout.write
    write(f"{name}: {FIGURES[name].title}\n")
    if outcome.skipped:
        write(f"skipped: {outcome.skipped}\n\n")
        return
    print_rows(outcome.rows, as_json=False)
    for claim in outcome.claims:
        write(f"{'yes' if claim.holds else 'NO '}  {claim.says}\n     {claim.numbers}\n")
    write("\n")
    sys.stdout.flush()


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "skipped": outcome.skipped or None,
        "in_shape": outcome.in_shape,
        "claims": [{"says": each.says, "holds": bool(each.holds), "numbers": each.numbers} for each in outcome.claims],
        "rows": json_rows(outcome.rows),
    }
