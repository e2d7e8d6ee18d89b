"""The page of `equipoise simulate`: figures, schedule, utilisation, distributions and jobs of one run."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formulations.plotting import html
from ...formulations.text import duration_text
from ..profiles import BUILTIN
from .config import OWN_PROFILES, SimulationConfig
from .run import FinishedRun, by_gpus
from .summary import solves_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from ...simulation import SimulationResult

# A table of more rows makes a page slow; the folder's jobs.csv holds all.
MOST_JOBS = 2_000
UNFAIR = 1.05
_WIDE = 1080
# The columns of the table of jobs, and their headings.
_COLUMNS = {
    "job_id": "job",
    "model": "model",
    "mode": "mode",
    "gpus": "GPUs",
    "arrival_s": "arrival s",
    "start_s": "start s",
    "end_s": "end s",
    "jct_s": "JCT s",
    "exclusive_s": "exclusive s",
    "ftf": "FTF",
    "restarts": "restarts",
}


def render(config: SimulationConfig, finished: FinishedRun) -> str:
    """Return the page as text; it needs neither a network nor a script."""
    from ...simulation.results.plots import (
        ftf_cdf,
        jct_cdf,
        jobs_left_picture,
        schedule_picture,
        utilisation_picture,
    )

    result = finished.result
    over_time = [draw(result, width=_WIDE) for draw in (schedule_picture, utilisation_picture, jobs_left_picture)]
    return html.render(
        "cli/simulate/page.html",
        title=f"{finished.spec.label} on {config.total_gpus:,} GPUs",
        lead=lead(config),
        tiles=headline(result.metrics),
        solves=f"{solves_text(result.metrics, result.solves)}.",
        schedule=html.picture("".join(over_time)),
        timers=_timers(result),
        completion=html.picture(jct_cdf(result)),
        fairness=html.picture(ftf_cdf(result)),
        groups=_group_table(config, result),
        jobs=_job_table(config, result),
        command=command("simulate", config, ["--policy", finished.spec.label]),
    )


def _timers(result: SimulationResult) -> Markup | None:
    """Return the picture of the delay timers, for a policy that tunes them."""
    from ...simulation.placement import PlacementResult, timers_picture

    if not isinstance(result, PlacementResult) or result.timers is None:
        return None
    return html.picture(timers_picture(result, width=_WIDE))


def lead(config: SimulationConfig) -> str:
    """Return one sentence on what was simulated."""
    profiles = config.profiles_name if config.cluster is None else f"{config.profiles_name}, {config.cluster}"
    gpus = f"{config.total_gpus:,} GPUs"
    if not isinstance(config.gpus, int):
        gpus += f" ({', '.join(f'{amount} {name}' for name, amount in config.gpus.items())})"
    machines = config.own.cluster(config.gpus).machines
    if machines is not None:
        gpus += f" on {machines:,} machines" + (f" in {config.own.racks} racks" if config.own.racks else "")
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


def command(name: str, config: SimulationConfig, more: Sequence[str]) -> str:
    """Return what repeats the run."""
    types = {} if isinstance(config.gpus, int) else config.gpus
    gpus = ",".join(f"{kind}={amount}" for kind, amount in types.items()) or str(config.gpus)
    words = ["equipoise", name, config.trace_name, *more, "--gpus", gpus]
    if config.profiles_name not in (BUILTIN, OWN_PROFILES):
        words += ["--profiles", config.profiles_name]
    if config.cluster is not None:
        words += ["--cluster", config.cluster]
    return shlex.join([*words, *config.asked])


def _group_table(config: SimulationConfig, result: SimulationResult) -> dict[str, Any]:
    """Return the metrics of the jobs of more and of at most `--split-gpus` GPUs; without the option, nothing."""
    if config.split_gpus is None:
        return {}
    groups = {"all jobs": result.of([True] * len(result.trace)), **by_gpus(result, config.split_gpus)}
    heads = ["metric", "all jobs", f"more than {config.split_gpus} GPUs", f"at most {config.split_gpus} GPUs"]
    rows = [[name, *(_figure(some, name) for some in groups.values())] for name in groups["all jobs"]]
    return {"heads": heads, "rows": rows}


def _figure(metrics: Mapping[str, float], name: str) -> str:
    value = metrics.get(name, math.nan)
    return str(value) if isinstance(value, int) else number(value, 0 if abs(value) >= 1000 else 3)


def _job_table(config: SimulationConfig, result: SimulationResult) -> dict[str, Any]:
    """Return the first jobs as the template's table takes them; what is unfair stands out."""
    shown = result.jobs.head(MOST_JOBS)
    columns: dict[str, Iterable[object]] = {
        heading: map(_cell, shown[name].tolist()) for name, heading in (*_COLUMNS.items(), *config.engine.job_columns)
    }
    columns["FTF"] = ((number(ftf, 3), "warn" if ftf > UNFAIR else "") for ftf in shown["ftf"].tolist())
    rows = list(zip(*columns.values(), strict=True))
    return {"heads": list(columns), "rows": rows, "more": len(result.jobs) - len(rows)}


def _cell(value: Any) -> str:
    return number(value, 0) if isinstance(value, float) else str(value)
