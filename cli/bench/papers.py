"""`equipoise bench PAPER`: run the experiments of a paper, print their tables, and write their plots as a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...validation.experiments.papers import EXPERIMENTS
from ..errors import OK, CommandError
from ..files import check_target, write_text
from ..json_text import json_rows
from ..options import Action, Json, deferred
from ..progress import CountProgress
from .rows import print_rows

if TYPE_CHECKING:
    from ...validation.experiments.experiment import ExperimentOutcome


def experiments_command(paper: str, title: str) -> Callable[..., Action]:
    """Return the command that runs the experiments of one paper."""

    def bench_paper(
        figure: Annotated[
            str | None, typer.Option(metavar="NAME", help="A figure from the list, or all; without it, the list.")
        ] = None,
        jobs: Annotated[int | None, typer.Option(help="Jobs of a generated workload [by paper].")] = None,
        gpus: Annotated[int | None, typer.Option(help="GPUs [as many per job as in the paper].")] = None,
        seed: Annotated[int, typer.Option(help="Seed of the first workload.")] = 0,
        repeats: Annotated[int | None, typer.Option(help="Workloads to average over [by paper].")] = None,
        data: Annotated[
            Path | None, typer.Option(metavar="FOLDER", help="Data: a folder with pollux/, gavel/, philly/ and pcs/.")
        ] = None,
        evaluations: Annotated[
            int | None, typer.Option(help="Configurations that each search scores (pcs, dally) [by paper].")
        ] = None,
        threads: Annotated[int | None, typer.Option(help="Workers (pcs, dally) [2].")] = None,
        racks: Annotated[int | None, typer.Option(help="Racks of 64 GPUs (dally) [all numbers of the paper].")] = None,
        html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write tables and plots as a page.")] = None,
        as_json: Json = False,
    ) -> int:
        from ...validation.experiments.experiment import ExperimentSettings, outcome_page

        catalogue = EXPERIMENTS[paper]
        if figure is None:
            listed = [{"figure": name, "of": entry.title} for name, entry in catalogue.experiments.items()]
            return print_rows(listed, as_json=as_json)
        for option, value, own, none in (
            ("--evaluations", evaluations, catalogue.evaluations, "have no searches"),
            ("--threads", threads, catalogue.threads, "run in one process"),
            ("--racks", racks, catalogue.racks, "count no racks"),
        ):
            if value is not None and not own:
                raise CommandError(f"{option} {value}: the experiments of {title} {none}", "leave it out.")
        check_target("--html", html)
        names = list(catalogue.experiments) if figure == "all" else [catalogue.find(figure).name]
        searched = catalogue.evaluations or ExperimentSettings.evaluations
        workers = catalogue.threads or ExperimentSettings.threads
        shared: dict[Any, Any] = {}
        outcomes: dict[str, ExperimentOutcome] = {}
        for name in names:
            with CountProgress(f"figure {name}" if name.isdigit() else name) as counted:
                settings = ExperimentSettings(
                    jobs=catalogue.jobs if jobs is None else jobs,
                    gpus=gpus,
                    seed=seed,
                    repeats=catalogue.repeats if repeats is None else repeats,
                    data=data,
                    evaluations=searched if evaluations is None else evaluations,
                    threads=workers if threads is None else threads,
                    racks=racks,
                    on_step=counted,
                    shared=shared,
                )
                started_s = perf_counter()
                outcomes[name] = catalogue.experiments[name].run(settings)
            if not as_json:
                seconds = perf_counter() - started_s
                _print_outcome(f"{name}: {catalogue.experiments[name].title} ({seconds:.0f} s)", outcomes[name])
        if as_json:
            document = {name: _fields(outcome) for name, outcome in outcomes.items()}
            sys.stdout.write(json.dumps(document, indent=1) + "\n")
        if html is not None:
            write_text(html, outcome_page(catalogue, outcomes, settings))
        return OK

    bench_paper.__doc__ = f"Run the experiments of the {title} paper, and report which results agree with the paper's."
    return deferred(bench_paper)


def _print_outcome(title: str, outcome: ExperimentOutcome) -> None:
    write = sys.stdout.write
    write(f"{title}\n")
    if outcome.skipped:
        write(f"skipped: {outcome.skipped}\n\n")
        return
    print_rows(outcome.rows, as_json=False)
    for claim in outcome.claims:
        write(f"{'yes' if claim.holds else 'NO '}  {claim.statement}\n     {claim.numbers}\n")
    write("\n")
    sys.stdout.flush()


def _fields(outcome: ExperimentOutcome) -> dict[str, Any]:
    return {
        "skipped": outcome.skipped or None,
        "in_shape": outcome.in_shape,
        "claims": [
            {"says": each.statement, "holds": bool(each.holds), "numbers": each.numbers} for each in outcome.claims
        ],
        "rows": json_rows(outcome.rows),
    }
