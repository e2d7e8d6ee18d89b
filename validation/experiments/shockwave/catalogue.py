"""The experiments of the Shockwave paper, each with a table, plots, and whether it comes out in shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

from ....formulations.errors import InvalidInput
from ....formulations.plotting import html
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
    return html.render(
        "validation/experiments/shockwave/page.html",
        title="Shockwave's experiments",
        lead=f"{setup.jobs} jobs, {setup.total_gpus} GPUs, seed {setup.seed}, {setup.repeats} workload(s), "
        "where an experiment does not say otherwise.",
        outcomes=[
            {
                "heading": _heading(name),
                "skipped": outcome.skipped,
                "claims": outcome.claims,
                "plots": [html.picture(plot.svg()) for plot in outcome.plots],
                "table": _table(outcome),
            }
            for name, outcome in outcomes.items()
        ],
    )


def _heading(name: str) -> str:
    number = f"Figure {name}: " if name.isdigit() else f"Sweep of {name}: " if name in {"f", "k", "lambda", "T"} else ""
    return number + FIGURES[name].title


def _table(outcome: Outcome) -> dict[str, Any]:
    columns = dict.fromkeys(key for row in outcome.rows for key in row)
    return html.table({str(name): [row.get(name) for row in outcome.rows] for name in columns})
