"""The page of a paper's experiments: claims, plots and table of each outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...formulations.plotting import html
from .experiment import ExperimentOutcome, ExperimentSettings, PaperExperiments


def outcome_page(
    catalogue: PaperExperiments, outcomes: Mapping[str, ExperimentOutcome], settings: ExperimentSettings
) -> str:
    """Return a page with the claims, plots and table of every outcome."""
    return html.render(
        "validation/experiments/page.html",
        title=f"{catalogue.paper}'s experiments",
        lead=f"{settings.jobs} jobs, {catalogue.cluster_gpus(settings)} GPUs, seed {settings.seed}, "
        f"{settings.repeats} workload(s), where an experiment does not say otherwise.",
        outcomes=[
            {
                "heading": catalogue.experiments[name].heading,
                "skipped": outcome.skipped,
                "claims": outcome.claims,
                "plots": [html.picture(plot.svg()) for plot in outcome.plots],
                "table": _table(outcome),
            }
            for name, outcome in outcomes.items()
        ],
    )


def _table(outcome: ExperimentOutcome) -> dict[str, Any]:
    columns = dict.fromkeys(key for row in outcome.rows for key in row)
    return html.table({str(name): [row.get(name) for row in outcome.rows] for name in columns})
