"""`equipoise bench PAPER`: run the experiments of a paper, print their tables, and write their plots as a page."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OK

if TYPE_CHECKING:
    from ...validation.experiments.experiment import ExperimentOutcome, PaperExperiments


def bench_paper(
    paper: str,
    *,
    figure: str | None,
    jobs: int,
    gpus: int | None,
    seed: int,
    repeats: int,
    data: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run one experiment of a paper or all of them; list them if none is named."""
    from ...validation.experiments.experiment import ExperimentSettings
    from ...validation.experiments.page import outcome_page
    from ...validation.experiments.papers import EXPERIMENTS
    from ..files import check_target, write_text
    from ..progress import Counted

    catalogue = EXPERIMENTS[paper]
    if figure is None:
        return _listed(catalogue, as_json)
    check_target("--html", out)
    names = list(catalogue.experiments) if figure == "all" else [catalogue.find(figure).name]
    outcomes: dict[str, ExperimentOutcome] = {}
    for name in names:
        with Counted(f"figure {name}" if name.isdigit() else name) as counted:
            settings = ExperimentSettings(jobs=jobs, gpus=gpus, seed=seed, repeats=repeats, data=data, on_step=counted)
            outcomes[name] = catalogue.experiments[name].run(settings)
        if not as_json:
            _print_outcome(f"{name}: {catalogue.experiments[name].title}", outcomes[name])
    if as_json:
        sys.stdout.write(json.dumps({name: _plain(outcome) for name, outcome in outcomes.items()}, indent=1) + "\n")
    if out is not None:
        write_text(out, outcome_page(catalogue, outcomes, settings))
    return OK


def _listed(catalogue: PaperExperiments, as_json: bool) -> int:
    from .command import print_rows

    return print_rows(
        [{"figure": name, "of": entry.title} for name, entry in catalogue.experiments.items()], as_json=as_json
    )


def _print_outcome(title: str, outcome: ExperimentOutcome) -> None:
    from .command import print_rows

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


def _plain(outcome: ExperimentOutcome) -> dict[str, Any]:
    return {
        "skipped": outcome.skipped or None,
        "in_shape": outcome.in_shape,
        "claims": [
            {"says": each.statement, "holds": bool(each.holds), "numbers": each.numbers} for each in outcome.claims
        ],
        "rows": [_row(row) for row in outcome.rows],
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
