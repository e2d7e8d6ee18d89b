"""`equipoise bench shockwave`: run the paper's experiments, print their tables, and write their plots as a page."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OK

if TYPE_CHECKING:
    from ...validation.experiments.shockwave.run import Outcome


def bench_shockwave(
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
    """Run one experiment or all; without one, list them."""
    from ...validation.experiments.shockwave.catalogue import FIGURES, find_figure, outcome_page
    from ...validation.experiments.shockwave.run import Setup
    from ..files import check_target, write_text
    from ..progress import Counted

    if figure is None:
        return _listed(as_json)
    check_target("--html", out)
    names = list(FIGURES) if figure == "all" else [find_figure(figure).name]
    outcomes: dict[str, Outcome] = {}
    for name in names:
        with Counted(f"figure {name}" if name.isdigit() else name) as counted:
            setup = Setup(jobs=jobs, gpus=gpus, seed=seed, repeats=repeats, data=data, on_step=counted)
            outcomes[name] = FIGURES[name].run(setup)
        if not as_json:
            _print_outcome(name, outcomes[name])
    if as_json:
        sys.stdout.write(json.dumps({name: _plain(outcome) for name, outcome in outcomes.items()}, indent=1) + "\n")
    if out is not None:
        write_text(out, outcome_page(outcomes, setup))
    return OK


def _listed(as_json: bool) -> int:
    from ...validation.experiments.shockwave.catalogue import FIGURES
    from .command import print_rows

    return print_rows([{"figure": name, "of": entry.title} for name, entry in FIGURES.items()], as_json=as_json)


def _print_outcome(name: str, outcome: Outcome) -> None:
    from ...validation.experiments.shockwave.catalogue import FIGURES
    from .command import print_rows

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


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {
        "skipped": outcome.skipped or None,
        "in_shape": outcome.in_shape,
        "claims": [{"says": each.says, "holds": bool(each.holds), "numbers": each.numbers} for each in outcome.claims],
        "rows": [_row(row) for row in outcome.rows],
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
