"""The page of a paper's experiments: claims, plots and table of each outcome."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from .experiment import ExperimentOutcome, ExperimentSettings, PaperExperiments


def outcome_page(
    catalogue: PaperExperiments, outcomes: Mapping[str, ExperimentOutcome], settings: ExperimentSettings
) -> str:
    """Return a page with the claims, plots and table of every outcome."""
    title = html.escape(f"{catalogue.paper}'s experiments", quote=False)
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>"
        "body{font:14px system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem;color:#1b2330;"
        "background:#fff}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .6rem;text-align:right;"
        "border-bottom:1px solid #ccd3db}div.wide{overflow-x:auto}.yes{color:#00704f}.no{color:#b03a00}"
        "svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){body{color:#e6ebf2;background:#171e27}"
        ".yes{color:#3ecf9d}.no{color:#ff8a50}}</style>",
        f"<h1>{title}</h1><p>{settings.jobs} jobs, {catalogue.cluster_gpus(settings)} GPUs, seed {settings.seed}, "
        f"{settings.repeats} workload(s), where an experiment does not say otherwise.</p>",
    ]
    for name, outcome in outcomes.items():
        parts.append(f"<h2>{html.escape(catalogue.experiments[name].heading)}</h2>")
        if outcome.skipped:
            parts.append(f"<p>Skipped: {html.escape(outcome.skipped)}</p>")
        parts += [
            f"<p class='{'yes' if claim.holds else 'no'}'><b>{'yes' if claim.holds else 'no'}</b>: "
            f"{html.escape(claim.statement)} ({html.escape(claim.numbers)})</p>"
            for claim in outcome.claims
        ]
        parts += [plot.svg() for plot in outcome.plots]
        parts.append(_table(outcome))
    return "\n".join([*parts, "</html>", ""])


def _table(outcome: ExperimentOutcome) -> str:
    columns = list(dict.fromkeys(key for row in outcome.rows for key in row))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
        for row in outcome.rows
    )
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>" if columns else ""


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
