"""The experiments of the Shockwave paper, each with a table, plots, and whether it comes out in shape."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ....formulations.errors import InvalidInput
from .run import Outcome, Setup


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One experiment.

    Attributes
    ----------
    name : str
        By which it is asked for.
    title : str
        Of what.
    module, maker : str
        The function that runs it, and its module of this folder, loaded when it runs.
    """

    name: str
    title: str
    module: str
    maker: str

    def run(self, setup: Setup) -> Outcome:
        """Run it."""
        outcome: Outcome = getattr(import_module(f".{self.module}", __package__), self.maker)(setup)
        return outcome


_LISTED = (
    ("table1", "Table 1, Figures 1 and 15: three jobs under Themis's filter", "themis", "table_1"),
    ("2", "jobs that change are re-prioritised late", "foresight", "figure_2"),
    ("4", "agnostic, reactive and proactive planning", "planner", "figure_4"),
    ("5", "the predictor's errors over the course of a job", "foresight", "figure_5"),
    ("7", "all policies relative to Shockwave", "policies", "figure_7"),
    ("8", "schedules, completion times and fairness of fewer jobs", "policies", "figure_8"),
    ("9", "scale", "policies", "figure_9"),
    ("10", "mix of static and dynamic jobs", "policies", "figure_10"),
    ("12", "solver overhead", "planner", "figure_12"),
    ("13", "noise on predicted regimes", "noise", "figure_13"),
    ("16", "contention", "policies", "figure_16"),
    ("17", "Pollux's traces", "policies", "figure_17"),
    ("f", "fraction that Themis's filter keeps", "themis", "sweep_fraction"),
    ("k", "power of unfairness in the objective", "planner", "sweep_power"),
    ("lambda", "weight of the makespan in the objective", "planner", "sweep_weight"),
    ("T", "rounds of a window", "planner", "sweep_window"),
)

#: Every experiment, by name.
FIGURES: Mapping[str, Figure] = MappingProxyType(
    {name: Figure(name=name, title=title, module=module, maker=maker) for name, title, module, maker in _LISTED}
)


def find_figure(name: str) -> Figure:
    """Return an experiment by its name; "1" and "15" show Table 1's. InvalidInput if there is none."""
    wanted = {"1": "table1", "15": "table1"}.get(name, name)
    if wanted not in FIGURES:
        raise InvalidInput("figure", name, f"must be one of {', '.join(FIGURES)}, or all")
    return FIGURES[wanted]


def outcome_page(outcomes: Mapping[str, Outcome], setup: Setup) -> str:
    """Return a page with every outcome's claims, plots and table."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Shockwave's experiments</title><style>"
        "body{font:14px system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem;color:#1b2330;"
        "background:#fff}table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .6rem;text-align:right;"
        "border-bottom:1px solid #ccd3db}div.wide{overflow-x:auto}.yes{color:#00704f}.no{color:#b03a00}"
        "svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){body{color:#e6ebf2;background:#171e27}"
        ".yes{color:#3ecf9d}.no{color:#ff8a50}}</style>",
        f"<h1>Shockwave's experiments</h1><p>{setup.jobs} jobs, {setup.total_gpus} GPUs, seed {setup.seed}, "
        f"{setup.repeats} workload(s), where an experiment does not say otherwise.</p>",
    ]
    for name, outcome in outcomes.items():
        parts.append(f"<h2>{_heading(name)}</h2>")
        if outcome.skipped:
            parts.append(f"<p>Skipped: {html.escape(outcome.skipped)}</p>")
        parts += [
            f"<p class='{'yes' if claim.holds else 'no'}'><b>{'yes' if claim.holds else 'no'}</b>: "
            f"{html.escape(claim.says)} ({html.escape(claim.numbers)})</p>"
            for claim in outcome.claims
        ]
        parts += [plot.svg() for plot in outcome.plots]
        parts.append(_table(outcome))
    return "\n".join([*parts, "</html>", ""])


def _heading(name: str) -> str:
    number = f"Figure {name}: " if name.isdigit() else f"Sweep of {name}: " if name in {"f", "k", "lambda", "T"} else ""
    return html.escape(number + FIGURES[name].title)


def _table(outcome: Outcome) -> str:
    columns = list(dict.fromkeys(key for row in outcome.rows for key in row))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
        for row in outcome.rows
    )
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>" if columns else ""


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
