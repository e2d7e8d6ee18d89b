"""The page of `equipoise simulate`: figures, schedule, utilisation, distributions and the jobs of one run."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from ...formulations.plotting.svg import escape
from ...formulations.text import duration_text
from ..profiles import BUILTIN
from .config import OWN_PROFILES, SimulationConfig
from .run import FinishedRun
from .summary import solves_text

if TYPE_CHECKING:
    from ...simulation import SimulationResult

# A table of more rows makes a page slow; the folder's jobs.csv holds all.
MOST_JOBS = 2_000
UNFAIR = 1.05
_WIDE = 1080


def render(config: SimulationConfig, finished: FinishedRun) -> str:
    """Return the page as text; it needs neither a network nor a script."""
    from ...simulation.results.plots import ftf_cdf, jct_cdf, schedule_picture, utilisation_picture

    result = finished.result
    tiles = "\n".join(tile(*each) for each in headline(result.metrics))
    pictures = [
        figure(schedule_picture(result, width=_WIDE) + utilisation_picture(result, width=_WIDE), wide=True),
        figure(jct_cdf(result)),
        figure(ftf_cdf(result)),
    ]
    body = [
        f'<dl class="tiles">\n{tiles}\n</dl>',
        f'<p class="lead">{escape(solves_text(result.metrics, result.solves))}.</p>',
        f'<div class="pictures">\n{"".join(pictures)}</div>',
        f"<h2>Jobs</h2>\n{_job_table(result)}",
    ]
    title = f"{finished.spec.label} on {config.total_gpus:,} GPUs"
    return fill(title, lead(config), body, command("simulate", config, ["--policy", finished.spec.label]))


def fill(title: str, text: str, body: Iterable[str], repeat: str) -> str:
    """Return the template with its parts put in; `body` is HTML, the others plain text."""
    from ... import __version__

    parts = {
        "TITLE": escape(title),
        "LEAD": escape(text),
        "VERSION": escape(__version__),
        "COMMAND": escape(repeat),
        "BODY": "\n".join(body),
    }
    page = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    # No part can hold a marker of another one, because "<" is escaped in all that is not ours.
    for name, value in parts.items():
        page = page.replace(f"<!--{name}-->", value)
    return page


def lead(config: SimulationConfig) -> str:
    """Return one sentence on what was simulated."""
    profiles = config.profiles_name if config.cluster is None else f"{config.profiles_name}, {config.cluster}"
    gpus = f"{config.total_gpus:,} GPUs"
    if not isinstance(config.gpus, int):
        gpus += f" ({', '.join(f'{amount} {name}' for name, amount in config.gpus.items())})"
    jobs = f"{len(config.trace):,} jobs of {config.trace_name} (seed {config.seed})"
    rules = config.engine.sentence.format(rules=config.rules)
    return f"{jobs} on {gpus}{rules and ', '}{rules}; profiles: {profiles}."


def headline(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the figures on top as (name, figure, explanation)."""
    return [
        ("Makespan", duration_text(metrics["makespan_s"]), f"{metrics['makespan_s']:,.0f} s"),
        ("Average JCT", duration_text(metrics["avg_jct_s"]), f"{metrics['avg_jct_s']:,.0f} s from arrival"),
        ("Worst FTF", number(metrics["worst_ftf"], 2), "finish-time fairness, 1 is fair"),
        ("Unfair jobs", f"{metrics['unfair_pct']:.1f}%", f"FTF above {UNFAIR}"),
        ("Utilisation", f"{metrics['utilisation']:.1%}", "of the GPUs' time until the last job ends"),
    ]


def number(value: float, digits: int) -> str:
    """Return a number with so many digits after the point; a dash where there is none."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else "\N{EN DASH}"


def tile(name: str, value: str, explanation: str) -> str:
    """Return one figure of the headline."""
    return f'<div class="tile"><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(explanation)}</dd></div>'


def figure(picture: str, *, head: str = "", wide: bool = False) -> str:
    """Return a card with a picture; `head` is HTML above it."""
    return f"<figure{' class=wide' if wide else ''}>{head}{picture}</figure>\n"


def command(name: str, config: SimulationConfig, more: Sequence[str]) -> str:
    """Return what repeats the run."""
    words = ["equipoise", name, config.trace_name, *more, "--gpus", gpus_text(config)]
    if config.profiles_name not in (BUILTIN, OWN_PROFILES):
        words += ["--profiles", config.profiles_name]
    if config.cluster is not None:
        words += ["--cluster", config.cluster]
    return shlex.join([*words, *config.asked])


def gpus_text(config: SimulationConfig) -> str:
    """Return the cluster as written on the command line."""
    if isinstance(config.gpus, int):
        return str(config.gpus)
    return ",".join(f"{name}={amount}" for name, amount in config.gpus.items())


def _job_table(result: SimulationResult) -> str:
    jobs = result.jobs
    names = (
        "job_id",
        "model",
        "mode",
        "gpus",
        "arrival_s",
        "start_s",
        "end_s",
        "jct_s",
        "exclusive_s",
        "ftf",
        "restarts",
    )
    heads = ("job", "model", "mode", "GPUs", "arrival s", "start s", "end s", "JCT s", "alone s", "FTF", "restarts")
    shown = jobs.head(MOST_JOBS)
    rows = []
    for row in zip(*(shown[name].tolist() for name in names), strict=True):
        cells = []
        for name, value in zip(names, row, strict=True):
            text = str(value) if not isinstance(value, float) else number(value, 3 if name == "ftf" else 0)
            unfair = name == "ftf" and value > UNFAIR
            cells.append(f"<td{' class=unfair' if unfair else ''}>{escape(text)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    more = len(jobs) - len(shown)
    note = f'<p class="lead">{more:,} more jobs are in jobs.csv.</p>' if more else ""
    body = "\n".join(rows)
    return (
        f'<div class="scroll tall"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{note}'
    )
